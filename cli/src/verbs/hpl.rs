//! `lapidary hpl`: the Linpack benchmark on the devices of one machine.

use std::path::PathBuf;
use std::time::Instant;

use lapidary::DType;

use crate::dense::{Dense, largest};
use crate::failure::{Failure, Result};
use crate::io::atomic;
use crate::memory;
use crate::options::{DeviceOptions, check_dtype, computing, describe, names, panels, parse_positive, threads};
use crate::progress::Progress;
use crate::report::{Report, fixed, seconds};
use crate::residual::{HPL_THRESHOLD, epsilon};

/// Options of `lapidary hpl`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP, allow_negative_numbers = true)]
pub struct Args {
    /// Order of the matrix
    #[arg(long, default_value_t = 4096, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    n: u32,
    /// Number of columns of a panel [default: $LAPIDARY_NB, else chosen by the library]
    #[arg(long, value_name = "NB", value_parser = parse_positive)]
    nb: Option<usize>,
    /// Seed of the random matrix
    #[arg(long, default_value_t = 42)]
    seed: u64,
    #[command(flatten)]
    pub(super) device: DeviceOptions,
    /// Write all results as JSON to FILE; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const HELP: &str = "\
The matrix is uniform in [-0.5, 0.5), in double precision. The residual is HPL's, ‖A·x − b‖∞ /
(ε·(‖A‖∞·‖x‖∞ + ‖b‖∞)·n), and must be below 16; otherwise the exit status is 1. The speed counts
2/3·n³ + 3/2·n² operations. The first run on a device is slower, because it compiles kernels and
measures speeds, which later runs reuse. Run twice, and take the second result.

Examples:
  lapidary hpl --n 8000 --json hpl.json
  lapidary hpl --n 20000 --device all --memory-limit 4G";

/// Generates the system, solves it and verifies the solution.
pub fn run(args: &Args) -> Result<()> {
    args.json.iter().try_for_each(|path| atomic::check_folder(path))?;
    let nb = panels(args.nb)?;
    let machine = args.device.open_with(nb)?;
    check_dtype(&machine, DType::F64, "add a device that has it, such as cpu")?;
    let n = args.n as usize;
    memory::check_matrices::<f64>(&format!("the system of order {n}"), &[(n, n), (n, 1)])?;
    let progress = Progress::new(4);
    let ([mut a, mut x], _) = phase(&progress, "generate", || generate(args.seed, n))?;
    let (lu, factor) = phase(&progress, "factor", || Ok(machine.getrf(a.view_mut())?))?;
    let ((), solve) = phase(&progress, "solve", || Ok(lu.solve(x.view_mut())?))?;
    let (residual, _) = phase(&progress, "verify", || Ok(residual(args.seed, x.data())))?;
    drop(progress);
    let mut report = Report::default();
    report.line("matrix", format!("{n} × {n}, f64, seed {}", args.seed)).line("device", names(computing(&machine, DType::F64)));
    report.figure("n", n).figure("nb", nb).figure("seed", args.seed).figure("dtype", "f64");
    report.figure("devices", describe(computing(&machine, DType::F64))).figure("threads", threads());
    finish(args, report, (factor, solve), residual)
}

/// Runs `work` as a named step of the progress display. Returns the result of `work` and the seconds that it took.
fn phase<R>(progress: &Progress, name: &str, work: impl FnOnce() -> Result<R>) -> Result<(R, f64)> {
    progress.begin(name);
    let start = Instant::now();
    let result = work()?;
    let seconds = start.elapsed().as_secs_f64();
    progress.done();
    Ok((result, seconds))
}

/// Generates the matrix A and the right-hand side b.
fn generate(seed: u64, n: usize) -> Result<[Dense<f64>; 2]> {
    let (mut a, mut b) = (Dense::zeros(n, n)?, Dense::zeros(n, 1)?);
    a.data_mut().chunks_mut(n).enumerate().for_each(|(j, column)| fill_column(seed, j, column));
    fill_column(seed, n, b.data_mut());
    Ok([a, b])
}

fn finish(args: &Args, mut report: Report, (factor, solve): (f64, f64), residual: f64) -> Result<()> {
    let n = f64::from(args.n);
    let gflops = (2.0 / 3.0 * n.powi(3) + 1.5 * n * n) / (factor + solve) / 1e9;
    let passed = residual < HPL_THRESHOLD; // false if the residual is NaN
    report.line("time", format!("factor {}, solve {}", seconds(factor), seconds(solve)));
    report.line("speed", format!("{} GFLOP/s", fixed(gflops, 3)));
    let verdict = if passed { "PASSED" } else { "FAILED" };
    report.line("residual", format!("{}, below {HPL_THRESHOLD} is required: {verdict}", fixed(residual, 6)));
    report.figure("factor_seconds", factor).figure("solve_seconds", solve).figure("seconds", factor + solve);
    report.figure("gflops", gflops).figure("residual", residual);
    report.figure("residual_threshold", HPL_THRESHOLD).figure("passed", passed);
    report.print();
    report.save(args.json.as_deref())?;
    if passed { Ok(()) } else { Err(Failure::check("the residual is too large")) }
}

/// Generates column `j` of A, or b for `j = n`. Each column has its own random generator. With separate generators the check of the
/// solution can generate the columns of A again after the factorisation has overwritten A.
fn fill_column(seed: u64, j: usize, column: &mut [f64]) {
    let mut rng = fastrand::Rng::with_seed(seed ^ (j as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    column.fill_with(|| rng.f64() - 0.5);
}

/// Computes bound 9 of `docs/numerics.md`: ‖A·x − b‖∞ / (ε·(‖A‖∞·‖x‖∞ + ‖b‖∞)·n).
fn residual(seed: u64, x: &[f64]) -> f64 {
    let n = x.len();
    let (mut column, mut row_sums) = (vec![0.0; n], vec![0.0; n]);
    let mut r = vec![0.0; n];
    for (j, xj) in x.iter().enumerate() {
        fill_column(seed, j, &mut column);
        for ((a, r), sum) in column.iter().zip(&mut r).zip(&mut row_sums) {
            *r += a * xj;
            *sum += a.abs();
        }
    }
    fill_column(seed, n, &mut column);
    r.iter_mut().zip(&column).for_each(|(r, b)| *r -= b);
    let norm = |v: &[f64]| largest(&v.iter().map(|value| value.abs()).collect::<Vec<_>>());
    norm(&r) / (epsilon::<f64>() * (largest(&row_sums) * norm(x) + norm(&column)) * n as f64)
}
