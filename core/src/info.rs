//! The `info` value of a factorisation: the number of its first zero pivot.

use std::fmt;

use crate::error::{Error, Result};
use crate::routine::Routine;

/// LAPACK's `info` of a factorisation: 0, or the number, counted from 1, of the first pivot of U that is exactly zero. A
/// factorisation with a zero pivot still completes, but no system can be solved with its factors L and U.
///
/// ```
/// # extern crate lapidary_core as lapidary; // an application uses `lapidary`
/// use lapidary::{ErrorKind, Info};
/// assert!(Info::default().check().is_ok());
/// let info = Info::new(3);
/// assert_eq!((info.get(), info.pivot()), (3, Some(3)));
/// assert_eq!(info.check().unwrap_err().kind(), ErrorKind::Singular { pivot: 3 });
/// ```
/// The compiler warns if a program ignores a returned `Info`:
/// ```compile_fail
/// #![deny(unused_must_use)]
/// lapidary_core::Info::new(3);
/// ```
#[must_use = "factors with a zero pivot solve nothing: look at `pivot()`, or make it an error by `check()?`"]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Info(usize);

impl Info {
    /// Makes the `info` value from a number: the number, counted from 1, of the first zero pivot, or 0 if no pivot is zero.
    pub fn new(info: usize) -> Self {
        Info(info)
    }

    /// The number that LAPACK returns: 0 if no pivot is zero, otherwise the number, counted from 1, of the first zero pivot.
    #[must_use]
    pub fn get(self) -> usize {
        self.0
    }

    /// The number of the first zero pivot, counted from 1. Returns `None` if no pivot is zero.
    #[must_use]
    pub fn pivot(self) -> Option<usize> {
        (self.0 != 0).then_some(self.0)
    }

    /// Returns an error if a pivot is zero.
    ///
    /// # Errors
    /// Returns an error of the kind [`ErrorKind::Singular`](crate::ErrorKind::Singular) if a pivot is zero.
    pub fn check(self) -> Result<()> {
        self.pivot().map_or(Ok(()), |pivot| Err(Error::singular(Routine::Getrf.name(), pivot)))
    }
}

impl From<Info> for usize {
    fn from(info: Info) -> usize {
        info.get()
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
