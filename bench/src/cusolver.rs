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
type Getrs<T> = unsafe extern "C" fn(*mut c_void, i32, i32, i32, *const T, i32, *const i32, *mut T, i32, *mut i32) -> i32;

/// cuSOLVER, with the CUDA runtime of [`Cublas`], which allocates its device memory.
pub struct Cusolver<'c> {
    cuda: &'c Cublas,
    cusolver: Library,
    handle: *mut c_void,
}

/// Memory for the LU factors of a matrix of order n on the device.
struct Factors<'c, T> {
    n: usize,
    lu: Array<'c, T>,
    work: Array<'c, T>,
    ipiv: Array<'c, i32>,
    info: Array<'c, i32>,
}

/// A matrix in device memory, with memory for its LU factors.
pub struct Matrix<'c, T> {
    original: Array<'c, T>,
    factors: Factors<'c, T>,
}

/// Device memory for a system A·x = b, which holds A and b before a call, and the factors and x after it.
pub struct System<'c, T> {
    factors: Factors<'c, T>,
    x: Array<'c, T>,
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

    /// The CUDA runtime that allocates the device memory.
    pub fn cuda(&self) -> &'c Cublas {
        self.cuda
    }

    /// Copies a matrix of order n to device memory and allocates memory for its factors.
    ///
    /// # Errors
    /// The device has too little memory.
    pub fn prepare<T: Scalar>(&self, n: usize, a: &[T]) -> Result<Matrix<'_, T>, String> {
        Ok(Matrix { original: self.cuda.array(a)?, factors: self.factors(n, a)? })
    }

    /// Allocates device memory for a system with the matrix `a` of order n and the right-hand side `b`.
    ///
    /// # Errors
    /// The device has too little memory.
    pub fn prepare_system<T: Scalar>(&self, n: usize, a: &[T], b: &[T]) -> Result<System<'_, T>, String> {
        Ok(System { factors: self.factors(n, a)?, x: self.cuda.array(b)? })
    }

    fn factors<T: Scalar>(&self, n: usize, a: &[T]) -> Result<Factors<'_, T>, String> {
        let [order] = int32([n])?;
        let lu = self.cuda.array(a)?;
        let mut elements = 0;
        // SAFETY: the type `Size` is the signature in the C header of cuSOLVER. The function writes only `elements`, and `lu` has
        // n² elements.
        let status = unsafe {
            self.symbol::<T, Size<T>>("getrf_bufferSize")(self.handle, order, order, lu.memory().0, order, &raw mut elements)
        };
        answer("cuSOLVER's getrf_bufferSize", status)?;
        let elements = usize::try_from(elements).map_err(|_| format!("cuSOLVER's getrf needs {elements} elements"))?;
        let work = self.cuda.array(&vec![T::ZERO; elements.max(1)])?;
        Ok(Factors { n, lu, work, ipiv: self.cuda.array(&vec![0; n])?, info: self.cuda.array(&[0])? })
    }

    /// Copies the original matrix and factors the copy, A = P·L·U, `times` times in succession. The function waits until the last
    /// factorisation has ended.
    ///
    /// # Errors
    /// cuSOLVER refuses a factorisation, or the device fails.
    pub fn getrf<T: Scalar>(&self, matrix: &Matrix<'_, T>, times: usize) -> Result<(), String> {
        for _ in 0..times {
            self.copy(matrix)?;
            self.enqueue_getrf(&matrix.factors)?;
        }
        self.cuda.try_wait()
    }

    /// Copies the original matrix and waits until the copy is complete.
    ///
    /// # Errors
    /// The device fails.
    pub fn restore<T: Scalar>(&self, matrix: &Matrix<'_, T>) -> Result<(), String> {
        self.copy(matrix)?;
        self.cuda.try_wait()
    }

    /// Factors the copy that [`Cusolver::restore`] has made, and waits until the factorisation has ended.
    ///
    /// # Errors
    /// cuSOLVER refuses the factorisation, or the device fails.
    pub fn factor<T: Scalar>(&self, matrix: &Matrix<'_, T>) -> Result<(), String> {
        self.enqueue_getrf(&matrix.factors)?;
        self.cuda.try_wait()
    }

    /// Copies A and b to the device, factors A, solves A·x = b, and copies the factors, the pivots and x back. `result` holds A and
    /// then b before the call, and the factors and then x after it. Returns the pivots, counted from 0.
    ///
    /// # Errors
    /// A pivot is zero, cuSOLVER refuses the call, or the device fails.
    pub fn gesv<T: Scalar>(&self, system: &System<'_, T>, result: &mut [T]) -> Result<Vec<usize>, String> {
        let System { factors, x } = system;
        let n = factors.n;
        assert_eq!(result.len(), n * (n + 1), "a matrix of order {n} and a right-hand side");
        let [order] = int32([n])?;
        let (to_lu, to_x) = result.split_at_mut(n * n);
        self.cuda.write(to_lu, factors.lu.memory())?;
        self.cuda.write(to_x, x.memory())?;
        self.enqueue_getrf(factors)?;
        let (lu, b) = (factors.lu.memory().0, x.memory().0);
        let [ipiv, info] = [&factors.ipiv, &factors.info].map(|array| array.memory().0);
        // The solve overwrites `info`.
        let pivots = self.pivots(factors)?;
        // SAFETY: the type of the symbol is the signature in the C header of cuSOLVER. The zero means not transposed. `lu`, `ipiv` and
        // `b` have n², n and n elements, and the device runs the solve after the factorisation.
        let status = unsafe { self.symbol::<T, Getrs<T>>("getrs")(self.handle, 0, order, 1, lu, order, ipiv, b, order, info) };
        answer("cuSOLVER's getrs", status)?;
        self.cuda.download(x.memory(), to_x)?;
        self.cuda.download(factors.lu.memory(), to_lu)?;
        Ok(pivots)
    }

    /// Copies the factors of the last factorisation to `lu`. Returns its pivots, counted from 0.
    ///
    /// # Errors
    /// A pivot is zero, or the device fails.
    pub fn read<T: Scalar>(&self, matrix: &Matrix<'_, T>, lu: &mut [T]) -> Result<Vec<usize>, String> {
        self.cuda.download(matrix.factors.lu.memory(), lu)?;
        self.pivots(&matrix.factors)
    }

    fn copy<T: Scalar>(&self, matrix: &Matrix<'_, T>) -> Result<(), String> {
        let Factors { n, lu, .. } = &matrix.factors;
        self.cuda.duplicate(matrix.original.memory(), lu.memory(), n * n)
    }

    fn enqueue_getrf<T: Scalar>(&self, factors: &Factors<'_, T>) -> Result<(), String> {
        let Factors { n, lu, work, ipiv, info } = factors;
        let [order] = int32([*n])?;
        let [lu, work] = [lu, work].map(|array| array.memory().0);
        let [ipiv, info] = [ipiv, info].map(|array| array.memory().0);
        // SAFETY: the type of the symbol is the signature in the C header of cuSOLVER. `work` is as large as `getrf_bufferSize`
        // requires, and no other command uses the arrays of `factors` at the same time.
        let status = unsafe { self.symbol::<T, Getrf<T>>("getrf")(self.handle, order, order, lu, order, work, ipiv, info) };
        answer("cuSOLVER's getrf", status)
    }

    fn pivots<T: Scalar>(&self, factors: &Factors<'_, T>) -> Result<Vec<usize>, String> {
        let (mut ipiv, mut info) = (vec![0; factors.n], [1]);
        self.cuda.download(factors.ipiv.memory(), &mut ipiv)?;
        self.cuda.download(factors.info.memory(), &mut info)?;
        let from_zero = |pivot: i32| usize::try_from(i64::from(pivot) - 1).unwrap_or(usize::MAX);
        if info == [0] { Ok(ipiv.into_iter().map(from_zero).collect()) } else { Err(format!("info is {}", info[0])) }
    }
}
