//! The wgpu backend of Lapidary: compute shaders on Vulkan, Metal and DX12.
//!
//! Everything that wgpu reports while a call runs is an error of that call;
//! nothing panics, and every wait has an end. The backend holds no policy: it
//! moves rectangles and runs instructions.
//!
//! Each device has one queue. The host fills and empties staging memory (the host's part of LD and ST) while kernels
//! run. The copies between staging memory and registers take turns with the kernels.

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
