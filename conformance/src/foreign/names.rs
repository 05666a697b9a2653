//! Parses the name by which a user selects a library.

use std::path::PathBuf;

use lapidary_core::{Error, Result};

use super::integer::Width;

/// The form of the name of a library.
const FORM: &str = "blas:PATH[,PATH…][#fortran][#lp64|#ilp64][#prefix=P,suffix=S]";

/// A library, as described by its name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    /// Files of the library, in the order in which they are loaded and searched.
    pub paths: Vec<PathBuf>,
    /// Whether products and triangular solves use the Fortran interface even if the library has cblas.
    pub fortran: bool,
    /// The size of integers. `None` if the name does not state it.
    pub width: Option<Width>,
    /// Prefix and suffix of all symbols of the library.
    pub affixes: Affixes,
}

/// The prefix and suffix that a library adds to the names of its routines, as the user states them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Affixes {
    /// The prefix of the whole symbol. If the prefix is `scipy_`, the symbol of dgemm in cblas is `scipy_cblas_dgemm`.
    pub prefix: Option<String>,
    /// The suffix of the symbol. In the Fortran interface the suffix stands after Fortran's underscore.
    pub suffix: Option<String>,
}

impl Source {
    /// Parses the name of a library.
    pub fn parse(name: &str) -> Result<Self> {
        let wrong = |what: &str| Error::invalid("open", format!("{name}: {what}, write {FORM}"));
        let mut rest = name.strip_prefix("blas:").ok_or_else(|| wrong("a library begins with blas:"))?;
        let mut source = Source::default();
        while let Some((before, option)) = rest.rsplit_once('#')
            && source.takes(option).map_err(|what| wrong(&what))?
        {
            rest = before;
        }
        if rest.split(',').any(str::is_empty) {
            return Err(wrong("a path is empty"));
        }
        source.paths = rest.split(',').map(PathBuf::from).collect();
        Ok(source)
    }

    /// Stores the option that the text states, and returns true. Returns false if the text is no option, so that it belongs to the
    /// path.
    fn takes(&mut self, option: &str) -> Result<bool, String> {
        match option {
            "fortran" => self.fortran = true,
            "lp64" => once(&mut self.width, Width::Bits32, "the size of integers")?,
            "ilp64" => once(&mut self.width, Width::Bits64, "the size of integers")?,
            affixes if affixes.contains('=') => affixes.split(',').try_for_each(|affix| self.affixes.takes(affix))?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Affixes {
    fn takes(&mut self, affix: &str) -> Result<(), String> {
        let (key, value) = affix.split_once('=').unwrap_or((affix, ""));
        if value.is_empty() || !value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("`{affix}` gives no letters, digits or underscores"));
        }
        match key {
            "prefix" => once(&mut self.prefix, value.to_owned(), "the prefix"),
            "suffix" => once(&mut self.suffix, value.to_owned(), "the suffix"),
            _ => Err(format!("`{key}` is neither prefix nor suffix")),
        }
    }

    /// The part of a name (an option) that states this prefix and suffix.
    pub fn option(&self) -> String {
        let affix = |key: &str, value: &Option<String>| value.as_ref().map(|value| format!("{key}={value}"));
        let stated = [affix("prefix", &self.prefix), affix("suffix", &self.suffix)];
        format!("#{}", stated.into_iter().flatten().collect::<Vec<_>>().join(","))
    }
}

/// Stores `value` in `place`. Fails if `place` already has a value.
fn once<T>(place: &mut Option<T>, value: T, what: &str) -> Result<(), String> {
    if place.replace(value).is_none() { Ok(()) } else { Err(format!("{what} is stated twice")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_paths_and_a_way() {
        let source = |paths: &[&str], fortran, width| {
            let paths = paths.iter().map(PathBuf::from).collect();
            Source { paths, fortran, width, affixes: Affixes::default() }
        };
        assert_eq!(Source::parse("blas:/a/b.so").unwrap(), source(&["/a/b.so"], false, None));
        assert_eq!(Source::parse("blas:b.so.3,l.so.3#fortran").unwrap(), source(&["b.so.3", "l.so.3"], true, None));
        assert_eq!(Source::parse("blas:b#lp64").unwrap(), source(&["b"], false, Some(Width::Bits32)));
        assert_eq!(Source::parse("blas:b#fortran#ilp64").unwrap(), source(&["b"], true, Some(Width::Bits64)));
        assert_eq!(Source::parse("blas:b#ilp64#fortran").unwrap(), source(&["b"], true, Some(Width::Bits64)));
        assert_eq!(Source::parse("blas:a#1/b.so").unwrap(), source(&["a#1/b.so"], false, None));
        for wrong in ["libblas.so", "blas:", "blas:#fortran", "blas:a,,b", "blas:#lp64", "blas:a#lp64#ilp64"] {
            let message = Source::parse(wrong).unwrap_err().to_string();
            assert!(message.contains(FORM), "{message}");
        }
    }

    #[test]
    fn a_name_states_what_those_of_the_routines_carry() {
        let affixes = |name: &str| Source::parse(name).unwrap().affixes;
        let stated =
            |prefix: &str, suffix: Option<&str>| Affixes { prefix: Some(prefix.to_owned()), suffix: suffix.map(str::to_owned) };
        assert_eq!(affixes("blas:b#prefix=scipy_"), stated("scipy_", None));
        assert_eq!(affixes("blas:b#fortran#prefix=my_,suffix=64_"), stated("my_", Some("64_")));
        assert_eq!(affixes("blas:b#suffix=64_#prefix=my_#lp64"), stated("my_", Some("64_")));
        assert_eq!(stated("my_", Some("64_")).option(), "#prefix=my_,suffix=64_");
        for (wrong, what) in [
            ("#prefix=", "`prefix=` gives no"),
            ("#prefix=a-b", "`prefix=a-b` gives no"),
            ("#prefix=a,64", "`64` gives no"),
            ("#infix=a", "`infix` is neither"),
            ("#prefix=a#prefix=b", "the prefix is stated twice"),
        ] {
            let message = Source::parse(&format!("blas:b{wrong}")).unwrap_err().to_string();
            assert!(message.contains(what) && message.contains(FORM), "{message}");
        }
    }
}
