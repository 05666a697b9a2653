//! Tests of the command `hpl`.

use crate::support::{Sandbox, outcome, refused};

#[test]
fn hpl_passes_and_reports() {
    let s = Sandbox::new();
    let out = s.run(&["hpl", "--n", "100", "--json", "h.json"]);
    outcome(&out, 0);
    let lines: Vec<&str> = out.stdout.lines().collect();
    let row = lines.iter().find(|line| line.starts_with("WR")).unwrap();
    let fields: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((fields.len(), &fields[..2], fields[3]), (7, &["WR10R2R1", "100"][..], "1"), "{row}");
    let verdict = lines.iter().find(|line| line.starts_with("||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= ")).unwrap();
    assert!(verdict.ends_with(" ...... PASSED"), "{verdict}");
    let figures = s.json("h.json");
    let figure = |key: &str| figures[key].as_f64().unwrap_or_else(|| panic!("{key}: {figures}"));
    let printed: f64 = verdict.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!((figure("residual") / printed - 1.0).abs() < 1e-6 && printed < 16.0, "{verdict}");
    let operations = 2.0 / 3.0 * 1e6 + 1.5 * 1e4;
    assert!((figure("gflops") * figure("seconds") * 1e9 / operations - 1.0).abs() < 1e-9, "{figures}");
    assert_eq!((figure("seed"), &figures["memory"], &figures["mxp"]), (100.0, &"host".into(), &false.into()));
    refused(&s, &["hpl", "--n", "0"], &["--n"]);
}

#[test]
fn factors_in_f32_are_refined() {
    let s = Sandbox::new();
    let out = s.run(&["hpl", "--n", "300", "--mxp", "--json", "h.json", "--device", "cpu:0"]);
    outcome(&out, 0);
    assert!(out.stdout.contains("PASSED") && out.stdout.contains("factors in f32"), "{}", out.stdout);
    let figures = s.json("h.json");
    assert!(figures["refinement_steps"].as_f64().unwrap() >= 1.0 && figures["mxp"] == true, "{figures}");
    refused(&s, &["hpl", "--n", "300", "--mxp", "--memory", "device"], &["--mxp", "--memory device"]);
}

#[test]
fn the_matrix_may_lie_on_one_device() {
    let s = Sandbox::new();
    let out = s.run(&["hpl", "--n", "200", "--memory", "device", "--json", "h.json", "--device", "cpu:0"]);
    outcome(&out, 0);
    assert!(out.stdout.contains("in device memory") && out.stdout.contains("PASSED"), "{}", out.stdout);
    assert_eq!(s.json("h.json")["memory"], "device");
    let several = ["hpl", "--n", "200", "--memory", "device", "--device", "cpu:0,1"];
    refused(&s, &several, &["--memory device", "one device", "cpu:0", "cpu:1"]);
}

#[test]
fn the_trace_shows_the_commands_of_the_run() {
    let s = Sandbox::new();
    outcome(&s.run(&["hpl", "--n", "600", "--device", "cpu:0,1", "--memory-limit", "4M", "--trace", "t.json"]), 0);
    let document = s.json("t.json");
    let events = document["traceEvents"].as_array().unwrap();
    let is_kernel = |event: &&serde_json::Value| event["name"].as_str().is_some_and(|name| name.starts_with("EXEC"));
    assert!(events.iter().filter(is_kernel).count() > 3, "{document}");
    refused(&s, &["hpl", "--n", "60", "--trace", "t.txt"], &["t.txt", ".json"]);
    refused(&s, &["hpl", "--n", "60", "--trace", "t.json", "--json", "t.json"], &["--trace name the same file"]);
}

#[test]
fn one_order_is_needed() {
    let s = Sandbox::new();
    for order in ["1,2", "0", "4294967296", "1e3"] {
        refused(&s, &["hpl", "--n", order], &["--n", order, "one whole number from 1 to 4294967295 is needed"]);
    }
    refused(&s, &["hpl", "--n", "4", "--nb", "0"], &["--nb", "a whole positive number is needed"]);
    refused(&s, &["hpl", "--n", "4", "--seed", "-1"], &["--seed", "a whole number from 0 to 18446744073709551615 is needed"]);
}

/// One of two devices of the CPU factors a small matrix.
#[test]
fn a_device_that_takes_no_part_is_named() {
    let s = Sandbox::new();
    let unused = |device: &str| {
        let run = s.run(&["hpl", "--n", "100", "--device", device, "--json", "h.json"]);
        outcome(&run, 0);
        run.stdout.lines().find(|line| line.starts_with("unused")).map(str::to_owned)
    };
    assert_eq!(unused("cpu:0"), None);
    assert_eq!(s.json("h.json")["unused"], serde_json::json!([]));
    assert_eq!(unused("cpu:0,1").as_deref(), Some("unused    cpu:1"));
    assert_eq!(s.json("h.json")["unused"], serde_json::json!(["cpu:1"]));
}

#[test]
fn a_device_that_is_named_twice_is_refused() {
    let s = Sandbox::new();
    let hpl = ["hpl", "--n", "4"];
    for (selection, words) in [
        ("cpu:0,0", "device cpu:0 is named twice"),
        ("opencl:0,opencl:0", "device opencl:0 is named twice"),
        ("cpu:1,cpu:0,cpu:1", "device cpu:1 is named twice"),
        ("opencl:0+opencl:0", "device opencl:0 is named twice"),
        ("cpu,cpu", "cpu is named twice; write cpu:0,1"),
    ] {
        refused(&s, &[&hpl[..], &["--device", selection]].concat(), &[words, &format!("option: --device {selection}")]);
        let run = s.run_with(&hpl, &[("LAPIDARY_DEVICE", selection)]);
        outcome(&run, 2);
        assert!(run.stderr.contains(words) && run.stderr.contains("LAPIDARY_DEVICE"), "{selection}: {}", run.stderr);
    }
}

#[test]
fn copies_of_the_matrix_count_as_memory() {
    let s = Sandbox::new();
    // A takes 9.2 MiB, its copy in f32 4.6 MiB and its copy in f64 9.2 MiB. The program adds an eighth.
    for (options, memory, words) in [
        (&["--mxp"][..], "12M", ["with a copy of A in f32 takes at least 15.6 MiB", "12.0 MiB can be had"]),
        (&["--memory", "device"], "16M", ["order 1100 takes at least 20.8 MiB", "16.0 MiB can be had"]),
    ] {
        let args = [&["hpl", "--n", "1100", "--device", "cpu:0"][..], options].concat();
        let run = s.run_with(&args, &[("LAPIDARY_HOST_MEMORY", memory)]);
        outcome(&run, 2);
        assert!(words.iter().all(|word| run.stderr.contains(word)), "{options:?}: {}", run.stderr);
        assert!(!run.stderr.contains("generate"), "{options:?}: {}", run.stderr);
    }
}

#[test]
fn a_matrix_that_the_device_cannot_hold_is_refused_before_the_warm_up() {
    let s = Sandbox::new();
    let hpl = ["hpl", "--n", "1100", "--device", "cpu:0", "--memory", "device", "--memory-limit", "4M"];
    let run = s.run(&hpl);
    outcome(&run, 2);
    assert!(run.stderr.contains("--memory-limit sets the limit"), "{}", run.stderr);
    assert!(!run.stderr.contains("warm up"), "{}", run.stderr);
}
