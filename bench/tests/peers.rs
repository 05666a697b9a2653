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
fn products_from_host_memory_have_figures_without_the_peer() {
    let (succeeded, text) = peers("host --n 48,96 --reps 1");
    assert!(succeeded, "{text}");
    if text.contains("no OpenCL device") {
        assert!(!requires_opencl(), "{text}");
        return;
    }
    assert_eq!(text.matches("no cuBLAS: ").count(), 1, "{text}");
    for case in ["n=48 NN pinned", "n=48 NN pageable", "n=96 NN pinned", "n=96 NN pageable", "n=96 NN pinned beta=1"] {
        assert!(text.lines().any(|line| line.contains(case) && line.contains(" ours ")), "{case}: {text}");
    }
    assert_eq!(text.matches("resident").count(), 2, "{text}");
    assert!(!text.contains("cublasxt") && !text.contains("n=48 NN pinned beta=1"), "{text}");
    let (succeeded, text) = peers("host --n 1000000");
    assert!(succeeded && text.contains("gemm n=1000000 is left out: "), "{text}");
}
