//! Tests of `bench --peer` with libraries that the tests compile. The program must check the results of a peer library, and must
//! not time a call while threads of the peer library run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Sandbox, outcome};

/// Compiles a library and returns its path.
fn compile(folder: &Path, name: &str, source: &str, cfg: &[&str]) -> PathBuf {
    let path = folder.join(format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX));
    let mut rustc = Command::new("rustc");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    rustc.args(["--edition=2021", "--crate-type=cdylib", "-Copt-level=1", "-Awarnings"]).arg(source).arg("-o").arg(&path);
    rustc.args(cfg.iter().flat_map(|cfg| ["--cfg", cfg]));
    let status = rustc.env("PREFIX", "").env("SUFFIX", "_").env("C_SUFFIX", "").status().expect("rustc runs");
    assert!(status.success(), "{rustc:?}");
    path
}

const NOTHING_RIGHT: &str = "tests/cli/peer_library.rs";
const ALL_RIGHT: &str = "../conformance/tests/foreign/library.rs";

/// Benchmarks a routine beside a peer library. Returns the exit status, and whether the program reports the result of the peer
/// library as wrong.
fn bench(s: &Sandbox, library: &Path, routine: &str, flags: &[&str]) -> (i32, bool) {
    let library = library.to_str().unwrap();
    let run = s.run(&[&["bench", routine, "--peer", library, "--device", "cpu:0", "--json", "r.json"][..], flags].concat());
    let result = &s.json("r.json")["results"][0];
    assert_eq!(result["ours"]["check"]["passed"], true, "{}{}", run.stdout, run.stderr);
    assert_eq!(result["peer"]["check"]["passed"], run.status == 0, "{}{}", run.stdout, run.stderr);
    (run.status, run.stdout.contains("peer WRONG"))
}

#[test]
fn a_peer_that_does_nothing_is_found_wrong_in_every_routine() {
    let s = Sandbox::new();
    let mute = compile(s.path(), "mute", NOTHING_RIGHT, &[]);
    let says_well = compile(s.path(), "says_well", NOTHING_RIGHT, &["ends_well"]);
    for routine in ["gemm", "trsm", "getrf", "getrs", "gesv", "laswp"] {
        for (dtype, library) in [("f32", &mute), ("f64", &mute), ("f64", &says_well)] {
            let flags = ["--n", "20", "--reps", "1", "--dtype", dtype];
            assert_eq!(bench(&s, library, routine, &flags), (1, true), "{routine} {dtype} {}", library.display());
        }
    }
    // For n = 1 the unchanged A is its own LU factorisation, so that only the unwritten pivots show that the routine did nothing.
    assert_eq!(bench(&s, &says_well, "getrf", &["--n", "1", "--reps", "1"]), (1, true));
}

#[test]
fn a_peer_that_is_right_passes_in_every_routine() {
    let s = Sandbox::new();
    let right = compile(s.path(), "right", ALL_RIGHT, &[]);
    for (routine, flags) in [
        ("gemm", &["--transa", "t", "--m", "9"][..]),
        ("trsm", &["--side", "r", "--uplo", "u", "--diag", "u", "--m", "7"]),
        ("getrf", &["--m", "31"]),
        ("getrs", &["--nrhs", "3"]),
        ("laswp", &["--m", "31"]),
    ] {
        assert_eq!(bench(&s, &right, routine, &[flags, &["--n", "20", "--reps", "2"]].concat()), (0, false), "{routine}");
    }
    let solves = compile(s.path(), "solves", NOTHING_RIGHT, &["ends_well", "solves"]);
    assert_eq!(bench(&s, &solves, "gesv", &["--n", "20", "--nrhs", "3", "--reps", "2"]), (0, false));
    // With these options the library returns a correct X but wrong factors.
    let spoils = compile(s.path(), "spoils", NOTHING_RIGHT, &["ends_well", "solves", "spoils"]);
    assert_eq!(bench(&s, &spoils, "gesv", &["--n", "20", "--nrhs", "3", "--reps", "2"]), (1, true));
}

#[test]
fn a_sweep_times_a_peer_once_for_each_size() {
    let s = Sandbox::new();
    let right = compile(s.path(), "right", ALL_RIGHT, &[]);
    let flags = ["--n", "8,16", "--reps", "1", "--device", "cpu:0", "--memory-limit", "1M", "--sweep", "s"];
    outcome(&s.run(&[&["bench", "gemm", "--peer", right.to_str().unwrap()][..], &flags].concat()), 0);
    let table = s.read("s.tsv");
    let rows: Vec<String> =
        table.lines().skip(1).map(|row| row.split('\t').skip(2).take(3).collect::<Vec<_>>().join(" ")).collect();
    let size = |n: usize| ["lapidary host", "peer host", "lapidary resident"].map(|series| format!("{n} {series}"));
    assert_eq!(rows, [size(8), size(16)].concat(), "{table}");
    let results = &s.json("s.json")["results"];
    assert!(results[0]["peer"]["check"]["passed"] == true && results[1]["peer"].is_null(), "{results}");
    assert!(s.read("s.svg").contains(right.file_name().unwrap().to_str().unwrap()));
}

/// In this library a product is correct only if none of its threads is running.
#[test]
#[cfg(unix)]
fn each_call_beside_a_peer_waits_until_its_threads_have_come_to_rest() {
    let s = Sandbox::new();
    let spins = compile(s.path(), "spins", NOTHING_RIGHT, &["spins"]);
    assert_eq!(bench(&s, &spins, "gemm", &["--n", "20", "--reps", "3"]), (0, false));
}

#[test]
#[cfg(unix)]
fn a_peer_that_ends_the_process_does_not_end_it_well() {
    let s = Sandbox::new();
    let exits = compile(s.path(), "exits", NOTHING_RIGHT, &["exits"]);
    let run = s.run(&["bench", "gemm", "--peer", exits.to_str().unwrap(), "--device", "cpu:0", "--n", "20", "--reps", "1"]);
    assert!(run.status == 1 && run.stderr.contains("the peer library ended the process"), "{} {}", run.status, run.stderr);
}
