//! Prints results for users and writes the same results as JSON for programs.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};

use crate::failure::{Failure, Result};
use crate::io::atomic;

mod figure;

pub use figure::{Figure, number};

/// The results of a command: lines of the form `label  text` for users, and figures as JSON values.
#[derive(Default)]
pub struct Report {
    lines: Vec<(&'static str, String)>,
    figures: Map<String, Value>,
}

impl Report {
    /// Adds a figure to the JSON values. If the figure has a unit, its key contains the unit.
    pub fn figure(&mut self, key: &str, value: impl Into<Figure>) -> &mut Self {
        self.figures.insert(key.to_owned(), value.into().0);
        self
    }

    /// Adds a line that [`print`](Self::print) prints.
    pub fn line(&mut self, label: &'static str, text: impl Into<String>) -> &mut Self {
        self.lines.push((label, text.into()));
        self
    }

    /// Prints all lines with aligned texts.
    pub fn print(&self) {
        let width = self.lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        for (label, text) in &self.lines {
            out(&format!("{label:width$}  {text}"));
        }
    }

    /// Writes the figures as JSON to `path`, if there is a path.
    pub fn save(self, path: Option<&Path>) -> Result<()> {
        path.map_or(Ok(()), |path| save_json(path, &Value::Object(self.figures)))
    }
}

/// The error of the first write to standard output that failed.
static UNPRINTED: OnceLock<std::io::Error> = OnceLock::new();

/// Whether standard output is reserved for a file that the user requested, as with `--json -`.
static RESERVED: AtomicBool = AtomicBool::new(false);

/// Reserves standard output for a file. After this call [`out`] prints to standard error.
pub fn reserve_stdout() {
    RESERVED.store(true, Ordering::Relaxed);
}

/// Prints a line of results. If the write fails, [`printed`] returns the error at the end of the program.
pub fn out(line: &str) {
    if RESERVED.load(Ordering::Relaxed) { note(line) } else { to_stdout(|stdout| writeln!(stdout, "{line}")) }
}

/// Writes to standard output. If the write fails, [`printed`] returns the error at the end of the program.
pub fn to_stdout(fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = fill(&mut stdout).and_then(|()| stdout.flush()) {
        let _ = UNPRINTED.set(error);
    }
}

/// Prints a message to standard error. If the write fails, the error is ignored, since a message is no result.
pub fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns the error of the first write to standard output that failed. A closed pipe, as with `| head`, is no failure.
pub fn printed() -> Result<()> {
    match UNPRINTED.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::write(Path::new("standard output"), error)),
        Some(_) | None => Ok(()),
    }
}

/// Writes a JSON file completely or not at all.
pub fn save_json(path: &Path, value: &Value) -> Result<()> {
    atomic::write(path, |out| writeln!(out, "{value:#}"))
}

/// Formats a number with `decimals` digits after the decimal point. A number for which all these digits would be zeros is written
/// in scientific notation.
pub fn fixed(value: f64, decimals: usize) -> String {
    let least = 1e-4_f64.max(1.0 / 10.0_f64.powi(i32::try_from(decimals).unwrap_or(i32::MAX)));
    let readable = value == 0.0 || !value.is_finite() || (least..1e16).contains(&value.abs());
    if readable { format!("{value:.decimals$}") } else { format!("{value:.decimals$e}") }
}

/// Formats a count with its noun, such as `1 device`, `2 devices`, `2 launches` or `2 entries`.
pub fn counted(count: usize, thing: &str) -> String {
    let (stem, ending) = match (count, thing.strip_suffix('y')) {
        (1, _) => (thing, ""),
        (_, Some(stem)) => (stem, "ies"),
        (_, None) if thing.ends_with("ch") => (thing, "es"),
        (_, None) => (thing, "s"),
    };
    format!("{count} {stem}{ending}")
}

/// Formats a duration in seconds, milliseconds or microseconds.
pub fn seconds(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.1} s"),
        v if v >= 1.0 => format!("{v:.3} s"),
        v if v >= 1e-3 => format!("{:.3} ms", v * 1e3),
        v => format!("{:.1} µs", v * 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::fixed;

    #[test]
    fn no_figure_is_a_run_of_zeros() {
        assert_eq!([fixed(0.0, 3), fixed(1.5, 3), fixed(-0.001, 3)], ["0.000", "1.500", "-0.001"]);
        assert_eq!([fixed(0.0009, 3), fixed(-1.25e-9, 3), fixed(2e20, 3)], ["9.000e-4", "-1.250e-9", "2.000e20"]);
        assert_eq!([fixed(1.5e-4, 10), fixed(0.5e-4, 10), fixed(f64::NAN, 3)], ["0.0001500000", "5.0000000000e-5", "NaN"]);
    }
}
