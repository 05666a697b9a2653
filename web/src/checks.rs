//! Checks of the library on the page: results of the GPU are compared with plain loops in `f64`.

use std::sync::Arc;

use js_sys::Array;
use lapidary::wgpu::{WgpuDevice, wgpu};
use lapidary::{Error, ErrorKind, Gemm, Machine, MatMut, MatRef, Result, Select, Settings};
use wasm_bindgen::prelude::{JsError, JsValue, wasm_bindgen};

use crate::gpu::Gpu;
use crate::numbers::{factor_error, product_error, solve, uniform};
use crate::system::{System, factor, product};

/// Order of the matrices of the checks.
const N: usize = 256;
/// Number of panels along an edge of the cube.
const PANELS: usize = 6;
/// Capacitance of the unit cube in units of 4πε₀·edge (Helsing and Perfekt, ACHA 34, 2013).
const CAPACITANCE: f64 = 0.660_678_154;

/// The result of a check.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Check {
    text: String,
    /// Whether the check has passed.
    pub passed: bool,
}

#[wasm_bindgen]
impl Check {
    /// What was checked, with the value and its bound.
    #[wasm_bindgen(getter)]
    pub fn text(&self) -> String {
        self.text.clone()
    }
}

/// A check that `value` is less than `bound`.
fn below(what: &str, value: f64, bound: f64) -> Check {
    Check { text: format!("{what}: {value:.3e}, less than {bound}"), passed: value < bound }
}

#[wasm_bindgen]
impl Gpu {
    /// Runs all checks.
    ///
    /// # Errors
    /// The GPU has too little memory, or fails.
    pub async fn checks(&self) -> std::result::Result<Array, JsError> {
        let all = [self.product().await?, self.random_system().await?, self.capacitance().await?, late_errors().await?];
        let checks = all.into_iter().flatten().chain(refusals(&self.machine)?).chain([processor()?]);
        Ok(checks.map(JsValue::from).collect())
    }

    async fn product(&self) -> Result<Vec<Check>> {
        let mut next = uniform(1);
        let [a, b] = [0; 2].map(|_| (0..N * N).map(|_| next()).collect::<Vec<f32>>());
        let c = product(&self.machine, [&a, &b], N).await?;
        Ok(vec![below("error of a product of order 256, divided by its bound", product_error([&a, &b, &c], N), 1.0)])
    }

    async fn random_system(&self) -> Result<Vec<Check>> {
        let system = System::random(N, 2, |_| {}).await;
        let (factors, ipiv) = factor(&self.machine, &system.a, N).await?;
        let solved = system.solve(&self.machine, |_| {}).await?;
        Ok(vec![
            below("scaled error of the factors of a matrix of order 256", factor_error(&system.a, &factors, &ipiv), 30.0),
            below("scaled residual of a random system of order 256", solved.residual, 16.0),
        ])
    }

    async fn capacitance(&self) -> Result<Vec<Check>> {
        let system = System::cube(PANELS, |_| {}).await;
        let solved = system.solve(&self.machine, |_| {}).await?;
        let sum = solved.x.iter().map(|&x| f64::from(x)).sum::<f64>();
        let exact = solve(&system.a, &system.b).iter().sum::<f64>();
        Ok(vec![
            below("scaled residual of the charges on a cube", solved.residual, 16.0),
            below("difference of the capacitance from that in f64", (sum / exact - 1.0).abs(), 1e-5),
            below("difference of the capacitance from that of a cube", (sum / CAPACITANCE - 1.0).abs(), 2e-3),
        ])
    }
}

/// Checks that a stream returns an error that the browser reports late, here of a call on a destroyed buffer, and then works again.
async fn late_errors() -> Result<Vec<Check>> {
    let failed = |error: &dyn std::fmt::Display| Error::new(ErrorKind::DeviceFailed, "check", error.to_string());
    let adapter = wgpu::Instance::default().request_adapter(&Default::default()).await.map_err(|error| failed(&error))?;
    let (device, queue) = adapter.request_device(&Default::default()).await.map_err(|error| failed(&error))?;
    let settings = Settings::default();
    let ours = WgpuDevice::from_parts(device.clone(), queue, Arc::new(settings.program_cache()))?;
    let machine = Machine::from_wgpu(vec![ours], &settings)?;
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let buffer = device.create_buffer(&wgpu::BufferDescriptor { label: None, size: 16, usage, mapped_at_creation: false });
    buffer.destroy();
    let (broken, mut c) = (machine.wrap_wgpu::<f32>(&buffer, 2, 2)?, machine.zeros_on(0, 2, 2)?);
    let stream = machine.stream(0)?;
    stream.gemm(Gemm::new(broken.view(), broken.view(), c.view_mut()))?;
    let error = stream.done().await.err().map_or_else(|| "none".to_owned(), |error| error.to_string());
    stream.write(vec![1.0, 2.0, 3.0, 4.0], &mut c)?;
    let after = stream.read(&c)?.await?;
    Ok(vec![
        Check { passed: error.contains("destroyed"), text: format!("error of a call on a destroyed buffer: {error}") },
        Check { passed: *after == [1.0, 2.0, 3.0, 4.0], text: "a stream works again after an error".to_owned() },
    ])
}

/// Checks that calls that would wait for the GPU are refused.
fn refusals(machine: &Machine) -> Result<Vec<Check>> {
    let (ones, mut c) = ([1.0_f32; 4], [5.0_f32; 4]);
    let a = MatRef::col_major(&ones, 2, 2)?;
    let product = machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, 2, 2)?));
    let upload = machine.upload(a).map(drop);
    let download = machine.zeros_on::<f32>(0, 2, 2)?.download(MatMut::col_major(&mut c, 2, 2)?);
    let listed = Machine::open(&"wgpu".parse::<Select>()?).map(drop);
    let refused = |what: &str, result: Result<()>, kind, word: &str| {
        let passed = result.as_ref().is_err_and(|error| error.kind() == kind && error.to_string().contains(word));
        Check { text: format!("{what} is refused: {}", result.map_or_else(|error| error.to_string(), |()| "no".into())), passed }
    };
    Ok(vec![
        refused("a product that waits", product, ErrorKind::Unsupported, "stream"),
        refused("an upload that waits", upload, ErrorKind::Unsupported, "stream"),
        refused("a download that waits", download, ErrorKind::Unsupported, "stream"),
        refused("opening a GPU without waiting", listed, ErrorKind::NoSuchDevice, "request"),
        Check { text: "a refused call leaves its result as it was".into(), passed: c == [5.0; 4] },
    ])
}

/// Checks that the CPU computes without threads.
fn processor() -> Result<Check> {
    let (ones, mut c) = (vec![1.0_f64; 300 * 300], vec![0.0; 300 * 300]);
    let a = MatRef::col_major(&ones, 300, 300)?;
    Machine::open(&Select::all())?.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, 300, 300)?))?;
    Ok(Check { text: "the CPU multiplies in f64".into(), passed: c.iter().all(|&x| x == 300.0) })
}
