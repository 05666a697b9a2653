//! Tests of the command `conformance` with libraries that end the process, crash or hang.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::support::{Run, Sandbox, outcome, refused};

/// Compiles a BLAS library of plain loops. Those routines that the variable `FATE` names end the process or hang.
fn library() -> &'static str {
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fatal{}", std::env::consts::DLL_SUFFIX));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/tests/foreign/library.rs");
        let mut rustc = Command::new("rustc");
        rustc.args(["--edition=2021", "--crate-type=cdylib", "-Copt-level=1", "-Awarnings", "--cfg", "fatal", source, "-o"]);
        let status = rustc.arg(&path).envs([("SUFFIX", "_"), ("C_SUFFIX", ""), ("PREFIX", "")]).status().expect("rustc runs");
        assert!(status.success(), "{rustc:?}");
        format!("blas:{}", path.display())
    });
    &NAME
}

/// Runs the trials that `filter` selects, with the additional options `more`.
fn tried(s: &Sandbox, failure_mode: &str, filter: &str, more: &[&str]) -> Run {
    let args = ["conformance", "--subject", library(), "--filter", filter, "--json", "r.json"];
    s.run_with(&[&args[..], more].concat(), &[("FATE", failure_mode)])
}

/// Names and verdicts of the trials in the report, in the order of the report.
fn verdicts(s: &Sandbox) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let report = s.json("r.json");
    assert!(report["begun"].is_null() && !report["grades"].as_array().unwrap().is_empty(), "the report is complete");
    report["trials"].as_array().unwrap().iter().map(|trial| (text(&trial["name"]), text(&trial["verdict"]))).collect()
}

#[test]
fn a_trial_that_ends_the_process_has_failed_and_the_others_are_run() {
    let s = Sandbox::new();
    let all = ["f32::gemm", "f32::getrf", "f32::solve", "f64::gemm", "f64::getrf", "f64::solve"];
    for (end, how) in [("exit", "exit status: 0"), ("stop", "STOP 3"), ("abort", "SIGABRT"), ("segfault", "SIGSEGV")] {
        let run = tried(&s, &format!("getrs={end}"), "::random", &["--report", "r.html"]);
        outcome(&run, 1);
        let expected =
            all.map(|trial| (format!("{trial}::random"), if trial.ends_with("solve") { "failed" } else { "passed" }.to_owned()));
        assert_eq!(verdicts(&s), expected, "{end}");
        let failure = &s.json("r.json")["trials"][2]["failure"];
        assert_eq!(failure["check"], "suite: ends");
        #[cfg(unix)]
        assert!(failure["detail"].as_str().unwrap().contains(how), "{failure}");
        let told = run.stdout.contains("4 passed, 2 failed") && run.stdout.contains("--filter f64::solve::random");
        assert!(told && s.read("r.html").contains("f32::solve::random"), "{}", run.stdout);
    }
    let run = tried(&s, "getrs=exit", "::random", &["--resume"]);
    outcome(&run, 1);
    assert!(!run.stderr.contains("::random …") && run.stdout.contains("4 passed, 2 failed"), "{}", run.stderr);
}

#[test]
fn a_hang_is_ended_after_the_time_that_the_user_sets() {
    let s = Sandbox::new();
    let run = tried(&s, "laswp=hang", "f64::laswp::rows_move", &["--timeout", "10"]);
    outcome(&run, 1);
    assert_eq!(verdicts(&s), [("f64::laswp::rows_move".to_owned(), "failed".to_owned())]);
    let failure = &s.json("r.json")["trials"][0]["failure"];
    assert_eq!((&failure["check"], failure["detail"].as_str().unwrap().contains("within 10 s")), (&"suite: ends".into(), true));
    refused(&s, &["conformance", "--timeout", "0"], &["--timeout"]);
}

/// The library kills the worker process twice and hangs once. In the report, the three trials in which the worker process was
/// killed or hung must have failed, and all other trials must have passed.
#[test]
fn a_run_outlives_two_crashes_and_a_hang() {
    let s = Sandbox::new();
    let start = Instant::now();
    let run = tried(&s, "", "::random", &[]);
    let undisturbed = start.elapsed();
    outcome(&run, 0);
    let all = verdicts(&s);
    assert!(all.iter().all(|(_, verdict)| verdict == "passed"), "{all:?}");
    let start = Instant::now();
    let run = tried(&s, "getrs=abort,dgemm=hang", "::random", &["--timeout", "20", "--report", "r.html"]);
    outcome(&run, 1);
    // A trial and a grade call the hanging routine gemm, so that the run waits twice for the time limit.
    let limit = Duration::from_secs(2 * 20);
    assert!(
        start.elapsed() < 2 * undisturbed + limit + Duration::from_secs(30),
        "{:?}, undisturbed {undisturbed:?}",
        start.elapsed()
    );
    let failed = ["f32::solve::random", "f64::gemm::random", "f64::solve::random"];
    let expected: Vec<_> = all
        .into_iter()
        .map(|(name, passed)| if failed.contains(&&*name) { (name, "failed".to_owned()) } else { (name, passed) })
        .collect();
    assert_eq!(verdicts(&s), expected);
    let told = format!("the process of the trials was lost in 3 trials: {}", failed.join(", "));
    assert!(run.stdout.contains(&told), "{}", run.stdout);
    assert!(s.read("r.html").contains("3 trials went wrong, of which 3 ended the process"));
}

#[test]
fn grades_that_end_the_process_have_failed() {
    let s = Sandbox::new();
    let run = tried(&s, "gemm=exit", "f64::laswp::rows_move", &[]);
    outcome(&run, 1);
    assert_eq!(verdicts(&s), [("f64::laswp::rows_move".to_owned(), "passed".to_owned())]);
    assert!(run.stderr.contains("not as they should be: 0 trials and 1 grade"), "{}", run.stderr);
}

#[test]
fn a_library_that_ends_the_process_while_it_is_loaded_is_told() {
    let s = Sandbox::new();
    for failure_mode in ["dot=exit", "dot=abort", "load=exit", "load=_exit", "load=segfault"] {
        if failure_mode.starts_with("load") && !cfg!(target_os = "linux") {
            continue;
        }
        let run = tried(&s, failure_mode, "f64::laswp", &[]);
        outcome(&run, 1);
        assert!(
            run.stderr.contains("while it is opened") && run.stderr.contains("ends the process"),
            "{failure_mode}: {}",
            run.stderr
        );
        assert!(!s.files().contains(&"r.json".to_owned()));
    }
}
