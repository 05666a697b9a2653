//! Tests that compiled programs are kept in the cache on disk, with the first OpenCL device.

use std::fs;

use crate::support::{Sandbox, outcome, refused};

/// A folder for a test. `None` if the system has no OpenCL device.
pub fn sandbox() -> Option<Sandbox> {
    let s = Sandbox::new();
    let there = s.run(&["devices", "--device", "opencl:0"]).status == 0;
    assert!(there || std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "there is no OpenCL device");
    there.then_some(s)
}

/// Hits, misses and rejections of the program cache, from the trace of a product.
fn counts(s: &Sandbox) -> [u64; 3] {
    let args = ["bench", "gemm", "--n", "200", "--dtype", "f32", "--device", "opencl:0", "--reps", "1", "--trace", "t.json"];
    outcome(&s.run(&args), 0);
    let counts = &s.json("t.json")["otherData"]["program_cache"];
    ["hits", "misses", "rejected"].map(|key| counts[key].as_u64().unwrap())
}

#[test]
fn programs_are_kept_listed_counted_and_cleared() {
    let Some(s) = sandbox() else { return };
    let [hits, compiled, rejected] = counts(&s);
    assert!(hits == 0 && compiled > 0 && rejected == 0, "{hits} {compiled} {rejected}");
    assert_eq!(counts(&s), [compiled, 0, 0]);
    let list = s.run(&["cache", "list"]).stdout;
    assert!(list.lines().count() as u64 == compiled && list.contains("gemm"), "{list}");

    let path = fs::read_dir(s.path().join("cache")).unwrap().next().unwrap().unwrap().path();
    fs::write(&path, &fs::read(&path).unwrap()[..100]).unwrap();
    assert!(s.run(&["cache", "list"]).stdout.contains("damaged"));
    assert_eq!(counts(&s), [compiled - 1, 0, 1], "a damaged program is compiled again");
    assert_eq!(counts(&s), [compiled, 0, 0]);

    let removed = if compiled == 1 { "1 file removed\n".to_owned() } else { format!("{compiled} files removed\n") };
    assert_eq!(s.run(&["cache", "clear"]).stdout, removed);
    assert_eq!(s.run(&["cache", "list"]).stdout, "");
}

#[test]
fn the_stages_of_a_start_are_measured_cold_and_warm() {
    let Some(s) = sandbox() else { return };
    let run = s.run(&["bench", "startup", "--device", "opencl:0", "--json", "s.json", "--plot", "s.svg"]);
    outcome(&run, 0);
    let figures = s.json("s.json");
    let seconds = |state: &str, stage: &str| figures[state][stage].as_f64().unwrap_or_else(|| panic!("{state} {stage}: {figures}"));
    let compile = "compile or load the program";
    assert!([("cold", compile), ("warm", compile), ("warm", "all")].iter().all(|(state, stage)| seconds(state, stage) > 0.0));
    assert!(run.stdout.contains(compile) && s.read("s.svg").contains("<svg"));
    if std::env::var_os("LAPIDARY_REQUIRE_WGPU").is_some() {
        let run = s.run_with(&["bench", "startup"], &[("LAPIDARY_DEVICE", "wgpu:0")]);
        outcome(&run, 0);
        assert!(["open the device", "run", "run again", "all"].iter().all(|stage| run.stdout.contains(stage)), "{}", run.stdout);
    }
    // If OpenCL has only one device, the name of the backend selects that device.
    let one = s.run(&["devices", "--device", "opencl", "--json"]).stdout.matches("\"name\": \"opencl:").count() == 1;
    let run = s.run(&["bench", "startup", "--device", "OpenCL"]);
    outcome(&run, if one { 0 } else { 2 });
    assert!(!one || run.stdout.contains("first product on opencl:0"), "{}", run.stdout);
    let several = ["bench", "gemm", "--n", "4", "--resident", "--device", "cpu:0+opencl:0"];
    refused(&s, &several, &["--resident", "cpu:0", "opencl:0"]);
    refused(&s, &["bench", "startup", "--plot", "s.png"], &["s.png", ".svg"]);
    refused(&s, &["bench", "startup", "--json", "x.svg", "--plot", "./x.svg"], &["name the same file"]);
}
