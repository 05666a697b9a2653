//! The queue of a wgpu device. Each wait for submitted commands has a time limit, and each failure is returned as an error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use lapidary_core::{Error, ErrorKind, Instant, Pending, Result, check_wait};

use crate::conv::caught_first;
use crate::host;
#[cfg(feature = "test-hooks")]
use crate::meter::Meter;
use crate::platform::largest_binding;

/// Maximum time of a wait for a submission. `PATIENCE` is long, because one instruction on a slow CPU may take minutes.
const PATIENCE: Duration = Duration::from_secs(600);

/// Time for which a wait polls the device without pauses.
const SPIN_TIME: Duration = Duration::from_micros(500);

/// Time for which [`Queue::check`] waits for its callback after the device has become idle. Another thread, which belongs to the
/// application, may be about to run the callback.
const CALLBACK_TIME: Duration = Duration::from_secs(1);

/// Maximum pause between two polls of the device.
const MAX_PAUSE: Duration = Duration::from_millis(5);

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Whether something has ended, and the tasks to wake then.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    is_reached: AtomicBool,
    wakers: Mutex<Vec<Waker>>,
}

impl Ended {
    pub fn is_reached(&self) -> bool {
        self.is_reached.load(Ordering::Acquire)
    }

    pub fn set(&self) {
        self.is_reached.store(true, Ordering::Release);
        // the lock is released first, because an executor may poll the task in `wake`
        let wakers = std::mem::take(&mut *self.wakers());
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Registers a waker to be woken at the end, or wakes it at once.
    pub fn wake_on_end(&self, waker: &Waker) {
        let mut wakers = self.wakers();
        if !self.is_reached() {
            if !wakers.iter().any(|other| other.will_wake(waker)) {
                wakers.push(waker.clone());
            }
            return;
        }
        // the lock is released first, because an executor may poll the task in `wake_by_ref`
        drop(wakers);
        waker.wake_by_ref();
    }

    fn wakers(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle to commands that have been submitted to the queue together.
#[derive(Clone, Debug)]
pub(crate) struct Submission {
    pub end: Arc<Ended>,
    since: Instant,
}

/// The first error that the browser has reported for calls whose error no outcome has returned yet. In a process the value stays
/// empty, since wgpu reports errors at once there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Refusal(Arc<Mutex<Option<Error>>>);

impl Refusal {
    /// Keeps `error`, unless an earlier error is kept.
    #[cfg(target_family = "wasm")]
    pub fn set(&self, error: Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    fn take(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A wgpu device and its queue. A device that is lost stays lost.
#[derive(Debug)]
pub(crate) struct Queue {
    device: wgpu::Device,
    queue: wgpu::Queue,
    lost: Arc<OnceLock<String>>,
    refusal: Refusal,
    /// Time at which this `Queue` was created.
    begin: Instant,
    /// Nanoseconds from `begin` to the time at which a submission last ended.
    last_end: Arc<AtomicU64>,
    /// Maximum time of a wait for a submission, in nanoseconds.
    patience: AtomicU64,
    /// Counter of the bytes that the buffers of the device occupy.
    #[cfg(feature = "test-hooks")]
    meter: Arc<Meter>,
}

/// Describes the loss of a device.
fn reason_of_loss(reason: wgpu::DeviceLostReason, message: &str) -> String {
    let cause = match reason {
        wgpu::DeviceLostReason::Destroyed => "the application has destroyed the device",
        wgpu::DeviceLostReason::Unknown => "the driver has reset or removed the device",
    };
    let detail = message.trim();
    if detail.is_empty() { cause.to_owned() } else { format!("{cause}: {detail}") }
}

impl Queue {
    pub fn new(device: wgpu::Device, queue: wgpu::Queue) -> Self {
        let lost = Arc::new(OnceLock::new());
        let told = Arc::clone(&lost);
        device.set_device_lost_callback(move |reason, message| {
            let _ = told.set(reason_of_loss(reason, &message));
        });
        let patience = AtomicU64::new(nanoseconds(PATIENCE));
        Queue {
            device,
            queue,
            lost,
            refusal: Refusal::default(),
            begin: Instant::now(),
            last_end: Arc::default(),
            patience,
            #[cfg(feature = "test-hooks")]
            meter: Arc::default(),
        }
    }

    /// Checks that the device is not lost and that the queue belongs to the device. If the queue belonged to another device, a
    /// submission would panic. The API of wgpu does not report to which device a queue belongs, but a poll of a device runs only
    /// the callbacks of the device's own queue. `check` therefore registers a callback with the queue and polls the device: if
    /// the device is idle and the callback has not run, the queue belongs to another device. In a browser, which runs callbacks by
    /// itself, `check` only checks that the device is not lost.
    ///
    /// # Errors
    /// Fails if the device is lost, or if the queue belongs to another device.
    pub fn check(&self) -> Result<()> {
        if !host::MAY_WAIT {
            return self.lost().map_or(Ok(()), Err);
        }
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
            if is_idle && idle_since.get_or_insert_with(Instant::now).elapsed() >= CALLBACK_TIME {
                let message = "device and queue do not belong together; pass the two that one `request_device` gave";
                return Err(Error::invalid("from_parts", message));
            }
            if start.elapsed() >= self.patience() {
                let _ = self.lost.set(format!("no answer within {:?}", self.patience()));
            }
            std::thread::sleep(MAX_PAUSE);
        }
    }

    /// Sets the maximum time of a wait for a submission.
    pub fn set_patience(&self, patience: Duration) {
        self.patience.store(nanoseconds(patience), Ordering::Relaxed);
    }

    fn patience(&self) -> Duration {
        Duration::from_nanos(self.patience.load(Ordering::Relaxed))
    }

    pub fn device(&self) -> &wgpu::Device {
        &self.device
    }

    /// Returns a text that names the adapter and its driver. Every key under which this backend stores data in the program cache
    /// contains the text.
    pub fn identity(&self) -> String {
        let info = self.device.adapter_info();
        let wgpu::AdapterInfo { name, driver, driver_info, backend, vendor, device, .. } = &info;
        format!("{backend} {vendor:x}:{device:x}\ndevice {name}\ndriver {driver} {driver_info}\n")
    }

    /// Returns the counter of the bytes that the buffers of the device occupy.
    #[cfg(feature = "test-hooks")]
    pub fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    /// Returns the size in bytes of the largest buffer that a kernel can address.
    pub fn largest_binding(&self) -> usize {
        largest_binding(&self.device.limits())
    }

    /// Returns an error with the reason for the loss if the device is lost.
    pub fn lost(&self) -> Option<Error> {
        self.lost.get().map(|reason| Error::new(ErrorKind::DeviceLost, "wgpu", reason.clone()))
    }

    /// Runs `call` within error scopes of wgpu. Returns the error that a scope catches, or otherwise the result of `call`. A browser
    /// reports the error later, and the next [outcome](Self::outcome) of a submission returns it.
    pub fn guarded<R>(&self, operation: &'static str, call: impl FnOnce(&wgpu::Device) -> R) -> Result<R> {
        if let Some(lost) = self.lost() {
            return Err(lost);
        }
        use wgpu::ErrorFilter::{Internal, OutOfMemory, Validation};
        let scopes = [OutOfMemory, Internal, Validation].into_iter().map(|filter| self.device.push_error_scope(filter)).collect();
        let result = call(&self.device);
        let first = caught_first(operation, &host::pop(operation, scopes, &self.refusal));
        if first.is_some() {
            // if the device is destroyed, wgpu may reject a new object of the device before wgpu reports the loss of the device
            self.poll();
        }
        match (self.lost(), first) {
            (Some(lost), _) => Err(lost),
            (None, Some(error)) => Err(error),
            (None, None) => Ok(result),
        }
    }

    /// Writes `bytes` to the beginning of `buffer`. wgpu executes the write before the next submission to the queue.
    pub fn write(&self, buffer: &wgpu::Buffer, bytes: &[u8]) {
        self.queue.write_buffer(buffer, 0, bytes);
    }

    /// Returns the number of nanoseconds that a timestamp of the device counts.
    pub fn timestamp_period(&self) -> f32 {
        self.queue.get_timestamp_period()
    }

    /// Submits the commands of `encoder` to the queue, and returns a handle to them.
    pub fn submit(&self, encoder: wgpu::CommandEncoder) -> Submission {
        self.queue.submit([encoder.finish()]);
        let (end, since) = (Arc::new(Ended::default()), Instant::now());
        let (told, last_end, begin) = (Arc::clone(&end), Arc::clone(&self.last_end), self.begin);
        host::when_done(&self.device, &self.queue, move || {
            last_end.store(nanoseconds(begin.elapsed()), Ordering::Relaxed);
            told.set();
        });
        Submission { end, since }
    }

    /// Polls the device, and returns whether `submission` has completed.
    pub fn is_done(&self, submission: &Submission) -> bool {
        self.poll();
        submission.end.is_reached()
    }

    /// Returns the result of `submission`, or `Poll::Pending` if it has not ended. If the maximum time of a wait passes during
    /// which no submission to the queue ends, the device counts as lost. If a browser has reported errors of calls, the result of a
    /// completed submission is the first of these errors.
    pub fn outcome(&self, submission: &Submission) -> Poll<Result<()>> {
        let done = self.is_done(submission);
        let last_end = self.begin + Duration::from_nanos(self.last_end.load(Ordering::Relaxed));
        if !done && last_end.max(submission.since).elapsed() >= self.patience() {
            let _ = self.lost.set(format!("no answer within {:?}", self.patience()));
        }
        match self.lost() {
            Some(lost) => Poll::Ready(Err(lost)),
            None if done => Poll::Ready(self.refusal.take().map_or(Ok(()), Err)),
            None => Poll::Pending,
        }
    }

    /// Waits until `submission` has completed.
    pub fn wait(&self, submission: &Submission) -> Result<()> {
        wait_for(|| self.outcome(submission))
    }

    /// Lets wgpu run the callbacks of completed submissions. If wgpu panics in this call, the device counts as lost.
    fn poll(&self) {
        self.poll_for(wgpu::PollType::Poll);
    }

    /// Lets wgpu run the callbacks of completed submissions. Returns whether the device has completed all submissions.
    fn is_idle(&self) -> bool {
        self.poll_for(wgpu::PollType::Wait { submission_index: None, timeout: Some(MAX_PAUSE) })
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

    /// Waits until `submission` has completed, and maps the first `bytes` bytes of `buffer`. `submission` must be the last
    /// submission that uses the buffer.
    pub fn map(&self, buffer: &wgpu::Buffer, mode: wgpu::MapMode, bytes: u64, submission: &Submission) -> Result<()> {
        let (tell, told) = sync_channel(1);
        buffer.map_async(mode, ..bytes, move |result| {
            let _ = tell.send(result);
        });
        self.wait(submission)?;
        let answer = told.recv_timeout(self.patience());
        // if the device is lost, wgpu does not map the buffer
        answer.map_err(|error| self.unmapped(&error))?.map_err(|error| self.unmapped(&error))
    }

    /// Returns the error for a buffer that could not be mapped: the loss of the device, or `error`.
    pub fn unmapped(&self, error: &dyn std::fmt::Display) -> Error {
        self.poll();
        self.lost().unwrap_or_else(|| Error::new(ErrorKind::DeviceFailed, "map", error.to_string()))
    }
}

/// Calls `poll`, which polls the device, until it returns an outcome: at first without pauses, then with pauses in proportion to the
/// elapsed time. The function does not use the blocking waits of wgpu, because these waits may end milliseconds late, and may fail if
/// several threads wait at the same time. In a browser, where a page must not wait, the function fails if there is no outcome yet.
pub(crate) fn wait_for(poll: impl Fn() -> Poll<Result<()>>) -> Result<()> {
    let start = Instant::now();
    loop {
        if let Poll::Ready(outcome) = poll() {
            return outcome;
        }
        check_wait("wait", host::MAY_WAIT)?;
        let waited = start.elapsed();
        if waited < SPIN_TIME {
            std::thread::yield_now();
        } else {
            std::thread::sleep((waited / 128).min(MAX_PAUSE));
        }
    }
}

/// An instruction that has been submitted to the queue.
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
