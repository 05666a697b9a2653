//! LU factors that own their matrix.

use std::ops::Deref;

use lapidary_core::{Error, Getrf, MatMut, Result, Scalar};

use crate::host::HostVec;
use crate::lu::{Factors, Lu};
use crate::machine::Machine;

/// The factors `A = P·L·U` of a square matrix, and the memory that holds them.
///
/// An `OwnedLu` has no lifetime: a struct can hold it beside its [`Machine`], and another thread can take it. All methods of [`Lu`] can
/// be called on an `OwnedLu`.
///
/// ```
/// use lapidary::{Machine, MatMut, OwnedLu, Select};
///
/// struct Model {
///     machine: Machine,
///     lu: OwnedLu<f64>,
/// }
///
/// let machine = Machine::open(&Select::all())?;
/// let lu = machine.getrf_owned(vec![4.0, 1.0, 2.0, 3.0], 2)?; // column-major
/// let model = Model { machine, lu };
/// let mut x = [6.0, 4.0];
/// model.lu.solve(MatMut::col_major(&mut x, 2, 1)?)?;
/// assert!((x[0] - 1.0).abs() < 1e-15 && (x[1] - 1.0).abs() < 1e-15);
/// # let _ = model.machine;
/// # Ok::<(), lapidary::Error>(())
/// ```
#[must_use = "factors do nothing by themselves: solve with them"]
#[derive(Debug)]
pub struct OwnedLu<T: Scalar>(Lu<'static, T>);

impl Machine {
    /// Factors the column-major matrix A of order `n` with the elements `a`, which are a `Vec` or a [`HostVec`]. The factors replace the
    /// elements. If the call fails, the elements are lost.
    ///
    /// # Errors
    /// `a` has not `n²` elements, `n` exceeds the range of `i32`, or a device failed. A zero pivot is not an error ([`Lu::info`]).
    pub fn getrf_owned<T: Scalar>(&self, a: impl Into<HostVec<T>>, n: usize) -> Result<OwnedLu<T>> {
        let mut elements = a.into();
        check_elements("getrf_owned", &elements, n)?;
        let mut ipiv = vec![0; n];
        let (info, copy) = self.factor(Getrf::new(MatMut::col_major(&mut elements, n, n)?, &mut ipiv), 0)?;
        Ok(OwnedLu(Lu { machine: self.clone(), factors: Factors::Owned(elements), copy, ipiv, info: info.get() }))
    }
}

impl<T: Scalar> OwnedLu<T> {
    /// Makes an `OwnedLu` of factors that were computed before, such as the parts that [`OwnedLu::into_parts`] returns. `factors` has
    /// the elements of L and U in one column-major matrix of order `ipiv.len()`, without the unit diagonal of L. Row `i` was exchanged
    /// with row `ipiv[i]`, in ascending order of `i`, where row indices are 0-based.
    ///
    /// ```
    /// use lapidary::{Machine, MatMut, OwnedLu, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (factors, ipiv, _) = machine.getrf_owned(vec![0.0, 2.0, 4.0, 1.0], 2)?.into_parts();
    /// // … store the parts, read them again …
    /// let lu = OwnedLu::from_parts(&machine, factors, ipiv)?;
    /// let mut x = [4.0, 3.0];
    /// lu.solve(MatMut::col_major(&mut x, 2, 1)?)?;
    /// assert_eq!(x, [1.0, 1.0]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// `factors` has not `n²` elements, or an element of `ipiv` is not a row index, where n is the length of `ipiv`.
    pub fn from_parts(machine: &Machine, factors: impl Into<HostVec<T>>, ipiv: Vec<i32>) -> Result<Self> {
        const OPERATION: &str = "from_parts";
        let (elements, n) = (factors.into(), ipiv.len());
        check_elements(OPERATION, &elements, n)?;
        if let Some(i) = ipiv.iter().position(|&with| usize::try_from(with).map_or(true, |with| with >= n)) {
            return Err(Error::invalid(OPERATION, format!("ipiv[{i}] = {} is no row of {n}", ipiv[i])));
        }
        let info = (0..n).position(|i| elements[i * (n + 1)] == T::ZERO).map_or(0, |i| i + 1);
        Ok(OwnedLu(Lu { machine: machine.clone(), factors: Factors::Owned(elements), copy: None, ipiv, info }))
    }

    /// Returns the factors, the row exchanges and the number of the first zero pivot, as [`Lu::factors`], [`Lu::ipiv`] and [`Lu::info`]
    /// describe them. The factors are column-major without gaps.
    #[must_use]
    pub fn into_parts(self) -> (HostVec<T>, Vec<i32>, usize) {
        let Lu { factors, ipiv, info, .. } = self.0;
        match factors {
            Factors::Owned(elements) => (elements, ipiv, info),
            Factors::Borrowed(_) => unreachable!("both constructors of `OwnedLu` store the elements"),
        }
    }
}

impl<T: Scalar> Deref for OwnedLu<T> {
    type Target = Lu<'static, T>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Returns an error if `elements` are not those of a matrix of order `n`.
fn check_elements<T>(operation: &'static str, elements: &[T], n: usize) -> Result<()> {
    if n.checked_mul(n) == Some(elements.len()) {
        return Ok(());
    }
    Err(Error::invalid(operation, format!("a matrix of order n = {n} is given by {} elements, not by n²", elements.len())))
}
