//! The spellings of the symbols of routines in libraries.

use lapidary_core::DType;

use super::integer::Width;
use super::names::Affixes;

/// One spelling of the symbols of routines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Style {
    /// Prefix of a symbol, which comes before the letter of the type.
    pub prefix: String,
    /// Suffix of a symbol, which comes after the name of the routine.
    pub suffix: String,
    /// Whether arguments are passed by value, as in the C interface.
    pub by_value: bool,
    /// The size of integers. `None` if the spelling does not determine it.
    pub width: Option<Width>,
}

/// Suffixes of symbols in the Fortran interface. The most common suffix comes first.
const FORTRAN: &[&str] = &["_", "", "_64_", "64_", "_64", "__64"];

/// Suffixes of symbols in the C interface. The most common suffix comes first.
const CBLAS: &[&str] = &["", "_64", "64_", "_64_"];

/// Prefixes of libraries that are built for one program: the OpenBLAS in the packages of NumPy and SciPy.
pub(super) const KNOWN_PREFIXES: &[&str] = &["scipy_"];

/// The spellings of symbols in the Fortran interface. If the user states a suffix, it is tried after Fortran's underscore and
/// without the underscore.
pub(super) fn fortran(affixes: &Affixes) -> Vec<Style> {
    let underscored = affixes.suffix.as_ref().map(|suffix| format!("_{suffix}"));
    let stated = underscored.as_deref().into_iter().chain(affixes.suffix.as_deref());
    styles(affixes, "", stated.collect(), FORTRAN)
}

/// The spellings of symbols in the C interface.
pub(super) fn cblas(affixes: &Affixes) -> Vec<Style> {
    styles(affixes, "cblas_", affixes.suffix.as_deref().into_iter().collect(), CBLAS)
}

fn styles(affixes: &Affixes, interface: &str, stated: Vec<&str>, usual: &[&str]) -> Vec<Style> {
    let suffixes = if stated.is_empty() { usual.to_vec() } else { stated };
    let prefix = format!("{}{interface}", affixes.prefix.as_deref().unwrap_or_default());
    let width = |suffix: &str| suffix.contains("64").then_some(Width::Bits64);
    let style = |suffix: &str| Style {
        prefix: prefix.clone(),
        suffix: suffix.to_owned(),
        by_value: !interface.is_empty(),
        width: width(suffix),
    };
    suffixes.into_iter().map(style).collect()
}

impl Style {
    /// The symbol of a routine for a type of numbers, such as `cblas_dgemm` or `sgetrf_`.
    pub fn symbol(&self, dtype: DType, routine: &str) -> String {
        self.named(&format!("{}{routine}", if dtype == DType::F32 { 's' } else { 'd' }))
    }

    /// The symbol of a routine that is the same for all types of numbers.
    pub fn named(&self, routine: &str) -> String {
        format!("{}{routine}{}", self.prefix, self.suffix)
    }

    /// The prefix and suffix that a user would state to select this spelling of the symbols in the Fortran interface.
    pub fn affixes(&self) -> Affixes {
        let suffix = if self.suffix.len() > 1 { self.suffix.trim_start_matches('_') } else { "" };
        let stated = |affix: &str| (!affix.is_empty()).then(|| affix.to_owned());
        Affixes { prefix: stated(&self.prefix), suffix: stated(suffix) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(styles: &[Style], routine: &str) -> Vec<String> {
        styles.iter().map(|s| s.symbol(DType::F64, routine)).collect()
    }

    #[test]
    fn symbols_are_spelled_as_libraries_do() {
        let plain = &Affixes::default();
        let usual = ["dgemm_", "dgemm", "dgemm_64_", "dgemm64_", "dgemm_64", "dgemm__64"];
        assert_eq!(spelled(&fortran(plain), "gemm"), usual);
        assert_eq!(spelled(&cblas(plain), "trsm"), ["cblas_dtrsm", "cblas_dtrsm_64", "cblas_dtrsm64_", "cblas_dtrsm_64_"]);
        assert_eq!(fortran(plain)[0].symbol(DType::F32, "laswp"), "slaswp_");
    }

    #[test]
    fn prefixes_come_before_all_and_suffixes_after_the_underscore() {
        let stated = Affixes { prefix: Some("scipy_".to_owned()), suffix: Some("64_".to_owned()) };
        assert_eq!(spelled(&fortran(&stated), "gemm"), ["scipy_dgemm_64_", "scipy_dgemm64_"]);
        assert_eq!(spelled(&cblas(&stated), "gemm"), ["scipy_cblas_dgemm64_"]);
        assert!(fortran(&stated).iter().chain(&cblas(&stated)).all(|style| style.width == Some(Width::Bits64)));
        assert_eq!(fortran(&stated)[0].affixes(), stated);
        let prefixed = Affixes { suffix: None, ..stated };
        assert_eq!((fortran(&prefixed).len(), fortran(&prefixed)[0].affixes()), (FORTRAN.len(), prefixed));
    }
}
