//! Tokens: handles to work that was submitted to a device.

use std::any::Any;
use std::fmt;
use std::task::Poll;

use crate::error::Result;

/// Work that is under way, as its backend represents the work.
pub trait Pending: Any + fmt::Debug + Send + Sync {
    /// The result of the work, if the work has ended. This method never waits.
    fn poll(&self) -> Poll<Result<()>>;

    /// Waits until the work has ended.
    ///
    /// # Errors
    /// Fails if the work failed.
    fn wait(&self) -> Result<()>;
}

/// A handle to work that was submitted to a device. The work may still be under way.
///
/// Dropping a token neither stops the work nor waits for it. The result of work whose token was dropped is lost.
#[derive(Debug)]
#[must_use = "nothing else tells the end of the work, or its error"]
pub struct Token(Option<Box<dyn Pending>>);

impl Token {
    /// The token of work that has completed.
    pub const DONE: Token = Token(None);

    /// A token of work that is under way.
    pub fn new(pending: impl Pending) -> Self {
        Token(Some(Box::new(pending)))
    }

    /// Whether the work had completed before the device returned this token.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.is_none()
    }

    /// The result of the work, if the work has ended. This method never waits.
    pub fn poll(&self) -> Poll<Result<()>> {
        self.0.as_ref().map_or(Poll::Ready(Ok(())), |pending| pending.poll())
    }

    /// Waits until the work has ended.
    ///
    /// # Errors
    /// Fails if the work failed.
    pub fn wait(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |pending| pending.wait())
    }

    /// The work in the representation of its backend. `None` if the work had completed before the device returned
    /// the token ([`Token::DONE`]), or if the backend's type is not `P`.
    #[must_use]
    pub fn get<P: Pending>(&self) -> Option<&P> {
        let pending: &dyn Any = self.0.as_deref()?;
        pending.downcast_ref()
    }
}
