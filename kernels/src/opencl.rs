//! OpenCL C: the text of each program.

use std::fmt::Write;

use lapidary_core::DType;

use crate::Source;
use crate::params::{PanelParams, TileParams};

const COMMON: &str = include_str!("opencl/common.cl");

/// Unknowns of a triangle that one work-item solves.
pub const TRIANGLE: usize = 32;
/// Columns of the narrowest panel, factored by one work-group.
pub const PANEL: usize = 16;

/// `gemm_tile` for these operands.
#[must_use]
pub fn gemm_tile(dtype: DType, params: &TileParams, trans_a: bool, trans_b: bool) -> Source {
    let TileParams { mwg, nwg, kwg, mr, nr } = *params;
    let values = [
        ("MWG", mwg),
        ("NWG", nwg),
        ("KWG", kwg),
        ("MR", mr),
        ("NR", nr),
        ("TRANS_A", usize::from(trans_a)),
        ("TRANS_B", usize::from(trans_b)),
    ];
    program("gemm_tile", dtype, &values, include_str!("opencl/gemm_tile.cl"))
}

/// `pack` and `gemm_panel`.
#[must_use]
pub fn gemm_panel(dtype: DType, params: &PanelParams) -> Source {
    let values = [("MV", params.mv), ("VW", params.vw), ("NR", params.nr)];
    program("gemm_panel", dtype, &values, include_str!("opencl/gemm_panel.cl"))
}

/// `scale`, `copy` and `laswp`.
#[must_use]
pub fn elements(dtype: DType) -> Source {
    program("elements", dtype, &[], include_str!("opencl/elements.cl"))
}

/// `trsm_block` and `trtri_block` for triangles of [`TRIANGLE`] unknowns.
#[must_use]
pub fn triangle(dtype: DType) -> Source {
    program("triangle", dtype, &[("NB", TRIANGLE)], include_str!("opencl/triangle.cl"))
}

/// `getrf_panel` by work-groups of `items` work-items, a power of two.
#[must_use]
pub fn panel(dtype: DType, items: usize) -> Source {
    assert!(items.is_power_of_two(), "the search for a pivot halves the work-items");
    program("panel", dtype, &[("ITEMS", items)], include_str!("opencl/panel.cl"))
}

/// The element type, the parameters and the text.
fn program(name: &str, dtype: DType, values: &[(&str, usize)], body: &str) -> Source {
    let (real, least) = match dtype {
        DType::F64 => ("double", "2.2250738585072014e-308"),
        DType::F32 => ("float", "1.17549435e-38f"),
        DType::I32 => unreachable!("no kernel computes on integers"),
    };
    let mut text = String::new();
    if dtype == DType::F64 {
        text += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    }
    // vectors are named like the types of the language: real4 is double4 or float4
    let _ = writeln!(text, "#define real {real}\n#define MIN_POSITIVE {least}");
    for lanes in [2, 4, 8, 16] {
        let _ = writeln!(text, "#define real{lanes} {real}{lanes}");
    }
    for (key, value) in values {
        let _ = writeln!(text, "#define {key} {value}");
    }
    let mut file = format!("{name}-{dtype}");
    values.iter().for_each(|(key, value)| file += &format!("-{}{value}", key.to_lowercase()));
    Source { name: file + ".cl", text: [&text, COMMON, body].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_headed_by_its_parameters() {
        let source = gemm_tile(DType::F64, &TileParams { mwg: 32, nwg: 16, kwg: 8, mr: 4, nr: 2 }, true, false);
        assert_eq!(source.name, "gemm_tile-f64-mwg32-nwg16-kwg8-mr4-nr2-trans_a1-trans_b0.cl");
        let head: Vec<&str> = source.text.lines().filter(|line| line.starts_with("#define")).take(13).collect();
        assert_eq!(head[0], "#define real double");
        assert_eq!(
            head[6..13].join(";"),
            "#define MWG 32;#define NWG 16;#define KWG 8;#define MR 4;#define NR 2;#define TRANS_A 1;#define TRANS_B 0"
        );
        assert!(!gemm_panel(DType::F32, &PanelParams { mv: 1, vw: 4, nr: 2 }).text.contains("fp64"));
    }
}
