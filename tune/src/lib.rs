//! This crate searches for the parameters with which a kernel is the fastest.
//!
//! A [`Space`] lists the sets of parameters that a kernel accepts. A set of parameters is a *point* of the space, and the number of
//! a point is its index in the space. A [`Strategy`] chooses the order in which points are measured, and [`Method`] names the
//! strategies. A [`Search`] keeps the measured times, and [`run`] drives a search until its budget is spent.
//!
//! The crate calls no device. The caller of [`run`] supplies the function that measures a point. A [`Journal`] keeps the outcomes
//! on disk, so that a search continues after a candidate has ended the process. A [`Recording`] holds the times of a whole space,
//! and [`replay`](replay()) runs a search on these times instead of a device.
#![forbid(unsafe_code)]

mod journal;
mod known;
mod recording;
mod replay;
mod search;
mod space;
mod strategy;
mod text;

pub use journal::{Header, Journal};
pub use known::{Known, Timing};
pub use recording::{ParseError, Recording, Row};
pub use replay::{Trial, replay};
pub use search::{End, Estimate, Progress, RETIME_INTERVAL, Search, run};
pub use space::{Axis, Space};
pub use strategy::{Method, Outcome, RUNS, Request, Strategy, UnknownMethod};
