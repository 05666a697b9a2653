//! Every format that is read and written.

use crate::support::{Sandbox, le32, le64, npy, outcome};

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
