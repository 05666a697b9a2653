//! Reads cases from case files. A case has the form in which a failure prints it.
//!
//! A case file contains one case and any number of remarks. Each remark is a line that begins with `#`.

use std::fmt::Display;
use std::str::FromStr;

use lapidary_core::{Diag, Layout, Op, Routine, Scalar, Side, TrsmMode, Uplo};

use super::{Fill, GemmCase, GetrfCase, LaswpCase, Pivot, Shape, SolveCase, Storage, TrsmCase};
use crate::properties::{gemm, getrf, laswp, solve, trsm};
use crate::{Failure, Subject, Trial};

/// A case of any routine, as a case file describes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pinned {
    /// A call of gemm.
    Gemm(GemmCase),
    /// A call of trsm.
    Trsm(TrsmCase),
    /// A call of getrf.
    Getrf(GetrfCase),
    /// A call of getrf followed by one of getrs.
    Solve(SolveCase),
    /// A call of laswp.
    Laswp(LaswpCase),
}

impl Pinned {
    /// The routines that [`Pinned::check`] calls.
    #[must_use]
    pub fn calls(&self) -> &'static [Routine] {
        match self {
            Pinned::Gemm(_) => &[Routine::Gemm],
            Pinned::Trsm(_) => &[Routine::Trsm],
            Pinned::Getrf(_) => &[Routine::Getrf],
            Pinned::Solve(_) => &[Routine::Getrf, Routine::Getrs],
            Pinned::Laswp(_) => &[Routine::Laswp],
        }
    }

    /// Runs all checks of the case.
    ///
    /// # Errors
    /// A check of the case failed. The error names the first check that failed.
    pub fn check<S: Subject + ?Sized, T: Scalar>(&self, trial: &Trial<'_, S>) -> Result<(), Failure> {
        match self {
            Pinned::Gemm(case) => gemm::check_gemm::<S, T>(trial, case),
            Pinned::Trsm(case) => trsm::check_trsm::<S, T>(trial, case),
            Pinned::Getrf(case) => getrf::check_getrf::<S, T>(trial, case),
            Pinned::Solve(case) => solve::check_solve::<S, T>(trial, case),
            Pinned::Laswp(case) => laswp::check_laswp::<S, T>(trial, case),
        }
    }
}

/// The remarks in the text of a case file, without the leading `#`.
pub fn remarks(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix('#')).map(str::trim)
}

impl FromStr for Pinned {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let line = lines.next().ok_or("there is no case")?;
        if lines.next().is_some() {
            return Err("there is more than one case".to_owned());
        }
        let words = Words(line.split_whitespace().collect());
        match words.at(0)? {
            "gemm" => words.gemm().map(Pinned::Gemm),
            "trsm" => words.trsm().map(Pinned::Trsm),
            "getrf" => words.getrf().map(Pinned::Getrf),
            "solve" => words.solve().map(Pinned::Solve),
            "laswp" => words.laswp().map(Pinned::Laswp),
            other => Err(format!("`{other}` is no routine that is pinned")),
        }
        .map_err(|error| format!("{error} in `{line}`"))
    }
}

const OPS: [Op; 4] = [Op::NoTrans, Op::Trans, Op::ConjTrans, Op::Conj];

/// The words of the line that describes a case.
struct Words<'a>(Vec<&'a str>);

impl Words<'_> {
    fn at(&self, index: usize) -> Result<&str, String> {
        self.0.get(index).copied().ok_or_else(|| "the case ends too early".to_owned())
    }

    /// The text after `key` in the first word that begins with `key`.
    fn after(&self, key: &str) -> Result<&str, String> {
        self.0.iter().find_map(|word| word.strip_prefix(key)).ok_or_else(|| format!("`{key}` is missing"))
    }

    fn number<N: FromStr>(&self, key: &str) -> Result<N, String> {
        self.after(key)?.parse().map_err(|_| format!("`{key}` needs a number"))
    }

    fn seed(&self) -> Result<u64, String> {
        let digits = self.after("seed=")?.strip_prefix("0x").ok_or("seeds are hexadecimal")?;
        u64::from_str_radix(digits, 16).map_err(|error| error.to_string())
    }

    /// Reads letter `at` of word `word` as a flag.
    fn letter<E: Copy + Display>(&self, word: usize, at: usize, all: &[E]) -> Result<E, String> {
        let letter = self.at(word)?.get(at..=at).ok_or("a flag is missing")?;
        named(all, letter, ToString::to_string)
    }

    fn fill(&self) -> Result<Fill, String> {
        self.0
            .iter()
            .find_map(|word| named(&Fill::ALL, word, ToString::to_string).ok())
            .ok_or_else(|| "no fill is named".to_owned())
    }

    /// Reads the storage of an operand, such as `col`, `row+2` or `col+1@3,4`.
    fn storage(&self, key: &str) -> Result<Storage, String> {
        let text = self.after(key)?;
        let (text, skip) = text.split_once('@').unwrap_or((text, "0,0"));
        let (layout, gap) = text.split_once('+').unwrap_or((text, "0"));
        let layout = match layout {
            "col" => Layout::ColMajor,
            "row" => Layout::RowMajor,
            other => return Err(format!("`{other}` is no layout")),
        };
        let count = |text: &str| text.parse().map_err(|_| format!("`{text}` counts nothing"));
        let (row, col) = skip.split_once(',').ok_or("an offset has two parts")?;
        Ok(Storage { layout, gap: count(gap)?, skip: (count(row)?, count(col)?) })
    }

    fn gemm(&self) -> Result<GemmCase, String> {
        let same = self.0.contains(&"B=A");
        let [a, c] = [self.storage("A:")?, self.storage("C:")?];
        let b = if same { a } else { self.storage("B:")? };
        Ok(GemmCase {
            m: self.number("m=")?,
            n: self.number("n=")?,
            k: self.number("k=")?,
            ops: (self.letter(1, 0, &OPS)?, self.letter(1, 1, &OPS)?),
            alpha: self.number("α=")?,
            beta: self.number("β=")?,
            fill: self.fill()?,
            same,
            storage: [a, b, c],
            seed: self.seed()?,
        })
    }

    fn trsm(&self) -> Result<TrsmCase, String> {
        let side = self.letter(1, 0, &[Side::Left, Side::Right])?;
        let uplo = self.letter(1, 1, &[Uplo::Lower, Uplo::Upper])?;
        let diag = self.letter(1, 3, &[Diag::NonUnit, Diag::Unit])?;
        Ok(TrsmCase {
            order: self.number("order=")?,
            nrhs: self.number("nrhs=")?,
            flags: (side, uplo, self.letter(1, 2, &OPS)?, diag),
            alpha: self.number("α=")?,
            fill: self.fill()?,
            pivot: self.after("pivot=").map_or(Ok(Pivot::Regular), |pivot| named(&Pivot::ALL, pivot, ToString::to_string))?,
            mode: named(&[TrsmMode::Substitution, TrsmMode::Inverted], self.at(2)?, ToString::to_string)?,
            storage: [self.storage("A:")?, self.storage("B:")?],
            seed: self.seed()?,
        })
    }

    fn getrf(&self) -> Result<GetrfCase, String> {
        let shape = named(&Shape::ALL, self.at(3)?, |shape| format!("{shape:?}"))?;
        let (m, n) = (self.number("m=")?, self.number("n=")?);
        Ok(GetrfCase { m, n, shape, storage: self.storage("A:")?, seed: self.seed()? })
    }

    fn solve(&self) -> Result<SolveCase, String> {
        Ok(SolveCase {
            n: self.number("n=")?,
            nrhs: self.number("nrhs=")?,
            op: self.letter(1, 0, &OPS)?,
            storage: [self.storage("A:")?, self.storage("B:")?],
            seed: self.seed()?,
        })
    }

    fn laswp(&self) -> Result<LaswpCase, String> {
        let forward = match self.at(1)? {
            "forward" => true,
            "backward" => false,
            other => return Err(format!("`{other}` is no order of exchanges")),
        };
        let (m, n, count) = (self.number("m=")?, self.number("n=")?, self.number("count=")?);
        Ok(LaswpCase { m, n, count, forward, storage: self.storage("A:")?, seed: self.seed()? })
    }
}

/// The element of `all` that `print` converts to `text`.
fn named<E: Copy>(all: &[E], text: &str, print: impl Fn(&E) -> String) -> Result<E, String> {
    all.iter().find(|&candidate| print(candidate) == text).copied().ok_or_else(|| format!("`{text}` is not known"))
}

#[cfg(test)]
mod tests {
    use super::{Fill, Pinned, Pivot, Shape};
    use crate::cases::{Case, GemmCase, GetrfCase, LaswpCase, SolveCase, TrsmCase};
    use crate::suite::search;
    use crate::{Failure, Scope};
    use lapidary_core::TrsmMode;
    use proptest::strategy::Strategy;

    fn read_back<C: Case + std::fmt::Debug + 'static>(cases: impl Strategy<Value = C> + 'static, pinned: fn(C) -> Pinned) {
        let scope = Scope { cases: 200, ..Scope::quick(3) };
        let check = |case: &C| {
            let read: Result<Pinned, String> = format!("# a remark\n\n{case}\n").parse();
            if read == Ok(pinned(*case)) { Ok(()) } else { Err(Failure::new("cases: read back", format!("{case}: {read:?}"))) }
        };
        search(&scope, cases, check).unwrap();
    }

    #[test]
    fn what_prints_is_read_back() {
        let scope = Scope::quick(3);
        read_back(GemmCase::any(&scope, &Fill::ALL), Pinned::Gemm);
        read_back(TrsmCase::any(&scope, TrsmMode::Substitution, &Fill::ALL), Pinned::Trsm);
        read_back(TrsmCase::any(&scope, TrsmMode::Inverted, &Fill::ALL), Pinned::Trsm);
        for pivot in Pivot::ALL {
            let cases = TrsmCase::any(&scope, TrsmMode::Substitution, &[Fill::Uniform]);
            read_back(cases.prop_map(move |case| TrsmCase { pivot, ..case }), Pinned::Trsm);
        }
        read_back(GetrfCase::any(&scope, &Shape::ALL), Pinned::Getrf);
        read_back(SolveCase::any(&scope), Pinned::Solve);
        read_back(LaswpCase::any(&scope), Pinned::Laswp);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let refusal = |text: &str| text.parse::<Pinned>().unwrap_err();
        assert_eq!(refusal("# nothing"), "there is no case");
        assert!(refusal("gemm NN m=1\ngemm NN m=2").contains("more than one"));
        assert!(refusal("potrf n=1").contains("`potrf`"));
        assert!(refusal("gemm NX m=1 n=1 k=1 α=1 β=0 A:col B:col C:col uniform seed=0x1").contains("`X`"));
        assert!(refusal("gemm NN m=1 n=1 k=1 α=1 β=0 A:diag B:col C:col uniform seed=0x1").contains("`diag`"));
        assert!(refusal("getrf m=1 n=1 Random A:col").contains("`seed=`"));
    }
}
