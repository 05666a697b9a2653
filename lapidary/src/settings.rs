//! What a user may set, from code or from the environment.

use std::env::VarError;
use std::num::IntErrorKind;
use std::path::PathBuf;

#[cfg(feature = "program-cache")]
use lapidary_core::ProgramCache;
use lapidary_core::{Error, Result};

/// Settings of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of memory that each device may use. A CPU device without a limit
    /// works on the caller's matrices in place; with a limit it works on
    /// copies within it, as a device with its own memory does.
    pub memory_limit: Option<usize>,
    /// Width of the panels of a factorisation, at least 1, in place of the chosen one.
    pub nb: Option<usize>,
    /// Folder of compiled programs, in place of the user's cache folder.
    pub cache_dir: Option<PathBuf>,
}

impl Settings {
    /// Settings from `LAPIDARY_MEMORY_LIMIT` (bytes, or `256M`, `2G`), `LAPIDARY_NB`
    /// and `LAPIDARY_CACHE_DIR`; an empty variable sets nothing.
    ///
    /// # Errors
    /// A variable is set to something else.
    pub fn from_env() -> Result<Self> {
        let memory_limit = variable("LAPIDARY_MEMORY_LIMIT", Self::parse_bytes)?;
        let nb =
            variable("LAPIDARY_NB", |text| text.parse().ok().filter(|&nb| nb > 0).ok_or("a positive number of columns is needed"))?;
        let cache_dir = variable("LAPIDARY_CACHE_DIR", |text| Ok(text.into()))?;
        Ok(Settings { memory_limit, nb, cache_dir })
    }

    /// Refuses values of which no machine can make anything.
    pub(crate) fn check(&self) -> Result<()> {
        match self.nb {
            Some(0) => Err(Error::invalid("settings", "nb = 0: a panel has at least one column; None leaves the choice to us")),
            Some(_) | None => Ok(()),
        }
    }

    /// The compiled programs that machines with these settings share.
    #[cfg(feature = "program-cache")]
    #[must_use]
    pub fn program_cache(&self) -> ProgramCache {
        let of_user = || Some(directories::BaseDirs::new()?.cache_dir().join("lapidary").join("programs"));
        ProgramCache::new(self.cache_dir.clone().or_else(of_user))
    }

    /// A number of bytes: `4096`, `64K`, `256M`, `2G` (powers of 1024).
    ///
    /// ```
    /// assert_eq!(lapidary::Settings::parse_bytes("256M"), Ok(256 << 20));
    /// ```
    ///
    /// # Errors
    /// Why the text is no such number, for the user.
    pub fn parse_bytes(text: &str) -> Result<usize, &'static str> {
        const SUFFIXES: [(char, u32); 6] = [('K', 10), ('k', 10), ('M', 20), ('m', 20), ('G', 30), ('g', 30)];
        let suffixed = SUFFIXES.iter().find_map(|&(suffix, shift)| Some((text.strip_suffix(suffix)?, shift)));
        let (digits, shift) = suffixed.unwrap_or((text, 0));
        let number = match digits.parse::<usize>() {
            Ok(number) if number > 0 => Some(number),
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => None,
            Ok(_) | Err(_) => return Err("a size is a positive number of bytes, with an optional K, M or G"),
        };
        // no more than that can be had in one piece, of any device
        let most = isize::MAX.unsigned_abs();
        number
            .filter(|&number| number <= most >> shift)
            .map(|number| number << shift)
            .ok_or("that is more than the address space holds")
    }
}

fn variable<V>(name: &'static str, parse: impl Fn(&str) -> Result<V, &'static str>) -> Result<Option<V>> {
    let text = match std::env::var(name) {
        Ok(text) if !text.is_empty() => text,
        Ok(_) | Err(VarError::NotPresent) => return Ok(None),
        Err(error) => return Err(Error::invalid("settings", format!("{name} is no text")).caused_by(error)),
    };
    parse(&text).map(Some).map_err(|why| Error::invalid("settings", format!("{name} = `{text}`: {why}")))
}

#[cfg(test)]
mod tests {
    use super::Settings;

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(Settings::parse_bytes("256M"), Ok(256 << 20));
        assert_eq!(Settings::parse_bytes("10"), Ok(10));
        for bad in ["", "M", "x", "1T", "0", "0G", "-1", "1µ"] {
            assert!(Settings::parse_bytes(bad).unwrap_err().contains("a positive number of bytes"), "{bad}");
        }
        let most = isize::MAX.unsigned_abs();
        assert_eq!(Settings::parse_bytes(&most.to_string()), Ok(most));
        for large in [(most + 1).to_string(), format!("{}G", (most >> 30) + 1), "9".repeat(40), format!("{}K", "9".repeat(40))] {
            assert!(Settings::parse_bytes(&large).unwrap_err().contains("address space"), "{large}");
        }
    }
}
