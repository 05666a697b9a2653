//! LU by a team with lookahead: some members factor the next panel while the others update the trailing matrix.
//!
//! Each step has two parts, separated by a barrier. In the first, members claim strips of the columns right of the panel: they
//! exchange rows, solve for the rows of U, and pack both factors of the update. In the second, they claim tiles of the update,
//! those in the columns of the next panel first. Once these are done, a group of members factors that panel and then
//! claims tiles like the others (Catalán, Herrero, Quintana-Ortí, Rodríguez-Sánchez and van de Geijn 2017). The columns left of each
//! panel get their row exchanges at the end.

use std::sync::atomic::{AtomicUsize, Ordering};

use lapidary_core::{Diag, Op, Side, Uplo};

use super::gemm::{A_BYTES, Gemm, MV, Macro, strided};
use super::getrf::{Job, Rank, factor};
use super::micro::Strided;
use super::pack::{Workspace, pack};
use super::panel::PivotSearch;
use super::simd::{Kernel, Lanes, Simd};
use super::trsm::trsm;
use crate::team::{Member, Pieces, Team};
use crate::tile::Tile;

/// Minimum number of floating-point operations per member.
const FLOPS_OF_MEMBER: f64 = 15e6;
/// Minimum and maximum panel width.
const WIDTH: [usize; 2] = [32, 256];
/// Number of panels of a matrix whose panels are within [`WIDTH`]: the first with few members, up to the second with many.
/// With more members the update beside a panel takes less time, so that a panel must be narrower
/// (bench/results/2026-11-24-cpu-team.txt).
const PANELS: [usize; 2] = [8, 16];
/// Maximum number of columns in a strip of the first part of a step.
const STRIP: usize = 64;
/// Number of columns in a strip of the row exchanges at the end.
const LEFT_STRIP: usize = 32;
/// Minimum number of panel rows per member of the group.
const ROWS_OF_MEMBER: usize = 256;
/// Time of an operation in a panel, divided by that of one in an update.
const SLOWNESS_OF_PANEL: f64 = 3.0;
/// Minimum number of tiles per member. With several, a slow member claims fewer than the others.
const TILES: usize = 6;

/// Factors a matrix by as many members as its size justifies.
///
/// # Safety
/// The [contract of tiles](crate::tile).
pub(super) unsafe fn by_team<T: Lanes>(team: &Team, job: &Job<T>) {
    let (m, n) = job.a.shape();
    let steps = m.min(n);
    let members = team.members(m as f64 * n as f64 * steps as f64 * 2.0 / 3.0 / FLOPS_OF_MEMBER);
    // SAFETY: as the caller promises.
    unsafe {
        if members == 1 {
            factor(Rank::ALONE, job, &PivotSearch::new(1));
        } else {
            let width = (steps / (PANELS[0] + members / 2).min(PANELS[1])).next_multiple_of(WIDTH[0]).clamp(WIDTH[0], WIDTH[1]);
            T::dispatch(Lookahead { team, members, job, width });
        }
    }
}

/// A factorisation in panels of `width` columns.
struct Lookahead<'a, T> {
    team: &'a Team,
    members: usize,
    job: &'a Job<T>,
    width: usize,
}

/// The state that all members share.
struct Shared<T> {
    /// Buffers for the packed factors of an update.
    a_buffer: *mut T,
    b_buffer: *mut T,
    search: PivotSearch<T>,
    /// Pieces of the first part of a step: strips of U, then blocks of L to pack.
    strips: Pieces,
    /// Tiles of the second part.
    tiles: Pieces,
    /// Number of tiles in the columns of the next panel that are done.
    ready: AtomicUsize,
    /// Strips of the row exchanges at the end.
    left: Pieces,
}

// SAFETY: before a barrier members write different panels of the buffers, after it they only read them.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T: Lanes> Kernel<T> for Lookahead<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        let ((m, n), width) = (self.job.a.shape(), self.width);
        let a = m.next_multiple_of(MV * V::LANES) * width;
        let b = (n + STRIP).next_multiple_of(V::NR) * width;
        let mut workspace = Workspace::of_team::<T>(a + b);
        let memory = workspace.ptr::<T>();
        let shared = Shared {
            a_buffer: memory,
            b_buffer: memory.wrapping_add(a),
            search: PivotSearch::new(self.members),
            strips: Pieces::default(),
            tiles: Pieces::default(),
            ready: AtomicUsize::new(0),
            left: Pieces::default(),
        };
        self.team.run(self.members, &|member| {
            // SAFETY: the caller's matrix; the buffers hold both factors.
            unsafe { V::call(Part { job: self.job, width, shared: &shared, member }) }
        });
    }
}

/// What each member runs.
struct Part<'a, T> {
    job: &'a Job<T>,
    width: usize,
    shared: &'a Shared<T>,
    member: &'a Member<'a>,
}

/// A factored panel, with which the trailing matrix is to be updated.
#[derive(Clone, Copy)]
struct Step {
    /// The panel's first row and column, and its width.
    at: usize,
    width: usize,
    /// Width of the next panel.
    next: usize,
}

impl<T: Lanes> Kernel<T> for Part<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        let (m, n) = self.job.a.shape();
        let steps = m.min(n);
        let width = |at: usize| self.width.min(steps - at);
        let Shared { strips, tiles, ready, .. } = self.shared;
        // SAFETY: the caller's matrix; between two barriers members write different parts of it.
        unsafe {
            self.panel(0, width(0), self.group(m, width(0), 0.0));
            self.member.wait_for_all(|| ());
            for at in (0..steps).step_by(self.width) {
                let step = Step { at, width: width(at), next: width((at + width(at)).min(steps)) };
                self.solve::<V>(step);
                self.member.wait_for_all(|| {
                    strips.refill();
                    tiles.refill();
                    ready.store(0, Ordering::Relaxed);
                });
                self.update::<V>(step);
                self.member.wait_for_all(|| ());
            }
            self.exchange_left();
        }
    }
}

impl<T: Lanes> Part<'_, T> {
    /// The size of the group that factors a panel of `rows` × `width` while the others do an update of `update` multiplications.
    fn group(&self, rows: usize, width: usize, update: f64) -> usize {
        let all = self.member.count() as f64;
        let panel = rows as f64 * width as f64 * width as f64 * SLOWNESS_OF_PANEL;
        let share = all * panel / (panel + update);
        (share.ceil() as usize).clamp(1, self.member.count()).min(rows.div_ceil(ROWS_OF_MEMBER))
    }

    /// Factors the panel at (`at`, `at`), if this member belongs to the group.
    unsafe fn panel(&self, at: usize, width: usize, group: usize) {
        if self.member.index < group {
            let job = self.job.part(at, self.job.a.rows() - at, width);
            // SAFETY: only the group accesses the panel.
            unsafe { factor(Rank::among(self.member, group), &job, &self.shared.search) }
        }
    }

    /// Exchanges rows right of a panel, solves for the rows of U, and packs both factors of the update.
    #[inline(always)]
    unsafe fn solve<V: Simd<Elem = T>>(&self, Step { at, width, .. }: Step) {
        let ((m, n), a, mr) = (self.job.a.shape(), self.job.a, MV * V::LANES);
        let (right, below) = (at + width, m - at - width);
        let panel = self.job.part(at, m - at, width);
        let cols = ((n - right) / (4 * self.member.count())).clamp(V::NR, STRIP).next_multiple_of(V::NR);
        let rows = mr * (ROWS_OF_MEMBER / mr).max(1);
        let of_b = (n - right).div_ceil(cols);
        // L is needed only if there are columns to update
        let of_a = if n > right { below.div_ceil(rows) } else { 0 };
        while let Some(piece) = self.shared.strips.take(of_b + of_a) {
            // SAFETY: no other member writes this strip, and all only read the panel.
            unsafe {
                if piece < of_b {
                    let j = piece * cols;
                    let strip = a.sub(at, right + j, m - at, cols.min(n - right - j));
                    panel.swap(strip);
                    let (l11, u) = (a.sub(at, at, width, width), strip.sub(0, 0, width, strip.cols()));
                    trsm(&Team::alone(), Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit, T::ONE, l11, u);
                    pack::<V>(V::NR, u.cols(), width, strided(Op::Trans, u), self.shared.b_buffer.wrapping_add(j * width));
                } else {
                    let i = (piece - of_b) * rows;
                    let l = a.sub(right + i, at, rows.min(below - i), width);
                    pack::<V>(mr, l.rows(), width, strided(Op::NoTrans, l), self.shared.a_buffer.wrapping_add(i * width));
                }
            }
        }
    }

    /// A22 ← A22 − L21·U12, and the next panel.
    #[inline(always)]
    unsafe fn update<V: Simd<Elem = T>>(&self, step: Step) {
        let Step { at, width, next } = step;
        let ((m, n), right) = (self.job.a.shape(), at + width);
        let (below, beside) = (m - right, n - right);
        // the first block of columns is that of the next panel, rounded up to whole packed panels of B
        let first = next.next_multiple_of(V::NR).min(beside);
        let [rows, cols] = self.tile::<V>(below, beside - first, width);
        let down = below.div_ceil(rows);
        let blocks = usize::from(first > 0) + (beside - first).div_ceil(cols);
        let group = self.group(below, next, below as f64 * (beside - first) as f64 * width as f64);
        let mut to_factor = next > 0 && self.member.index < group;
        loop {
            // all tiles of the next panel have been claimed
            if to_factor && self.shared.tiles.taken() >= down {
                self.member.wait_until(|| self.shared.ready.load(Ordering::Acquire) == down);
                // SAFETY: the tiles of the panel are done, and only the group accesses it now.
                unsafe { self.panel(right, next, group) }
                to_factor = false;
            }
            let Some(tile) = self.shared.tiles.take(down * blocks) else { if to_factor { continue } else { return } };
            let (i, block) = (tile % down * rows, tile / down);
            let is_first = first > 0 && block == 0;
            let j = if is_first { 0 } else { first + (block - usize::from(first > 0)) * cols };
            let count = if is_first { first } else { cols.min(beside - j) };
            let c = self.job.a.sub(right + i, right + j, rows.min(below - i), count);
            // SAFETY: no other member writes this tile, and the factors are packed.
            unsafe { self.multiply::<V>(i, j, width, c) }
            if is_first {
                self.shared.ready.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// C ← C − L·U with the packed rows from `i` and columns from `j` on.
    #[inline(always)]
    unsafe fn multiply<V: Simd<Elem = T>>(&self, i: usize, j: usize, k: usize, c: Tile<T>) {
        let a = Strided { ptr: self.shared.a_buffer.wrapping_add(i * k).cast_const(), rs: k, cs: MV * V::LANES };
        let b = Strided { ptr: self.shared.b_buffer.wrapping_add(j * k).cast_const(), rs: V::NR, cs: 1 };
        // SAFETY: as the caller promises.
        unsafe { Macro { product: Gemm { k, alpha: -T::ONE, a, b, beta: T::ONE, c }, packed_b: true }.run::<V>() }
    }

    /// Rows and columns of a tile: at most the rows that fit the second-level cache, and several tiles per member.
    #[inline(always)]
    fn tile<V: Simd<Elem = T>>(&self, m: usize, n: usize, k: usize) -> [usize; 2] {
        let mr = MV * V::LANES;
        let mut rows = (A_BYTES / size_of::<T>() / k / mr).max(1);
        let mut cols = WIDTH[1];
        let wanted = TILES * self.member.count();
        while m.div_ceil(rows * mr) * n.div_ceil(cols) < wanted && (rows > 1 || cols > WIDTH[0]) {
            if cols >= rows * mr && cols > WIDTH[0] { cols /= 2 } else { rows = rows.div_ceil(2) }
        }
        [rows * mr, cols]
    }

    /// Applies to the columns of each panel the row exchanges of all later panels.
    unsafe fn exchange_left(&self) {
        let (m, n) = self.job.a.shape();
        let steps = m.min(n);
        while let Some(strip) = self.shared.left.take(steps.div_ceil(LEFT_STRIP)) {
            let first = strip * LEFT_STRIP;
            let from = (first / self.width + 1) * self.width;
            if from < steps {
                let later = self.job.part(from, m - from, steps - from);
                // SAFETY: no other member writes this strip. It lies within one panel, whose width is a multiple of a strip's.
                unsafe { later.swap(self.job.a.sub(from, first, m - from, LEFT_STRIP.min(steps - first))) }
            }
        }
    }
}
