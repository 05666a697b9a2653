//! `lapidary`: the command-line program of Lapidary.

mod accuracy;
mod bench;
mod conformance;
mod dense;
mod failure;
mod hpl;
mod io;
mod memory;
mod options;
mod profile;
mod progress;
mod report;
mod residual;
mod shape;
mod system;
mod trace;
mod tune;
mod verbs;
mod worker;

use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // The environment must be changed first, while the process has a single thread.
    name_runtime_folder();
    lapidary::probe::run_if_probe_child();
    io::temporary::survive_file_size_limit();
    let cli = match verbs::Cli::try_parse() {
        Ok(cli) => cli,
        Err(answer) => return end_with(&answer),
    };
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

/// Prints the help, the version or the error that answers the command line, and returns the exit status.
fn end_with(answer: &clap::Error) -> ExitCode {
    let is_error = answer.use_stderr();
    match answer.print().and_then(|()| std::io::stdout().flush()) {
        Err(error) if !is_error && error.kind() != ErrorKind::BrokenPipe => {
            let failure = failure::Failure::write(Path::new("standard output"), error);
            report::note(&format!("lapidary: {failure}"));
            failure.exit_code()
        }
        Ok(()) | Err(_) => ExitCode::from(if is_error { failure::Status::BadInput as u8 } else { 0 }),
    }
}

/// Sets the variable `XDG_RUNTIME_DIR` to the name of a folder, unless the variable names a folder already. Vulkan drivers search
/// this folder for a display, and print warnings to standard error if the variable is unset. Lapidary needs no display, so the
/// folder need not exist.
fn name_runtime_folder() {
    const NAME: &str = "XDG_RUNTIME_DIR";
    let named = std::env::var_os(NAME).is_some_and(|folder| Path::new(&folder).is_absolute());
    if cfg!(all(unix, not(target_vendor = "apple"))) && !named {
        // SAFETY: the process has no other thread yet that could read the environment.
        unsafe { std::env::set_var(NAME, "/nonexistent") };
    }
}
