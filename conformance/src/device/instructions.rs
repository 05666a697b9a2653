//! Every instruction on one device at a size that an interpreter bears, on one
//! thread: below the routines, and for a backend's own tests.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use lapidary_core::{Device, Diag, Element, HostRect, Instruction, Memory, Op, Operand, Scalar, Side, Swaps, Uplo};

use crate::bounds::{self, Bound, real};
use crate::failure::{Worst, ratio};
use crate::properties::memory::completed;
use crate::trial::Evidence;
use crate::{Failure, Ledger, Scope, Trial};

/// More than a triangle's block, a narrow panel, a work-item's tile; prime.
const N: usize = 37;

/// Elements before the first one, and between columns: operands lie inside their buffers.
const OFFSET: usize = 3;
const LD: usize = N + 5;
/// What lies around them.
const AROUND: f64 = 77.0;
/// The row of its matrix at which a panel begins.
const FIRST_ROW: usize = 5;

/// A square matrix of the host.
type Matrix<T> = Vec<T>;

fn matrix<T: Scalar>(seed: usize) -> Matrix<T> {
    let value = |i: usize| (((i + 13) * 7919 * (seed + 3)) % 1009) as f64 / 1009.0 - 0.5;
    (0..N * N).map(|i| T::from_f64(value(i) + if i % (N + 1) == 0 { 3.0 } else { 0.0 })).collect()
}

fn rect<E>(data: &mut [E], rows: usize) -> HostRect<E> {
    HostRect { origin: data.as_mut_ptr(), row_stride: 1, col_stride: rows, rows, cols: data.len() / rows }
}

/// The instructions of a device under test, for a backend's own tests. Each method panics
/// at the first wrong result.
#[derive(Debug)]
pub struct Instructions<'d, D>(pub &'d D);

impl<D: Device> Instructions<'_, D> {
    /// Every instruction.
    pub fn all<T: Scalar>(&self) {
        self.products::<T>();
        self.must(moves::<D, T>);
        self.must(triangles::<D, T>);
        self.panels::<T>();
    }

    /// `gemm` in all its forms.
    pub fn products<T: Scalar>(&self) {
        self.must(products::<D, T>);
        self.must(new_memory::<D, T>);
    }

    /// `getrf` and `laswp`.
    pub fn panels<T: Scalar>(&self) {
        self.must(panels::<D, T>);
        self.must(zero_pivot::<D, T>);
    }

    fn must(&self, check: impl Fn(&Trial<'_, D>) -> Result<(), Failure>) {
        let (scope, ledger) = (Scope::quick(1), Ledger::default());
        let trial = Trial { subject: self.0, scope: &scope, ledger: &ledger };
        check(&trial).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// A device, and where its figures go.
struct Launches<'a, D> {
    device: &'a D,
    seen: Evidence<'a>,
}

fn done<R>(result: lapidary_core::Result<R>) -> Result<R, Failure> {
    completed("program: completes", result)
}

impl<'a, D: Device> Launches<'a, D> {
    fn new(trial: &Trial<'a, D>, flags: &str) -> Self {
        Launches { device: trial.subject, seen: trial.ledger.evidence(flags, N) }
    }

    fn upload<E: Element>(&self, data: &[E], rows: usize) -> Result<D::Buffer, Failure> {
        let buffer = done(self.device.alloc(size_of_val(data)))?;
        // SAFETY: the copy and the buffer are ours.
        done(unsafe { self.device.write(rect(&mut data.to_vec(), rows), &buffer) })?;
        Ok(buffer)
    }

    fn download<E: Element>(&self, buffer: &D::Buffer, mut data: Vec<E>, rows: usize) -> Result<Vec<E>, Failure> {
        // SAFETY: the data and the buffer are ours.
        done(unsafe { self.device.read(buffer, rect(&mut data, rows)) })?;
        Ok(data)
    }

    fn launch<T: Scalar>(&self, instruction: &Instruction<T, Operand<'_, D::Buffer>>) -> Result<(), Failure> {
        // SAFETY: the operands lie in buffers of ours.
        done(unsafe { self.device.launch(instruction) })
    }

    /// Runs an instruction on whole square matrices; the last one afterwards.
    fn run<T: Scalar, const M: usize>(
        &self,
        inputs: [&Matrix<T>; M],
        instruction: impl for<'b> Fn([Operand<'b, D::Buffer>; M]) -> Instruction<T, Operand<'b, D::Buffer>>,
    ) -> Result<Matrix<T>, Failure> {
        let buffers = inputs.into_iter().map(|data| self.upload_inside(data)).collect::<Result<Vec<_>, _>>()?;
        self.launch(&instruction(std::array::from_fn(|i| inside(&buffers[i]))))?;
        self.download_inside(&buffers[M - 1])
    }

    /// A square matrix inside a larger buffer.
    fn upload_inside<T: Scalar>(&self, data: &Matrix<T>) -> Result<D::Buffer, Failure> {
        let mut inside = vec![T::from_f64(AROUND); OFFSET + N * LD];
        (0..N * N).for_each(|e| inside[OFFSET + e % N + e / N * LD] = data[e]);
        self.upload(&inside, OFFSET + N * LD)
    }

    /// The matrix, when nothing around it was written.
    fn download_inside<T: Scalar>(&self, buffer: &D::Buffer) -> Result<Matrix<T>, Failure> {
        let all = self.download(buffer, vec![T::ZERO; OFFSET + N * LD], OFFSET + N * LD)?;
        let is_element = |at: usize| at >= OFFSET && (at - OFFSET) % LD < N;
        let (elements, around): (Vec<_>, Vec<_>) = (0..all.len()).partition(|&at| is_element(at));
        match around.into_iter().find(|&at| all[at].to_f64() != AROUND) {
            None => Ok(elements.into_iter().map(|at| all[at]).collect()),
            Some(at) => Err(Failure::new("memory: canaries", format!("element {at} of a buffer, around the operand, was written"))),
        }
    }

    fn laswp<T: Scalar>(&self, a: &Matrix<T>, pivots: &D::Buffer, side: Side, forward: bool) -> Result<Matrix<T>, Failure> {
        let swaps = Swaps { side, forward, first_row: FIRST_ROW };
        let moved = self.upload_inside(a)?;
        self.launch(&Instruction::<T, _>::Laswp { swaps, a: inside(&moved), ipiv: column(pivots, N) })?;
        self.download_inside(&moved)
    }

    /// Element by element within a bound, over the scale that comes with what is right.
    fn close(
        &self,
        check: &'static str,
        bound: Bound,
        computed: &[f64],
        right: impl Iterator<Item = (f64, f64)>,
    ) -> Result<(), Failure> {
        let mut worst = Worst::default();
        for (e, (computed, (right, scale))) in computed.iter().zip(right).enumerate() {
            worst.see(ratio((computed - right).abs(), scale), (e % N, e / N));
        }
        self.seen.worst(check, bound, worst)
    }
}

/// Products in all their forms, on operands inside larger buffers (bound 1).
///
/// # Errors
/// A result is wrong, or something beside it was written.
pub fn products<D: Device, T: Scalar>(trial: &Trial<'_, D>) -> Result<(), Failure> {
    let (a, b, c) = (matrix::<T>(1), matrix::<T>(2), matrix::<T>(3));
    let (alpha, beta) = (T::from_f64(0.5), T::from_f64(-2.0));
    for (op_a, op_b) in [(Op::NoTrans, Op::NoTrans), (Op::Trans, Op::NoTrans), (Op::NoTrans, Op::Trans), (Op::Trans, Op::Trans)] {
        let on = Launches::new(trial, &format!("{op_a}{op_b}"));
        let computed = on.run([&a, &b, &c], |[a, b, c]| Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c })?;
        let (wide_a, wide_b) = (turned(op_a, &a), turned(op_b, &b));
        let exact = product(&wide_a, &wide_b).into_iter().zip(&c).map(|(p, c)| 0.5 * p - 2.0 * c.to_f64());
        let scale = product(&sizes(&wide_a), &sizes(&wide_b)).into_iter().zip(&c).map(|(p, c)| 0.5 * p + 2.0 * c.to_f64().abs());
        on.close("program: gemm", bounds::gemm_componentwise::<T>(N), &wide(&computed), exact.zip(scale))?;
    }
    Ok(())
}

/// A product into memory that was never written: with `β = 0` it is not read (bound 1).
///
/// # Errors
/// A result is wrong.
pub fn new_memory<D: Device, T: Scalar>(trial: &Trial<'_, D>) -> Result<(), Failure> {
    let (on, a, b) = (Launches::new(trial, "NN"), matrix::<T>(1), matrix::<T>(2));
    let [a_there, b_there] = [on.upload(&a, N)?, on.upload(&b, N)?];
    let c_there = done(trial.subject.alloc(N * N * size_of::<T>()))?;
    let [a_view, b_view, c_view] = [&a_there, &b_there, &c_there].map(square);
    let (op_a, op_b, alpha, beta) = (Op::NoTrans, Op::NoTrans, T::ONE, T::ZERO);
    on.launch(&Instruction::Gemm { alpha, op_a, a: a_view, op_b, b: b_view, beta, c: c_view })?;
    let computed = on.download(&c_there, vec![T::ZERO; N * N], N)?;
    let scale = product(&sizes(&wide(&a)), &sizes(&wide(&b)));
    let right = product(&wide(&a), &wide(&b)).into_iter().zip(scale);
    on.close("program: gemm", bounds::gemm_componentwise::<T>(N), &wide(&computed), right)
}

/// Scaling by a power of two and copying, which do not round.
///
/// # Errors
/// An element differs.
pub fn moves<D: Device, T: Scalar>(trial: &Trial<'_, D>) -> Result<(), Failure> {
    let (on, a, c, beta) = (Launches::new(trial, ""), matrix::<T>(1), matrix::<T>(3), T::from_f64(-2.0));
    let scaled = on.run([&c], |[c]| Instruction::Scale { beta, c })?;
    equal("program: scale", &scaled, &c.iter().map(|&c| beta * c).collect::<Vec<T>>())?;
    let copied = on.run([&a, &c], |[a, b]| Instruction::Copy { a, b })?;
    equal("program: copy", &copied, &a)
}

/// Substitution from either side (bound 7), and the inverses of triangles.
///
/// # Errors
/// A result is wrong, or something beside it was written.
pub fn triangles<D: Device, T: Scalar>(trial: &Trial<'_, D>) -> Result<(), Failure> {
    let (a, b) = (matrix::<T>(1), matrix::<T>(2));
    for (uplo, diag) in
        [(Uplo::Lower, Diag::NonUnit), (Uplo::Upper, Diag::NonUnit), (Uplo::Lower, Diag::Unit), (Uplo::Upper, Diag::Unit)]
    {
        let triangle = triangle(&a, uplo, diag);
        for (side, op) in [(Side::Left, Op::NoTrans), (Side::Left, Op::Trans), (Side::Right, Op::NoTrans), (Side::Right, Op::Trans)]
        {
            let (alpha, on) = (T::ONE, Launches::new(trial, &format!("{side}{uplo}{op}{diag}")));
            let x = on.run([&a, &b], |[a, b]| Instruction::Trsm { side, uplo, op, diag, alpha, a, b })?;
            let t = turned(op, &triangle);
            let both = |t: &[f64], x: &[f64]| if side == Side::Left { product(t, x) } else { product(x, t) };
            let scale = both(&sizes(&t), &sizes(&wide(&x))).into_iter().zip(&b).map(|(p, b)| p + b.to_f64().abs());
            let back = both(&t, &wide(&x));
            on.close("program: trsm", bounds::trsm_substitution::<T>(N), &back, wide(&b).into_iter().zip(scale))?;
        }
        let on = Launches::new(trial, &format!("{uplo}{diag}"));
        let inverse = on.run([&a, &b], |[a, inverse]| Instruction::Trtri { uplo, diag, a, inverse })?;
        let (triangle, inverse) = (wide(&triangle), wide(&inverse));
        let apart: Vec<f64> = product(&triangle, &inverse).iter().zip(unit()).map(|(x, e)| x - e).collect();
        let ratio = ratio(norm(&apart), norm(&triangle) * norm(&inverse));
        on.seen.within("program: trtri", bounds::trsm_inverted::<T>(N), ratio)?;
    }
    Ok(())
}

/// P·L·U from the factors (bound 8), and the exchanges by themselves.
///
/// # Errors
/// A result is wrong, or something beside it was written.
pub fn panels<D: Device, T: Scalar>(trial: &Trial<'_, D>) -> Result<(), Failure> {
    let on = Launches::new(trial, "");
    // rows in reverse, so that pivots are found far from the diagonal
    let a: Matrix<T> = matrix::<T>(1).chunks(N).flat_map(|column| column.iter().rev().copied()).collect();
    let (lu, pivots, info) = factored(&on, &a)?;
    let ipiv = on.download(&pivots, vec![0; N], N)?;
    if !(0..N).all(|i| (i + FIRST_ROW..N + FIRST_ROW).contains(&usize::try_from(ipiv[i]).unwrap_or(0))) {
        return Err(Failure::new("program: getrf pivots", format!("{ipiv:?} for rows {FIRST_ROW}..{}", N + FIRST_ROW)));
    }
    equal("program: getrf info", &[info], &[0])?;
    let (lower, upper) = (triangle(&lu, Uplo::Lower, Diag::Unit), triangle(&lu, Uplo::Upper, Diag::NonUnit));
    let exchanged = on.laswp(&a, &pivots, Side::Left, true)?;
    let product = product(&wide(&lower), &wide(&upper));
    let apart: Vec<f64> = product.iter().zip(wide(&exchanged)).map(|(lu, a)| lu - a).collect();
    let ratio = ratio(norm(&apart), real(N) * norm(&wide(&a)) * bounds::epsilon::<T>());
    on.seen.within("program: getrf", bounds::getrf_residual(), ratio)?;
    equal("program: laswp", &on.laswp(&exchanged, &pivots, Side::Left, false)?, &a)?;
    let transposed = |x: &Matrix<T>| turned(Op::Trans, x).into_iter().map(T::from_f64).collect::<Vec<T>>();
    equal("program: laswp", &on.laswp(&transposed(&a), &pivots, Side::Right, true)?, &transposed(&exchanged))
}

/// A panel with a column of zeros: `info` is its row in the whole matrix, counted from one.
///
/// # Errors
/// `info` is something else.
pub fn zero_pivot<D: Device, T: Scalar>(trial: &Trial<'_, D>) -> Result<(), Failure> {
    const ZERO: usize = 20;
    let mut a = matrix::<T>(1);
    a[ZERO * N..][..N].fill(T::ZERO);
    let (.., info) = factored(&Launches::new(trial, ""), &a)?;
    let expected = i32::try_from(FIRST_ROW + ZERO + 1).expect("few rows");
    equal("program: getrf info", &[info], &[expected])
}

/// The factors of a panel whose first row is row [`FIRST_ROW`] of a matrix, its pivots and `info`.
fn factored<D: Device, T: Scalar>(on: &Launches<'_, D>, a: &Matrix<T>) -> Result<(Matrix<T>, D::Buffer, i32), Failure> {
    let (factors, pivots, info) = (on.upload_inside(a)?, on.upload(&[0; N], N)?, on.upload(&[0], 1)?);
    let (ipiv, told) = (column(&pivots, N), column(&info, 1));
    on.launch(&Instruction::<T, _>::Getrf { pivoting: true, first_row: FIRST_ROW, a: inside(&factors), ipiv, info: told })?;
    Ok((on.download_inside(&factors)?, pivots, on.download(&info, vec![7], 1)?[0]))
}

/// Where nothing rounds.
fn equal<E: PartialEq + std::fmt::Debug>(check: &'static str, computed: &[E], right: &[E]) -> Result<(), Failure> {
    match computed.iter().zip(right).position(|(computed, right)| computed != right) {
        None => Ok(()),
        Some(e) => Err(Failure::new(check, format!("element {e} is {:?}, not {:?}", computed[e], right[e]))),
    }
}

/// A square operand inside its buffer.
fn inside<B>(buffer: &B) -> Operand<'_, B> {
    Operand { memory: Memory::Buffer(buffer), offset: OFFSET, rows: N, cols: N, ld: LD }
}

fn square<B>(buffer: &B) -> Operand<'_, B> {
    Operand { memory: Memory::Buffer(buffer), offset: 0, rows: N, cols: N, ld: N }
}

fn column<B>(buffer: &B, rows: usize) -> Operand<'_, B> {
    Operand { memory: Memory::Buffer(buffer), offset: 0, rows, cols: 1, ld: rows }
}

fn wide<T: Scalar>(a: &Matrix<T>) -> Vec<f64> {
    turned(Op::NoTrans, a)
}

fn turned<T: Scalar>(op: Op, a: &Matrix<T>) -> Vec<f64> {
    let at = |i: usize, j: usize| if op.is_trans() { a[j + i * N] } else { a[i + j * N] };
    (0..N * N).map(|e| at(e % N, e / N).to_f64()).collect()
}

fn triangle<T: Scalar>(a: &Matrix<T>, uplo: Uplo, diag: Diag) -> Matrix<T> {
    let element = |(i, j): (usize, usize)| match i.cmp(&j) {
        std::cmp::Ordering::Equal if diag == Diag::Unit => T::ONE,
        std::cmp::Ordering::Equal => a[i + j * N],
        order => {
            if (order == std::cmp::Ordering::Greater) == (uplo == Uplo::Lower) {
                a[i + j * N]
            } else {
                T::ZERO
            }
        }
    };
    (0..N * N).map(|e| element((e % N, e / N))).collect()
}

fn unit() -> impl Iterator<Item = f64> {
    (0..N * N).map(|e| f64::from(u8::from(e % (N + 1) == 0)))
}

fn sizes(a: &[f64]) -> Vec<f64> {
    a.iter().map(|x| x.abs()).collect()
}

/// The largest column sum.
fn norm(a: &[f64]) -> f64 {
    a.chunks(N).map(|column| column.iter().map(|x| x.abs()).sum()).fold(0.0, f64::max)
}

fn product(a: &[f64], b: &[f64]) -> Vec<f64> {
    let element = |i: usize, j: usize| (0..N).map(|k| a[i + k * N] * b[k + j * N]).sum();
    (0..N * N).map(|e| element(e % N, e / N)).collect()
}
