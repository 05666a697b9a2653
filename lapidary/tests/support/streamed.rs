//! Machines whose routines run in a stream.

use lapidary::{DType, DeviceMatrix, DevicePivots, Gemm, Getrf, Getrs, Laswp, MatMut, MatRef, Result, Scalar, Stream, Trsm};
use lapidary_conformance::Subject;
use lapidary_conformance::report::Identity;

use crate::graded::Graded;

/// The first device of a machine, which runs every call in a stream. The operands are written and the results read by the stream, too.
pub struct Streamed {
    graded: Graded,
    stream: Stream,
}

impl Streamed {
    pub fn new(graded: Graded) -> Self {
        let stream = graded.1.stream(0).unwrap();
        Streamed { graded, stream }
    }

    /// Enqueues the copy of a host matrix to a new matrix of the device.
    fn up<T: Scalar>(&self, a: MatRef<'_, T>) -> Result<DeviceMatrix<T>> {
        let (rows, cols) = a.shape();
        let mut there = self.graded.1.zeros_on(0, rows, cols)?;
        // a matrix without rows may have any number of columns
        let data: Vec<T> = (0..rows * cols).map(|at| a.at(at % rows, at / rows)).collect();
        self.stream.write(data, &mut there)?;
        Ok(there)
    }

    /// Enqueues the copy of pivots to the device.
    fn pivots(&self, ipiv: &[i32], rows: usize) -> Result<DevicePivots> {
        let mut pivots = self.graded.1.pivots_on(0, ipiv.len())?;
        self.stream.write_pivots(ipiv, rows, &mut pivots)?;
        Ok(pivots)
    }

    /// Copies a matrix to the device, enqueues `run` and the copy back, and waits once.
    fn through<T: Scalar, R>(&self, mut to: MatMut<'_, T>, run: impl FnOnce(MatMut<'_, T>) -> Result<R>) -> Result<R> {
        let mut there = self.up(to.as_ref())?;
        let answer = run(there.view_mut())?;
        let read = self.stream.read(&there)?;
        // the memory of the matrix lives until the device has run the calls
        drop(there);
        let (rows, read) = (to.rows(), read.wait()?);
        (0..read.len()).for_each(|at| to.set(at % rows, at / rows, read[at]));
        Ok(answer)
    }
}

impl Subject for Streamed {
    fn name(&self) -> String {
        format!("{}, in a stream", self.graded.0)
    }
    fn identity(&self) -> Identity {
        self.graded.identity()
    }
    fn computes(&self, dtype: DType) -> bool {
        self.graded.computes(dtype)
    }
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let Gemm { alpha, op_a, a, op_b, b, beta, c } = args.check()?.into_inner();
        let (a, b) = (self.up(a)?, self.up(b)?);
        self.through(c, |c| self.stream.gemm(Gemm { alpha, op_a, a: a.view(), op_b, b: b.view(), beta, c }))
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let Trsm { side, uplo, op, diag, alpha, a, b, mode } = args.check()?.into_inner();
        let a = self.up(a)?;
        self.through(b, |b| self.stream.trsm(Trsm { side, uplo, op, diag, alpha, a: a.view(), b, mode }))
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        let Getrf { a, ipiv, pivoting, accuracy } = args.check()?.into_inner();
        if !pivoting {
            // streams always exchange rows
            return self.graded.getrf(Getrf { a, ipiv, pivoting, accuracy });
        }
        let pivots = self.through(a, |a| self.stream.getrf(a))?;
        let (computed, info) = self.stream.read_pivots(&pivots)?.wait()?;
        ipiv.copy_from_slice(&computed);
        Ok(info.get())
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        let Getrs { op, lu, ipiv, b, mode } = args.check()?.into_inner();
        if lu.diagonal().cols() > 0 && (0..lu.cols()).any(|i| lu.at(i, i) == T::ZERO) {
            // streams do not look for pivots that are zero
            return self.graded.getrs(Getrs { op, lu, ipiv, b, mode });
        }
        let (pivots, lu) = (self.pivots(ipiv, lu.rows())?, self.up(lu)?);
        self.through(b, |b| self.stream.getrs(op, lu.view(), &pivots, b))
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        let Laswp { a, ipiv, forward } = args.check()?.into_inner();
        let pivots = self.pivots(ipiv, a.rows())?;
        self.through(a, |a| self.stream.laswp(a, &pivots, forward))
    }
}
