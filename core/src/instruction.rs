//! The instructions: kernels run on registers.
//!
//! An [`Instruction`] is a specification. What each one means, to the last edge
//! case, is defined by the plain loops of the CPU backend's reference path;
//! every other kernel is held to that. `O` is the operand: a [`Tile`] of a
//! virtual register in a plan, a resolved piece of memory at a device.
//!
//! Contract of every kernel: a result with factor `β = 0` is written without
//! being read; with `α = 0` (or `k = 0`) the factors are not read; the opposite
//! triangle and a unit diagonal are never read; NaN and Inf propagate as in the
//! plain loops; nothing outside the operands' rectangles is written.

use std::fmt;

use crate::enums::{Diag, Op, Side, Uplo};
use crate::routine::flops;
use crate::value::Value;

/// A virtual register: a linear region of one device's memory, holding a
/// column-major matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("r{}", self.0))
    }
}

/// A rectangle by its first element and its extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// First row.
    pub row: usize,
    /// First column.
    pub col: usize,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
}

impl Region {
    /// The whole of a matrix of `rows` × `cols`.
    #[must_use]
    pub fn whole(rows: usize, cols: usize) -> Self {
        Region { row: 0, col: 0, rows, cols }
    }

    /// The same rectangle seen from a frame whose origin lies at `-(row, col)`.
    #[must_use]
    pub fn shifted(self, row: usize, col: usize) -> Self {
        Region { row: self.row + row, col: self.col + col, ..self }
    }

    /// Whether the rectangles share an element.
    #[must_use]
    pub fn overlaps(&self, other: &Region) -> bool {
        let meet = |a: usize, n: usize, b: usize, m: usize| a < b + m && b < a + n;
        meet(self.row, self.rows, other.row, other.rows) && meet(self.col, self.cols, other.col, other.cols)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Region { row, col, rows, cols } = self;
        write!(f, "[{row}:{}, {col}:{}]", row + rows, col + cols)
    }
}

/// A rectangle of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tile {
    /// The register.
    pub reg: Reg,
    /// The rectangle inside it.
    pub region: Region,
}

impl Tile {
    /// The rectangle of `rows` × `cols` at (`row`, `col`) of this tile.
    #[must_use]
    pub fn sub(self, row: usize, col: usize, rows: usize, cols: usize) -> Tile {
        debug_assert!(row + rows <= self.region.rows && col + cols <= self.region.cols);
        Tile { region: Region { row, col, rows, cols }.shifted(self.region.row, self.region.col), ..self }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.region.rows
    }

    /// Number of columns.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.region.cols
    }
}

/// What a command does to a piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// It only reads.
    Read,
    /// It writes, and may read first.
    Write,
}

/// How rows are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swaps {
    /// The pivots exchange rows of the tile, or its columns (a transposed matrix).
    pub side: Side,
    /// In order, or in reverse order.
    pub forward: bool,
    /// The row of the matrix that is the tile's row 0: pivots count from the
    /// matrix's first row.
    pub first_row: usize,
}

/// A kernel run on operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instruction<O = Tile> {
    /// `C ← α·op(A)·op(B) + β·C`.
    Gemm {
        /// Factor of the product.
        alpha: Value,
        /// How A enters.
        op_a: Op,
        /// Left factor.
        a: O,
        /// How B enters.
        op_b: Op,
        /// Right factor.
        b: O,
        /// Factor of the old C.
        beta: Value,
        /// Result.
        c: O,
    },
    /// `B ← α·op(A)⁻¹·B` (left) or `B ← α·B·op(A)⁻¹` (right) by substitution.
    Trsm {
        /// Side of A.
        side: Side,
        /// Triangle of A that is read.
        uplo: Uplo,
        /// How A enters.
        op: Op,
        /// Diagonal of A.
        diag: Diag,
        /// Factor of B.
        alpha: Value,
        /// The triangle.
        a: O,
        /// Right-hand sides, replaced by the solution.
        b: O,
    },
    /// `V ← A⁻¹` for a triangular A; the opposite triangle of V becomes zero.
    Trtri {
        /// Triangle of A that is read.
        uplo: Uplo,
        /// Diagonal of A.
        diag: Diag,
        /// The triangle.
        a: O,
        /// The inverse.
        inverse: O,
    },
    /// `A = P·L·U` of a panel, `info` ← 1 + the first row with a zero pivot
    /// unless it is set already.
    Getrf {
        /// Whether rows are exchanged.
        pivoting: bool,
        /// The row of the matrix that is the panel's row 0.
        first_row: usize,
        /// The panel, replaced by L and U.
        a: O,
        /// Pivots of the panel (`i32`, one column).
        ipiv: O,
        /// One `i32`.
        info: O,
    },
    /// Rows of A exchanged: `i` with `ipiv[i]`.
    Laswp {
        /// Rows or columns, order, origin.
        swaps: Swaps,
        /// The matrix.
        a: O,
        /// The pivots (`i32`, one column).
        ipiv: O,
    },
    /// `B ← A`.
    Copy {
        /// Source.
        a: O,
        /// Destination.
        b: O,
    },
    /// `C ← β·C`.
    Scale {
        /// The factor.
        beta: Value,
        /// The matrix.
        c: O,
    },
    /// [`Instruction::Gemm`] of each of `count` matrices. The matrices of an operand lie side by side: matrix i is the
    /// columns `i·n .. (i + 1)·n` of an operand of `count·n` columns. So they do in all batched instructions.
    GemmBatched {
        /// Number of matrices in each operand.
        count: usize,
        /// Factor of the products.
        alpha: Value,
        /// How the matrices of A enter.
        op_a: Op,
        /// Left factors.
        a: O,
        /// How the matrices of B enter.
        op_b: Op,
        /// Right factors.
        b: O,
        /// Factor of the old C.
        beta: Value,
        /// Results.
        c: O,
    },
    /// `A = P·L·U` of each of `count` matrices.
    GetrfBatched {
        /// Number of matrices.
        count: usize,
        /// Whether rows are exchanged.
        pivoting: bool,
        /// The matrices, replaced by L and U.
        a: O,
        /// Pivots of one matrix after the other (`i32`, one column); they count from the first row of their matrix.
        ipiv: O,
        /// Output, one `i32` for each matrix, in one column: 0, or the number, from 1, of the first zero pivot.
        info: O,
    },
    /// `B ← op(A)⁻¹·B` of each of `count` matrices, from the results of [`Instruction::GetrfBatched`] on square matrices.
    GetrsBatched {
        /// Number of matrices.
        count: usize,
        /// How A enters.
        op: Op,
        /// Factors.
        lu: O,
        /// Pivots of one matrix after the other (`i32`, one column).
        ipiv: O,
        /// Right-hand sides, replaced by the solutions.
        b: O,
    },
    /// Finds the first zero on the diagonal of each of `count` square matrices.
    ZeroPivots {
        /// Number of matrices.
        count: usize,
        /// Factors.
        lu: O,
        /// Output, one `i32` for each matrix, in one column: 0, or the number, from 1, of the row with that zero.
        info: O,
    },
}

impl<O: Copy> Instruction<O> {
    /// The standard name of the kernel.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Instruction::Gemm { .. } => "gemm",
            Instruction::Trsm { .. } => "trsm",
            Instruction::Trtri { .. } => "trtri",
            Instruction::Getrf { .. } => "getrf",
            Instruction::Laswp { .. } => "laswp",
            Instruction::Copy { .. } => "copy",
            Instruction::Scale { .. } => "scale",
            Instruction::GemmBatched { .. } => "gemm_batched",
            Instruction::GetrfBatched { .. } => "getrf_batched",
            Instruction::GetrsBatched { .. } => "getrs_batched",
            Instruction::ZeroPivots { .. } => "zero_pivots",
        }
    }

    /// Every operand, in a fixed order, with what is done to it.
    pub fn operands(&self, mut visit: impl FnMut(O, Access)) {
        use Access::{Read, Write};
        match *self {
            Instruction::Gemm { a, b, c, .. } | Instruction::GemmBatched { a, b, c, .. } => {
                visit(a, Read);
                visit(b, Read);
                visit(c, Write);
            }
            Instruction::Trsm { a, b, .. } => {
                visit(a, Read);
                visit(b, Write);
            }
            Instruction::Trtri { a, inverse, .. } => {
                visit(a, Read);
                visit(inverse, Write);
            }
            Instruction::Getrf { a, ipiv, info, .. } | Instruction::GetrfBatched { a, ipiv, info, .. } => {
                visit(a, Write);
                visit(ipiv, Write);
                visit(info, Write);
            }
            Instruction::Laswp { a, ipiv, .. } => {
                visit(a, Write);
                visit(ipiv, Read);
            }
            Instruction::Copy { a, b } => {
                visit(a, Read);
                visit(b, Write);
            }
            Instruction::Scale { c, .. } => visit(c, Write),
            Instruction::GetrsBatched { lu, ipiv, b, .. } => {
                visit(lu, Read);
                visit(ipiv, Read);
                visit(b, Write);
            }
            Instruction::ZeroPivots { lu, info, .. } => {
                visit(lu, Read);
                visit(info, Write);
            }
        }
    }

    /// Whether the old elements of an operand, by its number in that order, have a part in what the instruction does.
    #[must_use]
    pub fn reads(&self, operand: usize) -> bool {
        match (self, operand) {
            (Instruction::Gemm { beta, .. } | Instruction::GemmBatched { beta, .. }, 2) | (Instruction::Scale { beta, .. }, 0) => {
                !beta.is_zero()
            }
            (Instruction::Copy { .. } | Instruction::Getrf { .. } | Instruction::ZeroPivots { .. }, 1)
            | (Instruction::GetrfBatched { .. }, 1 | 2) => false,
            _ => true,
        }
    }

    /// The same instruction on other operands, visited in the order of
    /// [`Instruction::operands`].
    #[inline]
    pub fn map<P>(&self, mut f: impl FnMut(O) -> P) -> Instruction<P> {
        match *self {
            Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c } => {
                Instruction::Gemm { alpha, op_a, a: f(a), op_b, b: f(b), beta, c: f(c) }
            }
            Instruction::Trsm { side, uplo, op, diag, alpha, a, b } => {
                Instruction::Trsm { side, uplo, op, diag, alpha, a: f(a), b: f(b) }
            }
            Instruction::Trtri { uplo, diag, a, inverse } => Instruction::Trtri { uplo, diag, a: f(a), inverse: f(inverse) },
            Instruction::Getrf { pivoting, first_row, a, ipiv, info } => {
                Instruction::Getrf { pivoting, first_row, a: f(a), ipiv: f(ipiv), info: f(info) }
            }
            Instruction::Laswp { swaps, a, ipiv } => Instruction::Laswp { swaps, a: f(a), ipiv: f(ipiv) },
            Instruction::Copy { a, b } => Instruction::Copy { a: f(a), b: f(b) },
            Instruction::Scale { beta, c } => Instruction::Scale { beta, c: f(c) },
            Instruction::GemmBatched { count, alpha, op_a, a, op_b, b, beta, c } => {
                Instruction::GemmBatched { count, alpha, op_a, a: f(a), op_b, b: f(b), beta, c: f(c) }
            }
            Instruction::GetrfBatched { count, pivoting, a, ipiv, info } => {
                Instruction::GetrfBatched { count, pivoting, a: f(a), ipiv: f(ipiv), info: f(info) }
            }
            Instruction::GetrsBatched { count, op, lu, ipiv, b } => {
                Instruction::GetrsBatched { count, op, lu: f(lu), ipiv: f(ipiv), b: f(b) }
            }
            Instruction::ZeroPivots { count, lu, info } => Instruction::ZeroPivots { count, lu: f(lu), info: f(info) },
        }
    }
}

/// An operand whose shape is known.
pub trait Extent {
    /// Rows and columns.
    fn extent(&self) -> (usize, usize);
}

impl Extent for Tile {
    fn extent(&self) -> (usize, usize) {
        (self.rows(), self.cols())
    }
}

impl<O: Extent + Copy> Instruction<O> {
    /// Floating-point operations, for cost models.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn flops(&self) -> f64 {
        let sides = |operand: &O| (operand.extent().0 as f64, operand.extent().1 as f64);
        let area = |operand: &O| sides(operand).0 * sides(operand).1;
        let lu = |(rows, cols)| flops::getrf(rows, cols);
        match self {
            Instruction::Gemm { op_a, a, c, .. } => 2.0 * area(c) * op_a.shape(a.extent()).1 as f64,
            Instruction::Trsm { a, b, .. } => sides(a).0 * area(b),
            Instruction::Trtri { a, .. } => area(a) * sides(a).0 / 3.0,
            Instruction::Getrf { a, .. } => lu(a.extent()),
            Instruction::GemmBatched { count, op_a, a, c, .. } => {
                2.0 * area(c) * op_a.shape((a.extent().0, a.extent().1 / (*count).max(1))).1 as f64
            }
            Instruction::GetrfBatched { count, a, .. } => *count as f64 * lu((a.extent().0, a.extent().1 / (*count).max(1))),
            Instruction::GetrsBatched { lu, b, .. } => 2.0 * sides(lu).0 * area(b),
            Instruction::Laswp { .. } | Instruction::Copy { .. } | Instruction::Scale { .. } | Instruction::ZeroPivots { .. } => {
                0.0
            }
        }
    }

    /// Number of elements of all operands, for cost models.
    #[must_use]
    pub fn elements(&self) -> usize {
        let mut count = 0;
        self.operands(|operand, _| count += operand.extent().0 * operand.extent().1);
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rectangle_moves_both_ways_and_overlaps_what_it_shares_an_element_with() {
        let square = |row, col| Region { row, col, rows: 2, cols: 2 };
        assert_eq!(square(1, 2).shifted(3, 4), square(4, 6));
        let tile = Tile { reg: Reg(0), region: Region::whole(9, 9) };
        assert_eq!(tile.sub(1, 2, 5, 5).sub(1, 2, 2, 2).region, square(2, 4));
        let overlapping = |row, col| square(4, 4).overlaps(&square(row, col));
        assert!([(3, 3), (3, 5), (5, 3), (5, 5), (4, 4)].into_iter().all(|(row, col)| overlapping(row, col)));
        assert!([(2, 4), (6, 4), (4, 2), (4, 6), (2, 2), (6, 6), (2, 6)].into_iter().all(|(row, col)| !overlapping(row, col)));
    }
    #[test]
    fn operations_are_counted_as_usual() {
        let tile = |rows, cols| Tile { reg: Reg(0), region: Region::whole(rows, cols) };
        let count = |instruction: Instruction| instruction.flops();
        let (op_a, op_b) = (Op::Trans, Op::NoTrans);
        let product = Instruction::Gemm {
            alpha: Value::F64(1.0),
            op_a,
            a: tile(5, 3),
            op_b,
            b: tile(5, 4),
            beta: Value::F64(1.0),
            c: tile(3, 4),
        };
        assert_eq!(count(product), 2.0 * 3.0 * 4.0 * 5.0);
        let (side, uplo, op, diag) = (Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
        assert_eq!(
            count(Instruction::Trsm { side, uplo, op, diag, alpha: Value::F64(1.0), a: tile(3, 3), b: tile(3, 5) }),
            3.0 * 3.0 * 5.0
        );
        assert_eq!(count(Instruction::Trtri { uplo, diag, a: tile(6, 6), inverse: tile(6, 6) }), 72.0);
        let panel = |m, n| Instruction::Getrf { pivoting: true, first_row: 0, a: tile(m, n), ipiv: tile(n, 1), info: tile(1, 1) };
        // 2·m·n·r − (m + n)·r² + 2/3·r³ with r = min(m, n)
        let (square, tall) = (count(panel(6, 6)), count(panel(9, 3)));
        assert_eq!((square, tall), (2.0 / 3.0 * 216.0, 2.0 * 9.0 * 9.0 - 12.0 * 9.0 + 2.0 / 3.0 * 27.0));
        assert_eq!(count(Instruction::Scale { beta: Value::F64(2.0), c: tile(3, 3) }), 0.0);
        let (alpha, beta) = (Value::F64(1.0), Value::F64(1.0));
        let products =
            Instruction::GemmBatched { count: 7, alpha, op_a, a: tile(5, 21), op_b, b: tile(5, 28), beta, c: tile(3, 28) };
        assert_eq!(count(products), 7.0 * count(product));
        let lus = Instruction::GetrfBatched { count: 7, pivoting: true, a: tile(9, 21), ipiv: tile(21, 1), info: tile(7, 1) };
        assert_eq!(count(lus), 7.0 * tall);
        assert_eq!(
            count(Instruction::GetrsBatched { count: 7, op, lu: tile(3, 21), ipiv: tile(21, 1), b: tile(3, 35) }),
            7.0 * 90.0
        );
        assert_eq!([product.elements(), panel(9, 3).elements()], [15 + 20 + 12, 27 + 3 + 1]);
    }
}
