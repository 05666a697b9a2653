//! LU factorisation of a panel of a few columns, at which the recursion of `factor` ends.
//!
//! The algorithm is left-looking, with one pass over memory per column. The pass of column j divides column j − 1 by its pivot,
//! subtracts multiples of the columns before j from column j, and finds the largest magnitude in column j. The rows of the panel
//! are divided among a group of members of the team, with one barrier per column.

use std::cell::UnsafeCell;
use std::ops::Range;

use lapidary_core::Scalar;

use super::getrf::{Job, Rank};
use super::simd::{Kernel, Lanes, Simd};
use crate::reference::{find_pivot, note_zero_pivot, row_index, safe_reciprocal};
use crate::tile::Tile;

/// Maximum number of columns that [`panel`] factors.
pub(super) const COLUMNS: usize = 8;
/// The rows of each member start at a multiple of this number.
const SHARED_ROWS: usize = 64;
/// Number of rows in a chunk of a column. The pivot search compares the largest magnitudes of all chunks, then searches only the
/// best chunk.
const CHUNK: usize = 512;

/// The state that the members of a group share while they factor a panel. Each member writes its own element of `candidates`. The
/// last member to arrive at a barrier writes `u` and `scaling`.
pub(super) struct PivotSearch<T> {
    /// For each member, the row with the largest magnitude among the member's rows.
    candidates: Vec<Candidate>,
    /// The elements of U in the next column; zeros before the first column.
    u: UnsafeCell<[T; COLUMNS]>,
    /// The number by which the next pass multiplies the previous column; 1 before the first column.
    scaling: UnsafeCell<T>,
}

/// The row that a member proposes as the pivot row; `None` if the member has no rows. The alignment gives each candidate a cache
/// line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Candidate(UnsafeCell<Option<usize>>);

// SAFETY: between two barriers, no member reads a field that another member writes.
unsafe impl<T: Sync> Sync for PivotSearch<T> {}

impl<T: Scalar> PivotSearch<T> {
    /// The state for a group of at most `members` members.
    pub fn new(members: usize) -> Self {
        let candidates = (0..members).map(|_| Candidate::default()).collect();
        PivotSearch { candidates, u: UnsafeCell::new([T::ZERO; COLUMNS]), scaling: UnsafeCell::new(T::ONE) }
    }
}

/// P·A = L·U for a panel of at most `COLUMNS` columns.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds. All members of the group call this function, and only they use `search`.
pub(super) unsafe fn panel<T: Lanes>(rank: Rank<'_>, job: &Job<T>, search: &PivotSearch<T>) {
    let (m, n) = job.a.shape();
    let own = rank.share(m, SHARED_ROWS);
    for j in 0..n {
        // SAFETY: the caller guarantees the contract of tiles. Before the barrier, members write only their own rows. At the
        // barrier, only the last member accesses the panel.
        unsafe {
            let (u, scaling) = (*search.u.get(), *search.scaling.get());
            *search.candidates[rank.index].0.get() = eliminate(job.a, j, u, scaling, own.clone());
            rank.wait_for_all(|| {
                let candidates = search.candidates[..rank.count].iter().filter_map(|candidate| *candidate.0.get());
                *search.scaling.get() = if j < m { exchange(job, j, candidates) } else { T::ONE };
                *search.u.get() = upper(job.a, j + 1);
            });
        }
    }
    // SAFETY: the caller guarantees the contract of tiles. Each member scales its own rows of the last column.
    unsafe {
        let scaling = *search.scaling.get();
        if scaling != T::ONE {
            (n.max(own.start)..own.end).for_each(|i| job.a.set(i, n - 1, job.a.get(i, n - 1) * scaling));
        }
    }
    // SAFETY: only the last member accesses `search`, while the other members wait at the barrier.
    rank.wait_for_all(|| unsafe { (*search.scaling.get(), *search.u.get()) = (T::ONE, [T::ZERO; COLUMNS]) });
}

/// Chooses the candidate row with the largest magnitude in column j, and exchanges this row with row j. Returns the number by which
/// column j must be multiplied.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds for the matrix, the pivots and `info` of `job`.
unsafe fn exchange<T: Lanes>(job: &Job<T>, j: usize, candidates: impl Iterator<Item = usize>) -> T {
    let Job { pivoting, first_row, a, ipiv, info, .. } = *job;
    let (m, n) = a.shape();
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe {
        // a NaN on the diagonal is the pivot; among candidates of equal magnitude, the first one is the pivot
        let larger = |best: usize, row: usize| if exceeds(a.get(row, j), a.get(best, j)) { row } else { best };
        let best = if a.get(j, j) == a.get(j, j) { candidates.reduce(larger).unwrap_or(j) } else { j };
        let p = if pivoting { best } else { j };
        ipiv.set(j, 0, row_index(first_row + p));
        (0..n).for_each(|c| a.swap((j, c), (p, c)));
        let pivot = a.get(j, j);
        if pivot == T::ZERO {
            note_zero_pivot(&mut *info, first_row + j);
        } else if let Some(reciprocal) = safe_reciprocal(pivot) {
            return reciprocal;
        } else {
            (j + 1..m).for_each(|i| a.set(i, j, a.get(i, j) / pivot));
        }
        T::ONE
    }
}

/// Whether |x| > |y|. A NaN counts as smaller than every number.
fn exceeds<T: Scalar>(x: T, y: T) -> bool {
    let is_number = |x: T| x.to_f64() <= f64::INFINITY;
    x.abs() > y.abs() || (is_number(x) && !is_number(y))
}

/// Computes the elements of U in column j and stores them: u_i = a_ij − Σ_{t<i} l_it·u_t.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
unsafe fn upper<T: Lanes>(a: Tile<T>, j: usize) -> [T; COLUMNS] {
    let mut u = [T::ZERO; COLUMNS];
    if j < a.cols() {
        for i in 0..j.min(a.rows()) {
            // SAFETY: the caller guarantees the contract of tiles.
            unsafe {
                u[i] = (0..i).fold(a.get(i, j), |x, t| x - a.get(i, t) * u[t]);
                a.set(i, j, u[i]);
            }
        }
    }
    u
}

/// Updates the rows `own` of column j. Returns the row with the largest magnitude.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
unsafe fn eliminate<T: Lanes>(a: Tile<T>, j: usize, u: [T; COLUMNS], scaling: T, own: Range<usize>) -> Option<usize> {
    let rows = own.start.max(j)..own.end;
    if rows.is_empty() {
        return None;
    }
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe {
        let chunk = match j {
            0 => T::dispatch(Pass::<T, 0> { a, u, scaling, rows: rows.clone() }),
            1 => T::dispatch(Pass::<T, 1> { a, u, scaling, rows: rows.clone() }),
            2 => T::dispatch(Pass::<T, 2> { a, u, scaling, rows: rows.clone() }),
            3 => T::dispatch(Pass::<T, 3> { a, u, scaling, rows: rows.clone() }),
            4 => T::dispatch(Pass::<T, 4> { a, u, scaling, rows: rows.clone() }),
            5 => T::dispatch(Pass::<T, 5> { a, u, scaling, rows: rows.clone() }),
            6 => T::dispatch(Pass::<T, 6> { a, u, scaling, rows: rows.clone() }),
            _ => T::dispatch(Pass::<T, 7> { a, u, scaling, rows: rows.clone() }),
        };
        Some(first_largest(a.sub(0, j, (chunk + CHUNK).min(rows.end), 1), chunk))
    }
}

/// The first row with the largest magnitude in a column, from row `start` on.
/// A NaN counts as smaller than every number.
///
/// # Safety
/// The [contract of tiles](crate::tile) holds.
unsafe fn first_largest<T: Scalar>(x: Tile<T>, start: usize) -> usize {
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe {
        let number = (start..x.rows()).find(|&i| x.get(i, 0) == x.get(i, 0)).unwrap_or(start);
        number + find_pivot(x.sub(number, 0, x.rows() - number, 1), 0)
    }
}

/// The pass of column `J` over some rows on or below the diagonal:
/// L_{J−1} ← scaling·L_{J−1};  a_J ← a_J − Σ_{t<J} L_t·u_t.
///
/// The pass returns the first row of the chunk that contains the largest magnitude. If several
/// chunks contain the same largest magnitude, the pass returns the first row of the first of these chunks.
struct Pass<T, const J: usize> {
    a: Tile<T>,
    u: [T; COLUMNS],
    scaling: T,
    rows: Range<usize>,
}

impl<T: Scalar, const J: usize> Kernel<T> for Pass<T, J> {
    type Output = usize;

    #[inline(always)]
    unsafe fn run<V: Simd<Elem = T>>(self) -> usize {
        let (mut best, mut largest) = (self.rows.start, None);
        for start in self.rows.clone().step_by(CHUNK) {
            let end = (start + CHUNK).min(self.rows.end);
            // SAFETY: the caller guarantees the contract of tiles for A, in which the rows `self.rows` lie.
            let here = unsafe { self.chunk::<V>(start, end) };
            if largest.is_none_or(|largest| here > largest) {
                (best, largest) = (start, Some(here));
            }
        }
        best
    }
}

impl<T: Scalar, const J: usize> Pass<T, J> {
    /// Applies the pass to rows `start .. end`, and returns the largest magnitude of column `J` in these rows.
    #[inline(always)]
    unsafe fn chunk<V: Simd<Elem = T>>(&self, start: usize, end: usize) -> T::Real {
        // SAFETY: the caller guarantees the contract of tiles for A, in which the rows `start..end` lie; the last, partial vector of
        // rows is masked.
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

    /// Applies the pass to one vector of rows from row `i` on. Returns the elements of column `J`.
    #[inline(always)]
    unsafe fn rows<V: Simd<Elem = T>>(&self, i: usize, load: impl Fn(*mut T) -> V, store: impl Fn(V, *mut T)) -> V {
        // SAFETY: the caller guarantees the contract of tiles for A, and that `load` and `store` access only rows of A that begin with
        // row `i`.
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

/// The largest lane of a vector in which no lane is NaN.
#[inline(always)]
unsafe fn largest_lane<V: Simd>(x: V) -> <V::Elem as Scalar>::Real {
    let mut lanes = [V::Elem::ZERO; 16];
    // SAFETY: no vector has more than 16 lanes.
    unsafe { x.store(lanes.as_mut_ptr()) };
    // −1, the result for a chunk that holds only NaN, must count as less than zero
    let real = |x: V::Elem| if x.to_f64() < 0.0 { -x.abs() } else { x.abs() };
    lanes[1..V::LANES].iter().fold(real(lanes[0]), |most, &x| if real(x) > most { real(x) } else { most })
}
