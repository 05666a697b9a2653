//! The wgpu backend of Lapidary: compute shaders on Vulkan, Metal and DX12.
//!
//! If wgpu reports an error while a call of this backend runs, the call returns the error. The backend does not panic, and every
//! wait for a device has a time limit. The backend only copies rectangles and runs instructions, and leaves the choice of both to
//! the core.
//!
//! A wgpu device has only one queue. The host copies between the caller's memory and staging memory while kernels run. The device
//! copies between staging memory and registers, in the order of its queue and thus never while a kernel runs.

mod buffer;
mod conv;
mod device;
mod drivers;
mod facts;
mod kernels;
mod platform;
mod probe;
mod program;
mod queue;
mod startup;
mod stream;
mod times;
mod transfers;

pub use buffer::Buffer;
pub use device::{WgpuDevice, required_features, required_limits};
pub use drivers::drivers;
pub use platform::{Found, Listing, list};
pub use startup::startup;
pub use wgpu;
