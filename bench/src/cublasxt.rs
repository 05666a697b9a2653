//! Calls cuBLASXt, the part of cuBLAS whose matrices lie in host memory, if cuBLAS is found on the system.

use std::ffi::c_void;
use std::ops::{Deref, DerefMut};
use std::{ptr, slice};

use lapidary::Scalar;
use libloading::Symbol;

use crate::cublas::{Cublas, Real, answer};

type Gemm<T> = unsafe extern "C" fn(
    *mut c_void,
    i32,
    i32,
    usize,
    usize,
    usize,
    *const T,
    *const T,
    usize,
    *const T,
    usize,
    *const T,
    *mut T,
    usize,
) -> i32;

/// A handle of cuBLASXt that computes on the first CUDA device.
pub struct CublasXt<'c> {
    cuda: &'c Cublas,
    handle: *mut c_void,
}

impl<'c> CublasXt<'c> {
    /// Creates a handle and selects the first CUDA device.
    ///
    /// # Errors
    /// The library lacks cuBLASXt, or the device has too little memory.
    pub fn open(cuda: &'c Cublas) -> Result<Self, String> {
        let mut handle = ptr::null_mut();
        // SAFETY: the type of each symbol is the signature of the function in the C header of cuBLASXt. `cublasXtCreate` writes only
        // `handle`. `cublasXtDeviceSelect` reads one device number.
        unsafe {
            let create: Symbol<'_, unsafe extern "C" fn(*mut *mut c_void) -> i32> = symbol(cuda, b"cublasXtCreate")?;
            let select: Symbol<'_, unsafe extern "C" fn(*mut c_void, i32, *const i32) -> i32> =
                symbol(cuda, b"cublasXtDeviceSelect")?;
            answer("cublasXtCreate", create(&raw mut handle))?;
            let xt = CublasXt { cuda, handle };
            answer("cublasXtDeviceSelect", select(handle, 1, &0))?;
            Ok(xt)
        }
    }

    /// Sets the order of the square blocks in which the matrices move to the device, and whether cuBLASXt pins the memory of the
    /// matrices during each call.
    ///
    /// # Errors
    /// cuBLASXt refuses a value.
    pub fn configure(&self, block: usize, pins: bool) -> Result<(), String> {
        let block = i32::try_from(block).map_err(|_| format!("{block} exceeds 31 bits"))?;
        // SAFETY: the type of each symbol is the signature of the function in the C header of cuBLASXt. C passes an enumeration as `int`.
        unsafe {
            let set_block: Symbol<'_, unsafe extern "C" fn(*mut c_void, i32) -> i32> = symbol(self.cuda, b"cublasXtSetBlockDim")?;
            let set_mode: Symbol<'_, unsafe extern "C" fn(*mut c_void, i32) -> i32> =
                symbol(self.cuda, b"cublasXtSetPinningMemMode")?;
            answer("cublasXtSetBlockDim", set_block(self.handle, block))?;
            answer("cublasXtSetPinningMemMode", set_mode(self.handle, i32::from(pins)))
        }
    }

    /// Computes C ← A·B + β·C for column-major matrices of order n in host memory. The function returns when C is complete.
    ///
    /// # Errors
    /// cuBLASXt refuses the product, or the device fails.
    pub fn gemm<T: Real>(&self, n: usize, [a, b]: [&[T]; 2], beta: T, c: &mut [T]) -> Result<(), String> {
        assert!([a.len(), b.len(), c.len()].iter().all(|&len| len == n * n), "matrices of order {n}");
        // SAFETY: the type of the symbol is the signature in the C header of cuBLASXt. The two zeros mean not transposed. Each of the
        // three slices has n² elements, and the call returns after its last access to the matrices.
        let status = unsafe {
            let gemm: Symbol<'_, Gemm<T>> = symbol(self.cuda, T::GEMM_XT)?;
            let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
            gemm(self.handle, 0, 0, n, n, n, &T::ONE, a, n, b, n, &raw const beta, c, n)
        };
        answer("cuBLASXt's gemm", status)
    }
}

impl Drop for CublasXt<'_> {
    fn drop(&mut self) {
        // SAFETY: the type of the symbol is the signature in the C header of cuBLASXt, and nothing uses the handle after this call.
        unsafe {
            let destroy: Symbol<'_, unsafe extern "C" fn(*mut c_void) -> i32> =
                symbol(self.cuda, b"cublasXtDestroy").expect("cublasXtDestroy");
            destroy(self.handle);
        }
    }
}

/// A function of the library of cuBLAS.
///
/// # Safety
/// `F` must be the signature of the function in its C header.
unsafe fn symbol<'c, F>(cuda: &'c Cublas, name: &[u8]) -> Result<Symbol<'c, F>, String> {
    // SAFETY: the caller guarantees that `F` is the signature of the function.
    unsafe { cuda.cublas().get(name).map_err(|error| error.to_string()) }
}

/// An array in host memory that the CUDA runtime has pinned. The memory is freed when the value is dropped.
pub struct Pinned<'c, T> {
    cuda: &'c Cublas,
    data: *mut T,
    len: usize,
}

impl<'c, T: Scalar> Pinned<'c, T> {
    /// Allocates pinned memory and copies `data` into it.
    ///
    /// # Errors
    /// The system has too little memory that can be pinned.
    pub fn new(cuda: &'c Cublas, data: &[T]) -> Result<Self, String> {
        let mut memory = ptr::null_mut();
        // SAFETY: the type of the symbol is the signature in CUDA's C header. The flag 1 means that all CUDA contexts see pinned memory.
        // The new memory has the size of `data`, and CUDA aligns it to pages.
        unsafe {
            let alloc: Symbol<'_, unsafe extern "C" fn(*mut *mut c_void, usize, u32) -> i32> =
                cuda.runtime().get(b"cudaHostAlloc").map_err(|error| error.to_string())?;
            answer("cudaHostAlloc", alloc(&raw mut memory, size_of_val(data), 1))?;
            let to: *mut T = memory.cast();
            to.copy_from_nonoverlapping(data.as_ptr(), data.len());
            Ok(Pinned { cuda, data: to, len: data.len() })
        }
    }
}

impl<T> Deref for Pinned<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `new` has allocated and initialised `len` elements, which `self` owns.
        unsafe { slice::from_raw_parts(self.data, self.len) }
    }
}

impl<T> DerefMut for Pinned<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `new` has allocated and initialised `len` elements, which `self` owns and which the slice borrows exclusively.
        unsafe { slice::from_raw_parts_mut(self.data, self.len) }
    }
}

impl<T> Drop for Pinned<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the type of the symbol is the signature in CUDA's C header. `cudaHostAlloc` has allocated the memory, and nothing uses
        // it after this call.
        unsafe {
            let free: Symbol<'_, unsafe extern "C" fn(*mut c_void) -> i32> =
                self.cuda.runtime().get(b"cudaFreeHost").expect("cudaFreeHost");
            free(self.data.cast());
        }
    }
}
