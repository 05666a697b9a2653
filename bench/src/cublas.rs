//! Calls cuBLAS, if the library is found on the system.

use std::error::Error;
use std::ffi::c_void;
use std::ptr;

use libloading::{Library, Symbol};

use crate::gpu::problem::Product;
use crate::settings::Settings;

/// File names of NVIDIA's libraries.
const CUBLAS: [&str; 3] = ["libcublas.so", "libcublas.so.12", "libcublas.so.13"];
const RUNTIME: [&str; 3] = ["libcudart.so", "libcudart.so.12", "libcudart.so.13"];

type Gemm<T> = unsafe extern "C" fn(
    *mut c_void,
    i32,
    i32,
    i32,
    i32,
    i32,
    *const T,
    *const T,
    i32,
    *const T,
    i32,
    *const T,
    *mut T,
    i32,
) -> i32;

type Trsm<T> = unsafe extern "C" fn(*mut c_void, i32, i32, i32, i32, i32, i32, *const T, *const T, i32, *mut T, i32) -> i32;

type GemmBatched<T> = unsafe extern "C" fn(
    *mut c_void,
    i32,
    i32,
    i32,
    i32,
    i32,
    *const T,
    *const T,
    i32,
    i64,
    *const T,
    i32,
    i64,
    *const T,
    *mut T,
    i32,
    i64,
    i32,
) -> i32;

type GetrfBatched<T> = unsafe extern "C" fn(*mut c_void, i32, *const *mut T, i32, *mut i32, *mut i32, i32) -> i32;

/// An element type, with the names of the cuBLAS functions for this type.
pub trait Real: lapidary::Scalar {
    const GEMM: &'static [u8];
    const GEMM_XT: &'static [u8];
    const TRSM: &'static [u8];
    const GEMM_BATCHED: &'static [u8];
    const GETRF_BATCHED: &'static [u8];
}

impl Real for f32 {
    const GEMM: &'static [u8] = b"cublasSgemm_v2";
    const GEMM_XT: &'static [u8] = b"cublasXtSgemm";
    const TRSM: &'static [u8] = b"cublasStrsm_v2";
    const GEMM_BATCHED: &'static [u8] = b"cublasSgemmStridedBatched";
    const GETRF_BATCHED: &'static [u8] = b"cublasSgetrfBatched";
}

impl Real for f64 {
    const GEMM: &'static [u8] = b"cublasDgemm_v2";
    const GEMM_XT: &'static [u8] = b"cublasXtDgemm";
    const TRSM: &'static [u8] = b"cublasDtrsm_v2";
    const GEMM_BATCHED: &'static [u8] = b"cublasDgemmStridedBatched";
    const GETRF_BATCHED: &'static [u8] = b"cublasDgetrfBatched";
}

/// cuBLAS on the first CUDA device. The program keeps the libraries and the handle until the process ends.
pub struct Cublas {
    cublas: Library,
    runtime: Library,
    handle: *mut c_void,
}

/// The address of an array in device memory.
pub struct Memory<T>(pub *mut T);

// A derived `Clone` would require `T: Clone`.
impl<T> Clone for Memory<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Memory<T> {}

/// An array in device memory, which is freed when the value is dropped.
pub struct Array<'c, T> {
    cuda: &'c Cublas,
    memory: Memory<T>,
}

impl<T> Array<'_, T> {
    /// The address of the array. It is valid as long as the array exists.
    pub fn memory(&self) -> Memory<T> {
        self.memory
    }
}

impl<T> Drop for Array<'_, T> {
    fn drop(&mut self) {
        self.cuda.free(self.memory);
    }
}

/// Square matrices of one order in device memory, with memory for their LU factors.
pub struct LuBatch<T> {
    original: Memory<T>,
    /// The L and U factors of all matrices.
    pub lu: Memory<T>,
    pointers: Memory<*mut T>,
    ipiv: Memory<i32>,
    info: Memory<i32>,
}

impl Cublas {
    /// Opens cuBLAS and the CUDA runtime. In its default mode, cuBLAS rounds products as IEEE arithmetic does, and does not use
    /// TF32.
    fn open() -> Result<Self, String> {
        let (cublas, runtime) = (open("LAPIDARY_PEER_CUBLAS", CUBLAS)?, open("LAPIDARY_PEER_CUDART", RUNTIME)?);
        let mut handle = ptr::null_mut();
        // SAFETY: the type of the symbol is the signature in the C header of cuBLAS, and the function writes only `handle`.
        let status = unsafe {
            let create: Symbol<'_, unsafe extern "C" fn(*mut *mut c_void) -> i32> =
                cublas.get(b"cublasCreate_v2").map_err(|error| error.to_string())?;
            create(&raw mut handle)
        };
        if status == 0 { Ok(Cublas { cublas, runtime, handle }) } else { Err(format!("cublasCreate answers {status}")) }
    }

    /// Opens cuBLAS unless the option `--peer` excludes it and cuSOLVER, which needs its memory. If cuBLAS is not found, prints the
    /// reason.
    pub fn find(settings: &Settings) -> Option<Self> {
        let is_wanted = settings.wants("cublas") || settings.wants("cusolver");
        let open = || Cublas::open().inspect_err(|error| println!("no cuBLAS: {error}")).ok();
        is_wanted.then(open).flatten()
    }

    /// The library of cuBLAS, which contains cuBLASXt.
    pub fn cublas(&self) -> &Library {
        &self.cublas
    }

    /// The library of the CUDA runtime.
    pub fn runtime(&self) -> &Library {
        &self.runtime
    }

    /// Version number that cuBLAS reports.
    pub fn version(&self) -> String {
        let mut version = 0;
        // SAFETY: the type of the symbol is the signature in the C header of cuBLAS, and the function writes only `version`.
        let status = unsafe {
            let get: Symbol<'_, unsafe extern "C" fn(*mut c_void, *mut i32) -> i32> =
                self.cublas.get(b"cublasGetVersion_v2").expect("a version");
            get(self.handle, &raw mut version)
        };
        assert_eq!(status, 0, "cublasGetVersion");
        version.to_string()
    }

    /// Allocates device memory and copies `data` into it.
    ///
    /// # Panics
    /// The device has too little memory.
    pub fn upload<T: Copy>(&self, data: &[T]) -> Memory<T> {
        self.try_upload(data).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Allocates device memory and copies `data` into it.
    ///
    /// # Errors
    /// The device has too little memory.
    pub fn try_upload<T: Copy>(&self, data: &[T]) -> Result<Memory<T>, String> {
        let mut memory = ptr::null_mut();
        // SAFETY: the type of the symbol is the signature in CUDA's C header, and the function writes only `memory`.
        unsafe {
            let malloc: Symbol<'_, unsafe extern "C" fn(*mut *mut c_void, usize) -> i32> =
                self.runtime.get(b"cudaMalloc").expect("cudaMalloc");
            answer("cudaMalloc", malloc(&raw mut memory, size_of_val(data)))?;
        }
        let memory = Memory(memory.cast());
        self.write(data, memory).map(|()| memory)
    }

    /// Copies `data` to an array in device memory of at least as many elements.
    ///
    /// # Errors
    /// The device fails.
    pub fn write<T: Copy>(&self, data: &[T], memory: Memory<T>) -> Result<(), String> {
        // SAFETY: the caller passes device memory of at least `data.len()` elements, and `data` is borrowed. Direction 1 copies from
        // host to device.
        answer("cudaMemcpy", unsafe { self.copy(memory.0.cast(), data.as_ptr().cast(), size_of_val(data), 1) })
    }

    /// Allocates an array in device memory and copies `data` into it.
    ///
    /// # Errors
    /// The device has too little memory.
    pub fn array<T: Copy>(&self, data: &[T]) -> Result<Array<'_, T>, String> {
        self.try_upload(data).map(|memory| Array { cuda: self, memory })
    }

    /// Copies an array from device memory to host memory.
    ///
    /// # Errors
    /// The device fails, also in a command that the program has issued before.
    pub fn download<T: Copy>(&self, memory: Memory<T>, data: &mut [T]) -> Result<(), String> {
        // SAFETY: the caller passes device memory of at least `data.len()` elements, and `data` is borrowed exclusively. Direction
        // 2 copies from device to host.
        answer("cudaMemcpy", unsafe { self.copy(data.as_mut_ptr().cast(), memory.0.cast(), size_of_val(data), 2) })
    }

    /// Frees the device memory of an array.
    pub fn free<T>(&self, memory: Memory<T>) {
        // SAFETY: `upload` allocated the memory by `cudaMalloc`. The caller does not use the memory after this call.
        unsafe {
            let free: Symbol<'_, unsafe extern "C" fn(*mut c_void) -> i32> = self.runtime.get(b"cudaFree").expect("cudaFree");
            free(memory.0.cast());
        }
    }

    /// # Safety
    /// The caller must guarantee the requirements of `cudaMemcpy` for both addresses and for the direction `kind`.
    unsafe fn copy(&self, to: *mut c_void, from: *const c_void, bytes: usize, kind: i32) -> i32 {
        // SAFETY: the type of the symbol is the signature in CUDA's C header, and the caller guarantees the requirements of
        // `cudaMemcpy`.
        unsafe {
            let copy: Symbol<'_, unsafe extern "C" fn(*mut c_void, *const c_void, usize, i32) -> i32> =
                self.runtime.get(b"cudaMemcpy").expect("cudaMemcpy");
            copy(to, from, bytes, kind)
        }
    }

    /// Computes C ← op(A)·op(B) `times` times and waits until the last product has ended.
    ///
    /// # Errors
    /// cuBLAS refuses a product, or the device fails.
    pub fn gemm<T: Real>(&self, product: Product, [a, b, c]: [Memory<T>; 3], times: usize) -> Result<(), String> {
        let Product { m, n, k, trans } = product;
        let [op_a, op_b] = trans.map(i32::from);
        let [m, n, k, lda, ldb] = int32([m, n, k, product.shape_a().0, product.shape_b().0])?;
        // SAFETY: the type of the symbol is the signature in the C header of cuBLAS. The caller passes three arrays of m·k, k·n and
        // m·n elements in device memory, whose columns are packed.
        unsafe {
            let gemm: Symbol<'_, Gemm<T>> = self.cublas.get(T::GEMM).expect("the product");
            for _ in 0..times {
                let status = gemm(self.handle, op_a, op_b, m, n, k, &T::ONE, a.0, lda, b.0, ldb, &T::ZERO, c.0, m);
                answer("cuBLAS's gemm", status)?;
            }
        }
        self.try_wait()
    }

    /// Computes X ← L⁻¹·B `times` times and waits until the last solve has ended. L is the lower triangle of A, which is of order n.
    /// B and X have `nrhs` columns.
    ///
    /// # Errors
    /// cuBLAS refuses a solve, or the device fails.
    pub fn trsm<T: Real>(&self, (n, nrhs): (usize, usize), [a, b, x]: [Memory<T>; 3], times: usize) -> Result<(), String> {
        let [order, columns] = int32([n, nrhs])?;
        for _ in 0..times {
            self.duplicate(b, x, n * nrhs)?;
            // SAFETY: the type of the symbol is the signature in the C header of cuBLAS. The four zeros mean left, lower, not
            // transposed, non-unit diagonal. The caller passes arrays of n², n·nrhs and n·nrhs elements in device memory.
            let status = unsafe {
                let trsm: Symbol<'_, Trsm<T>> = self.cublas.get(T::TRSM).expect("the solve");
                trsm(self.handle, 0, 0, 0, 0, order, columns, &T::ONE, a.0, order, x.0, order)
            };
            answer("cuBLAS's trsm", status)?;
        }
        self.try_wait()
    }

    /// Computes C ← A·B for each of `count` matrices of order n, and waits until all products have ended. The matrices of each
    /// operand lie one after the other in memory.
    pub fn gemm_batched<T: Real>(&self, n: usize, count: usize, [a, b, c]: [Memory<T>; 3]) {
        let [order, count] = [n, count].map(|size| i32::try_from(size).expect("31 bits"));
        let stride = i64::from(order) * i64::from(order);
        // SAFETY: the type of the symbol is the signature in the C header of cuBLAS. The caller passes three arrays of `count`·n²
        // elements in device memory.
        let status = unsafe {
            let gemm: Symbol<'_, GemmBatched<T>> = self.cublas.get(T::GEMM_BATCHED).expect("the product");
            let (one, zero) = (&T::ONE, &T::ZERO);
            let (a, b, c) = (a.0, b.0, c.0);
            gemm(self.handle, 0, 0, order, order, order, one, a, order, stride, b, order, stride, zero, c, order, stride, count)
        };
        assert_eq!(status, 0, "cublas");
        self.wait();
    }

    /// Copies `count` matrices of order `n` to the memory to which `work.pointers` point, factors these copies, and waits until all
    /// factorisations have ended.
    pub fn getrf_batched<T: Real>(&self, n: usize, count: usize, work: &LuBatch<T>) {
        self.duplicate(work.original, work.lu, n * n * count).expect("the copy works");
        let [order, count] = [n, count].map(|size| i32::try_from(size).expect("31 bits"));
        let LuBatch { pointers, ipiv, info, .. } = work;
        // SAFETY: the type of the symbol is the signature in the C header of cuBLAS. The arrays of `work` have `count` pointers,
        // n·`count` pivots and `count` values of `info`.
        let status = unsafe {
            let getrf: Symbol<'_, GetrfBatched<T>> = self.cublas.get(T::GETRF_BATCHED).expect("LU");
            getrf(self.handle, order, pointers.0, order, ipiv.0, info.0, count)
        };
        assert_eq!(status, 0, "cublas");
        self.wait();
    }

    /// Copies the pivots and the values of `info` that the last call of `getrf_batched` wrote to host memory.
    pub fn pivots<T>(&self, work: &LuBatch<T>, ipiv: &mut [i32], info: &mut [i32]) {
        self.download(work.ipiv, ipiv).expect("the copy works");
        self.download(work.info, info).expect("the copy works");
    }

    /// Allocates device memory for the LU factorisation of `count` matrices of order n, which lie one after the other in `data`.
    pub fn prepare_lu<T: Real>(&self, n: usize, count: usize, data: &[T]) -> LuBatch<T> {
        let (original, lu) = (self.upload(data), self.upload(data));
        // SAFETY: the address of matrix i lies within the array `lu`, which has `count`·n² elements.
        let pointers: Vec<*mut T> = (0..count).map(|i| unsafe { lu.0.add(i * n * n) }).collect();
        let (ipiv, info) = (self.upload(&vec![0; n * count]), self.upload(&vec![0; count]));
        LuBatch { original, lu, pointers: self.upload(&pointers), ipiv, info }
    }

    /// Copies `elements` numbers within device memory. The copy runs after all commands that the program has issued before.
    ///
    /// # Errors
    /// The device fails.
    pub fn duplicate<T>(&self, from: Memory<T>, to: Memory<T>, elements: usize) -> Result<(), String> {
        // SAFETY: the caller passes two arrays of at least `elements` numbers in device memory. Direction 3 copies from device to
        // device.
        answer("cudaMemcpy", unsafe { self.copy(to.0.cast(), from.0.cast(), elements * size_of::<T>(), 3) })
    }

    /// Waits until the device has completed all commands.
    ///
    /// # Panics
    /// A command failed.
    pub fn wait(&self) {
        self.try_wait().unwrap_or_else(|error| panic!("{error}"));
    }

    /// Waits until the device has completed all commands.
    ///
    /// # Errors
    /// A command failed.
    pub fn try_wait(&self) -> Result<(), String> {
        // SAFETY: the type of the symbol is the signature in CUDA's C header, and the function has no requirements.
        unsafe {
            let wait: Symbol<'_, unsafe extern "C" fn() -> i32> = self.runtime.get(b"cudaDeviceSynchronize").expect("wait");
            answer("cudaDeviceSynchronize", wait())
        }
    }
}

/// Turns the status code of a function into an error. The code 0 means success.
pub fn answer(function: &str, status: i32) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("{function} answers {status}")) }
}

/// Turns sizes into integers of 32 bits.
pub fn int32<const K: usize>(sizes: [usize; K]) -> Result<[i32; K], String> {
    let mut all = [0; K];
    for (to, size) in all.iter_mut().zip(sizes) {
        *to = i32::try_from(size).map_err(|_| format!("{size} exceeds 31 bits"))?;
    }
    Ok(all)
}

/// Loads the library at the path that the environment variable `variable` states. If the variable is unset, loads the first of
/// `names` that is found.
pub fn open<const K: usize>(variable: &str, names: [&str; K]) -> Result<Library, String> {
    let named = std::env::var(variable).map_or_else(|_| names.map(str::to_owned).to_vec(), |name| vec![name]);
    let mut refusal = String::new();
    for name in named {
        // SAFETY: the initialisers of the libraries may run at any time.
        match unsafe { Library::new(&name) } {
            Ok(library) => return Ok(library),
            // The source of the error states the reason of the dynamic loader.
            Err(error) => refusal = error.source().map_or_else(|| error.to_string(), ToString::to_string),
        }
    }
    Err(refusal)
}
