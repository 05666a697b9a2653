//! The command that repeats a run or a trial.

use super::Report;

impl Report {
    /// What to type in order to repeat the trials of a filter, or all, with the same cases.
    #[must_use]
    pub fn command(&self, filter: Option<&str>) -> String {
        let Report { subject, mode, seed, .. } = self;
        let option = if subject.name.starts_with("blas:") { "--subject" } else { "--device" };
        let name = quoted(&subject.name);
        let filter = filter.map_or(String::new(), |filter| format!(" --filter {}", quoted(filter)));
        format!("lapidary conformance {option} {name} --{mode} --seed {seed}{filter}")
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:,+-".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("blas:/usr/lib/libblas.so.3"), "blas:/usr/lib/libblas.so.3");
        assert_eq!([quoted("blas:a#fortran"), quoted("it's"), quoted("")], ["'blas:a#fortran'", r"'it'\''s'", "''"]);
    }
}
