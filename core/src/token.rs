//! Work that a device was given.

use std::any::Any;
use std::fmt;
use std::task::Poll;

use crate::error::Result;

/// Work on its way, as a backend knows it.
pub trait Pending: Any + fmt::Debug + Send + Sync {
    /// How it ended, if it has. Never waits.
    fn poll(&self) -> Poll<Result<()>>;

    /// Waits for its end.
    ///
    /// # Errors
    /// The work failed.
    fn wait(&self) -> Result<()>;
}

/// Work that a device was given, perhaps not done yet.
///
/// Dropping a token neither stops the work nor waits for it; its error is lost.
#[derive(Debug)]
#[must_use = "nothing else tells the end of the work, or its error"]
pub struct Token(Option<Box<dyn Pending>>);

impl Token {
    /// Of work that is done.
    pub const DONE: Token = Token(None);

    /// Of work on its way.
    pub fn new(pending: impl Pending) -> Self {
        Token(Some(Box::new(pending)))
    }

    /// Whether the device was done when it gave this token.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.0.is_none()
    }

    /// How the work ended, if it has. Never waits.
    pub fn poll(&self) -> Poll<Result<()>> {
        self.0.as_ref().map_or(Poll::Ready(Ok(())), |pending| pending.poll())
    }

    /// Waits for the end of the work.
    ///
    /// # Errors
    /// The work failed.
    pub fn wait(&self) -> Result<()> {
        self.0.as_ref().map_or(Ok(()), |pending| pending.wait())
    }

    /// The work as its backend knows it: none if it is done, or another backend's.
    #[must_use]
    pub fn get<P: Pending>(&self) -> Option<&P> {
        let pending: &dyn Any = self.0.as_deref()?;
        pending.downcast_ref()
    }
}
