//! Tests of the commands `bench`, `plan` and `devices`, and of options that several commands share.

use std::collections::HashSet;

use serde_json::json;

use crate::support::{Sandbox, le32, npy, outcome, refused};

#[test]
fn bench_checks_times_and_plots() {
    let s = Sandbox::new();
    let flags = ["--n", "8,16", "--reps", "3", "--json", "r.json", "--plot", "r.svg"];
    for routine in ["gemm", "trsm", "getrf", "getrs", "gesv"] {
        for dtype in ["f32", "f64"] {
            let out = s.run(&[&["bench", routine, "--dtype", dtype][..], &flags].concat());
            outcome(&out, 0);
            let doc = s.json("r.json");
            assert_eq!((&doc["routine"], &doc["dtype"]), (&routine.into(), &dtype.into()));
            let result = &doc["results"][1];
            assert_eq!((&result["sizes"]["n"], &result["ours"]["check"]["passed"]), (&16.into(), &true.into()));
            assert_eq!(result["ours"]["samples_seconds"].as_array().unwrap().len(), 3);
            assert!(["median_seconds", "min_seconds", "max_seconds", "gflops"].iter().all(|k| result["ours"][k].is_number()));
            assert!(s.read("r.svg").starts_with("<svg"));
        }
    }
    let out = s.run(&["bench", "laswp", "--n", "40", "--m", "60", "--reps", "3", "--json", "r.json"]);
    outcome(&out, 0);
    assert!(out.stdout.contains("0.000 ok"), "{}", out.stdout);
    assert_eq!(s.json("r.json")["results"][0]["ours"]["check"]["passed"], true);
    refused(&s, &["bench", "laswp", "--n", "4", "--plot", "r.svg"], &["--plot", "laswp does no floating-point operations"]);
}

#[test]
fn bench_takes_every_flag_of_the_routines() {
    let s = Sandbox::new();
    for (side, uplo) in [("l", "u"), ("r", "l"), ("R", "U")] {
        let flags = ["--side", side, "--uplo", uplo, "--transa", "T", "--diag", "u", "--m", "9", "--n", "5", "--reps", "1"];
        outcome(&s.run(&[&["bench", "trsm"][..], &flags].concat()), 0);
    }
    outcome(&s.run(&["bench", "gemm", "--m", "4", "--n", "6", "--k", "9", "--transa", "t", "--transb", "t", "--reps", "1"]), 0);
    outcome(&s.run(&["bench", "gesv", "--n", "40", "--resident", "--device", "cpu:0", "--memory-limit", "64K", "--reps", "1"]), 0);
    outcome(&s.run(&["bench", "getrf", "--m", "7", "--n", "12", "--reps", "1"]), 0);
    let mixed = s.run(&["bench", "gesv", "--n", "60,150", "--nrhs", "2", "--mixed", "--reps", "1", "--json", "m.json"]);
    outcome(&mixed, 0);
    let told = |words: &str| mixed.stdout.contains(words);
    assert!(told("gesv_mixed f64") && told("gesv ms") && told("factors in f32, "), "{}", mixed.stdout);
    refused(&s, &["bench", "getrf", "--mixed"], &["--mixed solves by gesv in f64, not by getrf in f64"]);
    refused(&s, &["bench", "gesv", "--mixed", "--dtype", "f32"], &["not by gesv in f32"]);
    refused(&s, &["bench", "gemm", "--n", "4,5", "--m", "1,2,3"], &["--m lists 3 sizes, --n 2"]);
    refused(&s, &["bench", "gemm", "--n", "4", "--k", "0"], &["--k is 0"]);
    refused(&s, &["bench", "gemm", "--n", "0"], &["--n is 0"]);
    refused(&s, &["bench", "gemm", "--peer", "./none.so"], &["none.so: cannot load", "No such file"]);
    refused(&s, &["bench", "potrf"], &["potrf"]);
}

/// A memory limit that allows only tiny tiles is refused before the program makes a plan, since a plan with so many commands would
/// take minutes and gigabytes of memory.
#[test]
fn a_memory_limit_that_cuts_too_small_is_refused() {
    let s = Sandbox::new();
    for verb in ["bench", "plan"] {
        for (routine, n, limit) in [("gemm", "1500", "1K"), ("trsm", "1024", "12784")] {
            let device: &[&str] = if verb == "bench" { &["--device", "cpu"] } else { &[] };
            let flags = ["--n", n, "--memory-limit", limit];
            let run = s.run(&[&[verb, routine][..], &flags, device].concat());
            outcome(&run, 2);
            assert!(run.stderr.contains("the limit is too small, at least"), "{verb} {routine}: {}", run.stderr);
        }
    }
    // A memory limit below the smallest working set has another message.
    for (routine, n, needed) in [("gemm", "100", "1536"), ("getrf", "400", "51200")] {
        let plan = |limit| ["plan", routine, "--n", n, "--memory-limit", limit];
        let words = ["the memory limit of each device (--memory-limit) is 1024 B", &format!("needs a limit of {needed} B")];
        refused(&s, &plan("1K"), &words);
        outcome(&s.run(&plan(needed)), 0);
    }
    let bench = ["bench", "getrf", "--n", "400", "--device", "cpu"];
    let option = s.run(&[&bench[..], &["--memory-limit", "1K"]].concat());
    outcome(&option, 2);
    assert!(option.stderr.contains("; --memory-limit sets the limit"), "{}", option.stderr);
    let variable = s.run_with(&bench, &[("LAPIDARY_MEMORY_LIMIT", "1K")]);
    outcome(&variable, 2);
    assert!(variable.stderr.contains("; LAPIDARY_MEMORY_LIMIT sets the limit"), "{}", variable.stderr);
    refused(&s, &["plan", "getrf", "--n", "50000", "--nb", "1"], &["larger panels (--nb"]);
}

#[test]
fn plans_are_printed_traced_and_drawn() {
    let s = Sandbox::new();
    for (routine, n) in [("gemm", "300"), ("trsm", "300"), ("getrf", "300"), ("getrs", "300"), ("laswp", "1200")] {
        let flags = ["--n", n, "--devices", "2", "--memory-limit", "512K", "--trace", "t.json", "--dot", "t.dot"];
        let nrhs: &[&str] = if routine == "getrs" { &["--nrhs", "40"] } else { &[] };
        let out = s.run(&[&["plan", routine][..], &flags, nrhs].concat());
        outcome(&out, 0);
        assert!(out.stdout.contains(&format!("schedule {routine} f64: 2 devices")), "{}", out.stdout);
        let events = s.json("t.json")["traceEvents"].as_array().unwrap().clone();
        assert!(events.iter().any(|e| e["ph"] == "X" && e["dur"].as_f64().unwrap() > 0.0 && e["pid"] == 1));
        let dot = s.read("t.dot");
        assert!(dot.starts_with(&format!("digraph \"{routine} f64\" {{")) && dot.contains("label="), "{dot}");
    }
    assert!(s.run(&["plan", "gemm", "--n", "8"]).stdout.starts_with("schedule gemm f64: 1 device, "));
    // The simulated time is several hours, and the register numbers have three digits.
    let long = s.run(&[
        "plan",
        "getrf",
        "--n",
        "9000",
        "--memory-limit",
        "300M",
        "--nb",
        "300",
        "--gflops",
        "1e-3",
        "--bandwidth",
        "1e-4",
    ]);
    outcome(&long, 0);
    for line in long.stdout.lines().skip(3) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let times = words[..2].iter().filter(|word| word.parse::<f64>().is_ok()).count();
        assert!(times == 2 && words[2] == "0" && words[3].starts_with('p'), "{line}");
    }
    refused(&s, &["plan", "gesv"], &["getrf followed by getrs"]);
    refused(&s, &["plan", "gemm", "--trace", "t.svg"], &["t.svg", ".json"]);
    refused(&s, &["plan", "gemm", "--n", "4", "--gflops", "nan"], &["--gflops NaN", "from 1e-9"]);
    refused(&s, &["plan", "gemm", "--n", "4,5"], &["one size"]);
    refused(&s, &["plan", "gemm", "--gflops", "0"], &["--gflops 0.0", "from 1e-9"]);
}

/// The file `thread_siblings_list` of each hardware thread. The list is empty if the system has no such files.
fn thread_siblings() -> Vec<String> {
    let list = |cpu| std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")).ok();
    (0..1024).filter_map(list).collect()
}

#[test]
fn devices_are_listed_and_missing_ones_have_their_status() {
    let s = Sandbox::new();
    let out = s.run(&["devices", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let cpu = list["devices"].as_array().unwrap().iter().find(|d| d["name"] == "cpu").unwrap();
    assert_eq!((&cpu["f64"], &cpu["dtypes"]), (&json!(true), &json!(["f32", "f64"])), "{list}");
    let threads = std::thread::available_parallelism().unwrap().get();
    let siblings = thread_siblings();
    let expected = match siblings.len() {
        0 => threads..=threads,
        // Hardware threads of the same core count as one compute unit.
        known if known == threads => {
            let cores = siblings.iter().collect::<HashSet<_>>().len();
            cores..=cores
        }
        // The operating system may restrict this process to some of the hardware threads.
        _ => 1..=threads,
    };
    assert!(expected.contains(&(cpu["compute_units"].as_u64().unwrap() as usize)), "{list}");
    assert!(cpu["vendor"].is_string() && cpu["driver"].as_str().unwrap().starts_with("lapidary"), "{list}");
    assert!(s.run(&["devices"]).stdout.starts_with("cpu "));
    let logical: serde_json::Value = serde_json::from_str(&s.run(&["devices", "--device", "cpu:1", "--json"]).stdout).unwrap();
    assert_eq!(
        (&logical["devices"][0]["name"], &logical["devices"][0]["compute_units"]),
        (&json!("cpu:1"), &json!(1)),
        "{logical}"
    );
    outcome(&s.run(&["devices", "--device", "opencl:99"]), 3);
    outcome(&s.run(&["hpl", "--n", "4", "--device", "opencl:99"]), 3);
}

#[test]
fn a_selection_that_cannot_be_read_is_wrong_usage_and_one_of_nothing_no_such_device() {
    let s = Sandbox::new();
    for selection in ["", "+", "cpu+", "cpu:", ":0", "cpu:x", "cpu:0,,1", "cpu,opencl", "all+cpu", "cuda:x", "cuda+"] {
        let why = if selection.is_empty() || selection.ends_with('+') { "is missing" } else { "`" };
        refused(&s, &["devices", "--device", selection], &["select", why]);
        refused(&s, &["bench", "startup", "--device", selection], &["select", why]);
    }
    for selection in ["cuda", "cuda:0", "cpu+cuda", "opencl:99", "cpu:0+opencl:99"] {
        let run = s.run(&["devices", "--device", selection]);
        outcome(&run, 3);
        assert!(run.stderr.contains(selection.rsplit('+').next().unwrap().split(':').next().unwrap()), "{}", run.stderr);
    }
    for (selection, right) in [("opencl,wgpu", "opencl+wgpu"), ("cpu:0,1,opencl:0", "cpu:0,1+opencl:0")] {
        refused(&s, &["devices", "--device", selection], &[selection, &format!("write {right}")]);
    }
    for selection in ["CPU", "Cpu:0", "ALL"] {
        outcome(&s.run(&["devices", "--device", selection]), 0);
    }
    refused(&s, &["devices", "--device", "wgpu:-1"], &["`-1`", "wgpu:0,1"]);
    assert!(s.run(&["devices", "--device", "cuda"]).stderr.contains("there is: cpu, opencl"));
    // An empty environment variable counts as unset.
    outcome(&s.run_with(&["devices"], &[("LAPIDARY_DEVICE", "")]), 0);
    outcome(&s.run_with(&["devices"], &[("LAPIDARY_DEVICE", "+")]), 2);
    outcome(&s.run_with(&["devices"], &[("LAPIDARY_DEVICE", "cuda")]), 3);
    // If an environment variable selected the device, the message names this variable.
    for verb in [&["hpl", "--n", "4"][..], &["conformance", "--quick"]] {
        let missing = s.run_with(verb, &[("LAPIDARY_DEVICE", "opencl:99")]);
        outcome(&missing, 3);
        assert!(missing.stderr.contains("variable: LAPIDARY_DEVICE"), "{}", missing.stderr);
    }
    let flag = s.run_with(&["hpl", "--n", "4", "--device", "opencl:98"], &[("LAPIDARY_DEVICE", "opencl:99")]);
    assert!(!flag.stderr.contains("LAPIDARY_DEVICE") && flag.stderr.contains("option: --device opencl:98"), "{}", flag.stderr);
    let several = s.run_with(&["bench", "startup"], &[("LAPIDARY_DEVICE", "cpu:0")]);
    outcome(&several, 2);
    assert!(several.stderr.contains("LAPIDARY_DEVICE=cpu:0"), "{}", several.stderr);
    // The path of the cache folder names a file here.
    std::fs::write(s.path().join("programs"), "").unwrap();
    for action in ["list", "clear"] {
        let run = s.run_with(&["cache", action], &[("LAPIDARY_CACHE_DIR", s.path().join("programs").to_str().unwrap())]);
        outcome(&run, 1);
        assert!(run.stderr.contains("programs: "), "{}", run.stderr);
    }
}

#[test]
fn help_answers_with_examples() {
    let s = Sandbox::new();
    for verb in ["devices", "solve", "bench", "hpl", "plan", "conformance"] {
        let out = s.run(&[verb, "--help"]);
        assert_eq!(out.status, 0);
        assert!(out.stdout.contains("Example") && out.stdout.contains(&format!("lapidary {verb}")), "{}", out.stdout);
    }
    for words in [&["solve"][..], &["bench"], &["bench", "startup"], &["cache", "list"]] {
        let out = s.run(&[&["help"], words].concat());
        outcome(&out, 0);
        assert_eq!(out.stdout, s.run(&[words, &["--help"]].concat()).stdout);
    }
    assert!(s.run(&["--help"]).stdout.contains("1 a check failed or a result could not be written"));
    assert_eq!(s.run(&["polish"]).status, 2);
    assert_eq!(s.run(&[]).status, 2);
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    for args in [&["devices"][..], &["--help"], &["tune", "--help"], &["help", "bench"], &["--version"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Sandbox::new().command(args).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("standard output: cannot write"), "{args:?}");
    }
}

/// Progress and messages are not results, so the exit status does not change if the program cannot write them.
#[cfg(target_os = "linux")]
#[test]
fn progress_and_messages_need_no_reader() {
    let s = Sandbox::new();
    for (args, status) in [
        (&["hpl", "--n", "10"][..], 0),
        (&["conformance", "--device", "cpu:0", "--filter", "f64::laswp"], 0),
        (&["hpl", "--nb", "0"], 2),
        (&["devices", "--device", "none"], 3),
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert_eq!(s.command(args).stderr(full).output().unwrap().status.code(), Some(status), "{args:?}");
    }
}

/// The option `--nb` takes precedence over `LAPIDARY_NB` in each command that has the option.
#[test]
fn panels_are_as_wide_as_the_flag_or_the_environment_says() {
    let s = Sandbox::new();
    let width = |variable: &str, args: &[&str]| {
        outcome(&s.run_with(&[args, &["--json", "f.json"]].concat(), &[("LAPIDARY_NB", variable)]), 0);
        s.json("f.json")["nb"].as_u64()
    };
    for verb in [&["hpl", "--n", "20"][..], &["bench", "getrf", "--n", "20", "--reps", "1"]] {
        assert_eq!((width("7", verb), width("7", &[verb, &["--nb", "5"]].concat())), (Some(7), Some(5)), "{verb:?}");
    }
    let plan = |flag: &[&str], variables: &[_]| s.run_with(&[&["plan", "getrf", "--n", "300"], flag].concat(), variables).stdout;
    let seven = plan(&["--nb", "7"], &[]);
    assert!(plan(&[], &[("LAPIDARY_NB", "7")]) == seven && plan(&[], &[]) != seven);
    assert_eq!(plan(&["--nb", "7"], &[("LAPIDARY_NB", "9")]), seven);
}

/// An empty environment variable counts as unset.
#[test]
fn empty_variables_set_nothing() {
    let s = Sandbox::new();
    let names = ["LAPIDARY_DEVICE", "LAPIDARY_MEMORY_LIMIT", "LAPIDARY_NB", "LAPIDARY_CACHE_DIR", "LAPIDARY_KERNELS_DIR"];
    let empty = names.map(|name| (name, ""));
    outcome(&s.run_with(&["hpl", "--n", "20"], &empty), 0);
    let blank = s.run_with(&["hpl", "--n", "20"], &[("LAPIDARY_NB", " ")]);
    assert!(blank.status == 2 && blank.stderr.contains("LAPIDARY_NB = ` `"), "{}", blank.stderr);
}

#[test]
fn work_without_enough_memory_is_refused_with_both_figures() {
    let s = Sandbox::new();
    let refused = |args: &[&str], memory: &str, words: [&str; 2]| {
        let run = s.run_with(args, &[("LAPIDARY_HOST_MEMORY", memory)]);
        outcome(&run, 2);
        assert!(words.iter().all(|word| run.stderr.contains(word)), "{args:?}: {}", run.stderr);
    };
    // Each element takes 8 bytes. gemm keeps A, B and C twice, getrs keeps A three times, and hpl keeps A and the right-hand side.
    // The program adds an eighth for other memory of the call.
    refused(&["bench", "gemm", "--n", "512"], "11M", ["gemm m=512 n=512 k=512 takes at least 13.5 MiB", "11.0 MiB can be had"]);
    refused(&["bench", "getrs", "--n", "512"], "5M", ["takes at least 6.8 MiB", "5.0 MiB can be had"]);
    refused(&["hpl", "--n", "1100"], "8M", ["order 1100 takes at least 10.4 MiB", "8.0 MiB can be had"]);
    refused(&["hpl", "--n", "4000000000"], "", ["GiB of host memory", "LAPIDARY_HOST_MEMORY=SIZE"]);
    // The size of a CSV file is estimated from its first row. If A is in f32 and B in f64, the program needs a copy of A in f64.
    s.text("tall.csv", &"1,1,1,1,1,1,1,1,1,1\n".repeat(20_000));
    refused(
        &["solve", "tall.csv", "tall.csv"],
        "1M",
        ["about 20000 rows, 10 columns, takes at least 1.7 MiB", "1.0 MiB can be had"],
    );
    s.bytes("a.npy", &npy("<f4", false, "(400, 400)", &le32(&[1.0; 160_000])));
    s.text("b.csv", &"1\n".repeat(400));
    refused(&["solve", "a.npy", "b.csv"], "1M", ["the copy in f64 of a matrix in f32 takes at least 1.4 MiB", "1.0 MiB"]);
    refused(&["hpl", "--n", "10"], "much", ["LAPIDARY_HOST_MEMORY = `much`", "positive number"]);
    outcome(&s.run_with(&["bench", "gemm", "--n", "512", "--reps", "1"], &[("LAPIDARY_HOST_MEMORY", "14M")]), 0);
}

/// `ulimit -v` takes a number of KiB. The command line of the program contains no limit.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_the_address_space_is_a_limit_of_memory() {
    let s = Sandbox::new();
    let program = env!("CARGO_BIN_EXE_lapidary");
    let script = format!("ulimit -v 1000000; exec {program} bench gemm --n 6000 --device cpu:0");
    let output = std::process::Command::new("sh").args(["-c", &script]).current_dir(s.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("takes at least 1.6 GiB of host memory, and ") && stderr.contains(" MiB can be had"), "{stderr}");
}
