//! Tests of the program as a script uses it: files, messages and exit status.

mod bad_input;
#[cfg(unix)]
mod cache;
mod conformance;
#[cfg(target_os = "linux")]
mod drivers;
mod entries;
mod fatal;
mod good_input;
mod hpl;
mod kernel;
mod kernel_times;
mod outputs;
mod peers;
mod profile;
mod programs;
mod quality;
mod readme;
mod replay;
#[cfg(unix)]
mod signals;
mod solve;
mod support;
mod sweeps;
mod tune;
#[cfg(unix)]
mod tune_signals;
mod tune_tasks;
mod verbs;
