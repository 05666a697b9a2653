//! Tests of the command `kernel` with the first OpenCL device.

use crate::support::{Run, Sandbox, outcome, refused};
use crate::tune::sandbox;

fn kernel(s: &Sandbox, args: &[&str]) -> Run {
    let run = s.run(&[&["kernel"], args, &["--device", "opencl:0"]].concat());
    outcome(&run, 0);
    run
}

#[test]
fn the_text_goes_to_standard_output_and_the_launches_to_standard_error() {
    let Some(s) = sandbox() else { return };
    let entry = "gemm_tile mwg=16 nwg=16 kwg=8 mr=4 nr=4 vwm=1 stages=2";
    for (dialect, words) in [("opencl", ["#define MWG 16\n", "__kernel"]), ("wgsl", ["const MWG = 16u;\n", "@compute"])] {
        let run = kernel(&s, &["gemm", "--n", "40", "--dtype", "f32", "--dialect", dialect, "--params", entry]);
        assert!(words.iter().all(|word| run.stdout.contains(word)), "{}", run.stdout);
        let told = "  gemm_tile: 1 launch, 9 work-groups, each of 16 work-items\n";
        assert!(run.stderr.starts_with("gemm in f32 on opencl:0 (") && run.stderr.contains(told), "{}", run.stderr);
        assert!(run.stderr.contains(&format!("  {entry}\n  from the command line\n")), "{}", run.stderr);
    }
    // Without --params, the entry comes from a file of the database.
    let run = kernel(&s, &["gemm", "--n", "40"]);
    assert!(run.stdout.contains("__kernel") && run.stderr.contains("  from gemm.txt:"), "{}", run.stderr);
    assert_eq!(s.files(), Vec::<String>::new());
}

/// A vector of four elements fits a register of WGSL in f32, but not in f64.
#[test]
fn parameters_are_checked_in_the_type_of_the_call() {
    let Some(s) = sandbox() else { return };
    let entry = "gemm_panel mv=1 vw=4 nr=2 group=1 kc=256 mc=96 nc=96";
    let run = kernel(&s, &["gemm", "--n", "40", "--dialect", "wgsl", "--dtype", "f32", "--params", entry, "--list"]);
    assert!(run.stderr.contains(entry), "{}", run.stderr);
    let args = ["kernel", "gemm", "--n", "40", "--dialect", "wgsl", "--params", entry, "--device", "opencl:0"];
    refused(&s, &args, &["--params: gemm_panel mv=1", "vw elements fit a vector register of the device"]);
}

#[test]
fn launches_are_listed_without_the_texts() {
    let Some(s) = sandbox() else { return };
    for (routine, kernels) in
        [("getrf", ["getrf_panel", "laswp"]), ("trsm", ["trsm_block", "launch"]), ("laswp", ["laswp", "launch"])]
    {
        let run = kernel(&s, &[routine, "--n", "64", "--list"]);
        assert_eq!(run.stdout, "");
        let told = |word| run.stderr.lines().skip(1).any(|line| line.contains(word));
        assert!(
            run.stderr.starts_with(&format!("{routine} in f64 on opencl:0 (")) && kernels.into_iter().all(told),
            "{}",
            run.stderr
        );
    }
}

/// The thresholds on which the launches depend are named with the place of their entries.
#[test]
fn thresholds_are_listed_and_can_be_given() {
    let Some(s) = sandbox() else { return };
    let shipped = kernel(&s, &["getrf", "--n", "64", "--list"]);
    let given = kernel(&s, &["getrf", "--n", "64", "--list", "--params", "lu_panel columns=8"]);
    for (run, panels, told) in [
        (&shipped, "getrf_panel: 4 launches", "  lu_panel columns=16, from thresholds.txt:"),
        (&given, "getrf_panel: 8 launches", "  lu_panel columns=8, from the command line\n"),
    ] {
        assert!(run.stderr.contains(panels) && run.stderr.contains(told) && !run.stderr.contains("lu_strips"), "{}", run.stderr);
    }
    // an entry in the folder of the user takes precedence, and another one is skipped with a reason
    std::fs::create_dir(s.path().join("kernels")).unwrap();
    s.text("kernels/mine.txt", "lu_panel f64 columns=4\nlu_panel columns=2000\n");
    let run = kernel(&s, &["getrf", "--n", "64", "--list"]);
    assert!(run.stderr.contains("getrf_panel: 16 launches") && run.stderr.contains("mine.txt:2: "), "{}", run.stderr);
}

#[test]
fn wrong_usage_is_told() {
    let Some(s) = sandbox() else { return };
    let on = |args: &[&'static str], words: &[&str]| refused(&s, &[&["kernel"], args, &["--device", "opencl:0"]].concat(), words);
    on(
        &["gemm", "--n", "40", "--params", "gemm_tile mwg=10 nwg=8 kwg=8 mr=4 nr=4 vwm=1 stages=2"],
        &["--params: gemm_tile mwg=10", "mr divides mwg and nr divides nwg: work-items share the tile equally"],
    );
    on(&["gemm", "--n", "40", "--params", "gemm_tile mwg=8"], &["--params: ", "nwg is not given"]);
    on(&["gemm", "--n", "40", "--params", "gemm_best mwg=8"], &["--params: ", "no kernel is called `gemm_best`"]);
    on(&["gemm", "--n", "40,50"], &["2 sizes cannot be shown at once"]);
    on(&["gemm", "--n", "-4"], &["'-4' for '--n "]);
    on(&["gemm", "--n", "40", "--dialect", "cuda"], &["cuda", "opencl, wgsl"]);
    for routine in ["getrs", "gesv"] {
        on(&[routine, "--n", "40"], &[&format!("{routine} is several instructions"), "getrf, laswp and trsm"]);
    }
    refused(&s, &["kernel", "gemm", "--n", "40", "--device", "cpu"], &["the CPU backend has no generated kernels"]);
}
