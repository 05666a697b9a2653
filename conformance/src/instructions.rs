//! Every instruction on one device at a size that an interpreter bears, on one
//! thread: for a backend's own tests, below the routines.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use lapidary_core::{Device, Diag, Element, HostRect, Instruction, Memory, Op, Operand, Scalar, Side, Swaps, Uplo};

use crate::bounds::{self, Bound};
use crate::failure::ratio;

/// More than a triangle's block, a narrow panel, a work-item's tile; prime.
const N: usize = 37;

/// Elements before the first one, and between columns: operands lie inside their buffers.
const OFFSET: usize = 3;
const LD: usize = N + 5;
/// What lies around them.
const AROUND: f64 = 77.0;

/// A square matrix of the host.
type Matrix<T> = Vec<T>;

fn matrix<T: Scalar>(seed: usize) -> Matrix<T> {
    let value = |i: usize| (((i + 13) * 7919 * (seed + 3)) % 1009) as f64 / 1009.0 - 0.5;
    (0..N * N).map(|i| T::from_f64(value(i) + if i % (N + 1) == 0 { 3.0 } else { 0.0 })).collect()
}

fn rect<E>(data: &mut [E], rows: usize) -> HostRect<E> {
    HostRect { origin: data.as_mut_ptr(), row_stride: 1, col_stride: rows, rows, cols: data.len() / rows }
}

/// The instructions of a device under test. Each method panics at the first wrong result.
#[derive(Debug)]
pub struct Instructions<'d, D>(pub &'d D);

impl<D: Device> Instructions<'_, D> {
    fn upload<E: Element>(&self, data: &[E], rows: usize) -> D::Buffer {
        let buffer = self.0.alloc(size_of_val(data)).unwrap();
        // SAFETY: the copy and the buffer are ours.
        unsafe { self.0.write(rect(&mut data.to_vec(), rows), &buffer).unwrap() };
        buffer
    }

    fn download<E: Element>(&self, buffer: &D::Buffer, mut data: Vec<E>, rows: usize) -> Vec<E> {
        // SAFETY: the data and the buffer are ours.
        unsafe { self.0.read(buffer, rect(&mut data, rows)).unwrap() };
        data
    }

    /// Runs an instruction on whole square matrices; the last one afterwards.
    fn run<T: Scalar, const M: usize>(
        &self,
        inputs: [&Matrix<T>; M],
        instruction: impl for<'b> Fn([Operand<'b, D::Buffer>; M]) -> Instruction<T, Operand<'b, D::Buffer>>,
    ) -> Matrix<T> {
        let buffers = inputs.map(|data| self.upload_inside(data));
        // SAFETY: the operands lie in buffers of ours.
        unsafe { self.0.launch(&instruction(buffers.each_ref().map(|buffer| inside(buffer)))).unwrap() };
        self.download_inside(&buffers[M - 1])
    }

    /// A square matrix inside a larger buffer.
    fn upload_inside<T: Scalar>(&self, data: &Matrix<T>) -> D::Buffer {
        let mut inside = vec![T::from_f64(AROUND); OFFSET + N * LD];
        (0..N * N).for_each(|e| inside[OFFSET + e % N + e / N * LD] = data[e]);
        self.upload(&inside, OFFSET + N * LD)
    }

    /// The matrix, when nothing around it was written.
    fn download_inside<T: Scalar>(&self, buffer: &D::Buffer) -> Matrix<T> {
        let all = self.download(buffer, vec![T::ZERO; OFFSET + N * LD], OFFSET + N * LD);
        let is_element = |at: usize| at >= OFFSET && (at - OFFSET) % LD < N;
        let (elements, around): (Vec<_>, Vec<_>) = (0..all.len()).partition(|&at| is_element(at));
        assert!(around.iter().all(|&at| all[at].to_f64() == AROUND), "what lies around an operand was written");
        elements.into_iter().map(|at| all[at]).collect()
    }

    /// `gemm` in all its forms.
    pub fn products<T: Scalar>(&self) {
        let (a, b, c) = (matrix::<T>(1), matrix::<T>(2), matrix::<T>(3));
        let (alpha, beta) = (T::from_f64(0.5), T::from_f64(-2.0));
        for (op_a, op_b) in [(Op::NoTrans, Op::NoTrans), (Op::Trans, Op::NoTrans), (Op::NoTrans, Op::Trans), (Op::Trans, Op::Trans)]
        {
            let computed = self.run([&a, &b, &c], |[a, b, c]| Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c });
            let (wide_a, wide_b) = (turned(op_a, &a), turned(op_b, &b));
            let exact = product(&wide_a, &wide_b).into_iter().zip(&c).map(|(p, c)| 0.5 * p - 2.0 * c.to_f64());
            let scale =
                product(&sizes(&wide_a), &sizes(&wide_b)).into_iter().zip(&c).map(|(p, c)| 0.5 * p + 2.0 * c.to_f64().abs());
            close("gemm", bounds::gemm_componentwise::<T>(N), &wide(&computed), exact.zip(scale));
        }
        // C was never written
        let [a_there, b_there] = [&a, &b].map(|data| self.upload(data, N));
        let c_there = self.0.alloc(N * N * size_of::<T>()).unwrap();
        let [a_view, b_view, c_view] = [&a_there, &b_there, &c_there].map(square);
        let (op_a, op_b, beta) = (Op::NoTrans, Op::NoTrans, T::ZERO);
        // SAFETY: the operands are whole buffers of ours.
        unsafe { self.0.launch(&Instruction::Gemm { alpha, op_a, a: a_view, op_b, b: b_view, beta, c: c_view }).unwrap() };
        let computed = self.download(&c_there, vec![T::ZERO; N * N], N);
        let exact = product(&wide(&a), &wide(&b)).into_iter().map(|p| 0.5 * p);
        let scale = product(&sizes(&wide(&a)), &sizes(&wide(&b))).into_iter().map(|p| 0.5 * p);
        close("gemm into new memory", bounds::gemm_componentwise::<T>(N), &wide(&computed), exact.zip(scale));
    }

    /// Every instruction.
    pub fn all<T: Scalar>(&self) {
        self.products::<T>();
        let (a, b, c, beta) = (matrix::<T>(1), matrix::<T>(2), matrix::<T>(3), T::from_f64(-2.0));
        let scaled = self.run([&c], |[c]| Instruction::Scale { beta, c });
        assert!(scaled.iter().zip(&c).all(|(s, c)| s.to_f64() == -2.0 * c.to_f64()), "scaling by two does not round");
        let copied = self.run([&a, &c], |[a, b]| Instruction::Copy { a, b });
        assert_eq!(copied, a);
        self.triangles(&a, &b);
        self.panels::<T>();
    }

    fn triangles<T: Scalar>(&self, a: &Matrix<T>, b: &Matrix<T>) {
        for (uplo, diag) in
            [(Uplo::Lower, Diag::NonUnit), (Uplo::Upper, Diag::NonUnit), (Uplo::Lower, Diag::Unit), (Uplo::Upper, Diag::Unit)]
        {
            let triangle = triangle(a, uplo, diag);
            for (side, op) in
                [(Side::Left, Op::NoTrans), (Side::Left, Op::Trans), (Side::Right, Op::NoTrans), (Side::Right, Op::Trans)]
            {
                let alpha = T::ONE;
                let x = self.run([a, b], |[a, b]| Instruction::Trsm { side, uplo, op, diag, alpha, a, b });
                let t = turned(op, &triangle);
                let both = |t: &[f64], x: &[f64]| if side == Side::Left { product(t, x) } else { product(x, t) };
                let scale = both(&sizes(&t), &sizes(&wide(&x))).into_iter().zip(b).map(|(p, b)| p + b.to_f64().abs());
                let back = both(&t, &wide(&x));
                close("trsm", bounds::trsm_substitution::<T>(N), &back, wide(b).into_iter().zip(scale));
            }
            let inverse = self.run([a, b], |[a, inverse]| Instruction::Trtri { uplo, diag, a, inverse });
            let (triangle, inverse) = (wide(&triangle), wide(&inverse));
            let apart: Vec<f64> = product(&triangle, &inverse).iter().zip(unit()).map(|(x, e)| x - e).collect();
            small("trtri", bounds::trsm_inverted::<T>(N), norm(&apart), norm(&triangle) * norm(&inverse));
        }
    }

    /// P·L·U from the factors, and the exchanges by themselves.
    pub fn panels<T: Scalar>(&self) {
        // rows in reverse, so that pivots are found far from the diagonal
        let a: Matrix<T> = matrix::<T>(1).chunks(N).flat_map(|column| column.iter().rev().copied()).collect();
        let (factors, pivots, info) = (self.upload_inside(&a), self.upload(&[0; N], N), self.upload(&[0], 1));
        let getrf = Instruction::<T, _>::Getrf {
            pivoting: true,
            first_row: 5,
            a: inside(&factors),
            ipiv: column(&pivots, N),
            info: column(&info, 1),
        };
        // SAFETY: the operands are whole buffers of ours.
        unsafe { self.0.launch(&getrf).unwrap() };
        let ipiv = self.download(&pivots, vec![0; N], N);
        assert!((0..N).all(|i| (i + 5..N + 5).contains(&(ipiv[i] as usize))), "{ipiv:?}");
        assert_eq!(self.download(&info, vec![7], 1), [0]);
        let lu: Matrix<T> = self.download_inside(&factors);
        let (lower, upper) = (triangle(&lu, Uplo::Lower, Diag::Unit), triangle(&lu, Uplo::Upper, Diag::NonUnit));
        let exchanged = self.laswp(&a, &pivots, Side::Left, true);
        let lu = product(&wide(&lower), &wide(&upper));
        let apart: Vec<f64> = lu.iter().zip(wide(&exchanged)).map(|(lu, a)| lu - a).collect();
        small("getrf", bounds::getrf_residual(), norm(&apart), N as f64 * norm(&wide(&a)) * bounds::epsilon::<T>());
        assert_eq!(self.laswp(&exchanged, &pivots, Side::Left, false), a);
        let transposed = |x: &Matrix<T>| turned(Op::Trans, x).into_iter().map(T::from_f64).collect::<Vec<T>>();
        assert_eq!(self.laswp(&transposed(&a), &pivots, Side::Right, true), transposed(&exchanged));
    }

    fn laswp<T: Scalar>(&self, a: &Matrix<T>, pivots: &D::Buffer, side: Side, forward: bool) -> Matrix<T> {
        let swaps = Swaps { side, forward, first_row: 5 };
        let moved = self.upload_inside(a);
        // SAFETY: the operands are whole buffers of ours.
        unsafe { self.0.launch(&Instruction::<T, _>::Laswp { swaps, a: inside(&moved), ipiv: column(pivots, N) }).unwrap() };
        self.download_inside(&moved)
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

/// Element by element within a bound, over the scale that comes with what is right.
fn close(what: &str, bound: Bound, computed: &[f64], right: impl Iterator<Item = (f64, f64)>) {
    for (e, (computed, (right, scale))) in computed.iter().zip(right).enumerate() {
        let ratio = ratio((computed - right).abs(), scale);
        assert!(ratio <= bound.limit, "{what} ({}, {}): ratio {ratio:e} exceeds {bound}", e % N, e / N);
    }
}

/// One residual within a bound.
fn small(what: &str, bound: Bound, residual: f64, scale: f64) {
    let ratio = ratio(residual, scale);
    assert!(ratio <= bound.limit, "{what}: ratio {ratio:e} exceeds {bound}");
}
