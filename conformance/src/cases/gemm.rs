//! Cases of `C ← α·op(A)·op(B) + β·C`.

use std::fmt;

use lapidary_core::{Gemm, Op, Scalar};
use proptest::prelude::*;

use super::fill::{Fill, canary};
use super::storage::{Storage, Stored, storage};
use super::{Case, Rng, Scope, below, factor, nonzero_factor, op, packed, seed};
use crate::oracle::Dense;

/// A description of one call of gemm.
#[derive(Clone, Copy, PartialEq)]
pub struct GemmCase {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Columns of `op(A)` and rows of `op(B)`.
    pub k: usize,
    /// The operations on A and B.
    pub ops: (Op, Op),
    /// The scalar α, which multiplies the product.
    pub alpha: f64,
    /// The scalar β, which multiplies the old C.
    pub beta: f64,
    /// The kind of numbers in the operands.
    pub fill: Fill,
    /// Whether A and B are the same matrix, in the same memory. If B is A, `op(B)` is `op(A)ᵀ`.
    pub same: bool,
    /// The storage of A, B and C.
    pub storage: [Storage; 3],
    /// Seed of the numbers.
    pub seed: u64,
}

impl fmt::Display for GemmCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GemmCase { m, n, k, ops, alpha, beta, fill, same, storage: [a, b, c], seed } = self;
        write!(f, "gemm {}{} m={m} n={n} k={k} α={alpha} β={beta} A:{a} ", ops.0, ops.1)?;
        if *same {
            f.write_str("B=A")?;
        } else {
            write!(f, "B:{b}")?;
        }
        write!(f, " C:{c} {fill} seed={seed:#x}")
    }
}

impl Case for GemmCase {
    fn flags(&self) -> String {
        format!("{}{}", self.ops.0, self.ops.1)
    }

    fn size(&self) -> usize {
        self.k
    }

    fn simpler(&self) -> Vec<Self> {
        let case = *self;
        let extents = [
            below(case.m).filter(|_| !case.same).map(|m| GemmCase { m, ..case }).collect::<Vec<_>>(),
            below(case.n).filter(|_| !case.same).map(|n| GemmCase { n, ..case }).collect(),
            below(case.k).map(|k| GemmCase { k, ..case }).collect(),
            packed(case.storage).map(|storage| GemmCase { storage, ..case }).collect(),
        ];
        extents.concat()
    }
}

impl fmt::Debug for GemmCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The operands of a [`GemmCase`], stored in memory.
#[derive(Clone, Debug)]
pub struct GemmData<T> {
    /// The left matrix A of the product.
    pub a: Stored<T>,
    /// The right matrix B of the product. `None` if B is the same matrix as A.
    pub b: Option<Stored<T>>,
    /// The matrix C, which receives the result.
    pub c: Stored<T>,
}

impl GemmCase {
    /// Draws random cases with numbers of the kinds `fills`. A random case never has `α = 0`, because some libraries read A even if
    /// `α = 0`, and a library with this fault should fail only the property that tests `α = 0`.
    pub fn any(scope: &Scope, fills: &'static [Fill]) -> impl Strategy<Value = GemmCase> + use<> {
        let fill = prop::sample::select(fills);
        let flags = (op(), op(), prop::bool::weighted(0.1));
        let storage = prop::array::uniform3(storage());
        (scope.extents(), flags, (nonzero_factor(), factor()), fill, storage, seed()).prop_map(
            |([m, n, k], (op_a, op_b, same), (alpha, beta), fill, storage, seed)| {
                let case = GemmCase { m, n, k, ops: (op_a, op_b), alpha, beta, fill, same: false, storage, seed };
                let case = if same { case.of_one_matrix() } else { case };
                if fill == Fill::Integers { case.of_integers() } else { case }
            },
        )
    }

    /// The case `C ← C/2 − A·B` with packed matrices of uniform numbers. The elements of `extents` are m, n and k.
    #[must_use]
    pub fn packed([m, n, k]: [usize; 3], seed: u64) -> Self {
        let (ops, storage) = ((Op::NoTrans, Op::NoTrans), [Storage::default(); 3]);
        GemmCase { m, n, k, ops, alpha: -1.0, beta: 0.5, fill: Fill::Uniform, same: false, storage, seed }
    }

    /// The four variants of this case with A and B each transposed or not.
    #[must_use]
    pub fn all_ops(self) -> [Self; 4] {
        let (n, t) = (Op::NoTrans, Op::Trans);
        [(n, n), (t, n), (n, t), (t, t)].map(|ops| GemmCase { ops, ..self })
    }

    /// This case with the matrix A in place of B, so that the call computes `op(A)·op(A)ᵀ`.
    #[must_use]
    pub fn of_one_matrix(self) -> Self {
        let [a, _, c] = self.storage;
        GemmCase { same: true, n: self.m, ops: (self.ops.0, self.ops.0.flip()), storage: [a, a, c], ..self }
    }

    fn of_integers(self) -> Self {
        let alpha = (2.0 * self.alpha).abs().max(1.0).copysign(self.alpha).trunc();
        GemmCase { alpha, beta: (2.0 * self.beta).trunc(), ..self }
    }

    /// Draws the operands. If α is zero, the routine must not read A and B, and if β is zero, the routine must not read C. The
    /// function fills an operand that the routine must not read with canaries.
    #[must_use]
    pub fn data<T: Scalar>(&self) -> GemmData<T> {
        let rng = &mut Rng::new(self.seed);
        let shapes = (self.ops.0.shape((self.m, self.k)), self.ops.1.shape((self.k, self.n)));
        let mut make = |fill: Fill, (rows, cols), factor, storage| {
            let dense = fill.matrix::<T>(rows, cols, rng);
            let unread = |_| canary::<T>().to_f64();
            Stored::new(&if factor == 0.0 { dense.map(unread) } else { dense }, storage)
        };
        let a = make(self.fill, shapes.0, self.alpha, self.storage[0]);
        let b = make(self.fill.partner(), shapes.1, self.alpha, self.storage[1]);
        let c = make(self.fill, (self.m, self.n), self.beta, self.storage[2]);
        GemmData { a, b: (!self.same).then_some(b), c }
    }
}

impl<T: Scalar> GemmData<T> {
    /// The right matrix B of the product, which may be the same matrix as A.
    #[must_use]
    pub fn b(&self) -> &Stored<T> {
        self.b.as_ref().unwrap_or(&self.a)
    }

    /// The matrices `op(A)`, `op(B)` and C in the form of the oracle.
    #[must_use]
    pub fn operands(&self, case: &GemmCase) -> (Dense, Dense, Dense) {
        (self.a.dense().under(case.ops.0), self.b().dense().under(case.ops.1), self.c.dense())
    }

    /// The arguments of the call that `case` describes. The result is written to `c`.
    pub fn args<'a>(&'a self, case: &GemmCase, c: &'a mut Stored<T>) -> Gemm<'a, T> {
        let gemm = Gemm::new(self.a.view(), self.b().view(), c.view_mut()).op_a(case.ops.0).op_b(case.ops.1);
        gemm.alpha(T::from_f64(case.alpha)).beta(T::from_f64(case.beta))
    }
}
