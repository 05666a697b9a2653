//! The families of kernels for products, with the values of their parameters.

use lapidary_core::{Accuracy, DType, Limits};

use crate::block::BlockParams;
use crate::mma::MmaParams;
use crate::params::{PanelBlocks, PanelParams, TileParams, VectorParams};
use crate::program::Program;

/// A kernel for products, with the values of its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Product {
    /// Kernel that computes a tile of C from slices of A and B in local memory.
    Tile(TileParams),
    /// Kernel with vector loads, for operands that are aligned to vectors or are copied to aligned memory first.
    Vector(VectorParams),
    /// Kernel that multiplies packed panels of A and B without barriers.
    Panel(PanelParams, PanelBlocks),
    /// Kernel with one of several models of memory, for operands in any layout.
    Block(BlockParams),
    /// Kernel `gemm_mma`, which copies slices to local memory while it multiplies. In double precision, matrix units multiply.
    Mma(MmaParams),
}

impl Product {
    /// The names of all kernels for products.
    pub const KERNELS: [&str; 5] = ["gemm_tile", "gemm_vector", "gemm_panel", "gemm_block", "gemm_mma"];

    /// Returns the accuracy of the products that the kernel computes in `dtype`.
    #[must_use]
    pub fn accuracy(&self, dtype: DType) -> Accuracy {
        match self {
            Product::Mma(params) => params.accuracy(dtype),
            Product::Tile(_) | Product::Vector(_) | Product::Panel(..) | Product::Block(_) => Accuracy::Componentwise,
        }
    }

    /// Returns the name of the kernel.
    #[must_use]
    pub fn kernel(&self) -> &'static str {
        match self {
            Product::Tile(_) => "gemm_tile",
            Product::Vector(_) => "gemm_vector",
            Product::Panel(..) => "gemm_panel",
            Product::Block(_) => "gemm_block",
            Product::Mma(_) => "gemm_mma",
        }
    }

    /// Returns the names and values of the parameters.
    #[must_use]
    pub fn values(&self) -> Vec<(&'static str, usize)> {
        match self {
            Product::Tile(params) => params.values(),
            Product::Vector(params) => params.values(),
            Product::Panel(params, blocks) => [params.values(), blocks.values()].concat(),
            Product::Block(params) => params.values(),
            Product::Mma(params) => params.values(),
        }
    }

    /// Makes a kernel from its name and the values that `value` returns for the names of its parameters. Returns `None` if no
    /// kernel for products has the name `kernel`.
    ///
    /// # Errors
    /// `value` returns `None` for a parameter without a default, or a flag is neither 0 nor 1.
    pub fn from_values(kernel: &str, mut value: impl FnMut(&str) -> Option<usize>) -> Option<Result<Self, String>> {
        match kernel {
            "gemm_tile" => Some(TileParams::from_values(value).map(Product::Tile)),
            "gemm_vector" => Some(VectorParams::from_values(value).map(Product::Vector)),
            "gemm_panel" => {
                let params = PanelParams::from_values(&mut value);
                Some(params.and_then(|params| Ok(Product::Panel(params, PanelBlocks::from_values(value)?))))
            }
            "gemm_block" => Some(BlockParams::from_values(value).map(Product::Block)),
            "gemm_mma" => Some(MmaParams::from_values(value).map(Product::Mma)),
            _ => None,
        }
    }

    /// Returns the number of rows and of columns of C per work-group.
    #[must_use]
    pub fn tile(&self) -> [usize; 2] {
        match *self {
            Product::Tile(params) => [params.mwg, params.nwg],
            Product::Vector(params) => [params.mwg, params.nwg],
            Product::Panel(params, _) => [params.mr() * params.group, params.nr],
            Product::Block(params) => [params.mwg, params.nwg],
            Product::Mma(params) => [params.mwg, params.nwg],
        }
    }

    /// Returns the number of parts into which the kernel divides `k` terms.
    #[must_use]
    pub fn parts(&self, k: usize) -> usize {
        match self {
            Product::Block(params) => params.parts(k),
            Product::Mma(params) => params.parts(k),
            Product::Tile(_) | Product::Vector(_) | Product::Panel(..) => 1,
        }
    }

    /// Returns the number of work-groups that compute all parts of a product with the sizes m, n and k.
    #[must_use]
    pub fn groups(&self, [m, n, k]: [usize; 3]) -> usize {
        let [mwg, nwg] = self.tile();
        m.div_ceil(mwg).saturating_mul(n.div_ceil(nwg)).saturating_mul(self.parts(k))
    }

    /// Returns the program of a large product in which no operand is transposed.
    #[must_use]
    pub fn program(&self, dtype: DType) -> Program {
        match *self {
            Product::Tile(params) => Program::GemmTile { dtype, params, trans_a: false, trans_b: false },
            Product::Panel(params, _) => Program::GemmPanel { dtype, params },
            Product::Block(params) => Program::GemmBlock { dtype, params, trans_a: false, trans_b: false, sizes: None },
            Product::Mma(params) => Program::GemmMma {
                dtype,
                params,
                trans_a: false,
                trans_b: false,
                guarded: params.guarded,
                aligned: true,
                loops: false,
            },
            Product::Vector(params) => Program::GemmVector { dtype, params, trans_b: !params.transposes_b(dtype), vec_c: true },
        }
    }

    /// Checks that the kernel can be compiled and run within `limits`. Vector registers of the device have `vector_bits` bits.
    ///
    /// # Errors
    /// A parameter violates a constraint, which the error states with its reason.
    pub fn check(&self, dtype: DType, limits: &Limits, vector_bits: usize) -> Result<(), String> {
        match self {
            Product::Tile(params) => params.check(dtype, limits),
            Product::Vector(params) => params.check(dtype, limits),
            Product::Block(params) => params.check(dtype, limits),
            Product::Mma(params) => params.check(dtype, limits),
            Product::Panel(params, blocks) => params.check(dtype, limits, vector_bits).and_then(|()| blocks.check()),
        }
    }
}
