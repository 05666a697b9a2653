//! The parts of the command `tune`: what a search varies, the worker process that runs candidates, the process that measures in it,
//! and the files of results.

pub mod goal;
pub mod message;
pub mod meter;
pub mod order;
pub mod pictures;
pub mod results;
pub mod search;
pub mod sizes;
pub mod worker;
