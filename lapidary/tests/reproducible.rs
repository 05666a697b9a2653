//! Tests of reproducible calls: the bits of their results do not depend on the number of devices.

use lapidary::{Diag, Gemm, Getrf, Getrs, Layout, Machine, MatMut, MatRef, Select, Settings, Side, Trsm, Uplo};

/// Elements in [−0.5, 0.5) of a packed matrix.
fn noise(len: usize, seed: u64) -> Vec<f64> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
    };
    (0..len).map(|_| next()).collect()
}

/// The bits of the results of products, triangular solves, factorisations and solves of several shapes.
fn results(machine: &Machine) -> Vec<(String, Vec<u64>)> {
    let mut results: Vec<(String, Vec<f64>)> = Vec::new();
    for (m, n, k) in [(300, 200, 150), (65, 700, 333), (1000, 90, 40)] {
        let (a, b, mut c) = (noise(m * k, 1), noise(n * k, 2), noise(m * n, 3));
        let (a, b) = (MatRef::col_major(&a, m, k).unwrap(), MatRef::row_major(&b, k, n).unwrap());
        machine.gemm(Gemm::new(a, b, MatMut::col_major(&mut c, m, n).unwrap()).alpha(0.3).beta(0.7)).unwrap();
        results.push((format!("gemm {m} {n} {k}"), c));
    }
    for (n, nrhs) in [(260, 400), (420, 33)] {
        let mut a = noise(n * n, 4);
        (0..n).for_each(|i| a[i * n + i] += 4.0);
        for side in [Side::Left, Side::Right] {
            let mut b = noise(n * nrhs, 5);
            let (rows, cols) = if side == Side::Left { (n, nrhs) } else { (nrhs, n) };
            let b_view = MatMut::col_major(&mut b, rows, cols).unwrap();
            let triangle = Trsm::new(MatRef::col_major(&a, n, n).unwrap(), b_view).uplo(Uplo::Lower).diag(Diag::NonUnit).side(side);
            machine.trsm(triangle.alpha(0.01)).unwrap();
            results.push((format!("trsm {n} {nrhs} {side:?}"), b));
        }
    }
    for (m, n, layout) in [(350, 350, Layout::ColMajor), (500, 280, Layout::ColMajor), (300, 300, Layout::RowMajor)] {
        let (mut a, mut ipiv) = (noise(m * n, 6), vec![0; m.min(n)]);
        let ld = if layout == Layout::ColMajor { m } else { n };
        let _ = machine.getrf_into(Getrf::new(MatMut::new(&mut a, m, n, ld, layout).unwrap(), &mut ipiv)).unwrap();
        let mut b = noise(m * 40, 7);
        if m == n {
            let factors = MatRef::new(&a, m, n, ld, layout).unwrap();
            machine.getrs(Getrs::new(factors, &ipiv, MatMut::col_major(&mut b, m, 40).unwrap())).unwrap();
        }
        results.extend([(format!("getrf {m} {n} {layout}"), a), (format!("getrs {m} {layout}"), b)]);
    }
    let (n, a, b) = (333, noise(333 * 333, 8), noise(333, 9));
    let (mut factors, mut x) = (a.clone(), b.clone());
    let lu = machine.gesv(MatMut::col_major(&mut factors, n, n).unwrap(), MatMut::col_major(&mut x, n, 1).unwrap()).unwrap();
    drop(lu);
    let mut mixed = vec![0.0; n];
    let [a_view, b_view] = [MatRef::col_major(&a, n, n).unwrap(), MatRef::col_major(&b, n, 1).unwrap()];
    let _ = machine.gesv_mixed(a_view, b_view, MatMut::col_major(&mut mixed, n, 1).unwrap()).unwrap();
    for (name, x) in [("gesv", x), ("gesv_mixed", mixed)] {
        let row = |i: usize| (0..n).map(|j| a[i + j * n] * x[j]).sum::<f64>();
        assert!((0..n).all(|i| (row(i) - b[i]).abs() < 1e-9), "{name} is wrong");
        results.push((name.to_owned(), x));
    }
    results.into_iter().map(|(name, elements)| (name, elements.into_iter().map(f64::to_bits).collect())).collect()
}

/// Checks that machines of 1, 2, 3 and 8 of the devices of a selection, such as `cpu:0,1,2`, have the same results.
fn check(backend: &str, devices: usize, settings: &Settings) {
    let mut first: Option<Vec<(String, Vec<u64>)>> = None;
    for count in [1, 2, 3, 8].into_iter().filter(|&count| count <= devices) {
        let numbers: Vec<String> = (0..count).map(|number| number.to_string()).collect();
        let select: Select = format!("{backend}:{}", numbers.join(",")).parse().unwrap();
        let results = results(&Machine::with_settings(&select, settings).unwrap());
        let expected = first.get_or_insert_with(|| results.clone());
        for ((name, bits), (_, expected)) in results.iter().zip(expected.iter()) {
            let different = bits.iter().zip(expected).filter(|(bits, expected)| bits != expected).count();
            assert_eq!(different, 0, "{name} of {} elements on {count} devices of {backend}", bits.len());
        }
    }
}

fn settings() -> Settings {
    Settings::default().reproducible(true).cache_dir(std::path::PathBuf::new())
}

#[test]
fn cpu_devices_in_place() {
    check("cpu", 8, &settings());
}

#[test]
fn cpu_devices_that_copy() {
    check("cpu", 8, &settings().memory_limit(16 << 20));
}

#[test]
fn cpu_devices_with_little_memory() {
    check("cpu", 3, &settings().memory_limit(256 << 10));
}

#[cfg(feature = "opencl")]
#[test]
fn opencl_devices() {
    let list = lapidary::opencl::list();
    let same = |index: &usize| list.devices[*index].facts.identity == list.devices[0].facts.identity;
    let alike = (0..list.devices.len()).take_while(same).count();
    if alike < 2 || !list.devices[0].facts.computes(lapidary::DType::F64) {
        assert!(std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "two OpenCL devices of one model are needed");
        eprintln!("not run: there are not two OpenCL devices of one model");
        return;
    }
    check("opencl", alike, &settings());
    check("opencl", alike, &settings().memory_limit(512 << 10));
}
