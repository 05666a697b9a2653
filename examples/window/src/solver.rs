//! A random system of equations, which a stream of a device solves again and again.

use std::future::Future;
use std::time::Instant;

use lapidary::{DeviceMatrix, Gemm, Machine, Op, Result, Select, Stream};

/// Largest scaled residual of a solution: bound 8 of docs/numerics.md.
pub const LIMIT: f64 = 30.0;

/// A solution of the system.
#[derive(Clone, Copy, Debug)]
pub struct Solution {
    /// The time at which the solution was known.
    pub at: Instant,
    /// `‖b − A·x‖₁ / (‖A‖₁·‖x‖₁·ε)`, which is below [`LIMIT`] unless something is wrong.
    pub residual: f64,
}

/// A device, and a system A·x = b of order n in its memory.
pub struct Solver {
    stream: Stream,
    device: String,
    /// ‖A‖₁.
    norm: f64,
    a: DeviceMatrix<f32>,
    b: DeviceMatrix<f32>,
    factors: DeviceMatrix<f32>,
    x: DeviceMatrix<f32>,
    residual: DeviceMatrix<f32>,
}

impl Solver {
    /// Opens a device and writes a random system of order `n` to it. Waits until that is done.
    ///
    /// The device is the last GPU of the selection. wgpu devices come last, and their drivers accept calls without limit; an OpenCL
    /// driver may hold the caller while a thousand kernels are pending. If the selection has no GPU, the device is the first one.
    ///
    /// # Errors
    /// The selection has no device, or the device has too little memory.
    pub fn open(select: &Select, n: usize) -> Result<Self> {
        let machine = Machine::open(select)?;
        let gpus = machine.devices().enumerate().filter(|(_, facts)| !facts.is_cpu());
        let device = gpus.last().map_or(0, |(device, _)| device);
        let zeros = |columns| machine.zeros_on::<f32>(device, n, columns);
        let (a, b) = (random(1, n * n), random(2, n));
        let mut solver = Solver {
            stream: machine.stream(device)?,
            device: machine.devices().nth(device).map_or_else(String::new, |facts| facts.name.clone()),
            norm: a.chunks_exact(n).map(norm_1).fold(0.0, f64::max),
            a: zeros(n)?,
            b: zeros(1)?,
            factors: zeros(n)?,
            x: zeros(1)?,
            residual: zeros(1)?,
        };
        solver.stream.write(a, &mut solver.a)?;
        solver.stream.write(b, &mut solver.b)?;
        solver.stream.wait()?;
        Ok(solver)
    }

    /// Name of the device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Enqueues a factorisation of A, the solution of the system and its check, and returns at once. The future gives the solution.
    ///
    /// # Errors
    /// The device does not accept the calls. At run time, the future returns the error.
    pub fn enqueue(&mut self) -> Result<impl Future<Output = Result<Solution>> + Send + 'static> {
        let stream = &self.stream;
        stream.copy(self.a.view(), self.factors.view_mut())?;
        let pivots = stream.getrf(self.factors.view_mut())?;
        stream.copy(self.b.view(), self.x.view_mut())?;
        stream.getrs(Op::NoTrans, self.factors.view(), &pivots, self.x.view_mut())?;
        stream.copy(self.b.view(), self.residual.view_mut())?;
        let (a, x, c) = (self.a.view(), self.x.view(), self.residual.view_mut());
        stream.gemm(Gemm { op_a: Op::NoTrans, op_b: Op::NoTrans, alpha: -1.0, a, b: x, beta: 1.0, c })?;
        let (x, residual) = (stream.read(&self.x)?, stream.read(&self.residual)?);
        let norm = self.norm;
        Ok(async move {
            let (x, residual) = (x.await?, residual.await?);
            let residual = norm_1(&residual) / (norm * norm_1(&x) * f64::from(f32::EPSILON));
            Ok(Solution { at: Instant::now(), residual })
        })
    }
}

fn norm_1(column: &[f32]) -> f64 {
    column.iter().map(|value| f64::from(value.abs())).sum()
}

/// Returns `count` numbers between −1 and 1, the same ones for the same seed.
fn random(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let next = || {
        // the generator SplitMix64 of Steele, Lea and Flood
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}
