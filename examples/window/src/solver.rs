//! A random system of equations, which a stream of a device solves again and again.

use std::future::Future;
use std::time::Instant;

use lapidary::{DeviceMatrix, Gemm, Machine, Op, Result, Select, Stream};

use crate::random::uniform;

/// Largest scaled residual of a solution: bound 8 of docs/numerics.md.
pub const LIMIT: f64 = 30.0;

/// A solution of the system.
#[derive(Clone, Copy, Debug)]
pub struct Solution {
    /// The time at which the window received the solution.
    pub at: Instant,
    /// `‖b − A·x‖₁ / (‖A‖₁·‖x‖₁·ε)`, which a correct solution keeps below [`LIMIT`].
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
    /// Opens a device, writes a random system of order `n` to its memory, and waits until the system is there.
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
        let random = |seed, count| -> Vec<f32> { uniform(seed).map(|value| value as f32).take(count).collect() };
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

    /// Order of the system.
    pub fn order(&self) -> usize {
        self.a.shape().0
    }

    /// Enqueues the factorisation of A, the solution of the system, and the residual of the solution, and returns at once. The future
    /// returns the solution.
    ///
    /// # Errors
    /// The device does not accept the calls. If a call fails later, the future returns its error.
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
