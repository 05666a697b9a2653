//! A product by a team: A and B are packed once for all members, who then take tiles of C one after the other.
//!
//! The structure is that of BLIS (Van Zee and van de Geijn 2015, Smith et al. 2014). Blocks of B and of A are packed in pieces by all
//! members; when all are packed, members take tiles of C. While the last tiles are computed, those who find none pack the
//! next blocks into a second room, so that members wait for one another once for each pair of blocks.

use lapidary_core::Scalar;

use super::gemm::{A_BYTES, Gemm, KC_BYTES, MV, Macro, even};
use super::micro::Strided;
use super::pack::{Workspace, pack};
use super::simd::{Kernel, Lanes, Simd};
use crate::team::{Member, Pieces, Team};
use crate::tile::Tile;

/// Operations that repay a member's wake-up, times the bytes of an element: the shorter it is the more a member does.
const WORK_OF_MEMBER: f64 = 16e6;
/// Columns of B that are packed at a time.
const NC: usize = 2048;
/// Bytes of the blocks of A that are packed at a time, at least and for each member: a share of the last-level cache.
const SHARED_BYTES: usize = 8 << 20;
/// Tiles for each member, so that a slow one takes fewer.
const TILES: usize = 8;
/// Panels of B in the widest tile: A is read from a second-level cache for each.
const TILE_PANELS: usize = 64;
/// Panels of an operand that a member packs at a time.
const PACKED_PANELS: usize = 8;
/// Multiplications in the time that it takes to move an element.
const FLOPS_OF_MOVE: usize = 8;
/// Rows or columns of a C so narrow that members share the other dimension only.
const NARROW: usize = 32;

/// Computes a product with as many members as it repays.
///
/// # Safety
/// The [contract of tiles](crate::tile).
pub(super) unsafe fn by_team<T: Lanes>(team: &Team, gemm: &Gemm<T>) {
    let (m, n) = gemm.c.shape();
    let flops = 2.0 * m as f64 * n as f64 * gemm.k as f64;
    let members = team.members(flops * size_of::<T>() as f64 / WORK_OF_MEMBER);
    // SAFETY: as the caller promises.
    unsafe {
        if members == 1 {
            gemm.here();
        } else if n.min(m) <= NARROW {
            // members share the long dimension only
            let (long, work) = (m.max(n), m.min(n) * gemm.k / FLOPS_OF_MOVE);
            team.in_strips(long, work, |strip| {
                let part = if n <= m { gemm.part(strip, 0..n) } else { gemm.part(0..m, strip) };
                part.here();
            });
        } else {
            T::dispatch(Shared { team, members, gemm });
        }
    }
}

/// A product whose operands are packed for all members of a team.
struct Shared<'a, T> {
    team: &'a Team,
    members: usize,
    gemm: &'a Gemm<T>,
}

/// Sizes of the blocks: rows of A, columns of B and terms that are packed at a time.
#[derive(Clone, Copy)]
struct Blocks {
    mc: usize,
    nc: usize,
    kc: usize,
}

/// What all members share.
struct Rooms<T> {
    /// Two rooms for A, and two for B.
    a: [*mut T; 2],
    b: [*mut T; 2],
    /// Pieces of the blocks that are packed next.
    packing: Pieces,
    /// Tiles of C to which the packed blocks contribute.
    tiles: Pieces,
}

// SAFETY: members write different panels before they meet, and only read them afterwards.
unsafe impl<T: Sync> Sync for Rooms<T> {}

impl<T: Lanes> Kernel<T> for Shared<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        let blocks = self.blocks::<V>();
        let a = blocks.mc.next_multiple_of(MV * V::LANES) * blocks.kc;
        let b = blocks.nc.next_multiple_of(V::NR) * blocks.kc;
        let mut workspace = Workspace::take::<T>(2 * (a + b));
        let room = workspace.ptr::<T>();
        let [a, b] = [[0, a], [2 * a, 2 * a + b]].map(|two| two.map(|at| room.wrapping_add(at)));
        let rooms = Rooms { a, b, packing: Pieces::default(), tiles: Pieces::default() };
        self.team.run(self.members, &|member| {
            // SAFETY: the caller's tiles, and room for two blocks of each operand.
            unsafe { V::call(Part { gemm: self.gemm, blocks, rooms: &rooms, member }) }
        });
    }
}

impl<T: Scalar> Shared<'_, T> {
    /// The block sizes, each at most what the caches hold, and even.
    fn blocks<V: Simd<Elem = T>>(&self) -> Blocks {
        let (m, n) = self.gemm.c.shape();
        let kc = even(self.gemm.k, KC_BYTES / size_of::<T>(), 1);
        let most = SHARED_BYTES.max(self.members * A_BYTES) / size_of::<T>() / kc;
        Blocks { mc: even(m, most, MV * V::LANES), nc: even(n, NC, V::NR), kc }
    }
}

/// A member's part in a product.
struct Part<'a, T> {
    gemm: &'a Gemm<T>,
    blocks: Blocks,
    rooms: &'a Rooms<T>,
    member: &'a Member<'a>,
}

/// A block of A and a block of B that are multiplied with each other.
struct Step<T> {
    a: Strided<T>,
    b: Strided<T>,
    c: Tile<T>,
    k: usize,
    beta: T,
    a_room: *mut T,
    b_room: *mut T,
    /// Whether B's block is in its room already.
    b_is_packed: bool,
}

impl<T: Scalar> Kernel<T> for Part<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        let (Gemm { k, a, b, beta, c, .. }, Blocks { mc, nc, kc }) = (*self.gemm, self.blocks);
        let (m, n) = c.shape();
        let [mut of_a, mut of_b] = [self.rooms.a, self.rooms.b].map(|two| two.into_iter().cycle());
        for j in (0..n).step_by(nc) {
            for p in (0..k).step_by(kc) {
                let b_room = of_b.next().expect("endless");
                for i in (0..m).step_by(mc) {
                    let step = Step {
                        a: a.at(i, p),
                        b: b.at(p, j),
                        c: c.sub(i, j, mc.min(m - i), nc.min(n - j)),
                        k: kc.min(k - p),
                        beta: if p == 0 { beta } else { T::ONE },
                        a_room: of_a.next().expect("endless"),
                        b_room,
                        b_is_packed: i > 0,
                    };
                    // SAFETY: the blocks lie in the operands and fit the rooms. What was in the rooms was used before
                    // members met the last time.
                    unsafe {
                        self.pack::<V>(&step);
                        self.member.meet(|| {
                            self.rooms.packing.refill();
                            self.rooms.tiles.refill();
                        });
                        self.multiply::<V>(&step);
                    }
                }
            }
        }
    }
}

impl<T: Scalar> Part<'_, T> {
    /// Packs pieces of the two blocks until none is left.
    #[inline(always)]
    unsafe fn pack<V: Simd<Elem = T>>(&self, step: &Step<T>) {
        let ((m, n), k) = (step.c.shape(), step.k);
        let [rows, cols] = [MV * V::LANES, V::NR].map(|width| PACKED_PANELS * width);
        let of_b = if step.b_is_packed { 0 } else { n.div_ceil(cols) };
        while let Some(piece) = self.rooms.packing.take(of_b + m.div_ceil(rows)) {
            // SAFETY: the caller's blocks and rooms; nobody else packs this piece.
            unsafe {
                if piece < of_b {
                    let j = piece * cols;
                    let from = step.b.at(0, j);
                    let columns = Strided { ptr: from.ptr, rs: from.cs, cs: from.rs };
                    pack::<V>(V::NR, cols.min(n - j), k, columns, step.b_room.wrapping_add(j * k));
                } else {
                    let i = (piece - of_b) * rows;
                    pack::<V>(MV * V::LANES, rows.min(m - i), k, step.a.at(i, 0), step.a_room.wrapping_add(i * k));
                }
            }
        }
    }

    /// Computes tiles of C until none is left.
    #[inline(always)]
    unsafe fn multiply<V: Simd<Elem = T>>(&self, step: &Step<T>) {
        let ((m, n), k, mr) = (step.c.shape(), step.k, MV * V::LANES);
        let [rows, cols] = self.tile::<V>(m, n, k);
        let down = m.div_ceil(rows);
        while let Some(tile) = self.rooms.tiles.take(down * n.div_ceil(cols)) {
            let (i, j) = (tile % down * rows, tile / down * cols);
            let a = Strided { ptr: step.a_room.wrapping_add(i * k).cast_const(), rs: k, cs: mr };
            let b = Strided { ptr: step.b_room.wrapping_add(j * k).cast_const(), rs: V::NR, cs: 1 };
            let c = step.c.sub(i, j, rows.min(m - i), cols.min(n - j));
            // SAFETY: the panels are packed, and the tile is nobody else's.
            unsafe { Macro { k, alpha: self.gemm.alpha, a, b, beta: step.beta, c, packed_b: true }.run::<V>() }
        }
    }

    /// Rows and columns of a tile: as large as the caches like, but small enough that there are several for each member.
    #[inline(always)]
    fn tile<V: Simd<Elem = T>>(&self, m: usize, n: usize, k: usize) -> [usize; 2] {
        let mr = MV * V::LANES;
        let (mut rows, mut cols) = ((A_BYTES / size_of::<T>() / k / mr).max(1), TILE_PANELS);
        let (all_rows, all_cols) = (m.div_ceil(mr), n.div_ceil(V::NR));
        let wanted = TILES * self.member.count();
        (rows, cols) = (rows.min(all_rows), cols.min(all_cols));
        while all_rows.div_ceil(rows) * all_cols.div_ceil(cols) < wanted && rows * cols > 1 {
            // the longer side, in elements
            if rows == 1 || (cols > 1 && cols * V::NR >= rows * mr) { cols = cols.div_ceil(2) } else { rows = rows.div_ceil(2) }
        }
        [rows * mr, cols * V::NR]
    }
}
