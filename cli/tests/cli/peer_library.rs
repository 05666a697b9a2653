//! A BLAS library with wrong results, which the tests compile. A benchmark must report these results as wrong.
//!
//! By default no routine does anything. With `--cfg ends_well` the LAPACK routines return `info` = 0. With `--cfg spins` a product
//! is correct, unless a thread that an earlier product started is still running. With `--cfg solves` the routine `gesv` solves its
//! system. The further option `--cfg spoils` makes `gesv` return wrong factors. With `--cfg exits` a product ends the process.

use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

type Int = *const i32;
type Flag = *const c_char;

/// Time for which a thread of the library continues to run after a call.
const SPIN: Duration = Duration::from_millis(60);
static WORKS: AtomicBool = AtomicBool::new(false);

fn spin() {
    WORKS.store(true, Ordering::SeqCst);
    std::thread::spawn(|| {
        let start = Instant::now();
        while start.elapsed() < SPIN {
            std::hint::spin_loop();
        }
        WORKS.store(false, Ordering::SeqCst);
    });
}

unsafe fn end(info: *mut i32) {
    if cfg!(ends_well) {
        *info = 0;
    }
}

macro_rules! library {
    ($t:ty, $gemm:ident, $trsm:ident, $getrf:ident, $getrs:ident, $gesv:ident, $laswp:ident) => {
        #[no_mangle]
        unsafe extern "C" fn $gemm(
            _: Flag, _: Flag, m: Int, n: Int, k: Int, _: *const $t, a: *const $t, lda: Int, b: *const $t, ldb: Int, _: *const $t,
            c: *mut $t, ldc: Int, _: usize, _: usize,
        ) {
            if cfg!(exits) {
                std::process::exit(0);
            }
            if cfg!(spins) && !WORKS.load(Ordering::SeqCst) {
                let [m, n, k, lda, ldb, ldc] = [m, n, k, lda, ldb, ldc].map(|int| *int as usize);
                for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
                    *c.add(i + j * ldc) = (0..k).map(|p| *a.add(i + p * lda) * *b.add(p + j * ldb)).sum();
                }
                spin();
            }
        }

        #[no_mangle]
        extern "C" fn $trsm(
            _: Flag, _: Flag, _: Flag, _: Flag, _: Int, _: Int, _: *const $t, _: *const $t, _: Int, _: *mut $t, _: Int,
        ) {
        }

        #[no_mangle]
        unsafe extern "C" fn $getrf(_: Int, _: Int, _: *mut $t, _: Int, _: *mut i32, info: *mut i32) {
            end(info);
        }

        #[no_mangle]
        unsafe extern "C" fn $getrs(
            _: Flag, _: Int, _: Int, _: *const $t, _: Int, _: Int, _: *mut $t, _: Int, info: *mut i32, _: usize,
        ) {
            end(info);
        }

        #[no_mangle]
        extern "C" fn $laswp(_: Int, _: *mut $t, _: Int, _: Int, _: Int, _: *const i32, _: Int) {}

        #[no_mangle]
        unsafe extern "C" fn $gesv(
            n: Int, nrhs: Int, a: *mut $t, lda: Int, ipiv: *mut i32, b: *mut $t, ldb: Int, info: *mut i32,
        ) {
            end(info);
            let [n, nrhs, lda, ldb] = [n, nrhs, lda, ldb].map(|int| *int as usize);
            if cfg!(solves) {
                let (a, b) = (|i: usize, j: usize| a.add(i + j * lda), |i: usize, j: usize| b.add(i + j * ldb));
                for k in 0..n {
                    let p = (k..n).max_by(|&p, &q| (*a(p, k)).abs().total_cmp(&(*a(q, k)).abs())).unwrap();
                    *ipiv.add(k) = p as i32 + 1;
                    (0..n).for_each(|j| std::ptr::swap(a(k, j), a(p, j)));
                    (0..nrhs).for_each(|j| std::ptr::swap(b(k, j), b(p, j)));
                    for i in k + 1..n {
                        *a(i, k) /= *a(k, k);
                        (k + 1..n).for_each(|j| *a(i, j) -= *a(i, k) * *a(k, j));
                        (0..nrhs).for_each(|j| *b(i, j) -= *a(i, k) * *b(k, j));
                    }
                }
                for (i, j) in (0..n).rev().flat_map(|i| (0..nrhs).map(move |j| (i, j))) {
                    (i + 1..n).for_each(|p| *b(i, j) -= *a(i, p) * *b(p, j));
                    *b(i, j) /= *a(i, i);
                }
                if cfg!(spoils) {
                    *a(0, 0) += 1.0;
                }
            }
        }
    };
}

library!(f32, sgemm_, strsm_, sgetrf_, sgetrs_, sgesv_, slaswp_);
library!(f64, dgemm_, dtrsm_, dgetrf_, dgetrs_, dgesv_, dlaswp_);
