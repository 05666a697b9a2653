//! A product computed by a team. In a small product, each member packs the operands of its own tiles of C. In a larger product, the
//! members share the packing of A and B, and then claim tiles of C.
//!
//! A larger product has the structure of the products in BLIS (Van Zee and van de Geijn 2015, Smith et al. 2014). All members pack
//! pieces of a block of B and of a block of A. When the blocks of A and B are packed, members compute tiles of C. A member that
//! finds no more tiles starts to pack the next blocks into a second buffer. A member waits only for claimed pieces of work, and
//! never for a member without a piece. A thread that starts late, or is descheduled between two pieces, therefore does not delay
//! the other members.

use std::sync::atomic::{AtomicUsize, Ordering};

use lapidary_core::Scalar;

use super::blocks::Blocks as MaxBlocks;
use super::deep::{by_ranges, ranges};
use super::gemm::{Gemm, MV, Macro, even};
use super::micro::Strided;
use super::pack::{Workspace, pack};
use super::simd::{Kernel, Lanes, Simd};
use crate::team::{Member, Team, WorkCounter};
use crate::tile::Tile;

/// Minimum work per member. Work is the number of floating-point operations times the bytes per element.
const WORK_OF_MEMBER: f64 = 16e6;
/// A product is small if the work per member is at most `SMALL` times [`WORK_OF_MEMBER`].
const SMALL: f64 = 4.0;
/// Minimum number of rows and of columns that a member computes at a time in a small product: multiples of every micro-tile's size.
const SMALL_TILE: [usize; 2] = [48, 32];
/// Minimum number of tiles per member. With several tiles per member, a slow member claims fewer tiles than the other members.
const TILES: usize = 8;
/// Maximum number of panels of B for one tile of C. For each panel of B, a member reads the rows of A for the tile once from the
/// second-level cache.
const TILE_PANELS: usize = 64;
/// Minimum number of pieces per member into which the packing of a block of A and a block of B is divided.
const PACKINGS: usize = 3;
/// Maximum number of panels that a member packs at a time.
const PACKED_PANELS: usize = 8;
/// Number of multiplications that take as long as copying one element.
const FLOPS_OF_MOVE: f64 = 8.0;
/// If C has at most this many rows or columns, only the other dimension of C is divided among members.
const NARROW: usize = 32;

/// Computes a product with as many members as the size of the product justifies.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub(super) unsafe fn by_team<T: Lanes>(team: &Team, gemm: &Gemm<T>) {
    let (m, n) = gemm.c.shape();
    let flops = 2.0 * m as f64 * n as f64 * gemm.k as f64;
    let work = flops * size_of::<T>() as f64 / WORK_OF_MEMBER;
    let members = team.members(work);
    let ranges = if members > 1 { ranges(gemm, members) } else { 1 };
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe {
        if ranges > 1 {
            by_ranges(team, members, ranges, gemm);
        } else if n.min(m) <= NARROW {
            // only the longer dimension of C is divided among the members
            let moves = (m.min(n) as f64 / FLOPS_OF_MOVE).max(1.0) * gemm.k as f64;
            team.in_strips(m.max(n), moves, |strip| {
                let part = if n <= m { gemm.part(strip, 0..n) } else { gemm.part(0..m, strip) };
                part.on_this_thread();
            });
        } else if members == 1 {
            gemm.on_this_thread();
        } else if work <= SMALL * members as f64 {
            by_tiles(team, members, gemm);
        } else {
            T::dispatch(Shared { team, members, gemm });
        }
    }
}

/// Computes a small product. Each member packs the operands of its own tiles. To share packed operands would take more time,
/// because members would wait for each other and read the operands from the caches of other cores.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
unsafe fn by_tiles<T: Lanes>(team: &Team, members: usize, gemm: &Gemm<T>) {
    let ((m, n), [rows, mut cols]) = (gemm.c.shape(), SMALL_TILE);
    let down = m.div_ceil(rows);
    while down * (n / (2 * cols)) >= TILES * members {
        cols *= 2;
    }
    // the last tile in each row of tiles takes the remaining columns, because a tile of a single column would be computed by
    // another method
    let (across, tiles) = (n / cols, WorkCounter::default());
    team.run_in_time(members, &|_| {
        while let Some(tile) = tiles.take(down * across) {
            let (i, j) = (tile % down * rows, tile / down * cols);
            let end = if j + 2 * cols > n { n } else { j + cols };
            // SAFETY: the caller guarantees the contract of tiles; the tiles of C do not overlap, and one member computes each
            // tile.
            unsafe { gemm.part(i..m.min(i + rows), j..end).on_this_thread() }
        }
    });
}

/// A product in which all members use the same packed operands.
struct Shared<'a, T> {
    team: &'a Team,
    members: usize,
    gemm: &'a Gemm<T>,
}

/// Block sizes: `mc` rows of A, `nc` columns of B, and the length `kc` of both blocks along k.
#[derive(Clone, Copy)]
struct Blocks {
    mc: usize,
    nc: usize,
    kc: usize,
}

/// Counts the pieces of work of a stage: all pieces, the claimed pieces, and the completed pieces.
#[derive(Default)]
struct StageCounter {
    count: usize,
    pieces: WorkCounter,
    done: AtomicUsize,
}

impl StageCounter {
    fn of(count: usize) -> Self {
        StageCounter { count, ..StageCounter::default() }
    }

    /// Claims the next piece of the stage.
    #[inline(always)]
    fn take(&self) -> Option<usize> {
        self.pieces.take(self.count)
    }

    /// Counts one more piece of the stage as done.
    #[inline(always)]
    fn end(&self) {
        self.done.fetch_add(1, Ordering::Release);
    }

    /// Waits until all pieces of the stage are done.
    fn wait(&self, member: &Member<'_>) {
        member.wait_until(|| self.done.load(Ordering::Acquire) == self.count);
    }
}

/// The product of one block of A and one block of B, added to a block of C.
struct Step<T> {
    max: MaxBlocks,
    a: Strided<T>,
    b: Strided<T>,
    c: Tile<T>,
    k: usize,
    beta: T,
    a_buffer: *mut T,
    b_buffer: *mut T,
    /// Counts the pieces that are to be packed: the pieces of the block of B, then the pieces of the block of A. `of_b` is the
    /// number of pieces of B, or 0 if an earlier step has packed the block of B.
    packing: StageCounter,
    of_b: usize,
    /// Number of rows of A, and of columns of B, that a member packs at a time.
    packed: [usize; 2],
    /// Counts the tiles of C. `tile` holds the numbers of rows and columns of a tile.
    tiles: StageCounter,
    tile: [usize; 2],
}

// SAFETY: members write different panels of the buffers and different tiles of C. Members read a buffer only after all its panels
// are packed.
unsafe impl<T: Sync> Sync for Step<T> {}

impl<T: Lanes> Kernel<T> for Shared<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        let blocks = self.blocks::<V>();
        let a = blocks.mc.next_multiple_of(MV * V::LANES) * blocks.kc;
        let b = blocks.nc.next_multiple_of(V::NR) * blocks.kc;
        let mut workspace = Workspace::of_team::<T>(2 * (a + b));
        let memory = workspace.ptr::<T>();
        let buffers = [[0, a], [2 * a, 2 * a + b]].map(|two| two.map(|at| memory.wrapping_add(at)));
        let (steps, alpha) = (self.steps::<V>(blocks, buffers), self.gemm.alpha);
        self.team.run_in_time(self.members, &|member| {
            // SAFETY: the caller guarantees the contract of tiles, and the buffers have room for two blocks of each operand.
            unsafe { V::call(Part { alpha, steps: &steps, member }) }
        });
    }
}

impl<T: Scalar> Shared<'_, T> {
    /// The block sizes. Each block fits into the level of cache for which it is meant. The blocks along one dimension are nearly
    /// equal in size.
    fn blocks<V: Simd<Elem = T>>(&self) -> Blocks {
        let (m, n) = self.gemm.c.shape();
        let max = self.gemm.max;
        let kc = even(self.gemm.k, max.kc, 1);
        let most = max.team_mc.max(self.members * max.mc) * max.kc / kc;
        Blocks { mc: even(m, most, MV * V::LANES), nc: even(n, max.team_nc, V::NR), kc }
    }

    /// The steps of the product. Consecutive blocks of an operand use the two buffers of the operand alternately.
    fn steps<V: Simd<Elem = T>>(&self, Blocks { mc, nc, kc }: Blocks, buffers: [[*mut T; 2]; 2]) -> Vec<Step<T>> {
        let Gemm { k, a, b, beta, c, .. } = *self.gemm;
        let (m, n) = c.shape();
        let [mut of_a, mut of_b] = buffers.map(|two| two.into_iter().cycle());
        let mut steps = Vec::new();
        for j in (0..n).step_by(nc) {
            for p in (0..k).step_by(kc) {
                let b_buffer = of_b.next().expect("endless");
                for i in (0..m).step_by(mc) {
                    let (m, n, k) = (mc.min(m - i), nc.min(n - j), kc.min(k - p));
                    let (tile, packed) = (self.tile::<V>(m, n, k), self.packed::<V>(m, n));
                    let of_b = if i == 0 { n.div_ceil(packed[1]) } else { 0 };
                    steps.push(Step {
                        max: self.gemm.max,
                        a: a.at(i, p),
                        b: b.at(p, j),
                        c: c.sub(i, j, m, n),
                        k,
                        beta: if p == 0 { beta } else { T::ONE },
                        a_buffer: of_a.next().expect("endless"),
                        b_buffer,
                        packing: StageCounter::of(of_b + m.div_ceil(packed[0])),
                        of_b,
                        packed,
                        tiles: StageCounter::of(m.div_ceil(tile[0]) * n.div_ceil(tile[1])),
                        tile,
                    });
                }
            }
        }
        steps
    }

    /// Number of rows of A, and of columns of B, that a member packs at a time. Each member gets several pieces to pack.
    fn packed<V: Simd<Elem = T>>(&self, m: usize, n: usize) -> [usize; 2] {
        let share = (m + n) / (PACKINGS * self.members);
        [MV * V::LANES, V::NR].map(|width| width * (share / width).clamp(1, PACKED_PANELS))
    }

    /// Number of rows and columns of a tile of C. A tile fits into the caches, and is so small that each member gets several tiles.
    fn tile<V: Simd<Elem = T>>(&self, m: usize, n: usize, k: usize) -> [usize; 2] {
        let mr = MV * V::LANES;
        let (all_rows, all_cols) = (m.div_ceil(mr), n.div_ceil(V::NR));
        let mut rows = (self.gemm.max.of_thread() / k / mr).max(1).min(all_rows);
        let mut cols = TILE_PANELS.min(all_cols);
        let wanted = TILES * self.members;
        while all_rows.div_ceil(rows) * all_cols.div_ceil(cols) < wanted && rows * cols > 1 {
            // halves the side of the tile that is longer in elements
            if rows == 1 || (cols > 1 && cols * V::NR >= rows * mr) { cols = cols.div_ceil(2) } else { rows = rows.div_ceil(2) }
        }
        [rows * mr, cols * V::NR]
    }
}

/// The part of a product that one member runs.
struct Part<'a, T> {
    alpha: T,
    steps: &'a [Step<T>],
    member: &'a Member<'a>,
}

impl<T: Scalar> Kernel<T> for Part<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        for (at, step) in self.steps.iter().enumerate() {
            // SAFETY: the caller guarantees the contract of tiles; the blocks lie in the operands, and the packed blocks fit into
            // the buffers. Step `at` packs into buffers that step `at - 2` reads, and may write elements of C that step `at - 1`
            // writes. The loop waits for steps `at - 2` and `at - 1` before step `at` writes these buffers and elements.
            unsafe {
                if at >= 2 {
                    self.steps[at - 2].tiles.wait(self.member);
                }
                step.pack::<V>();
                step.packing.wait(self.member);
                if at >= 1 {
                    self.steps[at - 1].tiles.wait(self.member);
                }
                step.multiply::<V>(self.alpha);
            }
        }
    }
}

impl<T: Scalar> Step<T> {
    /// Claims pieces of the blocks of A and B and packs these pieces, until no piece is left.
    #[inline(always)]
    unsafe fn pack<V: Simd<Elem = T>>(&self) {
        let ((m, n), k, [rows, cols]) = (self.c.shape(), self.k, self.packed);
        while let Some(piece) = self.packing.take() {
            // SAFETY: the piece lies in the blocks and in the buffers, and no other member packs this piece.
            unsafe {
                if piece < self.of_b {
                    let j = piece * cols;
                    pack::<V>(V::NR, cols.min(n - j), k, self.b.at(0, j).transposed(), self.b_buffer.wrapping_add(j * k));
                } else {
                    let i = (piece - self.of_b) * rows;
                    pack::<V>(MV * V::LANES, rows.min(m - i), k, self.a.at(i, 0), self.a_buffer.wrapping_add(i * k));
                }
            }
            self.packing.end();
        }
    }

    /// Claims tiles of C and computes them, until no tile is left.
    #[inline(always)]
    unsafe fn multiply<V: Simd<Elem = T>>(&self, alpha: T) {
        let ((m, n), k, mr) = (self.c.shape(), self.k, MV * V::LANES);
        let [rows, cols] = self.tile;
        let down = m.div_ceil(rows);
        while let Some(tile) = self.tiles.take() {
            let (i, j) = (tile % down * rows, tile / down * cols);
            let a = Strided { ptr: self.a_buffer.wrapping_add(i * k).cast_const(), rs: k, cs: mr };
            let b = Strided { ptr: self.b_buffer.wrapping_add(j * k).cast_const(), rs: V::NR, cs: 1 };
            let c = self.c.sub(i, j, rows.min(m - i), cols.min(n - j));
            // SAFETY: the panels of A and B are packed, and no other member writes this tile of C.
            unsafe { Macro { product: Gemm { k, alpha, a, b, beta: self.beta, c, max: self.max }, packed_b: true }.run::<V>() }
            self.tiles.end();
        }
    }
}
