//! Scaling, copying and transposing of tiles.

use lapidary_core::{Op, Scalar};

use super::simd::{Kernel, Lanes, Simd};
use crate::reference;
use crate::team::Team;
use crate::tile::Tile;

/// C ← β·C. With β = 0, zeros are written to C, and C is not read.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn scale<T: Lanes>(team: &Team, beta: T, c: Tile<T>) {
    if beta != T::ONE {
        // SAFETY: the caller guarantees the contract of tiles for each part of C.
        team.in_strips(c.cols(), c.rows() as f64, |cols| unsafe { scale_here(beta, c.sub(0, cols.start, c.rows(), cols.len())) });
    }
}

unsafe fn scale_here<T: Scalar>(beta: T, c: Tile<T>) {
    for j in 0..c.cols() {
        // SAFETY: by the contract of tiles, no other code accesses the column. A zero of type `T` consists of zero bits. With β ≠
        // 0, the contract guarantees that the elements of the column are initialised.
        unsafe {
            if beta == T::ZERO {
                c.at(0, j).write_bytes(0, c.rows());
            } else {
                (&mut *c.col(j)).iter_mut().for_each(|x| *x = beta * *x);
            }
        }
    }
}

/// B ← α·A, rounded to `f32`.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn narrow(team: &Team, alpha: f64, a: Tile<f64>, b: Tile<f32>) {
    team.in_strips(b.cols(), b.rows() as f64, |cols| {
        let (first, count) = (cols.start, cols.len());
        // SAFETY: the caller guarantees the contract of tiles for each part of B.
        unsafe { reference::narrow(alpha, a.sub(0, first, a.rows(), count), b.sub(0, first, b.rows(), count)) }
    });
}

/// B ← op(A).
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
pub unsafe fn copy<T: Lanes>(team: &Team, op: Op, a: Tile<T>, b: Tile<T>) {
    debug_assert_eq!(op.shape(a.shape()), b.shape());
    let rows = b.rows();
    team.in_strips(b.cols(), rows as f64, |cols| {
        let to = b.sub(0, cols.start, rows, cols.len());
        // SAFETY: the caller guarantees the contract of tiles for each part of B; the shapes agree.
        unsafe {
            if op.is_trans() {
                T::dispatch(Transpose { a: a.sub(cols.start, 0, cols.len(), rows), b: to });
            } else {
                for (j, to_j) in cols.zip(0..) {
                    to.at(0, to_j).copy_from_nonoverlapping(a.at(0, j), rows);
                }
            }
        }
    });
}

/// B ← Aᵀ.
pub(super) struct Transpose<T> {
    pub a: Tile<T>,
    pub b: Tile<T>,
}

impl<T: Scalar> Kernel<T> for Transpose<T> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        // SAFETY: the caller guarantees the contract of tiles, and every block lies in both tiles.
        unsafe { transpose::<V>(self.a, self.b) }
    }
}

/// B ← Aᵀ in square blocks that are as wide as a vector. The blocks are processed down the columns of B, so that each cache line of
/// B is filled while it is in the cache.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds, and the calling code runs inside [`Simd::call`].
#[inline(always)]
pub(super) unsafe fn transpose<V: Simd>(a: Tile<V::Elem>, b: Tile<V::Elem>) {
    let step = V::LANES;
    for i in (0..a.rows()).step_by(step) {
        for j in (0..a.cols()).step_by(step) {
            let (rows, cols) = (step.min(a.rows() - i), step.min(a.cols() - j));
            let (from, to) = (a.sub(i, j, rows, cols), b.sub(j, i, cols, rows));
            // SAFETY: the caller guarantees the contract of tiles; `WHOLE` is true for whole blocks only.
            unsafe {
                if rows == step && cols == step {
                    Block::<_, true> { a: from, b: to }.run::<V>();
                } else {
                    V::call(Block::<_, false> { a: from, b: to });
                }
            }
        }
    }
}

/// Maximum number of lanes of a vector.
const MAX_ORDER: usize = 16;

/// B ← Aᵀ for one block of at most `LANES` × `LANES` elements, by exchanges of
/// sub-blocks whose size doubles from stage to stage.
struct Block<T, const WHOLE: bool> {
    a: Tile<T>,
    b: Tile<T>,
}

impl<T: Scalar, const WHOLE: bool> Kernel<T> for Block<T, WHOLE> {
    type Output = ();

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) {
        let (rows, cols) = self.a.shape();
        // SAFETY: all accessed elements lie in the block; if the block is not whole, masks exclude the elements outside it.
        unsafe {
            let mut x = [V::splat(T::ZERO); MAX_ORDER];
            let mask = V::mask(if WHOLE { 0 } else { rows });
            for (l, x) in x.iter_mut().enumerate().take(V::LANES) {
                if WHOLE {
                    *x = V::load(self.a.at(0, l));
                } else if l < cols {
                    *x = V::load_masked(self.a.at(0, l), mask);
                }
            }
            stage::<V, 1>(&mut x);
            stage::<V, 2>(&mut x);
            stage::<V, 4>(&mut x);
            stage::<V, 8>(&mut x);
            let mask = V::mask(if WHOLE { 0 } else { cols });
            for (l, x) in x.iter().enumerate().take(V::LANES) {
                if WHOLE {
                    x.store(self.b.at(0, l));
                } else if l < rows {
                    x.store_masked(self.b.at(0, l), mask);
                }
            }
        }
    }
}

/// Exchanges the sub-blocks of `D` lanes in all pairs of rows whose distance is `D`.
#[inline(always)]
unsafe fn stage<V: Simd, const D: usize>(x: &mut [V; MAX_ORDER]) {
    if D < V::LANES {
        // the loop has a constant count, so that the compiler unrolls it and keeps the rows in registers
        for pair in 0..V::LANES / 2 {
            let l = pair / D * (2 * D) + pair % D;
            // SAFETY: `exchange` accesses only registers.
            (x[l], x[l + D]) = unsafe { x[l].exchange::<D>(x[l + D]) };
        }
    }
}
