//! Compares `fast::gemm` with the matrix products of other crates, which could replace it, and of a BLAS library. The environment
//! variable `LAPIDARY_BLAS=/path/to/library.so` names the BLAS library, which should run on one thread. The benchmark prints the
//! median speed of each candidate in Gflop/s. Measurements of the candidates alternate.

use std::hint::black_box;
use std::time::Instant;

use lapidary::Op;
use lapidary_backend_cpu::{Team, fast, tile::Tile};

/// One product C ← C − op(A)·op(B) of column-major matrices without gaps.
#[derive(Clone, Copy)]
struct Case<T> {
    ops: [Op; 2],
    size: [usize; 3],
    a: *const T,
    b: *const T,
    c: *mut T,
}

impl<T> Case<T> {
    /// Leading dimensions of A and B.
    fn ld(&self) -> [usize; 2] {
        let [m, n, k] = self.size;
        [self.ops[0].shape((m, k)).0, self.ops[1].shape((k, n)).0]
    }

    /// Row stride and column stride of op(A) and of op(B).
    fn strides(&self) -> [[isize; 2]; 2] {
        let turn = |op: Op, ld: usize| if op.is_trans() { [ld as isize, 1] } else { [1, ld as isize] };
        [turn(self.ops[0], self.ld()[0]), turn(self.ops[1], self.ld()[1])]
    }
}

fn ours<T: fast::Lanes>(case: Case<T>) {
    let [m, n, k] = case.size;
    let [lda, ldb] = case.ld();
    let [(ra, ca), (rb, cb)] = [case.ops[0].shape((m, k)), case.ops[1].shape((k, n))];
    // SAFETY: the pointers in `case` point to matrices of the shapes that are passed, which only this call accesses.
    unsafe {
        let (a, b) = (Tile::new(case.a.cast_mut(), ra, ca, lda), Tile::new(case.b.cast_mut(), rb, cb, ldb));
        fast::gemm(&Team::alone(), case.ops[0], case.ops[1], -T::ONE, a, b, T::ONE, Tile::new(case.c, m, n, m));
    }
}

fn gemm_crate<T: fast::Lanes>(case: Case<T>) {
    let ([m, n, k], [[ars, acs], [brs, bcs]]) = (case.size, case.strides());
    let serial = gemm::Parallelism::None;
    // SAFETY: the pointers in `case` point to matrices of the shapes that are passed, which only this call accesses.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            case.c,
            m as isize,
            1,
            true,
            case.a,
            acs,
            ars,
            case.b,
            bcs,
            brs,
            T::ONE,
            -T::ONE,
            false,
            false,
            false,
            serial,
        );
    }
}

macro_rules! per_type {
    ($matrixmultiply:ident, $private:ident, $blas:ident, $t:ident, $mm:ident, $dtype:ident, $symbol:literal) => {
        fn $matrixmultiply(case: Case<$t>) {
            let ([m, n, k], [[ars, acs], [brs, bcs]]) = (case.size, case.strides());
            // SAFETY: the pointers in `case` point to matrices of the shapes that are passed, which only this call accesses.
            unsafe {
                matrixmultiply::$mm(m, k, n, -1.0, case.a, ars, acs, case.b, brs, bcs, 1.0, case.c, 1, m as isize);
            }
        }

        #[cfg(target_arch = "x86_64")]
        fn $private(case: Case<$t>) {
            use private_gemm_x86::{Accum, DType, DstKind, IType, InstrSet, gemm};
            let ([m, n, k], [[ars, acs], [brs, bcs]]) = (case.size, case.strides());
            let set = if is_x86_feature_detected!("avx512f") { InstrSet::Avx512 } else { InstrSet::Avx256 };
            let (null, alpha): (_, $t) = (std::ptr::null(), -1.0);
            // SAFETY: the pointers in `case` point to matrices of the shapes that are passed, which only this call accesses; the
            // index lists are null.
            unsafe {
                gemm(
                    DType::$dtype,
                    IType::U64,
                    set,
                    m,
                    n,
                    k,
                    case.c.cast(),
                    1,
                    m as isize,
                    null,
                    null,
                    DstKind::Full,
                    Accum::Add,
                    case.a.cast(),
                    ars,
                    acs,
                    false,
                    null,
                    0,
                    case.b.cast(),
                    brs,
                    bcs,
                    false,
                    (&raw const alpha).cast(),
                    1,
                );
            }
        }

        #[cfg(unix)]
        fn $blas() -> Option<impl FnMut(Case<$t>)> {
            type Gemm = unsafe extern "C" fn(
                *const u8,
                *const u8,
                *const i32,
                *const i32,
                *const i32,
                *const $t,
                *const $t,
                *const i32,
                *const $t,
                *const i32,
                *const $t,
                *mut $t,
                *const i32,
            );
            let address = blas_symbol($symbol)?;
            // SAFETY: the function `$symbol` of a BLAS library has the interface `Gemm`.
            let gemm = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Gemm>(address) };
            Some(move |case: Case<$t>| {
                let [m, n, k] = case.size.map(|x| x as i32);
                let [lda, ldb] = case.ld().map(|x| x as i32);
                let [ta, tb] = case.ops.map(|op| if op.is_trans() { b'T' } else { b'N' });
                // SAFETY: the pointers in `case` point to matrices of the shapes that are passed, which only this call accesses.
                unsafe { gemm(&ta, &tb, &m, &n, &k, &-1.0, case.a, &lda, case.b, &ldb, &1.0, case.c, &m) }
            })
        }
    };
}

per_type!(matrixmultiply_f32, private_f32, blas_f32, f32, sgemm, F32, c"sgemm_");
per_type!(matrixmultiply_f64, private_f64, blas_f64, f64, dgemm, F64, c"dgemm_");

#[cfg(unix)]
fn blas_symbol(name: &std::ffi::CStr) -> Option<*mut std::ffi::c_void> {
    use std::ffi::{CString, c_char, c_int, c_void};
    unsafe extern "C" {
        fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    const RTLD_NOW: c_int = 2;
    let path = CString::new(std::env::var("LAPIDARY_BLAS").ok()?).ok()?;
    // SAFETY: `dlopen` and `dlsym` receive strings that end in zero; the library handle that `dlsym` receives is not null.
    unsafe {
        let library = dlopen(path.as_ptr(), RTLD_NOW);
        assert!(!library.is_null(), "LAPIDARY_BLAS cannot be loaded");
        Some(dlsym(library, name.as_ptr())).filter(|symbol| !symbol.is_null())
    }
}

type Candidate<'a, T> = (&'static str, Box<dyn FnMut(Case<T>) + 'a>);

/// The median time of one call of each candidate, in seconds.
fn race<T: Copy>(case: Case<T>, flops: f64, candidates: &mut [Candidate<'_, T>]) -> Vec<f64> {
    let calls = ((2e7 / flops) as usize).clamp(1, 20_000);
    let mut seconds = vec![Vec::new(); candidates.len()];
    // the first round warms up the caches and is not measured
    for round in 0..12 {
        for ((_, run), seconds) in candidates.iter_mut().zip(&mut seconds) {
            let start = Instant::now();
            (0..calls).for_each(|_| run(black_box(case)));
            if round > 0 {
                seconds.push(start.elapsed().as_secs_f64() / calls as f64);
            }
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    seconds.into_iter().map(median).collect()
}

fn row<T: fast::Lanes>(name: &str, ops: [Op; 2], size: [usize; 3], candidates: &mut [Candidate<'_, T>]) {
    let [m, n, k] = size;
    let fill = |count: usize| (0..count).map(|i| T::from_f64((i * 7 % 13) as f64 / 13.0 - 0.5)).collect::<Vec<_>>();
    let (a, b, mut c) = (fill(m * k), fill(k * n), fill(m * n));
    let case = Case { ops, size, a: a.as_ptr(), b: b.as_ptr(), c: c.as_mut_ptr() };
    let flops = 2.0 * (m * n * k) as f64;
    let seconds = race(case, flops, candidates);
    print!("{name} {}{} {m:5} {n:5} {k:5} ", ops[0], ops[1]);
    for ((name, _), seconds) in candidates.iter().zip(seconds) {
        print!(" {name} {:6.1}", flops / seconds * 1e-9);
    }
    println!();
}

fn table<T: fast::Lanes>(name: &str, candidates: &mut [Candidate<'_, T>]) {
    use Op::{NoTrans as N, Trans as T};
    for n in [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048] {
        row(name, [N, N], [n; 3], candidates);
    }
    for ops in [[T, N], [N, T], [T, T]] {
        row(name, ops, [64; 3], candidates);
        row(name, ops, [512; 3], candidates);
    }
    for (n, k) in [(256, 128), (128, 64), (64, 32), (32, 32), (4000, 128)] {
        row(name, [N, N], [4000, n, k], candidates);
    }
}

macro_rules! candidates {
    ($matrixmultiply:ident, $private:ident, $blas:ident) => {{
        let mut all: Vec<Candidate<'_, _>> =
            vec![("lapidary", Box::new(ours)), ("gemm", Box::new(gemm_crate)), ("matrixmultiply", Box::new($matrixmultiply))];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            all.push(("private-gemm", Box::new($private)));
        }
        #[cfg(unix)]
        if let Some(blas) = $blas() {
            all.push(("blas", Box::new(blas)));
        }
        all
    }};
}

fn main() {
    table::<f64>("f64", &mut candidates!(matrixmultiply_f64, private_f64, blas_f64));
    table::<f32>("f32", &mut candidates!(matrixmultiply_f32, private_f32, blas_f32));
}
