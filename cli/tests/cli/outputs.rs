//! Tests of outputs: files, standard output, and output names that the program refuses before it begins the work.

use serde_json::Value;

use crate::support::{Run, Sandbox, outcome, refused};

/// Parses the figures on standard output. The test fails if standard output contains any other text.
fn printed(run: &Run, status: i32) -> Value {
    outcome(run, status);
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {}", run.stdout))
}

#[test]
fn figures_go_to_standard_output_alone() {
    let s = Sandbox::new();
    s.text("a.csv", "2,1\n1,3\n");
    s.text("b.csv", "3\n5\n");
    let verbs: [(&[&str], &str); 8] = [
        (&["solve", "a.csv", "b.csv"], "rcond"),
        (&["bench", "gemm", "--n", "8", "--reps", "1"], "results"),
        (&["hpl", "--n", "8"], "residual"),
        (&["plan", "gemm", "--n", "8"], "commands"),
        (&["conformance", "--device", "cpu:0", "--filter", "f64::laswp"], "trials"),
        (&["devices"], "devices"),
        (&["cache", "list"], "programs"),
        (&["solve", "b.csv", "b.csv"], ""),
    ];
    for (verb, key) in &verbs[..7] {
        for to in if cfg!(unix) { &["-", "/dev/stdout"][..] } else { &["-"] } {
            let run = s.run(&[verb, &["--json", to][..]].concat());
            assert!(!printed(&run, 0)[key].is_null(), "{verb:?}: {}", run.stdout);
        }
        // With `--json FILE` the file contains the same key as standard output did.
        outcome(&s.run(&[verb, &["--json", "f.json"][..]].concat()), 0);
        assert!(!s.json("f.json")[key].is_null(), "{verb:?}");
    }
    // With `--json -` the program prints everything except the figures to standard error.
    let run = s.run(&["hpl", "--n", "8", "--json", "-"]);
    assert!(run.stderr.contains("PASSED"), "{}", run.stderr);
    // If the program refuses the input, standard output stays empty.
    let run = s.run(&[verbs[7].0, &["--json", "-"]].concat());
    assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    let both = s.run(&["plan", "gemm", "--n", "8", "--json", "-", "--dot", "-"]);
    assert!(both.status == 2 && both.stderr.contains("--json and --dot name the same file"), "{}", both.stderr);
    assert!(s.run(&["plan", "gemm", "--n", "8", "--dot", "-"]).stdout.starts_with("digraph"));
    assert_eq!(s.files(), ["a.csv", "b.csv", "f.json"]);
}

#[test]
fn a_run_that_goes_on_needs_a_file() {
    let s = Sandbox::new();
    refused(&s, &["conformance", "--device", "cpu:0", "--resume", "--json", "-"], &["--resume", "standard output"]);
}

#[test]
fn figures_of_a_singular_matrix_are_whole() {
    let s = Sandbox::new();
    s.text("a.csv", "1,2\n2,4\n");
    s.text("b.csv", "1\n1\n");
    let figures = printed(&s.run(&["solve", "a.csv", "b.csv", "--json", "-"]), 1);
    assert_eq!((&figures["n"], &figures["passed"], &figures["singular"]), (&2.into(), &false.into(), &true.into()), "{figures}");
    assert!(figures["devices"][0]["name"].is_string() && figures["info"] == 2, "{figures}");
}

#[test]
fn infinities_and_nan_are_told_apart() {
    let s = Sandbox::new();
    // The solution X of this system is (∞, 1e300).
    s.text("a.csv", "1e-300,0\n0,1e-300\n");
    s.text("b.csv", "1e300\n1\n");
    let figures = printed(&s.run(&["solve", "a.csv", "b.csv", "--json", "-"]), 1);
    let is_number = |value: &Value| value.is_number() || ["NaN", "inf", "-inf"].iter().any(|text| value == text);
    for key in ["rcond", "backward_error", "x_sum", "x_min", "x_max", "x_norm_frobenius"] {
        assert!(is_number(&figures[key]), "{key}: {figures:#}");
    }
    assert!(figures["x"].as_array().unwrap().iter().all(is_number), "{figures:#}");
    assert!(figures.to_string().contains("\"NaN\""), "{figures:#}");
}

#[test]
fn a_page_is_named_as_one() {
    let s = Sandbox::new();
    let filter = ["conformance", "--device", "cpu:0", "--filter", "f64::laswp"];
    for name in ["r.txt", "r", "-"] {
        refused(&s, &[&filter[..], &["--report", name]].concat(), &["--report", ".html"]);
    }
    outcome(&s.run(&[&filter[..], &["--report", "r.html"]].concat()), 0);
}

#[test]
fn names_that_no_folder_takes_are_refused_before_the_work() {
    let s = Sandbox::new();
    s.text("a.csv", "2\n");
    let long = "x".repeat(252) + ".csv";
    refused(&s, &["solve", "a.csv", "a.csv", "-o", &long], &[&long, "too long"]);
    refused(&s, &["hpl", "--n", "20000", "--json", &long], &[&long, "too long"]);
}

#[cfg(unix)]
#[test]
fn a_write_protected_file_is_kept_and_a_replaced_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let s = Sandbox::new();
    s.text("a.csv", "2\n");
    s.text("x.csv", "earlier\n");
    let path = s.path().join("x.csv");
    let set = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
    set(0o444);
    refused(&s, &["solve", "a.csv", "a.csv", "-o", "x.csv"], &["x.csv", "write-protected"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "earlier\n");
    set(0o640);
    outcome(&s.run(&["solve", "a.csv", "a.csv", "-o", "x.csv"]), 0);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
}

/// The program must not print warnings of loaders and drivers about a missing display.
#[cfg(unix)]
#[test]
fn devices_are_listed_without_remarks_of_drivers() {
    let s = Sandbox::new();
    for folder in [None, Some(""), Some("relative")] {
        let mut command = s.command(&["devices"]);
        command.env_remove("XDG_RUNTIME_DIR").envs(folder.map(|folder| ("XDG_RUNTIME_DIR", folder)));
        let output = command.output().unwrap();
        assert_eq!((String::from_utf8(output.stderr).unwrap().as_str(), output.status.success()), ("", true), "{folder:?}");
    }
}
