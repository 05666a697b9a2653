//! Refuses work that needs more host memory than is available. Without this check the operating system would end the program.

use std::env::VarError;

use lapidary::{Scalar, Settings};

use crate::failure::{Failure, Result};

/// Name of the environment variable that sets the amount of available host memory, for systems that report a wrong amount.
const VARIABLE: &str = "LAPIDARY_HOST_MEMORY";

/// Maximum number of bytes that a call is assumed to need in addition to its matrices, for packed blocks and thread stacks.
const BESIDE: usize = 16 << 20;

/// Fails if the matrices of `what`, which take `bytes` bytes, and the other memory of a call exceed the available host memory
/// ([`lapidary_host::memory`]). If the operating system does not report the available memory, the function never fails.
pub fn check(what: &str, bytes: usize) -> Result<()> {
    let bytes = bytes.saturating_add((bytes / 8).min(BESIDE));
    let available =
        memory_from_env()?.or_else(|| lapidary_host::memory::left().map(|left| usize::try_from(left.most).unwrap_or(usize::MAX)));
    let Some(most) = available.filter(|&most| bytes > most) else { return Ok(()) };
    Err(Failure::usage(format!(
        "{what} takes at least {} of host memory, and {} can be had here; choose a smaller size, or set {VARIABLE}=SIZE if that is wrong (drivers of devices other than cpu take memory, too)",
        size(bytes),
        size(most)
    )))
}

/// Fails if the matrices of `what`, whose numbers of rows and columns `shapes` contains, exceed the available host memory.
pub fn check_matrices<T: Scalar>(what: &str, shapes: &[(usize, usize)]) -> Result<()> {
    let elements = |&(rows, cols): &(usize, usize)| rows.saturating_mul(cols);
    check(what, shapes.iter().map(elements).fold(0, usize::saturating_add).saturating_mul(T::DTYPE.size()))
}

/// Number of bytes of host memory that [`VARIABLE`] states. `None` if the variable is unset or empty.
fn memory_from_env() -> Result<Option<usize>> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => {
            let bytes = Settings::parse_bytes(&text);
            bytes.map(Some).map_err(|why| Failure::usage(format!("{VARIABLE} = `{text}`: {why}")))
        }
        Ok(_) | Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(Failure::usage(format!("{VARIABLE} is no text"))),
    }
}

/// Formats a number of bytes for users, in MiB or GiB.
pub fn size(bytes: usize) -> String {
    let bytes = bytes as f64;
    let (unit, name) = if bytes < f64::from(1 << 30) { (1 << 20, "MiB") } else { (1 << 30, "GiB") };
    format!("{:.1} {name}", bytes / f64::from(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_is_refused_with_both_figures() {
        let message = check("this", 1 << 60).unwrap_err().to_string();
        assert!(message.starts_with("this takes at least 1073741824.0 GiB of host memory, and "), "{message}");
        assert!(message.contains(" can be had here") && message.contains(VARIABLE), "{message}");
        assert!(check_matrices::<f64>("all", &[(usize::MAX, 2), (1, 1)]).is_err());
        assert!(check_matrices::<f64>("little", &[(10, 10), (3, 3)]).is_ok());
        assert_eq!((size(3 << 19), size(3 << 29)), ("1.5 MiB".to_owned(), "1.5 GiB".to_owned()));
    }
}
