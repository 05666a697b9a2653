//! A window that keeps its frame rate while a device solves systems of equations.
//!
//! The thread of the window makes every call on the device. The calls go into a stream and return at once. The future of a solution
//! wakes the window. One thread beside it opens the device and makes the matrix, which takes seconds.

mod app;
#[path = "../../../lapidary/examples/support/atomic.rs"]
mod atomic;
mod frames;
mod picture;
mod solver;

pub use app::{App, ORDERS};
pub use atomic::check_file;
pub use frames::Frames;
pub use solver::{LIMIT, Solution, Solver};
