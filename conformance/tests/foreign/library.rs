//! A BLAS and LAPACK of plain loops, which the tests compile as a shared library. The environment variable `SUFFIX` is the suffix
//! of the symbols in the Fortran interface, `C_SUFFIX` is the suffix of the symbols in cblas, and `PREFIX` is the prefix of all
//! symbols. The following flags of the compiler change the library:
//! - `--cfg long`: integers have 64 bits.
//! - `--cfg wrong_cblas`: products through cblas are wrong.
//! - `--cfg products`: the library has no routines except products.
//! - `--cfg empty`: the library has no routines.
//! - `--cfg nameless`: the library has OpenBLAS's function for its name, but the function returns null.
//! - `--cfg dotless`: the library has no dot product.
//! - `--cfg versioned`: the library has the function `ilaver_`, which returns the version of LAPACK.
//! - `--cfg fatal`: the environment variable `FATE` names routines, and for each routine how it ends the process. With `getrs=exit`
//!   the routine getrs calls `exit`. With `load=exit` the library calls `exit` while it is loaded.
#![cfg(not(empty))]

use std::ffi::{c_char, c_int};

#[cfg(long)]
type Int = i64;
#[cfg(not(long))]
type Int = i32;

/// A matrix in memory, given by its address and strides.
#[derive(Clone, Copy)]
struct Mat<T> {
    at: *mut T,
    row: isize,
    col: isize,
}

impl<T: Copy> Mat<T> {
    fn new(at: *const T, ld: Int, row_major: bool) -> Self {
        let ld = ld as isize;
        let (row, col) = if row_major { (ld, 1) } else { (1, ld) };
        Mat { at: at.cast_mut(), row, col }
    }
    fn t_if(self, trans: bool) -> Self {
        if trans { Mat { row: self.col, col: self.row, ..self } } else { self }
    }
    unsafe fn get(self, i: Int, j: Int) -> T {
        *self.at.offset(i as isize * self.row + j as isize * self.col)
    }
    unsafe fn set(self, i: Int, j: Int, x: T) {
        *self.at.offset(i as isize * self.row + j as isize * self.col) = x;
    }
    unsafe fn swap(self, i: Int, p: Int, n: Int) {
        for j in 0..n {
            let (x, y) = (self.get(i, j), self.get(p, j));
            self.set(i, j, y);
            self.set(p, j, x);
        }
    }
}

unsafe fn is(flag: *const c_char, letters: &[u8]) -> bool {
    letters.contains(&(*flag as u8))
}

/// Ends the process, or never returns, if the environment variable `FATE` requests this for `place`. For example,
/// `FATE=gemm=hang,dgetrs=abort` names two places: `gemm` in both precisions, and `getrs` in double precision.
#[cfg(fatal)]
fn failure_mode(place: &str) {
    let told = std::env::var("FATE").unwrap_or_default();
    let is_here = |there: &str| there == place || there == &place[1..];
    match told.split(',').filter_map(|told| told.split_once('=')).find(|(there, _)| is_here(there)) {
        Some((_, "exit")) => std::process::exit(0),
        Some((_, "stop")) => {
            eprintln!("STOP 3");
            std::process::exit(0)
        }
        Some((_, "abort")) => std::process::abort(),
        Some((_, "segfault")) => unsafe { std::ptr::null_mut::<u8>().write_volatile(1) },
        Some((_, "hang")) => loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        },
        _ => {}
    }
}
#[cfg(not(fatal))]
fn failure_mode(_: &str) {}

/// The function that the dynamic loader calls when it loads the library.
#[cfg(all(fatal, target_os = "linux"))]
#[used]
#[link_section = ".init_array"]
static ON_LOAD: extern "C" fn() = {
    extern "C" fn on_load() {
        extern "C" {
            fn _exit(status: c_int) -> !;
        }
        if std::env::var("FATE").is_ok_and(|told| told == "load=_exit") {
            unsafe { _exit(0) }
        }
        failure_mode("load");
    }
    on_load
};

/// The function by which OpenBLAS reports its name. In this library the function returns null.
#[cfg(nameless)]
#[no_mangle]
extern "C" fn openblas_get_config() -> *const c_char {
    std::ptr::null()
}

/// The function by which a library reports the version of LAPACK that it implements.
#[cfg(versioned)]
#[no_mangle]
unsafe extern "C" fn ilaver_(major: *mut Int, minor: *mut Int, patch: *mut Int) {
    (*major, *minor, *patch) = (3, 12, 0);
}

macro_rules! library {
    ($t:ty, $letter:literal) => {
        #[cfg_attr(not(dotless), export_name = concat!(env!("PREFIX"), $letter, "dot", env!("SUFFIX")))]
        unsafe extern "C" fn dot(n: *const Int, x: *const $t, _: *const Int, y: *const $t, _: *const Int) -> $t {
            failure_mode(concat!($letter, "dot"));
            (0..*n as isize).map(|i| *x.offset(i) * *y.offset(i)).sum()
        }

        #[cfg(not(dotless))]
        #[export_name = concat!(env!("PREFIX"), "cblas_", $letter, "dot", env!("C_SUFFIX"))]
        unsafe extern "C" fn cblas_dot(n: Int, x: *const $t, dx: Int, y: *const $t, dy: Int) -> $t {
            dot(&n, x, &dx, y, &dy)
        }

        unsafe fn product([m, n, k]: [Int; 3], alpha: $t, a: Mat<$t>, b: Mat<$t>, beta: $t, c: Mat<$t>) {
            failure_mode(concat!($letter, "gemm"));
            for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
                let sum: $t = if alpha == 0.0 { 0.0 } else { alpha * (0..k).map(|p| a.get(i, p) * b.get(p, j)).sum::<$t>() };
                c.set(i, j, sum + if beta == 0.0 { 0.0 } else { beta * c.get(i, j) });
            }
        }

        #[export_name = concat!(env!("PREFIX"), $letter, "gemm", env!("SUFFIX"))]
        unsafe extern "C" fn gemm(
            ta: *const c_char, tb: *const c_char, m: *const Int, n: *const Int, k: *const Int, alpha: *const $t,
            a: *const $t, lda: *const Int, b: *const $t, ldb: *const Int, beta: *const $t, c: *mut $t, ldc: *const Int,
            la: usize, lb: usize,
        ) {
            assert_eq!((la, lb), (1, 1), "flags are followed by their lengths");
            let a = Mat::new(a, *lda, false).t_if(is(ta, b"TC"));
            let b = Mat::new(b, *ldb, false).t_if(is(tb, b"TC"));
            product([*m, *n, *k], *alpha, a, b, *beta, Mat::new(c, *ldc, false));
        }

        #[export_name = concat!(env!("PREFIX"), "cblas_", $letter, "gemm", env!("C_SUFFIX"))]
        unsafe extern "C" fn cblas_gemm(
            order: c_int, ta: c_int, tb: c_int, m: Int, n: Int, k: Int, alpha: $t,
            a: *const $t, lda: Int, b: *const $t, ldb: Int, beta: $t, c: *mut $t, ldc: Int,
        ) {
            let a = Mat::new(a, lda, order == 101).t_if(ta != 111);
            let b = Mat::new(b, ldb, order == 101).t_if(tb != 111);
            let alpha = if cfg!(wrong_cblas) { 3.0 * alpha } else { alpha };
            product([m, n, k], alpha, a, b, beta, Mat::new(c, ldc, order == 101));
        }

        /// Computes A\u{207b}\u{b9}·B for a lower or upper triangular A.
        #[cfg(not(products))]
        unsafe fn solve([n, nrhs]: [Int; 2], a: Mat<$t>, lower: bool, unit: bool, b: Mat<$t>) {
            let order: Vec<Int> = if lower { (0..n).collect() } else { (0..n).rev().collect() };
            for j in 0..nrhs {
                for (done, &i) in order.iter().enumerate() {
                    let mut rest = b.get(i, j);
                    for &p in &order[..done] {
                        rest -= a.get(i, p) * b.get(p, j);
                    }
                    b.set(i, j, if unit { rest } else { rest / a.get(i, i) });
                }
            }
        }

        #[cfg(not(products))]
        unsafe fn triangle([m, n]: [Int; 2], [left, lower, trans, unit]: [bool; 4], alpha: $t, a: Mat<$t>, b: Mat<$t>) {
            for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
                b.set(i, j, if alpha == 0.0 { 0.0 } else { alpha * b.get(i, j) });
            }
            if alpha != 0.0 {
                let trans = trans == left;
                let size = if left { [m, n] } else { [n, m] };
                solve(size, a.t_if(trans), lower != trans, unit, b.t_if(!left));
            }
        }

        #[cfg(not(products))]
        #[export_name = concat!(env!("PREFIX"), $letter, "trsm", env!("SUFFIX"))]
        unsafe extern "C" fn trsm(
            side: *const c_char, uplo: *const c_char, ta: *const c_char, diag: *const c_char, m: *const Int, n: *const Int,
            alpha: *const $t, a: *const $t, lda: *const Int, b: *mut $t, ldb: *const Int,
        ) {
            let flags = [is(side, b"L"), is(uplo, b"L"), is(ta, b"TC"), is(diag, b"U")];
            triangle([*m, *n], flags, *alpha, Mat::new(a, *lda, false), Mat::new(b, *ldb, false));
        }

        #[cfg(not(products))]
        #[export_name = concat!(env!("PREFIX"), "cblas_", $letter, "trsm", env!("C_SUFFIX"))]
        unsafe extern "C" fn cblas_trsm(
            order: c_int, side: c_int, uplo: c_int, ta: c_int, diag: c_int, m: Int, n: Int,
            alpha: $t, a: *const $t, lda: Int, b: *mut $t, ldb: Int,
        ) {
            let flags = [side == 141, uplo == 122, ta != 111, diag == 132];
            triangle([m, n], flags, alpha, Mat::new(a, lda, order == 101), Mat::new(b, ldb, order == 101));
        }

        #[cfg(not(products))]
        #[export_name = concat!(env!("PREFIX"), $letter, "getrf", env!("SUFFIX"))]
        unsafe extern "C" fn getrf(m: *const Int, n: *const Int, a: *mut $t, lda: *const Int, ipiv: *mut Int, info: *mut Int) {
            let (m, n, a) = (*m, *n, Mat::new(a, *lda, false));
            *info = 0;
            for j in 0..m.min(n) {
                let mut p = j;
                for i in j + 1..m {
                    if a.get(i, j).abs() > a.get(p, j).abs() {
                        p = i;
                    }
                }
                *ipiv.offset(j as isize) = p + 1;
                a.swap(j, p, n);
                let pivot = a.get(j, j);
                if pivot == 0.0 {
                    *info = if *info == 0 { j + 1 } else { *info };
                    continue;
                }
                for i in j + 1..m {
                    a.set(i, j, a.get(i, j) / pivot);
                    for q in j + 1..n {
                        a.set(i, q, a.get(i, q) - a.get(i, j) * a.get(j, q));
                    }
                }
            }
        }

        #[cfg(not(products))]
        #[export_name = concat!(env!("PREFIX"), $letter, "laswp", env!("SUFFIX"))]
        unsafe extern "C" fn laswp(
            n: *const Int, a: *mut $t, lda: *const Int, first: *const Int, last: *const Int, ipiv: *const Int, step: *const Int,
        ) {
            failure_mode(concat!($letter, "laswp"));
            let rows: Vec<Int> = if *step > 0 { (*first..=*last).collect() } else { (*first..=*last).rev().collect() };
            for i in rows {
                Mat::new(a, *lda, false).swap(i - 1, *ipiv.offset(i as isize - 1) - 1, *n);
            }
        }

        #[cfg(not(products))]
        #[export_name = concat!(env!("PREFIX"), $letter, "getrs", env!("SUFFIX"))]
        unsafe extern "C" fn getrs(
            ta: *const c_char, n: *const Int, nrhs: *const Int, a: *const $t, lda: *const Int, ipiv: *const Int, b: *mut $t,
            ldb: *const Int, info: *mut Int, la: usize,
        ) {
            failure_mode(concat!($letter, "getrs"));
            assert_eq!(la, 1, "flags are followed by their lengths");
            let (lu, x, size) = (Mat::new(a, *lda, false), Mat::new(b, *ldb, false), [*n, *nrhs]);
            let (one, forward, back) = (1, 1, -1);
            *info = 0;
            if is(ta, b"TC") {
                solve(size, lu.t_if(true), true, false, x);
                solve(size, lu.t_if(true), false, true, x);
                laswp(nrhs, b, ldb, &one, n, ipiv, &back);
            } else {
                laswp(nrhs, b, ldb, &one, n, ipiv, &forward);
                solve(size, lu, true, true, x);
                solve(size, lu, false, false, x);
            }
        }
    };
}

mod single {
    use super::*;
    library!(f32, "s");
}
mod double {
    use super::*;
    library!(f64, "d");
}
