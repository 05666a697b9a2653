//! Why the program stops, and with which exit status.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use lapidary::ErrorKind;

/// The result of everything here that can stop the program.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// The exit status: a contract with scripts. Success is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// A check failed, or the work could not be done.
    CheckFailed = 1,
    /// Wrong usage or wrong input.
    BadInput = 2,
    /// No device matches the selection.
    NoSuchDevice = 3,
}

/// One sentence for the user and the exit status.
#[derive(Debug)]
pub struct Failure {
    status: Status,
    message: String,
}

impl Failure {
    /// The work was done and is not right, or could not be done.
    pub fn check(message: impl Into<String>) -> Self {
        Failure { status: Status::CheckFailed, message: message.into() }
    }

    /// The user asked for something that makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Failure { status: Status::BadInput, message: message.into() }
    }

    /// A file holds something that cannot be used.
    pub fn file(path: &Path, message: impl fmt::Display) -> Self {
        Failure::usage(format!("{}: {message}", path.display()))
    }

    /// Line `line` of a file holds something that cannot be used.
    pub fn line(path: &Path, line: u64, message: impl fmt::Display) -> Self {
        Failure::usage(format!("{}:{line}: {message}", path.display()))
    }

    /// The failure that another process of this program ended with: its exit code and its message.
    pub fn with_status(code: Option<i32>, message: impl Into<String>) -> Self {
        let status = match code {
            Some(2) => Status::BadInput,
            Some(3) => Status::NoSuchDevice,
            Some(_) | None => Status::CheckFailed,
        };
        Failure { status, message: message.into() }
    }

    /// A result could not be written.
    pub fn write(path: &Path, error: impl fmt::Display) -> Self {
        Failure::check(format!("{}: cannot write: {error}", path.display()))
    }

    /// The exit status, as a number.
    pub fn code(&self) -> i32 {
        self.status as i32
    }

    /// The exit status.
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
            ErrorKind::Singular { .. } | ErrorKind::DeviceFailed | ErrorKind::DeviceLost => Status::CheckFailed,
        };
        Failure { status, message: error.to_string() }
    }
}
