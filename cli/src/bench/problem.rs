//! The operands of one timed call, how to run it and how to check it.

use clap::ValueEnum;
use lapidary::{Diag, Gemm, Getrf, Getrs, Machine, Op, Scalar, Side, Trsm};

use super::peer::Peer;
use crate::dense::Dense;
use crate::failure::{Failure, Result};
use crate::residual::{self, LU_THRESHOLD, RATIO_THRESHOLD, Triangle};

/// What can be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Routine {
    /// C = op(A)·op(B)
    Gemm,
    /// op(A)·X = B or X·op(A) = B, A triangular
    Trsm,
    /// A = P·L·U
    Getrf,
    /// A·X = B from the factors of A
    Getrs,
    /// A·X = B
    Gesv,
}

impl Routine {
    /// The name in the BLAS or LAPACK, without the letter of the type.
    pub fn name(self) -> &'static str {
        match self {
            Routine::Gemm => "gemm",
            Routine::Trsm => "trsm",
            Routine::Getrf => "getrf",
            Routine::Getrs => "getrs",
            Routine::Gesv => "gesv",
        }
    }
}

/// One call, without its operands.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The routine.
    pub routine: Routine,
    /// Rows of C, B or A.
    pub m: usize,
    /// Columns of C, B or A; the order of A in a solve.
    pub n: usize,
    /// The inner size of a product.
    pub k: usize,
    /// Right-hand sides of a solve.
    pub nrhs: usize,
    /// How B enters a product.
    pub op_b: Op,
    /// How A enters, and which part of it.
    pub a: Triangle,
}

impl Shape {
    /// The sizes that matter to the routine, by name.
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        match self.routine {
            Routine::Gemm => vec![("m", self.m), ("n", self.n), ("k", self.k)],
            Routine::Trsm | Routine::Getrf => vec![("m", self.m), ("n", self.n)],
            Routine::Getrs | Routine::Gesv => vec![("n", self.n), ("nrhs", self.nrhs)],
        }
    }

    /// The flags that matter to the routine, by name.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let Triangle { side, uplo, op, diag } = self.a;
        match self.routine {
            Routine::Gemm => vec![("transa", op.to_string()), ("transb", self.op_b.to_string())],
            Routine::Trsm => vec![
                ("side", side.to_string()),
                ("uplo", uplo.to_string()),
                ("transa", op.to_string()),
                ("diag", diag.to_string()),
            ],
            Routine::Getrf | Routine::Getrs | Routine::Gesv => Vec::new(),
        }
    }

    /// Floating-point operations, as LAPACK counts them.
    pub fn flops(&self) -> f64 {
        let [m, n, k, nrhs] = [self.m, self.n, self.k, self.nrhs].map(|size| size as f64);
        let least = m.min(n);
        match self.routine {
            Routine::Gemm => 2.0 * m * n * k,
            Routine::Trsm if self.a.side == Side::Left => m * m * n,
            Routine::Trsm => m * n * n,
            Routine::Getrf => least * least * (m.max(n) - least / 3.0),
            Routine::Getrs => 2.0 * n * n * nrhs,
            Routine::Gesv => 2.0 / 3.0 * n.powi(3) + 2.0 * n * n * nrhs,
        }
    }

    fn triangle_order(&self) -> usize {
        if self.a.side == Side::Left { self.m } else { self.n }
    }
}

/// What the check of a result said.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Which bound of `docs/numerics.md`.
    pub what: &'static str,
    /// The residual.
    pub ratio: f64,
    /// The largest accepted residual.
    pub threshold: f64,
}

impl Check {
    /// Whether the result is right; NaN is not.
    pub fn passed(&self) -> bool {
        self.ratio <= self.threshold
    }
}

/// Matrices and pivots under their names in the routines.
#[derive(Clone)]
pub struct Operands<T> {
    /// The matrix A, or its factors.
    pub a: Dense<T>,
    /// The matrix B.
    pub b: Dense<T>,
    /// The matrix C.
    pub c: Dense<T>,
    /// Row exchanges, 0-based.
    pub ipiv: Vec<i32>,
}

/// One call with its operands.
pub struct Problem<T> {
    shape: Shape,
    /// The operands as every run finds them.
    inputs: Operands<T>,
    /// The matrix behind the factors in `inputs.a`, for getrs.
    factored: Option<Dense<T>>,
    /// The operands of the current run.
    work: Operands<T>,
}

impl<T: Scalar> Problem<T> {
    /// Random operands, the same for the same seed.
    pub fn new(shape: Shape, seed: u64, machine: &Machine) -> Result<Self> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let Shape { m, n, k, nrhs, .. } = shape;
        let (a, b, c) = match shape.routine {
            Routine::Gemm => (shape.a.op.shape((m, k)), shape.op_b.shape((k, n)), (m, n)),
            Routine::Trsm => ((shape.triangle_order(), shape.triangle_order()), (m, n), (0, 0)),
            Routine::Getrf => ((m, n), (0, 0), (0, 0)),
            Routine::Getrs | Routine::Gesv => ((n, n), (n, nrhs), (0, 0)),
        };
        let mut random = |(rows, cols)| Dense::random(rows, cols, &mut rng);
        let ipiv = vec![0; a.0.min(a.1)];
        let mut inputs = Operands { a: random(a)?, b: random(b)?, c: Dense::zeros(c.0, c.1)?, ipiv };
        let mut factored = None;
        match shape.routine {
            Routine::Trsm => tame(&mut inputs.a, shape.a.diag),
            Routine::Getrs => factored = Some(factor(&mut inputs, machine)?),
            Routine::Gemm | Routine::Getrf | Routine::Gesv => {}
        }
        Ok(Problem { shape, work: inputs.clone(), inputs, factored })
    }

    /// The call.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Restores what a run overwrites.
    pub fn reset(&mut self) {
        let (work, inputs) = (&mut self.work, &self.inputs);
        if matches!(self.shape.routine, Routine::Getrf | Routine::Gesv) {
            work.a.data_mut().copy_from_slice(inputs.a.data());
        }
        work.b.data_mut().copy_from_slice(inputs.b.data());
        work.ipiv.copy_from_slice(&inputs.ipiv);
    }

    /// One call of ours.
    pub fn ours(&mut self, machine: &Machine) -> Result<()> {
        let Triangle { side, uplo, op, diag } = self.shape.a;
        let Operands { a, b, c, ipiv } = &mut self.work;
        match self.shape.routine {
            Routine::Gemm => machine.gemm(Gemm::new(a.view(), b.view(), c.view_mut()).op_a(op).op_b(self.shape.op_b))?,
            Routine::Trsm => machine.trsm(Trsm::new(a.view(), b.view_mut()).side(side).uplo(uplo).op(op).diag(diag))?,
            Routine::Getrf => return not_singular(machine.getrf_into(Getrf::new(a.view_mut(), ipiv))?),
            Routine::Getrs => machine.getrs(Getrs::new(a.view(), ipiv, b.view_mut()))?,
            Routine::Gesv => return not_singular(machine.gesv(a.view_mut(), b.view_mut())?.info()),
        }
        Ok(())
    }

    /// One call of the peer's.
    pub fn peer(&mut self, peer: &Peer<T>) -> Result<()> {
        match self.shape.routine {
            Routine::Gemm => peer.gemm(&self.shape, &mut self.work),
            Routine::Trsm => peer.trsm(&self.shape, &mut self.work),
            Routine::Getrf => peer.getrf(&mut self.work),
            Routine::Getrs => peer.getrs(&mut self.work),
            Routine::Gesv => peer.gesv(&mut self.work),
        }
    }

    /// Compares the result of the last run with its bound, and resets.
    pub fn check(&mut self) -> Check {
        let (shape, inputs, work) = (&self.shape, &self.inputs, &self.work);
        let check = match shape.routine {
            Routine::Gemm => {
                let ratio = residual::product((shape.a.op, &inputs.a), (shape.op_b, &inputs.b), &work.c);
                Check { what: "checksum over bound 1", ratio, threshold: RATIO_THRESHOLD }
            }
            Routine::Trsm => {
                let ratio = residual::triangular(shape.a, &inputs.a, &work.b, &inputs.b);
                Check { what: "checksum over bound 7", ratio, threshold: RATIO_THRESHOLD }
            }
            Routine::Getrf => {
                let ratio = residual::factorisation(&inputs.a, &work.a, &work.ipiv);
                Check { what: "dget01 along a vector", ratio, threshold: LU_THRESHOLD }
            }
            Routine::Getrs | Routine::Gesv => {
                let a = self.factored.as_ref().unwrap_or(&inputs.a);
                Check { what: "dget02", ratio: residual::solution(a, &work.b, &inputs.b), threshold: LU_THRESHOLD }
            }
        };
        self.reset();
        check
    }
}

/// Replaces A by its factors and gives A back.
fn factor<T: Scalar>(operands: &mut Operands<T>, machine: &Machine) -> Result<Dense<T>> {
    let a = operands.a.clone();
    not_singular(machine.getrf_into(Getrf::new(operands.a.view_mut(), &mut operands.ipiv))?)?;
    Ok(a)
}

/// A random triangle is exponentially ill-conditioned; small entries off the
/// diagonal make it harmless.
fn tame<T: Scalar>(a: &mut Dense<T>, diag: Diag) {
    let n = a.rows().max(1) as f64;
    let on_diagonal = |value: f64| if diag == Diag::Unit { value } else { 1.5 + value };
    a.map(|i, j, value| if i == j { on_diagonal(value) } else { value / n });
}

pub(super) fn not_singular(info: usize) -> Result<()> {
    if info == 0 { Ok(()) } else { Err(Failure::check(format!("the random matrix is singular (info = {info})"))) }
}
