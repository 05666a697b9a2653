//! The error type of all fallible calls. An error contains its kind, the operation, a message, context entries and its source.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// The result of a fallible call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error. A program can decide by the kind how to react to the error.
///
/// A factorisation with a zero pivot succeeds and returns the number of the zero pivot as `info`. A solve with LU factors that
/// have a zero pivot fails. Later versions may add kinds: a `match` on a kind needs an arm `_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller passed an invalid argument. A call with an invalid argument computes and writes nothing.
    InvalidArgument,
    /// The matrix of a system is singular: `U(pivot, pivot)` is the first diagonal element of U that is exactly zero, where
    /// indices count from 1. The failed call did not solve the system.
    Singular {
        /// Number of the first zero pivot, counted from 1.
        pivot: usize,
    },
    /// A device lacked memory: its memory limit is too small for a single task, or its driver refused an allocation.
    OutOfMemory,
    /// The host lacked memory: the operating system refused an allocation.
    OutOfHostMemory,
    /// A command failed on the device.
    DeviceFailed,
    /// The device is lost, or did not respond in time. A lost device accepts no further commands.
    DeviceLost,
    /// The device lacks a capability that the call needs.
    Unsupported,
    /// No device matches the user's selection.
    NoSuchDevice,
}

impl ErrorKind {
    /// Whether another device may be able to do the work that failed, because the failed device lacks memory or is lost.
    #[must_use]
    pub fn is_recoverable_elsewhere(self) -> bool {
        self.is_out_of_memory() || self == ErrorKind::DeviceLost
    }

    /// Whether the device or the host lacked memory.
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

/// The state of the output matrices after a failed call. A program can decide by the state whether it may repeat the call with the
/// same matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outputs {
    /// The outputs are unchanged.
    Unchanged,
    /// The outputs may be partly written.
    PartlyWritten,
    /// The matrix A of a system holds its factors, and B is unchanged.
    FactorsInA,
    /// The matrix A of a system holds its factors, and B may be partly written.
    FactorsInAPartlyWrittenB,
}

impl Outputs {
    fn text(self) -> &'static str {
        match self {
            Outputs::Unchanged => "as they were",
            Outputs::PartlyWritten => "partly written",
            Outputs::FactorsInA => "A holds its factors, B is as it was",
            Outputs::FactorsInAPartlyWrittenB => "A holds its factors, B is partly written",
        }
    }
}

impl fmt::Display for Outputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// An error: the kind, operation, message, context and source of a failure.
///
/// ```
/// # extern crate lapidary_core as lapidary; // an application uses `lapidary`
/// use lapidary::{Error, ErrorKind};
/// let e = Error::new(ErrorKind::InvalidArgument, "gemm", "lda = 3 is below m = 4")
///     .with("command", "LD r0");
/// assert_eq!(e.to_string(), "gemm: invalid argument: lda = 3 is below m = 4 (command: LD r0)");
/// ```
///
/// `{:?}` prints the same text, and the causes of the error below it, because a program whose `main` returns an error, and `unwrap`, print
/// the error in this way.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    operation: &'static str,
    message: String,
    context: Vec<(&'static str, String)>,
    outputs: Option<Outputs>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of kind `kind` in the operation `operation`, with the message `message`.
    #[must_use]
    pub fn new(kind: ErrorKind, operation: &'static str, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, operation, message: message.into(), context: Vec::new(), outputs: None, source: None }))
    }

    /// An error of kind [`ErrorKind::InvalidArgument`] in the operation `operation`: the caller passed an invalid argument.
    #[must_use]
    pub fn invalid(operation: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, operation, message)
    }

    /// An error of kind [`ErrorKind::Singular`] in the operation `operation`: pivot number `pivot`, counted from 1, is exactly
    /// zero.
    #[must_use]
    pub fn singular(operation: &'static str, pivot: usize) -> Self {
        Self::new(ErrorKind::Singular { pivot }, operation, format!("U({pivot}, {pivot}) is exactly zero"))
    }

    /// Adds to the error the statement that the output matrices are unchanged. An error that already has a statement about the
    /// output matrices stays as it is.
    #[must_use]
    pub fn untouched(self) -> Self {
        if self.outputs().is_some() { self } else { self.with_outputs(Outputs::Unchanged) }
    }

    /// Whether the error states that the output matrices are unchanged.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        self.outputs() == Some(Outputs::Unchanged)
    }

    /// Sets the error's statement about the output matrices. The new statement replaces any statement about the output matrices
    /// that the error already has.
    #[must_use]
    pub fn with_outputs(mut self, outputs: Outputs) -> Self {
        self.0.outputs = Some(outputs);
        self
    }

    /// The error's statement about what happened to the output matrices. `None` if the error has no statement about the output
    /// matrices, as an error that does not come from a call of a routine.
    ///
    /// ```
    /// # extern crate lapidary_core as lapidary; // an application uses `lapidary`
    /// use lapidary::{Error, ErrorKind, Outputs};
    /// let e = Error::new(ErrorKind::DeviceLost, "gemm", "the driver reset the device").with_outputs(Outputs::PartlyWritten);
    /// assert_eq!(e.outputs(), Some(Outputs::PartlyWritten));
    /// assert_eq!(e.to_string(), "gemm: device lost: the driver reset the device (outputs: partly written)");
    /// ```
    #[must_use]
    pub fn outputs(&self) -> Option<Outputs> {
        self.0.outputs
    }

    /// Names the call of the application in which the error occurred, in place of the operation. If the operation was a step of the call
    /// that may tell the cause, such as a function of a driver, it becomes the context entry `step`. The error of a lost device gets the
    /// context entry `advice`.
    ///
    /// ```
    /// # extern crate lapidary_core as lapidary; // an application uses `lapidary`
    /// use lapidary::{Error, ErrorKind};
    /// let e = Error::new(ErrorKind::OutOfMemory, "clCreateBuffer", "CL_OUT_OF_RESOURCES (-5)").in_call("zeros_on");
    /// assert_eq!(e.to_string(), "zeros_on: out of device memory: CL_OUT_OF_RESOURCES (-5) (step: clCreateBuffer)");
    /// ```
    #[must_use]
    pub fn in_call(mut self, call: &'static str) -> Self {
        /// Names of steps that tell nothing beside the name of the call.
        const GENERIC: [&str; 4] = ["alloc", "call", "upload", "view"];
        let step = std::mem::replace(&mut self.0.operation, call);
        if step != call && !GENERIC.contains(&step) {
            self = self.with("step", step);
        }
        let is_advised = self.0.context.iter().any(|(key, _)| *key == "advice");
        if self.kind() == ErrorKind::DeviceLost && !is_advised { self.with("advice", "open a new machine") } else { self }
    }

    /// Adds a context entry to the error: a name and a value that tell where the error occurred.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.0.context.push((key, value.to_string()));
        self
    }

    /// Adds the error that caused this error.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        self.0.operation
    }

    /// Returns the context entries of the error, in the order in which they were added. The last entry, with the key `outputs`, is the
    /// error's statement about the output matrices, if there is one.
    pub fn context(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let added = self.0.context.iter().map(|(key, value)| (*key, value.as_str()));
        added.chain(self.0.outputs.map(|outputs| ("outputs", outputs.text())))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, operation, message, .. } = &*self.0;
        write!(f, "{operation}: {kind}: {message}")?;
        for (i, (key, value)) in self.context().enumerate() {
            write!(f, "{}{key}: {value}", if i == 0 { " (" } else { ", " })?;
        }
        if self.context().next().is_some() {
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, "\n  caused by: {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_the_text_of_the_error_and_its_causes() {
        let device = Error::new(ErrorKind::DeviceFailed, "clFinish", "the kernel faulted").caused_by(fmt::Error);
        let error = Error::invalid("wrap", "the buffer is destroyed").caused_by(device);
        let expected = format!(
            "wrap: invalid argument: the buffer is destroyed\n  caused by: clFinish: device failed: the kernel faulted\n  caused by: {}",
            fmt::Error
        );
        assert_eq!(format!("{error:?}"), expected);
        assert_eq!(format!("{:?}", Error::singular("getrs", 2)), "getrs: singular matrix: U(2, 2) is exactly zero");
    }

    #[test]
    fn an_error_in_a_call_keeps_the_step_that_failed_and_one_advice() {
        let lost = Error::new(ErrorKind::DeviceLost, "wgpu", "no answer within 10 s");
        let named = lost.in_call("gemm");
        assert_eq!(named.to_string(), "gemm: device lost: no answer within 10 s (step: wgpu, advice: open a new machine)");
        assert_eq!(named.clone().in_call("gemm").to_string(), named.to_string());
        let memory = Error::new(ErrorKind::OutOfMemory, "alloc", "no memory");
        assert_eq!(memory.in_call("zeros_on").to_string(), "zeros_on: out of device memory: no memory");
    }
}
