//! Runs the steps of a chore one after the other and measures the time of each.

use std::time::{Duration, Instant};

use crate::Result;

/// The steps of a chore that have been completed.
pub struct Steps<'a> {
    start: Instant,
    /// Names of the requested steps. If the list is empty, all steps run.
    wanted: &'a [&'a str],
    done: Vec<(&'static str, Duration, String)>,
}

impl<'a> Steps<'a> {
    /// Starts a chore, of which no step has been completed.
    pub fn new(wanted: &'a [&'a str]) -> Self {
        Steps { start: Instant::now(), wanted, done: Vec::new() }
    }

    /// Runs one step if it is requested. The text that `work` returns is printed in the summary.
    ///
    /// # Errors
    /// The step failed. The message begins with the name of the step.
    pub fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<String>) -> Result<()> {
        if !self.wanted.is_empty() && !self.wanted.contains(&name) {
            return Ok(());
        }
        println!("== {name}");
        let start = Instant::now();
        let remark = work().map_err(|error| format!("{name}: {error}"))?;
        let time = start.elapsed();
        println!("== {name}: {:.1} s {remark}", time.as_secs_f64());
        self.done.push((name, time, remark));
        Ok(())
    }

    /// Prints every completed step with its time and its text.
    pub fn summary(&self) {
        println!("\n== summary");
        for (name, time, remark) in &self.done {
            println!("{name:<10}{:>8.1} s  {remark}", time.as_secs_f64());
        }
        println!("{:<10}{:>8.1} s", "all", self.start.elapsed().as_secs_f64());
    }
}
