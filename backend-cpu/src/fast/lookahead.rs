//! LU factorisation by a team with lookahead: some members factor the next panel while the other members update the trailing
//! matrix.
//!
//! Each step of the factorisation has two parts, separated by a barrier. In the first part, members claim strips of the columns
//! right of the panel. In each strip, a member exchanges rows and solves for the rows of U. Members also pack the two operands L21
//! and U12 of the update. In the second part, members claim tiles of the update, first the tiles in the columns of the next panel.
//! When all tiles in the columns of the next panel are done, a group of members factors the next panel and then claims tiles like
//! the other members (Catalán, Herrero, Quintana-Ortí, Rodríguez-Sánchez and van de Geijn 2017). In the columns left of each panel,
//! rows are exchanged at the end of the factorisation.
//!
//! A row-major matrix and its column-major transpose have the same layout in memory. The panels of a row-major matrix are factored
//! in a column-major copy, and the update of a row-major matrix is computed as its transpose: A22ᵀ ← A22ᵀ − U12ᵀ·L21ᵀ.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapidary_core::{Diag, Op, Side, Uplo};

use super::gemm::{Gemm, MV, Macro, strided};
use super::getrf::{Job, Rank, factor};
use super::micro::Strided;
use super::pack::{Workspace, pack};
use super::panel::PivotSearch;
use super::simd::{Kernel, Lanes, Simd};
use super::stored::Stored;
use super::transpose::transpose;
use super::trsm::trsm;
use crate::team::{Member, Team, WorkCounter};
use crate::tile::Tile;

/// Minimum number of floating-point operations per member.
const FLOPS_OF_MEMBER: f64 = 13e6;
/// Minimum and maximum number of columns of a panel.
const WIDTH: [usize; 2] = [32, 256];
/// Number of panels into which a matrix is divided if [`WIDTH`] permits it: from the first number, for few members, to the second
/// number, for many members. With more members, the update that runs beside the factorisation of a panel takes less time, so a
/// panel must be narrower (bench/results/2026-11-24-cpu-team.txt).
const PANELS: [usize; 2] = [8, 16];
/// Maximum number of columns in a strip that a member claims in the first part of a step.
const STRIP: usize = 64;
/// Maximum number of columns in a strip that a member claims in the first part of a step, if the matrix is row-major. In each row,
/// neighbouring strips share a cache line. Two members that write to one cache line slow each other down, so each member gets one
/// wide strip (bench/results/2026-11-25-cpu-by-rows.txt).
const WIDE_STRIP: usize = 512;
/// Left of the panels, a member exchanges the rows of this number of columns at a time. In a row-major matrix, a member exchanges
/// the rows of all columns of one panel at a time instead.
const LEFT_STRIP: usize = 32;
/// A matrix that is not wider than the widest panel is factored as one panel if it has at least `TALL` times as many rows as
/// columns.
const TALL: usize = 4;
/// Number of rows of L that a member packs at a time.
const PACKED_ROWS: usize = 256;
/// One member factors a panel in the time in which an update computes `SLOWNESS_OF_PANEL · rows · width²` multiplications
/// (bench/results/2026-11-25-cpu-panels.txt).
const SLOWNESS_OF_PANEL: f64 = 1.1;
/// Two members need about 3 µs to agree on the pivot of a column. While two members agree on a pivot, an update computes
/// `COST_OF_COLUMN / size_of::<T>()` multiplications (bench/results/2026-11-25-cpu-panels.txt).
const COST_OF_COLUMN: f64 = 1200e3;
/// Each member's share of the rows of the first panel starts at a multiple of this number.
const LINES: usize = 64;
/// Minimum number of tiles per member. With several tiles per member, a slow member claims fewer tiles than the other members.
const TILES: usize = 6;

/// Factors the tile of the job, or the transpose of this tile, with as many members as the size of the matrix justifies.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub(super) unsafe fn by_team<T: Lanes>(team: &Team, op: Op, job: &Job<T>) {
    let (m, n) = op.shape(job.a.shape());
    let steps = m.min(n);
    debug_assert!(job.ipiv.rows() >= steps);
    let members = team.members(flops(m as f64, n as f64) / FLOPS_OF_MEMBER);
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe {
        if members == 1 && op == Op::NoTrans {
            factor(Rank::ALONE, job, &PivotSearch::new(1));
        } else if steps > 0 {
            let panels = if n <= WIDTH[1] && m >= TALL * n { 1 } else { (PANELS[0] + members / 2).min(PANELS[1]) };
            let width = (steps / panels).next_multiple_of(WIDTH[0]).clamp(WIDTH[0], WIDTH[1]);
            T::dispatch(Lookahead { team, members, job, stored: Stored { tile: job.a, op }, width });
        }
    }
}

/// Number of floating-point operations of the LU factorisation of an m × n matrix.
fn flops(m: f64, n: f64) -> f64 {
    let steps = m.min(n);
    2.0 * m * n * steps - (m + n) * steps * steps + 2.0 / 3.0 * steps * steps * steps
}

/// A factorisation in panels of `width` columns.
struct Lookahead<'a, T> {
    team: &'a Team,
    members: usize,
    job: &'a Job<T>,
    stored: Stored<T>,
    width: usize,
}

/// The state that all members share during a factorisation.
struct Shared<T> {
    /// Buffers for the packed factors L and U of an update.
    l_buffer: *mut T,
    u_buffer: *mut T,
    /// Buffer for the column-major copy of a panel.
    panel: *mut T,
    search: PivotSearch<T>,
    /// Counter of the pieces in the first part of a step: strips of U, then blocks of L that are to be packed.
    strips: WorkCounter,
    /// Counter of the tiles in the second part of a step.
    tiles: WorkCounter,
    /// Number of completed tiles in the columns of the next panel.
    ready: AtomicUsize,
    /// Counter of the strips left of the panels, in which rows are exchanged at the end of the factorisation.
    left: WorkCounter,
}

// SAFETY: before a barrier, members write different panels of the buffers. After the barrier, members only read the buffers.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T: Lanes> Kernel<T> for Lookahead<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        let ((m, n), width) = (self.stored.shape(), self.width);
        let [of_l, of_u] = self.stored.units::<V>();
        let (l, u) = (m.next_multiple_of(of_l) * width, n.next_multiple_of(of_u) * width);
        let panel = if self.stored.is_by_rows() { m * width } else { 0 };
        let mut workspace = Workspace::of_team::<T>(l + u + panel);
        let memory = workspace.ptr::<T>();
        let shared = Shared {
            l_buffer: memory,
            u_buffer: memory.wrapping_add(l),
            panel: memory.wrapping_add(l + u),
            search: PivotSearch::new(self.members),
            strips: WorkCounter::default(),
            tiles: WorkCounter::default(),
            ready: AtomicUsize::new(0),
            left: WorkCounter::default(),
        };
        self.team.run(self.members, &|member| {
            // SAFETY: the caller guarantees the contract of tiles, and the buffers have room for both operands of an update.
            unsafe { V::call(Part { job: self.job, stored: self.stored, width, shared: &shared, member }) }
        });
    }
}

/// The part of a factorisation that one member runs.
struct Part<'a, T> {
    job: &'a Job<T>,
    stored: Stored<T>,
    width: usize,
    shared: &'a Shared<T>,
    member: &'a Member<'a>,
}

/// A factored panel, with which the trailing matrix is updated.
#[derive(Clone, Copy)]
struct Step {
    /// `at` is the index of the first row and of the first column of the panel; `width` is the panel's number of columns.
    at: usize,
    width: usize,
    /// Width of the next panel.
    next: usize,
}

impl<T: Lanes> Kernel<T> for Part<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        let (m, n) = self.stored.shape();
        let steps = m.min(n);
        let width = |at: usize| self.width.min(steps - at);
        let Shared { strips, tiles, ready, .. } = self.shared;
        // SAFETY: the caller guarantees the contract of tiles. Between two barriers, members write different parts of the matrix.
        unsafe {
            if self.stored.is_by_rows() {
                let own = Rank::among(self.member, self.member.count()).share(m, LINES);
                self.load_panel::<V>(0, width(0), own);
                self.member.wait_for_all(|| ());
            }
            self.factor(0, width(0), self.group(m, width(0), 0.0));
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
    /// The size of the group that factors a panel of `rows` × `width` while the other members do an update of `update`
    /// multiplications. The function returns the size of the group with which the step is expected to end earliest. Each member of
    /// the group waits once per pivot, and does not work on the update while it waits.
    fn group(&self, rows: usize, width: usize, update: f64) -> usize {
        let (all, width) = (self.member.count(), width as f64);
        let panel = SLOWNESS_OF_PANEL * rows as f64 * width * width;
        let agreement = |group: f64| width * COST_OF_COLUMN / size_of::<T>() as f64 * group.log2();
        let step = |&group: &usize| {
            let group = group as f64;
            let lost = agreement(group);
            (panel / group + lost).max((panel + update + group * lost) / all as f64)
        };
        (1..=all).min_by(|a, b| step(a).total_cmp(&step(b))).unwrap_or(1)
    }

    /// The memory of the panel at (`at`, `at`) during its factorisation and use: the matrix, or a column-major copy of the panel.
    fn panel(&self, at: usize, width: usize) -> Tile<T> {
        let rows = self.stored.shape().0 - at;
        if self.stored.is_by_rows() {
            // SAFETY: the buffer `shared.panel` has room for a panel of this size.
            unsafe { Tile::new(self.shared.panel, rows, width, rows) }
        } else {
            self.stored.tile.sub(at, at, rows, width)
        }
    }

    /// Copies rows of the panel at (`at`, `at`) from the row-major matrix to the column-major copy.
    #[inline(always)]
    unsafe fn load_panel<V: Simd<Elem = T>>(&self, at: usize, width: usize, rows: Range<usize>) {
        let [stored, copy] = self.panel_rows(at, width, rows);
        // SAFETY: the caller guarantees the contract of tiles; the shapes agree.
        unsafe { transpose::<V>(stored, copy) }
    }

    /// Copies rows of the panel at (`at`, `at`) from the column-major copy back to the row-major matrix.
    #[inline(always)]
    unsafe fn store_panel<V: Simd<Elem = T>>(&self, at: usize, width: usize, rows: Range<usize>) {
        let [stored, copy] = self.panel_rows(at, width, rows);
        // SAFETY: the caller guarantees the contract of tiles; the shapes agree.
        unsafe { transpose::<V>(copy, stored) }
    }

    /// The tiles for some rows of the panel at (`at`, `at`): one in the row-major matrix, and one in the copy.
    fn panel_rows(&self, at: usize, width: usize, rows: Range<usize>) -> [Tile<T>; 2] {
        let copy = self.panel(at, width).sub(rows.start, 0, rows.len(), width);
        [self.stored.sub(at + rows.start, at, rows.len(), width), copy]
    }

    /// Factors the panel at (`at`, `at`) if this member belongs to the group.
    unsafe fn factor(&self, at: usize, width: usize, group: usize) {
        if self.member.index < group {
            let (a, all) = (self.panel(at, width), self.job);
            let job = Job { first_row: all.first_row + at, a, ipiv: all.ipiv.sub(at, 0, width, 1), ..*all };
            // SAFETY: only the members of the group access the panel while they factor it.
            unsafe { factor(Rank::among(self.member, group), &job, &self.shared.search) }
        }
    }

    /// Applies the row exchanges of the elimination steps `steps` to a part of the matrix. Row 0 of `part` is row `steps.start` of
    /// the matrix.
    unsafe fn exchange(&self, steps: Range<usize>, part: Tile<T>) {
        let side = if self.stored.is_by_rows() { Side::Right } else { Side::Left };
        // SAFETY: the caller guarantees the contract of tiles.
        unsafe { self.job.swap(steps, side, part) }
    }

    /// Runs the first part of a step: exchanges rows right of the panel, solves for the rows of U, and packs L21 and U12.
    #[inline(always)]
    unsafe fn solve<V: Simd<Elem = T>>(&self, Step { at, width, .. }: Step) {
        let ((m, n), is_by_rows, [of_l, of_u]) = (self.stored.shape(), self.stored.is_by_rows(), self.stored.units::<V>());
        let (right, below) = (at + width, m - at - width);
        let panel = self.panel(at, width);
        let l11 = panel.sub(0, 0, width, width);
        let (share, most) = if is_by_rows { (1, WIDE_STRIP) } else { (4, STRIP) };
        let cols = (n - right).div_ceil(share * self.member.count()).min(most).max(of_u).next_multiple_of(of_u);
        let rows = of_l * (PACKED_ROWS / of_l).max(1);
        let strips = (n - right).div_ceil(cols);
        // blocks of L are packed if there are columns to update, and are copied back to the matrix if the panel is a copy
        let blocks = if n > right || is_by_rows { below.div_ceil(rows) } else { 0 };
        while let Some(piece) = self.shared.strips.take(strips + blocks + usize::from(is_by_rows)) {
            // SAFETY: no other member writes the strip or the packed block of this piece, and all members only read the panel.
            unsafe {
                if piece < strips {
                    let (j, alone) = (piece * cols, Team::of_one(self.job.blocking));
                    let count = cols.min(n - right - j);
                    self.exchange(at..right, self.stored.sub(at, right + j, m - at, count));
                    // U12 ← L11⁻¹·A12, or U12ᵀ ← A12ᵀ·L11⁻ᵀ for a row-major matrix
                    let u = self.stored.sub(at, right + j, width, count);
                    let (side, to_columns) = if is_by_rows { (Side::Right, Op::NoTrans) } else { (Side::Left, Op::Trans) };
                    trsm(&alone, side, Uplo::Lower, self.stored.op, Diag::Unit, T::ONE, l11, u);
                    pack::<V>(of_u, count, width, strided(to_columns, u), self.shared.u_buffer.wrapping_add(j * width));
                } else if piece == strips + blocks {
                    self.store_panel::<V>(at, width, 0..width);
                } else {
                    let i = (piece - strips) * rows;
                    if is_by_rows {
                        self.store_panel::<V>(at, width, width + i..width + (i + rows).min(below));
                    }
                    let l = panel.sub(width + i, 0, rows.min(below - i), width);
                    pack::<V>(of_l, l.rows(), width, strided(Op::NoTrans, l), self.shared.l_buffer.wrapping_add(i * width));
                }
            }
        }
    }

    /// Runs the second part of a step: A22 ← A22 − L21·U12, and the factorisation of the next panel.
    #[inline(always)]
    unsafe fn update<V: Simd<Elem = T>>(&self, step: Step) {
        let Step { at, width, next } = step;
        let ((m, n), right) = (self.stored.shape(), at + width);
        let (below, beside) = (m - right, n - right);
        // the first block of columns is the next panel, rounded up to whole packed panels of U
        let first = next.next_multiple_of(self.stored.units::<V>()[1]).min(beside);
        let [rows, cols] = self.tile::<V>(below, beside - first, width);
        let down = below.div_ceil(rows);
        let blocks = usize::from(first > 0) + (beside - first).div_ceil(cols);
        let group = self.group(below, next, below as f64 * (beside - first) as f64 * width as f64);
        let mut to_factor = next > 0 && self.member.index < group;
        loop {
            // once all tiles in the columns of the next panel are claimed, the group waits until they are done and factors the
            // panel
            if to_factor && self.shared.tiles.taken() >= down {
                self.member.wait_until(|| self.shared.ready.load(Ordering::Acquire) == down);
                // SAFETY: the tiles in the columns of the next panel are done, and only the group accesses the panel now.
                unsafe { self.factor(right, next, group) }
                to_factor = false;
            }
            let Some(tile) = self.shared.tiles.take(down * blocks) else { if to_factor { continue } else { return } };
            let (i, block) = (tile % down * rows, tile / down);
            let is_first = first > 0 && block == 0;
            let j = if is_first { 0 } else { first + (block - usize::from(first > 0)) * cols };
            let count = if is_first { first } else { cols.min(beside - j) };
            let c = self.stored.sub(right + i, right + j, rows.min(below - i), count);
            // SAFETY: no other member writes this tile, and all members have packed their parts of L and U.
            unsafe {
                self.multiply::<V>(i, j, width, c);
                if is_first && self.stored.is_by_rows() {
                    self.load_panel::<V>(right, next, i..(i + rows).min(below));
                }
            }
            if is_first {
                self.shared.ready.fetch_add(1, Ordering::Release);
            }
        }
    }

    /// C ← C − L·U, with the packed rows of L from row `i` on, and the packed columns of U from column `j` on.
    #[inline(always)]
    unsafe fn multiply<V: Simd<Elem = T>>(&self, i: usize, j: usize, k: usize, c: Tile<T>) {
        let (l, u) = (self.shared.l_buffer.wrapping_add(i * k), self.shared.u_buffer.wrapping_add(j * k));
        let [a, b] = if self.stored.is_by_rows() { [u, l] } else { [l, u] }.map(<*mut T>::cast_const);
        let (a, b) = (Strided { ptr: a, rs: k, cs: MV * V::LANES }, Strided { ptr: b, rs: V::NR, cs: 1 });
        // SAFETY: the caller guarantees the contract of tiles.
        unsafe {
            let max = self.job.blocking.of::<T>();
            Macro { product: Gemm { k, alpha: -T::ONE, a, b, beta: T::ONE, c, max }, packed_b: true }.run::<V>();
        }
    }

    /// Number of rows and columns of a tile of an m × n update. The part of the micro-kernel's first operand that the tile uses
    /// fits into the second-level cache. Each member gets several tiles.
    #[inline(always)]
    fn tile<V: Simd<Elem = T>>(&self, m: usize, n: usize, k: usize) -> [usize; 2] {
        let mr = MV * V::LANES;
        let (m, n) = self.stored.op.shape((m, n));
        let mut rows = (self.job.blocking.of::<T>().of_thread() / k / mr).max(1);
        let mut cols = WIDTH[1];
        let wanted = TILES * self.member.count();
        while m.div_ceil(rows * mr) * n.div_ceil(cols) < wanted && (rows > 1 || cols > WIDTH[0]) {
            if cols >= rows * mr && cols > WIDTH[0] { cols /= 2 } else { rows = rows.div_ceil(2) }
        }
        let (rows, cols) = self.stored.op.shape((rows * mr, cols));
        [rows, cols]
    }

    /// Applies to the columns of each panel the row exchanges of all panels right of it.
    unsafe fn exchange_left(&self) {
        let (m, n) = self.stored.shape();
        let steps = m.min(n);
        let cols = if self.stored.is_by_rows() { self.width } else { LEFT_STRIP };
        while let Some(strip) = self.shared.left.take(steps.div_ceil(cols)) {
            let first = strip * cols;
            let from = (first / self.width + 1) * self.width;
            if from < steps {
                let part = self.stored.sub(from, first, m - from, cols.min(steps - first));
                // SAFETY: no other member accesses this strip. The width of a panel is a multiple of the width of a strip, so the
                // strip lies in one panel.
                unsafe { self.exchange(from..steps, part) }
            }
        }
    }
}
