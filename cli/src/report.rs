//! Figures for the user and, the same ones, for programs.

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::failure::{Failure, Result};
use crate::io::atomic;

/// Lines of the form `label  text` with the figures they were made from.
#[derive(Default)]
pub struct Report {
    lines: Vec<(&'static str, String)>,
    figures: Map<String, Value>,
}

impl Report {
    /// Adds a figure, its unit in the key.
    pub fn figure(&mut self, key: &str, value: impl Into<Value>) -> &mut Self {
        self.figures.insert(key.to_owned(), value.into());
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

/// The first line that could not be printed.
static UNPRINTED: OnceLock<std::io::Error> = OnceLock::new();

/// Prints a line. What goes wrong is told by [`printed`], once the work is done.
pub fn out(line: &str) {
    if let Err(error) = writeln!(std::io::stdout(), "{line}") {
        let _ = UNPRINTED.set(error);
    }
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

/// Seconds with three digits that mean something.
pub fn seconds(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.1} s"),
        v if v >= 1.0 => format!("{v:.3} s"),
        v if v >= 1e-3 => format!("{:.3} ms", v * 1e3),
        v => format!("{:.1} µs", v * 1e6),
    }
}
