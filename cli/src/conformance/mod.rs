//! The parts of the command `conformance`: a machine as a subject, a process that runs the trials, a process that watches it,
//! and reports in files.

pub mod files;
mod graded;
mod last_words;
pub mod message;
mod resume;
pub mod run;
pub mod verdicts;
mod watch;
pub mod worker;

pub use graded::Graded;
