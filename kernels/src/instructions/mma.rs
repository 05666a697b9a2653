//! The program of a product by the kernel `gemm_mma`.

use lapidary_core::{DType, Op};

use super::gemm::Product;
use crate::mma::MmaParams;
use crate::params::VectorParams;
use crate::program::Program;

/// Returns the program for a product. Returns `None` if the kernel computes only products of whole tiles of aligned operands, and the
/// product is none.
pub(super) fn program<B>(dtype: DType, params: MmaParams, product: &Product<'_, B>) -> Option<Program> {
    let Product { k, a, b, c, .. } = *product;
    let is_whole = c.rows.is_multiple_of(params.mwg) && c.cols.is_multiple_of(params.nwg) && k.is_multiple_of(params.kwg);
    // a copy moves a vector, whose place is a multiple of 16 bytes
    let vector = VectorParams::vector(dtype);
    let aligned = [a.1, b.1, c].iter().all(|view| view.at.is_multiple_of(vector) && view.ld.is_multiple_of(vector));
    let [trans_a, trans_b] = [a.0, b.0].map(Op::is_trans);
    let program = Program::GemmMma { dtype, params, trans_a, trans_b, guarded: !is_whole, aligned, loops: false };
    (params.guarded || (is_whole && aligned)).then_some(program)
}

/// Returns the program of the same product in which a work-group may compute several tiles.
pub(super) fn looping(program: Program) -> Program {
    match program {
        Program::GemmMma { dtype, params, trans_a, trans_b, guarded, aligned, .. } => {
            Program::GemmMma { dtype, params, trans_a, trans_b, guarded, aligned, loops: true }
        }
        other => other,
    }
}
