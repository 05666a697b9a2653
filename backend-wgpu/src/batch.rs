//! Repeats a product many times and waits only once, so that a benchmark measures the device alone.

use std::marker::PhantomData;
use std::time::Instant;

use lapidary_core::{Device, DeviceBuffer, HostRect, Instruction, Op, Operand, Result, Scalar};

use crate::device::WgpuDevice;

/// A product `C ← op(A)·op(B)` of order n on a device, which a benchmark repeats.
#[derive(Debug)]
pub struct Batch<'d, T> {
    device: &'d WgpuDevice,
    n: usize,
    ops: [Op; 2],
    /// Buffers of A, B and C.
    buffers: [DeviceBuffer; 3],
    scalar: PhantomData<T>,
}

impl<'d, T: Scalar> Batch<'d, T> {
    /// Copies the operands A and B of the product, which have n² elements each, to the device.
    ///
    /// # Errors
    /// Fails if the device has too little memory, or if a transfer fails.
    ///
    /// # Panics
    /// Panics if A or B does not have n² elements.
    pub fn new(device: &'d WgpuDevice, n: usize, ops: [Op; 2], [a, b]: [&[T]; 2]) -> Result<Self> {
        let upload = |data: &[T]| {
            assert_eq!(data.len(), n * n, "a factor of order {n}");
            let buffer = device.alloc(size_of_val(data))?;
            // SAFETY: the rectangle is the borrowed slice `data`, which `write` only reads. Nothing else uses the new buffer.
            unsafe { device.write(square(data.as_ptr().cast_mut(), n), &buffer)? };
            Ok(buffer)
        };
        let buffers = [upload(a)?, upload(b)?, device.alloc(n * n * size_of::<T>())?];
        Ok(Batch { device, n, ops, buffers, scalar: PhantomData })
    }

    /// Computes the product `times` times. Returns the seconds from the submission of the first product to the end of the last
    /// product.
    ///
    /// # Errors
    /// Fails if the device fails during the computation.
    pub fn seconds(&self, times: usize) -> Result<f64> {
        let (n, [op_a, op_b]) = (self.n, self.ops);
        let operand = |i: usize| Operand::packed(&self.buffers[i], n, n, T::DTYPE);
        let (alpha, beta) = (T::ONE.into(), T::ZERO.into());
        let product = Instruction::Gemm { alpha, op_a, a: operand(0), op_b, b: operand(1), beta, c: operand(2) };
        let start = Instant::now();
        // SAFETY: the buffers of A, B and C belong to `self` and have n² elements each. The only queue of the device runs all
        // work on these buffers in order, so that no two accesses conflict.
        unsafe { self.device.launch_times(&product, times)? };
        Ok(start.elapsed().as_secs_f64())
    }

    /// Copies the product C from the device to host memory.
    ///
    /// # Errors
    /// Fails if the transfer to host memory fails.
    pub fn result(&self) -> Result<Vec<T>> {
        let mut c = vec![T::ZERO; self.n * self.n];
        // SAFETY: the rectangle is the new vector `c`, which nothing else accesses.
        unsafe { self.device.read(&self.buffers[2], square(c.as_mut_ptr(), self.n))? };
        Ok(c)
    }
}

fn square<T: Scalar>(origin: *mut T, n: usize) -> HostRect {
    HostRect { origin: origin.cast(), dtype: T::DTYPE, row_stride: 1, col_stride: n, rows: n, cols: n }
}
