//! Solves one system after another, checks each solution, and formats the results.

use std::time::Instant;

use lapidary::{Gemm, Machine, MatMut, MatRef, Result};

use crate::cube::{Panel, panels};
use crate::potential::matrix;

/// Capacitance of the unit cube in units of 4πε₀·edge, from Helsing and Perfekt, *On the polarizability and capacitance of the
/// cube*, Applied and Computational Harmonic Analysis 34 (2013).
pub const KNOWN: f64 = 0.660_678_154;

/// Smallest order of a system whose steps take seconds; these steps are announced on standard error.
const LONG: usize = 1000;

/// Header line of the printed table.
pub const HEAD: &str = "  m      n  capacitance    error  order   fill s  solve s  backward error    rcond";

/// A solved system, with its accuracy and its times.
pub struct Solved {
    /// Number of panels along an edge.
    pub m: usize,
    /// The panels, in the order of the unknowns.
    pub panels: Vec<Panel>,
    /// Charges of the panels divided by 4πε₀.
    pub x: Vec<f64>,
    /// Seconds to fill the matrix.
    fill: f64,
    /// Seconds to solve the system.
    solve: f64,
    /// The backward error `‖b − A·x‖₁ / (‖A‖₁·‖x‖₁)`.
    backward_error: f64,
    /// Reciprocal condition number of A.
    rcond: f64,
}

impl Solved {
    /// Returns the capacitance, the sum of the charges.
    pub fn capacitance(&self) -> f64 {
        self.x.iter().sum()
    }

    fn error(&self) -> f64 {
        self.capacitance() / KNOWN - 1.0
    }
}

/// Builds and solves the system with `m` panels along an edge.
pub fn solve(machine: &Machine, m: usize, grading: u32) -> Result<Solved> {
    let panels = panels(m, grading);
    let n = panels.len();
    announce(n, "filling the matrix");
    let start = Instant::now();
    let a = matrix(&panels);
    let fill = start.elapsed().as_secs_f64();

    announce(n, "solving");
    let (mut factors, mut x) = (a.clone(), vec![1.0; n]);
    let start = Instant::now();
    let lu = machine.gesv(MatMut::col_major(&mut factors, n, n)?, MatMut::col_major(&mut x, n, 1)?)?;
    let solve = start.elapsed().as_secs_f64();

    announce(n, "checking");
    let norm = one_norm(&a, n);
    let rcond = lu.rcond(norm)?;
    let residual = residual(machine, &a, &x)?;
    let backward_error = one_norm(&residual, n) / (norm * one_norm(&x, n));
    Ok(Solved { m, panels, x, fill, solve, backward_error, rcond })
}

fn announce(n: usize, what: &str) {
    if n >= LONG {
        eprintln!("n = {n}: {what} …");
    }
}

/// Returns the one-norm: the largest sum of magnitudes of a column.
fn one_norm(a: &[f64], rows: usize) -> f64 {
    a.chunks(rows).map(|column| column.iter().map(|v| v.abs()).sum()).fold(0.0, f64::max)
}

/// Computes b − A·x, where all elements of b are 1.
fn residual(machine: &Machine, a: &[f64], x: &[f64]) -> Result<Vec<f64>> {
    let n = x.len();
    let mut r = vec![1.0; n];
    let (a, x) = (MatRef::col_major(a, n, n)?, MatRef::col_major(x, n, 1)?);
    machine.gemm(Gemm::new(a, x, MatMut::col_major(&mut r, n, 1)?).alpha(-1.0).beta(1.0))?;
    Ok(r)
}

/// Formats a row of the table. The observed order of convergence is computed from the errors of this system and of the previous
/// system.
pub fn row(solved: &Solved, before: Option<&Solved>) -> String {
    let order = before.map_or_else(|| "-".to_owned(), |before| format!("{:.2}", observed_order(before, solved)));
    let Solved { m, x, fill, solve, backward_error, rcond, .. } = solved;
    let (n, capacitance, error) = (x.len(), solved.capacitance(), percent(solved.error()));
    format!("{m:3} {n:6}  {capacitance:.9} {error} {order:>6} {fill:8.2} {solve:8.2}  {backward_error:14.1e} {rcond:8.1e}")
}

fn percent(error: f64) -> String {
    format!("{:7.4}%", 100.0 * error)
}

fn observed_order(before: &Solved, solved: &Solved) -> f64 {
    (before.error() / solved.error()).abs().ln() / ratio(before, solved).ln()
}

fn ratio(coarse: &Solved, fine: &Solved) -> f64 {
    fine.m as f64 / coarse.m as f64
}

/// Richardson's extrapolation of the capacitance from two systems.
fn richardson(coarse: &Solved, fine: &Solved, grading: u32) -> f64 {
    let (before, last) = (coarse.capacitance(), fine.capacitance());
    last + (last - before) / (ratio(coarse, fine).powf(order(grading)) - 1.0)
}

/// Returns the theoretical order of convergence. The result is the smaller of two orders: that of the error from the singularity at
/// the edges, and that of the error from the constant charge density on each panel.
fn order(grading: u32) -> f64 {
    (4.0 * f64::from(grading) / 3.0).min(3.0)
}

/// Formats a line with the extrapolated capacitance.
pub fn extrapolated(coarse: &Solved, fine: &Solved, grading: u32) -> String {
    let value = richardson(coarse, fine, grading);
    let (error, order) = (value / KNOWN - 1.0, order(grading));
    format!("extrapolated (order {order:.2}): {value:.7}; known: {KNOWN:.7}; relative difference: {error:.1e}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lapidary::Select;

    fn study(grading: u32) -> [Solved; 3] {
        let machine = Machine::open(&Select::all()).unwrap();
        [4, 6, 8].map(|m| solve(&machine, m, grading).unwrap())
    }

    #[test]
    fn graded_panels_converge_to_the_known_capacitance() {
        let [coarse, middle, fine] = study(3);
        assert!(fine.error().abs() < 1e-3 && fine.x.iter().all(|&charge| charge > 0.0));
        for order in [observed_order(&coarse, &middle), observed_order(&middle, &fine)] {
            assert!((2.7..3.3).contains(&order), "{order}");
        }
        assert!((richardson(&middle, &fine, 3) / KNOWN - 1.0).abs() < 1e-4);
    }

    #[test]
    fn equal_panels_converge_more_slowly() {
        let [_, middle, fine] = study(1);
        let order = observed_order(&middle, &fine);
        assert!((1.1..1.5).contains(&order), "{order}");
        assert!(fine.backward_error < 1e-14 && fine.rcond > 1e-3);
    }
}
