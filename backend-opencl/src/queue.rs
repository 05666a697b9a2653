//! In-order OpenCL queues, and waits for their events.

use std::ffi::c_void;
use std::ptr::{from_mut, null_mut};
use std::task::Poll;

use cl3::command_queue::{
    CL_QUEUE_PROFILING_ENABLE, create_command_queue, enqueue_barrier_with_wait_list, enqueue_marker_with_wait_list, finish, flush,
};
use cl3::error_codes::{CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_SUCCESS, DLOPEN_FUNCTION_NOT_AVAILABLE};
use cl3::event::{CL_COMPLETE, CL_EVENT_COMMAND_EXECUTION_STATUS, get_event_info, wait_for_events};
use cl3::kernel::set_kernel_arg;
use cl3::load_library;
use cl3::types::{cl_command_queue, cl_event};
use lapidary_core::Result;
use lapidary_kernels::Arg;

use crate::buffer::{Buffer, CommandQueue, Context, Event, Kernel};
use crate::conv::failed;
use crate::platform::Found;

/// Sets argument number `index` of a kernel. Sizes and strides are passed as 64-bit integers.
///
/// # Safety
/// The kernel declares this argument with the type of `arg`.
unsafe fn set(kernel: &Kernel, index: u32, arg: &Arg<'_, Buffer>) -> Result<()> {
    fn of<T>(value: &T) -> (usize, *const c_void) {
        (size_of::<T>(), std::ptr::from_ref(value).cast())
    }
    let give = |(size, value): (usize, *const c_void)| {
        // SAFETY: the value lives during the call; the caller guarantees that the kernel declares the argument with the type of the
        // value.
        unsafe { set_kernel_arg(kernel.0, index, size, value) }
    };
    let given = match arg {
        Arg::In(buffer) | Arg::Out(buffer) => give(of(&buffer.handle())),
        Arg::Image(buffer) => give(of(&buffer.image().expect("`can_read_image` has made the image"))),
        Arg::Size(value) => give(of(&(*value as u64))),
        Arg::Stride(value) => give(of(&(*value as i64))),
        Arg::F64(value) => give(of(value)),
        Arg::F32(value) => give(of(value)),
    };
    given.map_err(|code| failed("clSetKernelArg", code).with("argument", index))
}

/// An OpenCL queue whose commands run in order.
#[derive(Debug)]
pub(crate) struct Queue {
    queue: CommandQueue,
    /// Whether a launch returns an event, from which the times of the kernel can be read.
    is_timed: bool,
}

impl Queue {
    /// Creates a queue that records no times, because such records slow short kernels.
    pub fn new(context: &Context, found: &Found) -> Result<Self> {
        Self::create(context, found, false)
    }

    /// Creates a queue that records the times of kernels.
    pub fn timed(context: &Context, found: &Found) -> Result<Self> {
        Self::create(context, found, true)
    }

    fn create(context: &Context, found: &Found, is_timed: bool) -> Result<Self> {
        let properties = if is_timed { CL_QUEUE_PROFILING_ENABLE } else { 0 };
        // SAFETY: the context and the device are valid, and every device supports these properties.
        let queue = unsafe { create_command_queue(context.0, found.device, properties) };
        let queue = CommandQueue(queue.map_err(|code| failed("clCreateCommandQueue", code))?);
        Ok(Queue { queue, is_timed })
    }

    pub fn from_owned(queue: CommandQueue) -> Self {
        Queue { queue, is_timed: false }
    }

    pub fn handle(&self) -> cl_command_queue {
        self.queue.0
    }

    /// Makes all commands that are enqueued in this queue from now on wait for `events`, which belong to other queues. The caller
    /// must have flushed the other queues.
    pub fn wait_for(&self, events: &[&Event]) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        let events: Vec<cl_event> = events.iter().map(|event| event.0).collect();
        let count = u32::try_from(events.len()).expect("few queues");
        // SAFETY: the queue and the events are valid and live during the call.
        let event = unsafe { enqueue_barrier_with_wait_list(self.queue.0, count, events.as_ptr()) };
        event.map(|event| drop(Event(event))).map_err(|code| failed("clEnqueueBarrierWithWaitList", code))
    }

    /// Enqueues a marker and returns its event, which completes after all commands enqueued so far. If a kernel fails while it
    /// runs, the event reports the failure, whereas `clFinish` may return success.
    pub fn end(&self) -> Result<Event> {
        // SAFETY: the queue is valid, and the wait list is empty.
        let event = unsafe { enqueue_marker_with_wait_list(self.queue.0, 0, std::ptr::null()) };
        event.map(Event).map_err(|code| failed("clEnqueueMarkerWithWaitList", code))
    }

    /// Makes the driver submit all commands enqueued so far to the device.
    pub fn flush(&self) -> Result<()> {
        flush(self.queue.0).map_err(|code| failed("clFlush", code))
    }

    /// Blocks until all commands enqueued in this queue have completed.
    pub fn finish(&self) -> Result<()> {
        finish(self.queue.0).map_err(|code| failed("clFinish", code))
    }

    /// Enqueues a kernel over `width` × `height` work-items, rounded up to whole work-groups of the size `local`. Returns the event of
    /// the launch if the queue records times.
    ///
    /// # Safety
    /// `args` match the parameters of the kernel. With these arguments, the kernel accesses only memory that the caller may access.
    pub unsafe fn launch(
        &self,
        kernel: &Kernel,
        [width, height]: [usize; 2],
        local: [usize; 2],
        args: &[Arg<'_, Buffer>],
    ) -> Result<Option<Event>> {
        // SAFETY: the caller guarantees that the arguments match the parameters of the kernel.
        (0..).zip(args).try_for_each(|(index, arg)| unsafe { set(kernel, index, arg) })?;
        let global = [width.next_multiple_of(local[0]), height.next_multiple_of(local[1])];
        let (origin, no_events) = (std::ptr::null(), std::ptr::null());
        let mut event = null_mut();
        // the OpenCL function is called directly, because `cl3` requests an event for each kernel: the event takes a quarter
        // of the time of a launch (bench/results/opencl/2026-11-24-h100-waits.txt)
        let runtime = load_library().as_ref().expect("a queue comes from the loader");
        // `global` and `local` have the two dimensions that are passed, and live during the call; all arguments are set
        let code = runtime.clEnqueueNDRangeKernel(
            self.queue.0,
            kernel.0,
            2,
            origin,
            global.as_ptr(),
            local.as_ptr(),
            0,
            no_events,
            if self.is_timed { from_mut(&mut event) } else { null_mut() },
        );
        match code.unwrap_or(DLOPEN_FUNCTION_NOT_AVAILABLE) {
            CL_SUCCESS => Ok(self.is_timed.then(|| Event(event))),
            code => Err(failed("clEnqueueNDRangeKernel", code)),
        }
    }
}

/// Execution status of the command of an event: 0 if the command has completed, negative if it has failed.
fn status(event: &Event) -> Result<i32> {
    let status = get_event_info(event.0, CL_EVENT_COMMAND_EXECUTION_STATUS);
    status.map(cl3::info_type::InfoType::to_int).map_err(|code| failed("clGetEventInfo", code))
}

/// Blocks until the command of an event has ended. Returns an error if the command failed while it ran.
pub(crate) fn wait(event: &Event) -> Result<()> {
    wait_for_events(&[event.0]).map_err(|code| match code {
        // `CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST` only says that a command in the wait list failed; the execution status of
        // the event is the error code of the command
        CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST => {
            failed("command", status(event).ok().filter(|&status| status < 0).unwrap_or(code))
        }
        _ => failed("clWaitForEvents", code),
    })
}

/// The result of an event's command, or `Pending` before the command has ended. If the command has completed, `poll` also waits for
/// the event, because in OpenCL a query of the status does not synchronise memory. The wait for a completed event returns at once.
pub(crate) fn poll(event: &Event) -> Poll<Result<()>> {
    match status(event) {
        Ok(CL_COMPLETE) => Poll::Ready(wait(event)),
        Ok(status @ ..0) => Poll::Ready(Err(failed("command", status))),
        Ok(_) => Poll::Pending,
        // if the query of the status fails, the result of the command comes from a wait for its event
        Err(_) => Poll::Ready(wait(event)),
    }
}

#[cfg(test)]
mod tests {
    use cl3::error_codes::{CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES};
    use cl3::event::{create_user_event, set_user_event_status};
    use lapidary_core::ErrorKind;

    use super::*;
    use crate::program::tests::device;

    #[test]
    fn a_command_that_fails_while_it_runs_says_why() {
        let Some((_, context)) = device() else { return };
        for (code, kind) in
            [(CL_MEM_OBJECT_ALLOCATION_FAILURE, ErrorKind::OutOfMemory), (CL_OUT_OF_RESOURCES, ErrorKind::DeviceFailed)]
        {
            let event = Event(create_user_event(context.0).unwrap());
            set_user_event_status(event.0, code).unwrap();
            let Poll::Ready(Err(told)) = poll(&event) else { panic!("it has failed") };
            assert_eq!(told.kind(), kind, "{told}");
            let error = wait(&event).unwrap_err();
            assert!(error.kind() == kind && error.to_string().contains(&format!("({code})")), "{error}");
        }
    }
}
