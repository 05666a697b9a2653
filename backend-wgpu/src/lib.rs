//! The wgpu backend of Lapidary: compute shaders on Vulkan, Metal and DX12, and on WebGPU in a browser.
//!
//! If wgpu reports an error while a call of this backend runs, the call returns the error. The backend does not panic, and every
//! wait for a device has a time limit. The backend only copies rectangles and runs instructions, and leaves the choice of both to
//! the core.
//!
//! A wgpu device has only one queue. The host copies between the caller's memory and staging memory while kernels run. The device
//! copies between staging memory and registers, in the order of its queue and thus never while a kernel runs.
//!
//! In a browser, a page must not wait. Each method that waits returns an error of the kind [`Unsupported`] there. A device is opened
//! by [`WgpuDevice::request`]. The browser reports errors late, so that the error of a call appears in the result of a submission.
//!
//! [`Unsupported`]: lapidary_core::ErrorKind::Unsupported

mod buffer;
mod conv;
mod device;
mod drivers;
mod facts;
#[cfg_attr(target_family = "wasm", path = "page.rs")]
#[cfg_attr(not(target_family = "wasm"), path = "process.rs")]
mod host;
mod kernels;
#[cfg(feature = "test-hooks")]
mod meter;
mod platform;
mod probe;
mod program;
mod queue;
mod startup;
mod stream;
mod strided;
mod times;
mod transfers;

pub use buffer::Buffer;
pub use device::{WgpuDevice, required_features, required_limits};
pub use drivers::drivers;
pub use platform::{Found, Listing, list};
pub use startup::startup;
pub use wgpu;
