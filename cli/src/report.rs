//! Figures for the user and, the same ones, for programs.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};

use crate::failure::{Failure, Result};
use crate::io::atomic;

mod figure;

pub use figure::{Figure, number};

/// Lines of the form `label  text` with the figures they were made from.
#[derive(Default)]
pub struct Report {
    lines: Vec<(&'static str, String)>,
    figures: Map<String, Value>,
}

impl Report {
    /// Adds a figure, its unit in the key.
    pub fn figure(&mut self, key: &str, value: impl Into<Figure>) -> &mut Self {
        self.figures.insert(key.to_owned(), value.into().0);
        self
    }

    /// Adds a line to print.
    pub fn line(&mut self, label: &'static str, text: impl Into<String>) -> &mut Self {
        self.lines.push((label, text.into()));
        self
    }

    /// Prints the lines with their texts aligned.
    pub fn print(&self) {
        let width = self.lines.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        for (label, text) in &self.lines {
            out(&format!("{label:width$}  {text}"));
        }
    }

    /// Writes the figures, if a file is asked for.
    pub fn save(self, path: Option<&Path>) -> Result<()> {
        path.map_or(Ok(()), |path| save_json(path, &Value::Object(self.figures)))
    }
}

/// The first error of writing to standard output.
static UNPRINTED: OnceLock<std::io::Error> = OnceLock::new();

/// Whether standard output belongs to a file that was asked for, such as `--json -`.
static RESERVED: AtomicBool = AtomicBool::new(false);

/// Keeps standard output for a file: lines go to standard error from now on.
pub fn reserve_stdout() {
    RESERVED.store(true, Ordering::Relaxed);
}

/// Prints a line. What goes wrong is told by [`printed`], once the work is done.
pub fn out(line: &str) {
    if RESERVED.load(Ordering::Relaxed) { note(line) } else { to_stdout(|stdout| writeln!(stdout, "{line}")) }
}

/// Writes to standard output. What goes wrong is told by [`printed`], once the work is done.
pub fn to_stdout(fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) {
    let mut stdout = std::io::stdout().lock();
    if let Err(error) = fill(&mut stdout).and_then(|()| stdout.flush()) {
        let _ = UNPRINTED.set(error);
    }
}

/// Says how the work goes, on standard error: no result, so that nobody need be there to read it.
pub fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Whether all lines were printed. A reader that has gone away (`| head`) is no failure.
pub fn printed() -> Result<()> {
    match UNPRINTED.get() {
        Some(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::write(Path::new("standard output"), error)),
        Some(_) | None => Ok(()),
    }
}

/// Writes JSON whole or not at all.
pub fn save_json(path: &Path, value: &Value) -> Result<()> {
    atomic::write(path, |out| writeln!(out, "{value:#}"))
}

/// A figure with `decimals` digits after the point, in scientific notation where that
/// would be a run of zeros.
pub fn fixed(value: f64, decimals: usize) -> String {
    let least = 1e-4_f64.max(1.0 / 10.0_f64.powi(i32::try_from(decimals).unwrap_or(i32::MAX)));
    let readable = value == 0.0 || !value.is_finite() || (least..1e16).contains(&value.abs());
    if readable { format!("{value:.decimals$}") } else { format!("{value:.decimals$e}") }
}

/// A number of things: `1 device`, `2 devices`.
pub fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

/// Seconds with three digits that mean something.
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
