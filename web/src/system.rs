//! Linear systems in `f32`, and their solution on a GPU through a stream.

use lapidary::{Gemm, Machine, Op, Result};
use web_time::Instant;

use crate::cube::{Panel, panels};
use crate::numbers::{Residual, uniform};
use crate::potential::potential;
use crate::turns::Turns;

/// Exponent by which the panels of the cube shrink towards the edges.
pub(crate) const GRADING: u32 = 3;

/// A system A·x = b of order n in `f32`.
#[derive(Debug)]
pub(crate) struct System {
    /// The matrix, column-major.
    pub a: Vec<f32>,
    /// The right-hand side.
    pub b: Vec<f32>,
}

/// A solution of a system.
#[derive(Debug)]
pub(crate) struct Solved {
    /// The unknowns.
    pub x: Vec<f32>,
    /// Seconds of the factorisation, from its submission to its end.
    pub seconds: f64,
    /// Scaled residual of the solution ([`Residual::scaled`]).
    pub residual: f64,
}

impl System {
    /// Computes the system of the charges on the panels of a cube, with `m` panels along an edge. `tell` receives the finished fraction
    /// of the work.
    pub async fn cube(m: usize, mut tell: impl FnMut(f64)) -> Self {
        let panels = panels(m, GRADING);
        let centres: Vec<[f64; 3]> = panels.iter().map(Panel::centre).collect();
        let (n, mut a, mut turns) = (panels.len(), Vec::new(), Turns::new());
        a.reserve_exact(n * n);
        for (j, panel) in panels.iter().enumerate() {
            a.extend(centres.iter().map(|&centre| potential(panel, centre) as f32));
            tell(j as f64 / n as f64);
            turns.pause().await;
        }
        System { a, b: vec![1.0; n] }
    }

    /// Makes a system of order `n` of random numbers.
    pub async fn random(n: usize, seed: u64, mut tell: impl FnMut(f64)) -> Self {
        let (mut next, mut a, mut turns) = (uniform(seed), Vec::new(), Turns::new());
        a.reserve_exact(n * n);
        for j in 0..n {
            a.extend((0..n).map(|_| next()));
            tell(j as f64 / n as f64);
            turns.pause().await;
        }
        System { a, b: (0..n).map(|_| next()).collect() }
    }

    /// Solves the system on the first device of a machine, and computes the residual of the solution on the page.
    pub async fn solve(&self, machine: &Machine, mut tell: impl FnMut(&str)) -> Result<Solved> {
        let n = self.b.len();
        tell("copying the matrix to the GPU");
        let (mut a, mut b) = (machine.zeros_on::<f32>(0, n, n)?, machine.zeros_on::<f32>(0, n, 1)?);
        let stream = machine.stream(0)?;
        stream.write(self.a.clone(), &mut a)?;
        stream.write(self.b.clone(), &mut b)?;
        stream.done().await?;
        tell("factoring the matrix");
        let start = Instant::now();
        let pivots = stream.getrf(a.view_mut())?;
        stream.done().await?;
        let seconds = start.elapsed().as_secs_f64();
        stream.getrs(Op::NoTrans, a.view(), &pivots, b.view_mut())?;
        let x = stream.read(&b)?.await?.to_vec();
        tell("checking the solution");
        let residual = self.residual(&x).await;
        Ok(Solved { x, seconds, residual })
    }

    async fn residual(&self, x: &[f32]) -> f64 {
        let (mut residual, mut turns) = (Residual::new(&self.b, x), Turns::new());
        for (column, &x) in self.a.chunks(x.len()).zip(x) {
            residual.subtract(column, x);
            turns.pause().await;
        }
        residual.scaled()
    }
}

/// Multiplies two matrices of order n on the first device of a machine.
pub(crate) async fn product(machine: &Machine, [a, b]: [&[f32]; 2], n: usize) -> Result<Vec<f32>> {
    let on_device = || machine.zeros_on::<f32>(0, n, n);
    let (mut to_a, mut to_b, mut c) = (on_device()?, on_device()?, on_device()?);
    let stream = machine.stream(0)?;
    stream.write(a.to_vec(), &mut to_a)?;
    stream.write(b.to_vec(), &mut to_b)?;
    stream.gemm(Gemm::new(to_a.view(), to_b.view(), c.view_mut()))?;
    Ok(stream.read(&c)?.await?.to_vec())
}

/// Factors a matrix of order n on the first device of a machine. Returns the factors and the pivots.
pub(crate) async fn factor(machine: &Machine, a: &[f32], n: usize) -> Result<(Vec<f32>, Vec<i32>)> {
    let mut on_device = machine.zeros_on::<f32>(0, n, n)?;
    let stream = machine.stream(0)?;
    stream.write(a.to_vec(), &mut on_device)?;
    let pivots = stream.getrf(on_device.view_mut())?;
    let (factors, pivots) = (stream.read(&on_device)?, stream.read_pivots(&pivots)?);
    Ok((factors.await?.to_vec(), pivots.await?.0))
}
