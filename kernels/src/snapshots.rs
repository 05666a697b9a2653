//! Compares whole texts of kernels with the files in `snapshots/`. If a change of a text is intended, run the tests with the
//! environment variable `LAPIDARY_ACCEPT_TEXTS=1`, which writes the files anew, and review the difference.

use std::path::Path;

use lapidary_core::DType;

use crate::block::{BlockParams, tests::PARAMS};
use crate::held_rows::HeldShape;
use crate::mma::MmaParams;
use crate::params::{PanelParams, TileParams, VectorParams};
use crate::program::Program;
use crate::strips::StripParams;
use crate::wgsl::tests::validate;
use crate::{Source, opencl, wgsl};

/// Compares a text with its file, or writes the file.
fn compare(file: &str, source: &Source) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/snapshots").join(file);
    if std::env::var_os("LAPIDARY_ACCEPT_TEXTS").is_some_and(|value| !value.is_empty()) {
        std::fs::write(&path, &source.text).unwrap();
        return;
    }
    let accepted = std::fs::read_to_string(&path).unwrap_or_default();
    let lines = || source.text.lines().zip(accepted.lines());
    let changed = lines().position(|(now, before)| now != before).unwrap_or_else(|| lines().count());
    assert!(
        source.text == accepted,
        "{} differs from {} from line {} on: `{}` in place of `{}`. LAPIDARY_ACCEPT_TEXTS=1 accepts the changed text.",
        source.name,
        path.display(),
        changed + 1,
        source.text.lines().nth(changed).unwrap_or_default(),
        accepted.lines().nth(changed).unwrap_or_default()
    );
}

/// Compares the text of a program in OpenCL C, and the text of one of its kernels in WGSL. A comment that states the formula of the
/// kernel stands before its code.
fn compare_both(file: &str, program: &Program, kernel: &str) {
    let text = wgsl::source_of_distinct(program, kernel);
    validate(&text);
    assert!(text.text.split("@compute").next().is_some_and(|head| head.contains("\n// ")), "{file}");
    compare(&format!("{file}.wgsl"), &text);
    compare_opencl(file, program);
}

/// Compares the text of a program in OpenCL C.
fn compare_opencl(file: &str, program: &Program) {
    let text = opencl::source(program);
    assert!(text.text.split("__kernel").next().is_some_and(|head| head.contains("\n// ")), "{file}");
    compare(&format!("{file}.cl"), &text);
}

#[test]
fn texts_of_blocks_are_the_accepted_ones() {
    let direct = BlockParams { memory: 0, kwg: 2, stages: 1, pad: 0, ..PARAMS };
    let mixed = BlockParams { memory: 2, stages: 1, vw: 1, order: 1, ..PARAMS };
    let staged = BlockParams { memory: 4, vw: 4, indexing: 1, raster: 4, inline: 1, ..PARAMS };
    let split = BlockParams { split: 4, ..direct };
    let swizzled = BlockParams { pad: 0, swizzle: true, ..PARAMS };
    let program = |dtype, params, trans_a, trans_b, sizes| Program::GemmBlock { dtype, params, trans_a, trans_b, sizes };
    let texts = [
        ("gemm_block_direct", program(DType::F32, direct, false, false, None)),
        ("gemm_block_mixed", program(DType::F32, mixed, true, false, None)),
        ("gemm_block_split", program(DType::F32, split, false, true, None)),
        ("gemm_block_staged", program(DType::F64, staged, false, true, Some([37, 29, 53]))),
        ("gemm_block_swizzled", program(DType::F32, swizzled, true, false, None)),
    ];
    texts.iter().for_each(|(file, program)| compare_both(file, program, "gemm_block"));
}

/// Each family of kernels has one text per language, with parameters that make it short. If a program has several kernels in WGSL, the
/// text holds one of them.
#[test]
fn texts_of_all_families_are_the_accepted_ones() {
    let (single, double) = (DType::F32, DType::F64);
    let tile = TileParams { mwg: 16, nwg: 8, kwg: 4, mr: 4, nr: 2, vwm: 2, stages: 2 };
    let vector = VectorParams { mwg: 32, nwg: 32, kwg: 4, mr: 4, nr: 8, lanes_n: 4, zigzag: true, ahead: false, images: false };
    let images = VectorParams { images: true, ..vector };
    let panel = PanelParams { mv: 1, vw: 4, nr: 3, group: 8 };
    let strips = StripParams { items: 64, rows: 4, width: 2 };
    let (trans_a, trans_b) = (false, true);
    let texts = [
        (Program::GemmTile { dtype: double, params: tile, trans_a, trans_b }, "gemm_tile"),
        (Program::GemmVector { dtype: single, params: vector, trans_b: false, vec_c: true }, "gemm_vector"),
        (Program::SumParts { dtype: double, items: 64 }, "sum_parts"),
        (Program::Pad { dtype: single, items: 256 }, "pad"),
        (Program::GemmPanel { dtype: single, params: panel }, "gemm_panel"),
        (Program::GemmBatched { dtype: double, lanes: 8, micro: 2, trans_a, trans_b }, "gemm_batched"),
        (Program::LuBatched { dtype: double, items: 32, room: 256 }, "getrf_batched"),
        (Program::LuRows { dtype: single, items: 32, order: 8 }, "getrf_rows"),
        (Program::Elements { dtype: double, group: 64 }, "laswp"),
        (Program::Exchange { dtype: single, items: 64 }, "exchange"),
        (Program::Triangle { dtype: double, group: 64 }, "trtri_block"),
        (Program::Solve { dtype: double, items: 16 }, "solve"),
        (Program::SumBlocks { dtype: double, items: 64 }, "sum_blocks"),
        (Program::JudgeBlocks { dtype: double, items: 32 }, "judge_blocks"),
        (Program::SolveCopy { dtype: double, items: 16, each: 2 }, "solve_copy"),
        (Program::Panel { dtype: double, items: 16 }, "getrf_panel"),
        (Program::Strips { dtype: double, params: strips }, "leave_strips"),
        (Program::Columns { dtype: double, items: 64 }, "getrf_column"),
    ];
    texts.iter().for_each(|(program, kernel)| compare_both(program.heading().0, program, kernel));
    compare("pack.wgsl", &wgsl::source_of_distinct(&Program::GemmPanel { dtype: single, params: panel }, "pack"));
    compare_opencl("held_rows", &Program::HeldRows { dtype: double, shape: HeldShape { items: 64, each: 2 }, uses_ptx: true });
    compare_opencl("trsv", &Program::Trsv { dtype: double, items: 64, is_transposed: false, uses_ptx: true });
    compare_opencl("trsv_by_definition", &Program::Trsv { dtype: single, items: 64, is_transposed: true, uses_ptx: false });
    let mma = MmaParams {
        mwg: 64,
        nwg: 32,
        kwg: 16,
        mw: 32,
        nw: 16,
        stages: 3,
        raster: 8,
        split: 2,
        unit: 8,
        guarded: true,
        aligned: false,
        ptx: true,
    };
    let product = |dtype, params| Program::GemmMma { dtype, params, trans_a, trans_b, guarded: true, aligned: false, loops: true };
    compare_opencl("gemm_mma", &product(double, mma));
    compare_opencl("gemm_mma_single", &product(single, MmaParams { unit: 1, ..mma }));
    let split = MmaParams { mwg: 128, nwg: 64, kwg: 32, nw: 32, unit: 16, ..mma };
    compare_opencl("gemm_mma_split", &product(single, split));
    compare_opencl("gemm_vector_images", &Program::GemmVector { dtype: double, params: images, trans_b: true, vec_c: false });
}
