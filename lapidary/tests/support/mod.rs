//! Machines as subjects of the conformance suite.

use std::str::FromStr;

use lapidary::core::{Gemm, Getrf, Getrs, Laswp, Result, Scalar, Trsm};
use lapidary::{Machine, MatMut, Select, Settings};
use lapidary_conformance::properties::agreement::{Closeness, Pair};
use lapidary_conformance::suite::{Compare, WITH_SUBNORMALS, agreements, properties};
use lapidary_conformance::{Flushing, Scope, Subject, flushes};

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
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        self.1.gemm(args)
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        self.1.trsm(args)
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        self.1.getrf_into(args)
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        self.1.getrs(args)
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        self.1.laswp(args)
    }
}

/// Every property, all failures at once. A machine that flushes fails where subnormal
/// numbers matter, there alone, and not if they may be zero.
pub fn grade<T: Scalar>(subject: &Graded, scope: &Scope) {
    let flushes = flushes::<_, T>(subject).unwrap();
    let (owed, excused) = (properties::<Graded, T>(), properties::<Flushing<Graded>, T>());
    let failures = owed.iter().zip(&excused).filter_map(|(owed, excused)| {
        let verdict = (owed.check)(subject, scope);
        let failure = if !flushes || !WITH_SUBNORMALS.contains(&owed.name) {
            verdict.err()?.to_string()
        } else if verdict.is_ok() {
            "passes, though the machine flushes".to_owned()
        } else {
            (excused.check)(&Flushing(subject), scope).err()?.to_string()
        };
        Some(format!("{}: {failure}", owed.name))
    });
    let failures: Vec<String> = failures.collect();
    assert!(failures.is_empty(), "{}\n{}", subject.name(), failures.join("\n"));
}

/// Every routine of both, all disagreements at once.
pub fn agree<T: Scalar>(one: &Graded, other: &Graded, closeness: Closeness, scope: &Scope) {
    let pair = Pair { one, other, closeness };
    let compared = agreements::<Graded, Graded, T>().into_iter();
    let apart = |(name, compare): (&str, Compare<Graded, Graded>)| compare(&pair, scope).err().map(|f| format!("{name}: {f}"));
    let failures: Vec<String> = compared.filter_map(apart).collect();
    assert!(failures.is_empty(), "{} and {}\n{}", one.name(), other.name(), failures.join("\n"));
}

/// A few tiles or a narrow panel of the small scope fit, a whole matrix does not.
pub fn limited(bytes: usize) -> Settings {
    Settings { memory_limit: Some(bytes), nb: None, ..Settings::default() }
}

/// A panel so tall that one work-item would go round for long: rows of an LU that are
/// multiplied out are the rows of the matrix.
pub fn tall_panel<T: Scalar>(subject: &Graded) {
    const M: usize = 9000;
    const N: usize = 12;
    let a: Vec<T> = (0..M * N).map(|i| T::from_f64(((i * 7919 + i / 13) % 1009) as f64 / 1009.0 - 0.5)).collect();
    let (mut lu, mut ipiv) = (a.clone(), vec![0; N]);
    let info = subject.1.getrf_into(Getrf::new(MatMut::col_major(&mut lu, M, N).unwrap(), &mut ipiv)).unwrap();
    let mut rows: Vec<usize> = (0..M).collect();
    ipiv.iter().enumerate().for_each(|(i, &p)| rows.swap(i, p as usize));
    let element = |i: usize, j: usize| {
        let l = |k: usize| if k == i { 1.0 } else { lu[i + k * M].to_f64() };
        (0..=i.min(j)).map(|k| l(k) * lu[k + j * M].to_f64()).sum::<f64>()
    };
    let apart = |i: usize, j: usize| (element(i, j) - a[rows[i] + j * M].to_f64()).abs();
    let worst = (0..M * N).map(|e| apart(e % M, e / M)).fold(0.0, f64::max);
    // bound 8 with factors below 1 and growth below 2^N is far above; entries are below one half
    assert!(info == 0 && worst < 64.0 * N as f64 * T::UNIT_ROUNDOFF, "{}: {worst:e} apart", subject.name());
}
