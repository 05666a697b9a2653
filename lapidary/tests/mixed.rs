//! Tests of solves with factors in `f32` that are refined in `f64`.

use lapidary::{ErrorKind, FallbackReason, Layout, Machine, MatMut, MatRef, Precision, Result, Select, Settings};

#[path = "support/settings.rs"]
mod settings;

/// A system of equations, packed column-major.
struct System {
    n: usize,
    nrhs: usize,
    a: Vec<f64>,
    b: Vec<f64>,
}

fn noise(e: usize) -> f64 {
    ((e as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as f64 / (1_u64 << 24) as f64 - 0.5
}

impl System {
    fn new(n: usize, nrhs: usize, a: impl Fn(usize, usize) -> f64) -> Self {
        let a = (0..n * n).map(|e| a(e % n, e / n)).collect();
        System { n, nrhs, a, b: (0..n * nrhs).map(|e| noise(3 * e + 7)).collect() }
    }

    /// A random matrix with a large diagonal.
    fn easy(n: usize, nrhs: usize) -> Self {
        Self::new(n, nrhs, |i, j| noise(i + j * n) + if i == j { (n as f64).sqrt() } else { 0.0 })
    }

    fn hilbert(n: usize) -> Self {
        Self::new(n, 2, |i, j| 1.0 / (i + j + 1) as f64)
    }

    /// Solves the system. X has the value 7 before the call. `layout` is the layout of A, B and X, with gaps between their lines.
    fn solve(&self, machine: &Machine, layout: Layout) -> (Result<Precision>, Vec<f64>) {
        let (n, nrhs) = (self.n, self.nrhs);
        let ld = |rows, cols| 3 + if layout == Layout::ColMajor { rows } else { cols };
        let index = |ld: usize, i: usize, j: usize| if layout == Layout::ColMajor { i + j * ld } else { i * ld + j };
        let spread = |from: &[f64], cols: usize| {
            let ld = ld(n, cols);
            let mut to = vec![f64::NAN; ld * n.max(cols)];
            (0..n * cols).for_each(|e| to[index(ld, e % n, e / n)] = from[e]);
            to
        };
        let (a, b, mut x) = (spread(&self.a, n), spread(&self.b, nrhs), spread(&vec![7.0; n * nrhs], nrhs));
        let outcome = machine.gesv_mixed(
            MatRef::new(&a, n, n, ld(n, n), layout).unwrap(),
            MatRef::new(&b, n, nrhs, ld(n, nrhs), layout).unwrap(),
            MatMut::new(&mut x, n, nrhs, ld(n, nrhs), layout).unwrap(),
        );
        (outcome, (0..n * nrhs).map(|e| x[index(ld(n, nrhs), e % n, e / n)]).collect())
    }

    /// The largest ‖b − A·x‖ / (‖A‖·‖x‖) of all right-hand sides: in the maximum norm in units of √n·u, and in the 1-norm in units
    /// of ε (bound 8).
    fn errors(&self, x: &[f64]) -> [f64; 2] {
        let n = self.n;
        let row_sum = |i: usize| (0..n).map(|j| self.a[i + j * n].abs()).sum::<f64>();
        let sum = |values: &[f64]| values.iter().map(|value| value.abs()).sum::<f64>();
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let norm_inf = largest(&mut (0..n).map(row_sum));
        let norm_one = largest(&mut self.a.chunks(n).map(sum));
        let mut worst = [0.0_f64; 2];
        for (b, x) in self.b.chunks(n).zip(x.chunks(n)) {
            // the sum of fused multiply-adds in two parts is more accurate than the residual of the method
            let residual = |i: usize| {
                let mut sum = (b[i], 0.0);
                for (j, x) in x.iter().enumerate() {
                    let (p, a) = (-self.a[i + j * n] * x, -self.a[i + j * n]);
                    let (s, low) = (sum.0 + p, a.mul_add(*x, -p));
                    let z = s - sum.0;
                    sum = (s, sum.1 + (sum.0 - (s - z)) + (p - z) + low);
                }
                sum.0 + sum.1
            };
            let r: Vec<f64> = (0..n).map(residual).collect();
            let max = |values: &[f64]| largest(&mut values.iter().map(|value| value.abs()));
            worst[0] = worst[0].max(max(&r) / norm_inf / max(x) / ((n as f64).sqrt() * f64::EPSILON / 2.0));
            worst[1] = worst[1].max(sum(&r) / norm_one / sum(x) / f64::EPSILON);
        }
        worst
    }
}

fn machines() -> Vec<Machine> {
    let open = |select: &str, settings: &Settings| Machine::with_settings(&select.parse::<Select>().unwrap(), settings).unwrap();
    let mut machines: Vec<Machine> = ["cpu", "cpu:0", "cpu:0,1"].map(|select| open(select, &settings::settings())).into();
    // with the memory limit, A does not always fit into the memory of the device
    #[cfg(feature = "opencl")]
    if !lapidary::opencl::list().devices.is_empty() {
        machines.extend([settings::settings(), settings::limited(400 << 10)].map(|settings| open("opencl:0", &settings)));
    }
    machines
}

#[test]
fn a_well_conditioned_system_is_refined_to_the_bound() {
    for machine in machines() {
        for (n, nrhs) in [(1, 1), (2, 3), (65, 1), (100, 7), (300, 1), (260, 40), (600, 1)] {
            let system = System::easy(n, nrhs);
            for layout in [Layout::ColMajor, Layout::RowMajor] {
                let (outcome, x) = system.solve(&machine, layout);
                // the rounding of the residual of a tiny system may exceed the limit
                if n < 16 && matches!(outcome, Ok(Precision::Full { .. })) {
                    continue;
                }
                let Ok(Precision::Mixed { iterations, backward_error, .. }) = outcome else {
                    panic!("{outcome:?} n={n} nrhs={nrhs}")
                };
                let [inf, one] = system.errors(&x);
                assert!(inf <= 1.1 && one < 30.0, "{inf} {one} n={n} nrhs={nrhs} {layout}");
                assert!(iterations <= 4 && backward_error <= (n as f64).sqrt() * f64::EPSILON / 2.0, "{outcome:?}");
            }
        }
    }
}

#[test]
fn an_ill_conditioned_system_is_solved_with_factors_in_f64() {
    for machine in machines() {
        let system = System::hilbert(12);
        let (outcome, x) = system.solve(&machine, Layout::ColMajor);
        assert!(matches!(outcome, Ok(Precision::Full { reason: FallbackReason::NotConverged { .. } })), "{outcome:?}");
        assert!(system.errors(&x)[1] < 30.0, "{:?}", system.errors(&x));
    }
}

/// Right-hand sides and matrices far outside the range of `f32` are scaled. A matrix with elements that the scale does not suit is factored in
/// `f64`.
#[test]
fn numbers_outside_the_range_of_f32() {
    for machine in machines() {
        for size in [1e-300, 1e-60, 1e60, 1e300] {
            let mut system = System::easy(40, 2);
            system.b[..40].iter_mut().for_each(|b| *b *= size);
            let (outcome, x) = system.solve(&machine, Layout::ColMajor);
            assert!(matches!(outcome, Ok(Precision::Mixed { .. })) && system.errors(&x)[0] <= 1.1, "{size} {outcome:?}");
            let mut system = System::easy(40, 2);
            system.a.iter_mut().for_each(|a| *a *= size);
            let (outcome, x) = system.solve(&machine, Layout::ColMajor);
            assert!(matches!(outcome, Ok(Precision::Mixed { .. })) && system.errors(&x)[0] <= 1.1, "{size} {outcome:?}");
        }
        let full = |system: &System| match system.solve(&machine, Layout::RowMajor) {
            (Ok(Precision::Full { reason }), x) => (reason, system.errors(&x)[1] < 30.0),
            (outcome, _) => panic!("{outcome:?}"),
        };
        // of 130 rows or columns, every third is searched for the largest magnitude
        let mut large = System::easy(130, 1);
        large.a[131] = 1e60;
        assert_eq!(full(&large), (FallbackReason::Overflow, true));
        let unlike = System::new(2, 1, |i, j| if i == j { [1e60, 1.0][i] } else { 0.0 });
        assert_eq!(full(&unlike), (FallbackReason::ZeroPivot { pivot: 2 }, true));
        let near = System::new(2, 1, |i, j| if i + j == 2 { 1.0 + 1e-12 } else { 1.0 });
        assert_eq!(full(&near), (FallbackReason::ZeroPivot { pivot: 2 }, true));
    }
}

#[test]
fn a_singular_matrix_is_an_error_and_x_stays() {
    for machine in machines() {
        let system = System::new(90, 2, |i, j| if j == 50 { 0.0 } else { noise(i + j * 90) });
        let (outcome, x) = system.solve(&machine, Layout::ColMajor);
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Singular { pivot: 51 });
        assert!(error.is_untouched() && x.iter().all(|&x| x == 7.0), "{error}");
    }
}

#[test]
fn numbers_that_are_not_finite_give_the_result_of_gesv() {
    for machine in machines() {
        for value in [f64::NAN, f64::INFINITY] {
            let mut system = System::easy(70, 3);
            system.b[75] = value; // the second right-hand side
            let (outcome, x) = system.solve(&machine, Layout::ColMajor);
            assert_eq!(outcome.unwrap(), Precision::Full { reason: FallbackReason::NotFinite });
            let is_finite: Vec<bool> = x.chunks(70).map(|x| x.iter().all(|x| x.is_finite())).collect();
            assert_eq!(is_finite, [true, false, true]);
            system.a[1000] = value;
            let (outcome, x) = system.solve(&machine, Layout::RowMajor);
            assert_eq!(outcome.unwrap(), Precision::Full { reason: FallbackReason::NotFinite });
            assert!(x.iter().any(|x| x.is_nan()));
        }
    }
}

#[test]
fn wrong_shapes_are_refused_and_empty_systems_are_solved() {
    let machine = Machine::open(&"cpu:0".parse::<Select>().unwrap()).unwrap();
    let data = [1.0; 12];
    let refuse = |(rows, cols): (usize, usize), b: (usize, usize), x: (usize, usize)| {
        let mut to = [7.0; 12];
        let error = machine.gesv_mixed(
            MatRef::col_major(&data, rows, cols).unwrap(),
            MatRef::col_major(&data, b.0, b.1).unwrap(),
            MatMut::col_major(&mut to, x.0, x.1).unwrap(),
        );
        let error = error.unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.is_untouched() && to == [7.0; 12]);
        error.to_string()
    };
    assert!(refuse((3, 2), (3, 1), (3, 1)).contains("A is 3×2, not square"));
    assert!(refuse((3, 3), (2, 1), (2, 1)).contains("A is of order 3, B has 2 rows"));
    assert!(refuse((3, 3), (3, 2), (3, 1)).contains("X is 3×1, B 3×2"));
    for (n, nrhs) in [(0, 0), (0, 2), (2, 0)] {
        assert!(System::easy(n, nrhs).solve(&machine, Layout::ColMajor).0.is_ok());
    }
}
