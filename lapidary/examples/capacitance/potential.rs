//! The potential of a charged rectangle, and the matrix of the potentials of all panels.
//!
//! Let the point be at height z above the plane of the rectangle, and let (x, y) be the coordinates of a corner relative to the
//! foot of the point in this plane. The integral of 1/r over the rectangle is
//!
//! ```text
//! ∬ 1/r = Σ ± F(x, y),   F = y·asinh(x/√(y²+z²)) + x·asinh(y/√(x²+z²)) − z·atan(x·y/(z·r))
//! ```
//!
//! The sign is + for corners that are the upper ends or the lower ends of both intervals (Wilton and others, IEEE Transactions on
//! Antennas and Propagation 32, 1984). Wilton and others have ln(x + r) in place of the first asinh; the difference cancels
//! between corners, and asinh does not lose digits if x is negative.
//!
//! Mathematical functions are those of `libm`, which returns the same bits on every platform.

use crate::cube::Panel;

/// Returns the mean of 1/r over the panel, where r is the distance to the point. Multiplied by 1/(4πε₀), this mean is the
/// potential of a unit charge that is distributed evenly over the panel.
pub fn potential(panel: &Panel, point: [f64; 3]) -> f64 {
    let [u, v] = [point[(panel.axis + 1) % 3], point[(panel.axis + 2) % 3]];
    let z = (point[panel.axis] - panel.level).abs();
    let corner = |i: usize, j: usize| antiderivative(panel.u[i] - u, panel.v[j] - v, z);
    (corner(1, 1) - corner(0, 1) - corner(1, 0) + corner(0, 0)) / panel.area()
}

/// Computes F(x, y) at height z ≥ 0.
fn antiderivative(x: f64, y: f64, z: f64) -> f64 {
    let r = (x * x + y * y + z * z).sqrt();
    times_asinh(y, x, z) + times_asinh(x, y, z) - z * libm::atan2(x * y, z * r)
}

/// Computes `a·asinh(b/√(a²+z²))`, continued to 0 at a = 0.
fn times_asinh(a: f64, b: f64, z: f64) -> f64 {
    if a == 0.0 { 0.0 } else { a * libm::asinh(b / (a * a + z * z).sqrt()) }
}

/// Returns the matrix of the system. Column j holds the potential of panel j at the centres of all panels. Each hardware thread
/// computes some columns of the matrix.
pub fn matrix(panels: &[Panel]) -> Vec<f64> {
    let n = panels.len();
    let mut a = vec![0.0; n * n];
    let centres: Vec<[f64; 3]> = panels.iter().map(Panel::centre).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = n.div_ceil(threads);
    std::thread::scope(|scope| {
        for (columns, sources) in a.chunks_mut(share * n).zip(panels.chunks(share)) {
            scope.spawn(|| fill(columns, sources, &centres));
        }
    });
    a
}

fn fill(columns: &mut [f64], sources: &[Panel], centres: &[[f64; 3]]) {
    for (column, source) in columns.chunks_mut(centres.len()).zip(sources) {
        column.iter_mut().zip(centres).for_each(|(entry, &centre)| *entry = potential(source, centre));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cube::panels;

    const PANEL: Panel = Panel { axis: 1, level: 1.0, u: [0.2, 0.5], v: [0.1, 0.9] };

    /// Computes the mean of 1/r by the midpoint rule with n² points.
    fn midpoint(panel: &Panel, to: [f64; 3], n: usize) -> f64 {
        let at = |[from, to]: [f64; 2], i: usize| from + (to - from) * (i as f64 + 0.5) / n as f64;
        let distance = |from: [f64; 3]| (0..3).map(|k| (from[k] - to[k]).powi(2)).sum::<f64>().sqrt();
        let cells = (0..n * n).map(|i| panel.point(at(panel.u, i / n), at(panel.v, i % n)));
        cells.map(|from| 1.0 / distance(from)).sum::<f64>() / (n * n) as f64
    }

    /// Computes the mean of 1/r by Richardson's extrapolation of the midpoint rule. The error of the extrapolated mean is of order
    /// n⁻⁴.
    fn quadrature(panel: &Panel, to: [f64; 3]) -> f64 {
        (4.0 * midpoint(panel, to, 256) - midpoint(panel, to, 128)) / 3.0
    }

    #[test]
    fn the_closed_form_agrees_with_quadrature() {
        let beside = [0.6, 1.0, 0.75]; // a point in the plane of the panel, beside the panel
        let over_a_corner = [0.5, 1.3, 0.2];
        for to in [[0.0, 0.0, 0.0], over_a_corner, beside, [0.4, 0.9, 0.3], [-3.0, 7.0, 2.0]] {
            let (exact, approximate) = (potential(&PANEL, to), quadrature(&PANEL, to));
            assert!((exact / approximate - 1.0).abs() < 1e-7, "{to:?}: {exact} is not {approximate}");
        }
    }

    #[test]
    fn the_potential_of_a_square_on_itself_is_the_known_one() {
        let square = Panel { u: [0.0, 1.0], v: [0.0, 1.0], ..PANEL };
        let known = 4.0 * (1.0 + 2.0_f64.sqrt()).ln();
        assert!((potential(&square, square.centre()) - known).abs() < 1e-14);
        assert!((potential(&square, square.point(0.0, 0.0)) - known / 2.0).abs() < 1e-14);
    }

    #[test]
    fn far_panels_act_as_point_charges() {
        let distance = 1e4_f64;
        assert!((potential(&PANEL, [0.35, 1.0 + distance, 0.5]) * distance - 1.0).abs() < 1e-6);
    }

    #[test]
    fn equal_panels_in_parallel_faces_act_on_each_other_alike() {
        let panels = panels(4, 1);
        let (n, a) = (panels.len(), matrix(&panels));
        for (i, j) in (0..n * n).map(|k| (k % n, k / n)).filter(|&(i, j)| panels[i].axis == panels[j].axis) {
            assert!((a[i + j * n] - a[j + i * n]).abs() < 1e-12, "({i}, {j})");
        }
    }

    #[test]
    fn the_matrix_is_nearly_symmetric() {
        // entries (i, j) and (j, i) differ most for neighbours across an edge of the cube, for any number of panels
        let panels = panels(6, 1);
        let (n, a) = (panels.len(), matrix(&panels));
        let asymmetry = (0..n * n).map(|k| (a[k] / a[k / n + k % n * n] - 1.0).abs()).fold(0.0, f64::max);
        assert!((1e-3..0.05).contains(&asymmetry), "{asymmetry}");
    }
}
