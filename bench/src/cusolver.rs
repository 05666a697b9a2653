//! Calls cuSOLVER, if the library is found on the system.

use std::ffi::c_void;
use std::ptr;

use lapidary::{DType, Scalar};
use libloading::{Library, Symbol};

use crate::cublas::{Cublas, Memory, open};

/// File names of NVIDIA's cuSOLVER library.
const CUSOLVER: [&str; 3] = ["libcusolver.so", "libcusolver.so.11", "libcusolver.so.12"];

type Create = unsafe extern "C" fn(*mut *mut c_void) -> i32;
type Size<T> = unsafe extern "C" fn(*mut c_void, i32, i32, *mut T, i32, *mut i32) -> i32;
type Getrf<T> = unsafe extern "C" fn(*mut c_void, i32, i32, *mut T, i32, *mut T, *mut i32, *mut i32) -> i32;

/// cuSOLVER, with the CUDA runtime of [`Cublas`], which allocates its device memory.
pub struct Cusolver<'c> {
    cuda: &'c Cublas,
    cusolver: Library,
    handle: *mut c_void,
}

/// A matrix in device memory, with memory for its LU factors.
pub struct Factors<T> {
    n: usize,
    original: Memory<T>,
    lu: Memory<T>,
    work: Memory<T>,
    ipiv: Memory<i32>,
    info: Memory<i32>,
}

impl<'c> Cusolver<'c> {
    /// Loads cuSOLVER and creates a handle.
    pub fn open(cuda: &'c Cublas) -> Result<Self, String> {
        let cusolver = open("LAPIDARY_PEER_CUSOLVER", CUSOLVER)?;
        let mut handle = ptr::null_mut();
        // SAFETY: the type of the symbol is the signature in the C header of cuSOLVER, and the function writes only `handle`.
        let status = unsafe {
            let create: Symbol<'_, Create> = cusolver.get(b"cusolverDnCreate").map_err(|error| error.to_string())?;
            create(&raw mut handle)
        };
        if status == 0 { Ok(Cusolver { cuda, cusolver, handle }) } else { Err(format!("cusolverDnCreate answers {status}")) }
    }

    /// Version number that cuSOLVER reports.
    pub fn version(&self) -> String {
        let mut version = 0;
        // SAFETY: the type of the symbol is the signature in the C header of cuSOLVER, and the function writes only `version`.
        let status = unsafe {
            let get: Symbol<'_, unsafe extern "C" fn(*mut i32) -> i32> =
                self.cusolver.get(b"cusolverGetVersion").expect("a version");
            get(&raw mut version)
        };
        assert_eq!(status, 0, "cusolverGetVersion");
        version.to_string()
    }

    fn symbol<T: Scalar, F>(&self, rest: &str) -> Symbol<'_, F> {
        let letter = if T::DTYPE == DType::F64 { 'D' } else { 'S' };
        // SAFETY: each caller passes the signature in the C header of cuSOLVER as `F`.
        unsafe { self.cusolver.get(format!("cusolverDn{letter}{rest}").as_bytes()).expect("cuSOLVER's function") }
    }

    /// Copies a matrix of order n to device memory and allocates memory for its factors.
    pub fn prepare<T: Scalar>(&self, n: usize, a: &[T]) -> Factors<T> {
        let order = i32::try_from(n).expect("an order of 31 bits");
        let (original, lu) = (self.cuda.upload(a), self.cuda.upload(a));
        let mut elements = 0;
        // SAFETY: the type `Size` is the signature in the C header of cuSOLVER. The function writes only `elements`, and `lu` has
        // n² elements.
        let status =
            unsafe { self.symbol::<T, Size<T>>("getrf_bufferSize")(self.handle, order, order, lu.0, order, &raw mut elements) };
        assert_eq!(status, 0, "cusolverDnXgetrf_bufferSize");
        let work = self.cuda.upload(&vec![T::ZERO; usize::try_from(elements).expect("a size").max(1)]);
        Factors { n, original, lu, work, ipiv: self.cuda.upload(&vec![0; n]), info: self.cuda.upload(&[0]) }
    }

    /// Copies the original matrix and factors the copy, A = P·L·U, `times` times in succession. The function waits until the last
    /// factorisation has ended.
    pub fn getrf<T: Scalar>(&self, factors: &Factors<T>, times: usize) {
        let Factors { n, original, lu, work, ipiv, info } = *factors;
        let order = i32::try_from(n).expect("an order of 31 bits");
        let getrf = self.symbol::<T, Getrf<T>>("getrf");
        for _ in 0..times {
            self.cuda.duplicate(original, lu, n * n);
            // SAFETY: the type of the symbol is the signature in the C header of cuSOLVER. `work` is as large as `getrf_bufferSize`
            // requires, and no other command uses the arrays of `factors`.
            let status = unsafe { getrf(self.handle, order, order, lu.0, order, work.0, ipiv.0, info.0) };
            assert_eq!(status, 0, "cusolverDnXgetrf");
        }
        self.cuda.wait();
    }

    /// Frees the device memory of `factors`. Returns the pivots of the last factorisation, counted from 1.
    ///
    /// # Panics
    /// A pivot of the last factorisation was zero.
    pub fn finish<T>(&self, factors: &Factors<T>) -> Vec<i32> {
        let Factors { n, original, lu, work, ipiv, info } = *factors;
        let mut pivots = vec![0; n];
        self.cuda.download(ipiv, &mut pivots);
        let mut zero = [1];
        self.cuda.download(info, &mut zero);
        assert_eq!(zero, [0], "cuSOLVER's info");
        [original, lu, work].into_iter().for_each(|memory| self.cuda.free(memory));
        [ipiv, info].into_iter().for_each(|memory| self.cuda.free(memory));
        pivots
    }
}
