//! Every input that is refused: exit status 2, the file and the line named, nothing written.

use crate::support::{Sandbox, le64, npy, outcome, refused};

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
        (
            "many.coo.mtx",
            b"%%MatrixMarket matrix coordinate real general\n2 2 99999999999\n1 1 1\n",
            &["many.coo.mtx:2:", "cannot hold"],
        ),
        (
            "big.coo.mtx",
            b"%%MatrixMarket matrix coordinate real general\n9999999999 9999999999 1\n1 1 1\n",
            &["big.coo.mtx:2:", "memory"],
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
    refused(&s, &["bench", "getrf", "--n", "8", "--transa", "t"], &["--transa means nothing to getrf", "--m, --n"]);
    refused(&s, &["bench", "gemm", "--n", "8", "--nrhs", "2"], &["--nrhs means nothing to gemm"]);
    refused(&s, &["plan", "trsm", "--n", "8", "--k", "2"], &["--k means nothing to trsm"]);
    refused(&s, &["bench", "gemm", "--n", "8", "--plot", "gemm.png"], &["gemm.png", ".svg"]);
    for routine in ["gemm", "trsm", "getrs"] {
        for verb in ["bench", "plan"] {
            refused(&s, &[verb, routine, "--n", "8", "--nb", "4"], &[&format!("--nb means nothing to {routine}")]);
        }
    }
    for [verb, routine] in [["bench", "getrf"], ["bench", "gesv"], ["plan", "getrf"]] {
        outcome(&s.run(&[verb, routine, "--n", "8", "--nb", "4"]), 0);
    }
    refused(&s, &["plan", "gemm", "--n", "8", "--bandwidth", "2"], &["--bandwidth means nothing without --memory-limit"]);
    outcome(&s.run(&["plan", "gemm", "--n", "8", "--bandwidth", "2", "--memory-limit", "1M"]), 0);
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
    refused(&s, &["devices", "--memory-limit", "1T"], &["1T", "--memory-limit", "a positive number of bytes"]);
    outcome(&s.run(&["hpl", "--n", "4", "--memory-limit", "8589934591G"]), 0);
}
