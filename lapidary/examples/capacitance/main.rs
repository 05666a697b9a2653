//! Capacitance of the unit cube by the method of moments.
//!
//! A conducting cube is held at potential 1. The surface of the cube is divided into panels of constant charge density. The
//! potential of a panel is the closed form in [`potential`], which is exact at any distance. The potential at the centre of every
//! panel must be 1; this condition is a dense system A·x = b. The unknowns are the charges of the panels divided by 4πε₀, so their
//! sum is the capacitance in units of 4πε₀·edge. The known value of the capacitance is 0.660678 (Hwang and Mascagni, Journal of
//! Applied Physics 95, 2004; more digits: Helsing and Perfekt, ACHA 34, 2013).
//!
//! The charge density grows like d^(-1/3) at distance d from an edge. With panels of equal size, the singularity at the edges
//! dominates the error, which is proportional to m^(-4/3) for m panels along an edge. Grading the panels towards the edges by t^g
//! reduces the error that the singularity causes to m^(-4g/3). For large g, the error m^(-3) of the constant charge density on each
//! panel dominates. The default is g = 3, since a larger g leaves fewer panels in the middle of the faces and increases the
//! condition number. Richardson's extrapolation requires that the error has one known order.

#[path = "../support/atomic.rs"]
mod atomic;
mod cube;
mod files;
mod picture;
mod potential;
mod study;

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use lapidary::{Machine, Select, Settings};

use study::Solved;

/// Computes the capacitance of the unit cube, from finer and finer panels on its surface
#[derive(Parser)]
#[command(after_help = "Without --device the devices are those of $LAPIDARY_DEVICE, else all.")]
struct Options {
    /// Panels along an edge of the cube in the last system, which has n = 6·MAX² unknowns and 16·n² bytes
    #[arg(default_value_t = 24, value_parser = clap::value_parser!(u32).range(2..=100))]
    max: u32,
    /// Exponent by which panels shrink towards the edges; 1: all panels are equal
    #[arg(long, value_name = "G", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=5))]
    grading: u32,
    /// Devices: all, cpu, cpu:0,1, opencl:0, wgpu:0 or cpu+opencl:0
    #[arg(long, value_name = "SEL")]
    device: Option<Select>,
    /// Write the charge density of the last system to this file, as an SVG picture
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the last system to this folder, as A.npy, b.npy and expected.json
    #[arg(long, value_name = "DIR")]
    write_system: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    make_folders(options)?;
    let select = options.device.clone().map_or_else(Select::from_env, Ok)?;
    let machine = Machine::with_settings(&select, &Settings::from_env()?)?;
    println!("{}", study::HEAD);
    let mut done: Vec<Solved> = Vec::new();
    for m in sizes(options.max as usize) {
        let solved = study::solve(&machine, m, options.grading)?;
        println!("{}", study::row(&solved, done.last()));
        done.push(solved);
    }
    if let [.., coarse, fine] = &done[..] {
        println!("\n{}", study::extrapolated(coarse, fine, options.grading));
    }
    write_files(options, done.last().expect("there is at least one size"))
}

/// Checks the output files before the computation, and makes the output folder.
fn make_folders(options: &Options) -> io::Result<()> {
    options.out.as_deref().map_or(Ok(()), atomic::check_file)?;
    options.write_system.as_deref().map_or(Ok(()), |folder| {
        std::fs::create_dir_all(folder)?;
        files::NAMES.iter().try_for_each(|name| atomic::check_file(&folder.join(name)))
    })
}

/// Returns 4, 8, … and `max`.
fn sizes(max: usize) -> Vec<usize> {
    (4..max).step_by(4).chain([max]).collect()
}

fn write_files(options: &Options, last: &Solved) -> Result<(), Box<dyn Error>> {
    if let Some(path) = &options.out {
        atomic::write_atomically(path, picture::svg(&last.panels, &last.x).as_bytes())?;
        eprintln!("drew {}", path.display());
    }
    if let Some(folder) = &options.write_system {
        files::write_system(folder, last, options.grading)?;
        eprintln!("wrote A.npy, b.npy and expected.json in {}", folder.display());
    }
    Ok(())
}
