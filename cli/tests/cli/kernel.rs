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

/// A device with two queues factors a large matrix in panels, whose launches are not listed.
#[test]
fn panels_of_lu_are_named() {
    let Some(s) = sandbox() else { return };
    let listed = |rows: &str| kernel(&s, &["getrf", "--n", "3000", "--list", "--params", &format!("lookahead rows={rows}")]).stderr;
    let [panels, whole] = ["3000", "3001"].map(listed);
    assert!(panels.contains("in panels of 2048 columns (lookahead_panel)") && panels.contains("lookahead rows=3000"), "{panels}");
    assert!(!whole.contains("panels of"), "{whole}");
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

/// The conditions of an entry may exclude the call. Another kernel must not be shown then.
#[test]
fn the_kernel_of_the_parameters_is_shown_or_refused() {
    let Some(s) = sandbox() else { return };
    let tile = "mwg=16 nwg=16 kwg=8 mr=4 nr=4 vwm=1 stages=2";
    let on = |n: &str, entry: &str, words: &[&str]| {
        refused(&s, &["kernel", "gemm", "--n", n, "--device", "opencl:0", "--params", entry], words);
    };
    for condition in ["side<=39", "groups>=10", "groups<=8", "terms>=41", "terms<=39"] {
        let words = ["--params: gemm m=40 n=40 k=40 does not use gemm_tile mwg=16", "the conditions of the entry do not hold"];
        on("40", &format!("gemm_tile {condition} {tile}"), &words);
    }
    on("40", &format!("gemm_tile f32 {tile}"), &["--params: the entry is for f32", "add --dtype f32"]);
    on("40", &format!("gemm_tile wgsl {tile}"), &["--params: the entry is for wgsl", "add --dialect wgsl"]);
    on("40", "solve items=64", &["does not use solve items=64: the call launches other kernels"]);
    on("40", "cpu_blocks kc=384 mc=96 nc=512 team_mc=384 team_nc=512", &["for the CPU backend", "lapidary tune --device cpu"]);
    let vector = "gemm_vector mwg=64 nwg=64 kwg=16 mr=4 nr=4 lanes_n=4 zigzag=0 ahead=0";
    on("8", vector, &["gemm m=8 n=8 k=8 does not use gemm_vector", "at least nwg columns"]);
    let mma = "gemm_mma mwg=64 nwg=64 kwg=16 mw=32 nw=32 stages=2 raster=8 split=1 unit=8 guarded=0 ptx=0";
    on("40", mma, &["does not use gemm_mma mwg=64", "name multiples of mwg, nwg and kwg"]);
    let in_norm = "gemm_mma mwg=128 nwg=64 kwg=32 mw=32 nw=32 stages=4 raster=8 split=1 unit=16 guarded=1 aligned=0 ptx=0";
    let run = kernel(&s, &["gemm", "--n", "24", "--dtype", "f32", "--params", in_norm]);
    assert!(run.stderr.contains(&format!("  {in_norm}\n  from the command line\n")), "{}", run.stderr);
    // an entry whose conditions hold, with its speed and its comment, as it stands in the database
    for words in ["side<=40 tall terms>=40 terms<=40 groups>=9 groups<=9", "f64 opencl peak=1 half=1 alone=1"] {
        let entry = format!("gemm_tile {words} {tile}  # gflops=1 m=40");
        let run = kernel(&s, &["gemm", "--n", "40", "--params", &entry]);
        assert!(run.stderr.contains(&format!("  gemm_tile {tile}\n  from the command line\n")), "{}", run.stderr);
        assert!(run.stdout.contains("#define MWG 16\n"), "{}", run.stdout);
    }
    let run = kernel(&s, &["trsm", "--n", "40", "--list", "--params", "triangle items=8"]);
    assert!(run.stderr.contains("each of 8 work-items"), "{}", run.stderr);
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
    refused(
        &s,
        &["kernel", "gemm", "--n", "40", "--device", "cpu"],
        &["the CPU backend has no generated kernels: name one of ", "opencl:0"],
    );
}
