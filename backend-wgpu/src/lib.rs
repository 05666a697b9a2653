//! The wgpu backend of Lapidary: compute shaders on Vulkan, Metal and DX12.
//!
//! An error that wgpu reports while a call runs is returned by that call. The backend does not panic, and every wait has a time
//! limit. The backend only moves rectangles and runs instructions, and leaves all decisions to the core.
//!
//! A device has only one queue. While kernels run, the host fills and empties staging memory, which is the host's part of the
//! commands LD and ST. The copies between staging memory and registers run between kernels, in the order of the queue.

mod batch;
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
mod transfers;

pub use batch::Batch;
pub use buffer::Buffer;
pub use device::{WgpuDevice, required_features, required_limits};
pub use drivers::drivers;
pub use platform::{Found, Listing, list};
pub use startup::startup;
pub use wgpu;
