//! Measures the times of the frames of the window, at rest and while a device solves. No display is needed: the GPU that wgpu chooses for
//! graphics draws each frame into a texture, and the program copies the texture to the host before it begins the next frame.
//!
//! `cargo bench --manifest-path examples/window/Cargo.toml -- --devices wgpu:0 --unknowns 8192`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use eframe::egui_wgpu::{WgpuSetup, WgpuSetupCreateNew};
use egui_kittest::Harness;
use lapidary::Select;
use lapidary_window::App;

/// Time between the beginnings of two frames, unless a frame takes longer.
const PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 60);
/// Duration of a phase.
const PHASE: Duration = Duration::from_secs(10);
/// Time within which the first solutions must arrive.
const PATIENCE: Duration = Duration::from_secs(120);

/// Measures frame times of the window while a device solves
#[derive(Parser)]
struct Options {
    /// Number of unknowns
    #[arg(long, default_value_t = 8192, value_parser = clap::value_parser!(u32).range(1..=32768))]
    unknowns: u32,
    /// The device that solves
    #[arg(long, default_value = "wgpu:0")]
    devices: Select,
    /// Cargo passes this to benchmarks
    #[arg(long, hide = true)]
    bench: bool,
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

fn run(options: &Options) -> Result<(), String> {
    let app = App::new(options.devices.clone(), options.unknowns as usize);
    let setup = WgpuSetup::CreateNew(WgpuSetupCreateNew::without_display_handle());
    let mut window =
        Harness::builder().with_size([1280.0, 720.0]).wgpu_setup(setup).build_ui_state(|ui, app: &mut App| app.show(ui), app);
    let start = Instant::now();
    while window.state().solved() < 3 {
        frame(&mut window)?;
        if start.elapsed() > PATIENCE {
            return Err(format!("no solution within {PATIENCE:?}: {:?}", window.state().error()));
        }
    }
    println!("{} unknowns in f32, frames of 1280 × 720 at 60 per second", options.unknowns);
    println!("{:<10}{:>8}{:>10}{:>10}{:>10}{:>12}", "times/ms", "frames", "median", "99 %", "longest", "solved/s");
    for (name, is_solving) in [("at rest", false), ("solving", true), ("at rest", false), ("solving", true)] {
        window.state_mut().solve(is_solving);
        while window.state().is_waiting() && !is_solving {
            frame(&mut window)?;
        }
        // forgets the frames that were drawn while the device finished
        window.state_mut().solve(is_solving);
        phase(&mut window, name)?;
    }
    Ok(())
}

/// Draws frames for a while, one in a period at most, and prints the times between their beginnings.
fn phase(window: &mut Harness<App>, name: &str) -> Result<(), String> {
    let (start, solved) = (Instant::now(), window.state().solved());
    let mut due = start;
    while start.elapsed() < PHASE {
        // a frame that is late begins at once
        due = (due + PERIOD).max(Instant::now());
        std::thread::sleep(due - Instant::now());
        frame(window)?;
    }
    let rate = (window.state().solved() - solved) as f64 / start.elapsed().as_secs_f64();
    let frames = window.state().frames();
    let [median, most, all] = [50, 99, 100].map(|percent| 1e3 * frames.percentile(percent).as_secs_f64());
    println!("{name:<10}{:>8}{median:>10.2}{most:>10.2}{all:>10.2}{rate:>12.2}", frames.count());
    Ok(())
}

fn frame(window: &mut Harness<App>) -> Result<(), String> {
    window.step();
    window.render()?;
    window.state().error().map_or(Ok(()), |error| Err(error.to_owned()))
}
