//! A single device as a subject: each routine uploads its operands, runs one or more instructions and downloads the result.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use lapidary_core::{
    BufferRect, Device, DeviceBuffer, Diag, Element, Gemm, Getrf, Getrs, HostRect, Instruction, Laswp, MatMut, MatRef, Operand,
    Result, Scalar, Side, Swaps, Trsm, Uplo,
};

use crate::Subject;

/// A subject that calls a device directly, without plans and engine. Each operand lies as a whole in the memory of the device.
#[derive(Debug)]
pub struct OnDevice<D>(pub D);

fn whole<E: Element>(buffer: &DeviceBuffer, (rows, cols): (usize, usize)) -> Operand<'_> {
    Operand::packed(buffer, rows, cols, E::DTYPE)
}

impl<D: Device> OnDevice<D> {
    fn upload<T: Element>(&self, view: &MatRef<'_, T>) -> Result<DeviceBuffer> {
        let buffer = self.0.alloc(view.rows() * view.cols() * size_of::<T>())?;
        if view.rows() * view.cols() > 0 {
            // SAFETY: the view borrows the matrix for reading. The buffer is new, has the size of the matrix, and no other command
            // uses it.
            unsafe { self.0.write(HostRect::whole(&view.raw()), BufferRect::packed(&buffer, view.rows()))? };
        }
        Ok(buffer)
    }

    fn download<T: Element>(&self, buffer: &DeviceBuffer, view: &MatMut<'_, T>) -> Result<()> {
        if view.rows() * view.cols() > 0 {
            // SAFETY: the view borrows the matrix exclusively, and the buffer has the size of the matrix. All instructions on `buffer`
            // have ended.
            unsafe { self.0.read(BufferRect::packed(buffer, view.rows()), HostRect::whole(&view.raw())) }
        } else {
            Ok(())
        }
    }

    fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        // SAFETY: the operands lie in buffers that the calling routine allocated, and the routine runs one command at a time.
        unsafe { self.0.launch(instruction) }
    }
}

impl<D: Device> Subject for OnDevice<D> {
    fn name(&self) -> String {
        self.0.facts().name.clone()
    }

    fn devices(&self, visit: &mut dyn FnMut(&dyn Device)) {
        visit(&self.0);
    }

    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let Gemm { alpha, op_a, a, op_b, b, beta, c } = args.check()?.into_inner();
        if c.rows() * c.cols() == 0 {
            return Ok(());
        }
        let [x, y, z] = [self.upload(&a)?, self.upload(&b)?, self.upload(&c.as_ref())?];
        let (a, b, shape) = (whole::<T>(&x, a.shape()), whole::<T>(&y, b.shape()), c.shape());
        self.launch(&Instruction::Gemm { alpha: alpha.into(), op_a, a, op_b, b, beta: beta.into(), c: whole::<T>(&z, shape) })?;
        self.download(&z, &c)
    }

    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let Trsm { mode, side, uplo, op, diag, alpha, a, b } = args.check()?.into_inner();
        if b.rows() * b.cols() == 0 {
            return Ok(());
        }
        let [x, y] = [self.upload(&a)?, self.upload(&b.as_ref())?];
        let (a, right) = (whole::<T>(&x, a.shape()), whole::<T>(&y, b.shape()));
        self.launch(&Instruction::Trsm { mode, side, uplo, op, diag, alpha: alpha.into(), a, b: right })?;
        self.download(&y, &b)
    }

    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        let Getrf { a, ipiv, pivoting, .. } = args.check()?.into_inner();
        let order = ipiv.len();
        if order == 0 {
            return Ok(0);
        }
        let mut told = [0_i32];
        let [pivots, info] = [self.upload(&MatRef::col_major(ipiv, order, 1)?)?, self.upload(&MatRef::col_major(&told, 1, 1)?)?];
        let x = self.upload(&a.as_ref())?;
        let (factors, ipiv_there, told_there) =
            (whole::<T>(&x, a.shape()), whole::<i32>(&pivots, (order, 1)), whole::<i32>(&info, (1, 1)));
        let instruction = Instruction::Getrf { pivoting, first_row: 0, a: factors, ipiv: ipiv_there, info: told_there };
        let (ipiv, told_here) = (MatMut::col_major(ipiv, order, 1)?, MatMut::col_major(&mut told, 1, 1)?);
        let reads = [(&x, a.raw()), (&pivots, ipiv.raw()), (&info, told_here.raw())];
        // SAFETY: the operands lie in buffers of this function, which runs one command at a time. The views borrow the host
        // matrices exclusively.
        unsafe { self.0.launch_and_read(&[instruction], &reads.map(|(from, to)| (from, HostRect::whole(&to))))? };
        Ok(usize::try_from(told[0]).expect("info counts rows"))
    }

    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        let Getrs { op, lu, ipiv, mut b, mode } = args.check()?.into_inner();
        let lower = |subject: &Self, b| subject.trsm(Trsm::new(lu, b).uplo(Uplo::Lower).diag(Diag::Unit).op(op).mode(mode));
        let upper = |subject: &Self, b| subject.trsm(Trsm::new(lu, b).uplo(Uplo::Upper).op(op).mode(mode));
        if op.is_trans() {
            upper(self, b.reborrow())?;
            lower(self, b.reborrow())?;
            self.laswp(Laswp::new(b, ipiv).backward())
        } else {
            self.laswp(Laswp::new(b.reborrow(), ipiv))?;
            lower(self, b.reborrow())?;
            upper(self, b)
        }
    }

    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        let Laswp { a, ipiv, forward } = args.check()?.into_inner();
        if a.rows() * a.cols() * ipiv.len() == 0 {
            return Ok(());
        }
        let [x, pivots] = [self.upload(&a.as_ref())?, self.upload(&MatRef::col_major(ipiv, ipiv.len(), 1)?)?];
        let swaps = Swaps { side: Side::Left, forward, first_row: 0 };
        let (moved, ipiv) = (whole::<T>(&x, a.shape()), whole::<i32>(&pivots, (ipiv.len(), 1)));
        self.launch(&Instruction::Laswp { swaps, a: moved, ipiv })?;
        self.download(&x, &a)
    }
}
