//! Tests of the command `conformance`.

use crate::support::{Sandbox, outcome, refused};

const FEW: [&str; 5] = ["conformance", "--device", "cpu:0", "--filter", "f64::laswp"];

#[test]
fn a_run_prints_its_trials_and_writes_figures_and_a_page() {
    let s = Sandbox::new();
    let filter = ["--filter", "f64::gemm::*nan*", "--json", "r.json", "--report", "r.html"];
    let run = s.run(&[&["conformance", "--device", "cpu:0", "--quick", "--seed", "3"][..], &filter].concat());
    outcome(&run, 0);
    assert!(run.stdout.contains("passed                f64::gemm::nan_propagates"), "{}", run.stdout);
    assert!(run.stdout.contains("f64: precision") && run.stdout.contains("0 failed, 0 failed as expected"), "{}", run.stdout);
    let report = s.json("r.json");
    assert_eq!((&report["subject"]["name"], &report["mode"], &report["seed"]), (&"cpu:0".into(), &"quick".into(), &3.into()));
    let names: Vec<&str> = report["trials"].as_array().unwrap().iter().map(|trial| trial["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["f64::gemm::beta_zero_ignores_nan", "f64::gemm::nan_propagates", "f64::gemm::zero_times_infinity_is_nan"]);
    assert!(report["trials"][0]["figures"][0]["limit"].is_number() && report["grades"].as_array().unwrap().len() > 5);
    assert!(s.read("r.html").to_lowercase().starts_with("<!doctype html>"));
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let s = Sandbox::new();
    for file in ["a.json", "b.json"] {
        outcome(&s.run(&["conformance", "--device", "cpu:0", "--filter", "f32::solve::random", "--json", file]), 0);
    }
    outcome(&s.run(&["conformance", "--device", "cpu:0", "--filter", "f32::solve::random", "--seed", "2", "--json", "c.json"]), 0);
    let figures = |file: &str| s.json(file)["trials"][0]["figures"].clone();
    assert_eq!(figures("a.json"), figures("b.json"));
    assert_ne!(figures("a.json"), figures("c.json"));
}

#[test]
fn a_run_goes_on_where_it_was_cut_off() {
    let s = Sandbox::new();
    let few = |more: &[&'static str]| s.run(&[&FEW[..], more].concat());
    outcome(&few(&["--json", "r.json"]), 0);
    let mut report = s.json("r.json");
    let all = report["trials"].as_array().unwrap().len();
    report["trials"].as_array_mut().unwrap().truncate(1);
    report["trials"][0]["seconds"] = 1234.5.into();
    report["grades"] = serde_json::json!([]);
    s.text("r.json", &report.to_string());
    let run = few(&["--json", "r.json", "--resume"]);
    outcome(&run, 0);
    assert!(!run.stdout.contains("wrong_arguments") && run.stdout.contains("rows_move"), "{}", run.stdout);
    let report = s.json("r.json");
    assert_eq!((&report["trials"][0]["seconds"], report["trials"].as_array().unwrap().len()), (&1234.5.into(), all));
    refused(
        &s,
        &[&FEW[..], &["--json", "r.json", "--resume", "--seed", "9"]].concat(),
        &["r.json", "another run (seed: `1` there, `9` here)"],
    );
    let limited = [&FEW[..], &["--memory-limit", "64M", "--json", "r.json", "--resume"]].concat();
    refused(&s, &limited, &["r.json", "another run", "settings"]);
    s.text("built.json", &s.read("r.json").replace("\"build\": \"", "\"build\": \"x"));
    refused(&s, &[&FEW[..], &["--json", "built.json", "--resume"]].concat(), &["another run (build of the program: `x"]);
    s.text("old.json", "{\"format\": 99}");
    refused(&s, &[&FEW[..], &["--json", "old.json", "--resume"]].concat(), &["old.json", "format 99"]);
}

/// Runs a few trials, edits the report as if `beginnings` runs had been cut off in the trial `begun`, and resumes this report.
fn resumed(s: &Sandbox, begun: &str, beginnings: usize, status: i32) -> serde_json::Value {
    let go_on = || s.run(&[&FEW[..], &["--json", "r.json", "--resume"]].concat());
    outcome(&s.run(&[&FEW[..], &["--json", "r.json"]].concat()), 0);
    let mut report = s.json("r.json");
    assert!(report["begun"].is_null() && report["beginnings"] == 0);
    report["trials"].as_array_mut().unwrap().retain(|trial| trial["name"] != begun);
    (report["begun"], report["beginnings"], report["grades"]) = (begun.into(), beginnings.into(), serde_json::json!([]));
    s.text("r.json", &report.to_string());
    outcome(&go_on(), status);
    let report = s.json("r.json");
    outcome(&go_on(), status);
    assert_eq!(report, s.json("r.json"), "nothing is left to be done");
    report
}

#[test]
fn what_a_run_was_cut_off_in_is_tried_again_and_then_given_up() {
    let s = Sandbox::new();
    for (beginnings, status, check) in [(1, 0, None), (2, 1, Some("suite: ends"))] {
        let report = resumed(&s, "f64::laswp::rows_move", beginnings, status);
        let trials = report["trials"].as_array().unwrap().iter();
        let rows_move: Vec<_> = trials.filter(|trial| trial["property"] == "rows_move").collect();
        assert_eq!((rows_move.len(), rows_move[0]["failure"]["check"].as_str()), (1, check));
        let report = resumed(&s, "grades", beginnings, status);
        let grades = report["grades"].as_array().unwrap();
        assert_eq!(grades.iter().any(|grade| grade["failed"] == true), status == 1, "{grades:?}");
        assert_eq!(grades.len() > 5, status == 0, "{grades:?}");
    }
}

#[test]
fn a_trial_in_which_two_runs_are_stopped_has_failed() {
    let s = Sandbox::new();
    let long = ["conformance", "--device", "cpu:0", "--full", "--filter", "f64::getrf::large", "--json", "r.json", "--resume"];
    let is_begun = |beginnings: usize| {
        s.files().contains(&"r.json".to_owned()) && {
            let report = s.json("r.json");
            report["begun"] == "f64::getrf::large" && report["beginnings"] == beginnings
        }
    };
    for beginnings in [1, 2] {
        let mut running = s.start(&long);
        while !is_begun(beginnings) {
            assert!(running.try_wait().unwrap().is_none(), "it ended before it could be stopped");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        running.kill().unwrap();
        running.wait().unwrap();
    }
    let resumed = s.run(&long);
    outcome(&resumed, 1);
    assert_eq!(s.json("r.json")["trials"][0]["failure"]["check"], "suite: ends");
    assert!(resumed.stdout.contains("two runs were cut off in this trial"), "{}", resumed.stdout);
}

#[test]
fn files_that_cannot_be_read_or_written_are_told_at_once() {
    let s = Sandbox::new();
    s.text("half.json", "{\"format\": 1, ");
    let what = "a file that `lapidary conformance --json` has written";
    refused(&s, &[&FEW[..], &["--json", "half.json", "--resume"]].concat(), &["half.json", "--resume", what]);
    refused(&s, &["conformance", "--compare", "half.json", "--report", "x.html"], &["half.json", "--compare", what]);
    #[cfg(target_os = "linux")]
    for flag in ["--json", "--report"] {
        let run = s.run(&[&FEW[..], &[flag, "/proc/r"]].concat());
        outcome(&run, 1);
        assert!(run.stderr.contains("/proc/r: cannot write") && !run.stdout.contains("rows_move"), "{}", run.stderr);
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("elsewhere", s.path().join("link.json")).unwrap();
        refused(&s, &[&FEW[..], &["--json", "link.json"]].concat(), &["link.json", "is a link"]);
    }
}

#[test]
fn trials_are_listed_and_wrong_usage_is_told() {
    let s = Sandbox::new();
    let run = s.run(&["conformance", "--list", "--filter", "getrf::ties_keep"]);
    outcome(&run, 0);
    assert_eq!(run.stdout.lines().count(), 2, "{}", run.stdout);
    assert!(run.stdout.starts_with("f32::getrf::ties_keep_the_first_row "), "{}", run.stdout);
    refused(&s, &["conformance", "--device", "cpu:0", "--filter", "potrf"], &["potrf", "--list"]);
    refused(&s, &["conformance", "--quick", "--full"], &["--full"]);
    refused(&s, &["conformance", "--list", "--seed", "2"], &["--seed"]);
    refused(&s, &["conformance", "--subject", "blas:x", "--memory-limit", "1G"], &["--memory-limit"]);
    refused(&s, &["conformance", "--resume"], &["--json"]);
    refused(&s, &["conformance", "--subject", "blas:./none.so"], &["none.so"]);
    refused(&s, &["conformance", "--device", "cpu:0", "--json", "x", "--report", "x"], &["same file"]);
    outcome(&s.run(&["conformance", "--device", "opencl:99"]), 3);
}

#[test]
fn reports_are_put_side_by_side() {
    let s = Sandbox::new();
    for (device, file) in [("cpu:0", "one.json"), ("cpu:0,1", "two.json")] {
        outcome(&s.run(&["conformance", "--device", device, "--filter", "f64::laswp", "--json", file]), 0);
    }
    let run = s.run(&["conformance", "--compare", "one.json", "two.json", "--report", "both.html"]);
    outcome(&run, 0);
    assert!(
        run.stdout.contains("cpu:0 (one.json): conforms, 2 of 2 trials passed, 0 skipped\ncpu:0,1 (two.json): conforms"),
        "{}",
        run.stdout
    );
    let page = s.read("both.html");
    assert!(page.contains("A: cpu:0</th>") && page.contains("B: cpu:0,1</th>"), "{page}");
    refused(&s, &["conformance", "--compare", "one.json"], &["--report"]);
    refused(&s, &["conformance", "--compare", "one.json", "--report", "x.html", "--full"], &["--full"]);
    outcome(&s.run(&["conformance", "--list", "--filter", "large"]), 0);
    refused(&s, &["conformance", "--compare", "none.json", "--report", "x.html"], &["none.json"]);
    refused(
        &s,
        &["conformance", "--compare", "one.json", "--report", "./one.json"],
        &["--compare and --report name the same file"],
    );
    let mut report = s.json("one.json");
    report["grades"] = serde_json::json!([]);
    std::fs::write(s.path().join("cut.json"), report.to_string()).unwrap();
    let run = s.run(&["conformance", "--compare", "cut.json", "--report", "cut.html"]);
    assert!(run.stdout.contains("cut off") && s.read("cut.html").contains("cut off after"), "{}", run.stdout);
}

#[test]
fn a_file_with_a_trial_twice_or_an_unknown_one_is_not_gone_on_with() {
    let s = Sandbox::new();
    let resume = [&FEW[..], &["--json", "r.json", "--resume"]].concat();
    outcome(&s.run(&[&FEW[..], &["--json", "r.json"]].concat()), 0);
    let whole = s.json("r.json");
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut report = whole.clone();
        change(&mut report);
        s.text("r.json", &report.to_string());
    };
    with(&|report| {
        let first = report["trials"][0].clone();
        report["trials"].as_array_mut().unwrap().push(first);
    });
    refused(&s, &resume, &["r.json", "`f64::laswp::wrong_arguments_are_refused` twice", "leave out --resume"]);
    with(&|report| report["trials"][1]["name"] = "f64::laswp::rows_fly".into());
    refused(&s, &resume, &["r.json", "`f64::laswp::rows_fly`", "no trial of this run"]);
    with(&|report| report["begun"] = "f64::gemm::random".into());
    refused(&s, &resume, &["r.json", "`f64::gemm::random`", "no trial of this run"]);
    with(&|_| ());
    outcome(&s.run(&resume), 0);
}

#[test]
fn trials_without_enough_memory_are_skipped_with_the_reason() {
    let s = Sandbox::new();
    let limited = ["--filter", "f64::*random*", "--memory-limit", "1K", "--json", "r.json"];
    let run = s.run(&[&["conformance", "--device", "cpu:0"][..], &limited].concat());
    outcome(&run, 2);
    assert!(run.stdout.contains("too little memory: the limit is 1024 bytes"), "{}", run.stdout);
    let report = s.json("r.json");
    let trials = report["trials"].as_array().unwrap();
    assert!(trials.len() >= 3 && trials.iter().all(|trial| trial["verdict"] == "skipped"), "{report}");
    assert!(trials.iter().any(|trial| trial["failure"]["check"] == "getrf: completes"), "{report}");
    let grades = s.json("r.json")["grades"].clone();
    assert!(grades.as_array().unwrap().iter().all(|grade| grade["failed"] == false), "{grades}");
}

/// If the system allocates too little memory for the largest matrices, the trials with these matrices are skipped. No trial may
/// fail, and the program must not abort.
#[cfg(target_os = "linux")]
#[test]
fn a_small_address_space_skips_trials() {
    let s = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_lapidary");
    let command = format!("ulimit -v 150000; '{program}' conformance --device cpu:0 --filter 'f64::*::skinny' --json r.json");
    let output = std::process::Command::new("sh").args(["-c", &command]).current_dir(s.path()).output().unwrap();
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(matches!(output.status.code(), Some(0 | 2)), "{told}");
    let report = s.json("r.json");
    let trials = report["trials"].as_array().unwrap();
    let of = |verdict: &str| trials.iter().filter(|trial| trial["verdict"] == verdict).count();
    assert_eq!(of("passed") + of("skipped"), trials.len(), "{told}");
    assert!(trials.iter().any(|trial| trial["why"].as_str().unwrap().starts_with("too little memory")), "{told}");
}
