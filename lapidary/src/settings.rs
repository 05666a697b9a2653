//! What a user may set, from code or from the environment.

use std::env::VarError;
use std::path::PathBuf;

use lapidary_core::{Error, ProgramCache, Result};

/// Settings of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of memory that each device may use. A CPU device without a limit
    /// works on the caller's matrices in place; with a limit it works on
    /// copies within it, as a device with its own memory does.
    pub memory_limit: Option<usize>,
    /// Width of the panels of a factorisation, in place of the chosen one.
    pub nb: Option<usize>,
    /// Folder of compiled programs, in place of the user's cache folder.
    pub cache_dir: Option<PathBuf>,
}

impl Settings {
    /// Settings from `LAPIDARY_MEMORY_LIMIT` (bytes, or `256M`, `2G`), `LAPIDARY_NB`
    /// and `LAPIDARY_CACHE_DIR`.
    ///
    /// # Errors
    /// A variable is set to something else.
    pub fn from_env() -> Result<Self> {
        let memory_limit = variable("LAPIDARY_MEMORY_LIMIT", "a number of bytes such as 256M or 2G", Self::parse_bytes)?;
        let nb = variable("LAPIDARY_NB", "a positive number of columns", |text| text.parse().ok().filter(|&nb| nb > 0))?;
        let cache_dir = variable("LAPIDARY_CACHE_DIR", "a folder", |text| (!text.is_empty()).then(|| text.into()))?;
        Ok(Settings { memory_limit, nb, cache_dir })
    }

    /// The compiled programs that machines with these settings share.
    #[must_use]
    pub fn program_cache(&self) -> ProgramCache {
        let of_user = || Some(directories::BaseDirs::new()?.cache_dir().join("lapidary").join("programs"));
        ProgramCache::new(self.cache_dir.clone().or_else(of_user))
    }

    /// A number of bytes: `4096`, `64K`, `256M`, `2G` (powers of 1024).
    ///
    /// ```
    /// assert_eq!(lapidary::Settings::parse_bytes("256M"), Some(256 << 20));
    /// ```
    #[must_use]
    pub fn parse_bytes(text: &str) -> Option<usize> {
        let (digits, shift) = match text.as_bytes().last()? {
            b'K' | b'k' => (&text[..text.len() - 1], 10),
            b'M' | b'm' => (&text[..text.len() - 1], 20),
            b'G' | b'g' => (&text[..text.len() - 1], 30),
            _ => (text, 0),
        };
        digits.parse::<usize>().ok()?.checked_mul(1 << shift).filter(|&bytes| bytes > 0)
    }
}

fn variable<V>(name: &'static str, wanted: &str, parse: impl Fn(&str) -> Option<V>) -> Result<Option<V>> {
    let text = match std::env::var(name) {
        Ok(text) => text,
        Err(VarError::NotPresent) => return Ok(None),
        Err(error) => return Err(Error::invalid("settings", format!("{name} is no text")).caused_by(error)),
    };
    parse(&text).map(Some).ok_or_else(|| Error::invalid("settings", format!("{name} = `{text}` is not {wanted}")))
}

#[cfg(test)]
mod tests {
    use super::Settings;

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(Settings::parse_bytes("256M"), Some(256 << 20));
        assert_eq!(Settings::parse_bytes("10"), Some(10));
        for bad in ["", "M", "x", "1T", "0", "99999999999G"] {
            assert_eq!(Settings::parse_bytes(bad), None, "{bad}");
        }
    }
}
