//! Machines whose operands lie on a device while a routine runs.

use lapidary::{
    Batch, BatchMut, DType, DeviceMatrix, Gemm, GemmBatched, Getrf, GetrfBatched, Getrs, GetrsBatched, Info, Laswp, MatMut, MatRef,
    Result, Scalar, Trsm,
};
use lapidary_conformance::Subject;
use lapidary_conformance::report::Identity;

use crate::graded::Graded;

/// A machine that uploads the operands of each call to its fastest device.
pub struct Resident {
    graded: Graded,
    /// Whether result matrices with one column stay in host memory.
    columns_on_host: bool,
}

impl Resident {
    pub fn new(graded: Graded) -> Self {
        Resident { graded, columns_on_host: false }
    }
}

impl Resident {
    /// Returns the same machine, but result matrices with one column stay in host memory.
    pub fn with_columns_on_host(self) -> Self {
        Resident { columns_on_host: true, ..self }
    }

    fn up<T: Scalar>(&self, a: MatRef<'_, T>) -> Result<DeviceMatrix<T>> {
        self.graded.1.upload(a)
    }
}

/// Uploads a matrix, calls `run` on the resident matrix, and downloads the result.
fn through<T: Scalar, R>(machine: &Resident, to: MatMut<'_, T>, run: impl FnOnce(MatMut<'_, T>) -> Result<R>) -> Result<R> {
    if machine.columns_on_host && to.cols() == 1 {
        return run(to);
    }
    let mut moved = machine.up(to.as_ref())?;
    let answer = run(moved.view_mut())?;
    moved.download(to)?;
    Ok(answer)
}

impl Resident {
    /// Uploads the matrices of a batch side by side.
    fn up_batch<T: Scalar>(&self, batch: Batch<'_, T>) -> Result<DeviceMatrix<T>> {
        let (rows, cols) = batch.shape();
        let of_matrix = |i: usize| {
            let matrix = batch.get(i);
            (0..rows * cols).map(move |at| matrix.at(at % rows, at / rows))
        };
        let data: Vec<T> = (0..batch.count()).flat_map(of_matrix).collect();
        self.up(MatRef::col_major(&data, rows, cols * batch.count())?)
    }
}

/// Uploads a batch, calls `run` on the resident batch, and downloads the result.
fn through_batch<T: Scalar>(
    machine: &Resident,
    to: BatchMut<'_, T>,
    run: impl FnOnce(BatchMut<'_, T>) -> Result<()>,
) -> Result<()> {
    let (count, (rows, cols)) = (to.count(), to.shape());
    let mut moved = machine.up_batch(to.as_ref())?;
    run(BatchMut::from_columns(moved.view_mut(), count)?)?;
    let mut data = vec![T::ZERO; rows * cols * count];
    moved.download(MatMut::col_major(&mut data, rows, cols * count)?)?;
    let computed = Batch::col_major(&data, rows, cols, count)?;
    for (i, mut matrix) in to.into_matrices().enumerate() {
        (0..rows * cols).for_each(|at| matrix.set(at % rows, at / rows, computed.get(i).at(at % rows, at / rows)));
    }
    Ok(())
}

impl Subject for Resident {
    fn name(&self) -> String {
        let but = if self.columns_on_host { " but for columns" } else { "" };
        format!("{}, operands on the device{but}", self.graded.0)
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
        through(self, c, |c| self.graded.1.gemm(Gemm { alpha, op_a, a: a.view(), op_b, b: b.view(), beta, c }))
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let Trsm { side, uplo, op, diag, alpha, a, b, mode } = args.check()?.into_inner();
        let a = self.up(a)?;
        through(self, b, |b| self.graded.1.trsm(Trsm { side, uplo, op, diag, alpha, a: a.view(), b, mode }))
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        let Getrf { a, ipiv, pivoting, accuracy } = args.check()?.into_inner();
        through(self, a, |a| self.graded.1.getrf_into(Getrf { a, ipiv, pivoting, accuracy })).map(Info::get)
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        let Getrs { op, lu, ipiv, b, mode } = args.check()?.into_inner();
        let lu = self.up(lu)?;
        through(self, b, |b| self.graded.1.getrs(Getrs { op, lu: lu.view(), ipiv, b, mode }))
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        let Laswp { a, ipiv, forward } = args.check()?.into_inner();
        through(self, a, |a| self.graded.1.laswp(Laswp { a, ipiv, forward }))
    }
    fn gemm_batched<T: Scalar>(&self, args: GemmBatched<'_, T>) -> Result<()> {
        let GemmBatched { alpha, op_a, a, op_b, b, beta, c } = args.check()?.into_inner();
        let (left, right) = (self.up_batch(a)?, self.up_batch(b)?);
        let a = Batch::from_columns(left.view(), a.count())?;
        let b = Batch::from_columns(right.view(), b.count())?;
        through_batch(self, c, |c| self.graded.1.gemm_batched(GemmBatched { alpha, op_a, a, op_b, b, beta, c }))
    }
    fn getrf_batched<T: Scalar>(&self, args: GetrfBatched<'_, T>) -> Result<()> {
        let GetrfBatched { a, ipiv, info, pivoting } = args.check()?.into_inner();
        through_batch(self, a, |a| self.graded.1.getrf_batched(GetrfBatched { a, ipiv, info, pivoting }))
    }
    fn getrs_batched<T: Scalar>(&self, args: GetrsBatched<'_, T>) -> Result<()> {
        let GetrsBatched { op, lu, ipiv, b } = args.check()?.into_inner();
        let (factors, count) = (self.up_batch(lu)?, lu.count());
        let lu = Batch::from_columns(factors.view(), count)?;
        through_batch(self, b, |b| self.graded.1.getrs_batched(GetrsBatched { op, lu, ipiv, b }))
    }
}
