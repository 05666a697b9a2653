//! The arguments of each kernel, which are the same in both languages.

/// Kind of an argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Buffer of matrix elements that the kernel only reads.
    In,
    /// Buffer of matrix elements that the kernel writes and may read.
    Out,
    /// Buffer of 32-bit integers that the kernel only reads.
    Indices,
    /// Buffer of 32-bit integers that the kernel writes and may read.
    IndicesOut,
    /// Buffer of the counters or messages through which work-groups wait for one another.
    Synchronisation,
    Size,
    Stride,
    Real,
}

/// Returns the names and kinds of the arguments of a kernel, in the order of the call.
pub(crate) fn signature(kernel: &str) -> Vec<(&'static str, Takes)> {
    use Takes::{In, Indices, IndicesOut, Out, Real, Size, Stride, Synchronisation};
    match kernel {
        "gemm_tile" => vec![
            ("m", Size),
            ("n", Size),
            ("k", Size),
            ("alpha", Real),
            ("a", In),
            ("a_at", Size),
            ("a_ld", Size),
            ("b", In),
            ("b_at", Size),
            ("b_ld", Size),
            ("beta", Real),
            ("c", Out),
            ("c_at", Size),
            ("c_ld", Size),
        ],
        "gemm_vector" | "gemm_block" | "gemm_mma" => signature("gemm_tile"),
        "getrf_held_rows" => {
            let panel = signature("getrf_panel");
            [&panel[..4], &[("left", Size), ("solved", Size), ("right", Size)], &panel[4..], &[("records", Synchronisation)]]
                .concat()
        }
        "mma_probe" => vec![("x", In), ("y", Out)],
        "sum_parts" => vec![
            ("m", Size),
            ("n", Size),
            ("count", Size),
            ("alpha", Real),
            ("parts", In),
            ("beta", Real),
            ("c", Out),
            ("c_at", Size),
            ("c_ld", Size),
        ],
        "exchange" => vec![
            ("count", Size),
            ("n", Size),
            ("forward", Size),
            ("first", Size),
            ("a", Out),
            ("a_at", Size),
            ("a_ld", Size),
            ("ipiv", Indices),
            ("ipiv_at", Size),
        ],
        "pad" => vec![
            ("k", Size),
            ("k_pad", Size),
            ("a", In),
            ("a_lines", Size),
            ("a_at", Size),
            ("a_by_line", Size),
            ("a_by_k", Size),
            ("a_dst", Size),
            ("a_ld", Size),
            ("b", In),
            ("b_lines", Size),
            ("b_at", Size),
            ("b_by_line", Size),
            ("b_by_k", Size),
            ("b_dst", Size),
            ("b_ld", Size),
            ("dst", Out),
        ],
        "pack" => vec![
            ("width", Size),
            ("lines", Size),
            ("k", Size),
            ("src", In),
            ("src_at", Size),
            ("by_line", Size),
            ("by_k", Size),
            ("panels", Out),
            ("panels_at", Size),
        ],
        "gemm_panel" => vec![
            ("m", Size),
            ("n", Size),
            ("k", Size),
            ("alpha", Real),
            ("panels", In),
            ("a_at", Size),
            ("b_at", Size),
            ("beta", Real),
            ("c", Out),
            ("c_at", Size),
            ("c_ld", Size),
        ],
        "gemm_batched" => {
            let mut list = signature("gemm_tile");
            for (after, step) in [("a_ld", "a_step"), ("b_ld", "b_step"), ("c_ld", "c_step")] {
                let at = list.iter().position(|(name, _)| *name == after).expect("a product has three matrices");
                list.insert(at + 1, (step, Size));
            }
            list
        }
        "getrf_batched" => vec![
            ("m", Size),
            ("n", Size),
            ("pivoting", Size),
            ("a", Out),
            ("a_at", Size),
            ("a_ld", Size),
            ("a_step", Size),
            ("ipiv", IndicesOut),
            ("ipiv_at", Size),
            ("info", IndicesOut),
            ("info_at", Size),
        ],
        "getrf_rows" => [signature("getrf_batched"), vec![("count", Size)]].concat(),
        "getrs_batched" => vec![
            ("n", Size),
            ("nrhs", Size),
            ("trans", Size),
            ("lu", In),
            ("lu_at", Size),
            ("lu_ld", Size),
            ("lu_step", Size),
            ("ipiv", Indices),
            ("ipiv_at", Size),
            ("b", Out),
            ("b_at", Size),
            ("b_ld", Size),
            ("b_step", Size),
        ],
        "zero_pivots" => vec![
            ("n", Size),
            ("count", Size),
            ("lu", In),
            ("lu_at", Size),
            ("lu_ld", Size),
            ("lu_step", Size),
            ("info", IndicesOut),
            ("info_at", Size),
        ],
        "clear" => vec![("count", Size), ("info", IndicesOut), ("info_at", Size)],
        "scale" => vec![("m", Size), ("n", Size), ("beta", Real), ("c", Out), ("c_at", Size), ("c_ld", Size)],
        "narrow" => vec![
            ("m", Size),
            ("n", Size),
            ("alpha", Real),
            ("a", In),
            ("a_at", Size),
            ("a_ld", Size),
            ("rounded", Out),
            ("rounded_at", Size),
            ("rounded_ld", Size),
        ],
        "copy" => {
            vec![("m", Size), ("n", Size), ("a", In), ("a_at", Size), ("a_ld", Size), ("b", Out), ("b_at", Size), ("b_ld", Size)]
        }
        "laswp" => vec![
            ("begin", Size),
            ("count", Size),
            ("places", Size),
            ("forward", Size),
            ("first", Size),
            ("a", Out),
            ("a_at", Size),
            ("by_line", Size),
            ("by_place", Size),
            ("ipiv", Indices),
            ("ipiv_at", Size),
        ],
        "trsm_block" => vec![
            ("n", Size),
            ("nrhs", Size),
            ("unit", Size),
            ("a", In),
            ("a_at", Size),
            ("a_i", Stride),
            ("a_k", Stride),
            ("b", Out),
            ("b_at", Size),
            ("b_i", Stride),
            ("b_r", Stride),
        ],
        "solve" => signature("trsm_block"),
        "trsv" => [&signature("trsm_block")[..], &[("records", Synchronisation)]].concat(),
        "sum_blocks" => vec![
            ("n", Size),
            ("order", Size),
            ("upper", Size),
            ("unit", Size),
            ("weighted", Size),
            ("a", In),
            ("a_at", Size),
            ("a_i", Size),
            ("a_k", Size),
            ("sums", Out),
            ("weights_at", Size),
            ("sums_at", Size),
        ],
        "judge_blocks" => vec![
            ("n", Size),
            ("order", Size),
            ("unit", Size),
            ("limit", Real),
            ("a", In),
            ("a_at", Size),
            ("a_step", Size),
            ("v", Out),
            ("v_at", Size),
            ("v_ld", Size),
            ("sums", Out),
            ("z_at", Size),
            ("y_at", Size),
            ("flags_at", Size),
        ],
        "solve_copy" => vec![
            ("n", Size),
            ("nrhs", Size),
            ("unit", Size),
            ("flags", In),
            ("flag_at", Size),
            ("a", In),
            ("a_at", Size),
            ("a_i", Stride),
            ("a_k", Stride),
            ("b", In),
            ("b_at", Size),
            ("b_i", Stride),
            ("b_r", Stride),
            ("c", Out),
            ("c_at", Size),
            ("c_i", Stride),
            ("c_r", Stride),
        ],
        "trtri_block" => vec![
            ("n", Size),
            ("upper", Size),
            ("unit", Size),
            ("a", In),
            ("a_at", Size),
            ("a_ld", Size),
            ("v", Out),
            ("v_at", Size),
            ("v_ld", Size),
        ],
        "getrf_panel" => vec![
            ("m", Size),
            ("n", Size),
            ("pivoting", Size),
            ("first", Size),
            ("a", Out),
            ("a_at", Size),
            ("a_ld", Size),
            ("ipiv", IndicesOut),
            ("ipiv_at", Size),
            ("info", IndicesOut),
            ("info_at", Size),
        ],
        "getrf_column" => {
            let panel = signature("getrf_panel");
            [&panel[..4], &[("step", Size)], &panel[4..], &[("notes", Out)]].concat()
        }
        "enter_strips" => vec![("m", Size), ("n", Size), ("a", In), ("a_at", Size), ("a_ld", Size), ("strips", Out)],
        "leave_strips" => vec![
            ("m", Size),
            ("n", Size),
            ("first", Size),
            ("strips", In),
            ("a", Out),
            ("a_at", Size),
            ("a_ld", Size),
            ("ipiv", Indices),
            ("ipiv_at", Size),
        ],
        "getrf_strip" => vec![
            ("n", Size),
            ("pivoting", Size),
            ("first", Size),
            ("step", Size),
            ("strips", Out),
            ("ipiv", IndicesOut),
            ("ipiv_at", Size),
            ("info", IndicesOut),
            ("info_at", Size),
        ],
        "getrf_strips" => {
            let step = signature("getrf_strip");
            [&step[..3], &step[4..], &[("turns", Synchronisation)]].concat()
        }
        _ => unreachable!("no program holds a kernel `{kernel}`"),
    }
}

impl Takes {
    pub fn is_memory(self) -> bool {
        self.is_elements() || matches!(self, Takes::Indices | Takes::IndicesOut | Takes::Synchronisation)
    }

    pub fn is_elements(self) -> bool {
        matches!(self, Takes::In | Takes::Out)
    }

    pub fn is_written(self) -> bool {
        matches!(self, Takes::Out | Takes::IndicesOut | Takes::Synchronisation)
    }
}
