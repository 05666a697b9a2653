//! An example of a backend outside the workspace of Lapidary: a device that has its own memory and computes by plain loops.
//!
//! A real backend copies rectangles of matrices over a link to its device and launches kernels there. The example copies rectangles
//! within host memory and runs loops. Apart from the link and the kernels, the example is a complete backend.

use std::cell::UnsafeCell;
use std::ops::Range;

use lapidary::backend::{BufferRect, Device, DeviceBuffer, HostRect, Instruction, Memory, Operand, Swaps};
use lapidary::{DType, DeviceFacts, Diag, Error, ErrorKind, Op, Result, Scalar, Side, Uplo};

/// A device with a limited memory of its own.
#[derive(Debug)]
pub struct LoopDevice {
    facts: DeviceFacts,
}

/// The memory of a buffer as 64-bit words, whose alignment suits every element type.
#[derive(Debug)]
struct Words(Box<[UnsafeCell<u64>]>);

// SAFETY: the callers of the methods of `Device` guarantee that two commands never run at the same time if one of them writes
// elements of a buffer that the other reads or writes.
unsafe impl Sync for Words {}

impl LoopDevice {
    /// Creates the device `loops:index` with a memory of `memory` bytes.
    #[must_use]
    pub fn new(index: usize, memory: usize) -> Self {
        let mut facts = DeviceFacts::new(format!("loops:{index}"));
        facts.description = "plain loops".to_owned();
        facts.dtypes = vec![DType::F32, DType::F64];
        facts.memory = Some(memory);
        facts.rates.flops = 5e8;
        facts.rates.bandwidth = 1e9;
        LoopDevice { facts }
    }
}

impl Device for LoopDevice {
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        let (mut words, count) = (Vec::new(), bytes.div_ceil(8));
        if self.facts.memory.is_some_and(|memory| bytes > memory) || words.try_reserve_exact(count).is_err() {
            return Err(Error::new(ErrorKind::OutOfMemory, "alloc", format!("there are no {bytes} bytes")));
        }
        words.resize_with(count, || UnsafeCell::new(0));
        Ok(DeviceBuffer::new(Words(words.into())))
    }

    unsafe fn write(&self, from: HostRect, to: BufferRect<'_>) -> Result<()> {
        // SAFETY: the caller of `write` guarantees that the host rectangle may be read, that the buffer may be written, and that no
        // other command conflicts.
        unsafe { each_element(from, to, |host, own, bytes| own.copy_from_nonoverlapping(host, bytes)) };
        Ok(())
    }

    unsafe fn read(&self, from: BufferRect<'_>, to: HostRect) -> Result<()> {
        // SAFETY: the caller of `read` guarantees that the host rectangle may be written, that the buffer may be read, and that no
        // other command conflicts.
        unsafe { each_element(to, from, |host, own, bytes| host.copy_from_nonoverlapping(own, bytes)) };
        Ok(())
    }

    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        // SAFETY: the caller of `launch` guarantees that the operands may be read and written as the instruction requires, and that
        // no other command conflicts.
        unsafe {
            match instruction.dtype() {
                DType::F32 => run::<f32>(instruction),
                DType::F64 => run::<f64>(instruction),
                other => return Err(Error::new(ErrorKind::Unsupported, "launch", format!("no loops for {other}"))),
            }
        }
        Ok(())
    }
}

/// Calls `visit` for each element of a host rectangle, with three arguments: the element's address in the rectangle, its address in
/// the buffer, and its size in bytes. The buffer stores the rectangle column-major without gaps.
unsafe fn each_element(rect: HostRect, BufferRect { buffer, offset, ld }: BufferRect<'_>, visit: impl Fn(*mut u8, *mut u8, usize)) {
    let (own, size) = (buffer.get::<Words>().0.as_ptr().cast::<u8>().cast_mut(), rect.dtype.size());
    for j in 0..rect.cols {
        for i in 0..rect.rows {
            let host = rect.origin.wrapping_add((i * rect.row_stride + j * rect.col_stride) * size);
            visit(host, own.wrapping_add((offset + i + j * ld) * size), size);
        }
    }
}

/// An operand of an instruction, in the form of a matrix with elements of type `T`.
struct Matrix<T> {
    origin: *mut T,
    rows: usize,
    cols: usize,
    ld: usize,
}

impl<T: Copy> Matrix<T> {
    /// Converts an operand, whose elements must have type `T`, to a matrix.
    fn of(operand: Operand<'_>) -> Self {
        let Operand { memory, offset, rows, cols, ld, .. } = operand;
        let Memory::Buffer(buffer) = memory else { unreachable!("the device does not work on host memory") };
        let origin = buffer.get::<Words>().0.as_ptr().cast::<T>().cast_mut().wrapping_add(offset);
        Matrix { origin, rows, cols, ld }
    }

    fn get(&self, i: usize, j: usize) -> T {
        debug_assert!(i < self.rows && j < self.cols);
        // SAFETY: element (i, j) lies in the buffer of the operand, and the caller of `launch` guarantees that no command that
        // writes this element runs at the same time.
        unsafe { self.origin.add(i + j * self.ld).read() }
    }

    fn set(&self, i: usize, j: usize, x: T) {
        debug_assert!(i < self.rows && j < self.cols);
        // SAFETY: element (i, j) lies in the buffer of the operand, and the caller of `launch` guarantees that no other command
        // that uses this element runs at the same time.
        unsafe { self.origin.add(i + j * self.ld).write(x) }
    }

    fn swap(&self, one: (usize, usize), other: (usize, usize)) {
        let (x, y) = (self.get(one.0, one.1), self.get(other.0, other.1));
        self.set(one.0, one.1, y);
        self.set(other.0, other.1, x);
    }
}

/// Runs an instruction whose matrices have elements of type `T`.
///
/// # Safety
/// The caller must guarantee the contract of [`Device::launch`].
unsafe fn run<T: Scalar>(instruction: &Instruction<Operand<'_>>) {
    match *instruction {
        Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c } => {
            gemm::<T>(alpha.get(), (op_a, &Matrix::of(a)), (op_b, &Matrix::of(b)), beta.get(), &Matrix::of(c));
        }
        Instruction::Trsm { side, uplo, op, diag, alpha, a, b, .. } => {
            trsm::<T>((side, uplo, op, diag), alpha.get(), &Matrix::of(a), &Matrix::of(b));
        }
        Instruction::Getrf { pivoting, first_row, a, ipiv, info } => {
            getrf::<T>(pivoting, first_row, &Matrix::of(a), &Matrix::of(ipiv), &Matrix::of(info));
        }
        Instruction::Laswp { swaps, a, ipiv } => laswp::<T>(swaps, &Matrix::of(a), &Matrix::of(ipiv)),
        Instruction::Copy { a, b } => {
            let (a, b) = (Matrix::<T>::of(a), Matrix::of(b));
            each(&b, |i, j| a.get(i, j));
        }
        Instruction::Narrow { alpha, a, b } => {
            let (alpha, a, b) = (alpha.get::<f64>(), Matrix::<f64>::of(a), Matrix::of(b));
            each(&b, |i, j| f32::from_f64(alpha * a.get(i, j)));
        }
        Instruction::Scale { beta, c } => scale::<T>(beta.get(), &Matrix::of(c)),
        Instruction::GemmBatched { count, alpha, op_a, a, op_b, b, beta, c } => {
            for i in 0..count {
                let (a, b, c) = (matrix(a, count, i), matrix(b, count, i), matrix(c, count, i));
                gemm::<T>(alpha.get(), (op_a, &Matrix::of(a)), (op_b, &Matrix::of(b)), beta.get(), &Matrix::of(c));
            }
        }
        Instruction::GetrfBatched { count, pivoting, a, ipiv, info } => {
            for i in 0..count {
                let info = Matrix::of(piece(info, count, i));
                info.set(0, 0, 0);
                getrf::<T>(pivoting, 0, &Matrix::of(matrix(a, count, i)), &Matrix::of(piece(ipiv, count, i)), &info);
            }
        }
        Instruction::GetrsBatched { count, op, lu, ipiv, b } => {
            let swaps = Swaps { side: Side::Left, forward: !op.is_trans(), first_row: 0 };
            for i in 0..count {
                let (lu, b) = (Matrix::<T>::of(matrix(lu, count, i)), Matrix::of(matrix(b, count, i)));
                let exchange = || laswp(swaps, &b, &Matrix::of(piece(ipiv, count, i)));
                let lower = || trsm((Side::Left, Uplo::Lower, op, Diag::Unit), T::ONE, &lu, &b);
                let upper = || trsm((Side::Left, Uplo::Upper, op, Diag::NonUnit), T::ONE, &lu, &b);
                if op.is_trans() {
                    upper();
                    lower();
                    exchange();
                } else {
                    exchange();
                    lower();
                    upper();
                }
            }
        }
        Instruction::ZeroPivots { count, lu, info } => {
            for i in 0..count {
                let (lu, info) = (Matrix::<T>::of(matrix(lu, count, i)), Matrix::<i32>::of(piece(info, count, i)));
                let zero = (0..lu.rows).find(|&r| lu.get(r, r) == T::ZERO);
                info.set(0, 0, zero.map_or(0, |zero| i32::try_from(zero + 1).expect("few rows")));
            }
        }
    }
}

/// Matrix i of a batch of `count` matrices, which lie side by side in `all`.
fn matrix(all: Operand<'_>, count: usize, i: usize) -> Operand<'_> {
    let cols = all.cols / count;
    Operand { offset: all.offset + i * cols * all.ld, cols, ..all }
}

/// Part i of an operand with one column, which is divided into `count` equal parts.
fn piece(column: Operand<'_>, count: usize, i: usize) -> Operand<'_> {
    let rows = column.rows / count;
    Operand { offset: column.offset + i * rows, rows, ..column }
}

fn each<T: Copy>(c: &Matrix<T>, value: impl Fn(usize, usize) -> T) {
    (0..c.cols).for_each(|j| (0..c.rows).for_each(|i| c.set(i, j, value(i, j))));
}

/// Computes C ← β·C. For β = 0 the function does not read the elements of C.
fn scale<T: Scalar>(beta: T, c: &Matrix<T>) {
    each(c, |i, j| if beta == T::ZERO { T::ZERO } else { beta * c.get(i, j) });
}

/// Element (i, j) of op(A). The operation `ConjTrans` equals `Trans`, since the numbers are real.
fn at<T: Copy>((op, a): (Op, &Matrix<T>), i: usize, j: usize) -> T {
    if op.is_trans() { a.get(j, i) } else { a.get(i, j) }
}

/// Computes C ← α·op(A)·op(B) + β·C.
fn gemm<T: Scalar>(alpha: T, a: (Op, &Matrix<T>), b: (Op, &Matrix<T>), beta: T, c: &Matrix<T>) {
    let k = a.0.shape((a.1.rows, a.1.cols)).1;
    scale(beta, c);
    if alpha != T::ZERO && k > 0 {
        each(c, |i, j| c.get(i, j) + alpha * (0..k).map(|p| at(a, i, p) * at(b, p, j)).sum());
    }
}

/// Computes B ← α·op(A)⁻¹·B or B ← α·B·op(A)⁻¹, one unknown after the other.
fn trsm<T: Scalar>((side, uplo, op, diag): (Side, Uplo, Op, Diag), alpha: T, a: &Matrix<T>, b: &Matrix<T>) {
    scale(alpha, b);
    if alpha == T::ZERO {
        return;
    }
    let (n, left) = (a.rows, side == Side::Left);
    let is_forward = left == (uplo.under(op) == Uplo::Lower);
    // `place` is the position in B of unknown i of right-hand side r. `coefficient` is the coefficient of unknown k in equation i.
    let place = |i: usize, r: usize| if left { (i, r) } else { (r, i) };
    let coefficient = |i: usize, k: usize| if left { at((op, a), i, k) } else { at((op, a), k, i) };
    for r in 0..if left { b.cols } else { b.rows } {
        let unknown = |i: usize| b.get(place(i, r).0, place(i, r).1);
        for step in 0..n {
            let (i, solved): (usize, Range<usize>) = if is_forward { (step, 0..step) } else { (n - 1 - step, n - step..n) };
            let rest = solved.fold(unknown(i), |rest, k| rest - coefficient(i, k) * unknown(k));
            b.set(place(i, r).0, place(i, r).1, if diag == Diag::Unit { rest } else { rest / coefficient(i, i) });
        }
    }
}

/// Computes the LU factorisation P·A = L·U. If `info` is zero and a pivot is zero, `info` becomes the number of the first row with
/// a zero pivot, counted from 1.
fn getrf<T: Scalar>(pivoting: bool, first_row: usize, a: &Matrix<T>, ipiv: &Matrix<i32>, info: &Matrix<i32>) {
    let row = |row: usize| i32::try_from(row).expect("fewer than 2^31 rows");
    for i in 0..a.rows.min(a.cols) {
        let larger = |best: usize, r: usize| if a.get(r, i).abs() > a.get(best, i).abs() { r } else { best };
        let p = if pivoting { (i + 1..a.rows).fold(i, larger) } else { i };
        ipiv.set(i, 0, row(first_row + p));
        (0..a.cols).for_each(|j| a.swap((i, j), (p, j)));
        let pivot = a.get(i, i);
        if pivot != T::ZERO {
            (i + 1..a.rows).for_each(|r| a.set(r, i, a.get(r, i) / pivot));
        } else if info.get(0, 0) == 0 {
            info.set(0, 0, row(first_row + i + 1));
        }
        for j in i + 1..a.cols {
            (i + 1..a.rows).for_each(|r| a.set(r, j, a.get(r, j) - a.get(r, i) * a.get(i, j)));
        }
    }
}

/// Exchanges the rows or the columns of A in the order that `swaps` states. The indices are the pivots in `ipiv`.
fn laswp<T: Scalar>(swaps: Swaps, a: &Matrix<T>, ipiv: &Matrix<i32>) {
    for step in 0..ipiv.rows {
        let i = if swaps.forward { step } else { ipiv.rows - 1 - step };
        let p = usize::try_from(ipiv.get(i, 0)).expect("a row of the matrix") - swaps.first_row;
        match swaps.side {
            Side::Left => (0..a.cols).for_each(|j| a.swap((i, j), (p, j))),
            Side::Right => (0..a.rows).for_each(|r| a.swap((r, i), (r, p))),
        }
    }
}
