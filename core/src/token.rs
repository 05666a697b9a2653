//! Tokens: handles to work that was submitted to a device.

use std::any::Any;
use std::fmt;
use std::task::{Poll, Waker};

use crate::error::Result;

/// Work that was submitted to a device, in the representation of the device's backend.
pub trait Pending: Any + fmt::Debug + Send + Sync {
    /// The result of the submitted work, or `Poll::Pending` if the work has not ended. The method `poll` never waits.
    fn poll(&self) -> Poll<Result<()>>;

    /// Waits until the submitted work has ended.
    ///
    /// # Errors
    /// Fails if the submitted work failed.
    fn wait(&self) -> Result<()>;

    /// Registers a waker to be woken when the work has ended, or at any time before; the caller then polls and registers again. Returns
    /// false and registers nothing if the end of the work must be waited for, as the default implementation does.
    fn wake_on_end(&self, waker: &Waker) -> bool {
        let _ = waker;
        false
    }
}

/// A handle to work that was submitted to a device. The submitted work may still be under way.
///
/// To drop a token neither stops the submitted work nor waits for the end of the work. If the token of some work is dropped, the
/// result of that work is lost.
#[derive(Debug)]
#[must_use = "nothing else tells the end of the work, or its error"]
pub struct Token(Option<Box<dyn Pending>>);

impl Token {
    /// The token of work that has completed.
    pub const DONE: Token = Token(None);

    /// A token of the submitted work `pending`, which is still under way.
    pub fn new(pending: impl Pending) -> Self {
        Token(Some(Box::new(pending)))
    }

    /// Whether the submitted work had completed before the device returned this token.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.is_none()
    }

    /// The result of the submitted work, or `Poll::Pending` if the work has not ended. The method `poll` never waits.
    pub fn poll(&self) -> Poll<Result<()>> {
        self.0.as_ref().map_or(Poll::Ready(Ok(())), |pending| pending.poll())
    }

    /// Waits until the submitted work has ended.
    ///
    /// # Errors
    /// Fails if the submitted work failed.
    pub fn wait(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |pending| pending.wait())
    }

    /// Registers a waker as [`Pending::wake_on_end`] does. The waker of work that has completed is woken at once.
    pub fn wake_on_end(&self, waker: &Waker) -> bool {
        self.0.as_ref().map_or_else(
            || {
                waker.wake_by_ref();
                true
            },
            |pending| pending.wake_on_end(waker),
        )
    }

    /// The submitted work in the representation of its backend. `None` if the work had completed before the device returned this
    /// token, or if the type of the representation is not `P`.
    #[must_use]
    pub fn get<P: Pending>(&self) -> Option<&P> {
        let pending: &dyn Any = self.0.as_deref()?;
        pending.downcast_ref()
    }
}

/// The tokens of submitted instructions. Dropping a `Submitted` waits until the instructions have completed, since a call only
/// borrows the memory of their operands.
#[derive(Default)]
pub(crate) struct Submitted(pub Vec<Token>);

impl Submitted {
    /// Blocks until all submitted instructions have completed.
    ///
    /// # Errors
    /// Returns the error of the first instruction that failed.
    pub fn wait(&mut self) -> Result<()> {
        self.0.drain(..).map(|token| token.wait()).fold(Ok(()), Result::and)
    }
}

impl Drop for Submitted {
    fn drop(&mut self) {
        let _ = self.wait();
    }
}
