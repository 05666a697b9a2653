//! `lapidary solve`: solves A·X = B for matrices in files.

mod report;

use std::path::{Path, PathBuf};
use std::time::Instant;

use lapidary::{DType, Machine, Scalar};

use crate::dense::{Dense, Numbers};
use crate::failure::{Failure, Result};
use crate::io::{self, atomic};
use crate::options::{DTypeFlag, DeviceOptions};
use crate::report::{Report, note};
use crate::residual::LU_THRESHOLD;
use crate::system::{Outcome, Solved, System};

/// Options of `lapidary solve`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub struct Args {
    /// File of the square matrix A: .npy, .mtx or .csv
    #[arg(value_name = "A")]
    a: PathBuf,
    /// File of the right-hand sides, one in each column: .npy, .mtx or .csv
    #[arg(value_name = "b")]
    b: PathBuf,
    /// Write the solution to file X; its extension chooses the format
    #[arg(short, long, value_name = "X")]
    output: Option<PathBuf>,
    /// Write X even if the check fails; the exit status stays 1
    #[arg(long, requires = "output")]
    write_anyway: bool,
    /// Improve X by iterative refinement
    #[arg(long)]
    refine: bool,
    /// Element type of the computation [default: the wider type of A and b; text files count as f64]
    #[arg(long, value_enum)]
    dtype: Option<DTypeFlag>,
    #[command(flatten)]
    pub(super) device: DeviceOptions,
    /// Write all results as JSON to FILE; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const HELP: &str = "\
The backward error is max ‖b − A·x‖₁ / (‖A‖₁·‖x‖₁·ε), as in LAPACK's dget02, for A and b as they
were read; the check fails if it is 30 or more. The error of X is relative to the largest element
of each column. If the rows or columns of A differ much in size, A is equilibrated: its rows and
columns are multiplied by powers of two before the factorisation. Backward error and rcond are
then those of the scaled system. If a pivot is exactly zero or the check fails, X is not written
and the exit status is 1.

Examples:
  lapidary solve A.npy b.npy -o x.npy
  lapidary solve A.mtx b.csv --refine --json figures.json
  lapidary solve A.npy b.npy -o x.mtx --device all --memory-limit 2G";

/// Reads the system, solves it, checks the solution and writes it.
pub fn run(args: &Args) -> Result<()> {
    check_outputs(args)?;
    let machine = args.device.open()?;
    let start = Instant::now();
    let (a, b) = (io::open(&args.a)?, io::open(&args.b)?);
    // The program checks the shapes of A and B before it allocates memory for their elements.
    check_shapes(args, a.shape(), b.shape())?;
    let (a, b) = (a.read()?, b.read()?);
    let job = Job { args, machine: &machine, vector: b.vector, read_seconds: start.elapsed().as_secs_f64() };
    match (a.numbers, b.numbers) {
        (Numbers::F32(a), Numbers::F32(b)) => job.solve_as(args.dtype.unwrap_or(DTypeFlag::F32), a, b),
        (a, b) => job.solve_as(args.dtype.unwrap_or(DTypeFlag::F64), a.into_f64()?, b.into_f64()?),
    }
}

fn check_outputs(args: &Args) -> Result<()> {
    if let Some(path) = &args.output {
        io::Format::of(path)?;
    }
    io::check_distinct(&[("--output", args.output.as_ref()), ("--json", args.json.as_ref())])?;
    let is_input = |path: &&PathBuf| [&args.a, &args.b].iter().any(|input| io::same_file(input, path));
    if let Some(path) = args.output.iter().chain(&args.json).find(is_input) {
        return Err(Failure::file(path, "this file is an input; write the result to another one"));
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

/// The request of the user, apart from the matrices.
struct Job<'a> {
    args: &'a Args,
    machine: &'a Machine,
    /// Whether the file of B contains a vector. If it does, X is written as a vector too.
    vector: bool,
    read_seconds: f64,
}

impl Job<'_> {
    fn solve_as<S: Scalar>(&self, dtype: DTypeFlag, a: Dense<S>, b: Dense<S>) -> Result<()> {
        match dtype {
            DTypeFlag::F32 => self.solve::<S, f32>(a, b),
            DTypeFlag::F64 => self.solve::<S, f64>(a, b),
        }
    }

    /// Solves a system whose files contain elements of type `S`, in the precision of `T`.
    fn solve<S: Scalar, T: Scalar>(&self, a: Dense<S>, b: Dense<S>) -> Result<()> {
        in_range::<S, T>(&self.args.a, &a)?;
        in_range::<S, T>(&self.args.b, &b)?;
        let system = System::new::<T>(a, b)?;
        let mut report = Report::default();
        report::problem::<T>(&mut report, self, &system);
        match system.solve(self.machine, self.args.refine)? {
            Outcome::Solved(solved) => self.finish::<T>(report, &system.b, &solved),
            Outcome::Singular { info, rounded } => self.singular::<T>(report, info, rounded),
        }
    }

    /// Prints the results, writes X, and then writes the figures. X is written before the figures, so that a failure to write the
    /// figures does not lose X.
    fn finish<T: Scalar>(&self, mut report: Report, b: &Dense<impl Scalar>, solved: &Solved<T>) -> Result<()> {
        let passed = solved.backward_error < LU_THRESHOLD; // false for NaN
        report::speed(&mut report, self, b, solved);
        report::quality(&mut report, solved, passed);
        report::solution(&mut report, &solved.x);
        report.print();
        report::warn(solved);
        let write = |path: &PathBuf| io::write(path, &solved.x, self.vector);
        let written = self.args.output.as_ref().filter(|_| passed || self.args.write_anyway).map(write);
        report.figure("x_written", matches!(written, Some(Ok(()))));
        let checked = if passed { Ok(()) } else { Err(self.wrong(solved)) };
        settle([checked, written.unwrap_or(Ok(())), report.save(self.args.json.as_deref())])
    }

    /// The failure message if the check of X fails: the cause, the advice to the user, and whether X is written.
    fn wrong<T: Scalar>(&self, solved: &Solved<T>) -> Failure {
        let (overflowed, error, name) = (solved.rounding[2].overflowed, solved.backward_error, T::DTYPE);
        let cause = match overflowed {
            0 if error.is_finite() => format!("the backward error is {error:.3}, {LU_THRESHOLD} is the limit"),
            0 if error.is_nan() => "X holds values that are no numbers".to_owned(),
            0 => format!("the backward error is infinite: X is too small for {name}"),
            _ => format!("X exceeds the range of {name}: {overflowed} of {} elements are infinite", solved.x.data().len()),
        };
        let advice = match (T::DTYPE, self.args.refine) {
            (DType::F32, _) => "; --dtype f64 computes with more digits and a larger range",
            (_, false) if overflowed == 0 => "; --refine may improve it",
            _ => "",
        };
        let fate = match (&self.args.output, self.args.write_anyway) {
            (None, _) => "",
            (Some(_), false) => "; X is not right and so not written (--write-anyway writes it)",
            (Some(_), true) => "; X is written nevertheless, as --write-anyway asks",
        };
        Failure::check(format!("{cause}{advice}{fate}"))
    }

    /// Reports a zero pivot as a failure. The message names the pivot, since its position tells the user where A is singular.
    fn singular<T: Scalar>(&self, mut report: Report, info: usize, rounded: bool) -> Result<()> {
        report.figure("info", info).figure("singular", true).figure("passed", false).figure("x_written", false);
        let (when, advice) = match T::DTYPE {
            DType::F32 if rounded => (" after rounding to f32", "; --dtype f64 keeps its digits"),
            _ if rounded => (" after scaling in f64", ""),
            _ => ("", ""),
        };
        let fate = if self.args.output.is_some() { "; there is no X to write" } else { "" };
        let singular = Failure::check(format!(
            "{}: A is singular{when}: info = {info}, U({info},{info}) is exactly zero, \
             column {info} depends on the columns before it{advice}{fate}",
            self.args.a.display()
        ));
        settle([Err(singular), report.save(self.args.json.as_deref())])
    }
}

/// Returns the first failure of `results`, and prints all further failures as notes.
fn settle<const N: usize>(results: [Result<()>; N]) -> Result<()> {
    let mut failures = results.into_iter().filter_map(Result::err);
    let first = failures.next();
    failures.for_each(|failure| note(&format!("lapidary: {failure}")));
    first.map_or(Ok(()), Err)
}

/// Refuses a matrix with an element that overflows in type `T`. Elements that are too small for type `T` are no failure, since the
/// program scales the matrix.
fn in_range<S: Scalar, T: Scalar>(path: &Path, matrix: &Dense<S>) -> Result<()> {
    if matrix.data().iter().all(|value| T::from_f64(value.to_f64()).is_finite()) {
        return Ok(());
    }
    Err(Failure::file(path, format!("an element exceeds the range of {}", T::DTYPE)))
}
