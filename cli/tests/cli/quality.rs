//! Tests of the accuracy checks of `solve`, and of the cases in which `solve` writes X.

use serde_json::Value;

use crate::support::{Run, Sandbox, outcome, refused};

/// Formats rows of numbers as CSV text with all digits.
fn csv(rows: impl IntoIterator<Item = Vec<f64>>) -> String {
    let row = |row: Vec<f64>| row.iter().map(|value| format!("{value:e}")).collect::<Vec<_>>().join(",") + "\n";
    rows.into_iter().map(row).collect()
}

fn diagonal(values: &[f64]) -> String {
    csv((0..values.len()).map(|i| (0..values.len()).map(|j| if i == j { values[i] } else { 0.0 }).collect()))
}

fn column(values: &[f64]) -> String {
    csv(values.iter().map(|&value| vec![value]))
}

/// A random number in [-0.5, 0.5), which depends only on `seed` and `at`.
fn noise(seed: usize, at: usize) -> f64 {
    let mixed = (seed * 65_537 + at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) as f64 / 2.0_f64.powi(64) - 0.5
}

/// Runs `solve` on the matrices `a` and `b`. Returns the run and its figures. The run writes X to `x.csv`.
fn solve(s: &Sandbox, a: &str, b: &str, more: &[&str]) -> (Run, Value) {
    s.text("a.csv", a);
    s.text("b.csv", b);
    let run = s.run(&[&["solve", "a.csv", "b.csv", "-o", "x.csv", "--json", "f.json", "--device", "cpu:0"][..], more].concat());
    let figures = s.json("f.json");
    (run, figures)
}

fn x(s: &Sandbox) -> Vec<f64> {
    s.read("x.csv").lines().map(|line| line.parse().unwrap()).collect()
}

/// The largest error of an element, divided by the largest element of `exact`.
fn error(x: &[f64], exact: &[f64]) -> f64 {
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, |most: f64, v| most.max(v.abs()));
    most(&mut x.iter().zip(exact).map(|(x, y)| x - y)) / most(&mut exact.iter().copied())
}

#[test]
fn what_single_precision_cannot_hold_is_scaled_or_told() {
    let s = Sandbox::new();
    let single = ["--dtype", "f32"];
    // Elements of A and b exceed the range of f32, but the elements of X do not.
    for (a, b, exact) in [
        ([1e-30, 1e-30], [1e-50, 1e-50], [1e-20, 1e-20]),
        ([1e-50, 1.0], [1e-50, 2.0], [1.0, 2.0]),
        ([1e-300, 1e-200], [3e-300, 1e-200], [3.0, 1.0]),
    ] {
        let (run, figures) = solve(&s, &diagonal(&a), &column(&b), &single);
        outcome(&run, 0);
        assert!(error(&x(&s), &exact) < 2e-7, "{a:?}: {:?}", x(&s));
        assert!(run.stdout.contains("equilibrated") && run.stdout.contains("rounding"), "{}", run.stdout);
        // Scaling by powers of two brings each diagonal element into [1, 2).
        assert!(figures["rcond"].as_f64().unwrap() > 0.49 && figures["equilibrated"] == true, "{figures:#}");
    }
    let (run, _) = solve(&s, "1,1\n1,1.000000001\n", "1\n2\n", &single);
    assert_eq!(run.status, 1, "{}", run.stdout);
    assert!(run.stderr.contains("singular after rounding to f32") && run.stderr.contains("--dtype f64"), "{}", run.stderr);
    // The elements of X are too small or too large for f32.
    for (a, b, words) in [(1e30, 1e-30, "too small for f32"), (1e-30, 1e30, "exceeds the range of f32")] {
        let (run, figures) = solve(&s, &diagonal(&[a, a]), &column(&[b, b]), &single);
        assert_eq!((run.status, &figures["passed"]), (1, &false.into()), "{}", run.stdout);
        assert!(run.stderr.contains(words) && run.stderr.contains("--dtype f64"), "{}", run.stderr);
    }
}

#[test]
fn what_is_held_exactly_draws_no_note() {
    let s = Sandbox::new();
    let (run, figures) = solve(&s, "4,1\n-2,3.5\n", "16777216\n0.125\n", &["--dtype", "f32"]);
    outcome(&run, 0);
    assert!(run.stderr.is_empty() && !run.stdout.contains("equilibrated"), "{}{}", run.stdout, run.stderr);
    assert_eq!((&figures["rounding"]["a"]["inexact"], &figures["rounding"]["b"]["inexact"]), (&0.into(), &0.into()));
    let (run, figures) = solve(&s, "4,1\n-2,0.1\n", "1\n1\n", &["--dtype", "f32"]);
    assert!(run.stdout.contains("A: 1 element rounded,"), "{}", run.stdout);
    assert_eq!(figures["rounding"]["a"]["inexact"], 1);
}

#[test]
fn a_matrix_that_scaling_makes_singular_is_not_blamed_on_a_precision() {
    let s = Sandbox::new();
    let (run, _) = solve(&s, "1,1,0\n1048576,1048576,5e-324\n0,1,1\n", "1\n1\n1\n", &[]);
    outcome(&run, 1);
    assert!(run.stderr.contains("A is singular after scaling in f64: info") && !run.stderr.contains("--dtype"), "{}", run.stderr);
}

/// The trusted digits must refer to A as it was read. If the residual were that of A rounded to single precision, the message would
/// promise more digits.
#[test]
fn digits_in_single_precision_are_those_of_the_matrix_as_read() {
    let s = Sandbox::new();
    let (run, figures) = solve(&s, "1,1\n1,1.0000005\n", "2\n2.0000003\n", &["--dtype", "f32"]);
    outcome(&run, 0);
    assert!(error(&x(&s), &[1.4, 0.6]) > 1e-2, "{:?}", x(&s));
    assert_eq!(figures["trusted_digits"], 0, "{figures:#}");
}

/// Wilkinson's matrix of order n as CSV text. The elements of its factor U grow to 2^(n-1).
fn wilkinson(n: usize) -> String {
    let entry = |i: usize, j: usize| {
        if j + 1 == n || i == j {
            1.0
        } else if i > j {
            -1.0
        } else {
            0.0
        }
    };
    csv((0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()))
}

#[test]
fn growth_of_the_factors_costs_digits() {
    let s = Sandbox::new();
    for n in 10..=16_usize {
        let b: Vec<i64> = (0..n).map(|i| (noise(n, i) * 2.0_f64.powi(40)) as i64).collect();
        // The test solves L·y = b and U·x = y exactly, with integers that are multiplied by 2^(n-1).
        let mut y: Vec<i128> = Vec::new();
        b.iter().for_each(|&b| y.push(i128::from(b) + y.iter().sum::<i128>()));
        let last = y[n - 1];
        let x_of = |i: usize| if i + 1 == n { last } else { (y[i] << (n - 1)) - (last << i) };
        let exact: Vec<f64> = (0..n).map(|i| x_of(i) as f64 / 2.0_f64.powi(n as i32 - 1)).collect();
        let a = wilkinson(n);
        let b: Vec<f64> = b.iter().map(|&b| b as f64).collect();
        let (run, figures) = solve(&s, &a, &column(&b), &[]);
        outcome(&run, 0);
        let (digits, error) = (figures["trusted_digits"].as_i64().unwrap() as i32, error(&x(&s), &exact));
        assert!(error <= 10.0_f64.powi(-digits) && digits >= 9, "n = {n}: {digits} digits, error {error:e}");
    }
}

/// A function from the index of a row or column to its size.
type Size<'a> = &'a dyn Fn(usize) -> f64;

/// Tests random systems of order 40 whose rows and columns have sizes near the limits of the number range.
#[test]
fn the_condition_is_that_of_the_scaled_matrix_and_always_a_number() {
    let s = Sandbox::new();
    let random =
        |row: Size<'_>, col: Size<'_>| csv((0..40).map(|i| (0..40).map(|j| noise(1, i * 40 + j) * row(i) * col(j)).collect()));
    let (one, sign) = (|_: usize| 1.0, |i: usize| if i.is_multiple_of(2) { 1.0 } else { -1.0 });
    let (_, plain) = solve(&s, &random(&one, &one), &column(&[1.0; 40]), &[]);
    let cases: [(Size<'_>, Size<'_>, f64); 4] = [
        (&|_| 1e-307, &one, 1e-7),
        (&|_| 1e307, &one, 1e300),
        (&|i| 10.0_f64.powf(300.0 * sign(i)), &one, 1.0),
        (&|i| 10.0_f64.powf(100.0 * sign(i)), &|j| 10.0_f64.powf(100.0 * sign(j / 2)), 1.0),
    ];
    for (at, (row, col, size)) in cases.into_iter().enumerate() {
        let b: Vec<f64> = (0..40).map(|i| size * if at == 2 { row(i) } else { 1.0 }).collect();
        let (run, figures) = solve(&s, &random(row, col), &column(&b), &[]);
        outcome(&run, 0);
        assert!(run.stdout.contains("badly scaled"), "{at}: {}", run.stdout);
        let [rcond, expected] = [&figures, &plain].map(|f| f["rcond"].as_f64().unwrap());
        assert!((0.02..50.0).contains(&(rcond / expected)), "{at}: rcond {rcond:e}, {expected:e} in other units");
        assert!(figures["trusted_digits"].as_u64().unwrap() >= 11, "{at}: {figures:#}");
    }
    let (run, figures) = solve(&s, &diagonal(&[2.0_f64.powi(100), 2.0_f64.powi(-100)]), "1\n1\n", &[]);
    outcome(&run, 0);
    assert!(run.stdout.contains("badly scaled") && run.stderr.is_empty(), "{}{}", run.stdout, run.stderr);
    assert_eq!((&figures["rcond"], &figures["trusted_digits"]), (&1.0.into(), &15.into()));
    assert_eq!(x(&s), [2.0_f64.powi(-100), 2.0_f64.powi(100)]);
}

#[test]
fn numbers_near_the_end_of_the_range_are_solved() {
    let s = Sandbox::new();
    let (run, _) = solve(&s, "1e308,1e308\n1e308,-1e308\n", "1e307\n1e308\n", &[]);
    outcome(&run, 0);
    assert!(error(&x(&s), &[0.55, -0.45]) < 1e-15, "{:?}", x(&s));
    // The program must report a solution that overflows as wrong.
    let (run, _) = solve(&s, "1e-300\n", "1e300\n", &[]);
    assert_eq!(run.status, 1, "{}", run.stdout);
    assert!(run.stderr.contains("X exceeds the range of f64"), "{}", run.stderr);
}

#[test]
fn refinement_never_makes_x_worse() {
    let s = Sandbox::new();
    let mut fewer = 0;
    for seed in 0..24 {
        let n = 3 + seed % 9;
        // The matrix of this test is nearly singular. The higher the seed, the closer the matrix is to a singular one.
        let row = |i: usize| if i == 0 { n - 1 } else { i };
        let tiny = |i: usize| if i == 0 { 10.0_f64.powi(-(seed as i32) * 2 / 3) } else { 0.0 };
        let a = csv((0..n).map(|i| (0..n).map(|j| noise(seed, row(i) * n + j) + tiny(i) * noise(seed + 99, j)).collect()));
        let b = column(&(0..n).map(|i| noise(seed, 1000 + i)).collect::<Vec<_>>());
        for dtype in ["f32", "f64"] {
            let error = |more: &[&str]| {
                let (_, figures) = solve(&s, &a, &b, &[&["--dtype", dtype], more].concat());
                figures["backward_error"].as_f64()
            };
            // For a singular matrix the program reports no backward error.
            let (Some(plain), Some(refined)) = (error(&[]), error(&["--refine"])) else { continue };
            assert!(refined <= plain, "{dtype} {seed}: {refined}, {plain} before");
            fewer += usize::from(refined < plain);
        }
    }
    assert!(fewer > 0, "refinement changed nothing");
}

#[test]
fn a_wrong_solution_is_written_only_when_asked() {
    let s = Sandbox::new();
    let n = 70;
    let a = wilkinson(n);
    let b = column(&(0..n).map(|i| noise(3, i)).collect::<Vec<_>>());
    let (run, figures) = solve(&s, &a, &b, &[]);
    assert_eq!((run.status, &figures["x_written"]), (1, &false.into()), "{}", run.stdout);
    assert!(["30 is the limit", "not written", "--write-anyway"].iter().all(|w| run.stderr.contains(w)), "{}", run.stderr);
    assert!(!s.files().contains(&"x.csv".to_owned()));
    let (run, figures) = solve(&s, &a, &b, &["--write-anyway"]);
    assert_eq!((run.status, &figures["x_written"]), (1, &true.into()), "{}", run.stdout);
    assert!(run.stderr.contains("written nevertheless"), "{}", run.stderr);
    assert_eq!(x(&s).len(), n);
    let run = s.run(&["solve", "a.csv", "b.csv"]);
    assert!(run.status == 1 && !run.stderr.contains("written"), "{}", run.stderr);
    refused(&s, &["solve", "a.csv", "b.csv", "--write-anyway"], &["--output"]);
}

/// With `ulimit -f 1` a file may have 1024 bytes. X takes less than 1024 bytes, but the figures of a run on forty devices take
/// more.
#[cfg(unix)]
#[test]
fn x_is_written_before_the_figures() {
    let s = Sandbox::new();
    s.text("a.csv", "2\n");
    s.text("b.csv", "4\n");
    let device = format!("cpu:{}", (0..40).map(|i| i.to_string()).collect::<Vec<_>>().join(","));
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let args = ["solve", "a.csv", "b.csv", "-o", "x.csv", "--json", "f.json", "--device", &device];
    let output = std::process::Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_lapidary")])
        .args(args)
        .current_dir(s.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("f.json: cannot write"), "{stderr}");
    assert_eq!(s.read("x.csv"), "2\n");
    assert_eq!(s.files(), ["a.csv", "b.csv", "x.csv"]);
}
