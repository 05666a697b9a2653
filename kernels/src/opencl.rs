//! Generates the OpenCL C text of each program.

use std::fmt::Write;

use lapidary_core::DType;

use crate::mma::multiplies_by_units;
use crate::program::Program;
use crate::signature::signature;
use crate::template::render;
use crate::translate::to_opencl;
use crate::tuning::Dialect;
use crate::{Source, shared};

const COMMON: &str = include_str!("opencl/common.cl");

/// Generates the text of a program: first the element type, then the parameters, then the kernels.
#[must_use]
pub fn source(program: &Program) -> Source {
    let (real, least) = match program.dtype() {
        DType::F64 => ("double", "2.2250738585072014e-308"),
        DType::F32 => ("float", "1.17549435e-38f"),
        DType::I32 => unreachable!("no kernel computes on integers"),
    };
    let mut text = String::new();
    if program.dtype() == DType::F64 {
        text += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    }
    let body = body(program);
    let _ = match body {
        Body::OpenCl(_) | Body::Parts(_) => writeln!(text, "#define real {real}"),
        // a type, since `real(x)` is a macro of the shared texts
        Body::Shared { .. } => writeln!(text, "typedef {real} real;"),
    };
    let _ = writeln!(text, "#define MIN_POSITIVE {least}");
    if let (Body::Shared { .. }, Some(elements)) = (&body, program.vector()) {
        let length = if elements == 1 { String::new() } else { elements.to_string() };
        let _ = writeln!(text, "typedef {real}{length} vec;");
        if program.reads_images() {
            let _ = writeln!(text, "#define as_vec as_{real}{length}");
        }
    }
    for (key, value) in program.heading().1 {
        let _ = writeln!(text, "#define {} {value}", key.to_uppercase());
    }
    text += &match body {
        Body::OpenCl(body) => [COMMON, body].concat(),
        Body::Parts(parts) => COMMON.to_owned() + &parts.concat(),
        Body::Shared { kernel, template } => {
            let names = signature(kernel).into_iter().filter(|(_, takes)| takes.is_memory()).map(|(name, _)| (name, name));
            to_opencl(program, kernel, &render(template, program, kernel, names, Dialect::OpenClC))
        }
    };
    Source { name: program.file("cl"), text }
}

/// The kernels of a program.
enum Body {
    /// Text in OpenCL C.
    OpenCl(&'static str),
    /// Text in OpenCL C that consists of several parts.
    Parts(Vec<&'static str>),
    /// The template of one kernel for both languages.
    Shared { kernel: &'static str, template: &'static str },
}

fn body(program: &Program) -> Body {
    Body::OpenCl(match program {
        Program::GemmTile { .. } => include_str!("opencl/gemm_tile.cl"),
        Program::GemmVector { .. } => return Body::Shared { kernel: "gemm_vector", template: shared::GEMM_VECTOR },
        Program::GemmBlock { .. } => return Body::Shared { kernel: "gemm_block", template: shared::GEMM_BLOCK },
        Program::GemmMma { dtype, params, .. } => {
            let order = match multiplies_by_units(*dtype, params.unit) {
                true => include_str!("opencl/gemm_mma_units.cl"),
                false => include_str!("opencl/gemm_mma_items.cl"),
            };
            let kernel = [order, include_str!("opencl/gemm_mma.cl")];
            return Body::Parts([&instructions(*dtype, params.unit, params.ptx)[..], &kernel].concat());
        }
        Program::MmaProbe { dtype, unit, ptx } => {
            return Body::Parts([instructions(*dtype, *unit, *ptx), vec![include_str!("opencl/mma_probe.cl")]].concat());
        }
        Program::SumParts { .. } => return Body::Shared { kernel: "sum_parts", template: shared::SUM_PARTS },
        Program::Pad { .. } => return Body::Shared { kernel: "pad", template: shared::PAD },
        Program::GemmPanel { .. } => include_str!("opencl/gemm_panel.cl"),
        Program::GemmBatched { .. } => include_str!("opencl/gemm_batched.cl"),
        Program::LuBatched { .. } => include_str!("opencl/lu_batched.cl"),
        Program::LuRows { .. } => include_str!("opencl/lu_rows.cl"),
        Program::Elements { .. } => include_str!("opencl/elements.cl"),
        Program::Exchange { .. } => return Body::Shared { kernel: "exchange", template: shared::EXCHANGE },
        Program::Triangle { .. } => include_str!("opencl/triangle.cl"),
        Program::Solve { .. } => return Body::Shared { kernel: "solve", template: shared::SOLVE },
        Program::SumBlocks { .. } => return Body::Shared { kernel: "sum_blocks", template: shared::SUM_BLOCKS },
        Program::JudgeBlocks { .. } => return Body::Shared { kernel: "judge_blocks", template: shared::JUDGE_BLOCKS },
        Program::SolveCopy { .. } => return Body::Shared { kernel: "solve_copy", template: shared::SOLVE_COPY },
        Program::HeldRows { uses_ptx, .. } => {
            let candidates = match uses_ptx {
                true => include_str!("opencl/candidates.cl"),
                false => include_str!("opencl/candidates_by_definition.cl"),
            };
            let (head, kernel) = (include_str!("opencl/held_rows_head.cl"), include_str!("opencl/held_rows.cl"));
            return Body::Parts([&messages(*uses_ptx)[..], &[head, candidates, kernel]].concat());
        }
        Program::Trsv { uses_ptx, .. } => {
            return Body::Parts([&messages(*uses_ptx)[..], &[include_str!("opencl/trsv.cl")]].concat());
        }
        Program::Panel { .. } => include_str!("opencl/panel.cl"),
        Program::Strips { .. } => include_str!("opencl/strips.cl"),
        Program::Columns { .. } => include_str!("opencl/columns.cl"),
    })
}

/// Returns the text by which work-groups exchange messages, and the work-items of a sub-group exchange numbers.
fn messages(uses_ptx: bool) -> [&'static str; 2] {
    let sub_group = match uses_ptx {
        true => include_str!("opencl/sub_group.cl"),
        false => include_str!("opencl/sub_group_by_definition.cl"),
    };
    [include_str!("opencl/messages.cl"), sub_group]
}

/// Returns the text of the instructions of `gemm_mma`: copies, and the instruction of a matrix unit if one multiplies.
fn instructions(dtype: DType, unit: usize, ptx: bool) -> Vec<&'static str> {
    let [copies, mma] = match ptx {
        true => [include_str!("opencl/cp_async.cl"), include_str!("opencl/mma.cl")],
        false => [include_str!("opencl/cp_async_by_definition.cl"), include_str!("opencl/mma_by_definition.cl")],
    };
    match dtype {
        _ if !multiplies_by_units(dtype, unit) => vec![copies],
        DType::F64 => vec![copies, mma],
        DType::F32 | DType::I32 => vec!["#define TWO_PARTS\n", copies, mma, include_str!("opencl/split.cl")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{PanelParams, TileParams};

    #[test]
    fn a_text_is_headed_by_its_parameters() {
        let params = TileParams { mwg: 32, nwg: 16, kwg: 8, mr: 4, nr: 2, vwm: 2, stages: 1 };
        let source = source(&Program::GemmTile { dtype: DType::F64, params, trans_a: true, trans_b: false });
        assert_eq!(source.name, "gemm_tile-f64-mwg32-nwg16-kwg8-mr4-nr2-vwm2-stages1-trans_a1-trans_b0.cl");
        let head: Vec<&str> = source.text.lines().filter(|line| line.starts_with("#define")).take(11).collect();
        assert_eq!(head[0], "#define real double");
        assert_eq!(
            head[2..11].join(";"),
            "#define MWG 32;#define NWG 16;#define KWG 8;#define MR 4;#define NR 2;#define VWM 2;#define STAGES 1;\
             #define TRANS_A 1;#define TRANS_B 0"
        );
        let panel = Program::GemmPanel { dtype: DType::F32, params: PanelParams { mv: 1, vw: 4, nr: 2, group: 1 } };
        assert!(!super::source(&panel).text.contains("fp64"));
    }
}
