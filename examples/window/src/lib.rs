//! A window that keeps its frame rate while a device solves systems of equations.
//!
//! A second thread opens the device and writes the matrix to it, which takes seconds. Then only the thread of the window calls the device:
//! its calls go into a stream and return at once, and each frame polls the future of the solution.

mod app;
#[path = "../../../lapidary/examples/support/atomic.rs"]
mod atomic;
mod frames;
mod picture;
#[path = "../../../lapidary/examples/support/random.rs"]
mod random;
mod solver;

pub use app::App;
pub use atomic::check_file;
pub use frames::Frames;
pub use solver::{LIMIT, Solution, Solver};
