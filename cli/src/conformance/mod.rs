//! The parts of the command `conformance`: a machine as a subject, the trials that a worker process runs, and reports in files.

pub mod files;
mod graded;
pub mod message;
mod resume;
pub mod run;
pub mod verdicts;
pub mod worker;

pub use graded::Graded;
