//! Tests of a matrix with so many elements that 32-bit indices and offsets overflow, in host memory and on devices.
//!
//! The elements are small integers, so that all results are exact. The columns repeat with a period that is no power of two, so
//! that an index that has overflowed finds a different number.

use lapidary_core::{Diag, Gemm, Laswp, MatMut, MatRef, Scalar, Side, Trsm, TrsmMode, Uplo};

use super::memory::completed;
use super::pages::Pages;
use crate::bounds::real;
use crate::memory_check::room_for;
use crate::{Failure, Subject, Trial};

pub(crate) const ROWS: usize = 64;
/// Number of terms of each product.
pub(crate) const TERMS: usize = 2;
/// Number of columns after which the matrices repeat. The jump of an index that has overflowed is no multiple of this period.
const PERIOD: usize = 9 * 11;

/// The operands of three calls: the product `C ← A·B + C`, an exchange of the first row of C with the last, and a triangular solve
/// that halves C.
pub(crate) struct Large<T> {
    pub(crate) c: Pages<T>,
    pub(crate) a: Vec<T>,
    pub(crate) b: Vec<T>,
    /// Twice the identity.
    pub(crate) triangle: Vec<T>,
    pub(crate) swaps: Vec<i32>,
    pub(crate) cols: usize,
}

/// The columns of one period, with the elements `f(i, j)`. To compute every column of the large matrix would take too long.
fn columns<T: Scalar>(f: fn(usize, usize) -> f64) -> Vec<Vec<T>> {
    (0..PERIOD).map(|j| (0..ROWS).map(|i| T::from_f64(f(i, j))).collect()).collect()
}

/// Number of columns with which the matrix C has more than `elements` elements.
fn cols(elements: usize) -> usize {
    elements / ROWS + 3
}

/// Size in bytes of the matrix C with more than `elements` elements.
pub(crate) fn bytes<T>(elements: usize) -> usize {
    ROWS * cols(elements) * size_of::<T>()
}

fn of_a(i: usize, k: usize) -> f64 {
    real((3 * i + k) % 7) - 3.0
}

fn of_b(k: usize, j: usize) -> f64 {
    real((5 * j + k) % 9) - 4.0
}

fn of_c(i: usize, j: usize) -> f64 {
    real((7 * i + 5 * j) % 11) - 5.0
}

/// Element (i, j) of C after the product, the exchange and the solve.
fn expected(i: usize, j: usize) -> f64 {
    let row = match i {
        0 => ROWS - 1,
        _ if i + 1 == ROWS => 0,
        _ => i,
    };
    let product: f64 = (0..TERMS).map(|k| of_a(row, k) * of_b(k, j)).sum();
    (of_c(row, j) + product) / 2.0
}

impl<T: Scalar> Large<T> {
    /// Creates the operands. Returns the reason if the host has no memory for two copies of C: one copy for the suite, and one for
    /// a device that uses host memory.
    pub(crate) fn new(elements: usize) -> Result<Self, String> {
        let cols = cols(elements);
        room_for(2 * bytes::<T>(elements))?;
        let mut c = Pages::new(ROWS * cols).map_err(|error| format!("the system gives no memory: {error}"))?;
        let period = columns::<T>(of_c);
        c.chunks_exact_mut(ROWS).enumerate().for_each(|(j, column)| column.copy_from_slice(&period[j % PERIOD]));
        let matrix =
            |rows, cols, f: fn(usize, usize) -> f64| (0..rows * cols).map(|e| T::from_f64(f(e % rows, e / rows))).collect();
        let mut swaps: Vec<i32> = (0..).take(ROWS).collect();
        swaps[0] = swaps[ROWS - 1];
        let triangle = matrix(ROWS, ROWS, |i, j| if i == j { 2.0 } else { 0.0 });
        Ok(Large { c, a: matrix(ROWS, TERMS, of_a), b: matrix(TERMS, cols, of_b), triangle, swaps, cols })
    }

    /// Checks C after the product, the exchange and the solve.
    pub(crate) fn verify(&self) -> Result<(), Failure> {
        let period = columns::<T>(expected);
        let is_wrong = |&(j, column): &(usize, &[T])| column != period[j % PERIOD];
        let Some((j, column)) = self.c.chunks_exact(ROWS).enumerate().find(is_wrong) else { return Ok(()) };
        let right = &period[j % PERIOD];
        let i = (0..ROWS).find(|&i| column[i] != right[i]).unwrap_or(0);
        Err(Failure::new("large: exact integers", format!("{}, expected {}", column[i], right[i])).at((i, j)))
    }
}

/// Tests gemm, laswp and trsm on a large matrix in host memory.
///
/// # Errors
/// An element of the result differs from the expected one, or a call returns an error.
pub fn check_large<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let mut large = match Large::<T>::new(trial.scope.elements) {
        Ok(large) => large,
        Err(why) => return trial.skip(why),
    };
    let seen = trial.ledger.evidence("NN", large.cols);
    let Large { c, a, b, triangle, swaps, cols } = &mut large;
    let view = |data, rows, cols| MatRef::col_major(data, rows, cols).expect("the data holds it");
    let mut c = MatMut::col_major(c, ROWS, *cols).expect("the data holds it");
    let product = Gemm::new(view(a, ROWS, TERMS), view(b, TERMS, *cols), c.reborrow()).beta(T::ONE);
    completed("gemm: completes", trial.subject.gemm(product))?;
    completed("laswp: completes", trial.subject.laswp(Laswp::new(c.reborrow(), swaps)))?;
    let halved = Trsm::new(view(triangle, ROWS, ROWS), c).side(Side::Left).uplo(Uplo::Lower).diag(Diag::NonUnit);
    let halved = halved.mode(TrsmMode::Substitution);
    completed("trsm: completes", trial.subject.trsm(halved))?;
    seen.exact("large: exact integers", large.verify())
}
