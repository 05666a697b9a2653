//! `lapidary kernel`: prints the text of the kernels that a call uses.

use std::collections::HashSet;

use lapidary::backend::{Conditions, Instruction, Swaps, Value};
use lapidary::kernels::database::{Entry, Kernel};
use lapidary::kernels::{self, Database, Dialect, Launch, Product, Threshold, Tuning, View, opencl, refusals, wgsl};
use lapidary::{Accuracy, DType, DeviceFacts, Diag, Op, Routine, Side, Uplo};

use crate::failure::{Failure, Result};
use crate::options::{DTypeFlag, DeviceOptions, advise_gpu};
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
    let (mine, _) = args.device.settings()?.user_kernels();
    refusals(&mine, &facts, dialect).iter().for_each(|problem| note(&format!("note: {problem}")));
    let tuning = Tuning::lookup(&mine.then(Database::shipped()), &facts, dialect);
    let given = args.params.as_deref().map(|text| given(text, dtype, dialect)).transpose()?;
    let tuning = match &given {
        Some(entry) => tuning
            .preferring(&entry.to_string(), &facts, dialect)
            .map_err(|problem| Failure::usage(format!("--params: {problem}")))?,
        None => tuning,
    };
    // the kernel of an entry that is accurate in norm only runs where that suffices
    let accuracy = match given.as_ref().map(|entry| entry.kernel) {
        Some(Kernel::Product(product)) => product.accuracy(dtype),
        _ => Accuracy::default(),
    };
    let conditions = Conditions { accuracy, ..Conditions::default() };
    let launches = kernels::launches(&facts, &tuning, dtype, &instruction(&shape, dtype)?, conditions)?;
    given.iter().try_for_each(|entry| check_shown(entry, &shape, &launches, &tuning))?;
    tell(&shape, (dtype, accuracy), &tuning, &launches, &facts);
    if !args.list {
        texts(&launches, dialect).iter().for_each(|text| out(text));
    }
    Ok(())
}

/// The entry of `--params`, for the element type of the call. Its speed is left out, because the entry takes precedence over faster ones.
fn given(text: &str, dtype: DType, dialect: Dialect) -> Result<Entry> {
    let refused = |reason: String| Failure::usage(format!("--params: {reason}"));
    let entry: Entry = text.parse().map_err(refused)?;
    if let Some(other) = entry.dtype.filter(|&only| only != dtype) {
        return Err(refused(format!("the entry is for {other}, and the matrices are of {dtype}: add --dtype {other}")));
    }
    if let Some(other) = entry.dialect.filter(|&only| only != dialect) {
        return Err(refused(format!("the entry is for {other}, and the text is in {dialect}: add --dialect {other}")));
    }
    // the same parameters may be too large for the other type
    Ok(Entry { dtype: Some(dtype), speed: None, ..entry })
}

/// Fails if no launch runs the kernel of `--params`. The message states the reason.
fn check_shown(entry: &Entry, shape: &Shape, launches: &[Launch], tuning: &Tuning) -> Result<()> {
    let kernel = entry.kernel;
    if matches!(kernel, Kernel::Stop(_) | Kernel::Threshold(..)) || launches.iter().any(|launch| launch.is_of(kernel)) {
        return Ok(());
    }
    let sizes: String = shape.sizes().iter().map(|(name, size)| format!(" {name}={size}")).collect();
    let call = format!("{}{sizes}", shape.routine.name());
    let dtype = entry.dtype.unwrap_or(DType::F64);
    let is_listed =
        |product| tuning.products_with(Accuracy::Normwise, dtype, [shape.m, shape.n, shape.k]).any(|listed| listed == product);
    let reason = match kernel {
        Kernel::Product(product) if shape.routine == Routine::Gemm && !is_listed(product) => {
            "the conditions of the entry do not hold: leave them out, or name other sizes"
        }
        Kernel::Product(Product::Vector(_)) if shape.routine == Routine::Gemm => {
            "the kernel takes at least nwg columns, and operands that are stored in whole vectors or are worth copying: name larger sizes"
        }
        Kernel::Product(Product::Mma(params)) if shape.routine == Routine::Gemm && params.guarded && params.aligned => {
            "with aligned=1, the kernel takes operands that are stored in whole vectors of 16 bytes: name even sizes, or multiples of 4 in f32"
        }
        Kernel::Product(Product::Mma(_)) if shape.routine == Routine::Gemm => {
            "without guarded=1, the kernel takes whole tiles and slices: name multiples of mwg, nwg and kwg"
        }
        Kernel::Cpu(_) => {
            "these blocks are for the CPU backend, which has no generated kernels; `lapidary tune --device cpu` tries them"
        }
        _ => "the call launches other kernels, which --list shows without --params",
    };
    Err(Failure::usage(format!("--params: {call} does not use {kernel}: {reason}")))
}

/// The device whose kernels are shown, and the language of its kernels.
fn device(args: &Args) -> Result<(DeviceFacts, Dialect)> {
    let machine = args.device.open()?;
    let found = machine.devices().find_map(|facts| Some((facts.clone(), super::tune::dialect(&facts.name)?)));
    found.ok_or_else(|| Failure::usage(format!("the CPU backend has no generated kernels: {}", advise_gpu())))
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
fn tell(shape: &Shape, (dtype, accuracy): (DType, Accuracy), tuning: &Tuning, launches: &[Launch], facts: &DeviceFacts) {
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
        let used = product_used(launches, tuning, (dtype, accuracy), sizes);
        for product in tuning.products_with(accuracy, dtype, sizes).take_while(|&product| Some(product) != used) {
            note(&format!("  not used, as it does not suit the operands: {product}"));
        }
        if let Some(product) = used {
            let origin = tuning.origin(dtype, sizes, product).filter(|origin| !origin.starts_with("text:"));
            note(&format!("  {product}\n  from {}", origin.unwrap_or("the command line")));
        }
    }
    let order = shape.m.min(shape.n);
    let width = tuning.lookahead(dtype).width(order).filter(|&width| width < order && facts.queues > 1);
    if let Some(width) = width.filter(|_| shape.routine == Routine::Getrf) {
        note(&format!(
            "  these launches factor the matrix at once; the device factors it in panels of {width} columns (lookahead_panel),"
        ));
        note(&format!("  because the order is at least lookahead rows={}", tuning.threshold(Threshold::Lookahead, dtype)));
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
pub(super) fn product_used(
    launches: &[Launch],
    tuning: &Tuning,
    (dtype, accuracy): (DType, Accuracy),
    sizes: [usize; 3],
) -> Option<Product> {
    tuning
        .products_with(accuracy, dtype, sizes)
        .find(|&product| launches.iter().any(|launch| launch.is_of(Kernel::Product(product))))
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
