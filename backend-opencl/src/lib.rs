//! The OpenCL backend of Lapidary.
//!
//! The backend opens the OpenCL loader at run time and is not linked to it. On a
//! system without the loader, [`list`] returns no devices and a note with the
//! reason. The backend makes no scheduling decisions: it only copies rectangles
//! and runs instructions.

mod buffer;
mod context;
mod conv;
mod device;
mod drivers;
mod facts;
mod kernels;
mod pages;
mod pinned;
mod platform;
mod probe;
mod program;
mod queue;
mod running;
mod startup;
mod stream;
mod times;
mod transfers;

pub use buffer::Buffer;
pub use cl3;
pub use device::OpenClDevice;
pub use drivers::drivers;
pub use platform::{Found, Listing, list};
pub use startup::startup;
