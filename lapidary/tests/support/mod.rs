//! Machines as subjects of the conformance suite.

#[allow(dead_code, reason = "each test file uses its part")]
pub mod resident;

use std::str::FromStr;

use lapidary::core::{DType, DeviceVisitor, Getrf, Laswp, Scalar};
use lapidary::{Machine, MatMut, Select, Settings};
use lapidary_conformance::oracle::Dense;
use lapidary_conformance::properties::agreement::{Closeness, Pair};
use lapidary_conformance::report::{Identity, TrialReport};
use lapidary_conformance::suite::{agreements, properties_in};
use lapidary_conformance::{Grader, Scope, Subject, expectation, harness, routines_of};

/// A machine under its selection's name.
pub struct Graded(pub String, pub Machine);

impl Graded {
    pub fn open(select: &str, settings: &Settings) -> Self {
        let machine = Machine::with_settings(&Select::from_str(select).unwrap(), settings).unwrap();
        Graded(format!("{select} {settings:?}"), machine)
    }
}

impl Subject for Graded {
    fn name(&self) -> String {
        self.0.clone()
    }
    fn identity(&self) -> Identity {
        let names: Vec<&str> = self.1.devices().map(|device| device.description.as_str()).collect();
        Identity { name: self.name(), device: names.join(" + "), ..Identity::default() }
    }
    fn computes(&self, dtype: DType) -> bool {
        dtype != DType::F64 || self.1.devices().any(|device| device.f64)
    }
    fn devices(&self, visitor: &mut impl DeviceVisitor) {
        self.1.visit_devices(visitor);
    }
    routines_of!(1, getrf_into);
}

/// Every property, all failures at once.
#[allow(dead_code, reason = "each test file uses its part")]
pub fn grade<T: Scalar>(subject: &impl Subject, scope: &Scope) {
    let grader = Grader::new(subject, &subject.identity(), scope.clone(), &expectation::known());
    all_good(&subject.name(), properties_in::<_, T>().iter().map(|property| grader.grade(subject, property)));
}

/// Every routine of both, all disagreements at once.
#[allow(dead_code, reason = "each test file uses its part")]
pub fn agree<T: Scalar>(one: &Graded, other: &Graded, closeness: Closeness, scope: &Scope) {
    let (pair, grader) = (Pair { one, other, closeness }, Grader::strict(scope.clone()));
    let compared = agreements::<Graded, Graded, T>();
    all_good(&format!("{} and {}", one.0, other.0), compared.iter().map(|property| grader.grade(&pair, property)));
}

#[allow(dead_code, reason = "each test file uses its part")]
fn all_good(name: &str, trials: impl Iterator<Item = TrialReport>) {
    let complaint = |trial: TrialReport| {
        let failed = harness::verdict(&trial).err()?;
        Some(format!("{}: {}", trial.name, failed.message().unwrap_or_default()))
    };
    let failures: Vec<String> = trials.filter_map(complaint).collect();
    assert!(failures.is_empty(), "{name}\n{}", failures.join("\n"));
}

/// A few tiles or a narrow panel of the small scope fit, a whole matrix does not.
pub fn limited(bytes: usize) -> Settings {
    Settings { memory_limit: Some(bytes), nb: None, ..Settings::default() }
}

/// A panel so tall that one work-item would go round for long: rows of an LU that are
/// multiplied out are the rows of the matrix.
#[allow(dead_code, reason = "each test file uses its part")]
pub fn tall_panel<T: Scalar>(subject: &Graded) {
    const M: usize = 9000;
    const N: usize = 12;
    // the largest numbers stand below
    let entry = |e: usize| (((e * 7919 + e / 13) % 1009) as f64 / 1009.0 - 0.5) * (1.0 + (e % M) as f64 / M as f64);
    let a: Vec<T> = (0..M * N).map(|e| T::from_f64(entry(e))).collect();
    let (mut lu, mut ipiv) = (a.clone(), vec![0; N]);
    let info = subject.1.getrf_into(Getrf::new(MatMut::col_major(&mut lu, M, N).unwrap(), &mut ipiv)).unwrap();
    let mut rows: Vec<usize> = (0..M).collect();
    ipiv.iter().enumerate().for_each(|(i, &p)| rows.swap(i, p as usize));
    let element = |i: usize, j: usize| {
        let l = |k: usize| if k == i { 1.0 } else { lu[i + k * M].to_f64() };
        (0..=i.min(j)).map(|k| l(k) * lu[k + j * M].to_f64()).sum::<f64>()
    };
    let apart = |i: usize, j: usize| (element(i, j) - a[rows[i] + j * M].to_f64()).abs();
    // the oracle's norm keeps NaN, which the larger of two numbers would lose
    let worst = Dense::from_fn(M, N, apart).max_abs();
    let multipliers = Dense::from_fn(M, N, |i, j| if i > j { lu[i + j * M].to_f64() } else { 0.0 }).max_abs();
    assert!(multipliers <= 1.0 + 4.0 * T::UNIT_ROUNDOFF, "{}: a multiplier of {multipliers}", subject.name());
    // bound 8 with factors below 1 and growth below 2^N is far above; entries are below one
    assert!(info == 0 && worst < 64.0 * N as f64 * T::UNIT_ROUNDOFF, "{}: {worst:e} apart", subject.name());
}

/// More exchanges of rows than are prepared at once, in either order, some of them twice.
#[allow(dead_code, reason = "each test file uses its part")]
pub fn many_exchanges<T: Scalar>(subject: &Graded) {
    const M: usize = 700;
    const N: usize = 11;
    let a: Vec<T> = (0..M * N).map(|i| T::from_f64(i as f64)).collect();
    let ipiv: Vec<i32> = (0..640).map(|i| i32::try_from(i + (i * 37 + i / 5) % (M - i)).unwrap()).collect();
    let mut rows: Vec<usize> = (0..M).collect();
    ipiv.iter().enumerate().for_each(|(i, &p)| rows.swap(i, p as usize));
    let mut moved = a.clone();
    let exchange = |moved: &mut Vec<T>, forward| {
        let view = MatMut::col_major(moved, M, N).unwrap();
        subject.1.laswp(Laswp { a: view, ipiv: &ipiv, forward }).unwrap();
    };
    exchange(&mut moved, true);
    assert!((0..M * N).all(|e| moved[e] == a[rows[e % M] + e / M * M]), "{}: forward", subject.name());
    exchange(&mut moved, false);
    assert!(moved == a, "{}: and back", subject.name());
}
