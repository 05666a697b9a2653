//! `lapidary kernel`: prints the text of the kernels that a call uses.

use std::collections::HashSet;

use lapidary::core::{Instruction, Routine, Swaps, Value};
use lapidary::kernels::{self, Database, Dialect, Launch, Product, Threshold, Tuning, View, opencl, refusals, wgsl};
use lapidary::{DType, DeviceFacts, Diag, Op, Side, Uplo};

use crate::failure::{Failure, Result};
use crate::options::{DTypeFlag, DeviceOptions};
use crate::report::{counted, note, out};
use crate::shape::{Shape, ShapeOptions};

/// Options of `lapidary kernel`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP, allow_negative_numbers = true)]
pub struct Args {
    #[command(flatten)]
    shape: ShapeOptions,
    /// Element type of the matrices
    #[arg(long, value_enum, default_value = "f64")]
    dtype: DTypeFlag,
    #[command(flatten)]
    pub(super) device: DeviceOptions,
    /// Language of the text [default: the language of the device]
    #[arg(long, value_parser = ["opencl", "wgsl"])]
    dialect: Option<String>,
    /// Use this kernel in place of the one that the database names, such as 'gemm_tile mwg=32 nwg=32 …'
    #[arg(long, value_name = "ENTRY")]
    params: Option<String>,
    /// List the launches only, without the texts
    #[arg(long)]
    list: bool,
}

const HELP: &str = "\
The text goes to standard output. The launches, the entry of the database that a product uses, and the
thresholds on which the launches depend, go to standard error. Without --device, the first OpenCL or wgpu device that is no CPU is used. The matrices are assumed
to lie in device memory.

Examples:
  lapidary kernel gemm --n 1024 --device opencl:0
  lapidary kernel gemm --n 1024 --params 'gemm_panel mv=1 vw=4 nr=4 group=1 kc=256 mc=96 nc=96'
  lapidary kernel getrf --n 2000 --device wgpu:0 --dtype f32 --list
  lapidary kernel gemm --device opencl:0 --dialect wgsl --dtype f32 > gemm.wgsl";

/// Prints the launches of a call and the text of its kernels.
pub fn run(args: &Args) -> Result<()> {
    let shapes = args.shape.shapes()?;
    let [shape] = shapes[..] else {
        return Err(Failure::usage(format!("{} sizes cannot be shown at once: give one size with each flag", shapes.len())));
    };
    let dtype = DType::from(args.dtype);
    let (facts, of_device) = device(args)?;
    let dialect = match args.dialect.as_deref() {
        Some("opencl") => Dialect::OpenClC,
        Some(_) => Dialect::Wgsl,
        None => of_device,
    };
    let (mine, problems) = args.device.settings()?.user_kernels();
    let refused = refusals(&mine, &facts, dialect);
    problems.iter().chain(&refused).for_each(|problem| note(&format!("note: {problem}")));
    let mut tuning = Tuning::lookup(&mine.then(Database::shipped()), &facts, dialect);
    if let Some(entry) = &args.params {
        let reason_of = |problem: &str| problem.rsplit(" is skipped: ").next().unwrap_or(problem).to_owned();
        let refused = |problem: String| Failure::usage(format!("--params: {}", reason_of(&problem)));
        // the same parameters may be too large for the other type
        tuning = tuning.preferring(&format!("{entry} {dtype}"), &facts, dialect).map_err(refused)?;
    }
    let launches = kernels::launches(&facts, &tuning, dtype, &instruction(&shape, dtype)?)?;
    tell(&shape, dtype, &tuning, &launches, &facts);
    if !args.list {
        texts(&launches, dialect).iter().for_each(|text| out(text));
    }
    Ok(())
}

/// The device whose kernels are shown, and the language of its kernels.
fn device(args: &Args) -> Result<(DeviceFacts, Dialect)> {
    let machine = args.device.open()?;
    let found = machine.devices().find_map(|facts| Some((facts.clone(), super::tune::dialect(&facts.name)?)));
    found.ok_or_else(|| Failure::usage("the CPU backend has no generated kernels: name an OpenCL or wgpu device with --device"))
}

/// The instruction of a call whose matrices lie in device memory, each in a buffer of its own.
pub(super) fn instruction(shape: &Shape, dtype: DType) -> Result<Instruction<View<'static, ()>>> {
    let Shape { m, n, k, op_b, a: triangle, mode, .. } = *shape;
    let [alpha, beta] = [1.0, 0.0].map(|number| Value::new(dtype, number));
    let view = |(rows, cols): (usize, usize)| View { buffer: &(), at: 0, rows, cols, ld: rows.max(1) };
    let order = m.min(n);
    Ok(match shape.routine {
        Routine::Gemm => {
            let (op_a, a, b) = (triangle.op, view(triangle.op.shape((m, k))), view(op_b.shape((k, n))));
            Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c: view((m, n)) }
        }
        Routine::Trsm => {
            let (side, uplo, op, diag): (Side, Uplo, Op, Diag) = (triangle.side, triangle.uplo, triangle.op, triangle.diag);
            let order = shape.triangle_order();
            Instruction::Trsm { mode, side, uplo, op, diag, alpha, a: view((order, order)), b: view((m, n)) }
        }
        Routine::Getrf => {
            Instruction::Getrf { pivoting: true, first_row: 0, a: view((m, n)), ipiv: view((order, 1)), info: view((1, 1)) }
        }
        Routine::Laswp => {
            let swaps = Swaps { side: Side::Left, forward: true, first_row: 0 };
            Instruction::Laswp { swaps, a: view((m, n)), ipiv: view((order, 1)) }
        }
        Routine::Getrs | Routine::Gesv => {
            let name = shape.routine.name();
            return Err(Failure::usage(format!("{name} is several instructions: show getrf, laswp and trsm")));
        }
    })
}

/// Prints the launches, the entry that a product uses, and the thresholds on which the launches depend.
fn tell(shape: &Shape, dtype: DType, tuning: &Tuning, launches: &[Launch], facts: &DeviceFacts) {
    note(&format!("{} in {dtype} on {} ({})", shape.routine.name(), facts.name, facts.description));
    let mut told = HashSet::new();
    for Launch { program, kernel, .. } in launches.iter().filter(|launch| told.insert((launch.program, launch.kernel))) {
        let alike: Vec<usize> = launches
            .iter()
            .filter(|launch| (launch.program, launch.kernel) == (*program, *kernel))
            .map(|launch| launch.groups.iter().product())
            .collect();
        let (times, groups) = (counted(alike.len(), "launch"), alike.iter().sum::<usize>());
        let items = program.local().iter().product::<usize>();
        note(&format!("  {kernel}: {times}, {}, each of {}", counted(groups, "work-group"), counted(items, "work-item")));
    }
    if shape.routine == Routine::Gemm {
        let sizes = [shape.m, shape.n, shape.k];
        let used = product_used(launches, tuning, dtype, sizes);
        for product in tuning.products(dtype, sizes).take_while(|&product| Some(product) != used) {
            note(&format!("  not used, as it does not suit the operands: {product}"));
        }
        if let Some(product) = used {
            let origin = tuning.origin(dtype, sizes, product).filter(|origin| !origin.starts_with("text:"));
            note(&format!("  {product}\n  from {}", origin.unwrap_or("the command line")));
        }
    }
    let decides = |threshold: &Threshold| launches.iter().any(|launch| threshold.concerns(launch.kernel));
    for threshold in Threshold::ALL.into_iter().filter(decides) {
        let value = tuning.threshold(threshold, dtype);
        let origin = tuning.threshold_origin(threshold, dtype);
        let origin = if origin.starts_with("text:") { "the command line" } else { origin };
        note(&format!("  {} {}={value}, from {origin}", threshold.name(), threshold.unit()));
    }
}

/// The kernel for products that a product launches: the first one that the database names and that is among the launches.
pub(super) fn product_used(launches: &[Launch], tuning: &Tuning, dtype: DType, sizes: [usize; 3]) -> Option<Product> {
    tuning.products(dtype, sizes).find(|product| launches.iter().any(|launch| launch.kernel == product.kernel()))
}

/// The text of each program of the launches, once.
fn texts(launches: &[Launch], dialect: Dialect) -> Vec<String> {
    let mut shown = HashSet::new();
    let mut texts = Vec::new();
    for launch in launches {
        // in OpenCL C, a program is one text; in WGSL, each kernel of a program is a text of its own
        let kernel = if dialect == Dialect::Wgsl { launch.kernel } else { "" };
        if shown.insert((launch.program, kernel)) {
            texts.push(match dialect {
                Dialect::OpenClC => opencl::source(&launch.program).text,
                Dialect::Wgsl => wgsl::source_of_distinct(&launch.program, launch.kernel).text,
            });
        }
    }
    texts
}
