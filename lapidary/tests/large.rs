//! Tests that need a device that no other program uses. The tests in this file are started by hand and run on the devices that
//! `LAPIDARY_LARGE` names. (`lapidary conformance --full` tests indices beyond 32 bits.)
//!
//! `LAPIDARY_LARGE=opencl:0 cargo test --release -p lapidary --test large -- --nocapture --test-threads 1`

use lapidary::{ErrorKind, Gemm, Machine, MatMut, MatRef, Settings};

/// Opens the devices that `LAPIDARY_LARGE` names. Returns `None` if `LAPIDARY_LARGE` is unset.
fn machine(memory_limit: Option<usize>) -> Option<Machine> {
    let select = std::env::var("LAPIDARY_LARGE").ok();
    if select.is_none() {
        println!("not run: LAPIDARY_LARGE names no device");
    }
    let settings = Settings::default().memory_limit(memory_limit);
    select.map(|select| Machine::with_settings(&select.parse().unwrap(), &settings).unwrap())
}

/// Returns a small integer, so that products and sums of such elements are exact.
fn integer(i: usize, j: usize) -> f32 {
    ((i * 7 + j * 5) % 11) as f32 - 5.0
}

#[test]
fn a_device_that_another_has_filled_still_gives_the_right_answer() {
    const N: usize = 8192;
    // each machine counts only its own memory, so `other` can fill the device unnoticed by `machine`
    let (Some(machine), Some(other)) = (machine(None), machine(Some(1 << 40))) else { return };
    let integers = |seed: usize| (0..N * N).map(|at| f64::from(integer(at % N + seed, at / N))).collect::<Vec<_>>();
    let (a, b, mut c) = (integers(1), integers(2), vec![7.0; N * N]);
    let view = |data| MatRef::col_major(data, N, N).unwrap();
    // upload matrices of half a gigabyte until at most half a gigabyte is free
    let mut fill = Vec::new();
    let full = loop {
        match other.upload(view(&a)) {
            Ok(matrix) => fill.push(matrix),
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), ErrorKind::OutOfMemory);
    println!("{} matrices fill the device: {full}", fill.len());
    for freed in 0..3 {
        c.fill(7.0);
        match machine.gemm(Gemm::new(view(&a), view(&b), MatMut::col_major(&mut c, N, N).unwrap())) {
            Ok(()) => {
                for at in (0..N * N).step_by(9973) {
                    let (i, j) = (at % N, at / N);
                    let exact: f64 = (0..N).map(|k| a[i + k * N] * b[k + j * N]).sum();
                    assert!(c[at] == exact, "({i}, {j})");
                }
                println!("the product fits after {freed} matrices were freed");
                return;
            }
            Err(error) => {
                println!("after {freed} were freed: {error}");
                assert_eq!(error.kind(), ErrorKind::OutOfMemory);
                assert!(c.iter().all(|&x| x == 7.0), "C is half written");
            }
        }
        fill.pop();
    }
    panic!("a gigabyte is not enough");
}
