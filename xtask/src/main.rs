//! Runs the chores of the project: `cargo xtask test`, `cargo xtask web`, `cargo xtask api`,
//! `cargo xtask tidy`, `cargo xtask bench`, `cargo xtask predict`, `cargo xtask kernels`, `cargo xtask ptx`.

mod api;
mod bench;
mod browser;
mod cross;
mod debian13;
mod drivers;
mod kernels;
mod packages;
mod predict;
mod ptx;
mod runner;
mod sanitize;
mod steps;
mod systems;
mod test;
mod tidy;
mod types;
mod window;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [STEPS...]   the checks before a commit, which CI runs, or the named steps
                              STEPS: prepare fmt tidy clippy api msrv types loom tests foreign browser
                              only on request: sanitize window oclgrind debian13
cargo xtask test systems      types on other systems, the suite on 64-bit Arm (in an emulator) and on Windows (by Wine)
cargo xtask web [PORT]        builds the page of the folder web, and serves it on localhost
cargo xtask api               accepts the present public API of the library (lapidary/public-api.txt)
cargo xtask tidy              the structure only: arrows, invariants, sizes, links
cargo xtask bench [ARGS...]   ours and peers in one process; results go to bench/results/
                              ARGS: gemm getrf trsm small outofcore opencl wgpu default batched rest streams host, --peer LIST, --n LIST, --reps R, --before R, --seconds S,
                              --dtype T, --routine LIST, --json FILE
cargo xtask predict DEVICES...
                              predicted against measured times of gemm, trsm and getrf, for each selection of devices that are alike,
                              such as opencl:0,1; --n LIST before DEVICES names the orders
cargo xtask kernels FILES...  merges tuned kernels of `lapidary tune --export` into kernels/database/
cargo xtask ptx               a table of registers, spills and local memory of the kernels for compute capability 9.0, by clang
                              and ptxas, without a GPU; CLANG, LIBCLC and PTXAS name the programs";

/// Result of a chore of `cargo xtask`. An error message tells the developer what to do.
type Result<T, E = String> = std::result::Result<T, E>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match chore(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn chore(args: &[&str]) -> Result<()> {
    let workspace = || workspace::Workspace::load();
    match args {
        ["test", steps @ ..] => test::run(&workspace()?, steps),
        ["web"] => browser::serve(&workspace()?, None),
        ["web", port] => browser::serve(&workspace()?, Some(port)),
        ["api"] => api::accept(&workspace()?),
        ["tidy"] => tidy::run(&workspace()?),
        ["bench", rest @ ..] => bench::run(&workspace()?, rest),
        ["predict", rest @ ..] => predict::run(&workspace()?, rest),
        ["kernels", files @ ..] => kernels::run(&workspace()?, files),
        ["ptx"] => ptx::run(&workspace()?),
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(format!("`{}` is no chore\n{USAGE}", other.join(" "))),
    }
}
