//! Tests of the messages that `solve` prints.

use crate::support::{Sandbox, refused};

#[test]
fn a_singular_matrix_names_its_column() {
    let s = Sandbox::new();
    s.text("a.csv", "1,2,3\n2,4,7\n0,0,1\n");
    s.text("b.csv", "1\n1\n1\n");
    let out = s.run(&["solve", "a.csv", "b.csv", "-o", "x.npy"]);
    assert_eq!(out.status, 1, "{}", out.stderr);
    assert!(["a.csv", "singular", "info = 2", "column 2"].iter().all(|word| out.stderr.contains(word)), "{}", out.stderr);
    assert_eq!(s.files(), ["a.csv", "b.csv"]);
}

#[test]
fn an_ill_conditioned_matrix_gets_a_warning() {
    let s = Sandbox::new();
    let hilbert = |n: u32| -> String {
        let row = |i| (0..n).map(|j| (1.0 / f64::from(i + j + 1)).to_string()).collect::<Vec<_>>().join(",");
        (0..n).map(|i| row(i) + "\n").collect()
    };
    let warned = |n: u32| {
        s.text("a.csv", &hilbert(n));
        s.text("b.csv", &"1\n".repeat(n as usize));
        let out = s.run(&["solve", "a.csv", "b.csv"]);
        assert_eq!(out.status, 0, "{}", out.stderr);
        out.stderr
    };
    assert_eq!(warned(3), "");
    assert!(warned(9).contains("ill-conditioned"));
    assert!(warned(14).contains("no digit of X can be trusted"));
}

#[test]
fn refinement_and_json_hold_every_figure() {
    let s = Sandbox::new();
    s.text("a.csv", "4,1\n1,3\n");
    s.text("b.csv", "1,2\n2,1\n");
    let out = s.run(&["solve", "a.csv", "b.csv", "--refine", "--json", "f.json", "--memory-limit", "64M"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert!(out.stdout.contains("GFLOP/s") && out.stdout.contains("refinement"), "{}", out.stdout);
    let figures = s.json("f.json");
    let keys = [
        "read_seconds",
        "factor_seconds",
        "solve_seconds",
        "check_seconds",
        "gflops",
        "rcond",
        "backward_error",
        "refinement_steps",
    ];
    assert!(keys.iter().all(|key| figures[key].is_number()), "{figures:#}");
    assert_eq!((&figures["n"], &figures["nrhs"], &figures["passed"]), (&2.into(), &2.into(), &true.into()));
    assert!(figures["devices"][0]["name"].is_string());
}

#[test]
fn tiny_numbers_are_printed_in_scientific_notation() {
    let s = Sandbox::new();
    s.text("a.csv", "1,0,0\n0,3,0\n0,0,1\n");
    s.text("b.csv", "1e-300,0,-2e-5\n1,1,1\n0.25,1e300,-3\n");
    let out = s.run(&["solve", "a.csv", "b.csv"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    assert!(!out.stdout.contains(&"0".repeat(12)), "{}", out.stdout);
    let words: Vec<&str> = out.stdout.split_whitespace().collect();
    for number in ["1e-300", "0", "-2e-5", "0.25", "1e300", "-3"] {
        assert!(words.contains(&number), "{number} is not in {}", out.stdout);
    }
    s.text("b.csv", "1e-9\n3e-9\n0\n");
    assert!(s.run(&["solve", "a.csv", "b.csv"]).stdout.contains("2.0000000000e-9"));
}

/// The name of an OpenCL device without double precision. `None` if the system has no such device.
fn single_precision_device(s: &Sandbox) -> Option<String> {
    let out = s.run(&["devices", "--json", "--device", "opencl"]).stdout;
    let list: serde_json::Value = serde_json::from_str(&out).unwrap_or_default();
    let device = list["devices"].as_array().into_iter().flatten().find(|device| device["f64"] == false);
    assert!(device.is_some() || std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "every OpenCL device has double precision");
    device.map(|device| device["name"].as_str().unwrap().to_owned())
}

#[test]
fn devices_that_cannot_take_part_are_not_named() {
    let s = Sandbox::new();
    let Some(single) = single_precision_device(&s) else { return };
    s.text("a.csv", "4,1\n1,3\n");
    s.text("b.csv", "1\n2\n");
    let device = format!("cpu:0+{single}");
    let on = |verb: &[&str]| {
        let out = s.run(&[verb, &["--device", &device, "--json", "f.json"]].concat());
        assert_eq!(out.status, 0, "{verb:?}: {}", out.stderr);
        let names: Vec<String> = s.json("f.json")["devices"].as_array().unwrap().iter().map(|d| d["name"].to_string()).collect();
        let printed = ["cpu:0", &single].map(|name| out.stdout.contains(name));
        (printed, names.len())
    };
    let (alone, both) = (([true, false], 1), ([true, true], 2));
    assert_eq!((on(&["solve", "a.csv", "b.csv"]), on(&["solve", "a.csv", "b.csv", "--dtype", "f32"])), (alone, both));
    assert_eq!((on(&["bench", "gemm", "--n", "8"]), on(&["bench", "gemm", "--n", "8", "--dtype", "f32"])), (alone, both));
    assert_eq!(on(&["hpl", "--n", "10"]), alone);
    // If the user selects only a device without double precision, the program refuses the call before it prints anything.
    refused(&s, &["bench", "gemm", "--n", "8", "--device", &single], &[&single, "no double precision; use --dtype f32"]);
    refused(&s, &["hpl", "--n", "10", "--device", &single], &[&single, "no double precision; add a device that has it"]);
}

#[test]
fn an_output_replaces_regular_files_only_and_no_input() {
    let s = Sandbox::new();
    s.text("a.csv", "2\n");
    s.text("b.csv", "4\n");
    for output in [["-o", "a.csv"], ["--json", "b.csv"], ["--json", "/dev/null"]] {
        let out = s.run(&[&["solve", "a.csv", "b.csv"][..], &output].concat());
        assert_eq!(out.status, 2, "{output:?}: {}", out.stderr);
    }
    assert_eq!(s.files(), ["a.csv", "b.csv"]);
}

#[test]
fn a_plan_of_endless_length_is_refused() {
    let s = Sandbox::new();
    for size in [["--n", "9999999999999"], ["--devices", "99999999"]] {
        for routine in ["gemm", "getrf", "trsm", "getrs"] {
            let out = s.run(&[&["plan", routine][..], &size].concat());
            assert_eq!(out.status, 2, "{routine} {size:?}: {}", out.stderr);
        }
    }
}

/// An element of X that underflows to zero makes X wrong, even if all other columns are correct.
#[test]
fn an_x_that_is_lost_below_the_range_is_wrong() {
    let s = Sandbox::new();
    s.text("a.csv", "2e200,1e200\n1e200,3e200\n");
    for b in ["1e-200\n3e-200\n", "1e-200,1\n3e-200,1\n"] {
        s.text("b.csv", b);
        let out = s.run(&["solve", "a.csv", "b.csv", "-o", "x.npy"]);
        assert!(out.status == 1 && out.stdout.contains("WRONG"), "{} {}", out.stdout, out.stderr);
    }
    // If B is zero, X = 0 is correct.
    s.text("b.csv", "0\n0\n");
    assert_eq!(s.run(&["solve", "a.csv", "b.csv"]).status, 0);
}

/// For so many columns, several threads compute the residual.
#[test]
fn one_wrong_column_of_many_is_found() {
    let s = Sandbox::new();
    let rows = |value: fn(usize, usize) -> f64, cols: usize| -> String {
        (0..90).map(|i| (0..cols).map(|j| value(i, j).to_string()).collect::<Vec<_>>().join(",") + "\n").collect()
    };
    s.text("a.csv", &rows(|i, j| if i == j { 1e200 } else { 0.0 }, 90));
    s.text("b.csv", &rows(|_, _| 1.0, 9000));
    assert_eq!(s.run(&["solve", "a.csv", "b.csv"]).status, 0);
    s.text("b.csv", &rows(|_, j| if j == 4567 { 1e-200 } else { 1.0 }, 9000));
    let out = s.run(&["solve", "a.csv", "b.csv"]);
    assert!(out.status == 1 && out.stdout.contains("WRONG"), "{} {}", out.stdout, out.stderr);
}
