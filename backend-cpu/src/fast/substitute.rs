//! Substitution with a small triangle, at which the recursion of the triangular solve ends.

use lapidary_core::{Diag, Op, Scalar, Side};

use super::simd::{Kernel, Lanes, Simd};
use super::transpose::transpose;
use super::trsm::{Flags, right_hand_sides};
use crate::tile::Tile;

/// Maximum order of a triangle with which systems are solved by substitution.
pub(super) const ORDER: usize = 16;
/// Number of vectors of right-hand sides that are solved together.
const WIDE: usize = 6;
/// Maximum number of right-hand sides that are transposed at a time: `WIDE` vectors of at most 16 lanes.
const BUFFER: usize = WIDE * 16;

/// The coefficients of a triangle, in the order in which substitution computes the unknowns. Unknown s is
/// (α·b_s − Σ_{r<s} rows[s][r]·x_r) / rows[s][s].
struct Triangle<T> {
    order: usize,
    unit: bool,
    rows: [[T; ORDER]; ORDER],
}

impl<T: Scalar> Triangle<T> {
    /// # Safety
    /// The [contract of tiles](crate::tile) holds.
    unsafe fn read(f: Flags, a: Tile<T>) -> Self {
        let order = a.rows();
        let mut rows = [[T::ZERO; ORDER]; ORDER];
        let turn = |s| if f.forward() { s } else { order - 1 - s };
        // the coefficients of equation s are row s of op(A) for the side `Left`, and column s for `Right`
        let swap = (f.side == Side::Right) != f.op.is_trans();
        let unit = f.diag == Diag::Unit;
        for (s, row) in rows.iter_mut().enumerate().take(order) {
            for (r, x) in row.iter_mut().enumerate().take(if unit { s } else { s + 1 }) {
                let (i, j) = if swap { (turn(r), turn(s)) } else { (turn(s), turn(r)) };
                // SAFETY: the caller guarantees the contract of tiles; the element lies in the stored triangle of A.
                *x = unsafe { a.get(i, j) };
                if matches!(f.op, Op::ConjTrans | Op::Conj) {
                    *x = x.conj();
                }
            }
        }
        Triangle { order, unit, rows }
    }
}

/// B ← α·op(A)⁻¹·B or B ← α·B·op(A)⁻¹ for a triangular matrix A of order at most `ORDER`.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub(super) unsafe fn substitute<T: Lanes>(f: Flags, alpha: T, a: Tile<T>, b: Tile<T>) {
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe { T::dispatch(Substitute { f, alpha, triangle: &Triangle::read(f, a), b }) }
}

struct Substitute<'a, T> {
    f: Flags,
    alpha: T,
    triangle: &'a Triangle<T>,
    b: Tile<T>,
}

impl<T: Scalar> Kernel<T> for Substitute<'_, T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        let b = self.b;
        // SAFETY: the caller guarantees the contract of tiles, and each part lies in B.
        unsafe {
            match self.f.side {
                Side::Right => self.solve::<V>(b),
                Side::Left => {
                    for j in (0..b.cols()).step_by(BUFFER) {
                        self.solve_transposed::<V>(right_hand_sides(Side::Left, b, j, BUFFER.min(b.cols() - j)));
                    }
                }
            }
        }
    }
}

impl<T: Scalar> Substitute<'_, T> {
    /// Solves Xᵀ·op(A)ᵀ = Bᵀ in a small buffer, so that each lane of a vector belongs to a different right-hand side.
    #[inline(always)]
    unsafe fn solve_transposed<V: Simd<Elem = T>>(&self, b: Tile<T>) {
        let mut buffer = std::mem::MaybeUninit::<[T; BUFFER * ORDER]>::uninit();
        // SAFETY: the buffer has room for the elements of `b`, and it is written before it is read.
        unsafe {
            let turned = Tile::new(buffer.as_mut_ptr().cast(), b.cols(), b.rows(), BUFFER);
            transpose::<V>(b, turned);
            self.solve::<V>(turned);
            transpose::<V>(turned, b);
        }
    }

    /// Solves a system in which the columns of `x` are the unknowns and the rows of `x` are the right-hand sides.
    #[inline(always)]
    unsafe fn solve<V: Simd<Elem = T>>(&self, x: Tile<T>) {
        let wide = WIDE * V::LANES;
        for i in (0..x.rows()).step_by(wide) {
            let x = x.sub(i, 0, wide.min(x.rows() - i), x.cols());
            // SAFETY: the rows of each strip lie in `x`.
            unsafe {
                match x.rows().div_ceil(V::LANES) {
                    1 => self.strip::<V, 1, true>(x),
                    2 => self.strip::<V, 2, true>(x),
                    3 => self.strip::<V, 3, true>(x),
                    4 => self.strip::<V, 4, true>(x),
                    5 => self.strip::<V, 5, true>(x),
                    _ if x.rows() < wide => self.strip::<V, WIDE, true>(x),
                    _ => self.strip::<V, WIDE, false>(x),
                }
            }
        }
    }

    /// Solves for one unknown after the other in `N` vectors of right-hand sides. The last
    /// vector is partial if `TAIL`.
    #[inline(always)]
    unsafe fn strip<V: Simd<Elem = T>, const N: usize, const TAIL: bool>(&self, x: Tile<T>) {
        let Triangle { order, unit, ref rows } = *self.triangle;
        let at = |s| x.at(0, if self.f.forward() { s } else { order - 1 - s });
        // SAFETY: the strip `x` lies in B; in each column, the last, partial vector is masked.
        unsafe {
            let mask = V::mask(if TAIL { x.rows() - (N - 1) * V::LANES } else { 0 });
            let load = |p: *mut T, i| {
                let p = p.add(i * V::LANES);
                if TAIL && i == N - 1 { V::load_masked(p, mask) } else { V::load(p) }
            };
            let alpha = V::splat(self.alpha);
            for (s, row) in rows.iter().enumerate().take(order) {
                let mut sum: [V; N] = std::array::from_fn(|i| load(at(s), i).mul(alpha));
                for (r, &l) in row.iter().enumerate().take(s) {
                    let (solved, l) = (at(r), V::splat(l));
                    for (i, sum) in sum.iter_mut().enumerate() {
                        *sum = load(solved, i).neg_mul_add(l, *sum);
                    }
                }
                for (i, sum) in sum.iter().enumerate() {
                    let x = if unit { *sum } else { sum.div(V::splat(row[s])) };
                    let to = at(s).add(i * V::LANES);
                    if TAIL && i == N - 1 { x.store_masked(to, mask) } else { x.store(to) }
                }
            }
        }
    }
}
