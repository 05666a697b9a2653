//! Tests of matrices whose elements lie more than 2^31 elements apart, so that the offset of an element needs 64 bits.
//!
//! The program reserves the memory between the columns but never touches it, so that the system allocates almost none of it.

use lapidary_core::{ErrorKind, Gemm, Laswp, Layout, MatMut, MatRef, Result as CoreResult, Scalar};

use super::pages::Pages;
use crate::bounds::real;
use crate::{Failure, Subject, Trial};

/// Distance between neighbouring columns in elements, which is odd and larger than 2^31.
const LD: usize = (1 << 31) + 11;
const ROWS: usize = 5;
const COLS: usize = 2;

/// A matrix with two columns that lie more than 2^31 elements apart.
struct Far<T>(Pages<T>);

impl<T: Scalar> Far<T> {
    fn new(f: impl Fn(usize, usize) -> f64) -> std::io::Result<Self> {
        let mut far = Far(Pages::new(LD + ROWS)?);
        let mut view = far.view_mut();
        (0..ROWS * COLS).for_each(|e| view.set(e % ROWS, e / ROWS, T::from_f64(f(e % ROWS, e / ROWS))));
        Ok(far)
    }

    fn view_mut(&mut self) -> MatMut<'_, T> {
        MatMut::new(&mut self.0, ROWS, COLS, LD, Layout::ColMajor).expect("the pages hold it")
    }

    fn view(&self) -> MatRef<'_, T> {
        MatRef::new(&self.0, ROWS, COLS, LD, Layout::ColMajor).expect("the pages hold it")
    }
}

/// Tests a product and row exchanges of integers in matrices whose columns lie more than 2^31 elements apart.
///
/// # Errors
/// An element of a result is wrong, or a call returns an error.
pub fn check_far<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let integer = |i: usize, j: usize| real(i + 3 * j) - 2.0;
    let made = || -> std::io::Result<_> { Ok((Far::<T>::new(integer)?, Far::<T>::new(integer)?, Far::<T>::new(|_, _| 7.0)?)) };
    let (a, b, mut c) = match made() {
        Ok(made) => made,
        Err(error) => return trial.skip(format!("the system reserves no {} GiB: {error}", (3 * LD * size_of::<T>()) >> 30)),
    };
    let seen = trial.ledger.evidence("NT", COLS);
    // the matrix for `op(B)` consists of the first two rows of B, so that `op(B)` is 2×2
    let b = b.view().sub(0..COLS, 0..COLS);
    if let Some(why) = unsupported(trial.subject.gemm(Gemm::new(a.view(), b, c.view_mut()).trans_b()))? {
        return trial.skip(why);
    }
    let product = |i: usize, j: usize| (0..COLS).map(|k| integer(i, k) * integer(j, k)).sum();
    seen.exact("memory: far elements", same("gemm", &c, product))?;
    completed_exchange(trial.subject, &mut c)?;
    seen.exact("memory: far elements", same("laswp", &c, |i, j| product(ROWS - 1 - i, j)))
}

/// The reason why the call returned `Unsupported`, for example because the library has 32-bit integers. `None` if the call
/// succeeded.
fn unsupported(result: CoreResult<()>) -> Result<Option<String>, Failure> {
    match result {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Some(error.to_string())),
        Err(error) => Err(Failure::of_call("gemm: completes", &error)),
    }
}

/// Exchanges rows of C by laswp of the subject, so that the order of all rows is reversed.
fn completed_exchange<S: Subject + ?Sized, T: Scalar>(subject: &S, c: &mut Far<T>) -> Result<(), Failure> {
    super::memory::completed("laswp: completes", subject.laswp(Laswp::new(c.view_mut(), &[4, 3])))
}

fn same<T: Scalar>(routine: &str, c: &Far<T>, expected: impl Fn(usize, usize) -> f64) -> Result<(), Failure> {
    let view = c.view();
    let mut elements = (0..ROWS * COLS).map(|e| (e % ROWS, e / ROWS));
    #[allow(clippy::float_cmp, reason = "exact equality is the property")]
    match elements.find(|&(i, j)| view.at(i, j).to_f64() != expected(i, j)) {
        None => Ok(()),
        Some((i, j)) => {
            let detail = format!("{routine} gives {}, expected {}", view.at(i, j), expected(i, j));
            Err(Failure::new("memory: far elements", detail).at((i, j)))
        }
    }
}
