//! The queue of streams, which is the only queue of the device.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Poll, Waker};

use lapidary_core::{HostElements, Pending, Result, StreamQueue, StreamWork, Token};

use crate::buffer::Buffer;
use crate::conv::view;
use crate::device::WgpuDevice;
use crate::host;
use crate::queue::{Ended, Queue, Submission, wait_for};

/// A copy from the device to host memory.
#[derive(Debug, Default)]
struct Read {
    end: Ended,
    /// Why wgpu did not map the staging memory.
    refused: OnceLock<String>,
}

/// The reads of streams that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Reads(Mutex<Vec<Arc<Read>>>);

impl Reads {
    fn add(&self, read: Arc<Read>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(read);
    }

    /// Returns all reads that no token has covered yet or that have not ended.
    fn take_pending(&self) -> Vec<Arc<Read>> {
        let mut reads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pending = reads.clone();
        reads.retain(|read| !read.end.is_reached());
        pending
    }
}

impl StreamQueue for WgpuDevice {
    unsafe fn enqueue(&self, work: StreamWork<'_>) -> Result<()> {
        match work {
            // SAFETY: the caller guarantees the contract of `StreamQueue::enqueue`.
            StreamWork::Run(instruction) => unsafe { self.kernels().collect(instruction.dtype(), &instruction.map(view)) },
            // SAFETY: the caller guarantees that the memory may be read.
            StreamWork::Write { from, to } => unsafe { self.write_in_stream(&from, to.get()) },
            StreamWork::Read { from, to } => self.read_in_stream(from.get(), to),
        }
    }

    fn end(&self) -> Result<Token> {
        let last = self.kernels().end_stream()?;
        let reads = self.reads().take_pending();
        Ok(last.map_or(Token::DONE, |submission| Token::new(Running { queue: Arc::clone(self.queue()), submission, reads })))
    }
}

impl WgpuDevice {
    /// Writes host memory to a buffer. wgpu copies the memory at once.
    unsafe fn write_in_stream(&self, from: &HostElements, to: &Buffer) -> Result<()> {
        let mut kernels = self.kernels();
        kernels.submit_stream()?;
        // SAFETY: the caller guarantees that the memory may be read.
        let bytes = unsafe { std::slice::from_raw_parts(from.start().cast_const(), from.bytes()) };
        let submission = self.queue().guarded("write", |device| {
            self.queue().write(&to.raw, bytes);
            // wgpu writes the buffer before the next submission, which may be the last one
            self.queue().submit(device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("write") }))
        })?;
        kernels.set_last(submission);
        Ok(())
    }

    /// Copies a buffer to staging memory, and from there to host memory as soon as wgpu has mapped the staging memory.
    fn read_in_stream(&self, from: &Buffer, to: HostElements) -> Result<()> {
        let mut kernels = self.kernels();
        kernels.submit_stream()?;
        let size = to.bytes() as u64;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label: Some("staging"), size, usage, mapped_at_creation: false };
        // this call of `guarded` only creates the buffer, so that its error tells whether memory is lacking
        let staging = self.queue().guarded("read", |device| device.create_buffer(&descriptor))?;
        let read = Arc::new(Read::default());
        let submission = self.queue().guarded("read", |device| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("read") });
            encoder.copy_buffer_to_buffer(&from.raw, 0, &staging, 0, size);
            let submission = self.queue().submit(encoder);
            let (mapped, told) = (staging.clone(), Arc::clone(&read));
            staging.map_async(wgpu::MapMode::Read, .., move |result| {
                // SAFETY: `to` keeps the memory allocated, and the caller of `enqueue` guarantees that nothing else accesses it before a
                // token reports the end of this read.
                let copied = result.map_err(|error| error.to_string()).and_then(|()| unsafe { copy_mapped(&mapped, &to) });
                if let Err(error) = copied {
                    let _ = told.refused.set(error);
                }
                told.end.set();
            });
            submission
        })?;
        kernels.set_last(submission);
        self.reads().add(read);
        Ok(())
    }
}

/// Copies mapped staging memory to host memory.
unsafe fn copy_mapped(mapped: &wgpu::Buffer, to: &HostElements) -> Result<(), String> {
    let range = mapped.get_mapped_range(..).map_err(|error| error.to_string())?;
    // SAFETY: the staging memory has the size of `to`, which the caller lets this function write.
    unsafe { range.as_ptr().copy_to_nonoverlapping(to.start(), to.bytes()) };
    Ok(())
}

/// Work of streams that has been submitted.
#[derive(Debug)]
struct Running {
    queue: Arc<Queue>,
    submission: Submission,
    reads: Vec<Arc<Read>>,
}

impl Pending for Running {
    fn poll(&self) -> Poll<Result<()>> {
        let Poll::Ready(result) = self.queue.outcome(&self.submission) else { return Poll::Pending };
        if let Err(error) = result {
            return Poll::Ready(Err(error));
        }
        if !self.reads.iter().all(|read| read.end.is_reached()) {
            return Poll::Pending;
        }
        let refused = self.reads.iter().find_map(|read| read.refused.get());
        Poll::Ready(refused.map_or(Ok(()), |reason| Err(self.queue.unmapped(reason))))
    }

    fn wait(&self) -> Result<()> {
        wait_for(|| self.poll())
    }

    /// Elsewhere than in a browser, callbacks run only while a thread polls the device. In a browser, the waker is registered with one end
    /// that is not yet reached. An end that is reached wakes at once, and a task that polls again at once would leave the browser no time
    /// to report the other ends.
    fn wake_on_end(&self, waker: &Waker) -> bool {
        if !host::MAY_WAIT {
            let mut ends = std::iter::once(&*self.submission.end).chain(self.reads.iter().map(|read| &read.end));
            ends.find(|end| !end.is_reached()).map_or_else(|| waker.wake_by_ref(), |end| end.wake_on_end(waker));
        }
        !host::MAY_WAIT
    }
}
