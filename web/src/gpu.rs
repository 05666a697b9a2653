//! The GPU of the browser, as JavaScript sees it.

use std::sync::Arc;

use js_sys::{Function, JsString};
use lapidary::wgpu::WgpuDevice;
use lapidary::{Machine, Settings};
use wasm_bindgen::prelude::{JsError, JsValue, wasm_bindgen};
use wasm_bindgen::throw_str;

use crate::cube::panels;
use crate::system::{GRADING, Solved, System};
use crate::turns::pause;

/// The GPU of the browser.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Gpu {
    pub(crate) machine: Machine,
    seed: u64,
}

/// A solved system, with its accuracy and its time.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Solution(Solved);

#[wasm_bindgen]
impl Gpu {
    /// Asks the browser for its GPU.
    ///
    /// # Errors
    /// The browser has no WebGPU, or refuses its GPU.
    pub async fn open() -> Result<Gpu, JsError> {
        let settings = Settings::default();
        let device = WgpuDevice::request(None, Arc::new(settings.program_cache())).await?;
        Ok(Gpu { machine: Machine::from_wgpu(vec![device], &settings)?, seed: 1 })
    }

    /// The largest order of a matrix that the GPU holds in one buffer.
    #[wasm_bindgen(getter)]
    pub fn largest_order(&self) -> usize {
        let bytes = self.machine.devices().map(|facts| facts.limits.buffer).min().unwrap_or(0);
        (bytes / size_of::<f32>()).isqrt()
    }

    /// Computes the charges on the panels of a cube, with `m` panels along an edge. `tell` is called with a text and a fraction.
    ///
    /// # Errors
    /// The GPU has too little memory, or fails.
    pub async fn cube(&self, m: usize, tell: Function) -> Result<Solution, JsError> {
        let system = System::cube(m, |part| report(&tell, "computing the matrix", part)).await;
        self.solve(&system, &tell).await
    }

    /// Solves a system of order `n` of random numbers, which differ from call to call. `tell` is called with a text and a fraction.
    ///
    /// # Errors
    /// The GPU has too little memory, or fails.
    pub async fn random(&mut self, n: usize, tell: Function) -> Result<Solution, JsError> {
        self.seed += 1;
        let system = System::random(n, self.seed, |part| report(&tell, "making random numbers", part)).await;
        self.solve(&system, &tell).await
    }
}

impl Gpu {
    async fn solve(&self, system: &System, tell: &Function) -> Result<Solution, JsError> {
        pause().await;
        Ok(Solution(system.solve(&self.machine, |step| report(tell, step, 1.0)).await?))
    }
}

fn report(tell: &Function, step: &str, part: f64) {
    // an error in the display of the progress does not end the work
    let _ = tell.call2(&JsValue::NULL, &JsString::from(step), &JsValue::from_f64(part));
}

#[wasm_bindgen]
impl Solution {
    /// The unknowns.
    #[wasm_bindgen(getter)]
    pub fn x(&self) -> Vec<f32> {
        self.0.x.clone()
    }

    /// The sum of the unknowns. The sum of the charges on a cube is its capacitance in units of 4πε₀·edge.
    #[wasm_bindgen(getter)]
    pub fn sum(&self) -> f64 {
        self.0.x.iter().map(|&x| f64::from(x)).sum()
    }

    /// Seconds of the factorisation.
    #[wasm_bindgen(getter)]
    pub fn seconds(&self) -> f64 {
        self.0.seconds
    }

    /// Billions of floating-point operations per second in the factorisation.
    #[wasm_bindgen(getter)]
    pub fn gigaflops(&self) -> f64 {
        2.0 / 3.0 * (self.0.x.len() as f64).powi(3) / self.0.seconds / 1e9
    }

    /// The scaled residual, which must be less than 16.
    #[wasm_bindgen(getter)]
    pub fn residual(&self) -> f64 {
        self.0.residual
    }
}

/// Makes a panic an exception with a message, which the page receives as an `error` event. Without this, a panic stops the work without
/// a message.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|panic| throw_str(&panic.to_string())));
}

/// Returns the `m + 1` ends of the panels along an edge of the cube.
#[wasm_bindgen]
#[must_use]
pub fn lines(m: usize) -> Vec<f64> {
    let first = panels(m, GRADING).into_iter().take(m).map(|panel| panel.v[1]);
    std::iter::once(0.0).chain(first).collect()
}
