//! The command line that repeats a run or a trial.

use super::Report;

impl Report {
    /// Returns the command line that repeats the trials that `filter` selects, with the same cases. Without a filter, the command
    /// line repeats all trials.
    #[must_use]
    pub fn command(&self, filter: Option<&str>) -> String {
        let Report { subject, mode, seed, settings, .. } = self;
        let option = if subject.name.starts_with("blas:") { "--subject" } else { "--device" };
        let name = quoted(&subject.name);
        let filter = filter.map_or(String::new(), |filter| format!(" --filter {}", quoted(filter)));
        // the variable `LAPIDARY_NB` sets the width of panels, because the command has no flag for it
        let nb = settings.nb.map_or(String::new(), |nb| format!("LAPIDARY_NB={nb} "));
        let limit = settings.memory_limit.map_or(String::new(), |bytes| format!(" --memory-limit {bytes}"));
        let reproducible = if settings.reproducible { " --reproducible" } else { "" };
        format!("{nb}lapidary conformance {option} {name}{limit}{reproducible} --{mode} --seed {seed}{filter}")
    }
}

/// Quotes a word for a shell if the word contains special characters.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:,+-".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::quoted;
    use crate::report::{FORMAT, Identity, Mode, Report, Settings};

    #[test]
    fn a_command_repeats_the_settings() {
        let report = Report {
            format: FORMAT,
            suite: String::new(),
            build: String::new(),
            begun: None,
            beginnings: 0,
            subject: Identity { name: "cpu:0".into(), ..Identity::default() },
            mode: Mode::Full,
            seed: 7,
            filter: None,
            settings: Settings { memory_limit: Some(1 << 20), nb: Some(8), reproducible: true },
            trials: Vec::new(),
            grades: Vec::new(),
        };
        let command = "LAPIDARY_NB=8 lapidary conformance --device cpu:0 --memory-limit 1048576 --reproducible --full --seed 7";
        assert_eq!(report.command(None), command);
        assert_eq!(report.settings.to_string(), "1048576 bytes of memory, nb = 8, reproducible");
        let plain = Report { settings: Settings::default(), ..report };
        assert_eq!(plain.command(Some("gemm")), "lapidary conformance --device cpu:0 --full --seed 7 --filter gemm");
        assert_eq!(plain.settings.to_string(), "those of the devices");
        let older = plain.to_json().replace("\"settings\"", "\"unknown\"");
        assert_eq!(Report::from_json(&older).unwrap(), plain);
    }

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("blas:/usr/lib/libblas.so.3"), "blas:/usr/lib/libblas.so.3");
        assert_eq!([quoted("blas:a#fortran"), quoted("it's"), quoted("")], ["'blas:a#fortran'", r"'it'\''s'", "''"]);
    }
}
