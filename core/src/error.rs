//! The error of every fallible call: what kind, in which operation, with what context.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// The result of a fallible call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, so that a program can act on it.
///
/// A zero pivot is not an error of a factorisation: the result reports it as `info`. Solving with such
/// factors is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// An argument of the caller is wrong; nothing was computed or written.
    InvalidArgument,
    /// The matrix of a system is singular: `U(pivot, pivot)`, counted from 1 as `info` counts, is
    /// the first pivot that is exactly zero. Nothing was solved.
    Singular {
        /// The number of the pivot.
        pivot: usize,
    },
    /// Memory of a device was lacking: its limit is below the smallest working set, or a driver
    /// refused what it was asked for.
    OutOfMemory,
    /// Memory of the host was lacking: the system refused what it was asked for.
    OutOfHostMemory,
    /// A command failed on the device.
    DeviceFailed,
    /// The device is gone, or did not answer in time; it takes no further commands.
    DeviceLost,
    /// The device lacks a capability that the call needs.
    Unsupported,
    /// No device matches the selection.
    NoSuchDevice,
}

impl ErrorKind {
    /// Whether another device may do what this one could not: it is full, or gone.
    #[must_use]
    pub fn is_recoverable_elsewhere(self) -> bool {
        self.is_out_of_memory() || self == ErrorKind::DeviceLost
    }

    /// Whether memory was lacking, of the device or of the host.
    #[must_use]
    pub fn is_out_of_memory(self) -> bool {
        matches!(self, ErrorKind::OutOfMemory | ErrorKind::OutOfHostMemory)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorKind::InvalidArgument => "invalid argument",
            ErrorKind::Singular { .. } => "singular matrix",
            ErrorKind::OutOfMemory => "out of device memory",
            ErrorKind::OutOfHostMemory => "out of host memory",
            ErrorKind::DeviceFailed => "device failed",
            ErrorKind::DeviceLost => "device lost",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::NoSuchDevice => "no such device",
        })
    }
}

/// The key of the context that says what became of the matrices that a call writes.
pub(crate) const OUTPUTS: &str = "outputs";

/// Its value where nothing was written.
pub(crate) const AS_THEY_WERE: &str = "as they were";

/// Kind, operation, message, context and source of a failure.
///
/// ```
/// use lapidary_core::{Error, ErrorKind};
/// let e = Error::new(ErrorKind::InvalidArgument, "gemm", "lda = 3 is below m = 4")
///     .with("command", "LD r0");
/// assert_eq!(e.to_string(), "gemm: invalid argument: lda = 3 is below m = 4 (command: LD r0)");
/// ```
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    operation: &'static str,
    message: String,
    context: Vec<(&'static str, String)>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` in `operation`.
    #[must_use]
    pub fn new(kind: ErrorKind, operation: &'static str, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, operation, message: message.into(), context: Vec::new(), source: None }))
    }

    /// The caller's mistake in `operation`.
    #[must_use]
    pub fn invalid(operation: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, operation, message)
    }

    /// A matrix to be solved with in `operation`, of which that pivot, counted from 1, is exactly zero.
    #[must_use]
    pub fn singular(operation: &'static str, pivot: usize) -> Self {
        Self::new(ErrorKind::Singular { pivot }, operation, format!("U({pivot}, {pivot}) is exactly zero"))
    }

    /// Says that matrices are as they were before the call, unless the error tells already what became of them.
    #[must_use]
    pub fn untouched(self) -> Self {
        if self.outputs().is_some() { self } else { self.with(OUTPUTS, AS_THEY_WERE) }
    }

    /// Whether the error says that matrices are as they were before the call.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.outputs() == Some(AS_THEY_WERE)
    }

    /// Says what became of the matrices that a call writes, in place of what the error said before.
    #[must_use]
    pub fn with_outputs(mut self, outputs: &str) -> Self {
        self.0.context.retain(|(key, _)| *key != OUTPUTS);
        self.with(OUTPUTS, outputs)
    }

    /// What became of the matrices that a call writes, if the error says so.
    #[must_use]
    pub fn outputs(&self) -> Option<&str> {
        self.context().find(|(key, _)| *key == OUTPUTS).map(|(_, value)| value)
    }

    /// Adds where it happened.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.0.context.push((key, value.to_string()));
        self
    }

    /// Adds what caused it.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// What kind of failure this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// The recorded context, innermost first.
    pub fn context(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.context.iter().map(|(key, value)| (*key, value.as_str()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, operation, message, context, .. } = &*self.0;
        write!(f, "{operation}: {kind}: {message}")?;
        for (i, (key, value)) in context.iter().enumerate() {
            write!(f, "{}{key}: {value}", if i == 0 { " (" } else { ", " })?;
        }
        if !context.is_empty() {
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
