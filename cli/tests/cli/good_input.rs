//! Tests with correct files in all formats that the program reads and writes.

use crate::support::{Sandbox, le32, le64, npy, outcome};

#[test]
fn every_good_format_gives_the_same_solution() {
    let s = Sandbox::new();
    // The system is A = [2 1; 1 3], b = [3; 5], and its solution is x = [0.8; 1.4].
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
    // The next three files contain peculiarities of Fortran, spreadsheets and Windows editors.
    s.text("d.mtx", "\u{feff}%%MatrixMarket matrix array real general\n2 2\n0.2D+01\n1D0\n1.0d+00\n30D-1\n");
    s.text("bom.csv", "\u{feff}2,1\r\n\"1\",\"3\"\r\n# the end");
    s.text("end.csv", "\n2,1\n# a comment\n1,3\n\n\n");
    for a in ["c.npy", "be.npy", "dense.mtx", "lower.mtx", "coo.mtx", "twice.mtx", "a.csv", "d.mtx", "bom.csv", "end.csv"] {
        for b in ["b.npy", "b.mtx", "b.csv"] {
            let out = s.run(&["solve", a, b, "-o", "x.csv"]);
            assert_eq!(out.status, 0, "{a} {b}: {}", out.stderr);
            let x: Vec<f64> = s.read("x.csv").lines().map(|line| line.parse().unwrap()).collect();
            assert!((x[0] - 0.8).abs() < 1e-14 && (x[1] - 1.4).abs() < 1e-14, "{a} {b}: {x:?}");
        }
    }
}

#[test]
fn the_sample_data_has_the_promised_solution() {
    let s = Sandbox::new();
    let sample = |name| format!(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/{}"), name);
    outcome(&s.run(&["solve", &sample("poisson9.mtx"), &sample("poisson9_b.csv"), "-o", "x.csv"]), 0);
    let x: Vec<f64> = s.read("x.csv").lines().map(|line| line.parse().unwrap()).collect();
    assert!(x.len() == 9 && x.iter().all(|x| (x - 1.0).abs() < 1e-14), "{x:?}");
}

#[test]
fn orders_of_an_unsymmetric_matrix_are_told_apart() {
    let s = Sandbox::new();
    // With A = [1 2; 0 1], the solution of A·x = (3, 1) is (1, 1), and that of Aᵀ·x = (3, 1) is (3, -5).
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

/// Integers, bools and half-precision numbers are converted exactly, and a note names the conversion.
#[test]
fn arrays_of_other_types_are_converted_exactly() {
    let s = Sandbox::new();
    s.bytes("b.npy", &npy("<f8", false, "(2,)", &le64(&[3.0, 5.0])));
    let solved = |descr: &str, name: &str, bytes: &[u8], dtype: &str| {
        s.bytes("a.npy", &npy(descr, false, "(2, 2)", bytes));
        let run = s.run(&["solve", "a.npy", "b.npy", "-o", "x.csv"]);
        outcome(&run, 0);
        let told = format!("a.npy: values of type {name} are converted to {dtype}, exactly");
        assert!(run.stderr.contains(&told), "{descr}: {}", run.stderr);
        s.read("x.csv").lines().map(|line| line.parse::<f64>().unwrap()).collect::<Vec<_>>()
    };
    // The matrix [2 1; 1 3] is tested in every integer type and in both byte orders.
    macro_rules! integers {
        ($($type:ident $letter:literal $name:literal),+) => {$(
            let (size, values) = (size_of::<$type>(), [2, 1, 1, 3] as [$type; 4]);
            for (order, bytes) in [("<", values.map($type::to_le_bytes).concat()), (">", values.map($type::to_be_bytes).concat())] {
                let x = solved(&format!("{order}{}{size}", $letter), $name, &bytes, "f64");
                assert!((x[0] - 0.8).abs() < 1e-14 && (x[1] - 1.4).abs() < 1e-14, "{}: {x:?}", $name);
            }
        )+};
    }
    integers!(i8 "i" "int8", i16 "i" "int16", i32 "i" "int32", i64 "i" "int64");
    integers!(u8 "u" "uint8", u16 "u" "uint16", u32 "u" "uint32", u64 "u" "uint64");
    assert_eq!(solved("|b1", "bool", &[1, 1, 0, 1], "f64"), [-2.0, 5.0]);
    // The bytes are the numbers −2, 1/2, 0 and 5 in half precision.
    assert_eq!(solved("<f2", "float16", &[0x00, 0xc0, 0x00, 0x38, 0x00, 0x00, 0x00, 0x45], "f32"), [-1.25, 1.0]);
    assert_eq!(solved(">f2", "float16", &[0xc0, 0x00, 0x38, 0x00, 0x00, 0x00, 0x45, 0x00], "f32"), [-1.25, 1.0]);
    // Integers beyond 2^53 are accepted if `f64` represents them exactly.
    let large = [1_i64 << 60, 0, 0, -(1 << 62)].map(i64::to_le_bytes).concat();
    assert_eq!(solved("<i8", "int64", &large, "f64"), [3.0 / 2_f64.powi(60), -5.0 / 2_f64.powi(62)]);
}
