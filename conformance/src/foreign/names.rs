//! How a library is named, and how libraries name their routines.

use std::path::PathBuf;

use lapidary_core::{DType, Error, Result};

use super::integer::Width;

/// A library, as its name says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    /// Files, in the order in which they are loaded and searched.
    pub paths: Vec<PathBuf>,
    /// Whether cblas is passed over.
    pub fortran: bool,
    /// The size of integers, where it is stated.
    pub width: Option<Width>,
}

impl Source {
    /// Takes `blas:PATH[,PATH…][#fortran][#lp64|#ilp64]` apart.
    pub fn parse(name: &str) -> Result<Self> {
        let wrong =
            |what: &str| Err(Error::invalid("open", format!("{name}: {what}, write blas:PATH[,PATH…][#fortran][#lp64|#ilp64]")));
        let Some(rest) = name.strip_prefix("blas:") else {
            return wrong("a library begins with blas:");
        };
        let stated = |word, width| Some((rest.strip_suffix(word)?, Some(width)));
        let stated = stated("#lp64", Width::Bits32).or_else(|| stated("#ilp64", Width::Bits64));
        let (rest, width) = stated.unwrap_or((rest, None));
        let (paths, fortran) = rest.strip_suffix("#fortran").map_or((rest, false), |paths| (paths, true));
        if paths.split(',').any(str::is_empty) {
            return wrong("a path is empty");
        }
        Ok(Source { paths: paths.split(',').map(PathBuf::from).collect(), fortran, width })
    }
}

/// How the names of routines are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    /// What stands before the letter of the type.
    pub prefix: &'static str,
    /// What stands after the name.
    pub suffix: &'static str,
    /// The size of integers, where the name tells.
    pub width: Option<Width>,
}

const fn style(prefix: &'static str, suffix: &'static str) -> Style {
    Style { prefix, suffix, width: None }
}

const fn long(prefix: &'static str, suffix: &'static str) -> Style {
    Style { prefix, suffix, width: Some(Width::Bits64) }
}

/// Names of the Fortran interface, commonest first.
pub(super) const FORTRAN: &[Style] =
    &[style("", "_"), style("", ""), long("", "_64_"), long("", "64_"), long("", "_64"), long("", "__64")];

/// Names of the C interface, commonest first.
pub(super) const CBLAS: &[Style] = &[style("cblas_", ""), long("cblas_", "_64"), long("cblas_", "64_"), long("cblas_", "_64_")];

impl Style {
    /// The name of a routine for a type of numbers, such as `cblas_dgemm` or `sgetrf_`.
    pub fn symbol(&self, dtype: DType, routine: &str) -> String {
        let letter = if dtype == DType::F32 { 's' } else { 'd' };
        format!("{}{letter}{routine}{}", self.prefix, self.suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_paths_and_a_way() {
        let source = |paths: &[&str], fortran, width| Source { paths: paths.iter().map(PathBuf::from).collect(), fortran, width };
        assert_eq!(Source::parse("blas:/a/b.so").unwrap(), source(&["/a/b.so"], false, None));
        assert_eq!(Source::parse("blas:b.so.3,l.so.3#fortran").unwrap(), source(&["b.so.3", "l.so.3"], true, None));
        assert_eq!(Source::parse("blas:b#lp64").unwrap(), source(&["b"], false, Some(Width::Bits32)));
        assert_eq!(Source::parse("blas:b#fortran#ilp64").unwrap(), source(&["b"], true, Some(Width::Bits64)));
        for wrong in ["libblas.so", "blas:", "blas:#fortran", "blas:a,,b", "blas:#lp64"] {
            let message = Source::parse(wrong).unwrap_err().to_string();
            assert!(message.contains("blas:PATH[,PATH…][#fortran][#lp64|#ilp64]"), "{message}");
        }
    }

    #[test]
    fn symbols_are_spelled_as_libraries_do() {
        let spelled = |styles: &[Style], routine| -> Vec<String> { styles.iter().map(|s| s.symbol(DType::F64, routine)).collect() };
        assert_eq!(spelled(FORTRAN, "gemm"), ["dgemm_", "dgemm", "dgemm_64_", "dgemm64_", "dgemm_64", "dgemm__64"]);
        assert_eq!(spelled(CBLAS, "trsm"), ["cblas_dtrsm", "cblas_dtrsm_64", "cblas_dtrsm64_", "cblas_dtrsm_64_"]);
        assert_eq!(FORTRAN[0].symbol(DType::F32, "laswp"), "slaswp_");
    }
}
