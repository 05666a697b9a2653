//! Futures of streams.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll};

use lapidary_core::{Element, Info, Result, StreamEnd};

use crate::host::HostVec;
use crate::stream::{Shared, Stream};

/// A future that completes when all calls that a stream had enqueued at its creation have completed or failed. Any executor may poll the
/// future, from any thread. If one of these calls failed, the future returns its error, and the stream accepts calls again.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited or waited for"]
pub struct Done {
    stream: Stream,
    end: StreamEnd,
}

impl Done {
    pub(super) fn new(stream: Stream, end: StreamEnd) -> Self {
        Done { stream, end }
    }

    /// Waits for the calls.
    ///
    /// # Errors
    /// A call failed, or the thread cannot wait, such as the thread of a browser's page.
    pub fn wait(self) -> Result<()> {
        self.wait_for_calls()?;
        self.stream.state.report(&self.end)
    }

    fn wait_for_calls(&self) -> Result<()> {
        self.stream.runtime().wait_for_stream(&self.stream.state, &self.end)
    }

    fn poll_calls(&mut self, context: &Context<'_>) -> Poll<()> {
        let Done { stream, end } = self;
        stream.runtime().poll_stream(&stream.state, end, context)
    }
}

impl Future for Done {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_calls(context).map(|()| self.stream.state.report(&self.end))
    }
}

impl IntoFuture for &Stream {
    type Output = Result<()>;
    type IntoFuture = Done;

    fn into_future(self) -> Done {
        self.done()
    }
}

/// A future of the elements that [`Stream::read`] copies, column-major without gaps. If this call or one before it failed, the future
/// returns the error, which the stream keeps until [`Stream::wait`] or [`Done`] returns it.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited or waited for"]
pub struct Reading<T> {
    done: Done,
    memory: Shared<T>,
}

impl<T: Element> Reading<T> {
    pub(super) fn new(done: Done, memory: Shared<T>) -> Self {
        Reading { done, memory }
    }

    /// Waits for the elements.
    ///
    /// # Errors
    /// The errors of [`Done::wait`].
    pub fn wait(self) -> Result<HostVec<T>> {
        self.done.wait_for_calls()?;
        self.take("Reading")
    }

    /// Takes the memory after the end of the calls. If a call failed, the device may still access the memory, which stays with the device.
    fn take(&self, future: &str) -> Result<HostVec<T>> {
        self.done.stream.state.outcome(&self.done.end)?;
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(memory.unwrap_or_else(|| panic!("`{future}` was polled after it had completed")))
    }

    /// Polls for the elements. `future` is the name of the future that the application polls.
    fn poll_elements(&mut self, future: &str, context: &Context<'_>) -> Poll<Result<HostVec<T>>> {
        self.done.poll_calls(context).map(|()| self.take(future))
    }
}

impl<T: Element> Future for Reading<T> {
    type Output = Result<HostVec<T>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_elements("Reading", context)
    }
}

/// A future of the pivots and the info of a factorisation, which [`Stream::read_pivots`] copies. Row `i` was exchanged with row
/// `ipiv[i]`; row indices count from 0.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited or waited for"]
pub struct ReadingPivots(Reading<i32>);

impl ReadingPivots {
    pub(super) fn new(column: Reading<i32>) -> Self {
        ReadingPivots(column)
    }

    /// Waits for the pivots.
    ///
    /// # Errors
    /// The errors of [`Done::wait`].
    pub fn wait(self) -> Result<(Vec<i32>, Info)> {
        self.0.wait().map(|column| split(&column))
    }
}

impl Future for ReadingPivots {
    type Output = Result<(Vec<i32>, Info)>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_elements("ReadingPivots", context).map(|column| column.map(|column| split(&column)))
    }
}

/// The pivots and the info of a column that begins with the info.
fn split(column: &[i32]) -> (Vec<i32>, Info) {
    let info = usize::try_from(column[0]).expect("info counts rows");
    (column[1..].to_vec(), Info::new(info))
}
