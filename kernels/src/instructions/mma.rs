//! The program of a product by the kernel `gemm_mma`.

use lapidary_core::{DType, Op};

use super::gemm::Product;
use crate::mma::MmaParams;
use crate::params::VectorParams;
use crate::program::Program;

/// Returns the program for a product. Returns `None` if the kernel computes only products of whole tiles or of aligned operands, and the
/// product is none.
pub(super) fn program<B>(dtype: DType, params: MmaParams, product: &Product<'_, B>) -> Option<Program> {
    let Product { k, a, b, c, .. } = *product;
    let is_whole = c.rows.is_multiple_of(params.mwg) && c.cols.is_multiple_of(params.nwg) && k.is_multiple_of(params.kwg);
    // a copy moves a vector, whose place is a multiple of 16 bytes
    let vector = VectorParams::vector(dtype);
    let aligned = [a.1, b.1, c].iter().all(|view| view.at.is_multiple_of(vector) && view.ld.is_multiple_of(vector));
    let [trans_a, trans_b] = [a.0, b.0].map(Op::is_trans);
    let program = Program::GemmMma { dtype, params, trans_a, trans_b, guarded: !is_whole, aligned, loops: false };
    let suits = (params.guarded || is_whole) && (aligned || (params.guarded && !params.aligned));
    suits.then_some(program)
}

#[cfg(test)]
mod tests {
    use lapidary_core::Value;

    use super::*;
    use crate::call::View;

    /// An entry for whole tiles or for aligned operands gives way to the next one if the product is none.
    #[test]
    fn an_entry_for_some_operands_leaves_others_to_the_next_entry() {
        let params = MmaParams {
            mwg: 64,
            nwg: 64,
            kwg: 16,
            mw: 32,
            nw: 32,
            stages: 3,
            raster: 8,
            split: 1,
            unit: 8,
            guarded: true,
            aligned: false,
            ptx: true,
        };
        let suits = |guarded, aligned, n, ld, at| {
            let of = (Op::NoTrans, View { buffer: &(), at, rows: n, cols: n, ld });
            let product = Product { k: n, alpha: Value::F64(1.0), a: of, b: of, beta: Value::F64(0.0), c: of.1 };
            program(DType::F64, MmaParams { guarded, aligned, ..params }, &product).is_some()
        };
        // whole tiles of aligned operands, parts of tiles, odd distances of columns, and odd places
        let products = [(128, 128, 0), (100, 128, 0), (128, 129, 0), (128, 130, 3)];
        let of_entry = |guarded, aligned| products.map(|(n, ld, at)| suits(guarded, aligned, n, ld, at));
        assert_eq!(of_entry(true, false), [true; 4]);
        assert_eq!(of_entry(true, true), [true, true, false, false]);
        assert_eq!([of_entry(false, false), of_entry(false, true)], [[true, false, false, false]; 2]);
    }
}
