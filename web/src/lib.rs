//! A page that solves dense systems on the GPU of the visitor's browser.
//!
//! The page shows the capacitance of a cube, and how fast and how accurately the browser's GPU solves systems in `f32`. The library
//! compiles for other targets than a browser too, and has only [`numbers`] there.

#[cfg(target_family = "wasm")]
mod checks;
#[cfg(target_family = "wasm")]
#[path = "../../lapidary/examples/capacitance/cube.rs"]
mod cube;
#[cfg(target_family = "wasm")]
mod gpu;
pub mod numbers;
#[cfg(target_family = "wasm")]
#[path = "../../lapidary/examples/capacitance/potential.rs"]
#[expect(dead_code, reason = "the example also fills a matrix in threads")]
mod potential;
#[cfg(target_family = "wasm")]
mod system;
#[cfg(target_family = "wasm")]
mod turns;
