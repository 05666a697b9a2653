//! Tests of `lapidary bench --kernels`, with the first OpenCL device and the first wgpu device.

use crate::programs::sandbox;
use crate::support::{outcome, refused};

const BENCH: [&str; 8] = ["bench", "getrf", "--n", "60,90", "--reps", "1", "--resident", "--kernels"];

#[test]
fn kernels_and_tasks_of_each_size_are_printed_written_and_drawn() {
    let Some(s) = sandbox() else { return };
    let files = ["--device", "opencl:0", "--json", "k.json", "--trace", "t.svg", "--plot", "p.svg"];
    let run = s.run(&[&BENCH[..], &files].concat());
    outcome(&run, 0);
    for word in ["kernel ", "task ", "median µs", "panel", "update", "no kernel", "first start to end", "without records"] {
        assert!(run.stdout.matches(word).count() >= 2, "{word}: {}", run.stdout);
    }
    let document = s.json("k.json");
    for result in document["results"].as_array().unwrap() {
        let sum = |rows: &str, key: &str| -> f64 {
            result["kernels"][rows].as_array().unwrap().iter().map(|row| row[key].as_f64().unwrap()).sum()
        };
        for key in ["launches", "total_seconds"] {
            let [kernels, tasks] = ["kernels", "tasks"].map(|rows| sum(rows, key));
            assert!(kernels > 0.0 && (kernels - tasks).abs() <= 1e-9 * kernels, "{key}: {result}");
        }
        // each launch has a queue of its own at most, so that kernels and pauses cover the whole time
        let elapsed = result["kernels"]["elapsed_seconds"].as_f64().unwrap();
        let covered = sum("kernels", "total_seconds") + result["kernels"]["idle_seconds"].as_f64().unwrap();
        assert!(covered >= elapsed * (1.0 - 1e-9), "{result}");
    }
    let [trace, plot] = ["t.svg", "p.svg"].map(|file| s.read(file));
    assert!(["opencl:0 EXEC", "panel", "update", "n=90"].iter().all(|word| trace.contains(word)), "{trace}");
    assert!(["60", "90", "panel", "% of the time"].iter().all(|word| plot.contains(word)), "{plot}");
    // without the option, the document has no times of kernels
    let plain = ["bench", "gemm", "--n", "9", "--reps", "1", "--device", "opencl:0", "--json", "g.json"];
    outcome(&s.run(&plain), 0);
    assert!(s.json("g.json")["results"][0]["kernels"].is_null());
}

#[test]
fn kernels_of_a_wgpu_device_are_printed() {
    let Some(s) = sandbox() else { return };
    if std::env::var_os("LAPIDARY_REQUIRE_WGPU").is_none() {
        return;
    }
    let run = s.run(&[&BENCH[..], &["--dtype", "f32", "--device", "wgpu:0"]].concat());
    outcome(&run, 0);
    for word in ["kernel ", "task ", "panel", "update", "first start to end"] {
        assert!(run.stdout.matches(word).count() >= 2, "{word}: {}", run.stdout);
    }
}

#[test]
fn a_device_without_times_of_kernels_is_refused() {
    let Some(s) = sandbox() else { return };
    refused(&s, &[&BENCH[..], &["--device", "cpu"]].concat(), &["--kernels", "cpu", "--device opencl:0"]);
    let several = ["bench", "gemm", "--n", "4", "--kernels", "--device", "cpu:0+opencl:0"];
    refused(&s, &several, &["--kernels", "one OpenCL or wgpu device", "cpu:0"]);
}
