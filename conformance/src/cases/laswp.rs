//! Cases of the routine laswp, which exchanges rows.

use std::fmt;

use lapidary_core::Scalar;
use proptest::prelude::*;

use super::storage::{Storage, storage};
use super::{Case, Fill, Rng, Scope, below, packed, seed};
use crate::oracle::Dense;

/// A description of one call of laswp.
#[derive(Clone, Copy, PartialEq)]
pub struct LaswpCase {
    /// Rows of A.
    pub m: usize,
    /// Columns of A.
    pub n: usize,
    /// Number of exchanges, at most `m`.
    pub count: usize,
    /// Whether the first exchange is done first (forward) or last.
    pub forward: bool,
    /// The storage of A.
    pub storage: Storage,
    /// Seed of the numbers.
    pub seed: u64,
}

impl fmt::Display for LaswpCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LaswpCase { m, n, count, forward, storage, seed } = self;
        let order = if *forward { "forward" } else { "backward" };
        write!(f, "laswp {order} m={m} n={n} count={count} A:{storage} seed={seed:#x}")
    }
}

impl Case for LaswpCase {
    fn flags(&self) -> String {
        if self.forward { "forward" } else { "backward" }.to_owned()
    }

    fn size(&self) -> usize {
        self.m
    }

    fn simpler(&self) -> Vec<Self> {
        let case = *self;
        let rows = below(case.m).map(|m| LaswpCase { m, count: case.count.min(m), ..case });
        let cols = below(case.n).map(|n| LaswpCase { n, ..case });
        let count = below(case.count).map(|count| LaswpCase { count, ..case });
        let storage = packed([case.storage]).map(|[storage]| LaswpCase { storage, ..case });
        rows.chain(cols).chain(count).chain(storage).collect()
    }
}

impl fmt::Debug for LaswpCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl LaswpCase {
    /// Draws random cases with the extents of the scope.
    pub fn any(scope: &Scope) -> impl Strategy<Value = LaswpCase> + use<> {
        (scope.extents(), any::<bool>(), storage(), seed()).prop_map(|([m, n, count], forward, storage, seed)| LaswpCase {
            m,
            n,
            count: count.min(m),
            forward,
            storage,
            seed,
        })
    }

    /// Draws the matrix and the row exchanges. An exchange may name any row, and several exchanges may name the same row.
    #[must_use]
    pub fn matrix<T: Scalar>(&self) -> (Dense, Vec<usize>) {
        let rng = &mut Rng::new(self.seed);
        let a = Fill::NonFinite.matrix::<T>(self.m, self.n, rng);
        let ipiv = (0..self.count).map(|_| rng.below(self.m)).collect();
        (a, ipiv)
    }
}
