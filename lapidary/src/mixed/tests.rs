//! Tests of the copies of A and of the transfers that `gesv_mixed` makes.

use lapidary_core::null::{NullDevice, Record, Request};
use lapidary_core::{Layout, MatMut, MatRef, Scalar};

use super::convert::{Converted, Norms, power_for_f32};
use super::{FallbackReason, Precision};
use crate::lu::{Factors, Lu};
use crate::{Machine, Select, Settings};

/// Order of a matrix that several threads convert, if the host has several processors.
const PARALLEL: usize = 600;

/// A matrix of order `n` in either layout, with gaps between its lines.
struct Matrix {
    n: usize,
    layout: Layout,
    elements: Vec<f64>,
}

impl Matrix {
    /// A matrix of numbers that `f32` rounds.
    fn new(n: usize, layout: Layout) -> Self {
        let elements = (0..n * (n + 3)).map(|e| f64::sin((e * e) as f64) / 3.0).collect();
        Matrix { n, layout, elements }
    }

    fn view(&self) -> MatRef<'_, f64> {
        MatRef::new(&self.elements, self.n, self.n, self.n + 3, self.layout).unwrap()
    }

    fn set(&mut self, i: usize, j: usize, value: f64) {
        MatMut::new(&mut self.elements, self.n, self.n, self.n + 3, self.layout).unwrap().set(i, j, value);
    }
}

fn machines() -> Vec<Machine> {
    let mut machines = vec![Machine::open(&Select::cpu([0])).unwrap()];
    #[cfg(feature = "opencl")]
    if !crate::opencl::list().devices.is_empty() {
        machines.push(Machine::open(&Select::opencl(0)).unwrap());
        let in_panels = Machine::open(&Select::opencl(0)).unwrap();
        in_panels.prefer_kernels("lookahead rows=40\nlookahead_panel columns=24").unwrap();
        machines.push(in_panels);
    }
    machines
}

/// Checks the norms of a matrix against sums in plain loops.
fn check_norms(norms: &Norms, a: MatRef<'_, f64>) {
    let n = a.rows();
    let largest = |sum: &dyn Fn(usize) -> f64| (0..n).map(sum).fold(0.0, f64::max);
    let one = largest(&|j| (0..n).map(|i| a.at(i, j).abs()).sum());
    let inf = largest(&|i| (0..n).map(|j| a.at(i, j).abs()).sum());
    let near = |computed: f64, exact: f64| (computed - exact).abs() <= 1e-12 * exact;
    assert!(norms.order == n && near(norms.one, one) && near(norms.inf, inf), "{norms:?} {one} {inf}");
}

/// Checks the elements of a copy of 2^power·A.
fn check_converted(a: MatRef<'_, f64>, power: i32, at: impl Fn(usize, usize) -> f32) {
    let (n, scale) = (a.rows(), 2.0_f64.powi(power));
    let differs = (0..n * n).find(|e| at(e % n, e / n) != f32::from_f64(scale * a.at(e % n, e / n)));
    assert_eq!(differs, None, "n={n} {}", a.layout());
}

/// A device loads the matrix and factors it, in panels too: the columns on the left before the others. The factors are compared with those of the
/// copy of the matrix.
#[test]
fn a_matrix_is_loaded_and_factored() {
    for (machine, layout) in
        machines().into_iter().flat_map(|machine| [(machine.clone(), Layout::ColMajor), (machine, Layout::RowMajor)])
    {
        for n in [7, 100, PARALLEL] {
            let a = Matrix::new(n, layout);
            let (wide, mut factors) = (machine.zeros_on(0, n, n).unwrap(), machine.zeros_on(0, n, n).unwrap());
            let (ipiv, info, norms) = machine.factor_while_loading(a.view(), &wide, &mut factors).unwrap();
            assert_eq!((ipiv.len(), info, norms.power), (n, 0, power_for_f32(a.view())));
            check_norms(&norms, a.view());
            let mut back = vec![0.0; n * n];
            wide.download(MatMut::col_major(&mut back, n, n).unwrap()).unwrap();
            assert!((0..n * n).all(|e| back[e] == a.view().at(e % n, e / n)), "A stays on the device");
            let mut x = vec![1.0; n];
            let lu = Lu { machine: machine.clone(), factors: Factors::Borrowed(factors.view_mut()), copy: None, ipiv, info };
            lu.solve(MatMut::col_major(&mut x, n, 1).unwrap()).unwrap();
            let scale = 2.0_f64.powi(norms.power);
            let largest = x.iter().fold(0.0_f64, |most, x| most.max(f64::from(*x).abs()));
            for i in 0..n {
                let residual = 1.0 - (0..n).map(|j| scale * a.view().at(i, j) * f64::from(x[j])).sum::<f64>();
                let bound = f64::from(f32::EPSILON) * (n as f64) * (scale * norms.inf * largest + 1.0);
                assert!(residual.abs() <= bound, "n={n} {layout} row {i}: {residual} above {bound}");
            }
        }
    }
}

/// A column of zeros is a zero pivot, in whichever stage it is loaded. The whole matrix is loaded also if the first stage has a zero pivot, since the
/// factors in `f64` need it.
#[test]
fn a_zero_pivot_is_found_in_each_stage_of_the_load() {
    for (machine, zero) in machines().into_iter().flat_map(|machine| [50, 300, 550].map(|zero| (machine.clone(), zero))) {
        let (n, mut a) = (PARALLEL, Matrix::new(PARALLEL, Layout::ColMajor));
        (0..n).for_each(|i| a.set(i, zero, 0.0));
        let (wide, mut factors) = (machine.zeros_on(0, n, n).unwrap(), machine.zeros_on(0, n, n).unwrap());
        let (_, info, _) = machine.factor_while_loading(a.view(), &wide, &mut factors).unwrap();
        assert_eq!(info, zero + 1);
        let mut back = vec![1.0; n * n];
        wide.download(MatMut::col_major(&mut back, n, n).unwrap()).unwrap();
        assert!((0..n * n).all(|e| back[e] == a.view().at(e % n, e / n)), "A is loaded");
    }
}

#[test]
fn a_copy_in_host_memory_has_the_layout_of_the_matrix() {
    for n in [0, 1, 7, PARALLEL] {
        for layout in [Layout::ColMajor, Layout::RowMajor] {
            let a = Matrix::new(n, layout);
            let mut copy = Converted::<f32>::new(a.view(), 5).unwrap();
            check_norms(&copy.norms, a.view());
            let copy = copy.view_mut().unwrap();
            assert_eq!(copy.layout(), layout);
            check_converted(a.view(), 5, |i, j| copy.at(i, j));
        }
    }
}

#[test]
fn the_largest_element_of_a_copy_has_the_exponent_3() {
    for layout in [Layout::ColMajor, Layout::RowMajor] {
        for (value, power) in [(8.0, 0), (-15.9, 0), (1e-300, 1000), (1e300, -993), (f64::INFINITY, 4), (f64::NAN, 4)] {
            let mut a = Matrix { n: 20, layout, elements: vec![0.9e-302; 20 * 23] };
            if !value.is_finite() {
                a.set(0, 0, 0.9);
            }
            a.set(19, 3, value);
            assert_eq!(power_for_f32(a.view()), power, "{value}");
        }
    }
    assert_eq!(power_for_f32(Matrix { n: 2, layout: Layout::ColMajor, elements: vec![0.0; 10] }.view()), 0);
}

#[test]
fn numbers_without_a_finite_copy_are_found_anywhere() {
    let (n, reasons) = (20, [(f64::NAN, FallbackReason::NotFinite), (-f64::INFINITY, FallbackReason::NotFinite)]);
    for (value, reason) in reasons.into_iter().chain([(-1e39, FallbackReason::Overflow)]) {
        for layout in [Layout::ColMajor, Layout::RowMajor] {
            for (i, j) in [(0, 0), (3, 9), (n - 1, n - 1)] {
                let mut a = Matrix::new(n, layout);
                a.set(i, j, value);
                assert_eq!(Norms::new(a.view(), 0).misfit::<f32>(), Some(reason));
                assert_eq!(Converted::<f32>::new(a.view(), 0).unwrap().norms.misfit::<f32>(), Some(reason));
                let is_kept = Norms::new(a.view(), -100).misfit::<f32>().is_none();
                assert_eq!(is_kept, value.is_finite(), "2^-100·A is in the range of f32");
            }
        }
    }
    // the sums overflow, but no element does
    let a = Matrix { n, layout: Layout::ColMajor, elements: vec![f64::MAX; n * (n + 3)] };
    let norms = Converted::<f64>::new(a.view(), 0).unwrap().norms;
    assert_eq!((norms.misfit::<f64>(), norms.misfit::<f32>()), (None, Some(FallbackReason::Overflow)));
}

/// Solves a system of order [`PARALLEL`] on a null device. X has the value 7 before the call. Returns the outcome, X, and the
/// requests to the device.
fn solve(device: NullDevice) -> (lapidary_core::Result<Precision>, Vec<f64>, Record) {
    let machine = Machine::of(vec![Box::new(device)], &Settings::default());
    let (a, b, mut x) = (Matrix::new(PARALLEL, Layout::ColMajor), vec![1.0; PARALLEL], vec![7.0; PARALLEL]);
    let column = MatRef::col_major(&b, PARALLEL, 1).unwrap();
    let outcome = machine.gesv_mixed(a.view(), column, MatMut::col_major(&mut x, PARALLEL, 1).unwrap());
    let record = machine.runtimes()[0].device().downcast::<NullDevice>().expect("a null device").record();
    (outcome, x, record)
}

/// Number of elements of the matrices, without columns, that a device receives.
fn written(record: &Record) -> usize {
    let of = |request: &Request| if let Request::Write(rows, cols @ 2..) = request { rows * cols } else { 0 };
    record.requests.iter().map(of).sum()
}

/// The null device solves nothing, so that refinement does not converge and A is factored on the device in `f64`.
#[test]
fn a_device_receives_each_matrix_once() {
    let (outcome, _, record) = solve(NullDevice::new(Some(1 << 30)));
    assert!(matches!(outcome, Ok(Precision::Full { reason: FallbackReason::NotConverged { .. } })), "{outcome:?}");
    assert_eq!(written(&record), PARALLEL * PARALLEL, "{record:?}");
    // a device without memory for A in both precisions receives A from host memory again in each step of refinement
    let (outcome, _, record) = solve(NullDevice::new(Some(PARALLEL * PARALLEL * 12)));
    assert!(matches!(outcome, Ok(Precision::Full { .. })), "{outcome:?}");
    assert!(written(&record) > PARALLEL * PARALLEL);
}

#[test]
fn a_shortage_of_memory_in_a_solve_leaves_a_solution_or_x_as_it_was() {
    let requests = solve(NullDevice::new(Some(1 << 30))).2.requests.len();
    let mut solved = 0;
    for request in 0..requests {
        let (outcome, x, record) = solve(NullDevice::new(Some(1 << 30)).out_of_memory_at(request));
        assert!(record.requests.len() > request);
        // if the upload of A fails, the machine keeps A in host memory, and copies it to the device again in each step
        let is_upload = record.requests[request] == Request::Write(PARALLEL, PARALLEL);
        assert!(!is_upload || written(&record) > PARALLEL * PARALLEL);
        match outcome {
            Ok(_) => solved += 1,
            Err(error) => assert!(error.is_untouched() && x.iter().all(|&x| x == 7.0), "{request}: {error}"),
        }
    }
    assert!(solved > requests / 2, "{solved} of {requests}");
}
