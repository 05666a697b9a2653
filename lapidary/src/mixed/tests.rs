//! Tests of the strips in which `gesv_mixed` converts A and copies it to a device, and of the transfers that `gesv_mixed` makes.

use lapidary_core::null::{NullDevice, Record, Request};
use lapidary_core::{Layout, MatMut, MatRef, Scalar};

use super::convert::{Converted, Norms, convert_to_device};
use super::{FallbackReason, Precision};
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

fn check_converted<T: Scalar>(a: MatRef<'_, f64>, at: impl Fn(usize, usize) -> T) {
    let n = a.rows();
    let differs = (0..n * n).find(|e| at(e % n, e / n) != T::from_f64(a.at(e % n, e / n)));
    assert_eq!(differs, None, "n={n} {}", a.layout());
}

#[test]
fn strips_of_either_layout_arrive_at_their_columns() {
    for machine in machines() {
        for n in [1, 7, 100, PARALLEL] {
            for layout in [Layout::ColMajor, Layout::RowMajor] {
                let a = Matrix::new(n, layout);
                for cols in [0, 1, 6, n] {
                    let mut to = machine.zeros_on::<f32>(0, n, n).unwrap();
                    let norms = convert_to_device(a.view(), &mut to, cols * n * size_of::<f32>()).unwrap();
                    let mut back = vec![0.0; n * n];
                    to.download(MatMut::col_major(&mut back, n, n).unwrap()).unwrap();
                    check_converted(a.view(), |i, j| back[i + j * n]);
                    check_norms(&norms, a.view());
                }
            }
        }
    }
}

#[test]
fn a_copy_in_host_memory_has_the_layout_of_the_matrix() {
    for n in [0, 1, 7, PARALLEL] {
        for layout in [Layout::ColMajor, Layout::RowMajor] {
            let a = Matrix::new(n, layout);
            let mut copy = Converted::<f32>::new(a.view()).unwrap();
            check_norms(&copy.norms, a.view());
            let copy = copy.view_mut().unwrap();
            assert_eq!(copy.layout(), layout);
            check_converted(a.view(), |i, j| copy.at(i, j));
        }
    }
}

#[test]
fn numbers_without_a_finite_copy_are_found_in_every_strip() {
    let machine = Machine::open(&Select::cpu([0])).unwrap();
    let (n, reasons) = (20, [(f64::NAN, FallbackReason::NotFinite), (-f64::INFINITY, FallbackReason::NotFinite)]);
    for (value, reason) in reasons.into_iter().chain([(-1e39, FallbackReason::Overflow)]) {
        for layout in [Layout::ColMajor, Layout::RowMajor] {
            for (i, j) in [(0, 0), (3, 9), (n - 1, n - 1)] {
                let mut a = Matrix::new(n, layout);
                a.set(i, j, value);
                let mut to = machine.zeros_on::<f32>(0, n, n).unwrap();
                let norms = convert_to_device(a.view(), &mut to, 3 * n * size_of::<f32>()).unwrap();
                assert_eq!(norms.misfit::<f32>(), Some(reason));
                assert_eq!(Converted::<f32>::new(a.view()).unwrap().norms.misfit::<f32>(), Some(reason));
            }
        }
    }
    // the sums overflow, but no element does
    let a = Matrix { n, layout: Layout::ColMajor, elements: vec![f64::MAX; n * (n + 3)] };
    let norms = Converted::<f64>::new(a.view()).unwrap().norms;
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
    assert_eq!(written(&record), 2 * PARALLEL * PARALLEL, "{record:?}");
    let position = |wanted: &Request| record.requests.iter().position(|request| request == wanted);
    let whole = position(&Request::Write(PARALLEL, PARALLEL));
    // A in `f64` is uploaded after the strips in `f32`
    let is_strip = |request: &Request| matches!(request, Request::Write(_, cols @ 2..) if *cols < PARALLEL);
    let last_strip = record.requests.iter().rposition(is_strip);
    assert!(last_strip.is_some() && last_strip < whole, "{record:?}");
    // a device without memory for A in both precisions receives A from host memory again in each step of refinement
    let (outcome, _, record) = solve(NullDevice::new(Some(PARALLEL * PARALLEL * 12)));
    assert!(matches!(outcome, Ok(Precision::Full { .. })), "{outcome:?}");
    assert!(written(&record) > 2 * PARALLEL * PARALLEL);
}

#[test]
fn a_shortage_of_memory_in_a_solve_leaves_a_solution_or_x_as_it_was() {
    let requests = solve(NullDevice::new(Some(1 << 30))).2.requests.len();
    let mut solved = 0;
    for request in 0..requests {
        let (outcome, x, record) = solve(NullDevice::new(Some(1 << 30)).out_of_memory_at(request));
        assert!(record.requests.len() > request);
        // if the upload of A in `f64` fails, the machine keeps A in host memory, and copies it to the device again in each step
        let is_upload = record.requests[request] == Request::Write(PARALLEL, PARALLEL);
        assert!(!is_upload || written(&record) > 2 * PARALLEL * PARALLEL);
        match outcome {
            Ok(_) => solved += 1,
            Err(error) => assert!(error.is_untouched() && x.iter().all(|&x| x == 7.0), "{request}: {error}"),
        }
    }
    assert!(solved > requests / 2, "{solved} of {requests}");
}
