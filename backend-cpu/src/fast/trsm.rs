//! Triangular solves B ← α·op(A)⁻¹·B and B ← α·B·op(A)⁻¹, by recursion on the triangle.

use lapidary_core::{Diag, Op, Side, Uplo};

use super::gemm::gemm;
use super::simd::Lanes;
use super::substitute::{ORDER, substitute};
use super::transpose::scale;
use crate::reference::is_forward;
use crate::team::{Strips, Team};
use crate::tile::Tile;

/// Maximum order of a triangle for which each member solves its own right-hand sides alone. For larger triangles, the members share
/// the products of the first steps of the recursion.
const ORDER_OF_MEMBER: usize = 256;
/// Maximum order of a triangle for which each member solves alone, in a small system with many right-hand sides. To share a
/// product of order 256 would take more time than it saves (bench/results/2026-11-25-h100-sweep-rest.txt).
const ORDER_OF_MEMBER_IN_SMALL: usize = 512;
/// Maximum order of a small system.
const SMALL: usize = 1024;
/// Minimum number of right-hand sides of a small system to which [`ORDER_OF_MEMBER_IN_SMALL`] applies.
const MANY: usize = 64;
/// Size of the right-hand sides that a member solves at a time, in bytes. The last right-hand sides that a member solves may take
/// up to twice `STRIP_BYTES` bytes. Right-hand sides of `STRIP_BYTES` bytes stay in a second-level cache of 2 MiB through the whole
/// recursion.
const STRIP_BYTES: usize = 768 << 10;

/// Number of floating-point operations, times the bytes per element, that take as long as copying one element.
const FLOPS_OF_MOVE: f64 = 128.0;

/// The arguments of a triangular solve that stay the same through the recursion.
#[derive(Clone, Copy)]
pub(super) struct Flags {
    pub side: Side,
    pub uplo: Uplo,
    pub op: Op,
    pub diag: Diag,
    /// Maximum order of a triangle for which each member solves its own right-hand sides alone.
    order_of_member: usize,
}

impl Flags {
    /// Whether substitution computes the unknowns from first to last.
    pub fn forward(self) -> bool {
        is_forward(self.side, self.uplo, self.op)
    }
}

/// B ← α·op(A)⁻¹·B or B ← α·B·op(A)⁻¹ by substitution.
///
/// The triangle of A opposite to `uplo` is never read, and neither is a unit diagonal. With α = 0, B is set to zero and A is not
/// read. A division by a diagonal element of A follows IEEE arithmetic.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
#[expect(clippy::too_many_arguments, reason = "the arguments of the routine, and the team")]
pub unsafe fn trsm<T: Lanes>(team: &Team, side: Side, uplo: Uplo, op: Op, diag: Diag, alpha: T, a: Tile<T>, b: Tile<T>) {
    let (order, others) = if side == Side::Left { b.shape() } else { (b.cols(), b.rows()) };
    debug_assert_eq!(a.shape(), (order, order));
    // SAFETY: the caller guarantees the contract of tiles; the shapes agree.
    unsafe {
        if alpha == T::ZERO {
            scale(team, alpha, b);
        } else if order > 0 && others > 0 {
            let order_of_member = if order <= SMALL && others >= MANY { ORDER_OF_MEMBER_IN_SMALL } else { ORDER_OF_MEMBER };
            solve(team, Flags { side, uplo, op, diag, order_of_member }, alpha, a, b);
        }
    }
}

/// The part of `b` with `size` unknowns from unknown `start` on.
fn unknowns<T: Copy>(side: Side, b: Tile<T>, start: usize, size: usize) -> Tile<T> {
    match side {
        Side::Left => b.sub(start, 0, size, b.cols()),
        Side::Right => b.sub(0, start, b.rows(), size),
    }
}

/// The part of `b` with `size` right-hand sides from right-hand side `start` on.
pub(super) fn right_hand_sides<T: Copy>(side: Side, b: Tile<T>, start: usize, size: usize) -> Tile<T> {
    unknowns(side.flip(), b, start, size)
}

unsafe fn solve<T: Lanes>(team: &Team, f: Flags, alpha: T, a: Tile<T>, b: Tile<T>) {
    let (n, others) = (a.rows(), if f.side == Side::Left { b.cols() } else { b.rows() });
    if n > f.order_of_member {
        // SAFETY: the caller guarantees the contract of tiles.
        return unsafe { recurse(team, f, alpha, a, b) };
    }
    // right-hand sides are independent; the strip that a member solves at a time stays in the member's cache
    team.in_strips(others, (n * n * size_of::<T>()) as f64 / FLOPS_OF_MOVE, |sides| {
        let strips = Strips::new(sides.len(), STRIP_BYTES / size_of::<T>() / n);
        for strip in (0..strips.number()).map(|index| strips.get(index)) {
            let strip = right_hand_sides(f.side, b, sides.start + strip.start, strip.len());
            // SAFETY: the caller guarantees the contract of tiles for each part of B.
            unsafe { recurse(&team.one_member(), f, alpha, a, strip) }
        }
    });
}

/// X ← α·op(A11)⁻¹·X;  Y ← α·Y − op(A21)·X;  Y ← op(A22)⁻¹·Y
unsafe fn recurse<T: Lanes>(team: &Team, f: Flags, alpha: T, a: Tile<T>, b: Tile<T>) {
    let n = a.rows();
    // SAFETY: the caller guarantees the contract of tiles for each part of A and B.
    unsafe {
        if n <= ORDER {
            return substitute(f, alpha, a, b);
        }
        let half = (n / 2).next_multiple_of(ORDER);
        let (a11, a22) = (a.sub(0, 0, half, half), a.sub(half, half, n - half, n - half));
        let off = match f.uplo {
            Uplo::Lower => a.sub(half, 0, n - half, half),
            Uplo::Upper => a.sub(0, half, half, n - half),
        };
        let (b1, b2) = (unknowns(f.side, b, 0, half), unknowns(f.side, b, half, n - half));
        let ((first, x), (last, y)) = if f.forward() { ((a11, b1), (a22, b2)) } else { ((a22, b2), (a11, b1)) };
        let go = if n > f.order_of_member { solve } else { recurse };
        go(team, f, alpha, first, x);
        match f.side {
            Side::Left => gemm(team, f.op, Op::NoTrans, -T::ONE, off, x, alpha, y),
            Side::Right => gemm(team, Op::NoTrans, f.op, -T::ONE, x, off, alpha, y),
        }
        go(team, f, T::ONE, last, y);
    }
}
