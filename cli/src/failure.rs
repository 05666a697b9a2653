//! Reasons for which the program stops, and the exit status of each.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use lapidary::ErrorKind;

/// Result of a function whose error stops the program.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Exit status of the program after a failure. Scripts rely on these numbers. After success the exit status is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// A check failed, or the work could not be done.
    CheckFailed = 1,
    /// The arguments or the input files are wrong.
    BadInput = 2,
    /// No device matches the selection.
    NoSuchDevice = 3,
    /// An interrupt (Ctrl-C) has ended the program: 128 + SIGINT, as in shells.
    Interrupted = 130,
}

/// A message of one sentence for the user, with the exit status.
#[derive(Debug)]
pub struct Failure {
    status: Status,
    message: String,
    /// Whether a device has too little memory for the request.
    lacks_device_memory: bool,
}

impl Failure {
    fn new(status: Status, message: impl Into<String>) -> Self {
        Failure { status, message: message.into(), lacks_device_memory: false }
    }

    /// Adds the name of the option or variable `source`, which limits the memory of devices, to a failure for lack of device memory.
    #[must_use]
    pub fn attribute_memory_limit(mut self, source: &str) -> Self {
        if self.lacks_device_memory {
            self.message += &format!("; {source} sets the limit");
        }
        self
    }

    /// A failure with status 1: the result is wrong, or the work could not be done.
    pub fn check(message: impl Into<String>) -> Self {
        Failure::new(Status::CheckFailed, message)
    }

    /// A failure with status 2: the user's request is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure::new(Status::BadInput, message)
    }

    /// A failure with status 130: the user has interrupted the work, which the program has ended in order.
    pub fn interrupted(message: impl Into<String>) -> Self {
        Failure::new(Status::Interrupted, message)
    }

    /// A failure with status 2: the file at `path` contains something that the program cannot use.
    pub fn file(path: &Path, message: impl fmt::Display) -> Self {
        Failure::usage(format!("{}: {message}", path.display()))
    }

    /// A failure with status 2: line `line` of the file at `path` contains something that the program cannot use.
    pub fn line(path: &Path, line: u64, message: impl fmt::Display) -> Self {
        Failure::usage(format!("{}:{line}: {message}", path.display()))
    }

    /// The failure of another process of this program, made from the exit code and the message of that process.
    pub fn with_status(code: Option<i32>, message: impl Into<String>) -> Self {
        let status = match code {
            Some(2) => Status::BadInput,
            Some(3) => Status::NoSuchDevice,
            Some(_) | None => Status::CheckFailed,
        };
        Failure::new(status, message)
    }

    /// A failure with status 1: the file at `path` could not be written.
    pub fn write(path: &Path, error: impl fmt::Display) -> Self {
        Failure::check(format!("{}: cannot write: {error}", path.display()))
    }

    /// The exit status of the failure as a number.
    pub fn code(&self) -> i32 {
        self.status as i32
    }

    /// The exit status of the failure as the return value of `main`.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<lapidary::Error> for Failure {
    fn from(error: lapidary::Error) -> Self {
        let status = match error.kind() {
            ErrorKind::NoSuchDevice => Status::NoSuchDevice,
            ErrorKind::InvalidArgument | ErrorKind::Unsupported => Status::BadInput,
            ErrorKind::OutOfMemory | ErrorKind::OutOfHostMemory => Status::BadInput,
            // a singular system, a failed or lost device, and kinds of later versions
            _ => Status::CheckFailed,
        };
        Failure { lacks_device_memory: error.kind() == ErrorKind::OutOfMemory, ..Failure::new(status, error.to_string()) }
    }
}
