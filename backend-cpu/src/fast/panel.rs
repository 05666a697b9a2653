//! LU of a few columns: the base of the recursion.
//!
//! Left-looking, with one pass over memory per column. The pass of column j
//! scales column j − 1 by its pivot, subtracts the product of the columns
//! before j, and finds the largest magnitude of what remains.

use lapidary_core::Scalar;

use super::simd::{Kernel, Lanes, Simd};
use crate::reference::{find_pivot, note_zero_pivot, row_index, safe_reciprocal};
use crate::tile::Tile;

/// The most columns of a panel.
pub(super) const COLUMNS: usize = 8;
/// Rows between two looks at the largest magnitude so far.
const CHUNK: usize = 512;

/// P·A = L·U of at most `COLUMNS` columns.
///
/// # Safety
/// The [contract of tiles](crate::tile).
pub(super) unsafe fn panel<T: Lanes>(pivoting: bool, first_row: usize, a: Tile<T>, ipiv: Tile<i32>, info: &mut i32) {
    let (m, n) = a.shape();
    // By what the column before is scaled on the way.
    let mut scaling = T::ONE;
    for j in 0..n {
        // SAFETY: the caller's contract.
        unsafe {
            let best = eliminate(a, j, scaling);
            scaling = T::ONE;
            if j >= m {
                continue;
            }
            let p = if pivoting { best } else { j };
            ipiv.set(j, 0, row_index(first_row + p));
            (0..n).for_each(|c| a.swap((j, c), (p, c)));
            let pivot = a.get(j, j);
            if pivot == T::ZERO {
                note_zero_pivot(info, first_row + j);
            } else if let Some(reciprocal) = safe_reciprocal(pivot) {
                scaling = reciprocal;
            } else {
                (j + 1..m).for_each(|i| a.set(i, j, a.get(i, j) / pivot));
            }
        }
    }
    if scaling != T::ONE {
        // SAFETY: the caller's contract; the last column is still unscaled.
        unsafe { (n..m).for_each(|i| a.set(i, n - 1, a.get(i, n - 1) * scaling)) }
    }
}

/// Brings column j up to date and finds its pivot's row.
unsafe fn eliminate<T: Lanes>(a: Tile<T>, j: usize, scaling: T) -> usize {
    let top = j.min(a.rows());
    let mut u = [T::ZERO; COLUMNS];
    // SAFETY: the caller's contract.
    unsafe {
        // The rows of U: u_i = a_ij − Σ_{t<i} l_it·u_t
        for i in 0..top {
            u[i] = (0..i).fold(a.get(i, j), |x, t| x - a.get(i, t) * u[t]);
            a.set(i, j, u[i]);
        }
        if top == a.rows() {
            return top;
        }
        let chunk = match j {
            0 => T::dispatch(Pass::<T, 0> { a, u, scaling }),
            1 => T::dispatch(Pass::<T, 1> { a, u, scaling }),
            2 => T::dispatch(Pass::<T, 2> { a, u, scaling }),
            3 => T::dispatch(Pass::<T, 3> { a, u, scaling }),
            4 => T::dispatch(Pass::<T, 4> { a, u, scaling }),
            5 => T::dispatch(Pass::<T, 5> { a, u, scaling }),
            6 => T::dispatch(Pass::<T, 6> { a, u, scaling }),
            _ => T::dispatch(Pass::<T, 7> { a, u, scaling }),
        };
        // A NaN on the diagonal stays there.
        if a.get(j, j) != a.get(j, j) {
            return j;
        }
        let end = (chunk + CHUNK).min(a.rows());
        first_largest(a.sub(0, j, end, 1), chunk)
    }
}

/// The first row of the largest magnitude of one column, from row `start` on,
/// where NaN is smaller than every number.
unsafe fn first_largest<T: Scalar>(x: Tile<T>, start: usize) -> usize {
    // SAFETY: the caller's contract.
    unsafe {
        let number = (start..x.rows()).find(|&i| x.get(i, 0) == x.get(i, 0)).unwrap_or(start);
        number + find_pivot(x.sub(number, 0, x.rows() - number, 1), 0)
    }
}

/// The pass over the rows from the diagonal of column `J` on:
/// L_{J−1} ← scaling·L_{J−1};  a_J ← a_J − Σ_{t<J} L_t·u_t.
///
/// Returns the row where the first chunk with the largest magnitude starts.
struct Pass<T, const J: usize> {
    a: Tile<T>,
    u: [T; COLUMNS],
    scaling: T,
}

impl<T: Scalar, const J: usize> Kernel<T> for Pass<T, J> {
    type Output = usize;

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) -> usize {
        let (mut best, mut largest) = (J, None);
        for start in (J..self.a.rows()).step_by(CHUNK) {
            let end = (start + CHUNK).min(self.a.rows());
            // SAFETY: the rows lie in A.
            let here = unsafe { self.chunk::<V>(start, end) };
            if largest.is_none_or(|largest| here > largest) {
                (best, largest) = (start, Some(here));
            }
        }
        best
    }
}

impl<T: Scalar, const J: usize> Pass<T, J> {
    /// The largest magnitude after the pass over rows `start .. end`.
    #[inline(always)]
    unsafe fn chunk<V: Simd<Elem = T>>(&self, start: usize, end: usize) -> T::Real {
        // SAFETY: the rows lie in A, those of the tail are masked.
        unsafe {
            let mut most = V::splat(-T::ONE);
            let whole = start + (end - start) / V::LANES * V::LANES;
            for i in (start..whole).step_by(V::LANES) {
                let x = self.rows::<V>(i, |p| V::load(p), |x, p| x.store(p));
                most = x.max_abs(most);
            }
            if whole < end {
                let mask = V::mask(end - whole);
                let x = self.rows::<V>(whole, |p| V::load_masked(p, mask), |x, p| x.store_masked(p, mask));
                most = x.max_abs(most);
            }
            largest_lane(most)
        }
    }

    /// One vector of rows from row `i` on.
    #[inline(always)]
    unsafe fn rows<V: Simd<Elem = T>>(&self, i: usize, load: impl Fn(*mut T) -> V, store: impl Fn(V, *mut T)) -> V {
        // SAFETY: the rows lie in A.
        unsafe {
            let mut x = load(self.a.at(i, J));
            for t in 0..J {
                let at = self.a.at(i, t);
                let mut l = load(at);
                if t == J - 1 {
                    l = l.mul(V::splat(self.scaling));
                    store(l, at);
                }
                x = l.neg_mul_add(V::splat(self.u[t]), x);
            }
            if J > 0 {
                store(x, self.a.at(i, J));
            }
            x
        }
    }
}

/// The largest lane; no lane is NaN.
#[inline(always)]
unsafe fn largest_lane<V: Simd>(x: V) -> <V::Elem as Scalar>::Real {
    let mut lanes = [V::Elem::ZERO; 16];
    // SAFETY: no vector has more than 16 lanes.
    unsafe { x.store(lanes.as_mut_ptr()) };
    // The start value −1 of an all-NaN chunk must lose against zero.
    let real = |x: V::Elem| if x.to_f64() < 0.0 { -x.abs() } else { x.abs() };
    lanes[1..V::LANES].iter().fold(real(lanes[0]), |most, &x| if real(x) > most { real(x) } else { most })
}
