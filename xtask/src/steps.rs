//! Steps of a chore, one after the other, with their times.

use std::time::{Duration, Instant};

use crate::Result;

/// The steps done so far.
pub struct Steps<'a> {
    start: Instant,
    /// The steps asked for; all if none is named.
    wanted: &'a [&'a str],
    done: Vec<(&'static str, Duration, String)>,
}

impl<'a> Steps<'a> {
    /// None yet.
    pub fn new(wanted: &'a [&'a str]) -> Self {
        Steps { start: Instant::now(), wanted, done: Vec::new() }
    }

    /// Does one step, if it is wanted. Its value is a remark for the summary.
    ///
    /// # Errors
    /// The step's, with its name.
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

    /// Prints every step with its time and its remark.
    pub fn summary(&self) {
        println!("\n== summary");
        for (name, time, remark) in &self.done {
            println!("{name:<10}{:>8.1} s  {remark}", time.as_secs_f64());
        }
        println!("{:<10}{:>8.1} s", "all", self.start.elapsed().as_secs_f64());
    }
}
