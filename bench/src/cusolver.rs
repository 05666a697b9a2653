//! Calls cuSOLVER, if the library is found on the system.

use std::ffi::c_void;
use std::ptr;

use lapidary::{DType, Scalar};
use libloading::{Library, Symbol};

use crate::cublas::{Array, Cublas, answer, int32, open};
use crate::settings::Settings;

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
pub struct Factors<'c, T> {
    n: usize,
    original: Array<'c, T>,
    lu: Array<'c, T>,
    work: Array<'c, T>,
    ipiv: Array<'c, i32>,
    info: Array<'c, i32>,
}

impl<'c> Cusolver<'c> {
    /// Loads cuSOLVER and creates a handle.
    fn open(cuda: &'c Cublas) -> Result<Self, String> {
        let cusolver = open("LAPIDARY_PEER_CUSOLVER", CUSOLVER)?;
        let mut handle = ptr::null_mut();
        // SAFETY: the type of the symbol is the signature in the C header of cuSOLVER, and the function writes only `handle`.
        let status = unsafe {
            let create: Symbol<'_, Create> = cusolver.get(b"cusolverDnCreate").map_err(|error| error.to_string())?;
            create(&raw mut handle)
        };
        if status == 0 { Ok(Cusolver { cuda, cusolver, handle }) } else { Err(format!("cusolverDnCreate answers {status}")) }
    }

    /// Opens cuSOLVER if cuBLAS is found, unless the option `--peer` excludes it. If cuSOLVER is not found, prints the reason.
    pub fn find(settings: &Settings, cuda: Option<&'c Cublas>) -> Option<Self> {
        if !settings.wants("cusolver") {
            return None;
        }
        let found = cuda.ok_or_else(|| "it needs cuBLAS and the CUDA runtime".to_owned()).and_then(Self::open);
        found.inspect_err(|error| println!("no cuSOLVER: {error}")).ok()
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
    ///
    /// # Errors
    /// The device has too little memory.
    pub fn prepare<T: Scalar>(&self, n: usize, a: &[T]) -> Result<Factors<'_, T>, String> {
        let [order] = int32([n])?;
        let (original, lu) = (self.cuda.array(a)?, self.cuda.array(a)?);
        let mut elements = 0;
        // SAFETY: the type `Size` is the signature in the C header of cuSOLVER. The function writes only `elements`, and `lu` has
        // n² elements.
        let status = unsafe {
            self.symbol::<T, Size<T>>("getrf_bufferSize")(self.handle, order, order, lu.memory().0, order, &raw mut elements)
        };
        answer("cuSOLVER's getrf_bufferSize", status)?;
        let work = self.cuda.array(&vec![T::ZERO; usize::try_from(elements).expect("a size").max(1)])?;
        Ok(Factors { n, original, lu, work, ipiv: self.cuda.array(&vec![0; n])?, info: self.cuda.array(&[0])? })
    }

    /// Copies the original matrix and factors the copy, A = P·L·U, `times` times in succession. The function waits until the last
    /// factorisation has ended.
    ///
    /// # Errors
    /// cuSOLVER refuses a factorisation, or the device fails.
    pub fn getrf<T: Scalar>(&self, factors: &Factors<'_, T>, times: usize) -> Result<(), String> {
        let Factors { n, original, lu, work, ipiv, info } = factors;
        let [order] = int32([*n])?;
        let getrf = self.symbol::<T, Getrf<T>>("getrf");
        for _ in 0..times {
            self.cuda.duplicate(original.memory(), lu.memory(), n * n);
            let [lu, work] = [lu, work].map(|array| array.memory().0);
            let [ipiv, info] = [ipiv, info].map(|array| array.memory().0);
            // SAFETY: the type of the symbol is the signature in the C header of cuSOLVER. `work` is as large as `getrf_bufferSize`
            // requires, and no other command uses the arrays of `factors`.
            let status = unsafe { getrf(self.handle, order, order, lu, order, work, ipiv, info) };
            answer("cuSOLVER's getrf", status)?;
        }
        self.cuda.try_wait()
    }

    /// Copies the factors of the last factorisation to `lu`. Returns its pivots, counted from 1, and its `info`.
    pub fn read<T: Scalar>(&self, factors: &Factors<'_, T>, lu: &mut [T]) -> (Vec<i32>, i32) {
        let (mut pivots, mut info) = (vec![0; factors.n], [1]);
        self.cuda.download(factors.lu.memory(), lu);
        self.cuda.download(factors.ipiv.memory(), &mut pivots);
        self.cuda.download(factors.info.memory(), &mut info);
        (pivots, info[0])
    }
}
