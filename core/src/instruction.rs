//! Instructions: kernels that run on registers.
//!
//! An [`Instruction`] specifies a kernel. The plain loops in the CPU backend define the result of each instruction, and all other
//! kernels must agree with these loops. The type parameter `O` of an instruction is the type of its operands: a [`Tile`] of a
//! virtual register in a plan, or a region of a device's memory in a call of a device.
//!
//! Contract of every kernel:
//! - If β = 0, the kernel writes C without reading the old values of C.
//! - If α = 0 or k = 0, the kernel of a product reads neither A nor B.
//! - The kernel never reads the triangle of A opposite to the triangle that `uplo` names, nor a unit diagonal.
//! - NaN and Inf propagate as in the plain loops of the CPU backend.
//! - The kernel writes nothing outside the rectangles of its operands.

use std::fmt;

use crate::enums::{Diag, Op, Side, TrsmMode, Uplo};
use crate::routine::flops;
use crate::value::Value;

/// A virtual register: a linear region of one device's memory that holds a column-major matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(pub u32);

impl fmt::Display for Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("r{}", self.0))
    }
}

/// A rectangle of a matrix, given by its first element and its extents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// First row of the rectangle.
    pub row: usize,
    /// First column of the rectangle.
    pub col: usize,
    /// Number of rows of the rectangle.
    pub rows: usize,
    /// Number of columns of the rectangle.
    pub cols: usize,
}

impl Region {
    /// The rectangle that covers a whole matrix of `rows` × `cols`.
    #[must_use]
    pub fn whole(rows: usize, cols: usize) -> Self {
        Region { row: 0, col: 0, rows, cols }
    }

    /// This rectangle, moved down by `row` rows and to the right by `col` columns.
    #[must_use]
    pub fn shifted(self, row: usize, col: usize) -> Self {
        Region { row: self.row + row, col: self.col + col, ..self }
    }

    /// Whether the rectangles `self` and `other` share an element.
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
    /// The register that contains the rectangle.
    pub reg: Reg,
    /// The rectangle inside the register.
    pub region: Region,
}

impl Tile {
    /// The part of this tile with `rows` × `cols` elements, whose first element is element (`row`, `col`) of this tile.
    #[must_use]
    pub fn sub(self, row: usize, col: usize, rows: usize, cols: usize) -> Tile {
        debug_assert!(row + rows <= self.region.rows && col + cols <= self.region.cols);
        Tile { region: Region { row, col, rows, cols }.shifted(self.region.row, self.region.col), ..self }
    }

    /// Number of rows of the tile.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.region.rows
    }

    /// Number of columns of the tile.
    #[must_use]
    pub fn cols(&self) -> usize {
        self.region.cols
    }
}

/// How a command accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// The command only reads the memory.
    Read,
    /// The command writes the memory, and may read the memory before it writes.
    Write,
}

/// Side, order and first row of exchanges of rows or columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swaps {
    /// Whether the instruction exchanges rows (left) or columns (right) of the tile. If the tile belongs to the transpose of the
    /// caller's matrix, columns must be exchanged instead of rows.
    pub side: Side,
    /// Whether the exchanges are made in ascending order of the pivots. The value `false` means descending order.
    pub forward: bool,
    /// The index in the whole matrix of row 0 of the tile. Pivots are indices of rows of the whole matrix.
    pub first_row: usize,
}

/// A kernel with its operands and parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instruction<O = Tile> {
    /// The matrix product `C ← α·op(A)·op(B) + β·C`.
    Gemm {
        /// The scalar α of the product.
        alpha: Value,
        /// The operation that is applied to A.
        op_a: Op,
        /// The left operand A of the product.
        a: O,
        /// The operation that is applied to B.
        op_b: Op,
        /// The right operand B of the product.
        b: O,
        /// The scalar β, by which the old C is multiplied.
        beta: Value,
        /// The matrix C, which the kernel replaces by the result.
        c: O,
    },
    /// The triangular solve `B ← α·op(A)⁻¹·B` (left) or `B ← α·B·op(A)⁻¹` (right).
    Trsm {
        /// Whether the kernel may multiply by inverses of diagonal blocks. A device that inverts no blocks, such as that of the CPU
        /// backend, substitutes in both modes.
        mode: TrsmMode,
        /// The side from which A multiplies the solution.
        side: Side,
        /// The triangle of A that the kernel reads.
        uplo: Uplo,
        /// The operation that is applied to A.
        op: Op,
        /// Whether the diagonal of A is stored or consists of ones.
        diag: Diag,
        /// The scalar α, by which B is multiplied.
        alpha: Value,
        /// The triangular matrix A.
        a: O,
        /// The right-hand sides B, which the kernel replaces by the solution.
        b: O,
    },
    /// The LU factorisation `A = P·L·U` of a panel. If a pivot is zero and `info` is still 0, the kernel sets `info` to the
    /// number, counted from 1, of the first row of the matrix with a zero pivot.
    Getrf {
        /// Whether the kernel exchanges rows.
        pivoting: bool,
        /// The index in the whole matrix of row 0 of the panel.
        first_row: usize,
        /// The panel A, which the kernel replaces by L and U.
        a: O,
        /// Output: the pivots of the panel (`i32`, one column).
        ipiv: O,
        /// Input and output, one `i32`: 0, or the number, counted from 1, of the first zero pivot of the matrix.
        info: O,
    },
    /// Exchanges of rows of A: the kernel exchanges row `i` with row `ipiv[i]` for each `i`.
    Laswp {
        /// Side, order and first row of the exchanges.
        swaps: Swaps,
        /// The matrix A, whose rows or columns the kernel exchanges.
        a: O,
        /// The pivots (`i32`, one column).
        ipiv: O,
    },
    /// The copy `B ← A`.
    Copy {
        /// The source A.
        a: O,
        /// The destination B.
        b: O,
    },
    /// The copy `B ← α·A` from `f64` to `f32`. Each element is rounded to the nearest number of `f32`.
    Narrow {
        /// The scalar α.
        alpha: Value,
        /// The source A, in `f64`.
        a: O,
        /// The destination B, in `f32`.
        b: O,
    },
    /// The multiplication of a matrix by a scalar, `C ← β·C`.
    Scale {
        /// The scalar β.
        beta: Value,
        /// The matrix C, which the kernel multiplies by β.
        c: O,
    },
    /// The product `C ← α·op(A)·op(B) + β·C` for each of `count` triples of matrices. In every batched instruction the matrices
    /// of an operand lie side by side: matrix i consists of the columns `i·n .. (i + 1)·n` of an operand with `count·n` columns.
    GemmBatched {
        /// Number of matrices in each operand.
        count: usize,
        /// The scalar α of the products.
        alpha: Value,
        /// The operation that is applied to each matrix of A.
        op_a: Op,
        /// The left operands A of the products, side by side.
        a: O,
        /// The operation that is applied to each matrix of B.
        op_b: Op,
        /// The right operands B of the products, side by side.
        b: O,
        /// The scalar β, by which the old C is multiplied.
        beta: Value,
        /// The matrices C, side by side, which the kernel replaces by the results.
        c: O,
    },
    /// The LU factorisation `A = P·L·U` of each of `count` matrices.
    GetrfBatched {
        /// Number of matrices in the batch.
        count: usize,
        /// Whether the kernel exchanges rows.
        pivoting: bool,
        /// The matrices A, which the kernel replaces by L and U.
        a: O,
        /// Output: the pivots of all matrices, matrix after matrix (`i32`, one column). The pivots of each matrix are indices of
        /// rows of that matrix, counted from 0.
        ipiv: O,
        /// Output, one `i32` for each matrix (one column): 0, or the number, counted from 1, of the first zero pivot.
        info: O,
    },
    /// The solve `B ← op(A)⁻¹·B` for each of `count` square matrices A, from the factors and the pivots that
    /// [`Instruction::GetrfBatched`] computed.
    GetrsBatched {
        /// Number of matrices in the batch.
        count: usize,
        /// The operation that is applied to each A.
        op: Op,
        /// The factors L and U of each A.
        lu: O,
        /// The pivots of all matrices, matrix after matrix (`i32`, one column).
        ipiv: O,
        /// The right-hand sides B, which the kernel replaces by the solutions.
        b: O,
    },
    /// The search for the first zero pivot in the LU factors of each of `count` square matrices.
    ZeroPivots {
        /// Number of matrices in the batch.
        count: usize,
        /// The factors L and U of each matrix.
        lu: O,
        /// Output, one `i32` for each matrix (one column): 0, or the number, counted from 1, of the first row with a zero on the
        /// diagonal of U.
        info: O,
    },
}

impl<O: Copy> Instruction<O> {
    /// The name of the kernel, which is the name of the routine in BLAS or LAPACK if they have the routine.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Instruction::Gemm { .. } => "gemm",
            Instruction::Trsm { .. } => "trsm",
            Instruction::Getrf { .. } => "getrf",
            Instruction::Laswp { .. } => "laswp",
            Instruction::Copy { .. } => "copy",
            Instruction::Narrow { .. } => "narrow",
            Instruction::Scale { .. } => "scale",
            Instruction::GemmBatched { .. } => "gemm_batched",
            Instruction::GetrfBatched { .. } => "getrf_batched",
            Instruction::GetrsBatched { .. } => "getrs_batched",
            Instruction::ZeroPivots { .. } => "zero_pivots",
        }
    }

    /// Calls `visit` for each operand of the instruction, in a fixed order, with the kernel's access to that operand.
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
            Instruction::Getrf { a, ipiv, info, .. } | Instruction::GetrfBatched { a, ipiv, info, .. } => {
                visit(a, Write);
                visit(ipiv, Write);
                visit(info, Write);
            }
            Instruction::Laswp { a, ipiv, .. } => {
                visit(a, Write);
                visit(ipiv, Read);
            }
            Instruction::Copy { a, b } | Instruction::Narrow { a, b, .. } => {
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

    /// Whether the results depend on the old elements of the operand with index `operand`, counted from 0 in the order of
    /// [`Instruction::operands`].
    #[must_use]
    pub fn reads(&self, operand: usize) -> bool {
        match (self, operand) {
            (Instruction::Gemm { beta, .. } | Instruction::GemmBatched { beta, .. }, 2) | (Instruction::Scale { beta, .. }, 0) => {
                !beta.is_zero()
            }
            (
                Instruction::Copy { .. } | Instruction::Narrow { .. } | Instruction::Getrf { .. } | Instruction::ZeroPivots { .. },
                1,
            )
            | (Instruction::GetrfBatched { .. }, 1 | 2) => false,
            _ => true,
        }
    }

    /// Replaces each operand by the result of `f` for that operand. `f` is called in the order of [`Instruction::operands`].
    #[inline]
    pub fn map<P>(&self, mut f: impl FnMut(O) -> P) -> Instruction<P> {
        match *self {
            Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c } => {
                Instruction::Gemm { alpha, op_a, a: f(a), op_b, b: f(b), beta, c: f(c) }
            }
            Instruction::Trsm { mode, side, uplo, op, diag, alpha, a, b } => {
                Instruction::Trsm { mode, side, uplo, op, diag, alpha, a: f(a), b: f(b) }
            }
            Instruction::Getrf { pivoting, first_row, a, ipiv, info } => {
                Instruction::Getrf { pivoting, first_row, a: f(a), ipiv: f(ipiv), info: f(info) }
            }
            Instruction::Laswp { swaps, a, ipiv } => Instruction::Laswp { swaps, a: f(a), ipiv: f(ipiv) },
            Instruction::Copy { a, b } => Instruction::Copy { a: f(a), b: f(b) },
            Instruction::Narrow { alpha, a, b } => Instruction::Narrow { alpha, a: f(a), b: f(b) },
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
    /// Number of rows and number of columns of the operand.
    fn extent(&self) -> (usize, usize);
}

impl Extent for Tile {
    fn extent(&self) -> (usize, usize) {
        (self.rows(), self.cols())
    }
}

impl<O: Extent + Copy> Instruction<O> {
    /// Number of floating-point operations of the instruction, for cost models.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn flops(&self) -> f64 {
        let sides = |operand: &O| (operand.extent().0 as f64, operand.extent().1 as f64);
        let area = |operand: &O| sides(operand).0 * sides(operand).1;
        let lu = |(rows, cols)| flops::getrf(rows, cols);
        match self {
            Instruction::Gemm { op_a, a, c, .. } => 2.0 * area(c) * op_a.shape(a.extent()).1 as f64,
            Instruction::Trsm { a, b, .. } => sides(a).0 * area(b),
            Instruction::Getrf { a, .. } => lu(a.extent()),
            Instruction::GemmBatched { count, op_a, a, c, .. } => {
                2.0 * area(c) * op_a.shape((a.extent().0, a.extent().1 / (*count).max(1))).1 as f64
            }
            Instruction::GetrfBatched { count, a, .. } => *count as f64 * lu((a.extent().0, a.extent().1 / (*count).max(1))),
            Instruction::GetrsBatched { lu, b, .. } => 2.0 * sides(lu).0 * area(b),
            Instruction::Laswp { .. }
            | Instruction::Copy { .. }
            | Instruction::Narrow { .. }
            | Instruction::Scale { .. }
            | Instruction::ZeroPivots { .. } => 0.0,
        }
    }

    /// Number of elements of all operands of the instruction together, for cost models.
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
        let (mode, side, uplo, op, diag) = (TrsmMode::Substitution, Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
        assert_eq!(
            count(Instruction::Trsm { mode, side, uplo, op, diag, alpha: Value::F64(1.0), a: tile(3, 3), b: tile(3, 5) }),
            3.0 * 3.0 * 5.0
        );
        let panel = |m, n| Instruction::Getrf { pivoting: true, first_row: 0, a: tile(m, n), ipiv: tile(n, 1), info: tile(1, 1) };
        // the number of operations of an LU factorisation is 2·m·n·r − (m + n)·r² + 2/3·r³ with r = min(m, n)
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
