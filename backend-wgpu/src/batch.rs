//! Products repeated in one submission, so that a benchmark sees the device alone.

use std::marker::PhantomData;
use std::time::Instant;

use lapidary_core::{Device, DeviceBuffer, HostRect, Instruction, Op, Operand, Result, Scalar};

use crate::device::WgpuDevice;

/// C ← op(A)·op(B) of order n on a device.
#[derive(Debug)]
pub struct Batch<'d, T> {
    device: &'d WgpuDevice,
    n: usize,
    ops: [Op; 2],
    /// A, B, C.
    buffers: [DeviceBuffer; 3],
    scalar: PhantomData<T>,
}

impl<'d, T: Scalar> Batch<'d, T> {
    /// Copies the factors, of n² elements each, to the device.
    ///
    /// # Errors
    /// The device has no memory left, or the transfer failed.
    ///
    /// # Panics
    /// A factor has another size.
    pub fn new(device: &'d WgpuDevice, n: usize, ops: [Op; 2], [a, b]: [&[T]; 2]) -> Result<Self> {
        let upload = |data: &[T]| {
            assert_eq!(data.len(), n * n, "a factor of order {n}");
            let buffer = device.alloc(size_of_val(data))?;
            // SAFETY: the rectangle is read only; the buffer is new.
            unsafe { device.write(square(data.as_ptr().cast_mut(), n), &buffer)? };
            Ok(buffer)
        };
        let buffers = [upload(a)?, upload(b)?, device.alloc(n * n * size_of::<T>())?];
        Ok(Batch { device, n, ops, buffers, scalar: PhantomData })
    }

    /// Seconds of that many products, from their submission until the last one is done.
    ///
    /// # Errors
    /// The device failed.
    pub fn seconds(&self, times: usize) -> Result<f64> {
        let (n, [op_a, op_b]) = (self.n, self.ops);
        let operand = |i: usize| Operand::packed(&self.buffers[i], n, n, T::DTYPE);
        let (alpha, beta) = (T::ONE.into(), T::ZERO.into());
        let product = Instruction::Gemm { alpha, op_a, a: operand(0), op_b, b: operand(1), beta, c: operand(2) };
        let start = Instant::now();
        // SAFETY: the buffers are ours and hold the operands.
        unsafe { self.device.launch_times(&product, times)? };
        Ok(start.elapsed().as_secs_f64())
    }

    /// The product.
    ///
    /// # Errors
    /// The transfer failed.
    pub fn result(&self) -> Result<Vec<T>> {
        let mut c = vec![T::ZERO; self.n * self.n];
        // SAFETY: the rectangle is ours.
        unsafe { self.device.read(&self.buffers[2], square(c.as_mut_ptr(), self.n))? };
        Ok(c)
    }
}

fn square<T: Scalar>(origin: *mut T, n: usize) -> HostRect {
    HostRect { origin: origin.cast(), dtype: T::DTYPE, row_stride: 1, col_stride: n, rows: n, cols: n }
}
