//! What the verb `conformance` is made of: a machine as a subject, and reports in files.

pub mod files;
mod graded;
pub mod resume;

pub use graded::Graded;
