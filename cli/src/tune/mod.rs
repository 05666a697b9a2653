//! The parts of the command `tune`: what a search varies, the worker process that runs candidates, the process that measures in it,
//! the files of results, and replays of recorded searches.

pub mod goal;
pub mod message;
pub mod meter;
pub mod order;
pub mod pictures;
pub mod replay;
pub mod results;
pub mod search;
pub mod sizes;
pub mod values;
pub mod worker;
pub mod workload;
