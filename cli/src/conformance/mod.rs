//! The parts of the command `conformance`: a machine as a subject, a worker process that runs the trials, a process that watches
//! the worker process, and reports in files.

pub mod files;
mod graded;
pub mod message;
mod resume;
pub mod run;
mod stderr_tail;
pub mod verdicts;
mod watch;
pub mod worker;

pub use graded::Graded;
