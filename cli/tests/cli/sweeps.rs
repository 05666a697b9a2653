//! Tests of `bench --sweep`: its three files, its sizes, and options that it refuses.

use crate::support::{Run, Sandbox, outcome, refused};

/// The lines of a file with tabs between the columns, each split into its columns. The first line is the heading.
fn table(s: &Sandbox, name: &str) -> Vec<Vec<String>> {
    s.read(name).lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Asserts that each row has a positive number in each column of times and speeds, and a result that passed its check.
fn assert_figures(rows: &[Vec<String>]) {
    for row in &rows[1..] {
        assert_eq!(row.len(), rows[0].len(), "{rows:?}");
        for (name, value) in rows[0].iter().zip(row) {
            match name.as_str() {
                "check" => assert_eq!(value, "ok"),
                "check_ratio" => assert!(value.parse::<f64>().unwrap() >= 0.0, "{row:?}"),
                name if name.ends_with("_seconds") || name == "gflops" => assert!(value.parse::<f64>().unwrap() > 0.0, "{row:?}"),
                _ => {}
            }
        }
    }
}

const FIGURES: &str = "library memory median_seconds min_seconds max_seconds gflops check_ratio check";

#[test]
fn a_sweep_in_host_memory_times_each_size_once() {
    let s = Sandbox::new();
    for (routine, sizes) in [("gemm", "m n k"), ("trsm", "m n"), ("getrf", "m n"), ("getrs", "n nrhs"), ("gesv", "n nrhs")] {
        let Run { status, stdout, stderr } =
            s.run(&["bench", routine, "--n", "8,13", "--reps", "2", "--device", "cpu:0", "--sweep", "s.1"]);
        assert_eq!((status, stderr.matches("no call has transfers").count()), (0, 1), "{stdout}{stderr}");
        let rows = table(&s, "s.1.tsv");
        assert_eq!(rows[0].join(" "), format!("{sizes} {FIGURES}"));
        assert_figures(&rows);
        let column = |name: &str| rows[0].iter().position(|other| other == name).unwrap();
        assert_eq!(rows[1..].iter().map(|row| row[column("n")].as_str()).collect::<Vec<_>>(), ["8", "13"]);
        assert!(rows[1..].iter().all(|row| row.contains(&"lapidary".to_owned()) && row.contains(&"host".to_owned())), "{rows:?}");
        let doc = s.json("s.1.json");
        assert_eq!((&doc["routine"], &doc["memory"], &doc["repetitions"]), (&routine.into(), &"host".into(), &2.into()));
        let result = &doc["results"][1];
        assert_eq!((&result["sizes"]["n"], &result["memory"]), (&13.into(), &"host".into()));
        let median: f64 = rows[2][column("median_seconds")].parse().unwrap();
        let ratio = median / result["ours"]["median_seconds"].as_f64().unwrap();
        assert!((ratio - 1.0).abs() < 1e-12, "{ratio}");
        assert!(s.read("s.1.svg").starts_with("<svg") && s.read("s.1.svg").contains(routine));
    }
    assert_eq!(s.files(), ["s.1.json", "s.1.svg", "s.1.tsv"]);
}

#[test]
fn without_sizes_a_sweep_ends_where_the_memory_ends() {
    let s = Sandbox::new();
    let sizes = |more: &[&str]| -> Vec<String> {
        let args = [&["bench", "gemm", "--reps", "1", "--device", "cpu:0", "--sweep", "s"][..], more].concat();
        let run = s.run_with(&args, &[("LAPIDARY_HOST_MEMORY", "1M")]);
        outcome(&run, 0);
        assert!(run.stderr.contains("the sweep ends at n=") && run.stderr.contains("1.0 MiB can be had"), "{}", run.stderr);
        table(&s, "s.tsv")[1..].iter().map(|row| row[..3].join(" ")).collect()
    };
    // gemm keeps A, B and C twice, and the program adds an eighth for other memory of the call.
    assert_eq!(sizes(&[]), ["64 64 64", "96 96 96", "128 128 128"]);
    assert_eq!(sizes(&["--dtype", "f32"]), ["64 64 64", "96 96 96", "128 128 128", "192 192 192"]);
    assert_eq!(sizes(&["--m", "8", "--k", "8"])[..5], ["8 64 8", "8 96 8", "8 128 8", "8 192 8", "8 255 8"]);
    let tight = s.run_with(&["bench", "gemm", "--device", "cpu:0", "--sweep", "t"], &[("LAPIDARY_HOST_MEMORY", "100K")]);
    outcome(&tight, 2);
    assert!(tight.stderr.contains("gemm m=64 n=64 k=64 takes at least"), "{}", tight.stderr);
    let named = ["bench", "gemm", "--m", "4,5", "--reps", "1", "--device", "cpu:0", "--sweep", "t"];
    outcome(&s.run(&named), 0);
    assert_eq!(table(&s, "t.tsv")[2][..3], ["5", "1024", "1024"]);
}

#[test]
fn a_sweep_that_cannot_be_written_or_contradicts_itself_is_refused() {
    let s = Sandbox::new();
    let sweep = |prefix: &str, more: &[&str], words: &[&str]| {
        refused(&s, &[&["bench", "gemm", "--n", "8", "--device", "cpu:0", "--sweep", prefix][..], more].concat(), words);
    };
    sweep("nowhere/s", &[], &["nowhere/s.tsv", "there is no folder nowhere"]);
    sweep("./", &[], &["--sweep", "beginning of file names"]);
    sweep("..", &[], &["--sweep", "beginning of file names"]);
    sweep("", &[], &["--sweep"]);
    let others = [&["--resident"][..], &["--host"], &["--json", "f.json"], &["--plot", "f.svg"], &["--trace", "t.svg"]]
        .map(|more| (more, more[0]));
    others.iter().for_each(|(more, option)| sweep("s", more, &["--sweep", option, "cannot be used with"]));
    refused(&s, &["bench", "laswp", "--n", "4", "--sweep", "s"], &["--sweep", "laswp does no floating-point operations"]);
    std::fs::create_dir(s.path().join("s.json")).unwrap();
    sweep("s", &[], &["s.json", "is a folder"]);
}

#[test]
fn a_sweep_on_a_device_with_its_own_memory_times_both_placements() {
    let s = Sandbox::new();
    // A memory limit makes the CPU a device with memory of its own.
    let sweep = |device: &[&str], more: &[&str]| {
        s.run(&[&["bench", "gemm", "--n", "8,16", "--reps", "1", "--sweep", "s", "--device"][..], device, more].concat())
    };
    let run = sweep(&["cpu:0"], &["--memory-limit", "1M"]);
    outcome(&run, 0);
    let rows = table(&s, "s.tsv");
    assert_figures(&rows);
    let placements: Vec<String> = rows[1..].iter().map(|row| [&row[1][..], &row[3], &row[4]].join(" ")).collect();
    assert_eq!(placements, ["8 lapidary host", "8 lapidary resident", "16 lapidary host", "16 lapidary resident"]);
    let doc = s.json("s.json");
    assert_eq!((&doc["memory"], doc["results"].as_array().unwrap().len()), (&"host+resident".into(), 4));
    assert_eq!([0, 1].map(|i| doc["results"][i]["memory"].clone()), ["host", "resident"]);
    let picture = s.read("s.svg");
    assert!(["with transfers", "in device memory"].iter().all(|curve| picture.contains(curve)), "{picture}");
    assert!(!run.stderr.contains("note:"), "{}", run.stderr);

    let several = sweep(&["cpu:0,1"], &["--memory-limit", "1M"]);
    outcome(&several, 0);
    assert!(
        several.stderr.contains("only calls with transfers are timed") && several.stderr.contains("cpu:1"),
        "{}",
        several.stderr
    );
    assert!(table(&s, "s.tsv")[1..].iter().all(|row| row[4] == "host"));

    let small = sweep(&["cpu:0"], &["--memory-limit", "4K"]);
    outcome(&small, 2);
    assert!(small.stderr.contains("of device memory, and cpu:0 has"), "{}", small.stderr);
}
