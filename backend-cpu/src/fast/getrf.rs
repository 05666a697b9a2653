//! LU factorisation with partial pivoting, by recursion on the columns. The rows of the matrix are divided among a group of members
//! of a team.

use std::ops::Range;

use lapidary_core::{Diag, Op, Side, Swaps, Uplo};

use super::blocks::Blocking;
use super::gemm::{Gemm, strided};
use super::laswp::laswp;
use super::lookahead::by_team;
use super::panel::{COLUMNS, PivotSearch, panel};
use super::simd::Lanes;
use super::trsm::trsm;
use crate::team::{Member, Team};
use crate::tile::Tile;

/// P·A = L·U for an m × n tile, as in [`reference::getrf`](crate::reference::getrf).
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn getrf<T: Lanes>(team: &Team, pivoting: bool, first_row: usize, a: Tile<T>, ipiv: Tile<i32>, info: &mut i32) {
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe { by_team(team, Op::NoTrans, &Job { pivoting, first_row, a, ipiv, info, blocking: team.blocking() }) }
}

/// P·A = L·U for a row-major matrix A. `transpose` is the memory of A as a column-major tile, which is the transpose of A.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn getrf_by_rows<T: Lanes>(team: &Team, pivoting: bool, transpose: Tile<T>, ipiv: Tile<i32>, info: &mut i32) {
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe { by_team(team, Op::Trans, &Job { pivoting, first_row: 0, a: transpose, ipiv, info, blocking: team.blocking() }) }
}

/// A matrix to factor, and the memory for its pivots and `info`.
#[derive(Clone, Copy)]
pub(super) struct Job<T> {
    pub pivoting: bool,
    /// Index of the tile's first row in the whole matrix. The index is added to each pivot and to `info`.
    pub first_row: usize,
    pub a: Tile<T>,
    pub ipiv: Tile<i32>,
    pub info: *mut i32,
    /// Maximum sizes of the cache blocks of products.
    pub blocking: Blocking,
}

// SAFETY: only unsafe functions access the memory at the addresses in a job, and their callers rule out data races.
unsafe impl<T: Sync> Sync for Job<T> {}

impl<T: Lanes> Job<T> {
    /// The job for the `rows` × `cols` part of the matrix that starts at (`at`, `at`).
    pub fn part(&self, at: usize, rows: usize, cols: usize) -> Self {
        let steps = rows.min(cols);
        Job { first_row: self.first_row + at, a: self.a.sub(at, at, rows, cols), ipiv: self.ipiv.sub(at, 0, steps, 1), ..*self }
    }

    /// Exchanges the rows of `part`, or its columns if `side` is `Right`, by the pivots of `steps`. Row 0 of `part` is row
    /// `steps.start` of the matrix.
    pub unsafe fn swap(&self, steps: Range<usize>, side: Side, part: Tile<T>) {
        let swaps = Swaps { side, forward: true, first_row: self.first_row + steps.start };
        if self.pivoting {
            // SAFETY: the caller guarantees the contract of tiles.
            unsafe { laswp(&Team::alone(), swaps, part, self.ipiv.sub(steps.start, 0, steps.len(), 1)) }
        }
    }
}

/// The position of a thread in the group that factors a panel. The group is the first `count` members of a team, or one thread.
#[derive(Clone, Copy)]
pub(super) struct Rank<'a> {
    member: Option<&'a Member<'a>>,
    pub count: usize,
    pub index: usize,
}

impl<'a> Rank<'a> {
    /// The position in a group that consists of one thread.
    pub const ALONE: Rank<'static> = Rank { member: None, count: 1, index: 0 };

    /// The position of `member` in the group of the first `count` members.
    pub fn among(member: &'a Member<'a>, count: usize) -> Self {
        Rank { member: Some(member), count, index: member.index }
    }

    /// Waits until all members of the group have arrived. The last member to arrive calls `last` before any member continues.
    pub fn wait_for_all(&self, last: impl FnOnce()) {
        match self.member {
            Some(member) => member.wait_for_group(self.count, last),
            None => last(),
        }
    }

    /// The part of `lines` rows or columns that this thread processes. Each part starts at a multiple of `unit`.
    pub fn share(&self, lines: usize, unit: usize) -> Range<usize> {
        let share = lines.div_ceil(self.count).next_multiple_of(unit);
        (self.index * share).min(lines)..((self.index + 1) * share).min(lines)
    }
}

/// Factors a matrix. The matrix must have at least as many rows as columns unless the group is one thread. All members of the group
/// call this function with the same `job` and `search`.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds, and only this group uses `search`.
pub(super) unsafe fn factor<T: Lanes>(rank: Rank<'_>, job: &Job<T>, search: &PivotSearch<T>) {
    let (m, n) = job.a.shape();
    let steps = m.min(n);
    // SAFETY: the caller guarantees the contract of tiles for all parts of A and of `ipiv`. Between two barriers, members write
    // different rows or columns.
    unsafe {
        if n <= COLUMNS {
            return panel(rank, job, search);
        }
        let left = if m < n { steps } else { (n / 2).next_multiple_of(COLUMNS) };
        if left == 0 {
            return;
        }
        let (right, below) = (n - left, m - left);
        // P1·A1 = L1·U11
        factor(rank, &job.part(0, m, left), search);
        // A2 ← P1·A2;  U12 = L11⁻¹·A12
        let cols = rank.share(right, 1);
        let own = job.a.sub(0, left + cols.start, m, cols.len());
        job.swap(0..left, Side::Left, own);
        let u = own.sub(0, 0, left, cols.len());
        let l11 = job.a.sub(0, 0, left, left);
        trsm(&Team::of_one(job.blocking), Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit, T::ONE, l11, u);
        rank.wait_for_all(|| ());
        // A22 ← A22 − L21·U12
        let rows = rank.share(below, 8);
        if !rows.is_empty() {
            let a = strided(Op::NoTrans, job.a.sub(left + rows.start, 0, rows.len(), left));
            let (b, c) =
                (strided(Op::NoTrans, job.a.sub(0, left, left, right)), job.a.sub(left + rows.start, left, rows.len(), right));
            Gemm { k: left, alpha: -T::ONE, a, b, beta: T::ONE, c, max: job.blocking.of::<T>() }.on_this_thread();
        }
        rank.wait_for_all(|| ());
        // P2·A22 = L22·U22;  L21 ← P2·L21
        factor(rank, &job.part(left, below, right), search);
        let cols = rank.share(left, 1);
        if below > 0 {
            job.swap(left..steps, Side::Left, job.a.sub(left, cols.start, below, cols.len()));
        }
        rank.wait_for_all(|| ());
    }
}
