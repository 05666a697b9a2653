//! Tests of inputs that the program refuses: the exit status is 2, the message names the file and the line, and no file is written.

use crate::support::{Sandbox, le64, npy, outcome, refused};

#[test]
fn bad_matrices_are_refused() {
    let s = Sandbox::new();
    s.text("b.csv", "1\n1\n");
    let good = npy("<f8", false, "(2, 2)", &le64(&[1.0; 4]));
    let header = |descr, shape| npy(descr, false, shape, &le64(&[1.0; 4]));
    let good_but = |from: &str, to: &str| {
        let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }\n".replace(from, to);
        [b"\x93NUMPY\x01\x00", &u16::try_from(text.len()).unwrap().to_le_bytes()[..], text.as_bytes(), &le64(&[1.0; 4])].concat()
    };
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
        ("complex.npy", &header("<c16", "(2, 1)"), &["'<c16'", "complex", "real numbers"]),
        ("long.double.npy", &header("<f16", "(2, 1)"), &["'<f16' is not supported"]),
        ("objects.npy", &header("|O", "(2, 2)"), &["'|O' is not supported", "integers"]),
        (
            "big.npy",
            &npy("<i8", false, "(2, 2)", &[1_i64, 2, (1 << 53) + 1, 4].map(i64::to_le_bytes).concat()),
            &["row 2, column 1", "9007199254740993 is not exact"],
        ),
        ("two.npy", &npy("|b1", false, "(2, 2)", &[0, 1, 2, 1]), &["row 2, column 1", "2 is no bool"]),
        ("order.npy", &good_but("False", "Truely"), &["Truely", "neither True nor False"]),
        ("shape.npy", &good_but("(2, 2)", "(2,,2)"), &["not a tuple"]),
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
        ("blank.csv", b"1,2\n\n3,4\n", &["blank.csv:3:", "blank line"]),
        ("comment2.csv", b"1,2\n \n# more\n3,4\n", &["comment2.csv:4:", "blank line"]),
        ("header.csv", b"x,y\n1,2\n3,4\n", &["header.csv:1:", "\"x\"", "header", "#"]),
        ("semicolons.csv", b"1;2\n3;4\n", &["semicolons.csv:1:", "semicolons"]),
        ("decimal.csv", b"1,5;2,5\n3;4\n", &["decimal.csv:1:", "semicolons"]),
        ("tabs.csv", b"1\t2\n3\t4\n", &["tabs.csv:1:", "tabs"]),
        ("spaces.csv", b"1 2\n3 4\n", &["spaces.csv:1:", "spaces"]),
        ("letters.csv", b"1,2\n3,x\n", &["letters.csv:2:", "\"x\" is not a number\n"]),
        ("nothing.mtx", b"", &["empty"]),
        ("banner.mtx", b"2 2\n1\n1\n1\n1\n", &["banner.mtx:1:", "%%MatrixMarket"]),
        ("complex.mtx", b"%%MatrixMarket matrix array complex general\n", &["complex", "not supported"]),
        ("pattern.mtx", b"%%MatrixMarket matrix coordinate pattern general\n", &["pattern", "no values"]),
        ("hermitian.mtx", b"%%MatrixMarket matrix array real hermitian\n", &["hermitian"]),
        ("nosize.mtx", b"%%MatrixMarket matrix array real general\n% x\n", &["before the line with the sizes"]),
        ("size.mtx", b"%%MatrixMarket matrix array real general\n2\n", &["size.mtx:2:", "ROWS COLUMNS"]),
        ("few.mtx", b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", &["few.mtx:5:", "after 3 of 4"]),
        ("many.mtx", b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n5\n", &["many.mtx:7:", "more than"]),
        ("nan.mtx", b"%%MatrixMarket matrix array real general\n2 2\nnan\n2\n3\n4\n", &["nan.mtx:3:", "not a finite number"]),
        ("small.csv", b"1,2\n0.1e-400,4\n", &["small.csv:2:", "column 1", "below the range of f64"]),
        (
            "small.mtx",
            b"%%MatrixMarket matrix array real general\n2 2\n1D-400\n2\n3\n4\n",
            &["small.mtx:3:", "below the range of f64"],
        ),
        (
            "long.mtx",
            b"%%MatrixMarket matrix array integer general\n2 2\n9007199254740993\n2\n3\n4\n",
            &["long.mtx:3:", "an integer that f64 does not hold"],
        ),
        ("half.mtx", b"%%MatrixMarket matrix array integer general\n2 2\n1.5\n2\n3\n4\n", &["half.mtx:3:", "not an integer"]),
        ("huge.mtx", b"%%MatrixMarket matrix array real general\n1000000 1000000\n1\n", &["huge.mtx:2:", "cannot hold"]),
        ("over.mtx", b"%%MatrixMarket matrix array real symmetric\n18446744073709551615 18446744073709551615\n", &["over.mtx:2:"]),
        (
            "many.coo.mtx",
            b"%%MatrixMarket matrix coordinate real general\n2 2 99999999999\n1 1 1\n",
            &["many.coo.mtx:2:", "cannot hold"],
        ),
        (
            "index.mtx",
            b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n3 2 1\n",
            &["index.mtx:4:", "row index 3", "1 … 2"],
        ),
        ("zero.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 0 1\n", &["zero.mtx:3:", "column index 0"]),
        ("entry.mtx", b"%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 x\n", &["entry.mtx:3:", "\"x\""]),
        ("upper.mtx", b"%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n", &["upper.mtx:3:", "lower triangle"]),
        (
            "skew.mtx",
            b"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n",
            &["skew.mtx:3:", "below the diagonal"],
        ),
        ("oblong.mtx", b"%%MatrixMarket matrix array real symmetric\n2 3\n1\n1\n1\n1\n1\n1\n", &["oblong.mtx:2:", "square"]),
        ("a.txt", b"1", &[".npy, .mtx or .csv"]),
    ];
    for (name, bytes, words) in cases {
        s.bytes(name, bytes);
        refused(&s, &["solve", name, "b.csv", "-o", "x.npy", "--json", "f.json"], &[&[*name][..], words].concat());
    }
}

/// A file of a few bytes may describe a matrix that is larger than any memory.
#[test]
fn shapes_are_looked_at_before_there_is_memory() {
    let s = Sandbox::new();
    let coordinate = |name: &str, rows: u64, cols: u64| {
        s.text(name, &format!("%%MatrixMarket matrix coordinate real general\n{rows} {cols} 1\n1 1 1\n"));
    };
    coordinate("oblong.mtx", 9_999_999_999, 9_999_999_998);
    coordinate("square.mtx", 9_999_999_999, 9_999_999_999);
    coordinate("column.mtx", 9_999_999_999, 1);
    s.text("b.csv", "1\n1\n");
    s.text("a.csv", "1,0\n0,1\n");
    refused(&s, &["solve", "oblong.mtx", "b.csv"], &["oblong.mtx", "9999999999×9999999998, not square"]);
    refused(&s, &["solve", "square.mtx", "b.csv"], &["b.csv", "b has 2 rows, A has 9999999999"]);
    refused(&s, &["solve", "a.csv", "column.mtx"], &["column.mtx", "b has 9999999999 rows, A has 2"]);
    refused(&s, &["solve", "square.mtx", "column.mtx"], &["square.mtx", "memory"]);
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_no_input() {
    let s = Sandbox::new();
    s.text("b.csv", "1\n");
    assert!(std::process::Command::new("mkfifo").arg(s.path().join("a.csv")).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", s.path().join("a.npy")).unwrap();
    for name in ["a.csv", "a.npy"] {
        refused(&s, &["solve", name, "b.csv"], &[name, "is a pipe or a device"]);
    }
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
    for again in ["a.csv", "./a.csv"] {
        refused(&s, &["solve", "a.csv", "b.csv", "-o", again], &["is an input"]);
    }
    refused(&s, &["solve", "a.csv", "b.csv", "-o", "x.csv", "--json", "./x.csv"], &["--output and --json name the same file"]);
    refused(&s, &["bench", "gemm", "--n", "8", "--json", "x.svg", "--plot", "./x.svg"], &["--json and --plot name the same file"]);
    refused(&s, &["solve", "a.csv", "b.csv", "--memory-limit", "lots"], &["--memory-limit"]);
    refused(&s, &["solve", "a.csv", "b.csv", "--device", "cpu:x"], &["`x`"]);
}

#[test]
fn flags_that_a_routine_would_ignore_are_refused() {
    let s = Sandbox::new();
    for (verb, flag, value, message) in [
        ("bench", "--n", "-5", "whole number"),
        ("bench", "--m", "5,x", "whole number"),
        ("plan", "--k", "-5", "whole number"),
        ("bench", "--nb", "-3", "positive number"),
        ("bench", "--reps", "-1", "not in 1.."),
    ] {
        let given = value.split(',').next_back().unwrap();
        refused(&s, &[verb, "gemm", flag, value], &[&format!("'{given}' for '{flag} "), message]);
    }
    refused(&s, &["hpl", "--n", "-3"], &["'-3' for '--n "]);
    refused(&s, &["conformance", "--timeout", "-3"], &["'-3' for '--timeout "]);
    refused(&s, &["bench", "getrf", "--n", "8", "--transa", "t"], &["--transa means nothing to getrf", "--m, --n"]);
    refused(&s, &["bench", "gemm", "--n", "8", "--nrhs", "2"], &["--nrhs means nothing to gemm"]);
    refused(&s, &["plan", "trsm", "--n", "8", "--k", "2"], &["--k means nothing to trsm"]);
    refused(&s, &["bench", "gemm", "--n", "8", "--plot", "gemm.png"], &["gemm.png", ".svg"]);
    for routine in ["gemm", "trsm", "getrs", "laswp"] {
        for verb in ["bench", "plan"] {
            refused(&s, &[verb, routine, "--n", "8", "--nb", "4"], &[&format!("--nb means nothing to {routine}")]);
        }
    }
    for [verb, routine] in [["bench", "getrf"], ["bench", "gesv"], ["plan", "getrf"]] {
        outcome(&s.run(&[verb, routine, "--n", "8", "--nb", "4"]), 0);
    }
    refused(&s, &["plan", "gemm", "--n", "8", "--bandwidth", "2"], &["--bandwidth means nothing without --memory-limit"]);
    outcome(&s.run(&["plan", "gemm", "--n", "8", "--bandwidth", "2", "--memory-limit", "1M"]), 0);
    let queues = ["plan", "getrf", "--n", "8", "--nb", "2", "--queues", "2"];
    for other in [["--devices", "2"], ["--memory-limit", "1M"]] {
        refused(&s, &[&queues[..], &other].concat(), &["--queues plans matrices that lie on one device"]);
    }
    let planned = s.run(&queues);
    outcome(&planned, 0);
    assert!(planned.stdout.contains(", beside a panel of 6 × 2 elements"), "{}", planned.stdout);
}

#[test]
fn sizes_beyond_the_address_space_are_refused_by_name() {
    let s = Sandbox::new();
    for size in ["99999999999G", "8589934592G", "9223372036854775808", "99999999999999999999999"] {
        let words = [size, "--memory-limit", "more than the address space holds"];
        for verb in [&["devices"][..], &["hpl", "--n", "4"], &["plan", "gemm"]] {
            refused(&s, &[verb, &["--memory-limit", size]].concat(), &words);
        }
        let run = s.run_with(&["hpl", "--n", "4"], &[("LAPIDARY_MEMORY_LIMIT", size)]);
        outcome(&run, 2);
        assert!(["LAPIDARY_MEMORY_LIMIT", size, words[2]].iter().all(|word| run.stderr.contains(word)), "{}", run.stderr);
    }
    refused(&s, &["devices", "--memory-limit", "1X"], &["1X", "--memory-limit", "a positive number of bytes"]);
    for size in ["1T", "1.5G", "512MiB", "1e3K"] {
        assert_eq!(s.run(&["hpl", "--n", "4", "--memory-limit", size]).status, if size == "1e3K" { 2 } else { 0 }, "{size}");
    }
    outcome(&s.run(&["hpl", "--n", "4", "--memory-limit", "8589934591G"]), 0);
}
