//! The OpenCL backend of Lapidary.
//!
//! The driver loader is opened at run time and never linked: without one there
//! are no devices, and [`list`] says so. The backend holds no policy: it moves
//! rectangles and runs instructions.

mod buffer;
mod context;
mod conv;
mod device;
mod drivers;
mod facts;
mod kernels;
mod pinned;
mod platform;
mod program;
mod queue;
mod running;
mod startup;
mod transfers;

pub use buffer::Buffer;
pub use cl3;
pub use device::OpenClDevice;
pub use drivers::drivers;
pub use platform::{Found, Listing, list};
pub use startup::startup;
