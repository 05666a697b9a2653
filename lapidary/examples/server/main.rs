//! A server that solves systems of linear equations with one matrix. The factors of the matrix stay on a device, and the server answers
//! all connections at the same time. No thread of the executor waits for the device.
//!
//! `cargo run --release -p lapidary --example server -- --listen 127.0.0.1:4000`
//!
//! A request is a line: the number n of unknowns, then the n elements of a right-hand side, separated by blanks. The answer is a line with
//! the n elements of the solution, or a line that begins with `error:`. `echo "3 1 2 3" | nc -N 127.0.0.1 4000` sends a request to a server
//! that was started with `--order 3`. The matrix is random.

mod connection;
mod service;
#[path = "../support/system.rs"]
mod system;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use lapidary::Machine;
use tokio::net::TcpListener;

use service::Service;

/// Solves systems of linear equations with one random matrix, for clients that connect by TCP
#[derive(Parser)]
struct Options {
    /// Address on which the server listens; with port 0 the system chooses a port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: String,
    /// Order of the matrix
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..))]
    order: u16,
    /// Stop after this number of answers; without it, the server stops on Ctrl-C
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let n = usize::from(options.order);
    let service = Service::new(&Machine::from_env()?, n, &system::random(1, n * n)).await?;
    let listener = TcpListener::bind(&options.listen).await.map_err(|error| format!("{}: {error}", options.listen))?;
    println!("{n} unknowns on {}", listener.local_addr()?);
    tokio::select! {
        answers = service.serve(listener, options.requests) => println!("{} answers", answers?),
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    Ok(())
}
