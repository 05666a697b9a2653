//! A struct of an application that holds a machine, a stream, a matrix, its factors and its pivots side by side. The application sets
//! the matrix, and its threads solve for right-hand sides again and again. The matrix and the factors stay on a device.
//!
//! `cargo run --release -p lapidary --example solver`
//!
//! The example factors two random matrices, one after the other. Four threads solve with each of them and print the residuals.

#[path = "support/system.rs"]
mod system;

use std::thread;

use lapidary::{DeviceMatrix, DevicePivots, Error, Gemm, HostVec, Machine, MatRef, Op, ReadingPivots, Result, Stream};

use system::random;

/// A system of linear equations whose matrix and factors stay on a device.
pub struct Solver {
    machine: Machine,
    /// The stream that sets and factors the matrix. Each solve has a stream of its own.
    stream: Stream,
    matrix: DeviceMatrix<f64>,
    factors: DeviceMatrix<f64>,
    pivots: DevicePivots,
    /// Info of the factorisation, 0 if no pivot is zero; `None` if the factorisation failed.
    info: Option<usize>,
}

impl Solver {
    /// Copies a column-major matrix of order `n` to the fastest device of the machine, and factors it there.
    pub fn new(machine: &Machine, n: usize, a: &[f64]) -> Result<Self> {
        let matrix = machine.upload(MatRef::col_major(a, n, n)?)?;
        let device = matrix.device();
        let mut solver = Solver {
            machine: machine.clone(),
            stream: machine.stream(device)?,
            matrix,
            factors: machine.zeros_on(device, n, n)?,
            pivots: machine.pivots_on(device, n)?,
            info: None,
        };
        let factored = solver.factor();
        solver.finish(factored)?;
        Ok(solver)
    }

    /// Replaces the matrix by another matrix of the same order, and factors it. The device reads `a` without a copy in host memory.
    pub fn set_matrix(&mut self, a: Vec<f64>) -> Result<()> {
        self.info = None;
        let factored = self.stream.write(a, &mut self.matrix).and_then(|()| self.factor());
        self.finish(factored)
    }

    /// Enqueues the factorisation of a copy of the matrix.
    fn factor(&mut self) -> Result<ReadingPivots> {
        self.stream.copy(self.matrix.view(), self.factors.view_mut())?;
        self.stream.getrf_into(self.factors.view_mut(), &mut self.pivots)?;
        self.stream.read_pivots(&self.pivots)
    }

    /// Waits for the factorisation. `wait` also removes the error of a failed call from the stream, so that the stream can be used again.
    fn finish(&mut self, factored: Result<ReadingPivots>) -> Result<()> {
        self.stream.wait()?;
        let (_, info) = factored?.wait()?;
        self.info = Some(info.get());
        Ok(())
    }

    /// Solves A·x = b. Several threads may call `solve` at the same time. A call has a stream of its own, so that it returns its own
    /// errors only.
    ///
    /// # Errors
    /// A pivot of the matrix is zero (`ErrorKind::Singular`), `b` has another number of elements than the matrix has rows, or the device
    /// failed.
    pub fn solve(&self, b: Vec<f64>) -> Result<HostVec<f64>> {
        match self.info {
            Some(0) => {}
            Some(pivot) => return Err(Error::singular("solve", pivot)),
            None => return Err(Error::invalid("solve", "the matrix is not factored")),
        }
        let (stream, mut x) = (self.machine.stream(self.matrix.device())?, self.column()?);
        stream.write(b, &mut x)?;
        stream.getrs(Op::NoTrans, self.factors.view(), &self.pivots, x.view_mut())?;
        stream.read(&x)?.wait()
    }

    /// Computes the residual b − A·x.
    pub fn residual(&self, x: impl Into<HostVec<f64>>, b: Vec<f64>) -> Result<HostVec<f64>> {
        let (stream, mut there, mut r) = (self.machine.stream(self.matrix.device())?, self.column()?, self.column()?);
        stream.write(x, &mut there)?;
        stream.write(b, &mut r)?;
        stream.gemm(Gemm::new(self.matrix.view(), there.view(), r.view_mut()).alpha(-1.0).beta(1.0))?;
        stream.read(&r)?.wait()
    }

    fn column(&self) -> Result<DeviceMatrix<f64>> {
        self.machine.zeros_on(self.matrix.device(), self.matrix.shape().0, 1)
    }
}

/// Number of unknowns of the example.
const N: usize = 300;

/// Number of threads that solve at the same time.
const THREADS: u64 = 4;

/// Solves for one right-hand side in each thread, and prints the largest element of each residual.
fn solve_in_threads(solver: &Solver) -> Result<()> {
    let solved = |seed: u64| {
        let b = random(seed, N);
        let x = solver.solve(b.clone())?;
        let largest = solver.residual(x, b)?.iter().fold(0.0_f64, |largest, r| largest.max(r.abs()));
        println!("right-hand side {seed}: the largest element of b − A·x is {largest:.1e}");
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (1..=THREADS).map(|seed| scope.spawn(move || solved(seed))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread ends"))
    })
}

fn main() -> Result<()> {
    let machine = Machine::from_env()?;
    let mut solver = Solver::new(&machine, N, &random(100, N * N))?;
    println!("first matrix:");
    solve_in_threads(&solver)?;
    solver.set_matrix(random(200, N * N))?;
    println!("second matrix:");
    solve_in_threads(&solver)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, RwLock};

    use lapidary::ErrorKind;

    use super::*;
    use system::{backward_error, machines};

    fn solve_while_matrices_change(machine: &Machine) {
        let matrix = |seed: u64| random(1000 + seed, N * N);
        // the solver and the seed of its matrix
        let shared = Arc::new(RwLock::new((Solver::new(machine, N, &matrix(0)).unwrap(), 0)));
        let solve = |thread: u64| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                for seed in 0..8 {
                    let b = random(100 * thread + seed, N);
                    let (solver, seed) = &*shared.read().unwrap();
                    let x = solver.solve(b.clone()).unwrap();
                    let error = backward_error(&matrix(*seed), &x, &b);
                    assert!(error < 30.0, "matrix {seed}: {error}");
                    let residual = solver.residual(x, b).unwrap();
                    assert!(residual.iter().all(|r| r.abs() < 1e-9), "{residual:?}");
                }
            })
        };
        let threads: Vec<_> = (0..THREADS).map(solve).collect();
        for next in 1..4 {
            let (solver, seed) = &mut *shared.write().unwrap();
            solver.set_matrix(matrix(next)).unwrap();
            *seed = next;
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn threads_solve_while_another_thread_sets_matrices() {
        machines().iter().for_each(solve_while_matrices_change);
    }

    #[test]
    fn wrong_and_singular_matrices_are_refused_and_the_solver_goes_on() {
        let identity: Vec<f64> = (0..4).map(|at| f64::from(at % 3 == 0)).collect();
        let mut solver = Solver::new(&Machine::from_env().unwrap(), 2, &identity).unwrap();
        assert_eq!(*solver.solve(vec![3.0, 4.0]).unwrap(), [3.0, 4.0]);
        let kind = |error: Error| error.kind();
        assert_eq!(solver.solve(vec![1.0]).map_err(kind).unwrap_err(), ErrorKind::InvalidArgument);

        solver.set_matrix(vec![1.0, 2.0, 2.0, 4.0]).unwrap();
        assert_eq!(solver.solve(vec![1.0, 2.0]).map_err(kind).unwrap_err(), ErrorKind::Singular { pivot: 2 });
        assert_eq!(solver.set_matrix(vec![1.0]).map_err(kind).unwrap_err(), ErrorKind::InvalidArgument);
        assert_eq!(solver.solve(vec![1.0, 2.0]).map_err(kind).unwrap_err(), ErrorKind::InvalidArgument);

        solver.set_matrix(vec![0.0, 2.0, 4.0, 0.0]).unwrap();
        assert_eq!(*solver.solve(vec![4.0, 2.0]).unwrap(), [1.0, 1.0]);
    }
}
