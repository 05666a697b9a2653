//! `lapidary solve`: A·X = B for matrices in files.

use std::path::{Path, PathBuf};
use std::time::Instant;

use lapidary::{DType, Machine, Scalar};

use crate::dense::{Dense, Numbers};
use crate::failure::{Failure, Result};
use crate::io::{self, Table, atomic};
use crate::memory;
use crate::options::{DTypeFlag, DeviceOptions, computing, describe, names};
use crate::progress::Progress;
use crate::report::{Report, fixed, note, seconds};
use crate::residual;

/// Flags of the verb.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub struct Args {
    /// The square matrix: .npy, .mtx or .csv
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The right-hand sides, one a column: .npy, .mtx or .csv
    #[arg(value_name = "b")]
    b: PathBuf,
    /// Write X here; the extension chooses the format
    #[arg(short, long, value_name = "X")]
    output: Option<PathBuf>,
    /// Improve X by iterative refinement
    #[arg(long)]
    refine: bool,
    /// Element type to compute with [default: the wider one of A and b; text counts as f64]
    #[arg(long, value_enum)]
    dtype: Option<DTypeFlag>,
    #[command(flatten)]
    device: DeviceOptions,
    /// Write every figure here; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const HELP: &str = "\
The backward error is max ‖b − A·x‖₁ / (‖A‖₁·‖x‖₁·ε) as in LAPACK's dget02; from 30 on it fails.
When A is singular or the check fails X is not written and the exit status is 1.

Examples:
  lapidary solve A.npy b.npy -o x.npy
  lapidary solve A.mtx b.csv --refine --json figures.json
  lapidary solve A.npy b.npy -o x.mtx --device all --memory-limit 2G";

/// X is printed whole up to this many elements.
const SMALL: usize = 10;
/// From this order on the work is long enough to show where it stands.
const LONG: usize = 2048;

/// Reads, solves, checks, writes.
pub fn run(args: &Args) -> Result<()> {
    check_outputs(args)?;
    let machine = args.device.open()?;
    let start = Instant::now();
    let (a, b) = (io::open(&args.a)?, io::open(&args.b)?);
    // before there is memory for them
    check_shapes(args, a.shape(), b.shape())?;
    let (a, b) = (a.read()?, b.read()?);
    let read_seconds = start.elapsed().as_secs_f64();
    match dtype(args, &a.numbers, &b.numbers) {
        DTypeFlag::F32 => solve::<f32>(args, &machine, a, b, read_seconds),
        DTypeFlag::F64 => solve::<f64>(args, &machine, a, b, read_seconds),
    }
}

fn check_outputs(args: &Args) -> Result<()> {
    if let Some(path) = &args.output {
        io::Format::of(path)?;
    }
    io::check_distinct(&[("--output", args.output.as_ref()), ("--json", args.json.as_ref())])?;
    let is_input = |path: &&PathBuf| [&args.a, &args.b].iter().any(|input| io::same_file(input, path));
    if let Some(path) = args.output.iter().chain(&args.json).find(is_input) {
        return Err(Failure::file(path, "is an input; write the result to another file"));
    }
    args.output.iter().chain(&args.json).try_for_each(|path| atomic::check_folder(path))
}

fn check_shapes(args: &Args, (rows, cols): (usize, usize), (b_rows, b_cols): (usize, usize)) -> Result<()> {
    if rows != cols {
        return Err(Failure::file(&args.a, format!("A is {rows}×{cols}, not square")));
    }
    if b_rows == rows {
        return Ok(());
    }
    let hint = if (b_rows, b_cols) == (1, rows) { "; a right-hand side is a column" } else { "" };
    Err(Failure::file(&args.b, format!("b has {b_rows} rows, A has {rows}{hint}")))
}

fn dtype(args: &Args, a: &Numbers, b: &Numbers) -> DTypeFlag {
    let narrow = a.dtype() == DType::F32 && b.dtype() == DType::F32;
    args.dtype.unwrap_or(if narrow { DTypeFlag::F32 } else { DTypeFlag::F64 })
}

/// The seconds of each phase.
struct Times {
    read: f64,
    factor: f64,
    solve: f64,
}

/// X and what is known about it.
struct Outcome<T> {
    x: Dense<T>,
    factor_seconds: f64,
    solve_seconds: f64,
    refinement_steps: Option<usize>,
    backward_error: f64,
    rcond: f64,
}

fn solve<T: Scalar>(args: &Args, machine: &Machine, a: Table, b: Table, read: f64) -> Result<()> {
    let (vector, a, b) = (b.vector, narrowed::<T>(&args.a, a)?, narrowed::<T>(&args.b, b)?);
    let outcome = compute(args, machine, &a, &b)?;
    let times = Times { read, factor: outcome.factor_seconds, solve: outcome.solve_seconds };
    let mut report = Report::default();
    problem(&mut report, args, machine, &a, &b);
    speed(&mut report, &b, &times);
    let passed = quality(&mut report, &outcome);
    solution(&mut report, &outcome.x);
    report.print();
    warn::<T>(outcome.rcond);
    report.save(args.json.as_deref())?;
    if !passed {
        let error = outcome.backward_error;
        return Err(Failure::check(format!("the backward error is {error:.3}, 30 is the limit; X is not written")));
    }
    args.output.as_deref().map_or(Ok(()), |path| io::write(path, &outcome.x, vector))
}

/// Factors, solves, refines if asked to, and checks.
fn compute<T: Scalar>(args: &Args, machine: &Machine, a: &Dense<T>, b: &Dense<T>) -> Result<Outcome<T>> {
    let progress = (a.rows() >= LONG).then(|| Progress::new(3));
    let begin = |what: &str| progress.iter().for_each(|p| p.begin(what));
    let done = || progress.iter().for_each(Progress::done);

    begin("factor");
    let start = Instant::now();
    memory::check_matrices::<T>("the copy of A that is factored, with X,", &[(a.rows(), a.cols()), (b.rows(), b.cols())])?;
    let mut factors = a.to_col_major()?;
    let lu = machine.getrf(factors.view_mut())?;
    let factor_seconds = start.elapsed().as_secs_f64();
    done();
    if lu.info() > 0 {
        return Err(singular(args, machine, [a, b], lu.info())?);
    }

    begin("solve");
    let start = Instant::now();
    let mut x = b.to_col_major()?;
    lu.solve(x.view_mut())?;
    let refined = args.refine.then(|| lu.refine(a.view(), b.view(), x.view_mut())).transpose()?;
    let solve_seconds = start.elapsed().as_secs_f64();
    done();

    begin("check");
    let (backward_error, rcond) = (residual::solution(a, &x, b), lu.rcond(a.norm_one())?);
    let refinement_steps = refined.map(|refined| refined.steps);
    Ok(Outcome { x, factor_seconds, solve_seconds, refinement_steps, backward_error, rcond })
}

/// The matrix in the type to compute with, unless that overflows.
fn narrowed<T: Scalar>(path: &Path, table: Table) -> Result<Dense<T>> {
    let matrix: Dense<T> = table.numbers.into_dense();
    if matrix.data().iter().all(|value| value.is_finite()) {
        return Ok(matrix);
    }
    Err(Failure::file(path, format!("an element exceeds the range of {}", T::DTYPE)))
}

/// A zero pivot is a property of A, which the user must know by its place.
fn singular<T: Scalar>(args: &Args, machine: &Machine, [a, b]: [&Dense<T>; 2], info: usize) -> Result<Failure> {
    let mut report = Report::default();
    problem(&mut report, args, machine, a, b);
    report.figure("info", info).figure("singular", true).figure("passed", false);
    report.save(args.json.as_deref())?;
    let message = format!(
        "{}: A is singular: info = {info}, U({info},{info}) is exactly zero, \
         column {info} depends on the columns before it; X is not written",
        args.a.display()
    );
    Ok(Failure::check(message))
}

fn problem<T: Scalar>(report: &mut Report, args: &Args, machine: &Machine, a: &Dense<T>, b: &Dense<T>) {
    let (n, nrhs) = (b.rows(), b.cols());
    report.line("A", format!("{n} × {n}, {}, {}", T::DTYPE, args.a.display()));
    report.line("b", format!("{n} × {nrhs}, {}", args.b.display()));
    report.line("device", names(computing(machine, T::DTYPE)));
    report.figure("n", a.rows()).figure("nrhs", nrhs).figure("dtype", T::DTYPE.to_string());
    report.figure("devices", describe(computing(machine, T::DTYPE))).figure("info", 0).figure("singular", false);
}

fn speed<T: Scalar>(report: &mut Report, b: &Dense<T>, times: &Times) {
    let (n, nrhs) = (b.rows() as f64, b.cols() as f64);
    let gflops = (2.0 / 3.0 * n.powi(3) + 2.0 * n * n * nrhs) / (times.factor + times.solve) / 1e9;
    let each = [times.read, times.factor, times.solve].map(seconds);
    report.line("time", format!("read {}, factor {}, solve {}", each[0], each[1], each[2]));
    report.line("speed", format!("{} GFLOP/s", fixed(gflops, 3)));
    report.figure("read_seconds", times.read).figure("factor_seconds", times.factor);
    report.figure("solve_seconds", times.solve).figure("gflops", gflops);
}

/// Adds the figures about X's quality; tells whether the check passes.
fn quality<T: Scalar>(report: &mut Report, outcome: &Outcome<T>) -> bool {
    let Outcome { backward_error: error, rcond, refinement_steps: steps, .. } = *outcome;
    let passed = error < residual::LU_THRESHOLD; // false for NaN
    let verdict = if passed { "right" } else { "WRONG" };
    let digits = trusted_digits::<T>(rcond);
    report.line("backward error", format!("{}, must be below {}: {verdict}", fixed(error, 3), residual::LU_THRESHOLD));
    report.line("condition", format!("rcond {rcond:.2e}: about {digits} digits of X can be trusted"));
    if let Some(steps) = steps {
        report.line("refinement", format!("{steps} steps"));
    }
    report.figure("refinement_steps", steps).figure("rcond", rcond).figure("trusted_digits", digits);
    report.figure("backward_error", error).figure("backward_error_threshold", residual::LU_THRESHOLD);
    report.figure("passed", passed);
    passed
}

/// Decimal digits that survive: the relative error of X is about u / rcond.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few digits, clamped")]
fn trusted_digits<T: Scalar>(rcond: f64) -> u32 {
    (-(T::UNIT_ROUNDOFF / rcond).log10()).clamp(0.0, 15.0) as u32
}

/// Says in plain words when the answer is doubtful: below a third of the digits.
fn warn<T: Scalar>(rcond: f64) {
    let (digits, all) = (trusted_digits::<T>(rcond), trusted_digits::<T>(1.0));
    match digits {
        0 => note("warning: A is singular to working precision; no digit of X can be trusted"),
        1.. if digits <= all / 3 => {
            note(&format!("warning: A is ill-conditioned; only about {digits} of {all} digits of X can be trusted"));
        }
        1.. => {}
    }
}

fn solution<T: Scalar>(report: &mut Report, x: &Dense<T>) {
    let values: Vec<f64> = x.data().iter().map(|value| value.to_f64()).collect();
    let fold = |f: fn(f64, f64) -> f64, from: f64| values.iter().copied().fold(from, f);
    let (min, max) = (fold(f64::min, f64::INFINITY), fold(f64::max, f64::NEG_INFINITY));
    let norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
    if values.len() <= SMALL {
        let rows = (0..x.rows()).map(|i| (0..x.cols()).map(|j| io::number(x.view().at(i, j))).collect::<Vec<_>>().join(" "));
        report.line("X", rows.collect::<Vec<_>>().join("\n                "));
        report.figure("x", &values[..]);
    } else {
        report.line("X", format!("min {min:.6e}, max {max:.6e}, Frobenius norm {norm:.6e}"));
    }
    let sum: f64 = values.iter().sum();
    report.line("sum of X", fixed(sum, 10));
    report.figure("x_sum", sum).figure("x_min", min).figure("x_max", max).figure("x_norm_frobenius", norm);
}
