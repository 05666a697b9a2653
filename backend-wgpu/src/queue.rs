//! The only queue of a device: submissions, waits with a time limit, errors as values.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::{Duration, Instant};

use lapidary_core::{Error, ErrorKind, Pending, Result};

use crate::buffer::Meter;
use crate::conv::caught;
use crate::platform::largest_binding;

/// Longest wait for a submission. One instruction on a slow processor may take minutes.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long a wait polls without a pause.
const AWAKE: Duration = Duration::from_micros(500);

/// How long [`Queue::check`] waits for the callback of an idle device: a thread of the application may be about to run
/// the callback.
const GRACE: Duration = Duration::from_secs(1);

/// Longest pause between two polls.
const DOZE: Duration = Duration::from_millis(5);

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Commands on their way.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    done: Arc<AtomicBool>,
    since: Instant,
}

/// A device with its queue. Once lost it stays so.
#[derive(Debug)]
pub(crate) struct Queue {
    device: wgpu::Device,
    queue: wgpu::Queue,
    lost: Arc<OnceLock<String>>,
    /// When it was made.
    begin: Instant,
    /// Nanoseconds from then to the last end of a submission.
    last_end: Arc<AtomicU64>,
    /// Nanoseconds that a wait may take.
    patience: AtomicU64,
    /// Bytes of the device's buffers.
    meter: Arc<Meter>,
}

impl Queue {
    pub fn new(device: wgpu::Device, queue: wgpu::Queue) -> Self {
        let lost = Arc::new(OnceLock::new());
        let told = Arc::clone(&lost);
        device.set_device_lost_callback(move |reason, message| {
            let _ = told.set(format!("{reason:?}: {message}"));
        });
        let patience = AtomicU64::new(nanoseconds(PATIENCE));
        Queue { device, queue, lost, begin: Instant::now(), last_end: Arc::default(), patience, meter: Arc::default() }
    }

    /// Refuses a lost device, and a queue of another device, with which the first submission would panic. wgpu does not report
    /// to which device a queue belongs. But polling a device runs the callbacks of its own queue only. If the device is idle
    /// and has not run the callback of `queue`, the queue belongs to another device.
    ///
    /// # Errors
    /// The device is gone, or the queue is another device's.
    pub fn check(&self) -> Result<()> {
        let told = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&told);
        self.queue.on_submitted_work_done(move || tell.store(true, Ordering::Release));
        let (start, mut idle_since) = (Instant::now(), None);
        loop {
            let is_idle = self.is_idle();
            if let Some(lost) = self.lost() {
                return Err(lost);
            }
            if told.load(Ordering::Acquire) {
                return Ok(());
            }
            if is_idle && idle_since.get_or_insert_with(Instant::now).elapsed() >= GRACE {
                let message = "device and queue do not belong together; pass the two that one `request_device` gave";
                return Err(Error::invalid("from_parts", message));
            }
            if start.elapsed() >= self.patience() {
                let _ = self.lost.set(format!("no answer within {:?}", self.patience()));
            }
            std::thread::sleep(DOZE);
        }
    }

    /// The longest wait from now on.
    pub fn set_patience(&self, patience: Duration) {
        self.patience.store(nanoseconds(patience), Ordering::Relaxed);
    }

    fn patience(&self) -> Duration {
        Duration::from_nanos(self.patience.load(Ordering::Relaxed))
    }

    pub fn device(&self) -> &wgpu::Device {
        &self.device
    }

    /// The adapter and its driver as text, the first lines of every cache key.
    pub fn identity(&self) -> String {
        let info = self.device.adapter_info();
        let wgpu::AdapterInfo { name, driver, driver_info, backend, vendor, device, .. } = &info;
        format!("{backend} {vendor:x}:{device:x}\ndevice {name}\ndriver {driver} {driver_info}\n")
    }

    /// Bytes of the device's buffers.
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Bytes of the largest buffer that a kernel reaches.
    pub fn largest_binding(&self) -> usize {
        largest_binding(&self.device.limits())
    }

    /// Why the device is gone, if it is.
    pub fn lost(&self) -> Option<Error> {
        self.lost.get().map(|reason| Error::new(ErrorKind::DeviceLost, "wgpu", reason.clone()))
    }

    /// Calls wgpu within error scopes. Returns the error that the scopes catch, if any.
    pub fn guarded<R>(&self, operation: &'static str, call: impl FnOnce(&wgpu::Device) -> R) -> Result<R> {
        if let Some(lost) = self.lost() {
            return Err(lost);
        }
        use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
        let scopes = [OutOfMemory, Internal, Validation].map(|filter| self.device.push_error_scope(filter));
        let result = call(&self.device);
        // the last one pushed is the first one popped; its answer is there at once
        let errors: Vec<wgpu::Error> = scopes.into_iter().rev().filter_map(|scope| pollster::block_on(scope.pop())).collect();
        // a full device may break what is built on the memory that it refused
        let first = errors.iter().max_by_key(|error| matches!(error, wgpu::Error::OutOfMemory { .. }));
        if first.is_some() {
            // wgpu may refuse an object of a destroyed device before it reports the loss
            self.poll();
        }
        match (self.lost(), first) {
            (Some(lost), _) => Err(lost),
            (None, Some(error)) => Err(caught(operation, error)),
            (None, None) => Ok(result),
        }
    }

    /// Writes into a buffer before the next submission runs.
    pub fn write(&self, buffer: &wgpu::Buffer, bytes: &[u8]) {
        self.queue.write_buffer(buffer, 0, bytes);
    }

    /// Submits commands.
    pub fn submit(&self, encoder: wgpu::CommandEncoder) -> Submission {
        self.queue.submit([encoder.finish()]);
        let (done, since) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let (told, last_end, begin) = (Arc::clone(&done), Arc::clone(&self.last_end), self.begin);
        self.queue.on_submitted_work_done(move || {
            last_end.store(nanoseconds(begin.elapsed()), Ordering::Relaxed);
            told.store(true, Ordering::Release);
        });
        Submission { done, since }
    }

    /// Whether a submission is done.
    pub fn is_done(&self, submission: &Submission) -> bool {
        self.poll();
        submission.done.load(Ordering::Acquire)
    }

    /// How a submission ended, if it has. A device that has ended none for too long counts as lost.
    pub fn outcome(&self, submission: &Submission) -> Poll<Result<()>> {
        let done = self.is_done(submission);
        let last_end = self.begin + Duration::from_nanos(self.last_end.load(Ordering::Relaxed));
        if !done && last_end.max(submission.since).elapsed() >= self.patience() {
            let _ = self.lost.set(format!("no answer within {:?}", self.patience()));
        }
        match self.lost() {
            Some(lost) => Poll::Ready(Err(lost)),
            None if done => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    }

    /// Waits until a submission is done: looks again and again, at first at once, then
    /// after a part of the time that has passed. Waits inside of drivers may end late by
    /// milliseconds, and those of wgpu may fail when several threads wait.
    pub fn wait(&self, submission: &Submission) -> Result<()> {
        let start = Instant::now();
        loop {
            if let Poll::Ready(outcome) = self.outcome(submission) {
                return outcome;
            }
            let waited = start.elapsed();
            if waited < AWAKE {
                std::thread::yield_now();
            } else {
                std::thread::sleep((waited / 128).min(DOZE));
            }
        }
    }

    /// Lets wgpu see what has ended. It panics if the device is gone.
    fn poll(&self) {
        self.poll_for(wgpu::PollType::Poll);
    }

    /// Lets wgpu see what has ended; whether that is all that the device was given so far.
    fn is_idle(&self) -> bool {
        self.poll_for(wgpu::PollType::Wait { submission_index: None, timeout: Some(DOZE) })
    }

    fn poll_for(&self, what: wgpu::PollType) -> bool {
        match catch_unwind(AssertUnwindSafe(|| self.device.poll(what))) {
            Ok(status) => status.is_ok_and(|status| status.wait_finished()),
            Err(_) => {
                let _ = self.lost.set("the device is gone".to_owned());
                false
            }
        }
    }

    /// Maps memory that the submission is the last one to use.
    pub fn map(&self, buffer: &wgpu::Buffer, mode: wgpu::MapMode, bytes: u64, submission: &Submission) -> Result<()> {
        let (tell, told) = sync_channel(1);
        buffer.map_async(mode, ..bytes, move |result| {
            let _ = tell.send(result);
        });
        self.wait(submission)?;
        let answer = told.recv_timeout(self.patience());
        // memory of a device that is gone is not mapped
        answer.map_err(|error| self.unmapped(&error))?.map_err(|error| self.unmapped(&error))
    }

    /// Why memory is not mapped.
    pub fn unmapped(&self, error: &dyn std::fmt::Display) -> Error {
        self.poll();
        self.lost().unwrap_or_else(|| Error::new(ErrorKind::DeviceFailed, "map", error.to_string()))
    }
}

/// An instruction on its way.
#[derive(Debug)]
pub(crate) struct Running {
    pub queue: Arc<Queue>,
    pub submission: Submission,
    pub instruction: &'static str,
}

impl Pending for Running {
    fn poll(&self) -> Poll<Result<()>> {
        self.queue.outcome(&self.submission).map_err(|error| error.with("instruction", self.instruction))
    }

    fn wait(&self) -> Result<()> {
        self.queue.wait(&self.submission).map_err(|error| error.with("instruction", self.instruction))
    }
}
