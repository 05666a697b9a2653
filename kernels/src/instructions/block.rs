//! Products of operands in any layout, with one of several models of memory.

use lapidary_core::Result;

use super::Sequence;
use super::gemm::Product;
use crate::block::BlockParams;
use crate::call::Target;
use crate::program::Program;

impl<D: Target> Sequence<'_, D> {
    pub(super) unsafe fn block(&mut self, params: BlockParams, product: Product<'_, D::Buffer>) -> Result<()> {
        let Product { k, a, b, c, .. } = product;
        // a product with more rows or columns than a launch covers is computed in parts, of which the last one is smaller
        let most_rows = params.mwg.saturating_mul(self.device.facts().limits.groups);
        let most_cols = params.nwg.saturating_mul(self.device.facts().limits.groups);
        let last_rows = (c.rows - 1) % most_rows + 1;
        // every part must have enough rows for a vector
        let params = if last_rows < params.vw { BlockParams { vw: 1, ..params } } else { params };
        let is_one_launch = c.rows <= most_rows && c.cols <= most_cols;
        let sizes = (params.inline == 1 && is_one_launch).then_some([c.rows, c.cols, k]);
        let (trans_a, trans_b) = (a.0.is_trans(), b.0.is_trans());
        let program = Program::GemmBlock { dtype: self.dtype, params, trans_a, trans_b, sizes };
        // SAFETY: the caller upholds the contract of this module, and no kernel reads or writes beyond the edges of a part.
        unsafe { self.tiles(program, "gemm_block", [params.mwg, params.nwg], product) }
    }
}
