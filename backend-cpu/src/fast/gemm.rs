//! C ← α·op(A)·op(B) + β·C on one thread: loops over cache blocks around the micro-kernel.

use std::ops::Range;

use lapidary_core::{Op, Scalar};

use super::blocks::Blocks as MaxBlocks;
use super::gemv::Gemv;
use super::micro::{Micro, Strided};
use super::pack::{Workspace, pack};
use super::shared::by_team;
use super::simd::{Kernel, Lanes, Simd};
use super::transpose::scale;
use crate::team::Team;
use crate::tile::Tile;

/// Height of a micro-tile, in vectors.
pub(super) const MV: usize = 3;
/// Minimum k for which a product with one column uses [`Gemv`] instead of the micro-kernel.
const GEMV_K: usize = 16;
/// A column-major B is packed if A has more rows than this number.
const PACK_B: usize = 192;

/// C ← α·op(A)·op(B) + β·C.
///
/// With β = 0, C is never read. With α = 0 or k = 0, A and B are never read.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
#[expect(clippy::too_many_arguments, reason = "the arguments of the routine, and the team")]
pub unsafe fn gemm<T: Lanes>(team: &Team, op_a: Op, op_b: Op, alpha: T, a: Tile<T>, b: Tile<T>, beta: T, c: Tile<T>) {
    let (m, k) = op_a.shape(a.shape());
    debug_assert_eq!((c.rows(), k, c.cols()), (m, op_b.shape(b.shape()).0, op_b.shape(b.shape()).1));
    // SAFETY: the caller guarantees the contract of tiles; the shapes agree.
    unsafe {
        if k == 0 || alpha == T::ZERO {
            scale(team, beta, c);
        } else if m > 0 && c.cols() > 0 {
            let max = team.blocking().of::<T>();
            by_team(team, &Gemm { k, alpha, a: strided(op_a, a), b: strided(op_b, b), beta, c, max });
        }
    }
}

/// op(A) as a matrix with a row stride and a column stride.
#[inline]
pub(super) fn strided<T: Scalar>(op: Op, a: Tile<T>) -> Strided<T> {
    let (rs, cs) = if op.is_trans() { (a.ld(), 1) } else { (1, a.ld()) };
    Strided { ptr: a.ptr(), rs, cs }
}

/// C ← α·A·B + β·C with `k` terms in each sum. No dimension is 0.
#[derive(Clone, Copy)]
pub(super) struct Gemm<T> {
    pub k: usize,
    pub alpha: T,
    pub a: Strided<T>,
    pub b: Strided<T>,
    pub beta: T,
    pub c: Tile<T>,
    /// Maximum sizes of the cache blocks.
    pub max: MaxBlocks,
}

impl<T: Lanes> Gemm<T> {
    /// Computes the product on the calling thread.
    ///
    /// # Safety
    /// The [contract of tiles](crate::tile) holds.
    pub unsafe fn on_this_thread(self) {
        // SAFETY: the caller guarantees the contract of tiles.
        unsafe { if self.c.cols() == 1 && self.k >= GEMV_K { self.one_column() } else { T::dispatch(self) } }
    }

    /// Computes a product in which C has one column. If the column of B is not contiguous, it is copied first.
    unsafe fn one_column(self) {
        let Gemm { k, alpha, a, b, beta, c, .. } = self;
        let mut copy = Vec::new();
        // SAFETY: by the contract of tiles, the column of B has `k` elements that may be read, at distances of `b.rs`.
        let x = unsafe {
            if b.rs == 1 {
                std::slice::from_raw_parts(b.ptr, k)
            } else {
                copy.extend((0..k).map(|p| *b.at(p, 0).ptr));
                &copy
            }
        };
        // SAFETY: the caller guarantees the contract of tiles; the shapes agree.
        unsafe { T::dispatch(Gemv { m: c.rows(), alpha, a, x, beta, y: c.ptr() }) }
    }

    /// The part of the product in the rows `rows` and the columns `cols` of C.
    pub fn part(&self, rows: Range<usize>, cols: Range<usize>) -> Self {
        let c = self.c.sub(rows.start, cols.start, rows.len(), cols.len());
        Gemm { a: self.a.at(rows.start, 0), b: self.b.at(0, cols.start), c, ..*self }
    }
}

/// The block sizes of one product. Each block fits into the level of cache for which it is meant. The blocks along one dimension
/// are nearly equal in size.
pub(super) struct Blocks {
    mc: usize,
    kc: usize,
    nc: usize,
    pack_a: bool,
    pack_b: bool,
}

/// The size of equal parts of `total`: at most `most`, then rounded up to a multiple of `unit`.
pub(super) fn even(total: usize, most: usize, unit: usize) -> usize {
    // a division would take a noticeable part of the time of a small product
    let part = if total <= most { total } else { total.div_ceil(total.div_ceil(most)) };
    part.next_multiple_of(unit)
}

impl<T: Scalar> Gemm<T> {
    #[inline(always)]
    pub fn blocks<V: Simd<Elem = T>>(&self) -> Blocks {
        let (m, n) = self.c.shape();
        let mr = MV * V::LANES;
        let kc = even(self.k, self.max.kc, 1);
        let a_most = self.max.of_thread();
        let mc = if m * kc <= a_most { m.next_multiple_of(mr) } else { even(m, (a_most / kc).next_multiple_of(mr), mr) };
        // the micro-kernel needs contiguous columns of A; with many columns of B, packing A saves time in any case
        let pack_a = self.a.rs != 1 || n > 4 * V::NR;
        // a row-major B is packed for fewer rows of A than a column-major B, because each step along k reads another cache line
        let pack_b = m > if self.b.rs == 1 { PACK_B } else { 4 * mr };
        Blocks { mc, kc, nc: even(n, self.max.nc, V::NR), pack_a, pack_b }
    }
}

impl Blocks {
    /// Number of elements of a packed block of A and of a packed block of B; 0 if the operand is not packed.
    #[inline(always)]
    pub fn packed(&self) -> (usize, usize) {
        (if self.pack_a { self.mc * self.kc } else { 0 }, if self.pack_b { self.nc * self.kc } else { 0 })
    }
}

impl<T: Scalar> Kernel<T> for Gemm<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        let s = self.blocks::<V>();
        let (a_buffer, b_buffer) = s.packed();
        let mut workspace = Workspace::take::<T>(a_buffer + b_buffer);
        let memory = workspace.ptr::<T>();
        // SAFETY: the caller guarantees the contract of tiles, and the workspace has room for one block of each operand.
        unsafe { self.blocked::<V>(&s, memory, memory.wrapping_add(a_buffer)) }
    }
}

impl<T: Scalar> Gemm<T> {
    /// Loops over the cache blocks of the product.
    #[inline(always)]
    pub unsafe fn blocked<V: Simd<Elem = T>>(&self, s: &Blocks, a_buffer: *mut T, b_buffer: *mut T) {
        let (m, n) = self.c.shape();
        for j in (0..n).step_by(s.nc) {
            let nc = s.nc.min(n - j);
            for p in (0..self.k).step_by(s.kc) {
                let kc = s.kc.min(self.k - p);
                let mut b = self.b.at(p, j);
                // SAFETY: the caller guarantees the contract of tiles; the blocks lie in the operands, and the packed blocks fit
                // into the buffers.
                unsafe {
                    if s.pack_b {
                        pack::<V>(V::NR, nc, kc, b.transposed(), b_buffer);
                        b = Strided { ptr: b_buffer, rs: V::NR, cs: 1 };
                    }
                    for i in (0..m).step_by(s.mc) {
                        let mc = s.mc.min(m - i);
                        let mut a = self.a.at(i, p);
                        if s.pack_a {
                            pack::<V>(MV * V::LANES, mc, kc, a, a_buffer);
                            a = Strided { ptr: a_buffer, rs: kc, cs: MV * V::LANES };
                        }
                        let beta = if p == 0 { self.beta } else { T::ONE };
                        let product = Gemm { k: kc, a, b, beta, c: self.c.sub(i, j, mc, nc), ..*self };
                        Macro { product, packed_b: s.pack_b }.run::<V>();
                    }
                }
            }
        }
    }
}

/// The product of one block of A and one block of B.
///
/// The block of A consists of panels of rows. The panel that starts at row i
/// begins at `a.at(i, 0)`.
pub(super) struct Macro<T> {
    pub product: Gemm<T>,
    /// Whether B is packed into panels.
    pub packed_b: bool,
}

impl<T: Scalar> Macro<T> {
    #[inline(always)]
    pub unsafe fn run<V: Simd<Elem = T>>(&self) {
        let n = self.product.c.cols();
        let mut j = 0;
        while j < n {
            // SAFETY: the caller guarantees the contract of tiles; the columns of the panel lie in B and in C.
            unsafe {
                j += match n - j {
                    8.. if V::NR == 8 => self.panel::<V, 8>(j),
                    4.. => self.panel::<V, 4>(j),
                    2.. => self.panel::<V, 2>(j),
                    _ => self.panel::<V, 1>(j),
                }
            }
        }
    }

    /// The part of B that starts at column j.
    #[inline(always)]
    fn b_panel<V: Simd<Elem = T>>(&self, j: usize) -> Strided<T> {
        if self.packed_b {
            Strided { ptr: self.product.b.ptr.wrapping_add(j / V::NR * V::NR * self.product.k + j % V::NR), ..self.product.b }
        } else {
            self.product.b.at(0, j)
        }
    }

    /// The address from which the micro-tile with the index `tile` prefetches its part of the next panel of B. The next panel
    /// starts at column j.
    #[inline(always)]
    fn ahead<V: Simd<Elem = T>>(&self, tile: usize, j: usize) -> *const T {
        if self.packed_b {
            self.b_panel::<V>(j).ptr.wrapping_add(tile * self.product.k)
        } else {
            self.product.b.at(0, j + tile).ptr
        }
    }

    /// Computes `N` columns of C from column j on, and returns `N`.
    #[inline(always)]
    unsafe fn panel<V: Simd<Elem = T>, const N: usize>(&self, j: usize) -> usize {
        let (m, b, mr) = (self.product.c.rows(), self.b_panel::<V>(j), MV * V::LANES);
        for i in (0..m).step_by(mr) {
            // SAFETY: the caller guarantees the contract of tiles; the micro-tile lies in C, and its rows lie in A.
            unsafe {
                match (m - i).div_ceil(V::LANES) {
                    1 => self.micro::<V, 1, N, true>(i, j, b),
                    2 => self.micro::<V, 2, N, true>(i, j, b),
                    _ if m - i < mr => self.micro::<V, 3, N, true>(i, j, b),
                    _ => self.micro::<V, 3, N, false>(i, j, b),
                }
            }
        }
        N
    }

    #[inline(always)]
    unsafe fn micro<V: Simd<Elem = T>, const M: usize, const N: usize, const TAIL: bool>(&self, i: usize, j: usize, b: Strided<T>) {
        let tail = if TAIL { self.product.c.rows() - i - (M - 1) * V::LANES } else { 0 };
        let (a, lda, c) = (self.product.a.at(i, 0).ptr, self.product.a.cs, self.product.c.at(i, j));
        let ahead = self.ahead::<V>(i / (MV * V::LANES), j + N);
        // SAFETY: the caller guarantees the contract of tiles; the micro-tile lies in C, its rows lie in A, and its columns lie in
        // B.
        unsafe {
            let (k, ldc, alpha, beta) = (self.product.k, self.product.c.ld(), self.product.alpha, self.product.beta);
            V::call(Micro::<T, M, N, TAIL> { k, a, lda, b, c, ldc, alpha, beta, tail, ahead });
        }
    }
}
