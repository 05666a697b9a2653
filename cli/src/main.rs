//! `lapidary`: the command line of Lapidary.

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
mod verbs;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // first, while there is one thread
    name_runtime_folder();
    lapidary::probe::answer();
    io::temporary::survive_file_size_limit();
    let cli = verbs::Cli::parse();
    // SAFETY: no other thread runs yet.
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

/// Vulkan drivers look for a display in the folder that `XDG_RUNTIME_DIR` names and complain, line by
/// line on standard error, where it names none. No display is needed: a folder without one is named.
fn name_runtime_folder() {
    const NAME: &str = "XDG_RUNTIME_DIR";
    let named = std::env::var_os(NAME).is_some_and(|folder| std::path::Path::new(&folder).is_absolute());
    if cfg!(all(unix, not(target_vendor = "apple"))) && !named {
        // SAFETY: no other thread reads the environment, since there is none yet
        unsafe { std::env::set_var(NAME, "/nonexistent") };
    }
}
