//! Every instruction on one device at a size that an interpreter bears, on one
//! thread: for a backend's own tests, below the routines.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use lapidary_core::{Device, Diag, Element, HostRect, Instruction, Memory, Op, Operand, Scalar, Side, Swaps, Uplo};

/// More than a triangle's block, a narrow panel, a work-item's tile; prime.
const N: usize = 37;

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
        let buffers = inputs.map(|data| self.upload(data, N));
        // SAFETY: the operands are whole buffers of ours.
        unsafe { self.0.launch(&instruction(buffers.each_ref().map(|buffer| square(buffer)))).unwrap() };
        self.download(&buffers[M - 1], vec![T::ZERO; N * N], N)
    }

    /// `gemm` in all its forms.
    pub fn products<T: Scalar>(&self) {
        let (a, b, c) = (matrix::<T>(1), matrix::<T>(2), matrix::<T>(3));
        let (alpha, beta) = (T::from_f64(0.5), T::from_f64(-2.0));
        for (op_a, op_b) in [(Op::NoTrans, Op::NoTrans), (Op::Trans, Op::NoTrans), (Op::NoTrans, Op::Trans), (Op::Trans, Op::Trans)]
        {
            let computed = self.run([&a, &b, &c], |[a, b, c]| Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c });
            let product = product(&turned(op_a, &a), &turned(op_b, &b));
            let expected = product.iter().zip(&c).map(|(p, c)| 0.5 * p - 2.0 * c.to_f64());
            alike::<T>("gemm", &computed, expected);
        }
    }

    /// Every instruction.
    pub fn all<T: Scalar>(&self) {
        self.products::<T>();
        let (a, b, c, beta) = (matrix::<T>(1), matrix::<T>(2), matrix::<T>(3), T::from_f64(-2.0));
        let scaled = self.run([&c], |[c]| Instruction::Scale { beta, c });
        alike::<T>("scale", &scaled, c.iter().map(|c| -2.0 * c.to_f64()));
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
                let back = if side == Side::Left { product(&t, &wide(&x)) } else { product(&wide(&x), &t) };
                alike::<T>("trsm", b, back.into_iter());
            }
            let inverse = self.run([a, b], |[a, inverse]| Instruction::Trtri { uplo, diag, a, inverse });
            let identity = product(&wide(&triangle), &wide(&inverse));
            alike::<T>("trtri", &unit(), identity.into_iter());
        }
    }

    /// P·L·U from the factors, and the exchanges by themselves.
    pub fn panels<T: Scalar>(&self) {
        // rows in reverse, so that pivots are found far from the diagonal
        let a: Matrix<T> = matrix::<T>(1).chunks(N).flat_map(|column| column.iter().rev().copied()).collect();
        let (factors, pivots, info) = (self.upload(&a, N), self.upload(&[0; N], N), self.upload(&[0], 1));
        let getrf = Instruction::<T, _>::Getrf {
            pivoting: true,
            first_row: 5,
            a: square(&factors),
            ipiv: column(&pivots, N),
            info: column(&info, 1),
        };
        // SAFETY: the operands are whole buffers of ours.
        unsafe { self.0.launch(&getrf).unwrap() };
        let ipiv = self.download(&pivots, vec![0; N], N);
        assert!((0..N).all(|i| (i + 5..N + 5).contains(&(ipiv[i] as usize))), "{ipiv:?}");
        assert_eq!(self.download(&info, vec![7], 1), [0]);
        let lu = self.download(&factors, vec![T::ZERO; N * N], N);
        let (lower, upper) = (triangle(&lu, Uplo::Lower, Diag::Unit), triangle(&lu, Uplo::Upper, Diag::NonUnit));
        let exchanged = self.laswp(&a, &pivots, Side::Left, true);
        alike::<T>("getrf", &exchanged, product(&wide(&lower), &wide(&upper)).into_iter());
        assert_eq!(self.laswp(&exchanged, &pivots, Side::Left, false), a);
        let transposed = |x: &Matrix<T>| turned(Op::Trans, x).into_iter().map(T::from_f64).collect::<Vec<T>>();
        assert_eq!(self.laswp(&transposed(&a), &pivots, Side::Right, true), transposed(&exchanged));
    }

    fn laswp<T: Scalar>(&self, a: &Matrix<T>, pivots: &D::Buffer, side: Side, forward: bool) -> Matrix<T> {
        let swaps = Swaps { side, forward, first_row: 5 };
        let moved = self.upload(a, N);
        // SAFETY: the operands are whole buffers of ours.
        unsafe { self.0.launch(&Instruction::<T, _>::Laswp { swaps, a: square(&moved), ipiv: column(pivots, N) }).unwrap() };
        self.download(&moved, vec![T::ZERO; N * N], N)
    }
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

fn unit<T: Scalar>() -> Matrix<T> {
    (0..N * N).map(|e| if e % (N + 1) == 0 { T::ONE } else { T::ZERO }).collect()
}

fn product(a: &[f64], b: &[f64]) -> Vec<f64> {
    let element = |i: usize, j: usize| (0..N).map(|k| a[i + k * N] * b[k + j * N]).sum();
    (0..N * N).map(|e| element(e % N, e / N)).collect()
}

/// Differences that rounding explains: triangles of this kind magnify it little.
fn alike<T: Scalar>(what: &str, computed: &[T], expected: impl Iterator<Item = f64>) {
    let slack = 1e4 * N as f64 * T::UNIT_ROUNDOFF;
    for (e, (computed, expected)) in computed.iter().zip(expected).enumerate() {
        let apart = (computed.to_f64() - expected).abs();
        assert!(apart <= slack * expected.abs().max(1.0), "{what} ({}, {}): {apart:e} apart", e % N, e / N);
    }
}
