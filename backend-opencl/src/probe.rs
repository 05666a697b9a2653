//! Whether a device has instructions that are no part of OpenCL C. The answer comes from a run of the instructions.

use cl3::command_queue::{enqueue_read_buffer, enqueue_write_buffer};
use cl3::types::CL_BLOCKING;
use lapidary_core::{DType, Result, Scalar};
use lapidary_kernels::{Arg, Program, probe_product};

use crate::buffer::{Buffer, Context, Event, Kernel};
use crate::conv::failed;
use crate::queue::Queue;

/// Runs the kernel `mma_probe` and returns whether its result is right.
pub(crate) fn is_right(context: &Context, queue: &Queue, program: &Program, kernel: &Kernel) -> Result<bool> {
    match program.dtype() {
        DType::F64 => is_right_in::<f64>(context, queue, program, kernel),
        DType::F32 | DType::I32 => is_right_in::<f32>(context, queue, program, kernel),
    }
}

fn is_right_in<T: Scalar>(context: &Context, queue: &Queue, program: &Program, kernel: &Kernel) -> Result<bool> {
    let Program::MmaProbe { unit, .. } = *program else { unreachable!("only this program is a probe") };
    let (x, expected) = probe_product(unit);
    let [x, expected] = [x, expected].map(|numbers| numbers.into_iter().map(T::from_f64).collect::<Vec<T>>());
    let mut y = vec![T::from_f64(f64::NAN); expected.len()];
    let bytes = size_of_val::<[T]>;
    let [input, output] = [Buffer::new(context, bytes(&x))?, Buffer::new(context, bytes(&y))?];
    let (no_events, from, to) = (std::ptr::null(), x.as_ptr().cast(), y.as_mut_ptr().cast());
    // SAFETY: the buffers have the sizes of `x` and `y`. The transfers block, so that they end before `x` and `y` are dropped. The kernel
    // reads as many elements as `x` has, and writes as many as `y` has.
    unsafe {
        let written = enqueue_write_buffer(queue.handle(), input.handle(), CL_BLOCKING, 0, bytes(&x), from, 0, no_events);
        drop(Event(written.map_err(|code| failed("clEnqueueWriteBuffer", code))?));
        queue.launch(kernel, program.local(), program.local(), &[Arg::In(&input), Arg::Out(&output)])?;
        let read = enqueue_read_buffer(queue.handle(), output.handle(), CL_BLOCKING, 0, bytes(&y), to, 0, no_events);
        drop(Event(read.map_err(|code| failed("clEnqueueReadBuffer", code))?));
    }
    Ok(y == expected)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use cl3::command_queue::{CL_QUEUE_REFERENCE_COUNT, get_command_queue_info};
    use lapidary_core::ProgramCache;

    use super::*;
    use crate::program::Programs;
    use crate::program::tests::device;

    /// Runs the kernel with the instructions replaced by their definition, in both precisions.
    #[test]
    fn a_device_passes_by_the_right_result() {
        let Some((found, context)) = device() else { return };
        if !found.facts.computes(DType::F64) {
            return;
        }
        let (queue, mut programs) = (Queue::new(&context, &found).unwrap(), Programs::new(Arc::new(ProgramCache::new(None))));
        for (dtype, unit) in [(DType::F32, 1), (DType::F32, 16), (DType::F64, 8)] {
            let program = Program::MmaProbe { dtype, unit, ptx: false };
            let kernel = programs.kernel(&context, &found, &program, "mma_probe").unwrap();
            let references = || get_command_queue_info(queue.handle(), CL_QUEUE_REFERENCE_COUNT).unwrap().to_uint();
            let before = references();
            assert!(is_right(&context, &queue, &program, kernel).unwrap(), "{dtype}");
            // An event that is not released keeps the queue and its context, and on a GPU half a gigabyte of memory. The driver releases its own
            // references a little later.
            let deadline = Instant::now() + Duration::from_secs(10);
            while references() != before {
                assert!(Instant::now() < deadline, "events that refer to the queue are left");
                std::thread::yield_now();
            }
        }
    }
}
