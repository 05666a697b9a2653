//! Routines for batches of matrices. Members of the team claim groups of neighbouring matrices. One member computes all matrices of
//! a group, and takes its workspace once per group. If the matrices are large, the whole team computes one matrix after the other.

use std::ops::Range;

use lapidary_core::{Diag, Op, Scalar, Side, Swaps, Uplo};

use super::gemm::{Gemm, gemm, strided};
use super::getrf::{Job, Rank, factor, getrf};
use super::laswp::laswp;
use super::micro::Strided;
use super::pack::Workspace;
use super::panel::PivotSearch;
use super::simd::{Kernel, Lanes, Simd};
use super::transpose::scale;
use super::trsm::trsm;
use crate::reference::{self, matrix, piece};
use crate::team::{Team, WorkCounter};
use crate::tile::Tile;

/// Minimum number of floating-point operations per member.
const FLOPS_OF_MEMBER: f64 = 200e3;
/// If a matrix, or a sequence of instructions, takes more floating-point operations than this number, the whole team computes it.
pub(crate) const FLOPS_OF_TEAM: f64 = 64e6;
/// Number of groups of matrices per member. With several groups per member, a slow member claims fewer groups of matrices than the
/// other members.
const GROUPS: usize = 8;

/// Splits `0..count`, the indices of matrices or of sequences, into groups. Members claim groups and call `body` for each group.
/// `flops` is the number of floating-point operations of all groups together.
pub(crate) fn in_groups(team: &Team, count: usize, flops: f64, body: impl Fn(Range<usize>) + Sync) {
    let members = team.members(flops / FLOPS_OF_MEMBER).min(count);
    if members <= 1 {
        if count > 0 {
            body(0..count);
        }
        return;
    }
    let group = count.div_ceil(GROUPS * members);
    let pieces = WorkCounter::default();
    team.run_in_time(members, &|_| {
        while let Some(piece) = pieces.take(count.div_ceil(group)) {
            body(piece * group..((piece + 1) * group).min(count));
        }
    });
}

/// Computes [`gemm`] for each of `count` matrices.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
#[expect(clippy::too_many_arguments, reason = "the arguments of the routine, their number, and the team")]
pub unsafe fn gemm_batched<T: Lanes>(
    team: &Team,
    count: usize,
    op_a: Op,
    op_b: Op,
    alpha: T,
    a: Tile<T>,
    b: Tile<T>,
    beta: T,
    c: Tile<T>,
) {
    if count == 0 || c.rows() == 0 || c.cols() == 0 {
        return;
    }
    let of_matrix = |i| (matrix(a, count, i), matrix(b, count, i), matrix(c, count, i));
    let (a_first, b_first, c_first) = of_matrix(0);
    let k = op_a.shape(a_first.shape()).1;
    let flops = 2.0 * c_first.rows() as f64 * c_first.cols() as f64 * k as f64;
    // SAFETY: the caller guarantees the contract of tiles for each matrix.
    unsafe {
        if k == 0 || alpha == T::ZERO {
            scale(team, beta, c);
        } else if flops > FLOPS_OF_TEAM {
            (0..count).map(of_matrix).for_each(|(a, b, c)| gemm(team, op_a, op_b, alpha, a, b, beta, c));
        } else {
            let first = Gemm {
                k,
                alpha,
                a: strided(op_a, a_first),
                b: strided(op_b, b_first),
                beta,
                c: c_first,
                max: team.blocking().of::<T>(),
            };
            let steps = [a_first, b_first, c_first].map(|tile| tile.cols() * tile.ld());
            in_groups(team, count, count as f64 * flops, |group| T::dispatch(Products { first, steps, group }));
        }
    }
}

/// The products of a group of matrices of a batch, on the calling thread.
struct Products<T> {
    /// The first product of the batch.
    first: Gemm<T>,
    /// Distances between neighbouring matrices of A, B and C, in elements.
    steps: [usize; 3],
    group: Range<usize>,
}

impl<T: Scalar> Kernel<T> for Products<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        let Products { first, steps: [a_step, b_step, c_step], group } = self;
        let blocks = first.blocks::<V>();
        let (a_buffer, b_buffer) = blocks.packed();
        let mut workspace = Workspace::take::<T>(a_buffer + b_buffer);
        let memory = workspace.ptr::<T>();
        for i in group {
            let moved = |x: Strided<T>, step| Strided { ptr: x.ptr.wrapping_add(i * step), ..x };
            let (m, n) = first.c.shape();
            // SAFETY: the caller guarantees the contract of tiles, and the workspace has room for one block of each operand.
            unsafe {
                let c = Tile::new(first.c.ptr().wrapping_add(i * c_step), m, n, first.c.ld());
                let product = Gemm { a: moved(first.a, a_step), b: moved(first.b, b_step), c, ..first };
                product.blocked::<V>(&blocks, memory, memory.wrapping_add(a_buffer));
            }
        }
    }
}

/// Computes [`getrf`] for each of `count` matrices. The old value of `info` is not read.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn getrf_batched<T: Lanes>(team: &Team, count: usize, pivoting: bool, a: Tile<T>, ipiv: Tile<i32>, info: Tile<i32>) {
    if count == 0 {
        return;
    }
    let (m, n) = matrix(a, count, 0).shape();
    let flops = 2.0 / 3.0 * m as f64 * n as f64 * m.min(n) as f64;
    let of_matrix = |i| {
        // SAFETY: by the contract of tiles, every matrix has an element of `info`, which no other code accesses.
        let info = unsafe {
            info.set(i, 0, 0);
            info.at(i, 0)
        };
        Job { pivoting, first_row: 0, a: matrix(a, count, i), ipiv: piece(ipiv, count, i), info, blocking: team.blocking() }
    };
    // SAFETY: the caller guarantees the contract of tiles for each matrix.
    unsafe {
        if flops > FLOPS_OF_TEAM {
            (0..count).map(of_matrix).for_each(|job| getrf(team, pivoting, 0, job.a, job.ipiv, &mut *job.info));
        } else {
            in_groups(team, count, count as f64 * flops, |group| {
                let search = PivotSearch::new(1);
                group.map(of_matrix).for_each(|job| factor(Rank::ALONE, &job, &search));
            });
        }
    }
}

/// B ← op(A)⁻¹·B for each of `count` matrices A, which are given by their LU factors.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds, and all pivots lie in their matrix.
pub unsafe fn getrs_batched<T: Lanes>(team: &Team, count: usize, op: Op, lu: Tile<T>, ipiv: Tile<i32>, b: Tile<T>) {
    if count == 0 {
        return;
    }
    let (n, nrhs) = matrix(b, count, 0).shape();
    let flops = 2.0 * n as f64 * n as f64 * nrhs as f64;
    let solve = |team: &Team, i| {
        let (lu, ipiv, b) = (matrix(lu, count, i), piece(ipiv, count, i), matrix(b, count, i));
        // SAFETY: the caller guarantees the contract of tiles for each matrix.
        unsafe { solve(team, op, lu, ipiv, b) }
    };
    if flops > FLOPS_OF_TEAM {
        (0..count).for_each(|i| solve(team, i));
    } else {
        in_groups(team, count, count as f64 * flops, |group| {
            let alone = team.one_member();
            group.for_each(|i| solve(&alone, i));
        });
    }
}

/// B ← op(A)⁻¹·B for one matrix A, which is given by its LU factors.
unsafe fn solve<T: Lanes>(team: &Team, op: Op, lu: Tile<T>, ipiv: Tile<i32>, b: Tile<T>) {
    let exchanges = Swaps { side: Side::Left, forward: !op.is_trans(), first_row: 0 };
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe {
        let lower = || trsm(team, Side::Left, Uplo::Lower, op, Diag::Unit, T::ONE, lu, b);
        let upper = || trsm(team, Side::Left, Uplo::Upper, op, Diag::NonUnit, T::ONE, lu, b);
        if op.is_trans() {
            upper();
            lower();
            laswp(team, exchanges, b, ipiv);
        } else {
            laswp(team, exchanges, b, ipiv);
            lower();
            upper();
        }
    }
}

/// Finds the first zero on the diagonal of each of `count` square matrices. `info` becomes the row of this zero, counted from 1,
/// or 0 if the diagonal has no zero.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn zero_pivots<T: Lanes>(team: &Team, count: usize, lu: Tile<T>, info: Tile<i32>) {
    if count == 0 {
        return;
    }
    let order = lu.rows();
    in_groups(team, count, (count * order) as f64, |group| {
        let part = lu.sub(0, group.start * order, order, group.len() * order);
        // SAFETY: the caller guarantees the contract of tiles for each matrix.
        unsafe { reference::zero_pivots(group.len(), part, info.sub(group.start, 0, group.len(), 1)) }
    });
}
