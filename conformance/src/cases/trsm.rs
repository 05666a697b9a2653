//! Cases of triangular solves.

use std::fmt;

use lapidary_core::{Diag, Op, Scalar, Side, Trsm, TrsmMode, Uplo};
use proptest::prelude::*;

use super::fill::{Fill, canary};
use super::storage::{Storage, Stored, storage};
use super::{Case, Rng, Scope, below, factor, op, packed, seed};
use crate::bounds::real;
use crate::oracle::residual::triangle;
use crate::oracle::{Dense, loops, product};

/// The kind of equation in the middle of a triangular system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pivot {
    /// The diagonal element of the equation is drawn like the diagonal elements of the other equations.
    Regular,
    /// The diagonal element of the equation is zero.
    Zero,
    /// The diagonal element of the equation is −0.
    NegativeZero,
    /// The equation is `d·x = b` with subnormal d and b. The reciprocal of d overflows, but the quotient b/d does not.
    Subnormal,
}

impl Pivot {
    /// All kinds of equations.
    pub const ALL: [Pivot; 4] = [Pivot::Regular, Pivot::Zero, Pivot::NegativeZero, Pivot::Subnormal];
}

impl fmt::Display for Pivot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Pivot::Regular => "regular",
            Pivot::Zero => "zero",
            Pivot::NegativeZero => "-zero",
            Pivot::Subnormal => "subnormal",
        })
    }
}

/// A description of one call of trsm.
#[derive(Clone, Copy, PartialEq)]
pub struct TrsmCase {
    /// Order of A.
    pub order: usize,
    /// Number of right-hand sides.
    pub nrhs: usize,
    /// Side, triangle, operation and diagonal, as in the BLAS interface.
    pub flags: (Side, Uplo, Op, Diag),
    /// The scalar α, which multiplies B.
    pub alpha: f64,
    /// The kind of numbers in the operands. `Graded` means that each equation has a scale of its own.
    pub fill: Fill,
    /// The kind of equation in the middle of the system.
    pub pivot: Pivot,
    /// The method for the blocks on the diagonal: substitution or multiplication by their inverses.
    pub mode: TrsmMode,
    /// The storage of A and B.
    pub storage: [Storage; 2],
    /// Seed of the numbers.
    pub seed: u64,
}

impl fmt::Display for TrsmCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TrsmCase { order, nrhs, flags: (side, uplo, op, diag), alpha, fill, pivot, mode, storage: [a, b], seed } = self;
        write!(f, "trsm {side}{uplo}{op}{diag} {mode} order={order} nrhs={nrhs} α={alpha} A:{a} B:{b} {fill} ")?;
        if *pivot != Pivot::Regular {
            write!(f, "pivot={pivot} ")?;
        }
        write!(f, "seed={seed:#x}")
    }
}

impl Case for TrsmCase {
    fn flags(&self) -> String {
        let (side, uplo, op, diag) = self.flags;
        format!("{side}{uplo}{op}{diag}")
    }

    fn size(&self) -> usize {
        self.order
    }

    fn simpler(&self) -> Vec<Self> {
        let case = *self;
        let order = below(case.order).map(|order| TrsmCase { order, ..case });
        let nrhs = below(case.nrhs).map(|nrhs| TrsmCase { nrhs, ..case });
        order.chain(nrhs).chain(packed(case.storage).map(|storage| TrsmCase { storage, ..case })).collect()
    }
}

impl fmt::Debug for TrsmCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A system `E·X = α·F` with a lower or upper triangular E on the left. Every call of trsm can be brought to this form. E and F are
/// packed, whatever the storage of the operands.
#[derive(Clone, Debug)]
pub struct System {
    /// The triangular matrix E, whose elements outside the triangle are zero.
    pub e: Dense,
    /// The right-hand sides F.
    pub f: Dense,
}

impl System {
    /// Solves the system by the plain loops of substitution, in the precision of `T`.
    #[must_use]
    pub fn solve<T: Scalar>(&self, alpha: f64, uplo: Uplo) -> Dense {
        let f = self.f.map(|x| if alpha == 0.0 { 0.0 } else { (T::from_f64(alpha) * T::from_f64(x)).to_f64() });
        match uplo {
            Uplo::Lower => loops::forward_substitution::<T>(&self.e, &f),
            // if rows and columns are taken in reverse order, an upper triangular matrix becomes lower triangular
            Uplo::Upper => {
                let e = reverse_rows(&reverse_rows(&self.e).t()).t();
                reverse_rows(&loops::forward_substitution::<T>(&e, &reverse_rows(&f)))
            }
        }
    }
}

fn reverse_rows(a: &Dense) -> Dense {
    Dense::from_fn(a.rows(), a.cols(), |i, j| a.at(a.rows() - 1 - i, j))
}

impl TrsmCase {
    /// Draws random cases with operands of the kinds `fills`.
    pub fn any(scope: &Scope, mode: TrsmMode, fills: &'static [Fill]) -> impl Strategy<Value = TrsmCase> + use<> {
        let side = prop::sample::select(vec![Side::Left, Side::Right]);
        let uplo = prop::sample::select(vec![Uplo::Lower, Uplo::Upper]);
        let diag = prop::sample::select(vec![Diag::NonUnit, Diag::Unit]);
        let fill = prop::sample::select(fills);
        let sizes = (scope.extent(), scope.extent());
        (sizes, (side, uplo, op(), diag), factor(), fill, prop::array::uniform2(storage()), seed()).prop_map(
            move |((order, nrhs), flags, alpha, fill, storage, seed)| {
                let alpha = if fill == Fill::Integers { alpha.trunc() } else { alpha };
                TrsmCase { order, nrhs, flags, alpha, fill, pivot: Pivot::Regular, mode, storage, seed }
            },
        )
    }

    /// Three cases of substitution with packed matrices of uniform random numbers and three right-hand sides: `A·X = B`
    /// with a lower triangular A, `X·Aᵀ = B` with a lower triangular A, and `A·X = B` with an upper triangular A.
    #[must_use]
    pub fn regular(order: usize) -> [Self; 3] {
        let flags =
            [(Side::Left, Uplo::Lower, Op::NoTrans), (Side::Right, Uplo::Lower, Op::Trans), (Side::Left, Uplo::Upper, Op::NoTrans)];
        flags.map(|(side, uplo, op)| TrsmCase {
            order,
            nrhs: 3,
            flags: (side, uplo, op, Diag::NonUnit),
            alpha: 1.0,
            fill: Fill::Uniform,
            pivot: Pivot::Regular,
            mode: TrsmMode::Substitution,
            storage: [Storage::default(); 2],
            seed: 1,
        })
    }

    /// Whether E is the transpose of A, and not A itself.
    fn transposes(&self) -> bool {
        let (side, _, op, _) = self.flags;
        op.is_trans() != (side == Side::Right)
    }

    /// The triangle of E that contains its nonzero elements.
    #[must_use]
    pub fn uplo(&self) -> Uplo {
        if self.transposes() { self.flags.1.flip() } else { self.flags.1 }
    }

    /// The system with the special equation, whose subnormal numbers are not replaced by zero.
    #[must_use]
    pub fn system<T: Scalar>(&self) -> System {
        self.system_for::<T>(0.0)
    }

    /// The system that the subject must solve. In the special equation, numbers below `smallest` are replaced by zero.
    #[must_use]
    pub fn system_for<T: Scalar>(&self, smallest: f64) -> System {
        let (mut system, at) = (self.regular_system::<T>(), self.order / 2);
        if self.order == 0 || self.flags.3 == Diag::Unit {
            return system;
        }
        match self.pivot {
            Pivot::Regular => {}
            Pivot::Zero => system.e.set(at, at, 0.0),
            Pivot::NegativeZero => system.e.set(at, at, -0.0),
            Pivot::Subnormal => {
                let kept = |x: f64| if x < smallest { 0.0 } else { x };
                (0..self.order).for_each(|j| system.e.set(at, j, 0.0));
                system.e.set(at, at, kept(T::MIN_POSITIVE / 8.0));
                (0..self.nrhs).for_each(|j| system.f.set(at, j, kept(T::MIN_POSITIVE / 2.0)));
            }
        }
        system
    }

    /// The system without a special equation. The rows of the system have similar magnitudes, unless the kind of numbers is
    /// `Graded`.
    fn regular_system<T: Scalar>(&self) -> System {
        let rng = &mut Rng::new(self.seed);
        let (n, diag) = (self.order, self.flags.3);
        let off = |rng: &mut Rng| if self.fill == Fill::Integers { rng.integer(1) } else { rng.uniform() / real(n).sqrt() };
        let round = |x: f64| T::from_f64(x).to_f64();
        let e = Dense::from_fn(n, n, |i, j| round(if i == j { self.diagonal(rng) } else { off(rng) }));
        let e = triangle(&e, self.uplo(), diag);
        if self.fill == Fill::Integers {
            return self.integer_system(sparse(&e), rng);
        }
        let f = self.fill.matrix::<T>(n, self.nrhs, rng);
        if self.fill == Fill::Graded && diag == Diag::NonUnit { graded(&e, &f, rng) } else { System { e, f } }
    }

    fn diagonal(&self, rng: &mut Rng) -> f64 {
        let magnitude = if self.fill == Fill::Integers { [1.0, 2.0, 4.0][rng.below(3)] } else { 1.5 + rng.uniform() / 2.0 };
        rng.sign() * magnitude
    }

    /// Computes the right-hand side F from a random solution of integers, so that every step of a substitution is exact.
    fn integer_system(&self, e: Dense, rng: &mut Rng) -> System {
        let x = Fill::Integers.matrix::<f64>(self.order, self.nrhs, rng);
        let zero = Dense::from_fn(self.order, self.nrhs, |_, _| 0.0);
        let f = product::product::<f64>(1.0, &e, &x, 0.0, &zero).rounded();
        System { e, f }
    }

    /// Stores A and B. An element that the routine must not read, because of the flags or because `α = 0`, is a canary.
    #[must_use]
    pub fn store<T: Scalar>(&self, system: &System) -> (Stored<T>, Stored<T>) {
        let a = if self.transposes() { system.e.t() } else { system.e.clone() };
        let (_, uplo, _, diag) = self.flags;
        let read = |i: usize, j: usize| match uplo {
            _ if self.alpha == 0.0 => false,
            _ if i == j => diag == Diag::NonUnit,
            Uplo::Lower => i > j,
            Uplo::Upper => i < j,
        };
        let unread = canary::<T>().to_f64();
        let a = Dense::from_fn(self.order, self.order, |i, j| if read(i, j) { a.at(i, j) } else { unread });
        let b = self.to_side(&system.f).map(|x| if self.alpha == 0.0 { unread } else { x });
        (Stored::new(&a, self.storage[0]), Stored::new(&b, self.storage[1]))
    }

    /// Converts right-hand sides from the form of F to the form of B, and back. If A stands on the right side, both conversions are
    /// the transpose.
    #[must_use]
    pub fn to_side(&self, b: &Dense) -> Dense {
        if self.flags.0 == Side::Right { b.t() } else { b.clone() }
    }

    /// The arguments of the call of trsm.
    pub fn args<'a, T: Scalar>(&self, a: &'a Stored<T>, b: &'a mut Stored<T>) -> Trsm<'a, T> {
        let (side, uplo, op, diag) = self.flags;
        let trsm = Trsm::new(a.view(), b.view_mut()).side(side).uplo(uplo).op(op).diag(diag);
        trsm.alpha(T::from_f64(self.alpha)).mode(self.mode)
    }
}

/// Keeps the diagonal of E and every third element beside the diagonal. All other elements become zero, so that sums of integers
/// stay small.
fn sparse(e: &Dense) -> Dense {
    Dense::from_fn(e.rows(), e.cols(), |i, j| if i == j || (i + j) % 3 == 0 { e.at(i, j) } else { 0.0 })
}

/// Scales each equation by a power of two from 2^-20 to 2^20, which leaves the solution unchanged.
fn graded(e: &Dense, f: &Dense, rng: &mut Rng) -> System {
    let scales: Vec<f64> = (0..e.rows()).map(|_| rng.integer(20).exp2()).collect();
    let scale = |a: &Dense| Dense::from_fn(a.rows(), a.cols(), |i, j| scales[i] * a.at(i, j));
    System { e: scale(e), f: scale(f) }
}
