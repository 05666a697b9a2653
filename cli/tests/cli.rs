//! The command line as a script sees it: files, messages, exit status.

mod support;

use support::{Run, Sandbox, npy, outcome};

#[test]
fn every_good_format_gives_the_same_solution() {
    let s = Sandbox::new();
    // A = [2 1; 1 3], b = [3; 5], x = [0.8; 1.4]
    s.bytes("c.npy", &npy("<f8", false, "(2, 2)", &le64(&[2.0, 1.0, 1.0, 3.0])));
    s.bytes("be.npy", &npy(">f8", true, "(2, 2)", &[2.0, 1.0, 1.0, 3.0].map(f64::to_be_bytes).concat()));
    s.text("dense.mtx", "%%MatrixMarket matrix array real general\n% a comment\n2 2\n2\n1\n1\n3\n");
    s.text("lower.mtx", "%%MatrixMarket matrix array real symmetric\n2 2\n2\n1\n3\n");
    s.text("coo.mtx", "%%matrixmarket MATRIX coordinate integer symmetric\n\n2 2 3\n1 1 2\n2 1 1\n2 2 3\n");
    s.text("twice.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 5\n1 1 2\n2 1 1\n1 2 0.5\n1 2 0.5\n2 2 3\n");
    s.text("a.csv", "# header of numpy.savetxt\n2, 1\n1, 3e0\n");
    s.bytes("b.npy", &npy("<f8", false, "(2,)", &le64(&[3.0, 5.0])));
    s.text("b.mtx", "%%MatrixMarket matrix array integer general\n2 1\n3\n5\n");
    s.text("b.csv", "3\n5\n");
    for a in ["c.npy", "be.npy", "dense.mtx", "lower.mtx", "coo.mtx", "twice.mtx", "a.csv"] {
        for b in ["b.npy", "b.mtx", "b.csv"] {
            let out = s.run(&["solve", a, b, "-o", "x.csv"]);
            assert_eq!(out.status, 0, "{a} {b}: {}", out.stderr);
            let x: Vec<f64> = s.read("x.csv").lines().map(|line| line.parse().unwrap()).collect();
            assert!((x[0] - 0.8).abs() < 1e-14 && (x[1] - 1.4).abs() < 1e-14, "{a} {b}: {x:?}");
        }
    }
}

#[test]
fn orders_of_an_unsymmetric_matrix_are_told_apart() {
    let s = Sandbox::new();
    // A = [1 2; 0 1]: A·x = (3, 1) has x = (1, 1), Aᵀ·x = (3, 1) has x = (3, -5)
    s.bytes("c.npy", &npy("<f8", false, "(2, 2)", &le64(&[1.0, 2.0, 0.0, 1.0])));
    s.bytes("f.npy", &npy("<f8", true, "(2, 2)", &le64(&[1.0, 2.0, 0.0, 1.0])));
    s.text("skew.mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 -1\n");
    s.text("b.csv", "3\n1\n");
    for (a, x) in [("c.npy", "1\n1\n"), ("f.npy", "3\n-5\n"), ("skew.mtx", "-1\n3\n")] {
        let out = s.run(&["solve", a, "b.csv", "-o", "x.csv"]);
        assert_eq!((out.status, s.read("x.csv").as_str()), (0, x), "{a}: {}", out.stderr);
    }
}

#[test]
fn single_precision_stays_single() {
    let s = Sandbox::new();
    s.bytes("a.npy", &npy("<f4", false, "(2, 2)", &le32(&[2.0, 0.0, 0.0, 4.0])));
    s.bytes("b.npy", &npy("<f4", false, "(2,)", &le32(&[2.0, 2.0])));
    let out = s.run(&["solve", "a.npy", "b.npy", "-o", "x.npy", "--json", "f.json"]);
    assert_eq!(out.status, 0, "{}", out.stderr);
    let x = s.read_bytes("x.npy");
    assert_eq!(x.len() % 64, 8);
    assert!(String::from_utf8_lossy(&x[..128]).contains("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }"));
    assert_eq!(x[128..], le32(&[1.0, 0.5]));
    assert_eq!(s.json("f.json")["dtype"], "f32");
    let out = s.run(&["solve", "a.npy", "b.npy", "--dtype", "f64", "--json", "f.json"]);
    assert_eq!((out.status, &s.json("f.json")["dtype"]), (0, &"f64".into()));
}

#[test]
fn written_files_are_read_back() {
    let s = Sandbox::new();
    s.text("a.csv", "0.1,1e-30\n3e200,7\n");
    s.text("one.csv", "1,0\n0,1\n");
    for name in ["x.npy", "x.mtx", "x.csv"] {
        assert_eq!(s.run(&["solve", "one.csv", "a.csv", "-o", name]).status, 0);
        assert_eq!(s.run(&["solve", "one.csv", name, "-o", "back.csv"]).status, 0);
        assert_eq!(s.read("back.csv"), "0.1,1e-30\n3e200,7\n", "{name}");
    }
}

/// Each input is refused with exit status 2, a message that holds all the
/// words, and nothing written.
#[test]
fn bad_matrices_are_refused() {
    let s = Sandbox::new();
    s.text("b.csv", "1\n1\n");
    let good = npy("<f8", false, "(2, 2)", &le64(&[1.0; 4]));
    let header = |descr, shape| npy(descr, false, shape, &le64(&[1.0; 4]));
    let huge = header("<f8", "(1000000000, 1000000000)");
    let overflow = header("<f8", "(18446744073709551615, 18446744073709551615)");
    let cases: &[(&str, &[u8], &[&str])] = &[
        ("empty.npy", b"", &["empty"]),
        ("magic.npy", b"hello world", &["not a .npy file"]),
        ("short.npy", &good[..20], &["ends inside", "header"]),
        ("trunc.npy", &good[..good.len() - 1], &["truncated", "2×2"]),
        ("long.npy", &[&good[..], b"x"].concat(), &["1 bytes follow"]),
        ("huge.npy", &huge, &["truncated"]),
        ("overflow.npy", &overflow, &["truncated"]),
        ("ints.npy", &header("<i8", "(2, 2)"), &["'<i8' is not supported", "f32 and f64"]),
        ("complex.npy", &header("<c16", "(2, 1)"), &["'<c16'"]),
        ("cube.npy", &header("<f8", "(2, 2, 1)"), &["3 dimensions"]),
        ("scalar.npy", &header("<f8", "()"), &["0 dimensions"]),
        ("nan.npy", &npy("<f8", true, "(2, 2)", &le64(&[1.0, f64::NAN, 1.0, 1.0])), &["row 2, column 1", "NaN"]),
        ("version.npy", b"\x93NUMPY\x09\x00", &["version 9"]),
        ("oblong.npy", &header("<f8", "(1, 4)"), &["1×4", "not square"]),
        ("empty.csv", b"", &["empty"]),
        ("comment.csv", b"# nothing\n", &["no elements"]),
        ("ragged.csv", b"1,2\n3\n", &["ragged.csv:2:", "1 values", "2"]),
        ("word.csv", b"1,2\n3,four\n", &["word.csv:2:", "column 2", "\"four\""]),
        ("nan.csv", b"1,2\nnan,4\n", &["nan.csv:2:", "column 1", "not a finite number"]),
        ("gap.csv", b"1,\n3,4\n", &["gap.csv:1:", "column 2", "missing"]),
        ("binary.csv", b"1,\xff\n", &["binary.csv:1:", "UTF-8"]),
        ("oblong.csv", b"1,2\n", &["1×2", "not square"]),
        ("nothing.mtx", b"", &["empty"]),
        ("banner.mtx", b"2 2\n1\n1\n1\n1\n", &["banner.mtx:1:", "%%MatrixMarket"]),
        ("complex.mtx", b"%%MatrixMarket matrix array complex general\n", &["complex", "not supported"]),
        ("pattern.mtx", b"%%MatrixMarket matrix coordinate pattern general\n", &["pattern", "no values"]),
        ("hermitian.mtx", b"%%MatrixMarket matrix array real hermitian\n", &["hermitian"]),
        ("nosize.mtx", b"%%MatrixMarket matrix array real general\n% x\n", &["before the line with the sizes"]),
        ("size.mtx", b"%%MatrixMarket matrix array real general\n2\n", &["size.mtx:2:", "ROWS COLUMNS"]),
        ("few.mtx", b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", &["few.mtx:5:", "after 3 of 4"]),
        ("many.mtx", b"%%MatrixMarket matrix array real general\n1 1\n1\n2\n", &["many.mtx:4:", "more than"]),
        ("nan.mtx", b"%%MatrixMarket matrix array real general\n1 1\nnan\n", &["nan.mtx:3:", "not a finite number"]),
        ("half.mtx", b"%%MatrixMarket matrix array integer general\n1 1\n1.5\n", &["half.mtx:3:", "not an integer"]),
        ("huge.mtx", b"%%MatrixMarket matrix array real general\n1000000 1000000\n1\n", &["huge.mtx:2:", "cannot hold"]),
        ("over.mtx", b"%%MatrixMarket matrix array real symmetric\n18446744073709551615 18446744073709551615\n", &["over.mtx:2:"]),
        ("many.coo.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 99999999999\n1 1 1\n", &["many.coo.mtx:2:", "cannot hold"]),
        ("big.coo.mtx", b"%%MatrixMarket matrix coordinate real general\n9999999999 9999999999 1\n1 1 1\n", &["big.coo.mtx:2:", "memory"]),
        ("index.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n3 2 1\n", &["index.mtx:4:", "row index 3", "1 … 2"]),
        ("zero.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 0 1\n", &["zero.mtx:3:", "column index 0"]),
        ("entry.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 x\n", &["entry.mtx:3:", "\"x\""]),
        ("upper.mtx", b"%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n", &["upper.mtx:3:", "lower triangle"]),
        ("skew.mtx", b"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n", &["skew.mtx:3:", "below the diagonal"]),
        ("oblong.mtx", b"%%MatrixMarket matrix array real symmetric\n2 3\n1\n1\n1\n1\n1\n1\n", &["oblong.mtx:2:", "square"]),
        ("a.txt", b"1", &[".npy, .mtx or .csv"]),
    ];
    for (name, bytes, words) in cases {
        s.bytes(name, bytes);
        refused(&s, &["solve", name, "b.csv", "-o", "x.npy", "--json", "f.json"], &[&[*name][..], words].concat());
    }
}

fn refused(s: &Sandbox, args: &[&str], words: &[&str]) {
    let before = s.files();
    let Run { status, stdout, stderr } = s.run(args);
    assert_eq!((status, stdout.as_str()), (2, ""), "{args:?}: {stderr}");
    assert!(words.iter().all(|word| stderr.contains(word)), "{args:?}: {words:?} are not all in {stderr:?}");
    assert_eq!(s.files(), before, "{args:?} wrote something");
}

#[test]
fn bad_right_hand_sides_and_outputs_are_refused() {
    let s = Sandbox::new();
    s.text("a.csv", "1,0\n0,1\n");
    s.text("b.csv", "1\n1\n");
    s.text("b3.csv", "1\n1\n1\n");
    s.text("row.csv", "1,1\n");
    s.text("big.csv", "1e300\n1\n");
    refused(&s, &["solve", "a.csv", "b3.csv", "-o", "x.npy"], &["b3.csv", "b has 3 rows, A has 2"]);
    refused(&s, &["solve", "a.csv", "row.csv", "-o", "x.npy"], &["row.csv", "a right-hand side is a column"]);
    refused(&s, &["solve", "a.csv", "none.csv", "-o", "x.npy"], &["none.csv", "cannot read"]);
    refused(&s, &["solve", "a.csv", "b.csv", "-o", "x.txt"], &["x.txt", ".npy, .mtx or .csv"]);
    refused(&s, &["solve", "a.csv", "b.csv", "-o", "nowhere/x.npy"], &["there is no folder nowhere"]);
    refused(&s, &["solve", "a.csv", "big.csv", "-o", "x.npy", "--dtype", "f32"], &["big.csv", "range of f32"]);
    refused(&s, &["solve", "a.csv", "b.csv", "--memory-limit", "lots"], &["--memory-limit"]);
    refused(&s, &["solve", "a.csv", "b.csv", "--device", "cpu:x"], &["`x`"]);
}

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
    let keys = ["read_seconds", "factor_seconds", "solve_seconds", "gflops", "rcond", "backward_error", "refinement_steps"];
    assert!(keys.iter().all(|key| figures[key].is_number()), "{figures:#}");
    assert_eq!((&figures["n"], &figures["nrhs"], &figures["passed"]), (&2.into(), &2.into(), &true.into()));
    assert!(figures["devices"][0]["name"].is_string());
}

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
}

#[test]
fn bench_takes_every_flag_of_the_routines() {
    let s = Sandbox::new();
    for (side, uplo) in [("l", "u"), ("r", "l"), ("R", "U")] {
        let flags = ["--side", side, "--uplo", uplo, "--transa", "T", "--diag", "u", "--m", "9", "--n", "5", "--reps", "1"];
        outcome(&s.run(&[&["bench", "trsm"][..], &flags].concat()), 0);
    }
    outcome(&s.run(&["bench", "gemm", "--m", "4", "--n", "6", "--k", "9", "--transa", "t", "--transb", "t", "--reps", "1"]), 0);
    outcome(&s.run(&["bench", "gesv", "--n", "40", "--resident", "--memory-limit", "64K", "--reps", "1"]), 0);
    outcome(&s.run(&["bench", "getrf", "--m", "7", "--n", "12", "--reps", "1"]), 0);
    refused(&s, &["bench", "gemm", "--n", "4,5", "--m", "1,2,3"], &["do not go together"]);
    refused(&s, &["bench", "gemm", "--n", "0"], &["zero"]);
    refused(&s, &["bench", "gemm", "--peer", "./none.so"], &["none.so", "cannot load"]);
    refused(&s, &["bench", "potrf"], &["potrf"]);
}

#[test]
fn hpl_passes_and_reports() {
    let s = Sandbox::new();
    let out = s.run(&["hpl", "--n", "100", "--json", "h.json"]);
    outcome(&out, 0);
    assert!(out.stdout.contains("PASSED"), "{}", out.stdout);
    let figures = s.json("h.json");
    assert!(figures["residual"].as_f64().unwrap() < 16.0 && figures["gflops"].is_number());
    refused(&s, &["hpl", "--n", "0"], &["--n"]);
}

#[test]
fn plans_are_printed_traced_and_drawn() {
    let s = Sandbox::new();
    for routine in ["gemm", "trsm", "getrf", "getrs"] {
        let flags = ["--n", "300", "--nrhs", "40", "--devices", "2", "--memory-limit", "512K", "--trace", "t.json", "--dot", "t.dot"];
        let out = s.run(&[&["plan", routine][..], &flags].concat());
        outcome(&out, 0);
        assert!(out.stdout.contains(&format!("schedule {routine} f64: 2 devices")), "{}", out.stdout);
        let events = s.json("t.json")["traceEvents"].as_array().unwrap().clone();
        assert!(events.iter().any(|e| e["ph"] == "X" && e["dur"].as_f64().unwrap() > 0.0 && e["pid"] == 1));
        let dot = s.read("t.dot");
        assert!(dot.starts_with(&format!("digraph {routine} {{")) && dot.contains("label="), "{dot}");
    }
    refused(&s, &["plan", "gesv"], &["getrf followed by getrs"]);
    refused(&s, &["plan", "gemm", "--n", "4,5"], &["one size"]);
    refused(&s, &["plan", "gemm", "--gflops", "0"], &["positive"]);
}

#[test]
fn devices_are_listed_and_missing_ones_have_their_status() {
    let s = Sandbox::new();
    let out = s.run(&["devices", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    assert!(list["devices"].as_array().unwrap().iter().any(|d| d["name"] == "cpu:0"), "{list}");
    assert!(s.run(&["devices"]).stdout.starts_with("cpu:0"));
    outcome(&s.run(&["devices", "--device", "opencl:99"]), 3);
    outcome(&s.run(&["hpl", "--n", "4", "--device", "opencl:99"]), 3);
}

#[test]
fn help_answers_with_examples() {
    let s = Sandbox::new();
    for verb in ["devices", "solve", "bench", "hpl", "plan"] {
        let out = s.run(&[verb, "--help"]);
        assert_eq!(out.status, 0);
        assert!(out.stdout.contains("Example") && out.stdout.contains(&format!("lapidary {verb}")), "{}", out.stdout);
    }
    assert!(s.run(&["--help"]).stdout.contains("Exit status: 0"));
    assert_eq!(s.run(&["polish"]).status, 2);
    assert_eq!(s.run(&[]).status, 2);
}

fn le64(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn le32(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
