//! Machines as subjects of the conformance suite.

use std::str::FromStr;

use lapidary::core::{Gemm, Getrf, Getrs, Laswp, Result, Scalar, Trsm};
use lapidary::{Machine, Select, Settings};
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
