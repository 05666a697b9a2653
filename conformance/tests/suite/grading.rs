//! Tests of verdicts: expected failures, panics, and recorded figures.

use lapidary_backend_cpu::CpuDevice;
use lapidary_conformance::report::{Identity, TrialReport, Verdict};
use lapidary_conformance::suite::properties_in;
use lapidary_conformance::{Grader, Subject, expectation, grades};
use lapidary_core::{DType, Device, Error, ErrorKind, Gemm, Getrf, Getrs, Laswp, MatMut, MatRef, Result, Scalar, Trsm};

use crate::naive::Naive;
use crate::panics::Panics;
use crate::wrong::{Fault, Wrong};
use crate::{find, scope};

/// A subject of plain loops that treats subnormal numbers as zero.
struct FlushesAll;

fn flush<T: Scalar>(x: T) -> T {
    // −0 is kept, since −0 is no subnormal number
    if x != T::ZERO && x.abs().to_f64() < T::MIN_POSITIVE { T::ZERO } else { x }
}

fn flushed<T: Scalar>(a: &MatRef<'_, T>) -> Vec<T> {
    let (m, n) = a.shape();
    (0..m * n).map(|e| flush(a.at(e % m, e / m))).collect()
}

fn flush_all<T: Scalar>(a: &mut MatMut<'_, T>) {
    let (m, n) = a.shape();
    for e in 0..m * n {
        a.set(e % m, e / m, flush(a.at(e % m, e / m)));
    }
}

impl Subject for FlushesAll {
    fn name(&self) -> String {
        "flushes".into()
    }
    fn identity(&self) -> Identity {
        Identity { name: self.name(), device: "Model 7, driver (vulkan)".into(), ..Identity::default() }
    }
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let Gemm { alpha, op_a, a, op_b, b, beta, mut c } = args.check()?.into_inner();
        let (x, y) = (flushed(&a), flushed(&b));
        let (a, b) = (MatRef::col_major(&x, a.rows(), a.cols())?, MatRef::col_major(&y, b.rows(), b.cols())?);
        flush_all(&mut c);
        Naive.gemm(Gemm { alpha, op_a, a, op_b, b, beta, c: c.reborrow() })?;
        flush_all(&mut c);
        Ok(())
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let Trsm { side, uplo, op, diag, alpha, a, mut b, mode } = args.check()?.into_inner();
        let x = flushed(&a);
        let a = MatRef::col_major(&x, a.rows(), a.cols())?;
        flush_all(&mut b);
        Naive.trsm(Trsm { side, uplo, op, diag, alpha, a, b: b.reborrow(), mode })?;
        flush_all(&mut b);
        Ok(())
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        Naive.getrf(args)
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        Naive.getrs(args)
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        Naive.laswp(args)
    }
}

fn trials<S: Subject + 'static, T: Scalar>(subject: &S) -> Vec<TrialReport> {
    let grader = Grader::new(subject, &subject.identity(), scope(150), &expectation::known());
    properties_in::<S, T>().iter().map(|property| grader.try_on(subject, property)).collect()
}

/// Of the trials of a subject that flushes subnormal numbers, only three may fail: those that `expectations.toml` names for
/// flushing.
fn three_trials_have<T: Scalar>(verdict: Verdict) {
    let all = trials::<_, T>(&FlushesAll);
    let bad = all.iter().filter(|trial| !matches!(trial.verdict, Verdict::Passed | Verdict::Skipped));
    let found: Vec<_> = bad.map(|trial| (trial.name.clone(), trial.verdict)).collect();
    let expected = ["gemm::keeps_subnormals", "trsm::keeps_subnormals", "trsm::subnormal_pivots_divide"];
    assert_eq!(found, expected.map(|name| (format!("{}::{name}", T::DTYPE), verdict)));
    let grades = grades::grades(&FlushesAll, &all);
    let told = grades.iter().find(|grade| grade.name.ends_with("subnormal numbers")).unwrap();
    assert_eq!((told.verdict.as_str(), told.value.as_str()), ("flushes", "operands and results are taken for zero"));
    // known failures do not count in the grade for the worst figure
    let worst = grades.iter().find(|grade| grade.name.ends_with("worst gemm: componentwise")).unwrap();
    let used: f64 = worst.verdict.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(used <= 1.0, verdict == Verdict::Expected, "{}", worst.verdict);
    let skipped = all.iter().map(|trial| TrialReport { verdict: Verdict::Skipped, ..trial.clone() }).collect::<Vec<_>>();
    let untried = grades::grades(&FlushesAll, &skipped);
    assert!(untried.iter().all(|grade| !grade.name.ends_with("NaN and Inf")), "nothing was asked about NaN");
}

#[test]
fn a_device_that_flushes_is_excused_in_single_precision_where_it_shows_and_nowhere_else() {
    three_trials_have::<f32>(Verdict::Expected);
    three_trials_have::<f64>(Verdict::Failed);
}

#[test]
fn figures_are_recorded_where_a_trial_passes() {
    let grader = Grader::strict(scope(150));
    let trial = grader.grade(&Naive, find(&properties_in::<_, f64>(), "gemm::random"));
    assert!(trial.verdict == Verdict::Passed && trial.cases >= 150 && trial.failure.is_none());
    for check in ["gemm: componentwise", "gemm: norm-wise", "gemm: Netlib"] {
        let figures: Vec<_> = trial.figures.iter().filter(|figure| figure.check == check).collect();
        assert!(figures.len() > 10 && figures.iter().all(|figure| figure.used() <= 1.0), "{check}");
        assert!(figures.iter().any(|figure| figure.ratio > 0.0 && figure.limit > 0.0), "{check}");
        let mut kinds: Vec<_> = figures.iter().map(|figure| (&figure.flags, figure.size.next_power_of_two())).collect();
        kinds.sort();
        kinds.dedup();
        assert_eq!(kinds.len(), figures.len(), "{check}: one figure for flags and size");
    }
}

#[test]
fn what_panics_has_failed_and_what_does_not_apply_is_skipped() {
    let panics = Panics(&[DType::F32]);
    let grader = Grader::strict(scope(3));
    let tried = |name| grader.try_on(&panics, find(&properties_in::<_, f32>(), name));
    let trial = tried("gemm::precision");
    let failure = trial.failure.unwrap();
    assert_eq!(
        (trial.verdict, failure.check.as_str(), failure.detail.as_str()),
        (Verdict::Failed, "suite: no panic", "no product")
    );
    let device = tried("transfer::round_trip");
    assert!(device.verdict == Verdict::Skipped && device.why.contains("no device"), "{}", device.why);
    let double = grader.try_on(&panics, find(&properties_in::<_, f64>(), "gemm::precision"));
    assert!(double.verdict == Verdict::Skipped && double.why.contains("f64") && double.cases == 0);
    assert_eq!(Identity { os: String::new(), ..panics.identity() }, Identity { name: "panics".into(), ..Identity::default() });
}

/// Tests the grades of subjects whose right grades are known.
#[test]
fn grades_name_what_is_inside() {
    use crate::subtle::{Subtle, Way};

    let verdict = |grades: &[lapidary_conformance::report::Grade], name: &str| {
        grades.iter().find(|grade| grade.name == name).map(|grade| grade.verdict.clone()).unwrap_or_default()
    };
    let trial =
        |name: &str| TrialReport { name: name.to_owned(), ..Grader::strict(scope(1)).grade(&Naive, &properties_in::<_, f32>()[0]) };
    let both = [trial("f32::x"), TrialReport { dtype: "f64".to_owned(), ..trial("f64::x") }];
    let plain = grades::grades(&Naive, &both);
    assert_eq!([verdict(&plain, "f32: precision"), verdict(&plain, "f64: precision")], ["f32", "f64"]);
    assert_eq!(verdict(&plain, "f64: order of summation"), "one after the other");
    assert_eq!(verdict(&plain, "f64: reproducible"), "yes");
    assert_eq!(verdict(&plain, "f64: growth of a random LU"), "usual");
    let low = grades::grades(&Wrong(Fault::LowPrecision), &both);
    assert_eq!([verdict(&low, "f32: precision"), verdict(&low, "f64: precision")], ["hidden TF32", "hidden f32"]);
    let blocks = grades::grades(&Subtle::new(Way::StrassenLike), &both);
    assert_eq!(verdict(&blocks, "f64: order of summation"), "another tree");
    let value = |grades: &[lapidary_conformance::report::Grade]| {
        grades.iter().find(|grade| grade.name == "f64: order of summation").map(|grade| grade.value.clone())
    };
    assert_ne!(value(&plain), value(&blocks));
}

/// A subject with a fault, the fault that it has on several devices, and the number of devices that took part in a call.
struct Against(Wrong, Fault, Answer);

/// The number of devices that took part in a call, or the reason why several devices cannot be opened.
type Answer = std::result::Result<Option<usize>, &'static str>;

impl Subject for Against {
    fn name(&self) -> String {
        self.0.name()
    }
    fn one_and_several(&self) -> Option<Result<[Self; 2]>> {
        let on = |fault| Against(Wrong(fault), fault, self.2);
        let error = |why: &str| Error::new(ErrorKind::NoSuchDevice, "open", why);
        Some(self.2.map(|_| [on(self.0.0), on(self.1)]).map_err(error))
    }
    fn devices_used(&self) -> Option<usize> {
        self.2.unwrap()
    }
    lapidary_conformance::routines_of!(0, getrf);
}

#[test]
fn one_device_and_several_are_compared_routine_by_routine() {
    use Fault::{AlwaysForward, LastPlaceOfU, LastPlaceOfX, RoundsBeta};
    let compared = |fault: Fault, count: Answer| {
        let both = Against(Wrong(AlwaysForward), fault, count).one_and_several().unwrap();
        grades::one_and_several::<_, f64>(&both).map(|grade| (grade.verdict, grade.failed, grade.value))
    };
    let verdicts = |fault, count: Answer| compared(fault, count).map(|(verdict, failed, _)| (verdict, failed));
    let told = |verdicts: [&str; 3]| verdicts.map(|verdict| (verdict.to_owned(), verdict == "too far apart"));
    for count in [None, Some(2)] {
        let verdicts = |fault| verdicts(fault, Ok(count));
        assert_eq!(verdicts(AlwaysForward), told(["same bits"; 3]));
        assert_eq!(verdicts(LastPlaceOfX), told(["same bits", "other bits", "same bits"]));
        assert_eq!(verdicts(LastPlaceOfU), told(["same bits", "same bits", "other bits"]));
        assert_eq!(verdicts(RoundsBeta), told(["too far apart", "same bits", "same bits"]));
    }
    // if one device ran all tasks, the calls show nothing about several devices, unless a result is wrong
    assert_eq!(verdicts(LastPlaceOfU, Ok(Some(1))), told(["not measured"; 3]));
    assert_eq!(verdicts(RoundsBeta, Ok(Some(1))), told(["too far apart", "not measured", "not measured"]));
    assert!(compared(AlwaysForward, Ok(Some(2)))[0].2.ends_with("2 devices had a part"));
    for (verdict, failed, value) in compared(AlwaysForward, Err("the second does not open")) {
        assert!(verdict == "not measured" && !failed && value.contains("the second does not open"), "{verdict}: {value}");
    }
    let subject = Against(Wrong(AlwaysForward), AlwaysForward, Err("the second does not open"));
    let trial = Grader::strict(scope(1)).grade(&subject, &properties_in::<_, f64>()[0]);
    let grades = grades::grades(&subject, &[trial]);
    assert_eq!(grades.iter().filter(|grade| grade.name.contains("one device and several")).count(), 3);
}

/// A subject of plain loops with two devices. The numbers are the sizes of the devices' memories in bytes.
struct WithDevices(Naive, [usize; 2]);

impl Subject for WithDevices {
    fn name(&self) -> String {
        self.0.name()
    }
    fn devices(&self, visit: &mut dyn FnMut(&dyn Device)) {
        self.1.iter().for_each(|&bytes| visit(&CpuDevice::new(0, Some(bytes))));
    }
    lapidary_conformance::routines_of!(0, getrf);
}

#[test]
fn what_one_device_shows_is_not_skipped_because_another_lacks_memory() {
    const LITTLE: usize = 1 << 12;
    const MUCH: usize = 1 << 30;
    let both = [([MUCH, LITTLE], Verdict::Passed), ([LITTLE, MUCH], Verdict::Passed), ([LITTLE, LITTLE], Verdict::Skipped)];
    for (memory, verdict) in both {
        let property = *find(&properties_in::<WithDevices, f64>(), "large::matrix_in_one_buffer");
        let trial = Grader::strict(scope(3)).grade(&WithDevices(Naive, memory), &property);
        assert_eq!((trial.verdict, trial.why.contains("at most 4096")), (verdict, verdict == Verdict::Skipped), "{memory:?}");
    }
}

/// A subject of plain loops, except that a product with nine or more rows returns the error for lack of memory. The number is the
/// memory limit of the subject, if it has one.
struct Lacking(Option<usize>);

impl Subject for Lacking {
    fn name(&self) -> String {
        "lacking".into()
    }
    fn memory_limit(&self) -> Option<usize> {
        self.0
    }
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let small = args.a.rows() < 9;
        if small { Naive.gemm(args) } else { Err(Error::new(ErrorKind::OutOfMemory, "gemm", "it is full")) }
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        Naive.trsm(args)
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        Naive.getrf(args)
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        Naive.getrs(args)
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        Naive.laswp(args)
    }
}

#[test]
fn what_lacks_memory_is_skipped_under_a_limit_and_fails_without_one() {
    for name in ["gemm::random", "gemm::precision"] {
        let trial = |limit| Grader::strict(scope(60)).try_on(&Lacking(limit), find(&properties_in::<_, f64>(), name));
        let [limited, unlimited] = [trial(Some(4096)), trial(None)];
        assert!(limited.verdict == Verdict::Skipped && limited.why.contains("the limit is 4096 bytes"), "{limited:?}");
        assert!(limited.failure.unwrap().detail.contains("it is full"));
        assert_eq!((unlimited.verdict, unlimited.failure.unwrap().check.as_str()), (Verdict::Failed, "gemm: completes"));
    }
    let failed =
        |limit| grades::grades(&Lacking(limit), &[Grader::strict(scope(1)).grade(&Lacking(limit), &properties_in::<_, f64>()[0])]);
    assert!(failed(None).iter().any(|grade| grade.failed) && !failed(Some(4096)).iter().any(|grade| grade.failed));
}
