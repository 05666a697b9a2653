//! Random systems of equations, and the check of their solutions.

#[path = "random.rs"]
mod numbers;

/// Returns `count` numbers between −1 and 1, the same ones for the same seed.
pub fn random(seed: u64, count: usize) -> Vec<f64> {
    numbers::uniform(seed).take(count).collect()
}

/// Returns `‖b − A·x‖₁ / (‖A‖₁·‖x‖₁·ε)` for a column-major matrix A. Bound 8 of docs/numerics.md requires a value below 30.
#[cfg(test)]
pub fn backward_error(a: &[f64], x: &[f64], b: &[f64]) -> f64 {
    let n = x.len();
    assert!(n > 0 && b.len() == n && a.len() == n * n, "the shapes agree");
    let one_norm = |column: &[f64]| column.iter().map(|v| v.abs()).sum::<f64>();
    let mut residual = b.to_vec();
    for (column, x) in a.chunks(n).zip(x) {
        residual.iter_mut().zip(column).for_each(|(r, a)| *r -= a * x);
    }
    let norm = a.chunks(n).map(one_norm).fold(0.0, f64::max);
    one_norm(&residual) / (norm * one_norm(x) * f64::EPSILON)
}

/// Opens the first device of each backend, as machines that compute in `f64`.
#[cfg(test)]
pub fn machines() -> Vec<lapidary::Machine> {
    let open = |name| lapidary::Machine::open(&str::parse(name).ok()?).ok();
    let computes = |machine: &lapidary::Machine| machine.devices().any(|facts| facts.computes(lapidary::DType::F64));
    ["cpu", "opencl:0", "wgpu:0"].into_iter().filter_map(open).filter(computes).collect()
}
