//! Tests of state between calls: threads that share a machine, matrices that stay on a device, several machines at the same time,
//! and errors that leave all outputs unchanged.

use lapidary::{DeviceMatrix, ErrorKind, Gemm, Machine, MatMut, MatRef, Select, Settings};

const N: usize = 240;
const LIMIT: usize = 1 << 20;

fn machine(select: &str, memory_limit: Option<usize>) -> Machine {
    Machine::with_settings(&select.parse().unwrap(), &Settings::default().memory_limit(memory_limit)).unwrap()
}

/// Returns small integers, so that their products and sums are exact in any order.
fn integers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 7 + seed * 13) % 11) as f64 - 5.0).collect()
}

fn product(machine: &Machine, a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut c = vec![0.0; N * N];
    let view = |data| MatRef::col_major(data, N, N).unwrap();
    machine.gemm(Gemm::new(view(a), view(b), MatMut::col_major(&mut c, N, N).unwrap())).unwrap();
    c
}

fn by_definition(a: &[f64], b: &[f64]) -> Vec<f64> {
    let element = |at: usize| (0..N).map(|k| a[at % N + k * N] * b[k + at / N * N]).sum();
    (0..N * N).map(element).collect()
}

#[test]
fn threads_share_a_machine_in_place_and_out_of_core() {
    let (a, b) = (integers(N * N, 1), integers(N * N, 2));
    let expected = by_definition(&a, &b);
    for limit in [None, Some(LIMIT)] {
        let machine = machine("cpu:0,1", limit);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (machine, a, b, expected) = (&machine, &a, &b, &expected);
                scope.spawn(move || {
                    for round in 0..6 {
                        assert!(product(machine, a, b) == *expected, "thread {thread}, round {round}, {limit:?}");
                        // another routine changes the sizes of registers between products
                        let mut lu = a.clone();
                        (0..N).for_each(|i| lu[i + i * N] += 100.0);
                        let _ = machine.getrf(MatMut::row_major(&mut lu, N, N).unwrap()).unwrap();
                    }
                });
            }
        });
    }
}

#[test]
fn two_machines_work_side_by_side() {
    let (a, b) = (integers(N * N, 3), integers(N * N, 4));
    let expected = by_definition(&a, &b);
    let machines = [machine("cpu:0", Some(LIMIT)), machine("cpu:0,1,2", None)];
    std::thread::scope(|scope| {
        for machine in &machines {
            scope.spawn(|| assert!(product(machine, &a, &b) == expected));
        }
    });
}

#[test]
fn calls_chain_on_matrices_in_device_memory() {
    let (a, b) = (integers(N * N, 5), integers(N * N, 6));
    for limit in [None, Some(8 << 20)] {
        let machine = machine("cpu:0,1", limit);
        let view = |data| MatRef::col_major(data, N, N).unwrap();
        let (x, y) = (machine.upload(view(&a)).unwrap(), machine.upload(view(&b)).unwrap());
        let mut z = machine.upload(view(&a)).unwrap();
        machine.gemm(Gemm::new(x.view(), y.view(), z.view_mut())).unwrap();
        let mut c = vec![0.0; N * N];
        z.download(MatMut::col_major(&mut c, N, N).unwrap()).unwrap();
        assert!(c == by_definition(&a, &b), "{limit:?}");
        // the factors of a transposed view are those of a row-major matrix, which no device factors in its memory
        let mut square = machine.upload(view(&a)).unwrap();
        let error = machine.getrf(square.view_mut().t()).unwrap_err();
        assert!(error.kind() == ErrorKind::Unsupported && error.is_untouched(), "{limit:?}: {error}");
    }
}

#[test]
fn device_memory_is_counted_and_given_back() {
    let machine = machine("cpu:0", Some(N * N * 8 * 3 / 2));
    let a = integers(N * N, 7);
    let view = || MatRef::col_major(&a, N, N).unwrap();
    let first = machine.upload(view()).unwrap();
    let error = machine.upload(view()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().contains("cpu:0 has"), "{error}");
    drop(first);
    machine.upload(view()).unwrap();
}

#[test]
fn a_matrix_of_another_machine_is_refused() {
    let (one, other) = (machine("cpu:0", Some(LIMIT)), machine("cpu:0", Some(LIMIT)));
    let a = integers(100 * 100, 8);
    let x = one.upload(MatRef::col_major(&a, 100, 100).unwrap()).unwrap();
    let mut y = other.upload(MatRef::col_major(&a, 100, 100).unwrap()).unwrap();
    assert_eq!(other.gemm(Gemm::new(x.view(), x.view(), y.view_mut())).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// An application keeps a machine and its matrices in one struct and moves this struct to another thread.
#[test]
fn a_machine_and_its_matrices_live_in_one_struct() {
    struct Application {
        machine: Machine,
        a: DeviceMatrix<f64>,
        c: DeviceMatrix<f64>,
    }
    let (machine, a) = (machine("cpu:0,1", Some(LIMIT)), integers(N * N, 5));
    let upload = |data: &[f64]| machine.upload(MatRef::col_major(data, N, N).unwrap()).unwrap();
    let mut application = Application { machine: machine.clone(), a: upload(&a), c: upload(&vec![0.0; N * N]) };
    drop(machine);
    let thread = std::thread::spawn(move || {
        let Application { machine, a, c } = &mut application;
        machine.gemm(Gemm::new(a.view(), a.view(), c.view_mut())).unwrap();
        application.c
    });
    // the matrix keeps its machine alive
    let (c, mut square) = (thread.join().unwrap(), vec![0.0; N * N]);
    c.download(MatMut::col_major(&mut square, N, N).unwrap()).unwrap();
    assert!(square == by_definition(&a, &a));
}

#[test]
fn refusals_name_what_is_wrong() {
    let message = |text: &str| text.parse::<Select>().unwrap_err().to_string();
    for malformed in ["", " ", "+", "cpu+", "cpu:", "cpu:x", ":0", "cpu:-1", "cpu,opencl", "cuda:x", "cuda+", "all+cpu", "all:0"] {
        assert_eq!(malformed.parse::<Select>().unwrap_err().kind(), ErrorKind::InvalidArgument, "{malformed}");
    }
    for absent in ["cuda", "cuda:0", "cpu+cuda", "cpu:99999999999999999999"] {
        assert_eq!(absent.parse::<Select>().unwrap_err().kind(), ErrorKind::NoSuchDevice, "{absent}");
    }
    for twice in ["cpu:0,0", "cpu:0+cpu:0", "cpu:0,cpu:0", "cpu:1,0,2,0", "cpu:0+cuda:0,cpu:0"] {
        assert!(message(twice).contains("device cpu:0 is named twice"), "{twice}: {}", message(twice));
    }
    assert!(message("cpu:0+cpu:1").contains("cpu is named twice"));
    for (wrong, right) in [("cpu:0,cpu:1", "write cpu:0,1"), ("cpu:0,1,opencl:0,opencl:1", "write cpu:0,1+opencl:0,1")] {
        assert!(message(wrong).ends_with(right), "{}", message(wrong));
    }
    assert!(message("abacus").contains("`abacus`"));
    for incomplete in ["", "cpu+", "+cpu"] {
        assert!(message(incomplete).contains("the name of a device is missing"), "{}", message(incomplete));
    }
    let none = Machine::open(&Select::cpu([])).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NoSuchDevice);
    let tight = machine("cpu:0", Some(1000));
    let a = integers(N * N, 9);
    let mut c = vec![f64::NAN; N * N];
    let view = |data| MatRef::col_major(data, N, N).unwrap();
    let error = tight.gemm(Gemm::new(view(&a), view(&a), MatMut::col_major(&mut c, N, N).unwrap())).unwrap_err();
    assert!(error.kind() == ErrorKind::OutOfMemory && error.to_string().contains("the memory limit of cpu:0 is 1000 B"), "{error}");
    assert!(c.iter().all(|v| v.is_nan()), "C is untouched");
}
