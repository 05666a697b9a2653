//! Benchmark groups `gemm`, `getrf`, `trsm` and `small`, which time routines of Lapidary and of other libraries on the processor.

use std::error::Error;

use faer::traits::ComplexField;
use lapidary::{DType, Gemm, Getrf, Info, Layout, Machine, MatMut, MatRef, Op, Scalar, Settings as Limits, Trsm, flops};
use lapidary_backend_cpu::Team;
use lapidary_backend_cpu::fast::{self, Lanes};
use lapidary_backend_cpu::tile::Tile;
use rayon::prelude::*;

use crate::measure::{Side, in_turn, larger, timed, timed_each};
use crate::peer::{Peer, Peers};
use crate::processor;
use crate::report::{Report, Unit};
use crate::settings::{GROUPS, Settings};

/// Smallest number of elements for which one more thread takes part in a pass over arrays. After a pass, idle threads poll for work for
/// some microseconds, which would disturb the timing of a short call.
pub const MIN_LEN: usize = 1 << 18;

/// Draws uniform random numbers in [-0.5, 0.5). Equal seeds give equal numbers, whatever the number of threads.
pub fn random<T: Scalar>(len: usize, seed: u64) -> Vec<T> {
    let (mut numbers, mut rng) = (filled(len, T::ZERO), fastrand::Rng::with_seed(seed));
    let parts: Vec<_> = numbers.chunks_mut(MIN_LEN).map(|part| (part, rng.fork())).collect();
    parts.into_par_iter().for_each(|(part, mut rng)| part.fill_with(|| T::from_f64(rng.f64() - 0.5)));
    numbers
}

/// Creates an array whose elements all equal `value`. All threads write to the new memory.
pub fn filled<T: Scalar>(len: usize, value: T) -> Vec<T> {
    rayon::iter::repeat_n(value, len).with_min_len(MIN_LEN).collect()
}

/// Copies the elements of `from`, which has as many elements as `to`.
pub fn copy<T: Scalar>(to: &mut [T], from: &[T]) {
    assert_eq!(to.len(), from.len());
    to.par_iter_mut().zip(from).with_min_len(MIN_LEN).for_each(|(to, from)| *to = *from);
}

fn square<T: Scalar>(data: &[T], n: usize) -> MatRef<'_, T> {
    MatRef::col_major(data, n, n).expect("n² elements")
}

fn square_mut<T: Scalar>(data: &mut [T], n: usize) -> MatMut<'_, T> {
    MatMut::col_major(data, n, n).expect("n² elements")
}

/// The name of a routine with the letter of its element type in front, such as `dgemm`.
pub fn name<T: Scalar>(routine: &str) -> String {
    format!("{}{routine}", if T::DTYPE == DType::F64 { 'd' } else { 's' })
}

/// Largest difference between the results of two libraries that rounding errors explain, in units of `n·u` and of the largest
/// element.
pub const ROUNDING: f64 = 10.0;
/// The value of [`ROUNDING`] for factorisations, in which the condition numbers of leading blocks magnify rounding errors.
pub const MAGNIFIED: f64 = 1e6;

/// Fills the array for a result with NaN before a call, so that the comparison of results detects a call that writes nothing.
pub fn poison<T: Scalar>(result: &mut [T]) {
    result.par_iter_mut().with_min_len(MIN_LEN).for_each(|element| *element = T::from_f64(f64::NAN));
}

/// Panics unless all libraries computed the same result up to rounding. A time is reported only if the result is right.
pub fn assert_alike<T: Scalar>(what: &str, n: usize, slack: f64, results: &[Vec<T>]) {
    for theirs in &results[1..] {
        compare(n, slack, &results[0], theirs).unwrap_or_else(|error| panic!("{what} n={n}: {error}"));
    }
}

/// Compares the results of two libraries, element by element. The accepted difference is `slack`·`n`·u of the largest element.
///
/// # Errors
/// The results differ by more, or our result is not finite.
pub fn compare<T: Scalar>(n: usize, slack: f64, ours: &[T], theirs: &[T]) -> Result<(), String> {
    let largest = ours.par_iter().with_min_len(MIN_LEN).map(|x| x.to_f64().abs()).reduce(|| 0.0, larger);
    if !largest.is_finite() {
        return Err(format!("ours holds {largest}"));
    }
    let apart = ours.par_iter().zip(theirs).with_min_len(MIN_LEN).map(|(x, y)| (*x - *y).to_f64().abs()).reduce(|| 0.0, larger);
    if apart <= slack * n as f64 * T::UNIT_ROUNDOFF * largest { Ok(()) } else { Err(format!("{apart:e} apart, of {largest:e}")) }
}

/// Runs one benchmark group on the processor, with Lapidary and all peer libraries that are found.
pub fn run(group: &str, settings: &Settings, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let (machine, peers) = (&processor::open(&Limits::from_env()?)?, &Peers::open(settings)?);
    report.add_participants(machine.devices(), peers.list.iter().map(|peer| (peer.name(), peer.version())));
    match group {
        "gemm" => gemm(settings, machine, peers, report),
        "getrf" => {
            for n in settings.sizes(&[1000, 4000, 8000]) {
                getrf::<f64>(n, settings, machine, peers, report);
                getrf::<f32>(n, settings, machine, peers, report);
            }
            getrf_by_rows(settings, machine, report);
        }
        "trsm" => trsm(settings, machine, peers, report),
        "small" => small(settings, machine, peers, report),
        other => return Err(format!("there is no group `{other}`: {}", GROUPS.join(", ")).into()),
    }
    Ok(())
}

/// Times square products in both precisions.
fn gemm(settings: &Settings, machine: &Machine, peers: &Peers, report: &mut Report) {
    for n in settings.sizes(&[512, 1024, 2048, 4096]) {
        gemm_of::<f64>(n, settings, machine, peers, report);
        gemm_of::<f32>(n, settings, machine, peers, report);
    }
}

/// Computes `C ← A·B` by Lapidary, where all three matrices are of order `n`.
pub fn our_gemm<T: Scalar>(machine: &Machine, n: usize, a: &[T], b: &[T], c: &mut [T]) {
    machine.gemm(Gemm::new(square(a, n), square(b, n), square_mut(c, n))).expect("the product works");
}

fn gemm_of<T: Scalar + ComplexField>(n: usize, settings: &Settings, machine: &Machine, peers: &Peers, report: &mut Report) {
    let (a, b) = (random::<T>(n * n, 1), random::<T>(n * n, 2));
    let mut results = vec![vec![T::ZERO; n * n]; peers.list.len() + 1];
    let (ours, theirs) = results.split_first_mut().expect("ours is there");
    let mut sides = vec![Side::new("ours", || {
        poison(ours);
        timed(|| our_gemm(machine, n, &a, &b, ours))
    })];
    for (peer, c) in peers.list.iter().zip(theirs) {
        let (a, b) = (&a, &b);
        sides.push(Side::new(peer.name(), move || {
            poison(c);
            timed(|| peer.gemm(n, a, b, c))
        }));
    }
    let (times, name) = (in_turn(settings, sides), name::<T>("gemm"));
    assert_alike(&name, n, ROUNDING, &results);
    report.add(&name, &format!("n={n}"), Unit::Gflops(flops::gemm(n, n, n)), &times);
}

/// Times LU factorisations with pivoting.
fn getrf<T: Scalar + ComplexField>(n: usize, settings: &Settings, machine: &Machine, peers: &Peers, report: &mut Report) {
    let a = random::<T>(n * n, 3);
    let mut results = vec![vec![T::ZERO; n * n]; peers.list.len() + 1];
    let (ours, theirs) = results.split_first_mut().expect("ours is there");
    let mut ipiv = vec![0; n];
    let mut sides = vec![Side::new("ours", || {
        copy(ours, &a);
        timed(|| {
            assert_eq!(
                machine.getrf_into(Getrf::new(square_mut(ours, n), &mut ipiv)).expect("the factorisation works"),
                Info::default()
            );
        })
    })];
    for (peer, lu) in peers.list.iter().zip(theirs) {
        let (a, mut ipiv) = (&a, vec![0; n]);
        sides.push(Side::new(peer.name(), move || {
            copy(lu, a);
            timed(|| peer.getrf(n, lu, &mut ipiv))
        }));
    }
    let (times, name) = (in_turn(settings, sides), name::<T>("getrf"));
    assert_alike(&name, n, MAGNIFIED, &results);
    report.add(&name, &format!("n={n}"), Unit::Gflops(flops::getrf(n, n)), &times);
}

/// Times LU factorisations of a row-major matrix and of a column-major matrix in turn.
fn getrf_by_rows(settings: &Settings, machine: &Machine, report: &mut Report) {
    for n in settings.sizes(&[1000, 4000]) {
        let a = random::<f64>(n * n, 3);
        let sides = [("ours", Layout::RowMajor), ("by columns", Layout::ColMajor)].map(|(name, layout)| {
            let (a, mut lu, mut ipiv) = (&a, vec![0.0; n * n], vec![0; n]);
            Side::new(name, move || {
                copy(&mut lu, a);
                let view = MatMut::new(&mut lu, n, n, n, layout).expect("n² elements");
                timed(|| {
                    assert_eq!(machine.getrf_into(Getrf::new(view, &mut ipiv)).expect("the factorisation works"), Info::default());
                })
            })
        });
        let times = in_turn(settings, sides.into());
        report.add("dgetrf", &format!("n={n} by rows"), Unit::Gflops(flops::getrf(n, n)), &times);
    }
}

/// Times triangular solves with few and with many right-hand sides.
fn trsm(settings: &Settings, machine: &Machine, peers: &Peers, report: &mut Report) {
    for n in settings.sizes(&[4000]) {
        for nrhs in [128.min(n), n] {
            trsm_of::<f64>(n, nrhs, settings, machine, peers, report);
            trsm_of::<f32>(n, nrhs, settings, machine, peers, report);
        }
    }
}

/// Creates a triangular matrix whose solutions neither grow nor vanish: the diagonal elements are 2, and all other elements are at
/// most 1/(2n).
pub fn triangle<T: Scalar>(n: usize) -> Vec<T> {
    let mut a = random::<T>(n * n, 4);
    a.par_iter_mut().with_min_len(MIN_LEN).for_each(|x| *x = T::from_f64(x.to_f64() / n as f64));
    a.iter_mut().step_by(n + 1).for_each(|x| *x = T::from_f64(2.0));
    a
}

fn trsm_of<T: Scalar + ComplexField>(
    n: usize,
    nrhs: usize,
    settings: &Settings,
    machine: &Machine,
    peers: &Peers,
    report: &mut Report,
) {
    let (a, b) = (triangle::<T>(n), random::<T>(n * nrhs, 5));
    let mut results = vec![vec![T::ZERO; n * nrhs]; peers.list.len() + 1];
    let (ours, theirs) = results.split_first_mut().expect("ours is there");
    let mut sides = vec![Side::new("ours", || {
        copy(ours, &b);
        let x = MatMut::col_major(ours, n, nrhs).expect("n·nrhs elements");
        timed(|| machine.trsm(Trsm::new(square(&a, n), x)).expect("the solve works"))
    })];
    for (peer, x) in peers.list.iter().zip(theirs) {
        let (a, b) = (&a, &b);
        sides.push(Side::new(peer.name(), move || {
            copy(x, b);
            timed(|| peer.trsm(n, nrhs, a, x))
        }));
    }
    let (times, name) = (in_turn(settings, sides), name::<T>("trsm"));
    assert_alike(&name, n, ROUNDING, &results);
    report.add(&name, &format!("n={n} nrhs={nrhs}"), Unit::Gflops(flops::trsm(n, nrhs)), &times);
}

/// Times small products, in which the time before the kernel starts is noticeable, and times calls with an empty operand.
fn small(settings: &Settings, machine: &Machine, peers: &Peers, report: &mut Report) {
    for n in settings.sizes(&[4, 8, 16, 32, 64, 128]) {
        let (a, b) = (random::<f64>(n * n, 1), random::<f64>(n * n, 2));
        let mut results = vec![vec![0.0; n * n]; peers.list.len() + 2];
        let (ours, theirs) = results.split_first_mut().expect("ours is there");
        let mut sides = vec![Side::new("ours", || {
            poison(ours);
            timed_each(|| our_gemm(machine, n, &a, &b, ours))
        })];
        let mut theirs = theirs.iter_mut();
        for (peer, c) in peers.list.iter().zip(theirs.by_ref()) {
            sides.push(small_peer(peer, n, (&a, &b), c));
        }
        for c in theirs.filter(|_| peers.tile) {
            let (a, b) = (&a, &b);
            sides.push(Side::new("tile", move || {
                poison(c);
                timed_each(|| kernel(n, a, b, c))
            }));
        }
        let times = in_turn(settings, sides);
        assert_alike("dgemm", n, ROUNDING, &results[..times.len()]);
        report.add("dgemm", &format!("n={n}"), Unit::Gflops(flops::gemm(n, n, n)), &times);
    }
    empty(settings, machine, report);
}

fn small_peer<'a>(peer: &'a Peer, n: usize, (a, b): (&'a [f64], &'a [f64]), c: &'a mut [f64]) -> Side<'a> {
    Side::new(peer.name(), move || {
        poison(c);
        timed_each(|| peer.gemm(n, a, b, c))
    })
}

/// Computes the product directly by the CPU kernel, without a `Machine`.
fn kernel<T: Lanes>(n: usize, a: &[T], b: &[T], c: &mut [T]) {
    assert!([a.len(), b.len(), c.len()].iter().all(|&len| len >= n * n));
    // SAFETY: each tile is of order n and lies in a slice of at least n² elements. A and B are borrowed for reading and C is
    // borrowed exclusively, so that no other access conflicts.
    unsafe {
        let tile = |ptr: *const T| Tile::new(ptr.cast_mut(), n, n, n);
        fast::gemm(
            &Team::alone(),
            Op::NoTrans,
            Op::NoTrans,
            T::ONE,
            tile(a.as_ptr()),
            tile(b.as_ptr()),
            T::ZERO,
            tile(c.as_mut_ptr()),
        );
    }
}

/// Times calls with m, n or k equal to zero, which return at once.
fn empty(settings: &Settings, machine: &Machine, report: &mut Report) {
    let call = |m: usize, n: usize, k: usize| {
        let (a, b, mut c) = (vec![0.0; m * k], vec![0.0; k * n], vec![0.0; m * n]);
        let side = Side::new("ours", move || {
            timed_each(|| {
                let view = |data, rows, cols| MatRef::col_major(data, rows, cols).expect("sizes agree");
                let c = MatMut::col_major(&mut c, m, n).expect("sizes agree");
                machine.gemm(Gemm::new(view(&a, m, k), view(&b, k, n), c).beta(1.0)).expect("nothing fails");
            })
        });
        in_turn(settings, vec![side])
    };
    for (m, n, k) in [(0, 64, 64), (64, 0, 64), (64, 64, 0)] {
        report.add("dgemm", &format!("m={m} n={n} k={k} beta=1"), Unit::Nanoseconds, &call(m, n, k));
    }
}
