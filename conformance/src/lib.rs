//! The conformance suite of Lapidary.
//!
//! The suite grades a [`Subject`]: anything that computes the routines of the BLAS and LAPACK. One check takes these steps:
//! - A case of [`cases`], which can be printed, describes the operands.
//! - The operands are stored in memory with canaries around them.
//! - The suite calls the subject once.
//! - The [`oracle`] computes the result independently, in higher precision.
//! - A formula of [`bounds`], which cites its source, limits the difference between the two results.
//! - A difference beyond the limit is returned as a [`Failure`].
//!
//! The suite depends on no backend, and neither on the engine nor on the facade. The suite uses the types of the core
//! (views, argument structs, the trait of a device), but none of its algorithms. [`suite::properties`] lists every property
//! by name. A property comes after the properties that it builds on: memory, devices (transfers, ordering of commands,
//! instructions), laswp, gemm, trsm, getrf, solve, batches, pinned cases, faults, large matrices.
//!
//! The module [`device`] tests the devices of a subject below the level of the routines: transfers, the order of commands,
//! and each instruction.
#![deny(unsafe_code)]

pub mod bounds;
pub mod cases;
pub mod device;
pub mod erased;
pub mod expectation;
pub mod failure;
pub mod foreign;
pub mod grader;
pub mod grades;
pub mod guarded;
pub mod harness;
mod memory_check;
pub mod oracle;
pub mod properties;
pub mod report;
pub mod subject;
pub mod suite;
pub mod trial;

pub use cases::Scope;
pub use device::{Instructions, OnDevice};
pub use failure::Failure;
pub use grader::Grader;
pub use guarded::Guarded;
pub use subject::{Flushing, Subject, flushes};
pub use trial::{Ledger, Trial};
