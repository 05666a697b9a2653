//! `lapidary`: the command line of Lapidary.

mod bench;
mod conformance;
mod dense;
mod failure;
mod io;
mod options;
mod progress;
mod report;
mod residual;
mod shape;
mod trace;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match verbs::run(&verbs::Cli::parse()).and_then(|()| report::printed()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            report::note(&format!("lapidary: {failure}"));
            failure.exit_code()
        }
    }
}
