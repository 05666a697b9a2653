//! The flags of BLAS and LAPACK routines, under their standard names.

use std::fmt;

/// The operation `op` in `op(A)`, which a routine applies to a matrix operand A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Op {
    /// `op(A) = A`.
    #[default]
    NoTrans,
    /// `op(A) = Aᵀ`.
    Trans,
    /// `op(A) = Aᴴ`, the conjugate transpose of A. For a real matrix, Aᴴ equals Aᵀ.
    ConjTrans,
    /// `op(A) = Ā`, the conjugate of A without transposition. [`Op::Conj`] of `Aᵀ` equals [`Op::ConjTrans`] of A.
    Conj,
}

impl Op {
    /// Whether the operation exchanges the rows and the columns of the matrix.
    #[inline]
    #[must_use]
    pub fn is_trans(self) -> bool {
        matches!(self, Op::Trans | Op::ConjTrans)
    }

    /// The operation whose result on `Aᵀ` equals the result of this operation on A.
    #[inline]
    #[must_use]
    pub fn flip(self) -> Op {
        match self {
            Op::NoTrans => Op::Trans,
            Op::Trans => Op::NoTrans,
            Op::ConjTrans => Op::Conj,
            Op::Conj => Op::ConjTrans,
        }
    }

    /// Number of rows and columns of `op(A)`, where `A` has `rows` rows and `cols` columns.
    #[inline]
    #[must_use]
    pub fn shape(self, (rows, cols): (usize, usize)) -> (usize, usize) {
        if self.is_trans() { (cols, rows) } else { (rows, cols) }
    }
}

/// The side from which a triangular matrix multiplies the unknown X of a triangular solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Side {
    /// `op(A)·X = α·B`.
    #[default]
    Left,
    /// `X·op(A) = α·B`.
    Right,
}

impl Side {
    /// The opposite side: left for right, and right for left.
    #[must_use]
    pub fn flip(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

/// The triangle of a matrix that a routine reads. The routine never reads the opposite triangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Uplo {
    /// The routine reads the lower triangle of the matrix.
    #[default]
    Lower,
    /// The routine reads the upper triangle of the matrix.
    Upper,
}

impl Uplo {
    /// The opposite triangle: lower for upper, and upper for lower.
    #[must_use]
    pub fn flip(self) -> Uplo {
        match self {
            Uplo::Lower => Uplo::Upper,
            Uplo::Upper => Uplo::Lower,
        }
    }

    /// The triangle of `op(A)` that corresponds to this triangle of A.
    #[inline]
    #[must_use]
    pub fn under(self, op: Op) -> Uplo {
        if op.is_trans() { self.flip() } else { self }
    }
}

/// Whether the diagonal of a triangular matrix is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Diag {
    /// The routine reads the diagonal from memory.
    #[default]
    NonUnit,
    /// All diagonal elements are one. The routine never reads the diagonal from memory.
    Unit,
}

/// The order of the elements of a matrix in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Element (i, j) lies at index `i + j·ld`. Algorithms and registers use this layout.
    #[default]
    ColMajor,
    /// Element (i, j) lies at index `i·ld + j`. Lapidary converts a row-major operand when a call begins.
    RowMajor,
}

impl Layout {
    /// The opposite layout: memory that holds a matrix in one layout holds its transpose in the opposite layout.
    #[must_use]
    pub fn flip(self) -> Layout {
        match self {
            Layout::ColMajor => Layout::RowMajor,
            Layout::RowMajor => Layout::ColMajor,
        }
    }
}

/// How a triangular solve handles the blocks on the diagonal of the triangular matrix `op(A)`.
///
/// `docs/numerics.md`, bound 7, states the error bounds of the two modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TrsmMode {
    /// The solve inverts each diagonal block and multiplies by the inverse (Du Croz and Higham 1992) where the device is faster with inverses
    /// and the inverse is accurate enough; the device checks each inverse. The solve substitutes for other blocks. The residual of the
    /// solution is small in norm. A GPU inverts blocks if its entries of the database of kernels name them. The CPU backend substitutes, and so do GPUs with few right-hand
    /// sides if they run the kernel `trsv`.
    #[default]
    Inverted,
    /// The solve uses forward or back substitution. The residual of each element of the solution is small.
    Substitution,
}

/// The error bound that a device must keep in each product A·B of a call. `docs/numerics.md` states both bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Accuracy {
    /// Bound 1: the error of each element is small relative to the sum of the magnitudes of its terms.
    #[default]
    Componentwise,
    /// Bound 15: the error of each element is small relative to the largest elements of A and B, if these are not much smaller than 1. This
    /// suffices for LU factors with which iterative refinement solves a system. A device may have faster instructions for such products.
    Normwise,
}

/// Implements `Display` for flags: a flag of the BLAS prints as its letter in the BLAS interface, and any other flag prints as a
/// word.
macro_rules! letters {
    ($($kind:ident { $($variant:ident => $letter:literal),+ })+) => {$(
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($kind::$variant => $letter),+ })
            }
        }
    )+};
}

letters! {
    Op { NoTrans => "N", Trans => "T", ConjTrans => "C", Conj => "R" }
    Side { Left => "L", Right => "R" }
    Uplo { Lower => "L", Upper => "U" }
    Diag { NonUnit => "N", Unit => "U" }
    Layout { ColMajor => "column-major", RowMajor => "row-major" }
    TrsmMode { Inverted => "inverted", Substitution => "substitution" }
}
