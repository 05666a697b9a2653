//! The conformance suite of Lapidary.
//!
//! The suite grades a [`Subject`]: anything that computes the routines of the BLAS and LAPACK. A check of the suite has these
//! steps:
//! - A case of [`cases`], which can be printed, describes the operands.
//! - The suite stores the operands in memory with canaries around them.
//! - The suite calls the routine of the subject once.
//! - The [`oracle`] computes the result in higher precision, without code of the subject.
//! - A formula of [`bounds`], which names its source, limits the difference between the result of the subject and that of the
//!   oracle.
//! - A difference above this limit is returned as a [`Failure`].
//!
//! The suite uses no backend, no engine and no facade. The suite uses the types of the core (views, argument structs, the trait
//! `Device`), but no algorithm of the core. [`suite::properties`] lists every property by name. A property comes after the
//! properties on which it depends: memory, devices (transfers, ordering of commands, instructions), laswp, gemm, trsm, getrf,
//! solve, batches, pinned cases, faults, large matrices.
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
