//! Where the time of a first call goes, stage by stage.

use std::sync::Arc;
use std::time::Instant;

use lapidary_core::{Device, Error, ErrorKind, HostRect, Instruction, Memory, Op, Operand, ProgramCache, Result};

use crate::buffer::Buffer;
use crate::context::SharedContext;
use crate::device::OpenClDevice;
use crate::platform::list;

/// Order of the product that is run.
const N: usize = 64;

/// Opens the device of that number, runs one small product in single precision,
/// runs it again and gives everything back: the seconds of each stage. Only the
/// first use of the driver in a process tells what a user waits for.
///
/// # Errors
/// There is no such device, or the driver refuses.
pub fn startup(index: usize, cache: Arc<ProgramCache>) -> Result<Vec<(&'static str, f64)>> {
    let mut stages = Vec::new();
    let mut last = Instant::now();
    let mut lap = |name| {
        stages.push((name, last.elapsed().as_secs_f64()));
        last = Instant::now();
    };
    let listing = list();
    let found = listing.device(index, "startup")?;
    lap("load the drivers, list devices");
    let context = SharedContext::new(&found, &[found.handle()])?;
    lap("create the context");
    let device = OpenClDevice::in_context(found, index, None, cache, context)?;
    lap("create the queues");
    device.kernels().prepare_program()?;
    lap("compile or load the program");
    device.kernels().prepare_kernel()?;
    lap("create the kernel");
    let buffers = (0..3).map(|_| device.alloc(N * N * size_of::<f32>())).collect::<Result<Vec<_>>>()?;
    lap("allocate");
    let mut host = vec![1.0_f32; N * N];
    let rect = HostRect { origin: host.as_mut_ptr(), row_stride: 1, col_stride: N, rows: N, cols: N };
    // SAFETY: the host's matrix and the buffers are ours alone.
    unsafe { buffers[..2].iter().try_for_each(|buffer| device.write(rect, buffer))? };
    lap("write the operands");
    for name in ["run", "run again"] {
        // SAFETY: as above.
        unsafe { device.launch(&product(&buffers))? };
        lap(name);
    }
    // SAFETY: as above.
    unsafe { device.read(&buffers[2], rect)? };
    lap("read the result");
    if host.iter().any(|&element| element != N as f32) {
        return Err(Error::new(ErrorKind::DeviceFailed, "startup", "the product of ones is wrong"));
    }
    drop((buffers, device));
    lap("release");
    Ok(stages)
}

fn product(buffers: &[Buffer]) -> Instruction<f32, Operand<'_, Buffer>> {
    let operand = |i: usize| Operand { memory: Memory::Buffer(&buffers[i]), offset: 0, rows: N, cols: N, ld: N };
    Instruction::Gemm { alpha: 1.0, op_a: Op::NoTrans, a: operand(0), op_b: Op::NoTrans, b: operand(1), beta: 0.0, c: operand(2) }
}
