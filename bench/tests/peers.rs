//! Runs the program `peers` with libraries that do not exist.

use std::process::Command;

/// Whether the tests must find an OpenCL device.
fn requires_opencl() -> bool {
    std::env::var("LAPIDARY_REQUIRE_OPENCL").is_ok_and(|value| !value.is_empty())
}

fn peers(args: &str) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peers"));
    for variable in ["CUBLAS", "CUDART", "CUSOLVER", "CLBLAST"] {
        command.env(format!("LAPIDARY_PEER_{variable}"), "/nowhere/library.so");
    }
    let output = command.args(args.split(' ')).output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (output.status.success(), text)
}

#[test]
fn libraries_that_are_missing_are_named_once_and_left_out() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [json, svg] = ["json", "svg"].map(|end| folder.join(format!("peers.{end}")));
    let args = format!("opencl --n 48 --reps 1 --peak 1 --json {} --svg {}", json.display(), svg.display());
    let (succeeded, text) = peers(&args);
    assert!(succeeded, "{text}");
    if text.contains("no OpenCL device") {
        assert!(!requires_opencl(), "{text}");
        return;
    }
    for library in ["cuBLAS", "cuSOLVER", "CLBlast"] {
        assert_eq!(text.matches(&format!("no {library}: ")).count(), 1, "{text}");
    }
    for case in ["gemm f64 n=48 NN", "trsm f32 n=48 nrhs=48", "getrf f64 n=48"] {
        let modes = ["burst", "sustained"].map(|mode| text.lines().any(|line| line.starts_with(case) && line.contains(mode)));
        assert_eq!(modes, [true; 2], "{case}: {text}");
    }
    let json = std::fs::read_to_string(json).unwrap();
    assert!(json.contains("\"comparisons\"") && json.contains("\"of_peak\"") && json.contains("\"mode\": \"sustained\""), "{json}");
    assert!(std::fs::read_to_string(svg).unwrap().starts_with("<svg"));
}

#[test]
fn sizes_that_exceed_the_memory_end_the_program_with_an_error() {
    let (succeeded, text) = peers("opencl --n 9223372036854775807 --dtype f64 --routine gemm --mode burst");
    assert!(text.contains("no OpenCL device") || (!succeeded && text.contains("exceed the address space")), "{text}");
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn calls_from_host_memory_have_figures_without_peers() {
    let (succeeded, text) = peers("host --n 48,96 --reps 1");
    assert!(succeeded, "{text}");
    if text.contains("no OpenCL device") {
        assert!(!requires_opencl(), "{text}");
        return;
    }
    for library in ["cuBLAS", "cuSOLVER"] {
        assert_eq!(text.matches(&format!("no {library}: ")).count(), 1, "{text}");
    }
    let has = |case: &str, side: &str| text.lines().any(|line| line.starts_with(case) && line.contains(&format!(" {side} ")));
    for case in ["dgemm   n=48 NN", "dgemm   n=96 NN", "dtrsm   n=48 nrhs=48", "dgetrf  n=96", "dgesv   n=96"] {
        let sides = [("pinned", "ours"), ("pinned", "resident"), ("pageable", "ours")];
        assert!(sides.iter().all(|(memory, side)| has(&format!("{case} {memory}"), side)), "{case}: {text}");
    }
    assert!(has("dgemm   n=96 NN pinned beta=1", "ours") && !has("dgemm   n=48 NN pinned beta=1", "ours"), "{text}");
    assert!(!text.contains("cublasxt") && !text.contains("cusolver"), "{text}");
}

#[test]
fn the_group_host_times_the_chosen_routines_and_leaves_out_what_exceeds_the_memory() {
    let (succeeded, text) = peers("host --n 24,1000000 --routine trsm,gesv --dtype f32 --reps 1");
    if text.contains("no OpenCL device") {
        assert!(!requires_opencl(), "{text}");
        return;
    }
    assert!(succeeded && ["strsm   n=24", "sgesv   n=24"].iter().all(|case| text.contains(case)), "{text}");
    assert!(!text.contains("gemm  ") && !text.contains("getrf "), "{text}");
    for left_out in ["trsm n=1000000 nrhs=1000000", "gesv n=1000000"] {
        assert!(text.contains(&format!("{left_out} is left out: ")), "{text}");
    }
}
