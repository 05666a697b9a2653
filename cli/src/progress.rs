//! Where long work stands: a bar on a terminal, plain lines elsewhere.
//!
//! Everything goes to standard error, so that results can be piped.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::report::{note, out};

/// Steps of unlike length: the bar counts those that are done.
pub struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    /// A display of `steps` steps.
    pub fn new(steps: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(steps as u64));
        if let Some(bar) = &bar {
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {msg}");
            bar.set_style(style.expect("the template is right"));
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Progress { bar }
    }

    /// Names what begins now.
    pub fn begin(&self, what: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None => note(&format!("{what} …")),
        }
    }

    /// Counts a step.
    pub fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Says something on standard error without tearing the bar.
    pub fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note(line)),
            None => note(line),
        }
    }

    /// Prints a line of results without tearing the bar.
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
