//! The operands of one timed call, and functions that run the call and check its result.

use std::any::Any;

use lapidary::{Diag, Gemm, Getrf, Getrs, Laswp, Machine, MatMut, Precision, Routine, Scalar, Trsm};

use super::on_device::OnDevice;
use super::peer::{Peer, Rival, guard_exit};
use super::placement::Placement;
use crate::dense::Dense;
use crate::failure::{Failure, Result};
use crate::residual::{self, LU_THRESHOLD, RATIO_THRESHOLD, Triangle};
use crate::shape::Shape;

/// Outcome of the check of a result.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// Name of the bound of `docs/numerics.md` that was checked.
    pub what: &'static str,
    /// The residual that the check computed, in the units of the bound.
    pub ratio: f64,
    /// The largest accepted residual.
    pub threshold: f64,
}

impl Check {
    /// Whether the residual is accepted. A residual of NaN is not accepted.
    pub fn passed(&self) -> bool {
        self.ratio <= self.threshold
    }

    /// Whether the residual is accepted, as a word for users.
    pub fn verdict(&self) -> &'static str {
        if self.passed() { "ok" } else { "WRONG" }
    }

    /// The worse one of two checks.
    pub fn worse(self, other: Check) -> Check {
        // Every comparison with NaN is false, so the function first tests whether `self` did not pass.
        let is_worst = !self.passed() || other.ratio <= self.ratio;
        if is_worst { self } else { other }
    }
}

/// Value of a pivot or of `info` before a call. No routine writes this value.
pub const UNSET: i32 = i32::MIN / 2;

/// Matrices and pivots of a call, named as in BLAS and LAPACK.
#[derive(Clone)]
pub struct Operands<T: Scalar> {
    /// The matrix A, or its LU factors.
    pub a: Dense<T>,
    /// The matrix B.
    pub b: Dense<T>,
    /// The matrix C.
    pub c: Dense<T>,
    /// Pivots of the row exchanges, counted from 0.
    pub ipiv: Vec<i32>,
    /// LAPACK's `info`, as a factorisation or a solve returned it.
    pub info: i32,
}

/// The operands of a call in device memory.
struct Resident<T: Scalar> {
    a: OnDevice<T>,
    b: OnDevice<T>,
    c: OnDevice<T>,
}

impl<T: Scalar> Resident<T> {
    fn new(machine: &Machine, from: &Operands<T>, is_padded: bool) -> Result<Self> {
        let upload = |matrix| OnDevice::new(machine, matrix, is_padded);
        Ok(Resident { a: upload(&from.a)?, b: upload(&from.b)?, c: upload(&from.c)? })
    }

    fn download(&self, to: &mut Operands<T>) -> Result<()> {
        self.a.download(&mut to.a)?;
        self.b.download(&mut to.b)?;
        self.c.download(&mut to.c)
    }
}

/// One timed call with its operands.
pub struct Problem<'m, T: Scalar> {
    shape: Shape,
    machine: &'m Machine,
    /// The operands as they are before each call.
    inputs: Operands<T>,
    /// For getrs: the matrix A whose factors are in `inputs.a`.
    factored: Option<Dense<T>>,
    /// The operands of the current call, which the call overwrites.
    work: Operands<T>,
    /// The operands in device memory, if the call uses resident matrices.
    resident: Option<Resident<T>>,
    /// Whether the matrices in device memory have odd leading dimensions.
    is_padded: bool,
    /// Whether [`Problem::ours`] calls `gesv_mixed` instead of `gesv`.
    is_mixed: bool,
    /// The precision that the last call of `gesv_mixed` used.
    precision: Option<Precision>,
}

impl<'m, T: Scalar> Problem<'m, T> {
    /// Creates a call with random operands. Equal seeds give equal operands.
    pub fn new(shape: Shape, seed: u64, machine: &'m Machine, placement: Placement) -> Result<Self> {
        let mut inputs = operands(&shape, seed)?;
        let mut factored = None;
        match shape.routine {
            Routine::Trsm => make_well_conditioned(&mut inputs.a, shape.a.diag),
            Routine::Getrs => factored = Some(factor(&mut inputs, machine)?),
            Routine::Laswp => draw_pivots(&mut inputs, seed),
            Routine::Gemm | Routine::Getrf | Routine::Gesv => {}
        }
        let mut work = inputs.clone();
        prepare(&shape, &inputs, &mut work);
        let resident = match placement {
            Placement::Host => None,
            Placement::Resident => Some(Resident::new(machine, &work, false)?),
        };
        Ok(Problem { shape, machine, work, inputs, factored, resident, is_padded: false, is_mixed: false, precision: None })
    }

    /// Gives the matrices in device memory odd leading dimensions from the next [`reset`](Self::reset) on. The elements between the
    /// columns are NaN.
    pub fn padded(self, is_padded: bool) -> Self {
        Problem { is_padded, ..self }
    }

    /// Makes [`Problem::ours`] call `gesv_mixed`, for a problem of `gesv` in double precision.
    pub fn mixed(self) -> Self {
        Problem { is_mixed: true, ..self }
    }

    /// The precision that the last call of `gesv_mixed` used. `None` if there was no such call.
    pub fn precision(&self) -> Option<Precision> {
        self.precision
    }

    /// The routine and the sizes of the call.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The memory in which the matrices of Lapidary's call lie.
    pub fn placement(&self) -> Placement {
        if self.resident.is_some() { Placement::Resident } else { Placement::Host }
    }

    /// Restores the operands for the next call.
    pub fn reset(&mut self) -> Result<()> {
        prepare(&self.shape, &self.inputs, &mut self.work);
        if self.resident.take().is_some() {
            self.resident = Some(Resident::new(self.machine, &self.work, self.is_padded)?);
        }
        Ok(())
    }

    /// Calls the routine of Lapidary once.
    pub fn ours(&mut self) -> Result<()> {
        if self.is_mixed { self.gesv_mixed() } else { self.routine() }
    }

    /// Calls `gesv_mixed` once. A and B are the inputs themselves, which the call does not change.
    fn gesv_mixed(&mut self) -> Result<()> {
        let input = [&self.inputs.a, &self.inputs.b].map(|input| input as &dyn Any);
        let [a, b] = input.map(|input| input.downcast_ref::<Dense<f64>>().expect("--mixed needs f64").view());
        let x = (&mut self.work.b as &mut dyn Any).downcast_mut::<Dense<f64>>().expect("--mixed needs f64");
        self.precision = Some(self.machine.gesv_mixed(a, b, x.view_mut())?);
        self.work.info = 0;
        Ok(())
    }

    /// Calls the routine of the shape once.
    pub fn routine(&mut self) -> Result<()> {
        let (machine, Triangle { side, uplo, op, diag }) = (self.machine, self.shape.a);
        let Operands { a, b, c, ipiv, info } = &mut self.work;
        let [a, b, c]: [MatMut<'_, T>; 3] = match &mut self.resident {
            Some(on) => [on.a.view_mut(), on.b.view_mut(), on.c.view_mut()],
            None => [a.view_mut(), b.view_mut(), c.view_mut()],
        };
        match self.shape.routine {
            Routine::Gemm => machine.gemm(Gemm::new(a.as_ref(), b.as_ref(), c).op_a(op).op_b(self.shape.op_b))?,
            Routine::Trsm => {
                machine.trsm(Trsm::new(a.as_ref(), b).side(side).uplo(uplo).op(op).diag(diag).mode(self.shape.mode))?;
            }
            Routine::Getrf => not_singular(machine.getrf_into(Getrf::new(a, ipiv))?.get())?,
            Routine::Getrs => machine.getrs(Getrs::new(a.as_ref(), ipiv, b))?,
            Routine::Gesv => ipiv.copy_from_slice(machine.gesv(a, b)?.ipiv()),
            Routine::Laswp => machine.laswp(Laswp::new(a, ipiv))?,
        }
        *info = 0;
        Ok(())
    }

    /// Computes a product on resident matrices `times` times, and waits once. A device that works in host memory computes one product
    /// after the other.
    pub fn repeat(&mut self, times: usize) -> Result<()> {
        if self.machine.devices().all(|device| device.host_memory) {
            return (0..times).try_for_each(|_| self.ours());
        }
        let (op_a, op_b) = (self.shape.a.op, self.shape.op_b);
        let on = self.resident.as_mut().ok_or_else(|| Failure::check("the matrices are not in device memory"))?;
        let stream = self.machine.stream(on.c.device())?;
        for _ in 0..times {
            stream.gemm(Gemm::new(on.a.view(), on.b.view(), on.c.view_mut()).op_a(op_a).op_b(op_b))?;
        }
        Ok(stream.wait()?)
    }

    /// Computes C ← α·op(A)·op(B) + β·C on resident matrices, with α ≠ 1 and β ≠ 0, and checks the result. Returns `None` if the routine
    /// is no product.
    pub fn check_scaled(&mut self) -> Result<Option<Check>> {
        let (op_a, op_b) = (self.shape.a.op, self.shape.op_b);
        let Some(on) = self.resident.as_mut().filter(|_| self.shape.routine == Routine::Gemm) else { return Ok(None) };
        let [alpha, beta] = [-1.5, 0.75];
        let mut rng = fastrand::Rng::with_seed(self.work.c.data().len() as u64);
        let before = Dense::random(self.work.c.rows(), self.work.c.cols(), &mut rng)?;
        on.c = OnDevice::new(self.machine, &before, self.is_padded)?;
        let product = Gemm::new(on.a.view(), on.b.view(), on.c.view_mut()).op_a(op_a).op_b(op_b);
        self.machine.gemm(product.alpha(T::from_f64(alpha)).beta(T::from_f64(beta)))?;
        on.c.download(&mut self.work.c)?;
        let (a, b) = ((op_a, &self.inputs.a), (op_b, &self.inputs.b));
        let ratio = residual::scaled_product(alpha, a, b, Some((beta, &before)), &self.work.c);
        Ok(Some(Check { what: "checksum over bound 1 for α = −1.5 and β = 0.75", ratio, threshold: RATIO_THRESHOLD }))
    }

    /// Checks the result of the last call of Lapidary.
    pub fn check_ours(&mut self) -> Result<Check> {
        if let Some(resident) = &self.resident {
            resident.download(&mut self.work)?;
        }
        Ok(if self.is_mixed { self.check_solution(&self.inputs.a) } else { self.check() })
    }

    /// Calls the routine that is timed in turn with Lapidary's once.
    pub fn rival(&mut self, rival: &Rival<T>) -> Result<()> {
        match rival {
            Rival::Library(peer) => self.peer(peer),
            Rival::Gesv => self.routine(),
        }
    }

    fn peer(&mut self, peer: &Peer<T>) -> Result<()> {
        guard_exit(|| match self.shape.routine {
            Routine::Gemm => peer.gemm(&self.shape, &mut self.work),
            Routine::Trsm => peer.trsm(&self.shape, &mut self.work),
            Routine::Getrf => peer.getrf(&mut self.work),
            Routine::Getrs => peer.getrs(&mut self.work),
            Routine::Gesv => peer.gesv(&mut self.work),
            Routine::Laswp => peer.laswp(&mut self.work),
        })
    }

    /// Checks the result in `work` against the bound of the routine.
    pub fn check(&self) -> Check {
        let (shape, inputs, work) = (&self.shape, &self.inputs, &self.work);
        match shape.routine {
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
                self.ended(Check { what: "dget01 along a vector", ratio, threshold: LU_THRESHOLD })
            }
            Routine::Getrs | Routine::Gesv => {
                let a = self.factored.as_ref().unwrap_or(&inputs.a);
                let solution = self.check_solution(a);
                if shape.routine == Routine::Getrs {
                    return solution;
                }
                let ratio = residual::factorisation(a, &work.a, &work.ipiv);
                self.ended(solution.worse(Check { what: "dget01 along a vector", ratio, threshold: LU_THRESHOLD }))
            }
            Routine::Laswp => {
                let ratio = residual::exchanges(&inputs.a, &inputs.ipiv, &work.a);
                Check { what: "elements in a wrong row", ratio, threshold: 0.0 }
            }
        }
    }

    /// Checks the solution of a system with the matrix A.
    fn check_solution(&self, a: &Dense<T>) -> Check {
        let ratio = residual::solution(a, &self.work.b, &self.inputs.b);
        self.ended(Check { what: "dget02", ratio, threshold: LU_THRESHOLD })
    }

    /// Makes the check fail if the routine did not return `info` = 0.
    fn ended(&self, check: Check) -> Check {
        if self.work.info == 0 { check } else { Check { ratio: f64::INFINITY, ..check } }
    }
}

/// The shapes of A, B and C. A matrix that the routine does not use is 1×1, since some devices cannot allocate an empty matrix.
pub fn operand_shapes(shape: &Shape) -> [(usize, usize); 3] {
    let Shape { m, n, k, nrhs, .. } = *shape;
    let unused = (1, 1);
    match shape.routine {
        Routine::Gemm => [shape.a.op.shape((m, k)), shape.op_b.shape((k, n)), (m, n)],
        Routine::Trsm => [(shape.triangle_order(), shape.triangle_order()), (m, n), unused],
        Routine::Getrf | Routine::Laswp => [(m, n), unused, unused],
        Routine::Getrs | Routine::Gesv => [(n, n), (n, nrhs), unused],
    }
}

/// The shapes of all matrices that a [`Problem`] keeps in host memory. With `resident`, a device that works in host memory needs
/// host memory for one more copy of each operand.
pub fn held(shape: &Shape, resident: bool) -> Vec<(usize, usize)> {
    let operands = operand_shapes(shape);
    let factored = (shape.routine == Routine::Getrs).then_some(operands[0]);
    operands.repeat(if resident { 3 } else { 2 }).into_iter().chain(factored).collect()
}

/// Draws random matrices of the shapes that the routine requires.
fn operands<T: Scalar>(shape: &Shape, seed: u64) -> Result<Operands<T>> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let [a, b, c] = operand_shapes(shape);
    let mut random = |(rows, cols)| Dense::random(rows, cols, &mut rng);
    Ok(Operands { a: random(a)?, b: random(b)?, c: Dense::zeros(c.0, c.1)?, ipiv: vec![0; a.0.min(a.1)], info: 0 })
}

/// Restores in `work` the operands that a call overwrites. The function fills outputs with invalid values, so that a call which
/// writes nothing fails its check.
fn prepare<T: Scalar>(shape: &Shape, inputs: &Operands<T>, work: &mut Operands<T>) {
    match shape.routine {
        Routine::Gemm => work.c.fill(T::from_f64(f64::NAN)),
        Routine::Trsm => work.b.copy_from(&inputs.b),
        Routine::Getrs => {
            work.b.copy_from(&inputs.b);
            work.ipiv.copy_from_slice(&inputs.ipiv);
        }
        Routine::Getrf | Routine::Gesv => {
            work.a.copy_from(&inputs.a);
            work.b.copy_from(&inputs.b);
            work.ipiv.fill(UNSET);
        }
        Routine::Laswp => {
            work.a.copy_from(&inputs.a);
            work.ipiv.copy_from_slice(&inputs.ipiv);
        }
    }
    work.info = UNSET;
}

/// Replaces A by its LU factors and returns the original A.
fn factor<T: Scalar>(operands: &mut Operands<T>, machine: &Machine) -> Result<Dense<T>> {
    let a = operands.a.clone();
    not_singular(machine.getrf_into(Getrf::new(operands.a.view_mut(), &mut operands.ipiv))?.get())?;
    Ok(a)
}

/// Draws pivots that a factorisation could choose: row i is exchanged with itself or with a row below it.
fn draw_pivots<T: Scalar>(operands: &mut Operands<T>, seed: u64) {
    let (mut rng, m) = (fastrand::Rng::with_seed(seed), operands.a.rows());
    for (i, pivot) in operands.ipiv.iter_mut().enumerate() {
        *pivot = i32::try_from(rng.usize(i..m)).unwrap_or(i32::MAX);
    }
}

/// Makes a random triangular matrix well conditioned: the function divides the elements off the diagonal by the order. Without this
/// division the condition number would grow exponentially with the order.
fn make_well_conditioned<T: Scalar>(a: &mut Dense<T>, diag: Diag) {
    let n = a.rows().max(1) as f64;
    let on_diagonal = |value: f64| if diag == Diag::Unit { value } else { 1.5 + value };
    a.map(|i, j, value| if i == j { on_diagonal(value) } else { value / n });
}

pub(super) fn not_singular(info: usize) -> Result<()> {
    if info == 0 { Ok(()) } else { Err(Failure::check(format!("the random matrix is singular (info = {info})"))) }
}
