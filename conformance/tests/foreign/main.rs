//! Tests of libraries as subjects. The tests compile a library of plain loops with the symbols and the integer sizes of real
//! libraries.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use lapidary_conformance::foreign::Library;
use lapidary_conformance::report::{TrialReport, Verdict};
use lapidary_conformance::suite::properties;
use lapidary_conformance::{Grader, Scope, Subject};
use lapidary_core::{ErrorKind, Gemm, Layout, MatMut, MatRef, Trsm, TrsmMode};

/// A variant of the compiled library: its `cfg` flags, suffixes and prefix.
#[derive(Clone, Copy, Default)]
struct Shape {
    cfg: &'static [&'static str],
    suffix: &'static str,
    c_suffix: &'static str,
    prefix: &'static str,
}

const COMMON: Shape = Shape { cfg: &[], suffix: "_", c_suffix: "", prefix: "" };

/// Compiles a variant of the library and returns its path.
fn compile(name: &str, shape: Shape) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "{}{name}{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    ));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/library.rs");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition=2021", "--crate-type=cdylib", "-Copt-level=1", "-Awarnings", source, "-o"]).arg(&path);
    rustc.args(shape.cfg.iter().flat_map(|cfg| ["--cfg", cfg]));
    let status =
        rustc.env("SUFFIX", shape.suffix).env("C_SUFFIX", shape.c_suffix).env("PREFIX", shape.prefix).status().expect("rustc runs");
    assert!(status.success(), "{rustc:?}");
    path
}

fn open(name: &str, shape: Shape, way: &str) -> Library {
    Library::open(&format!("blas:{}{way}", compile(name, shape).display())).unwrap()
}

/// The variant of the library with the most common symbols, which is compiled once.
fn common(way: &str) -> Library {
    static PATH: LazyLock<PathBuf> = LazyLock::new(|| compile("common", COMMON));
    Library::open(&format!("blas:{}{way}", PATH.display())).unwrap()
}

/// Runs the trials of the library whose names contain `filter`.
fn grade(library: &Library, filter: &str) -> Vec<TrialReport> {
    let scope = Scope { blocks: vec![4, 16], min: 0, max: 24, cases: 32, large: vec![65], elements: 1 << 16, seed: 7 };
    let grader = Grader::strict(scope);
    let asked = properties().into_iter().filter(|property| property.full_name().contains(filter));
    asked.map(|property| grader.try_on(library, &property)).collect()
}

/// Runs the trials of the library whose names contain `filter`. No selected trial may fail. Returns the number of trials that pass.
fn pass(library: &Library, filter: &str) -> usize {
    let trials = grade(library, filter);
    let failed: Vec<&TrialReport> = trials.iter().filter(|trial| trial.verdict.is_bad()).collect();
    assert!(failed.is_empty(), "{}: {failed:#?}", library.name());
    trials.iter().filter(|trial| trial.verdict == Verdict::Passed).count()
}

#[test]
fn plain_loops_have_every_property_through_either_interface() {
    for way in ["", "#fortran"] {
        let passed = pass(&common(way), "");
        assert!(passed > 100, "{passed} trials passed");
    }
}

#[test]
fn integers_of_64_bits_are_found_whatever_the_names_say() {
    for (name, suffix, c_suffix) in [("long", "_", ""), ("long64", "64_", "64_"), ("long_64", "_64_", "_64")] {
        for way in ["", "#fortran"] {
            let library = open(name, Shape { cfg: &["long"], suffix, c_suffix, ..COMMON }, way);
            assert!(library.identity().api.contains("64-bit integers"), "{:?}", library.identity());
            assert!(pass(&library, "random") > 0 && pass(&library, "laswp") > 0 && pass(&library, "solve") > 0);
        }
    }
}

#[test]
fn each_file_has_integers_of_its_own() {
    let short = compile("products_short", Shape { cfg: &["products"], ..COMMON });
    let long = compile("all_long", Shape { cfg: &["long"], ..COMMON });
    let library = Library::open(&format!("blas:{},{}#fortran", short.display(), long.display())).unwrap();
    assert!(library.identity().api.contains("32- and 64-bit integers"), "{:?}", library.identity());
    assert!(pass(&library, "random") > 0 && pass(&library, "laswp") > 0 && pass(&library, "trsm::integers") > 0);
}

#[test]
fn where_no_dot_product_tells_the_version_does() {
    for (name, cfg, bits) in
        [("version32", &["dotless", "versioned"][..], "32-bit"), ("version64", &["dotless", "versioned", "long"], "64-bit")]
    {
        let library = open(name, Shape { cfg, ..COMMON }, "#fortran");
        assert!(library.identity().api.contains(bits), "{:?}", library.identity());
        assert!(pass(&library, "f64::solve") > 0);
    }
}

#[test]
fn what_does_not_tell_its_integers_is_refused_until_they_are_stated() {
    for (name, cfg, way, other) in
        [("untold32", &["dotless"][..], "#lp64", "#ilp64"), ("untold64", &["dotless", "long"], "#ilp64", "#lp64")]
    {
        let path = compile(name, Shape { cfg, ..COMMON });
        let error = Library::open(&format!("blas:{}", path.display())).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(way), "{error}");
        assert!(error.to_string().contains(other), "{error}");
        for interface in ["", "#fortran"] {
            let library = Library::open(&format!("blas:{}{interface}{way}", path.display())).unwrap();
            assert!(pass(&library, "f64::gemm::integers") > 0 && pass(&library, "f64::laswp") > 0);
        }
    }
}

#[test]
fn names_without_an_underscore_are_found() {
    let library = open("bare", Shape { suffix: "", ..COMMON }, "#fortran");
    assert!(library.identity().api.contains("32-bit integers"));
    assert!(pass(&library, "f64::getrf") > 10);
}

#[test]
fn either_interface_can_be_graded() {
    let shape = Shape { cfg: &["wrong_cblas"], ..COMMON };
    let verdict = |way: &str| grade(&open("wrong", shape, way), "f64::gemm::integers_are_exact").remove(0).verdict;
    assert_eq!([verdict(""), verdict("#fortran")], [Verdict::Failed, Verdict::Passed]);
}

/// The OpenBLAS in the packages of SciPy has the first of these spellings, and the OpenBLAS in the packages of NumPy has the
/// second.
#[test]
fn names_with_a_prefix_are_told_and_taken() {
    let plain = Shape { prefix: "scipy_", ..COMMON };
    let long = Shape { cfg: &["long"], suffix: "_64_", c_suffix: "64_", prefix: "scipy_" };
    for (name, shape, option, bits) in
        [("prefixed", plain, "#prefix=scipy_", "32-bit"), ("prefixed64", long, "#prefix=scipy_,suffix=64_", "64-bit")]
    {
        let name = format!("blas:{}", compile(name, shape).display());
        for way in ["", "#fortran"] {
            let error = Library::open(&format!("{name}{way}")).unwrap_err().to_string();
            assert!(error.ends_with(&format!(": write {name}{way}{option}")), "{error}");
            let library = Library::open(&format!("{name}{way}{option}")).unwrap();
            let api = library.identity().api;
            assert!(api.contains(bits) && api.contains("cblas") == way.is_empty(), "{api}");
            assert!(pass(&library, "random") > 0 && pass(&library, "laswp") > 0 && pass(&library, "trsm::integers") > 0);
        }
        let other = Library::open(&format!("{name}#prefix=other_")).unwrap_err().to_string();
        assert!(other.contains("such as other_dgemm_") && other.contains("#prefix=P"), "{other}");
    }
}

#[test]
fn what_is_missing_is_skipped_by_name() {
    let library = open("products", Shape { cfg: &["products"], ..COMMON }, "");
    assert!(pass(&library, "f32::gemm") > 10);
    for (trial, symbol) in
        [("f64::trsm::substitution", "dtrsm_"), ("f32::solve::random", "sgetrf_"), ("f64::laswp::rows_move", "dlaswp_")]
    {
        let [report] = &grade(&library, trial)[..] else { panic!("one trial is called {trial}") };
        assert_eq!((report.verdict, &*report.why), (Verdict::Skipped, &*format!("the library has no {symbol}")));
    }
    let (a, mut b) = ([1.0_f64], [2.0]);
    let trsm = Trsm::new(MatRef::col_major(&a, 1, 1).unwrap(), MatMut::col_major(&mut b, 1, 1).unwrap());
    let error = library.trsm(trsm.mode(TrsmMode::Substitution)).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("dtrsm_"), "{error}");
}

#[test]
fn a_library_that_gives_no_name_has_none() {
    let library = open("nameless", Shape { cfg: &["nameless", "products"], ..COMMON }, "");
    assert_eq!(library.identity().driver, "a library that does not name itself");
}

#[test]
fn far_elements_need_products_and_exchanges_alone() {
    let library = open("products_far", Shape { cfg: &["products"], ..COMMON }, "");
    let [report] = &grade(&library, "f64::memory::offsets_beyond_32_bits")[..] else { panic!("one trial is called so") };
    assert_eq!((report.verdict, &*report.why), (Verdict::Skipped, "the library has no dlaswp_"));
}

#[test]
fn what_no_library_offers_is_unsupported() {
    let library = common("");
    let (a, mut b) = ([1.0_f32], [2.0]);
    let trsm = Trsm::new(MatRef::col_major(&a, 1, 1).unwrap(), MatMut::col_major(&mut b, 1, 1).unwrap());
    assert_eq!(library.trsm(trsm.mode(TrsmMode::Inverted)).unwrap_err().kind(), ErrorKind::Unsupported);
    for trial in ["inverted_blocks", "without_pivoting", "wrong_shapes_are_refused", "a_refused_call_leaves_no_trace"] {
        assert!(grade(&library, trial).iter().all(|report| report.verdict == Verdict::Skipped), "{trial}");
    }
}

#[test]
fn sizes_beyond_the_integers_name_the_argument() {
    let library = common("");
    let rows = 1 << 31;
    let empty = || MatRef::<f64>::new(&[], rows, 0, rows, Layout::ColMajor).unwrap();
    let call = || {
        let c = MatMut::new(&mut [], rows, 0, rows, Layout::ColMajor).unwrap();
        library.gemm(Gemm::new(empty(), MatRef::col_major(&[], 0, 0).unwrap(), c))
    };
    let message = call().unwrap_err().to_string();
    assert!(message.contains("m = 2147483648 exceeds the library's 32-bit integers"), "{message}");
}

#[test]
fn wrong_arguments_are_refused_before_the_library_sees_them() {
    let library = common("");
    let (a, mut c) = ([1.0_f64; 4], [0.0; 4]);
    let gemm = Gemm::new(
        MatRef::col_major(&a, 2, 2).unwrap(),
        MatRef::col_major(&a, 1, 4).unwrap(),
        MatMut::col_major(&mut c, 2, 2).unwrap(),
    );
    assert_eq!(library.gemm(gemm).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn files_that_are_no_library_are_refused() {
    let refused = |name: &str| Library::open(name).unwrap_err();
    let error = refused("blas:/no/such/file.so");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    // the message contains the reason that the dynamic loader gives
    let message = error.to_string();
    assert!(message.contains("/no/such/file.so") && !message.ends_with("failed"), "{message}");
    let empty = compile("empty", Shape { cfg: &["empty"], ..COMMON });
    let error = refused(&format!("blas:{}", empty.display()));
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("no routine of the BLAS"), "{error}");
}
