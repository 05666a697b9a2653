//! The flags of the BLAS and LAPACK routines, under their standard names.

use std::fmt;

/// How an operand enters a product: `op(A)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Op {
    /// `op(A) = A`.
    #[default]
    NoTrans,
    /// `op(A) = Aᵀ`.
    Trans,
    /// `op(A) = Aᴴ`; the same as [`Op::Trans`] for real matrices.
    ConjTrans,
    /// `op(A) = Ā`: what [`Op::ConjTrans`] is on the transposed memory.
    Conj,
}

impl Op {
    /// Whether rows and columns are exchanged.
    #[inline]
    #[must_use]
    pub fn is_trans(self) -> bool {
        matches!(self, Op::Trans | Op::ConjTrans)
    }

    /// The operation seen from the transposed matrix.
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

    /// Rows and columns of `op(A)` for a matrix `A` of `rows` × `cols`.
    #[inline]
    #[must_use]
    pub fn shape(self, (rows, cols): (usize, usize)) -> (usize, usize) {
        if self.is_trans() { (cols, rows) } else { (rows, cols) }
    }
}

/// The side on which a triangular matrix stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Side {
    /// `op(A)·X = α·B`.
    #[default]
    Left,
    /// `X·op(A) = α·B`.
    Right,
}

impl Side {
    /// The other side.
    #[must_use]
    pub fn flip(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

/// The triangle that is referenced; the other one is never read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Uplo {
    /// The lower triangle.
    #[default]
    Lower,
    /// The upper triangle.
    Upper,
}

impl Uplo {
    /// The other triangle.
    #[must_use]
    pub fn flip(self) -> Uplo {
        match self {
            Uplo::Lower => Uplo::Upper,
            Uplo::Upper => Uplo::Lower,
        }
    }

    /// The triangle that `op(A)` occupies.
    #[inline]
    #[must_use]
    pub fn under(self, op: Op) -> Uplo {
        if op.is_trans() { self.flip() } else { self }
    }
}

/// What stands on the diagonal of a triangular matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Diag {
    /// The stored diagonal is used.
    #[default]
    NonUnit,
    /// The diagonal is one and never read.
    Unit,
}

/// How the elements of a matrix follow one another in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Element (i, j) at `i + j·ld`: the layout inside Lapidary.
    #[default]
    ColMajor,
    /// Element (i, j) at `i·ld + j`: converted at the edge.
    RowMajor,
}

impl Layout {
    /// The layout in which the same memory holds the transposed matrix.
    #[must_use]
    pub fn flip(self) -> Layout {
        match self {
            Layout::ColMajor => Layout::RowMajor,
            Layout::RowMajor => Layout::ColMajor,
        }
    }
}

/// How a triangular solve treats the blocks on the diagonal of `op(A)`.
///
/// `docs/numerics.md`, bound 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TrsmMode {
    /// Diagonal blocks are inverted and multiplied (Du Croz and Higham 1992):
    /// everything is a matrix product, with a weaker error bound.
    Inverted,
    /// Forward or back substitution: row by row the smallest residual.
    #[default]
    Substitution,
}

/// The letter of a flag in the BLAS interface, for printing.
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
