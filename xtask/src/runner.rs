//! Runs other programs, and shows their output while they run.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Result;

/// A program with its arguments, its environment variables and the folder in which it runs.
pub struct Invocation {
    command: Command,
    line: String,
}

impl Invocation {
    /// Creates the command `PROGRAM ARGS`, which runs in `folder`.
    pub fn new(program: impl AsRef<OsStr>, folder: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(&program);
        command.current_dir(folder).args(args);
        Invocation { command, line: format!("{} {}", program.as_ref().to_string_lossy(), args.join(" ")) }
    }

    /// Adds an argument, such as a path, to the command.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.line = format!("{} {}", self.line, arg.as_ref().to_string_lossy());
        self.command.arg(arg);
        self
    }

    /// Sets an environment variable of the command.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.line = format!("{name}={} {}", value.as_ref().to_string_lossy(), self.line);
        self.command.env(name, value);
        self
    }

    /// Runs the command. The command writes to the standard output of this process.
    pub fn run(mut self) -> Result<()> {
        let status = self.command.status().map_err(|error| format!("{}: {error}", self.line))?;
        if status.success() { Ok(()) } else { Err(format!("failed: {}", self.line)) }
    }

    /// Runs the command, prints its standard output line by line, and returns this output.
    pub fn tee(self) -> Result<String> {
        self.read(|output| {
            let mut text = String::new();
            for line in BufReader::new(output).lines() {
                let line = line?;
                println!("{line}");
                text += &line;
                text.push('\n');
            }
            Ok(text)
        })
    }

    /// Runs the command and returns its standard output.
    pub fn output(self) -> Result<String> {
        self.read(|output| {
            let mut text = String::new();
            output.read_to_string(&mut text).map(|_| text)
        })
    }

    fn read(mut self, collect: impl FnOnce(&mut dyn Read) -> std::io::Result<String>) -> Result<String> {
        let failed = |error: std::io::Error| format!("{}: {error}", self.line);
        let mut child = self.command.stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut output = child.stdout.take().ok_or("no standard output")?;
        let text = collect(&mut output).map_err(failed)?;
        if child.wait().map_err(failed)?.success() { Ok(text) } else { Err(format!("failed: {}", self.line)) }
    }
}

/// Calls `work` for each item, in as many threads as the machine has processors, and returns the results in the order of the items.
pub fn on_all_processors<I: Sync, R: Send>(items: &[I], work: impl Fn(&I) -> Result<R> + Sync) -> Result<Vec<R>> {
    let (next, workers) = (AtomicUsize::new(0), std::thread::available_parallelism().map_or(1, usize::from));
    let worker = || {
        let mut done = Vec::new();
        while let Some((number, item)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?))) {
            done.push((number, work(item)?));
        }
        Ok(done)
    };
    let mut all = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let results = threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread has panicked".to_owned())?);
        results.collect::<Result<Vec<Vec<(usize, R)>>>>().map(|lists| lists.into_iter().flatten().collect::<Vec<_>>())
    })?;
    all.sort_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

/// Name of the installed rustup toolchain of version `MAJOR.MINOR`. `None` if no toolchain of this version is installed.
pub fn toolchain(version: &str) -> Option<String> {
    let output = Command::new("rustup").args(["toolchain", "list"]).output().ok()?;
    let list = String::from_utf8_lossy(&output.stdout);
    let found =
        list.split_whitespace().find(|name| name.starts_with(&format!("{version}.")) || name.starts_with(&format!("{version}-")));
    found.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::on_all_processors;

    #[test]
    fn results_have_the_order_of_the_items_and_an_error_ends_the_work() {
        let items: Vec<usize> = (0..100).collect();
        let squares: Vec<usize> = items.iter().map(|item| item * item).collect();
        assert_eq!(on_all_processors(&items, |item| Ok(item * item)), Ok(squares));
        let failing = |item: &usize| if *item == 70 { Err("item 70".to_owned()) } else { Ok(()) };
        assert_eq!(on_all_processors(&items, failing), Err("item 70".to_owned()));
    }
}
