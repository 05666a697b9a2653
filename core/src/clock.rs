//! The clock of the host. In a browser, the clock of the standard library panics, and the clock of the page takes its place.

#[cfg(not(target_family = "wasm"))]
pub use std::time::Instant;
#[cfg(target_family = "wasm")]
pub use web_time::Instant;
