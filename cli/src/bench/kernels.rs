//! Times the kernels of a call on the clock of the device, and formats the times as a table and as JSON.

use lapidary::{KernelTime, Machine, Routine, Scalar};
use serde_json::{Value, json};

use super::measure::median;
use super::placement::Placement;
use super::problem::Problem;
use super::stacked::{self, Bar};
use crate::failure::{Failure, Result};
use crate::report::{fixed, seconds as seconds_text};
use crate::shape::Shape;

/// Tasks of an LU factorisation, in the order in which tables and pictures name them. The kernel `getrf_held_rows` factors a panel and
/// exchanges the rows of the other columns in one launch.
const TASKS: [&str; 5] = ["panel", "panel, exchange", "exchange", "solve", "update"];

/// Name of the time in which no kernel ran.
const NO_KERNEL: &str = "no kernel";

/// The times of all kernels of one call.
#[derive(Debug)]
pub struct Profile {
    times: Vec<KernelTime>,
    /// Whether the call factors a matrix, so that its kernels belong to tasks.
    has_tasks: bool,
}

/// The sum of the times of kernels with the same name and task, or with the same task.
#[derive(Debug, PartialEq)]
struct Row {
    /// Name of the kernel, or of the task.
    name: &'static str,
    /// The task of the kernel, or an empty text if the row is the sum of a task, or the call has no tasks.
    task: &'static str,
    launches: usize,
    seconds: f64,
    median: f64,
}

/// Runs a call twice on a machine that records the times of kernels, and returns the times of the second run. The result of the second
/// run is checked.
pub fn profile<T: Scalar>(shape: Shape, seed: u64, timed: &Machine, placement: Placement) -> Result<Profile> {
    let mut problem = Problem::<T>::new(shape, seed, timed, placement)?;
    problem.ours()?;
    problem.reset()?;
    timed.take_kernel_times()?;
    problem.ours()?;
    let times = timed.take_kernel_times()?.into_iter().flatten().collect();
    let check = problem.check_ours()?;
    if !check.passed() {
        return Err(Failure::check(format!("with --kernels, the result is wrong: {} is {}", check.what, check.ratio)));
    }
    drop(problem);
    timed.trim();
    Ok(Profile { times, has_tasks: matches!(shape.routine, Routine::Getrf | Routine::Gesv) })
}

impl Profile {
    /// Returns the times of the kernels, in the order in which the kernels started.
    pub fn times(&self) -> &[KernelTime] {
        &self.times
    }

    /// Returns the task of a kernel, or the name of the kernel if the call has no tasks.
    pub fn group(&self, time: &KernelTime) -> &'static str {
        match (time.operation, time.kernel) {
            _ if !self.has_tasks => time.kernel,
            ("getrf", "getrf_held_rows") => "panel, exchange",
            ("getrf", _) => "panel",
            ("laswp", _) => "exchange",
            ("trsm", _) => "solve",
            ("gemm", _) => "update",
            (other, _) => other,
        }
    }

    /// Returns the names of all groups of kernels. The position of a name in the list decides the colour of the group. A group is a task; if the
    /// call has no tasks, each kernel is a group.
    pub fn groups(&self) -> Vec<&'static str> {
        let mut groups: Vec<&str> = TASKS.into_iter().filter(|_| self.has_tasks).collect();
        for time in &self.times {
            if !groups.contains(&self.group(time)) {
                groups.push(self.group(time));
            }
        }
        groups
    }

    /// Returns the seconds from the start of the first kernel to the end of the last kernel.
    pub fn elapsed(&self) -> f64 {
        let first = self.times.iter().map(|time| time.start).fold(f64::INFINITY, f64::min);
        self.times.iter().map(|time| time.end - first).fold(0.0, f64::max)
    }

    /// Returns the seconds of [`elapsed`](Self::elapsed) in which no kernel ran in any queue.
    pub fn idle(&self) -> f64 {
        let mut spans: Vec<(f64, f64)> = self.times.iter().map(|time| (time.start, time.end)).collect();
        spans.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut last = f64::INFINITY;
        let mut idle = 0.0;
        for (start, end) in spans {
            idle += (start - last).max(0.0);
            last = if last.is_finite() { last.max(end) } else { end };
        }
        idle
    }

    /// Returns `seconds` as a part of [`elapsed`](Self::elapsed). The parts of kernels that run at the same time in two queues add up to more
    /// than 1.
    pub fn share(&self, seconds: f64) -> f64 {
        if self.elapsed() > 0.0 { seconds / self.elapsed() } else { 0.0 }
    }

    /// Returns the seconds for which the kernels of a group ran.
    pub fn seconds(&self, group: &str) -> f64 {
        self.times.iter().filter(|time| self.group(time) == group).map(|time| time.end - time.start).sum()
    }

    /// Returns a row for each pair of a kernel and a task, the longest time first.
    fn by_kernel(&self) -> Vec<Row> {
        let task = |time: &KernelTime| if self.has_tasks { self.group(time) } else { "" };
        let mut rows = self.rows(|time| (time.kernel, task(time)));
        rows.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
        rows
    }

    /// Returns a row for each task.
    fn by_task(&self) -> Vec<Row> {
        let groups = self.groups();
        let mut rows = if self.has_tasks { self.rows(|time| (self.group(time), "")) } else { Vec::new() };
        rows.sort_by_key(|row| groups.iter().position(|group| *group == row.name));
        rows
    }

    fn rows(&self, key: impl Fn(&KernelTime) -> (&'static str, &'static str)) -> Vec<Row> {
        let mut grouped: Vec<((&str, &str), Vec<f64>)> = Vec::new();
        for time in &self.times {
            let (key, seconds) = (key(time), time.end - time.start);
            match grouped.iter_mut().find(|(known, _)| *known == key) {
                Some((_, all)) => all.push(seconds),
                None => grouped.push((key, vec![seconds])),
            }
        }
        let row = |((name, task), all): ((&'static str, &'static str), Vec<f64>)| {
            let (launches, seconds) = (all.len(), all.iter().sum());
            Row { name, task, launches, seconds, median: median(all) }
        };
        grouped.into_iter().map(row).collect()
    }

    /// The table that `lapidary bench` prints below the row of a call. `median` is the median time in seconds of the call on a device that
    /// records no times: where it is below [`elapsed`](Self::elapsed), the records have made the pauses between kernels longer.
    pub fn table(&self, median: f64) -> Vec<String> {
        let name =
            |name: &str, task: &str| if self.has_tasks { format!("  {name:<20}{task:<16}") } else { format!("  {name:<20}") };
        let times = |seconds: f64| format!("{:>12}", fixed(seconds * 1e3, 4));
        let share = |seconds: f64| format!("{:>9} %", fixed(self.share(seconds) * 100.0, 1));
        let line = |row: &Row| {
            let [total, share] = [times(row.seconds), share(row.seconds)];
            format!("{}{:>9}{total}{:>12}{share}", name(row.name, row.task), row.launches, fixed(row.median * 1e6, 2))
        };
        let mut lines =
            vec![format!("{}{:>9}{:>12}{:>12}{:>11}", name("kernel", "task"), "launches", "total ms", "median µs", "share")];
        lines.extend(self.by_kernel().iter().map(line));
        if self.has_tasks {
            lines.push(format!("{}{:>9}{:>12}{:>12}{:>11}", name("task", ""), "launches", "total ms", "median µs", "share"));
            lines.extend(self.by_task().iter().map(line));
        }
        let rest = |what: &str, seconds: f64| format!("{}{:>9}{}{:>12}{}", name(what, ""), "", times(seconds), "", share(seconds));
        lines.push(rest(NO_KERNEL, self.idle()));
        lines.push(rest("first start to end", self.elapsed()));
        lines.push(rest("without records", median));
        lines
    }

    /// Returns the rows of the table as JSON.
    pub fn to_json(&self) -> Value {
        let row = |row: &Row| {
            json!({
                "name": row.name, "task": Some(row.task).filter(|task| !task.is_empty()), "launches": row.launches,
                "total_seconds": row.seconds, "median_seconds": row.median, "share": self.share(row.seconds),
            })
        };
        let rows = |rows: Vec<Row>| rows.iter().map(row).collect::<Vec<_>>();
        json!({
            "elapsed_seconds": self.elapsed(), "idle_seconds": self.idle(),
            "kernels": rows(self.by_kernel()), "tasks": rows(self.by_task()),
        })
    }
}

/// Draws the profiles of several sizes as stacked bars. The parts of a bar are the shares of the groups of kernels, and of the time in
/// which no kernel ran. Returns the text of an SVG file.
pub fn stacked(title: &str, profiles: &[(usize, &Profile)]) -> Result<String> {
    let mut groups: Vec<&str> = Vec::new();
    for (_, profile) in profiles {
        for group in profile.groups() {
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
    }
    let bar = |(n, profile): &(usize, &Profile)| {
        let seconds = groups.iter().map(|group| profile.seconds(group)).chain([profile.idle()]);
        let parts = seconds.map(|seconds| profile.share(seconds) * 100.0).collect();
        Bar { name: n.to_string(), note: seconds_text(profile.elapsed()), parts }
    };
    let bars: Vec<Bar> = profiles.iter().map(bar).collect();
    groups.push(NO_KERNEL);
    stacked::svg(title, ["n", "% of the time from the first start to the last end"], &groups, &bars)
}

#[cfg(test)]
mod tests;
