//! LU with partial pivoting: recursion on the columns, by a group of members of a team who share the rows.

use std::ops::Range;

use lapidary_core::{Diag, Op, Side, Swaps, Uplo};

use super::gemm::{Gemm, strided};
use super::laswp::laswp;
use super::lookahead::by_team;
use super::panel::{COLUMNS, Search, panel};
use super::simd::Lanes;
use super::trsm::trsm;
use crate::team::{Member, Team};
use crate::tile::Tile;

/// P·A = L·U of an m × n tile, as in [`reference::getrf`](crate::reference::getrf).
///
/// # Safety
/// The [contract of tiles](crate::tile).
pub unsafe fn getrf<T: Lanes>(team: &Team, pivoting: bool, first_row: usize, a: Tile<T>, ipiv: Tile<i32>, info: &mut i32) {
    debug_assert!(ipiv.rows() >= a.rows().min(a.cols()));
    let job = Job { pivoting, first_row, a, ipiv, info };
    // SAFETY: as the caller promises.
    unsafe { by_team(team, &job) }
}

/// A matrix to factor, and where its pivots and `info` go.
#[derive(Clone, Copy)]
pub(super) struct Job<T> {
    pub pivoting: bool,
    /// The number of the first row, which is added to pivots and `info`.
    pub first_row: usize,
    pub a: Tile<T>,
    pub ipiv: Tile<i32>,
    pub info: *mut i32,
}

// SAFETY: it says where memory is. Functions that reach it are unsafe, and answer for what other threads do there.
unsafe impl<T: Sync> Sync for Job<T> {}

impl<T: Lanes> Job<T> {
    /// The part from element (`at`, `at`) of `rows` rows and `cols` columns on.
    pub fn part(&self, at: usize, rows: usize, cols: usize) -> Self {
        let steps = rows.min(cols);
        Job { first_row: self.first_row + at, a: self.a.sub(at, at, rows, cols), ipiv: self.ipiv.sub(at, 0, steps, 1), ..*self }
    }

    /// Exchanges the rows of `columns` as the pivots of this part say.
    pub unsafe fn swap(&self, columns: Tile<T>) {
        let swaps = Swaps { side: Side::Left, forward: true, first_row: self.first_row };
        if self.pivoting {
            // SAFETY: as the caller promises.
            unsafe { laswp(&Team::alone(), swaps, columns, self.ipiv.sub(0, 0, self.a.rows().min(self.a.cols()), 1)) }
        }
    }
}

/// A member's place in a group that factors a panel: the first `count` members of a team, or a thread alone.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    member: Option<&'a Member<'a>>,
    pub count: usize,
    pub index: usize,
}

impl<'a> Place<'a> {
    /// A thread without others.
    pub const ALONE: Place<'static> = Place { member: None, count: 1, index: 0 };

    /// The place of one of the first `count` members.
    pub fn among(member: &'a Member<'a>, count: usize) -> Self {
        Place { member: Some(member), count, index: member.index }
    }

    /// Waits for the others. The last one calls `last` before any goes on.
    pub fn meet(&self, last: impl FnOnce()) {
        match self.member {
            Some(member) => member.meet_first(self.count, last),
            None => last(),
        }
    }

    /// The own share of so many lines, a multiple of `unit` but for the last share.
    pub fn share(&self, lines: usize, unit: usize) -> Range<usize> {
        let share = lines.div_ceil(self.count).next_multiple_of(unit);
        (self.index * share).min(lines)..((self.index + 1) * share).min(lines)
    }
}

/// Factors a matrix of at least as many rows as columns, or a whole one alone. All members of the group call this.
///
/// # Safety
/// The [contract of tiles](crate::tile); the group has `search` for itself.
pub(super) unsafe fn factor<T: Lanes>(place: Place<'_>, job: &Job<T>, search: &Search<T>) {
    let (m, n) = job.a.shape();
    let steps = m.min(n);
    // SAFETY: the caller's contract for parts of A and of the pivots. Members write different rows or columns between two
    // meetings.
    unsafe {
        if n <= COLUMNS {
            return panel(place, job, search);
        }
        let left = if m < n { steps } else { (n / 2).next_multiple_of(COLUMNS) };
        if left == 0 {
            return;
        }
        let (right, below) = (n - left, m - left);
        // P1·A1 = L1·U11
        let first = job.part(0, m, left);
        factor(place, &first, search);
        // A2 ← P1·A2;  U12 = L11⁻¹·A12
        let cols = place.share(right, 1);
        let own = job.a.sub(0, left + cols.start, m, cols.len());
        first.swap(own);
        let u = own.sub(0, 0, left, cols.len());
        let l11 = job.a.sub(0, 0, left, left);
        trsm(&Team::alone(), Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit, T::ONE, l11, u);
        place.meet(|| ());
        // A22 ← A22 − L21·U12
        let rows = place.share(below, 8);
        if !rows.is_empty() {
            let a = strided(Op::NoTrans, job.a.sub(left + rows.start, 0, rows.len(), left));
            let (b, c) =
                (strided(Op::NoTrans, job.a.sub(0, left, left, right)), job.a.sub(left + rows.start, left, rows.len(), right));
            Gemm { k: left, alpha: -T::ONE, a, b, beta: T::ONE, c }.here();
        }
        place.meet(|| ());
        // P2·A22 = L22·U22;  L21 ← P2·L21
        let second = job.part(left, below, right);
        factor(place, &second, search);
        let cols = place.share(left, 1);
        if below > 0 {
            second.swap(job.a.sub(left, cols.start, below, cols.len()));
        }
        place.meet(|| ());
    }
}
