//! LU by a team: some members factor the next panel while the others update the matrix with the one before.
//!
//! Each step has two parts, between which all members meet. First they take strips of the columns right of the panel: rows are
//! exchanged, the rows of U are solved for, and both factors of the update are packed. Then they take tiles of the update,
//! those in the columns of the next panel first. Once these are done, the first members factor that panel as a group, and then
//! take tiles like the others (Catalán, Herrero, Quintana-Ortí, Rodríguez-Sánchez and van de Geijn 2017). The exchanges left of the
//! panels are done in the end.

use std::sync::atomic::{AtomicUsize, Ordering};

use lapidary_core::{Diag, Op, Side, Uplo};

use super::gemm::{A_BYTES, Gemm, MV, Macro, strided};
use super::getrf::{Job, Place, factor};
use super::micro::Strided;
use super::pack::{Workspace, pack};
use super::panel::Search;
use super::simd::{Kernel, Lanes, Simd};
use super::trsm::trsm;
use crate::team::{Member, Pieces, Team};
use crate::tile::Tile;

/// Operations that repay a member's wake-up.
const FLOPS_OF_MEMBER: f64 = 15e6;
/// Narrowest and widest panel.
const WIDTH: [usize; 2] = [32, 256];
/// Fewest and most panels of a small matrix: with more members there is less to do beside a panel, so that narrow ones pay
/// (bench/results/2026-11-24-cpu-team.txt).
const PANELS: [usize; 2] = [8, 16];
/// Most columns that are exchanged, solved for and packed at a time.
const STRIP: usize = 64;
/// Columns whose rows are exchanged at a time in the end.
const LEFT_STRIP: usize = 32;
/// Fewest rows of a panel that repay a member of its group.
const ROWS_OF_MEMBER: usize = 256;
/// How much longer an operation takes in a panel than in an update.
const SLOWNESS_OF_PANEL: f64 = 3.0;
/// Tiles for each member, so that a slow one takes fewer.
const TILES: usize = 6;

/// Factors a matrix with as many members as it repays.
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
            factor(Place::ALONE, job, &Search::new(1));
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

/// What all members share.
struct Shared<T> {
    /// Rooms for the packed factors of an update.
    a_room: *mut T,
    b_room: *mut T,
    search: Search<T>,
    /// Pieces of the first part of a step.
    strips: Pieces,
    /// Tiles of the second part.
    tiles: Pieces,
    /// Tiles in the columns of the next panel that are done.
    ready: AtomicUsize,
    /// Strips left of the panels.
    left: Pieces,
}

// SAFETY: members write different panels of the rooms before they meet, and only read them afterwards.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T: Lanes> Kernel<T> for Lookahead<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        let ((m, n), width) = (self.job.a.shape(), self.width);
        let a = m.next_multiple_of(MV * V::LANES) * width;
        let b = (n + STRIP).next_multiple_of(V::NR) * width;
        let mut workspace = Workspace::of_team::<T>(a + b);
        let room = workspace.ptr::<T>();
        let shared = Shared {
            a_room: room,
            b_room: room.wrapping_add(a),
            search: Search::new(self.members),
            strips: Pieces::default(),
            tiles: Pieces::default(),
            ready: AtomicUsize::new(0),
            left: Pieces::default(),
        };
        self.team.run(self.members, &|member| {
            // SAFETY: the caller's matrix, and room for both factors.
            unsafe { V::call(Part { job: self.job, width, shared: &shared, member }) }
        });
    }
}

/// A member's part in a factorisation.
struct Part<'a, T> {
    job: &'a Job<T>,
    width: usize,
    shared: &'a Shared<T>,
    member: &'a Member<'a>,
}

/// A panel that is factored, and what right of it and below it is to be updated.
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
        // SAFETY: the caller's matrix; members write different parts of it between two meetings.
        unsafe {
            self.panel(0, width(0), self.group(m, width(0), 0.0));
            self.member.meet(|| ());
            for at in (0..steps).step_by(self.width) {
                let step = Step { at, width: width(at), next: width((at + width(at)).min(steps)) };
                self.solve::<V>(step);
                self.member.meet(|| {
                    strips.refill();
                    tiles.refill();
                    ready.store(0, Ordering::Relaxed);
                });
                self.update::<V>(step);
                self.member.meet(|| ());
            }
            self.exchange_left();
        }
    }
}

impl<T: Lanes> Part<'_, T> {
    /// Members that factor a panel of so many rows while the others do an update of so many operations.
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
            // SAFETY: the panel is the group's.
            unsafe { factor(Place::among(self.member, group), &job, &self.shared.search) }
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
        // where there is nothing to update nothing is packed
        let of_a = if n > right { below.div_ceil(rows) } else { 0 };
        while let Some(piece) = self.shared.strips.take(of_b + of_a) {
            // SAFETY: the strip is nobody else's, and the panel is only read.
            unsafe {
                if piece < of_b {
                    let j = piece * cols;
                    let strip = a.sub(at, right + j, m - at, cols.min(n - right - j));
                    panel.swap(strip);
                    let (l11, u) = (a.sub(at, at, width, width), strip.sub(0, 0, width, strip.cols()));
                    trsm(&Team::alone(), Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit, T::ONE, l11, u);
                    pack::<V>(V::NR, u.cols(), width, strided(Op::Trans, u), self.shared.b_room.wrapping_add(j * width));
                } else {
                    let i = (piece - of_b) * rows;
                    let l = a.sub(right + i, at, rows.min(below - i), width);
                    pack::<V>(mr, l.rows(), width, strided(Op::NoTrans, l), self.shared.a_room.wrapping_add(i * width));
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
        // columns in blocks: those of the next panel, to a whole panel of B, then the others
        let first = next.next_multiple_of(V::NR).min(beside);
        let [rows, cols] = self.tile::<V>(below, beside - first, width);
        let down = below.div_ceil(rows);
        let blocks = usize::from(first > 0) + (beside - first).div_ceil(cols);
        let group = self.group(below, next, below as f64 * (beside - first) as f64 * width as f64);
        let mut to_factor = next > 0 && self.member.index < group;
        loop {
            // the panel's tiles were handed out first
            if to_factor && self.shared.tiles.taken() >= down {
                self.member.wait_until(|| self.shared.ready.load(Ordering::Acquire) == down);
                // SAFETY: the tiles of the panel are done, and nobody else touches it.
                unsafe { self.panel(right, next, group) }
                to_factor = false;
            }
            let Some(tile) = self.shared.tiles.take(down * blocks) else { if to_factor { continue } else { return } };
            let (i, block) = (tile % down * rows, tile / down);
            let is_first = first > 0 && block == 0;
            let j = if is_first { 0 } else { first + (block - usize::from(first > 0)) * cols };
            let count = if is_first { first } else { cols.min(beside - j) };
            let c = self.job.a.sub(right + i, right + j, rows.min(below - i), count);
            // SAFETY: the tile is nobody else's, and the factors are packed.
            unsafe { self.multiply::<V>(i, j, width, c) }
            if is_first {
                self.shared.ready.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// C ← C − L·U with the packed rows from `i` and columns from `j` on.
    #[inline(always)]
    unsafe fn multiply<V: Simd<Elem = T>>(&self, i: usize, j: usize, k: usize, c: Tile<T>) {
        let a = Strided { ptr: self.shared.a_room.wrapping_add(i * k).cast_const(), rs: k, cs: MV * V::LANES };
        let b = Strided { ptr: self.shared.b_room.wrapping_add(j * k).cast_const(), rs: V::NR, cs: 1 };
        // SAFETY: as the caller promises.
        unsafe { Macro { product: Gemm { k, alpha: -T::ONE, a, b, beta: T::ONE, c }, packed_b: true }.run::<V>() }
    }

    /// Rows and columns of a tile: no more rows than a second-level cache holds, and several tiles for each member.
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

    /// Exchanges the rows of each panel as the pivots of those right of it say.
    unsafe fn exchange_left(&self) {
        let (m, n) = self.job.a.shape();
        let steps = m.min(n);
        while let Some(strip) = self.shared.left.take(steps.div_ceil(LEFT_STRIP)) {
            let first = strip * LEFT_STRIP;
            let from = (first / self.width + 1) * self.width;
            if from < steps {
                let later = self.job.part(from, m - from, steps - from);
                // SAFETY: the strip is nobody else's. A panel's width is a multiple of a strip's.
                unsafe { later.swap(self.job.a.sub(from, first, m - from, LEFT_STRIP.min(steps - first))) }
            }
        }
    }
}
