//! Measures the time that each stage of a device's first call takes.

use crate::clock::Instant;
use crate::device::{BufferRect, Device, DeviceBuffer, HostRect, Operand};
use crate::enums::Op;
use crate::error::{Error, ErrorKind, Result};
use crate::instruction::Instruction;
use crate::scalar::DType;
use crate::value::Value;

/// Order of the matrices in the product that [`Startup::first_product`] computes.
const N: usize = 64;

/// The number of seconds that each stage of a device's first call takes. The times show how long a user waits only if the process
/// has not used the device's driver before.
#[derive(Debug)]
pub struct Startup {
    stages: Vec<(&'static str, f64)>,
    last: Instant,
}

impl Default for Startup {
    fn default() -> Self {
        Startup { stages: Vec::new(), last: Instant::now() }
    }
}

impl Startup {
    /// Ends the current stage, records its time under the name `stage`, and starts the next stage.
    pub fn lap(&mut self, stage: &'static str) {
        self.stages.push((stage, self.last.elapsed().as_secs_f64()));
        self.last = Instant::now();
    }

    /// Computes one small product in single precision twice, and frees the memory of its matrices. Returns the name and the
    /// seconds of each stage.
    ///
    /// # Errors
    /// The device returns an error, or computes a wrong product.
    pub fn first_product(mut self, device: impl Device) -> Result<Vec<(&'static str, f64)>> {
        let buffers = (0..3).map(|_| device.alloc(N * N * size_of::<f32>())).collect::<Result<Vec<_>>>()?;
        self.lap("allocate");
        let mut host = vec![1.0_f32; N * N];
        let rect = HostRect::packed(&mut host, N);
        // SAFETY: only this function uses the host matrix and the buffers.
        unsafe { buffers[..2].iter().try_for_each(|buffer| device.write(rect, BufferRect::packed(buffer, rect.rows)))? };
        self.lap("write the operands");
        for stage in ["run", "run again"] {
            // SAFETY: only this function uses the buffers.
            unsafe { device.launch(&product(&buffers))? };
            self.lap(stage);
        }
        // SAFETY: only this function uses the host matrix and the buffers.
        unsafe { device.read(BufferRect::packed(&buffers[2], rect.rows), rect)? };
        self.lap("read the result");
        if host.iter().any(|&element| element != N as f32) {
            return Err(Error::new(ErrorKind::DeviceFailed, "startup", "the product of ones is wrong"));
        }
        drop((buffers, device));
        self.lap("release");
        Ok(self.stages)
    }
}

fn product(buffers: &[DeviceBuffer]) -> Instruction<Operand<'_>> {
    let operand = |i: usize| Operand::packed(&buffers[i], N, N, DType::F32);
    let (op_a, op_b, [alpha, beta]) = (Op::NoTrans, Op::NoTrans, [1.0, 0.0].map(Value::F32));
    Instruction::Gemm { alpha, op_a, a: operand(0), op_b, b: operand(1), beta, c: operand(2) }
}
