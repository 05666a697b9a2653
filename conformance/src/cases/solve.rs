//! Cases of getrf followed by getrs: the solution of a square system.

use std::fmt;

use lapidary_core::{Op, Scalar};
use proptest::prelude::*;

use super::storage::{Storage, storage};
use super::{Case, Fill, Rng, Scope, below, op, packed, seed};
use crate::oracle::Dense;

/// A description of one call of getrf and one call of getrs.
#[derive(Clone, Copy, PartialEq)]
pub struct SolveCase {
    /// Order of A.
    pub n: usize,
    /// Number of right-hand sides.
    pub nrhs: usize,
    /// The operation on A.
    pub op: Op,
    /// The storage of A and B.
    pub storage: [Storage; 2],
    /// Seed of the numbers.
    pub seed: u64,
}

impl fmt::Display for SolveCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SolveCase { n, nrhs, op, storage: [a, b], seed } = self;
        write!(f, "solve {op} n={n} nrhs={nrhs} A:{a} B:{b} seed={seed:#x}")
    }
}

impl Case for SolveCase {
    fn flags(&self) -> String {
        self.op.to_string()
    }

    fn size(&self) -> usize {
        self.n
    }

    fn simpler(&self) -> Vec<Self> {
        let case = *self;
        let order = below(case.n).map(|n| SolveCase { n, ..case });
        let nrhs = below(case.nrhs).map(|nrhs| SolveCase { nrhs, ..case });
        order.chain(nrhs).chain(packed(case.storage).map(|storage| SolveCase { storage, ..case })).collect()
    }
}

impl fmt::Debug for SolveCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl SolveCase {
    /// Draws random cases with the extents of the scope.
    pub fn any(scope: &Scope) -> impl Strategy<Value = SolveCase> + use<> {
        let sizes = (scope.extent(), scope.extent());
        (sizes, op(), prop::array::uniform2(storage()), seed()).prop_map(|((n, nrhs), op, storage, seed)| SolveCase {
            n,
            nrhs,
            op,
            storage,
            seed,
        })
    }

    /// The case of packed matrices of order n and one right-hand side, as in HPL.
    #[must_use]
    pub fn packed(n: usize) -> Self {
        SolveCase { n, nrhs: 1, op: Op::NoTrans, storage: [Storage::default(); 2], seed: 1 }
    }

    /// Draws the elements of A and B.
    #[must_use]
    pub fn matrices<T: Scalar>(&self) -> (Dense, Dense) {
        let rng = &mut Rng::new(self.seed);
        let a = Fill::Uniform.matrix::<T>(self.n, self.n, rng);
        (a, Fill::Uniform.matrix::<T>(self.n, self.nrhs, rng))
    }
}
