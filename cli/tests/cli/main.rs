//! The command line as a script sees it: files, messages, exit status.

mod bad_input;
#[cfg(unix)]
mod cache;
mod conformance;
#[cfg(target_os = "linux")]
mod drivers;
mod fatal;
mod good_input;
mod outputs;
mod peers;
mod programs;
mod quality;
mod readme;
#[cfg(unix)]
mod signals;
mod solve;
mod support;
mod verbs;
