//! `lapidary`: the command-line program of Lapidary.

mod accuracy;
mod bench;
mod conformance;
mod dense;
mod failure;
mod io;
mod memory;
mod options;
mod progress;
mod report;
mod residual;
mod shape;
mod system;
mod trace;
mod tune;
mod verbs;
mod worker;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // The environment must be changed first, while the process has a single thread.
    name_runtime_folder();
    lapidary::probe::run_if_probe_child();
    io::temporary::survive_file_size_limit();
    let cli = verbs::Cli::parse();
    // SAFETY: the process has no other thread yet, as `verbs::run` requires.
    let done = unsafe { verbs::run(&cli) };
    options::note_programs();
    match done.and_then(|()| report::printed()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report::note(&format!("lapidary: {failure}"));
            failure.exit_code()
        }
    }
}

/// Sets the variable `XDG_RUNTIME_DIR` to the name of a folder, unless the variable names a folder already. Vulkan drivers search
/// this folder for a display, and print warnings to standard error if the variable is unset. Lapidary needs no display, so the
/// folder need not exist.
fn name_runtime_folder() {
    const NAME: &str = "XDG_RUNTIME_DIR";
    let named = std::env::var_os(NAME).is_some_and(|folder| std::path::Path::new(&folder).is_absolute());
    if cfg!(all(unix, not(target_vendor = "apple"))) && !named {
        // SAFETY: the process has no other thread yet that could read the environment.
        unsafe { std::env::set_var(NAME, "/nonexistent") };
    }
}
