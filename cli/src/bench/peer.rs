//! Calls the routines of another BLAS or LAPACK library (the peer library), which is loaded at run time.
//!
//! Calls use the Fortran interface with 32-bit integers (LP64), which OpenBLAS, BLIS, MKL and the reference libraries share. The
//! lengths of the character arguments stand at the end of the argument list.

use std::error::Error;
use std::ffi::{CStr, c_char, c_int};
use std::path::Path;
#[cfg(unix)]
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use lapidary::{DType, Routine, Scalar};
use libloading::Library;

use super::problem::{Operands, UNSET, not_singular};
use crate::failure::{Failure, Result};
use crate::shape::Shape;

type Int = *const i32;
type Flag = *const c_char;
type GemmFn<T> =
    unsafe extern "C" fn(Flag, Flag, Int, Int, Int, *const T, *const T, Int, *const T, Int, *const T, *mut T, Int, usize, usize);
type TrsmFn<T> =
    unsafe extern "C" fn(Flag, Flag, Flag, Flag, Int, Int, *const T, *const T, Int, *mut T, Int, usize, usize, usize, usize);
type GetrfFn<T> = unsafe extern "C" fn(Int, Int, *mut T, Int, *mut i32, *mut i32);
type GetrsFn<T> = unsafe extern "C" fn(Flag, Int, Int, *const T, Int, *const i32, *mut T, Int, *mut i32, usize);
type LaswpFn<T> = unsafe extern "C" fn(Int, *mut T, Int, Int, Int, *const i32, Int);
type GesvFn<T> = unsafe extern "C" fn(Int, Int, *mut T, Int, *mut i32, *mut T, Int, *mut i32);

/// The routines that a peer library has for elements of type `T`. A routine that the library lacks is `None`.
pub struct Peer<T> {
    gemm: Option<GemmFn<T>>,
    trsm: Option<TrsmFn<T>>,
    getrf: Option<GetrfFn<T>>,
    getrs: Option<GetrsFn<T>>,
    gesv: Option<GesvFn<T>>,
    laswp: Option<LaswpFn<T>>,
    // The library must stay loaded as long as the function pointers above are used.
    dylib: Library,
}

/// The routine that is timed in turn with a call of Lapidary.
pub enum Rival<T> {
    /// The same routine of a peer library.
    Library(Peer<T>),
    /// Lapidary's `gesv`, beside `gesv_mixed`.
    Gesv,
}

impl<T> Rival<T> {
    /// Name of the rival in tables.
    pub fn name(&self) -> &'static str {
        match self {
            Rival::Library(_) => "peer",
            Rival::Gesv => "gesv",
        }
    }
}

/// Whether a function of the peer library is running.
static AT_WORK: AtomicBool = AtomicBool::new(false);

/// Calls a function of the peer library. If this function calls `exit`, the process prints a message and ends with status 1, since
/// there is no result.
pub fn guard_exit<R>(run: impl FnOnce() -> R) -> R {
    #[cfg(unix)]
    {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| {
            // SAFETY: the exit handler `report_early_exit` may run at any time, since it only reads an atomic flag, prints and ends
            // the process. If the registration fails, only the message and the exit status are lost.
            let _ = unsafe { libc::atexit(report_early_exit) };
        });
    }
    AT_WORK.store(true, Ordering::Relaxed);
    let result = run();
    AT_WORK.store(false, Ordering::Relaxed);
    result
}

#[cfg(unix)]
extern "C" fn report_early_exit() {
    if AT_WORK.load(Ordering::Relaxed) {
        eprintln!("lapidary: the peer library ended the process; there is no result");
        // SAFETY: `_exit` has no requirements. It ends the process at once, so that no further exit handler runs.
        unsafe { libc::_exit(1) };
    }
}

impl<T: Scalar> Peer<T> {
    /// Loads a shared library and looks up its routines.
    pub fn open(path: &Path) -> Result<Self> {
        // SAFETY: loading runs the initialisers of the library. The user named the library as a BLAS, and so vouches for its
        // initialisers.
        let library = guard_exit(|| unsafe { Library::new(path) });
        let library = library.map_err(|cause| {
            // The message of the loader states which file or symbol is missing.
            let why = cause.source().map_or_else(|| cause.to_string(), ToString::to_string);
            Failure::file(path, format!("cannot load: {why}"))
        })?;
        // SAFETY: the symbols have the standard names of BLAS and LAPACK, whose function types are declared above. The user vouches
        // that the library has 32-bit integers (LP64).
        unsafe {
            Ok(Peer {
                gemm: find(&library, T::DTYPE, Routine::Gemm),
                trsm: find(&library, T::DTYPE, Routine::Trsm),
                getrf: find(&library, T::DTYPE, Routine::Getrf),
                getrs: find(&library, T::DTYPE, Routine::Getrs),
                gesv: find(&library, T::DTYPE, Routine::Gesv),
                laswp: find(&library, T::DTYPE, Routine::Laswp),
                dylib: library,
            })
        }
    }

    /// The name of the kernels and the number of threads, if the library is an OpenBLAS. Kernels for another CPU, or a single
    /// thread, explain why a peer library is slow. `None` for all other libraries.
    pub fn describe(&self) -> Option<String> {
        // SAFETY: OpenBLAS declares both functions with these types, and no other library has functions with these names.
        let (core, threads) = unsafe {
            let core = self.dylib.get::<unsafe extern "C" fn() -> *const c_char>("openblas_get_corename").ok()?;
            let threads = self.dylib.get::<unsafe extern "C" fn() -> c_int>("openblas_get_num_threads").ok()?;
            (CStr::from_ptr(core()), threads())
        };
        Some(format!("OpenBLAS, {} kernels, {threads} threads", core.to_string_lossy()))
    }

    /// Computes C = op(A)·op(B) by the peer library.
    pub fn gemm(&self, shape: &Shape, work: &mut Operands<T>) -> Result<()> {
        let gemm = self.gemm.ok_or_else(|| missing::<T>(Routine::Gemm))?;
        let [m, n, k] = ints([shape.m, shape.n, shape.k])?;
        let [lda, ldb, ldc] = ints([work.a.rows(), work.b.rows(), work.c.rows()].map(|ld| ld.max(1)))?;
        let (op_a, op_b) = (flag(&shape.a.op), flag(&shape.op_b));
        let (a, b, c) = (work.a.data(), work.b.data(), work.c.data_mut());
        let (alpha, beta) = (T::ONE, T::ZERO);
        // SAFETY: A and B are borrowed for reading and C is borrowed exclusively for the call. The sizes and leading dimensions are
        // those of A, B and C.
        unsafe {
            gemm(&op_a, &op_b, &m, &n, &k, &alpha, a.as_ptr(), &lda, b.as_ptr(), &ldb, &beta, c.as_mut_ptr(), &ldc, 1, 1);
        }
        Ok(())
    }

    /// Computes B = op(A)⁻¹·B or B = B·op(A)⁻¹ by the peer library.
    pub fn trsm(&self, shape: &Shape, work: &mut Operands<T>) -> Result<()> {
        let trsm = self.trsm.ok_or_else(|| missing::<T>(Routine::Trsm))?;
        let [m, n, lda, ldb] = ints([shape.m, shape.n, work.a.rows().max(1), work.b.rows().max(1)])?;
        let [side, uplo] = [flag(&shape.a.side), flag(&shape.a.uplo)];
        let [op, diag] = [flag(&shape.a.op), flag(&shape.a.diag)];
        let (a, b, alpha) = (work.a.data().as_ptr(), work.b.data_mut().as_mut_ptr(), T::ONE);
        // SAFETY: A is borrowed for reading and B is borrowed exclusively for the call. The sizes and leading dimensions are those
        // of A and B.
        unsafe { trsm(&side, &uplo, &op, &diag, &m, &n, &alpha, a, &lda, b, &ldb, 1, 1, 1, 1) };
        Ok(())
    }

    /// Computes A = P·L·U by the peer library.
    pub fn getrf(&self, work: &mut Operands<T>) -> Result<()> {
        let getrf = self.getrf.ok_or_else(|| missing::<T>(Routine::Getrf))?;
        let [m, n, lda] = ints([work.a.rows(), work.a.cols(), work.a.rows().max(1)])?;
        // SAFETY: `work` is borrowed exclusively. The sizes and the leading dimension are those of A, and `ipiv` has min(m, n)
        // elements.
        unsafe { getrf(&m, &n, work.a.data_mut().as_mut_ptr(), &lda, work.ipiv.as_mut_ptr(), &mut work.info) };
        count_from(-1, work);
        finished(work.info)
    }

    /// Computes B = A⁻¹·B from the LU factors of A by the peer library.
    pub fn getrs(&self, work: &mut Operands<T>) -> Result<()> {
        let getrs = self.getrs.ok_or_else(|| missing::<T>(Routine::Getrs))?;
        let [n, nrhs, ld] = ints([work.b.rows(), work.b.cols(), work.b.rows().max(1)])?;
        count_from(1, work);
        let (lu, ipiv, b) = (work.a.data().as_ptr(), work.ipiv.as_ptr(), work.b.data_mut().as_mut_ptr());
        let op = flag(&'N');
        // SAFETY: `work` is borrowed exclusively. The sizes and leading dimensions are those of the factors and of B, and `ipiv`
        // contains n pivots.
        unsafe { getrs(&op, &n, &nrhs, lu, &ld, ipiv, b, &ld, &mut work.info, 1) };
        finished(work.info)
    }

    /// Computes B = A⁻¹·B by the peer library's `gesv`.
    pub fn gesv(&self, work: &mut Operands<T>) -> Result<()> {
        let gesv = self.gesv.ok_or_else(|| missing::<T>(Routine::Gesv))?;
        let [n, nrhs, ld] = ints([work.b.rows(), work.b.cols(), work.b.rows().max(1)])?;
        let (a, ipiv, b) = (work.a.data_mut().as_mut_ptr(), work.ipiv.as_mut_ptr(), work.b.data_mut().as_mut_ptr());
        // SAFETY: `work` is borrowed exclusively. The sizes and leading dimensions are those of A and B, and `ipiv` has n elements.
        unsafe { gesv(&n, &nrhs, a, &ld, ipiv, b, &ld, &mut work.info) };
        count_from(-1, work);
        finished(work.info)
    }

    /// Exchanges rows of A by the peer library: row i is exchanged with row `ipiv[i]`, for each i in order.
    pub fn laswp(&self, work: &mut Operands<T>) -> Result<()> {
        let laswp = self.laswp.ok_or_else(|| missing::<T>(Routine::Laswp))?;
        let [n, lda, last] = ints([work.a.cols(), work.a.rows().max(1), work.ipiv.len()])?;
        count_from(1, work);
        let (a, ipiv) = (work.a.data_mut().as_mut_ptr(), work.ipiv.as_ptr());
        // SAFETY: `work` is borrowed exclusively. The leading dimension is that of A, and `ipiv` contains `last` rows of A.
        unsafe { laswp(&n, a, &lda, &1, &last, ipiv, &1) };
        Ok(())
    }
}

/// The Fortran symbol of a routine for an element type, such as `dgemm_` or `sgemm_`.
fn symbol(dtype: DType, routine: Routine) -> String {
    format!("{}{}_", if dtype == DType::F32 { 's' } else { 'd' }, routine.name())
}

/// The function of the library that computes `routine` for an element type. `None` if the library lacks this function.
///
/// # Safety
/// `F` must be the type of the function.
unsafe fn find<F: Copy>(library: &Library, dtype: DType, routine: Routine) -> Option<F> {
    // SAFETY: the caller guarantees that `F` is the type of the function.
    unsafe { library.get::<F>(symbol(dtype, routine)) }.ok().map(|symbol| *symbol)
}

fn missing<T: Scalar>(routine: Routine) -> Failure {
    Failure::usage(format!("the peer library has no {}", symbol(T::DTYPE, routine)))
}

fn ints<const N: usize>(sizes: [usize; N]) -> Result<[i32; N]> {
    let mut ints = [0; N];
    for (int, size) in ints.iter_mut().zip(sizes) {
        *int = i32::try_from(size).map_err(|_| Failure::usage("the size exceeds the peer's 32-bit integers"))?;
    }
    Ok(ints)
}

/// Converts a flag to the character that BLAS routines take.
fn flag(flag: &impl ToString) -> c_char {
    flag.to_string().as_bytes()[0] as c_char
}

/// Adds `step` to all pivots. LAPACK counts pivots from 1, Lapidary from 0.
fn count_from(step: i32, work: &mut Operands<impl Scalar>) {
    work.ipiv.iter_mut().for_each(|pivot| *pivot += step);
}

/// Turns LAPACK's `info` into a result. If a routine did not set `info`, this function returns no error, since the check of the
/// result reports the failure.
fn finished(info: i32) -> Result<()> {
    if info == UNSET {
        return Ok(());
    }
    match usize::try_from(info) {
        Ok(info) => not_singular(info),
        Err(_) => Err(Failure::check(format!("the peer refuses argument {}", -info))),
    }
}
