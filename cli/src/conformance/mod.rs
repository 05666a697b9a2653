//! The parts of the command `conformance`: a machine as a subject, a process that runs the trials, a process that watches it,
//! and reports in files.

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
