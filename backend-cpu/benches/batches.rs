//! Compares each batched routine with a loop that calls the routine for one matrix at a time. The loop runs on as many threads as
//! the batched routine, and each thread computes an equal share of the matrices. The benchmark prints the median speed of the
//! batched routine and of the loop in Gflop/s, and the ratio of the two speeds. Measurements of the batched routine and of the loop
//! alternate.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use lapidary_backend_cpu::{Team, fast, tile::Tile};
use lapidary_core::Op;

const RUNS: usize = 15;

/// A batch of `count` square matrices of order `n`.
struct Batch {
    n: usize,
    count: usize,
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
    ipiv: Vec<i32>,
    info: Vec<i32>,
}

impl Batch {
    fn new(n: usize, count: usize) -> Self {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as f64 / (1_u64 << 31) as f64 - 0.5
        };
        let len = n * n * count;
        let (a, b) = ((0..len).map(|_| random()).collect(), (0..len).map(|_| random()).collect());
        Batch { n, count, a, b, c: vec![0.0; len], ipiv: vec![0; n * count], info: vec![0; count] }
    }

    /// The matrices with the indices `of`, which lie side by side in `data`.
    fn tile(&self, data: &[f64], of: std::ops::Range<usize>) -> Tile<f64> {
        let n = self.n;
        // SAFETY: the slice holds all elements of the matrices from index `of.start` on.
        unsafe { Tile::new(data[of.start * n * n..].as_ptr().cast_mut(), n, n * of.len(), n) }
    }

    fn column(data: &[i32], of: std::ops::Range<usize>) -> Tile<i32> {
        // SAFETY: the slice holds all elements of the column.
        unsafe { Tile::new(data[of.start..].as_ptr().cast_mut(), of.len(), 1, of.len()) }
    }
}

/// A routine with two functions: one computes all matrices with a team, the other computes one matrix on the calling thread.
struct Routine {
    name: &'static str,
    flops: fn(f64) -> f64,
    all: fn(&Team, &Batch),
    one: fn(&Batch, usize),
    /// Whether the matrices must be restored before each measurement, because the routine overwrites its input.
    restores: bool,
}

const ROUTINES: [Routine; 2] = [
    Routine {
        name: "gemm",
        flops: |n| 2.0 * n * n * n,
        all: |team, x| {
            let all = || 0..x.count;
            let (a, b, c) = (x.tile(&x.a, all()), x.tile(&x.b, all()), x.tile(&x.c, all()));
            // SAFETY: the tiles are separate matrices with the shapes that the routine requires.
            unsafe { fast::gemm_batched(team, x.count, Op::NoTrans, Op::NoTrans, 1.0, a, b, 0.0, c) }
        },
        one: |x, i| {
            let (a, b, c) = (x.tile(&x.a, i..i + 1), x.tile(&x.b, i..i + 1), x.tile(&x.c, i..i + 1));
            // SAFETY: the tiles are separate matrices with the shapes that the routine requires.
            unsafe { fast::gemm(&Team::alone(), Op::NoTrans, Op::NoTrans, 1.0, a, b, 0.0, c) }
        },
        restores: false,
    },
    Routine {
        name: "getrf",
        flops: |n| 2.0 / 3.0 * n * n * n,
        all: |team, x| {
            let (ipiv, info) = (Batch::column(&x.ipiv, 0..x.n * x.count), Batch::column(&x.info, 0..x.count));
            // SAFETY: the tiles are separate matrices with the shapes that the routine requires.
            unsafe { fast::getrf_batched(team, x.count, true, x.tile(&x.c, 0..x.count), ipiv, info) }
        },
        one: |x, i| {
            let ipiv = Batch::column(&x.ipiv, i * x.n..(i + 1) * x.n);
            // SAFETY: the tiles are separate matrices with the shapes that the routine requires.
            unsafe {
                let info = &mut *Batch::column(&x.info, i..i + 1).ptr();
                fast::getrf(&Team::alone(), true, 0, x.tile(&x.c, i..i + 1), ipiv, info);
            }
        },
        restores: true,
    },
];

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn compare(routine: &Routine, n: usize, count: usize, threads: usize) {
    let (team, mut batch) = (Team::new(threads), Batch::new(n, count));
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        for (way, times) in times.iter_mut().enumerate() {
            if routine.restores {
                let original = std::mem::take(&mut batch.a);
                batch.c.copy_from_slice(&original);
                batch.a = original;
            }
            let (x, begin) = (&batch, Instant::now());
            if way == 0 {
                (routine.all)(&team, x);
            } else {
                let share = count.div_ceil(threads);
                thread::scope(|scope| {
                    for t in 0..threads {
                        scope.spawn(move || (t * share..((t + 1) * share).min(count)).for_each(|i| (routine.one)(x, i)));
                    }
                });
            }
            times.push(begin.elapsed().as_secs_f64());
            black_box(&batch.c);
        }
    }
    let [ours, plain] = times.map(|times| (routine.flops)(n as f64) * count as f64 / median(times) / 1e9);
    println!(
        "{:5} {count:6} of {n:3}, {threads} threads: batch {ours:7.2}, loop {plain:7.2} Gflop/s, ratio {:.2}",
        routine.name,
        ours / plain
    );
}

fn main() {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    for routine in &ROUTINES {
        for (n, count) in [(4, 100_000), (8, 50_000), (16, 10_000), (32, 10_000), (64, 2_000)] {
            compare(routine, n, count, threads);
        }
    }
}
