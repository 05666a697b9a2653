//! Shows the progress of long work: a bar if standard error is a terminal, else plain lines.
//!
//! Progress goes to standard error, so that results on standard output can be piped.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::report::{note, out};

/// A progress display, which counts the completed steps. The bar shows the share of the steps that are completed, which may differ
/// from the share of the time that has passed.
pub struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Starts a display of `steps` steps.
    pub fn new(steps: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(steps as u64));
        if let Some(bar) = &bar {
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {msg}");
            bar.set_style(style.expect("the template is right"));
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Progress { bar }
    }

    /// Shows the name of the step that begins.
    pub fn begin(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None => note(&format!("{what} …")),
        }
    }

    /// Shows that all steps before `step` are complete, and what is under way. A display without a bar prints nothing.
    pub fn advance(&self, step: f64, what: &str) {
        // after an interruption, the time of a search is infinite
        if let Some(bar) = self.bar.as_ref().filter(|_| step.is_finite()) {
            bar.set_position(step as u64);
            bar.set_message(what.to_owned());
        }
    }

    /// Counts a completed step.
    pub fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Prints a line to standard error without disturbing the bar.
    pub fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note(line)),
            None => note(line),
        }
    }

    /// Prints a line of results to standard output without disturbing the bar.
    pub fn println(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| out(line)),
            None => out(line),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
