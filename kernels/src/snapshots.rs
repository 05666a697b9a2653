//! Compares whole texts of kernels with the files in `snapshots/`. If a change of a text is intended, run the tests with the
//! environment variable `LAPIDARY_ACCEPT_TEXTS=1`, which writes the files anew, and review the difference.

use std::path::Path;

use lapidary_core::DType;

use crate::block::{BlockParams, tests::PARAMS};
use crate::program::Program;
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

/// Compares the texts of a program of one kernel in both languages.
fn compare_both(file: &str, program: &Program, kernel: &str, operands: usize) {
    compare(&format!("{file}.cl"), &opencl::source(program));
    compare(&format!("{file}.wgsl"), &wgsl::source(program, kernel, &(0..operands).collect::<Vec<_>>()));
}

#[test]
fn texts_are_the_accepted_ones() {
    let direct = BlockParams { memory: 0, kwg: 2, stages: 1, pad: 0, ..PARAMS };
    let mixed = BlockParams { memory: 2, stages: 1, vw: 1, order: 1, ..PARAMS };
    let staged = BlockParams { memory: 4, vw: 4, indexing: 1, raster: 4, inline: 1, ..PARAMS };
    let split = BlockParams { split: 4, ..direct };
    let program = |dtype, params, trans_a, trans_b, sizes| Program::GemmBlock { dtype, params, trans_a, trans_b, sizes };
    let texts = [
        ("gemm_block_direct", program(DType::F32, direct, false, false, None)),
        ("gemm_block_mixed", program(DType::F32, mixed, true, false, None)),
        ("gemm_block_split", program(DType::F32, split, false, true, None)),
        ("gemm_block_staged", program(DType::F64, staged, false, true, Some([37, 29, 53]))),
    ];
    texts.iter().for_each(|(file, program)| compare_both(file, program, "gemm_block", 3));
    compare_both("sum_parts", &Program::SumParts { dtype: DType::F64, items: 64 }, "sum_parts", 2);
}
