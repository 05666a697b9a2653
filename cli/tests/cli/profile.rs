//! Tests of `bench profile` and of `plan --profile`.

use serde_json::{Value, json};

use crate::support::{Sandbox, outcome, refused};

/// A profile of a device that computes 1 GFLOP/s in kernels of all shapes, and copies 1 GB/s.
fn profile() -> Value {
    let shapes = json!([{ "m": 1000, "n": 1000, "k": 1000, "nrhs": 1000, "pivots": 1000, "seconds": 1.0 }]);
    let times = json!({
        "lookahead": null, "beside_panel": 1, "gemm": [{ "m": 1, "n": 1, "k": 1, "seconds": 2e-9 }, { "m": 1000, "n": 1000, "k": 1000, "seconds": 2.0 }],
        "trsm": shapes, "getrf": shapes, "laswp": shapes,
    });
    json!({
        "name": "made:0", "description": "of a test", "memory": 4_000_000, "max_buffer": null, "queues": 1, "host_memory": false,
        "slowdown": 0, "sharers": [], "latency_seconds": 1e-9, "memory_bandwidth": 1e9,
        "to_device": [{ "bytes": 1000, "seconds": 1e-6 }], "to_host": [{ "bytes": 1000, "seconds": 1e-6 }], "f64": times,
    })
}

/// The device computes the product of order 400 in 0.128 s. Two devices compute blocks of it.
#[test]
fn plan_predicts_with_the_times_of_a_profile() {
    let s = Sandbox::new();
    s.text("p.json", &profile().to_string());
    let run = s.run(&["plan", "gemm", "--n", "400", "--profile", "p.json", "--json", "one.json"]);
    outcome(&run, 0);
    assert!(run.stdout.contains("gemm f64 m=400 n=400 k=400 on 1 device like made:0 (of a test)"), "{}", run.stdout);
    let one = &s.json("one.json")["predictions"][0];
    let (seconds, exec) = (one["seconds"].as_f64().unwrap(), one["shares"][0]["EXEC"].as_f64().unwrap());
    // beside the time of the kernels, only the transfers of the first and of the last blocks take time
    assert!((seconds * exec - 0.128).abs() < 1e-6 && (0.128..0.133).contains(&seconds), "{one}");
    assert_eq!(one["limit"], "EXEC");
    let table = s.run(&["plan", "gemm", "--n", "400,800", "--devices", "1,2", "--profile", "p.json", "--json", "all.json"]);
    outcome(&table, 0);
    assert_eq!(table.stdout.lines().count(), 6, "{}", table.stdout);
    let all = s.json("all.json");
    let speedup = all["predictions"][0]["seconds"].as_f64().unwrap() / all["predictions"][1]["seconds"].as_f64().unwrap();
    // one device may take three of the four blocks
    assert!((1.3..=2.0).contains(&speedup), "{all}");
}

/// A device that shares all its hardware with the others adds no speed.
#[test]
fn devices_that_share_hardware_are_not_faster_together() {
    let s = Sandbox::new();
    let mut shared = profile();
    shared["slowdown"] = json!(1.0);
    s.text("p.json", &shared.to_string());
    outcome(&s.run(&["plan", "gemm", "--n", "400", "--devices", "2", "--profile", "p.json", "--json", "two.json"]), 0);
    let seconds = s.json("two.json")["predictions"][0]["seconds"].as_f64().unwrap();
    assert!((0.127..0.135).contains(&seconds), "{seconds}");
}

#[test]
fn a_wrong_profile_is_refused_with_file_field_and_value() {
    let s = Sandbox::new();
    let plan = ["plan", "gemm", "--n", "400", "--profile", "p.json"];
    for (field, value, expected) in [
        ("queues", json!(0), "queues is 0: a positive whole number is needed"),
        ("latency_seconds", json!("short"), "latency_seconds is \"short\": a positive number is needed"),
        ("to_host", json!([]), "to_host is []: a list with ascending bytes"),
        ("speed", json!(1), "speed is 1: one of the fields name, "),
        ("f64", json!({ "lookahead": null, "beside_panel": -1 }), "f64.beside_panel is -1: a number from 0 on is needed"),
    ] {
        let mut wrong = profile();
        wrong[field] = value;
        s.text("p.json", &wrong.to_string());
        refused(&s, &plan, &["p.json: ", expected]);
    }
    s.text("p.json", "{");
    refused(&s, &plan, &["p.json: no JSON"]);
    s.text("p.json", &profile().to_string());
    refused(&s, &[&plan[..], &["--dtype", "f32"]].concat(), &["p.json: f32 is missing"]);
    for other in [["--gflops", "1"], ["--bandwidth", "1"], ["--latency", "1"], ["--memory-limit", "1M"], ["--queues", "1"]] {
        refused(&s, &[&plan[..], &other].concat(), &["--profile", other[0]]);
    }
    refused(&s, &["plan", "gemm", "--devices", "1,2"], &["--devices 1,2: ", "add --profile FILE"]);
}

#[test]
fn a_routine_without_a_plan_is_refused_for_each_list_of_devices() {
    let s = Sandbox::new();
    s.text("p.json", &profile().to_string());
    for devices in ["1", "1,2"] {
        refused(&s, &["plan", "gesv", "--n", "400", "--profile", "p.json", "--devices", devices], &["plan getrf and getrs"]);
    }
    refused(&s, &["plan", "gesv", "--n", "400"], &["plan getrf and getrs"]);
}

/// The CPU is measured quickly in one type, and its profile predicts a product in host memory, without transfers.
#[test]
fn a_measured_profile_is_read() {
    let s = Sandbox::new();
    let bench = s.run(&["bench", "profile", "--device", "cpu", "--dtype", "f64", "--longest", "0.01", "--json", "cpu.json"]);
    outcome(&bench, 0);
    let doc = s.json("cpu.json");
    assert_eq!((&doc["host_memory"], &doc["to_device"], &doc["slowdown"]), (&json!(true), &json!([]), &json!(0.0)));
    assert!(doc["f64"]["getrf"].as_array().unwrap().len() > 3 && doc["f32"].is_null(), "{doc}");
    let plan = s.run(&["plan", "gemm", "--n", "300", "--profile", "cpu.json", "--json", "p.json"]);
    outcome(&plan, 0);
    assert_eq!(s.json("p.json")["predictions"][0]["shares"][0]["LD"], 0.0);
}
