//! The program of a product by the matrix units of a GPU.

use lapidary_core::Op;

use super::gemm::Product;
use crate::mma::MmaParams;
use crate::program::Program;

/// Returns the program for a product. Returns `None` if the kernel computes only products of whole tiles of aligned operands, and the
/// product is none.
pub(super) fn program<B>(params: MmaParams, product: &Product<'_, B>) -> Option<Program> {
    let Product { k, a, b, c, .. } = *product;
    let is_whole = c.rows.is_multiple_of(params.mwg) && c.cols.is_multiple_of(params.nwg) && k.is_multiple_of(params.kwg);
    // a copy moves two elements, whose place is a multiple of 16 bytes
    let aligned = [a.1, b.1, c].iter().all(|view| view.at.is_multiple_of(2) && view.ld.is_multiple_of(2));
    let [trans_a, trans_b] = [a.0, b.0].map(Op::is_trans);
    (params.guarded || (is_whole && aligned)).then_some(Program::GemmMma { params, trans_a, trans_b, guarded: !is_whole, aligned })
}
