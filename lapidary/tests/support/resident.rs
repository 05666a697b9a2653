//! Machines whose operands lie on a device while a routine runs.

use lapidary::core::{DType, Getrf, Getrs, Laswp, Result, Scalar, Trsm};
use lapidary::{DeviceMatrix, Gemm, Info, MatMut, MatRef};
use lapidary_conformance::Subject;
use lapidary_conformance::report::Identity;

use crate::graded::Graded;

/// A machine that is given its operands on its first device.
pub struct Resident(pub Graded);

impl Resident {
    fn up<T: Scalar>(&self, a: MatRef<'_, T>) -> Result<DeviceMatrix<T>> {
        self.0.1.upload(a)
    }
}

/// Runs something on a matrix that lies on the device, and fetches what became of it.
fn through<T: Scalar, R>(machine: &Resident, to: MatMut<'_, T>, run: impl FnOnce(&mut DeviceMatrix<T>) -> Result<R>) -> Result<R> {
    let mut moved = machine.up(to.as_ref())?;
    let answer = run(&mut moved)?;
    moved.download(to)?;
    Ok(answer)
}

impl Subject for Resident {
    fn name(&self) -> String {
        format!("{}, operands on the device", self.0.0)
    }
    fn identity(&self) -> Identity {
        self.0.identity()
    }
    fn computes(&self, dtype: DType) -> bool {
        self.0.computes(dtype)
    }
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let Gemm { alpha, op_a, a, op_b, b, beta, c } = args.check()?.into_inner();
        let (a, b) = (self.up(a)?, self.up(b)?);
        through(self, c, |c| self.0.1.gemm(Gemm { alpha, op_a, a: a.view(), op_b, b: b.view(), beta, c: c.view_mut() }))
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let Trsm { side, uplo, op, diag, alpha, a, b, mode } = args.check()?.into_inner();
        let a = self.up(a)?;
        through(self, b, |b| self.0.1.trsm(Trsm { side, uplo, op, diag, alpha, a: a.view(), b: b.view_mut(), mode }))
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        let Getrf { a, ipiv, pivoting } = args.check()?.into_inner();
        through(self, a, |a| self.0.1.getrf_into(Getrf { a: a.view_mut(), ipiv, pivoting })).map(Info::get)
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        let Getrs { op, lu, ipiv, b } = args.check()?.into_inner();
        let lu = self.up(lu)?;
        through(self, b, |b| self.0.1.getrs(Getrs { op, lu: lu.view(), ipiv, b: b.view_mut() }))
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        let Laswp { a, ipiv, forward } = args.check()?.into_inner();
        through(self, a, |a| self.0.1.laswp(Laswp { a: a.view_mut(), ipiv, forward }))
    }
}
