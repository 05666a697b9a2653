//! Generates the WGSL text of each kernel.
//!
//! Each kernel text declares one uniform block, which holds the arguments that are not buffers, in the order of the call. The
//! sizes in the uniform block have 32 bits. If two operands of a kernel lie in the same buffer, the text declares this buffer
//! once, because WebGPU does not allow a dispatch to bind a buffer for reading and for writing at once.

use std::fmt::Write;

use lapidary_core::DType;

use crate::Source;
use crate::program::Program;
use crate::signature::{Takes, signature};
use crate::template::render;
use crate::tuning::Dialect;

/// Generates the text of one kernel of a program. The operands `i` and `same[i]` lie in the same buffer, and `same[i]` is the
/// first operand in that buffer.
///
/// # Panics
/// The length of `same` differs from the number of operands that the kernel has in memory.
#[must_use]
pub fn source(program: &Program, kernel: &str, same: &[usize]) -> Source {
    let signature = signature(kernel);
    let memory: Vec<(&str, Takes)> = signature.iter().copied().filter(|(_, takes)| takes.is_memory()).collect();
    assert_eq!(memory.len(), same.len(), "one entry for each operand of {kernel}");
    let mut text = heading(program, &signature);
    // a work-group must see values that other work-groups write while the kernel runs
    let coherent = if signature.iter().any(|&(_, takes)| takes == Takes::Synchronisation) { "@coherent " } else { "" };
    for (binding, (first, written)) in (1..).zip(bindings(kernel, same)) {
        let access = if written { "read_write" } else { "read" };
        let (name, takes) = memory[first];
        let element = match takes {
            Takes::Synchronisation => "atomic<u32>",
            _ if takes.is_elements() => program.element(name),
            _ => "i32",
        };
        let _ = writeln!(text, "@group(0) @binding({binding}) {coherent}var<storage, {access}> {name}: array<{element}>;");
    }
    text += "\n";
    let operands = memory.iter().zip(same).map(|(&(name, _), &first)| (name, memory[first].0));
    text += &render(&body(program, kernel).concat(), program, kernel, operands, Dialect::Wgsl);
    let shared: String = same.iter().map(|first| format!("{first}")).collect();
    Source { name: program.file(&format!("{kernel}-{shared}.wgsl")), text }
}

/// Generates the text of one kernel of a program whose operands lie in different buffers.
#[must_use]
pub fn source_of_distinct(program: &Program, kernel: &str) -> Source {
    let operands = signature(kernel).iter().filter(|(_, takes)| takes.is_memory()).count();
    source(program, kernel, &(0..operands).collect::<Vec<usize>>())
}

/// Returns the operands to bind after the block of arguments, in the order of the call. An entry is the first operand in a
/// buffer, and whether the kernel writes this buffer.
#[must_use]
pub fn bindings(kernel: &str, same: &[usize]) -> Vec<(usize, bool)> {
    let written: Vec<bool> =
        signature(kernel).iter().filter(|(_, takes)| takes.is_memory()).map(|(_, takes)| takes.is_written()).collect();
    let bound = (0..same.len()).filter(|&i| same[i] == i);
    bound.map(|i| (i, (0..same.len()).any(|j| same[j] == i && written[j]))).collect()
}

/// Generates the beginning of the text: element type, parameters and the block of arguments.
fn heading(program: &Program, signature: &[(&str, Takes)]) -> String {
    let (real, least) = match program.dtype() {
        DType::F64 => ("f64", "2.2250738585072014e-308lf"),
        DType::F32 => ("f32", "1.17549435e-38f"),
        DType::I32 => unreachable!("no kernel computes on integers"),
    };
    let mut text = format!("alias real = {real};\nconst MIN_POSITIVE: real = {least};\n");
    if let Some(elements) = program.vector() {
        let vec = if elements == 1 { "real".to_owned() } else { format!("vec{elements}<real>") };
        let _ = writeln!(text, "alias vec = {vec};\nalias size = u32;\nalias stride = i32;");
    }
    for (key, value) in program.heading().1 {
        let _ = writeln!(text, "const {} = {value}u;", key.to_uppercase());
    }
    text += "\nstruct Args {\n";
    for (name, takes) in signature {
        let of = match takes {
            Takes::Size => "u32",
            Takes::Stride => "i32",
            Takes::Real => "real",
            Takes::In | Takes::Out | Takes::Indices | Takes::IndicesOut | Takes::Synchronisation => continue,
        };
        let _ = writeln!(text, "    {name}: {of},");
    }
    text += "}\n\n@group(0) @binding(0) var<uniform> args: Args;\n";
    text
}

/// Returns the template of a kernel, and the template of the function `store` if the kernel takes it from `store.wgsl`.
fn body(program: &Program, kernel: &str) -> [&'static str; 2] {
    const STORE: &str = include_str!("wgsl/store.wgsl");
    match program {
        Program::GemmVector { .. } => [crate::shared::GEMM_VECTOR, ""],
        Program::GemmBlock { .. } => [crate::shared::GEMM_BLOCK, ""],
        Program::GemmMma { .. } | Program::MmaProbe { .. } | Program::HeldRows { .. } | Program::Trsv { .. } => {
            unreachable!("written in OpenCL C only")
        }
        Program::SumParts { .. } => [crate::shared::SUM_PARTS, ""],
        Program::Pad { .. } => [crate::shared::PAD, ""],
        Program::GemmTile { .. } => [include_str!("wgsl/gemm_tile.wgsl"), STORE],
        Program::GemmPanel { .. } if kernel == "pack" => [include_str!("wgsl/pack.wgsl"), ""],
        Program::GemmPanel { .. } => [include_str!("wgsl/gemm_panel.wgsl"), STORE],
        Program::GemmBatched { .. } => [include_str!("wgsl/gemm_batched.wgsl"), ""],
        Program::LuBatched { .. } => [include_str!("wgsl/lu_batched.wgsl"), ""],
        Program::LuRows { .. } => [include_str!("wgsl/lu_rows.wgsl"), ""],
        Program::Elements { .. } => [include_str!("wgsl/elements.wgsl"), ""],
        Program::Exchange { .. } => [crate::shared::EXCHANGE, ""],
        Program::Triangle { .. } => [include_str!("wgsl/triangle.wgsl"), ""],
        Program::Solve { .. } => [crate::shared::SOLVE, ""],
        Program::SumBlocks { .. } => [crate::shared::SUM_BLOCKS, ""],
        Program::JudgeBlocks { .. } => [crate::shared::JUDGE_BLOCKS, ""],
        Program::SolveCopy { .. } => [crate::shared::SOLVE_COPY, ""],
        Program::Panel { .. } => [include_str!("wgsl/panel.wgsl"), ""],
        Program::Strips { .. } => [include_str!("wgsl/strips.wgsl"), ""],
        Program::Columns { .. } => [include_str!("wgsl/columns.wgsl"), ""],
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use naga::valid::{Capabilities, ValidationFlags, Validator};

    use super::*;
    use crate::params::{PanelParams, TileParams, VectorParams};
    use crate::strips::StripParams;

    /// Checks a text and returns its parsed form.
    pub(crate) fn validate(source: &Source) -> naga::Module {
        let module = naga::front::wgsl::parse_str(&source.text)
            .unwrap_or_else(|error| panic!("{}: {}", source.name, error.emit_to_string(&source.text)));
        Validator::new(ValidationFlags::all(), Capabilities::FLOAT64 | Capabilities::MEMORY_DECORATION_COHERENT)
            .validate(&module)
            .unwrap_or_else(|error| panic!("{}: {}\n{}", source.name, error.emit_to_string(&source.text), source.text));
        module
    }

    /// Returns the bytes of workgroup memory of a kernel, where each variable is rounded up as a device may round it.
    fn workgroup_memory(module: &naga::Module) -> usize {
        let mut layouter = naga::proc::Layouter::default();
        layouter.update(module.to_ctx()).expect("it is valid");
        let shared = module.global_variables.iter().filter(|(_, global)| global.space == naga::AddressSpace::WorkGroup);
        shared.map(|(_, global)| layouter[global.ty].size as usize).sum()
    }

    /// Returns every program, in one or more variants, and the names of the kernels in each program.
    fn programs(dtype: DType) -> Vec<(Program, &'static [&'static str])> {
        let tile = TileParams { mwg: 32, nwg: 16, kwg: 8, mr: 4, nr: 2, vwm: 1, stages: 2 };
        let panel = PanelParams { mv: 2, vw: 2, nr: 3, group: 8 };
        let wide = VectorParams { mwg: 64, nwg: 64, kwg: 16, mr: 8, nr: 4, lanes_n: 4, zigzag: true, ahead: false, images: false };
        let ahead = VectorParams { zigzag: false, ahead: true, ..wide };
        let product = |params, trans_a, trans_b| Program::GemmTile { dtype, params, trans_a, trans_b };
        vec![
            (product(tile, false, false), &["gemm_tile"]),
            (product(TileParams { vwm: 2, stages: 1, ..tile }, true, false), &["gemm_tile"]),
            (product(TileParams { vwm: 4, ..tile }, false, true), &["gemm_tile"]),
            (Program::GemmVector { dtype, params: wide, trans_b: true, vec_c: false }, &["gemm_vector"]),
            (Program::GemmVector { dtype, params: ahead, trans_b: false, vec_c: true }, &["gemm_vector"]),
            (Program::SumParts { dtype, items: 64 }, &["sum_parts"]),
            (Program::Pad { dtype, items: 64 }, &["pad"]),
            (Program::GemmPanel { dtype, params: panel }, &["pack", "gemm_panel"]),
            (Program::Elements { dtype, group: 64 }, &["scale", "copy", "narrow", "laswp", "zero_pivots", "clear"]),
            (Program::GemmBatched { dtype, lanes: 8, micro: 2, trans_a: false, trans_b: true }, &["gemm_batched"]),
            (Program::GemmBatched { dtype, lanes: 1, micro: 4, trans_a: true, trans_b: false }, &["gemm_batched"]),
            (Program::LuBatched { dtype, items: 32, room: 256 }, &["getrf_batched", "getrs_batched"]),
            (Program::LuBatched { dtype, items: 1, room: 0 }, &["getrf_batched", "getrs_batched"]),
            (Program::LuRows { dtype, items: 32, order: 8 }, &["getrf_rows"]),
            (Program::LuRows { dtype, items: 32, order: 32 }, &["getrf_rows"]),
            (Program::Triangle { dtype, group: 64 }, &["trsm_block", "trtri_block"]),
            (Program::Solve { dtype, items: 128 }, &["solve"]),
            (Program::SumBlocks { dtype, items: 64 }, &["sum_blocks"]),
            (Program::JudgeBlocks { dtype, items: 64 }, &["judge_blocks"]),
            (Program::SolveCopy { dtype, items: 16, each: 3 }, &["solve_copy"]),
            (Program::Exchange { dtype, items: 64 }, &["exchange"]),
            (Program::Panel { dtype, items: 16 }, &["getrf_panel"]),
            (
                Program::Strips { dtype, params: StripParams { items: 256, rows: 32, width: 2 } },
                &["enter_strips", "getrf_strip", "getrf_strips", "leave_strips"],
            ),
            (
                Program::Strips { dtype, params: StripParams { items: 64, rows: 20, width: 4 } },
                &["enter_strips", "getrf_strip", "getrf_strips", "leave_strips"],
            ),
            (
                // a variant with few invocations, so that the test fails if `StripParams::check` omits a WIDTH × WIDTH array
                Program::Strips { dtype, params: StripParams { items: 16, rows: 12, width: 8 } },
                &["enter_strips", "getrf_strip", "getrf_strips", "leave_strips"],
            ),
            (Program::Columns { dtype, items: 64 }, &["getrf_column"]),
        ]
    }

    #[test]
    fn every_text_is_valid_whatever_buffers_are_shared() {
        for dtype in [DType::F32, DType::F64] {
            let blocks = crate::block::tests::variants(dtype).into_iter().map(|program| (program, &["gemm_block"][..]));
            for (program, kernels) in programs(dtype).into_iter().chain(blocks) {
                for kernel in kernels {
                    let operands = signature(kernel).iter().filter(|(_, takes)| takes.is_memory()).count();
                    let text = source(&program, kernel, &(0..operands).collect::<Vec<_>>());
                    let bytes = workgroup_memory(&validate(&text));
                    let less = crate::limits(1024, bytes.saturating_sub(1));
                    assert!(bytes == 0 || program.check(&less).is_err(), "{}: more than is counted, {bytes} bytes", text.name);
                    // operands of different element types (indices, elements, vectors, another precision) never lie in the same buffer
                    let apart = *kernel == "narrow"
                        || matches!(
                            program,
                            Program::GemmVector { vec_c: false, .. } | Program::Strips { .. } | Program::Pad { .. }
                        );
                    if !apart && signature(kernel).iter().all(|(_, takes)| !takes.is_memory() || takes.is_elements()) {
                        validate(&source(&program, kernel, &vec![0; operands]));
                    }
                }
            }
        }
        let (program, _) = programs(DType::F64)[0];
        [[0, 0, 2], [0, 1, 0], [0, 1, 1]].iter().for_each(|same| drop(validate(&source(&program, "gemm_tile", same))));
        validate(&source(&Program::Pad { dtype: DType::F64, items: 64 }, "pad", &[0, 0, 2]));
    }

    #[test]
    fn what_groups_tell_one_another_is_coherent() {
        let params = StripParams { items: 64, rows: 12, width: 4 };
        for (kernel, operands) in [("getrf_strips", 4), ("getrf_strip", 3)] {
            let text = source(&Program::Strips { dtype: DType::F32, params }, kernel, &(0..operands).collect::<Vec<_>>()).text;
            let bindings = text.matches("var<storage").count();
            let coherent = text.matches("@coherent var<storage").count();
            assert_eq!((bindings, coherent), (operands, if kernel == "getrf_strips" { operands } else { 0 }), "{text}");
        }
    }

    #[test]
    fn a_shared_buffer_is_bound_once_and_written() {
        let (program, _) = programs(DType::F32)[0];
        let text = source(&program, "gemm_tile", &[0, 1, 0]).text;
        let bound: Vec<&str> = text.lines().filter(|line| line.contains("var<storage")).collect();
        assert_eq!(
            bound,
            [
                "@group(0) @binding(1) var<storage, read_write> a: array<real>;",
                "@group(0) @binding(2) var<storage, read> b: array<real>;"
            ]
        );
        assert!(text.contains("a[at] = args.alpha * sum;"), "{text}");
    }
}
