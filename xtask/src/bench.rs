//! `cargo xtask bench`: times Lapidary and other libraries in one process.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::Result;
use crate::workspace::Workspace;

/// Runs the benchmark program. If the arguments lack `--json`, the program writes its figures to a new file in `bench/results/`.
pub fn run(ws: &Workspace, args: &[&str]) -> Result<()> {
    let fixed = ["run", "--release", "--package", "lapidary-bench", "--"];
    let mut all = [&fixed, args].concat();
    let folder = ws.root.join("bench/results");
    let file = folder.join(name());
    let file = file.to_string_lossy();
    if !args.contains(&"--json") {
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        all.extend(["--json", &file]);
    }
    ws.cargo(&all).run()
}

/// A file name that contains the current time, so that each run of the benchmark writes another file.
fn name() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    format!("peers-{seconds}.json")
}
