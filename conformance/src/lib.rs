//! The conformance suite of Lapidary.
//!
//! It grades anything that computes the routines: a [`Subject`]. One check goes through [`cases`] (a printable description
//! of operands) → operands in memory with canaries around them → one call of the subject → [`oracle`]
//! (independent, in higher precision) → [`bounds`] (cited formulas) →
//! [`Failure`].
//! [`Failure`].
//!
//! Nothing here knows a backend, the engine or the facade, and no code is
//! shared with them beyond the views and argument structs of the core.
//! [`suite::properties`] lists every property by name, weakest assumption
//! first: memory, then what devices do (transfers, ordering, instructions), laswp, gemm, trsm,
//! getrf, solve, pinned cases, faults, what is large.
//!
//! One module looks below the routines: [`device`] tries transfers, the order of commands and
//! each instruction on the devices themselves.
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
pub mod oracle;
pub mod properties;
pub mod report;
mod room;
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
