//! Tests of LU on devices that copy: one device that holds the matrix, one whose memory is too small for it, and several devices that hold it
//! together or share it. The factors of the test matrices are known and all intermediate results are exact, so that the results must be equal
//! to these factors.

use lapidary::{Getrf, Layout, Machine, MatMut, Scalar, Select, Settings};

/// A matrix `A = P⁻¹·L·U` with known factors. The elements of L below the diagonal are at most 1/2 in magnitude, so that partial pivoting finds
/// the rows of L·U in order.
struct Known {
    rows: usize,
    cols: usize,
    /// The rows of A in column-major order.
    a: Vec<f64>,
    /// L below the diagonal, and U.
    factors: Vec<f64>,
}

impl Known {
    fn new(rows: usize, cols: usize) -> Self {
        let order = rows.min(cols);
        let l = |i: usize, k: usize| match (i, k) {
            _ if i == k => 1.0,
            _ if i > k && (i * 7 + k * 13).is_multiple_of(29) => {
                if (i + k).is_multiple_of(2) {
                    0.5
                } else {
                    -0.5
                }
            }
            _ => 0.0,
        };
        let u = |k: usize, j: usize| match (k, j) {
            _ if k == j => 4.0,
            _ if k < j && (k * 11 + j * 5).is_multiple_of(23) => ((k + 2 * j) % 5) as f64 - 2.0,
            _ => 0.0,
        };
        let product = |i: usize, j: usize| (0..order).map(|k| l(i, k) * u(k, j)).sum::<f64>();
        let source = |i: usize| i * 7 % rows;
        assert!(!rows.is_multiple_of(7), "the rows are permuted");
        let elements = |element: &dyn Fn(usize, usize) -> f64| (0..rows * cols).map(|at| element(at % rows, at / rows)).collect();
        let factor = |i: usize, j: usize| if i > j { l(i, j) } else { u(i, j) };
        Known { rows, cols, a: elements(&|i, j| product(source(i), j)), factors: elements(&factor) }
    }

    /// Factors the matrix on a machine and compares the results with the known factors.
    fn check<T: Scalar>(&self, machine: &Machine, layout: Layout, name: &str) {
        let (m, n) = (self.rows, self.cols);
        let at = |i: usize, j: usize| if layout == Layout::ColMajor { i + j * m } else { i * n + j };
        let mut a = vec![T::ZERO; m * n];
        (0..m * n).for_each(|e| a[at(e % m, e / m)] = T::from_f64(self.a[e]));
        let mut ipiv = vec![-1; m.min(n)];
        let ld = if layout == Layout::ColMajor { m } else { n };
        let info = machine.getrf_into(Getrf::new(MatMut::new(&mut a, m, n, ld, layout).unwrap(), &mut ipiv)).unwrap();
        assert!(info.pivot().is_none(), "{name}: no pivot is zero");
        // the exchanges bring the rows of A into the order of the rows of L·U; rows below the last pivot may have any order
        let mut order: Vec<usize> = (0..m).map(|i| i * 7 % m).collect();
        ipiv.iter().enumerate().for_each(|(i, &pivot)| order.swap(i, usize::try_from(pivot).unwrap()));
        assert!(order.iter().take(m.min(n)).copied().eq(0..m.min(n)), "{name}, {m}×{n} {layout}: pivots");
        for (i, j) in (0..n).flat_map(|j| (0..m).map(move |i| (i, j))) {
            assert_eq!(a[at(i, j)].to_f64(), self.factors[order[i] + j * m], "{name}, {m}×{n} {layout}: element ({i}, {j})");
        }
    }
}

fn machine(devices: usize, memory: usize, nb: Option<usize>) -> Machine {
    let settings = Settings::default().memory_limit(memory).nb(nb);
    Machine::with_settings(&Select::cpu(0..devices), &settings).unwrap()
}

#[test]
fn lu_is_exact_in_every_place_of_the_matrix() {
    for (m, n) in [(150, 150), (171, 110), (110, 171), (100, 171)] {
        let known = Known::new(m, n);
        let bytes = m * n * 8;
        // several devices may share the memory of the host
        let places = [
            ("held", 1, 2 * bytes, Some(24)),
            ("held as one panel", 1, 2 * bytes, None),
            ("streamed", 1, bytes / 2, None),
            ("streamed in narrow strips", 1, bytes / 3, Some(5)),
            ("distributed over two devices", 2, 2 * bytes, Some(16)),
            ("distributed over two devices in groups of four panels", 2, 2 * bytes, Some(4)),
            ("distributed over three devices", 3, 2 * bytes, Some(12)),
            ("shared", 2, bytes / 3, Some(8)),
        ];
        for (name, devices, memory, nb) in places {
            let machine = machine(devices, memory, nb);
            for layout in [Layout::ColMajor, Layout::RowMajor] {
                known.check::<f64>(&machine, layout, name);
                known.check::<f32>(&machine, layout, name);
            }
        }
    }
}
