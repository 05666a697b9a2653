//! Writes the texts of all OpenCL kernels that ship for compute capability 9.0 to a folder, and prints a line for each: the name of the
//! file and the number of work-items of a work-group in two dimensions. The second folder receives the texts of `gemm_mma` with the
//! instruction `mma.m8n8k4`, for compute capability 8.0. `cargo xtask ptx` assembles the texts.
//!
//! The programs are those that typical calls launch. Each entry for products takes precedence in turn. Other calls use the first entry for
//! their sizes.

use std::collections::HashSet;
use std::path::Path;

use lapidary_core::{
    Accuracy, Conditions, DType, DeviceFacts, DeviceKind, Diag, Instruction, Op, Side, Swaps, TrsmMode, Uplo, Value,
};
use lapidary_kernels::database::Kernel;
use lapidary_kernels::{Database, Dialect, MmaParams, Program, Tuning, View, check, launches, opencl};

/// A GPU with the facts that decide which kernels run on an H100 or H200.
fn gpu(architecture: &str) -> DeviceFacts {
    let mut facts = DeviceFacts::new("gpu:0");
    facts.identity.kind = DeviceKind::Gpu;
    facts.identity.vendor = "NVIDIA Corporation".to_owned();
    facts.identity.architecture = architecture.to_owned();
    facts.limits.work_group = 1024;
    facts.limits.local_memory = 48 << 10;
    facts.limits.image_pixels = 1 << 27;
    facts.compute_units = Some(132);
    facts.queues = 2;
    facts.vector_bits = 32;
    facts
}

fn view(rows: usize, cols: usize) -> View<'static, ()> {
    View { buffer: &(), at: 0, rows, cols, ld: rows.max(1) }
}

/// The sizes m, n and k of products: multiples of all tiles, multiples of no tile, and few tiles with many terms, which are divided.
const PRODUCTS: [[usize; 3]; 3] = [[4096; 3], [4095; 3], [64, 64, 16_384]];

/// The products with all transpositions.
fn products(dtype: DType) -> Vec<Instruction<View<'static, ()>>> {
    let [alpha, beta] = [2.0, 1.0].map(|number| Value::new(dtype, number));
    let ops = [Op::NoTrans, Op::Trans];
    let calls = PRODUCTS.into_iter().flat_map(|sizes| ops.map(|op_a| ops.map(|op_b| (sizes, op_a, op_b)))).flatten();
    let matrix = |op: Op, (rows, cols)| if op.is_trans() { view(cols, rows) } else { view(rows, cols) };
    let product = |([m, n, k], op_a, op_b): ([usize; 3], Op, Op)| {
        let (a, b, c) = (matrix(op_a, (m, k)), matrix(op_b, (k, n)), view(m, n));
        Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c }
    };
    calls.map(product).collect()
}

/// Calls that launch all kernels but those of products.
fn others(dtype: DType) -> Vec<Instruction<View<'static, ()>>> {
    let number = Value::new(dtype, 2.0);
    let (uplo, op, diag, count) = (Uplo::Lower, Op::NoTrans, Diag::NonUnit, 3);
    let mut calls = vec![
        Instruction::Scale { beta: number, c: view(64, 64) },
        Instruction::Laswp {
            swaps: Swaps { side: Side::Left, forward: true, first_row: 0 },
            a: view(2048, 64),
            ipiv: view(2048, 1),
        },
    ];
    for (mode, n) in [(TrsmMode::Substitution, 2048), (TrsmMode::Inverted, 2048), (TrsmMode::Inverted, 4096)] {
        let (side, a, b) = (Side::Left, view(n, n), view(n, 128));
        calls.push(Instruction::Trsm { mode, side, uplo, op, diag, alpha: number, a, b });
    }
    for op in [Op::NoTrans, Op::Trans] {
        let (mode, side, a, b) = (TrsmMode::Substitution, Side::Left, view(2048, 2048), view(2048, 1));
        calls.push(Instruction::Trsm { mode, side, uplo, op, diag, alpha: number, a, b });
    }
    let squares = [16, 300, 1024, 2048, 4096, 8192, 16_384].map(|n| (n, n));
    for (m, n) in squares.into_iter().chain([(16, 1), (300, 1), (20_000, 32), (50_000, 32), (100_000, 32), (300_000, 32)]) {
        let (a, ipiv, info) = (view(m, n), view(n, 1), view(1, 1));
        calls.push(Instruction::Getrf { pivoting: true, first_row: 0, a, ipiv, info });
    }
    for n in [4, 8, 16, 32, 64, 128] {
        let (a, b, c) = (view(n, count * n), view(n, count * n), view(n, count * n));
        for (op_a, op_b) in [(op, op), (op, Op::Trans), (Op::Trans, op), (Op::Trans, Op::Trans)] {
            calls.push(Instruction::GemmBatched { count, alpha: number, op_a, a, op_b, b, beta: number, c });
        }
        let (ipiv, info) = (view(count * n, 1), view(count, 1));
        calls.push(Instruction::GetrfBatched { count, pivoting: true, a, ipiv, info });
        calls.push(Instruction::GetrsBatched { count, op, lu: a, ipiv, b });
    }
    calls
}

/// The programs that calls launch on a device: products with each entry for products taking precedence in turn, also beside a panel of LU,
/// and all other calls with the first entry for their sizes.
fn shipped(facts: &DeviceFacts) -> Result<Vec<Program>, String> {
    let (mut known, mut programs) = (HashSet::new(), Vec::new());
    let tuning = Tuning::lookup(Database::shipped(), facts, Dialect::OpenClC);
    let mut add = |tuning: &Tuning, dtype, accuracy, calls: Vec<Instruction<_>>| {
        let conditions = Conditions { accuracy, ..Conditions::default() };
        calls.iter().try_for_each(|call| {
            let launched = launches(facts, tuning, dtype, call, conditions).map_err(|error| error.to_string())?;
            programs.extend(launched.into_iter().map(|launch| launch.program).filter(|program| known.insert(*program)));
            Ok::<(), String>(())
        })
    };
    for dtype in [DType::F32, DType::F64] {
        for entry in Database::shipped().entries(facts, Dialect::OpenClC) {
            let is_of_type = entry.dtype.is_none_or(|only| only == dtype);
            let Kernel::Product(product) = entry.kernel else { continue };
            if is_of_type && check(entry.kernel, dtype, facts, Dialect::OpenClC).is_ok() {
                let first = tuning.clone().preferring(&format!("{product} {dtype}"), facts, Dialect::OpenClC)?;
                add(&first, dtype, product.accuracy(dtype), products(dtype))?;
            }
        }
        add(&tuning, dtype, Accuracy::default(), others(dtype))?;
    }
    // the products of LU beside a panel
    let is_of_lu = |program: &&Program| matches!(program, Program::GemmMma { params, trans_a: false, trans_b: false, .. } if params.split == 1);
    programs.extend(programs.iter().filter(is_of_lu).map(|program| program.looping()).collect::<Vec<_>>());
    let probes: HashSet<Program> = programs.iter().filter_map(Program::probe).collect();
    programs.extend(probes);
    Ok(programs)
}

fn write(folder: &Path, programs: &[Program]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for program in programs {
        let source = opencl::source(program);
        std::fs::write(folder.join(&source.name), source.text)?;
        let [x, y] = program.local();
        println!("{} {x} {y}", folder.join(&source.name).display());
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folders: Vec<String> = std::env::args().skip(1).collect();
    let [hopper, ampere] = &folders[..] else { return Err("name two folders".into()) };
    let programs = shipped(&gpu("sm_90"))?;
    write(Path::new(hopper), &programs)?;
    let with_unit_4 = |program: &Program| match *program {
        Program::GemmMma { dtype: dtype @ DType::F64, params, trans_a, trans_b, guarded, aligned, loops } => {
            let params = MmaParams { unit: 4, ..params };
            Some(Program::GemmMma { dtype, params, trans_a, trans_b, guarded, aligned, loops })
        }
        Program::MmaProbe { dtype: DType::F64, ptx, .. } => Some(Program::MmaProbe { dtype: DType::F64, unit: 4, ptx }),
        _ => None,
    };
    write(Path::new(ampere), &programs.iter().filter_map(with_unit_4).collect::<Vec<_>>())?;
    Ok(())
}
