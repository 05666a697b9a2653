//! The program of a product of operands in any layout, with one of several models of memory.

use lapidary_core::DType;

use crate::block::BlockParams;
use crate::program::Program;

/// Returns the program for a product with the sizes m, n and k on a device that launches at most `groups` work-groups in each
/// dimension. A product with more tiles is computed in parts.
pub(super) fn program(
    dtype: DType,
    params: BlockParams,
    [trans_a, trans_b]: [bool; 2],
    sizes @ [m, n, _]: [usize; 3],
    groups: usize,
) -> Program {
    let [max_rows, max_cols] = [params.mwg, params.nwg].map(|side| side.saturating_mul(groups));
    // every part, of which the last one is the smallest, must have enough rows for a vector
    let last_rows = (m - 1) % max_rows + 1;
    let params = if last_rows < params.vw { BlockParams { vw: 1, ..params } } else { params };
    // parts have several sizes, but a text has one size
    let is_one_part = m <= max_rows && n <= max_cols;
    let sizes = (params.inline == 1 && is_one_part).then_some(sizes);
    Program::GemmBlock { dtype, params, trans_a, trans_b, sizes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_rows_for_a_vector_and_the_sizes_of_the_text() {
        let params = BlockParams { mwg: 8, nwg: 4, vw: 4, inline: 1, ..BlockParams::PLAIN };
        let chosen = |m, n| match program(DType::F32, params, [false; 2], [m, n, 5], 2) {
            Program::GemmBlock { params, sizes, .. } => (params.vw, sizes),
            other => panic!("{other:?}"),
        };
        assert_eq!([chosen(16, 8), chosen(4, 1)], [(4, Some([16, 8, 5])), (4, Some([4, 1, 5]))]);
        assert_eq!(chosen(3, 8), (1, Some([3, 8, 5])), "no vector of rows");
        assert_eq!([chosen(19, 8), chosen(20, 8), chosen(16, 9)], [(1, None), (4, None), (4, None)], "more than one part");
    }
}
