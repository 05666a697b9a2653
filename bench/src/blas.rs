//! A library of BLAS and LAPACK that the benchmark loads at run time. The benchmark calls this library through the Fortran
//! interface with 32-bit integers.

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;

use lapidary::{DType, Scalar};
use libloading::Library;

type Int = *const i32;
type Flag = *const c_char;
type GemmFn<T> = unsafe extern "C" fn(Flag, Flag, Int, Int, Int, *const T, *const T, Int, *const T, Int, *const T, *mut T, Int);
type TrsmFn<T> = unsafe extern "C" fn(Flag, Flag, Flag, Flag, Int, Int, *const T, *const T, Int, *mut T, Int);
type GetrfFn<T> = unsafe extern "C" fn(Int, Int, *mut T, Int, *mut i32, *mut i32);

const N: c_char = b'N' as c_char;
const L: c_char = b'L' as c_char;

/// A loaded library of BLAS and LAPACK.
pub struct Blas {
    dylib: Library,
}

/// Sets environment variables that the peer libraries read, unless the user has set them. With these variables, OpenMP threads
/// spin only briefly after a call, MKL uses GNU's OpenMP, and OpenBLAS uses kernels for this processor.
///
/// An OpenBLAS that does not know the processor uses kernels that are five times slower, so that the comparison would be unfair.
pub fn prepare_environment() {
    let core = kernels().map(|core| ("OPENBLAS_CORETYPE", core));
    for (name, value) in [("KMP_BLOCKTIME", "1"), ("MKL_THREADING_LAYER", "GNU")].into_iter().chain(core) {
        if std::env::var_os(name).is_none() {
            // SAFETY: `main` calls this function before anything else, so no other thread reads the environment.
            unsafe { std::env::set_var(name, value) };
        }
    }
}

/// The name that OpenBLAS gives to the fastest kernels that this processor can run.
fn kernels() -> Option<&'static str> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512dq") {
        return Some("SkylakeX");
    } else if std::arch::is_x86_feature_detected!("avx2") {
        return Some("Haswell");
    }
    None
}

fn ints<const K: usize>(sizes: [usize; K]) -> [i32; K] {
    sizes.map(|size| i32::try_from(size).expect("sizes of a benchmark fit"))
}

impl Blas {
    /// Loads a BLAS from the shared library at `path`.
    pub fn open(path: &Path) -> Result<Self, libloading::Error> {
        // SAFETY: the user names the library as a BLAS, and so vouches for its initialisers.
        unsafe { Library::new(path) }.map(|dylib| Blas { dylib })
    }

    /// The function of the library whose name consists of the letter of the element type `T` and of `name`.
    ///
    /// # Safety
    /// `F` must be the type of the function.
    unsafe fn find<T: Scalar, F: Copy>(&self, name: &str) -> F {
        let letter = if T::DTYPE == DType::F32 { 's' } else { 'd' };
        // SAFETY: the caller guarantees that `F` is the type of the function.
        let symbol = unsafe { self.dylib.get::<F>(format!("{letter}{name}_")) };
        *symbol.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Computes `C ← A·B`, where all three matrices are of order `n`.
    pub fn gemm<T: Scalar>(&self, n: usize, a: &[T], b: &[T], c: &mut [T]) {
        assert!([a.len(), b.len(), c.len()].iter().all(|&len| len >= n * n));
        let ([i], one, zero) = (ints([n]), T::ONE, T::ZERO);
        // SAFETY: `GemmFn` is the signature of the standard function `gemm`. The assertion above shows that each matrix has n²
        // elements. A and B are borrowed for reading and C is borrowed exclusively.
        unsafe {
            let gemm: GemmFn<T> = self.find::<T, _>("gemm");
            gemm(&N, &N, &i, &i, &i, &one, a.as_ptr(), &i, b.as_ptr(), &i, &zero, c.as_mut_ptr(), &i);
        }
    }

    /// Computes `B ← L⁻¹·B`, where `L` is the lower triangle of A and A is of order `n`.
    pub fn trsm<T: Scalar>(&self, n: usize, nrhs: usize, a: &[T], b: &mut [T]) {
        assert!(a.len() >= n * n && b.len() >= n * nrhs);
        let ([i, j], one) = (ints([n, nrhs]), T::ONE);
        // SAFETY: `TrsmFn` is the signature of the standard function `trsm`. The assertion above shows that A has n² and B has
        // n·nrhs elements. A is borrowed for reading and B is borrowed exclusively.
        unsafe {
            let trsm: TrsmFn<T> = self.find::<T, _>("trsm");
            trsm(&L, &L, &N, &N, &i, &j, &one, a.as_ptr(), &i, b.as_mut_ptr(), &i);
        }
    }

    /// Factors `A = P·L·U`, where A is of order `n`.
    pub fn getrf<T: Scalar>(&self, n: usize, a: &mut [T], ipiv: &mut [i32]) {
        assert!(a.len() >= n * n && ipiv.len() >= n);
        let ([i], mut info) = (ints([n]), 0);
        // SAFETY: `GetrfFn` is the signature of the standard function `getrf`. The assertion above shows that A has n² and `ipiv`
        // has n elements. A and `ipiv` are borrowed exclusively.
        unsafe {
            let getrf: GetrfFn<T> = self.find::<T, _>("getrf");
            getrf(&i, &i, a.as_mut_ptr(), &i, ipiv.as_mut_ptr(), &mut info);
        }
        assert_eq!(info, 0, "a random matrix is regular");
    }

    /// The version text that the library reports, or `unknown` if it reports none.
    pub fn version(&self) -> String {
        self.openblas_version().or_else(|| self.mkl_version()).unwrap_or_else(|| "unknown".into())
    }

    fn openblas_version(&self) -> Option<String> {
        // SAFETY: OpenBLAS declares the function with this type. The function returns a string that stays valid as long as the
        // library is loaded.
        unsafe {
            let config = self.dylib.get::<unsafe extern "C" fn() -> *const c_char>("openblas_get_config").ok()?;
            Some(CStr::from_ptr(config()).to_string_lossy().into_owned())
        }
    }

    fn mkl_version(&self) -> Option<String> {
        let mut text = [0_u8; 256];
        // SAFETY: MKL declares the function with this type. The function writes at most 255 bytes into `text`, which has 256 bytes
        // and belongs to this method.
        unsafe {
            let get = self.dylib.get::<unsafe extern "C" fn(*mut c_char, c_int)>("MKL_Get_Version_String").ok()?;
            get(text.as_mut_ptr().cast(), 255);
        }
        Some(CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy().trim().to_owned())
    }
}
