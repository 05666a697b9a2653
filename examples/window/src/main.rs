//! A window that keeps its frame rate while a device solves systems of equations.
//!
//! `cargo run --release --manifest-path examples/window/Cargo.toml`
//!
//! On Linux without a display, `xvfb-run -a` before the command provides one.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use clap::Parser;
use eframe::egui::{self, ViewportBuilder};
use lapidary::{Machine, Select};
use lapidary_window::{App, check_file};

/// Solves random systems of equations in f32, and shows the times of the frames of its window
#[derive(Parser)]
struct Options {
    /// Number of unknowns
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=32768))]
    unknowns: u32,
    /// Devices such as wgpu:0, of which the last GPU solves; by default all
    #[arg(long, default_value_t = Select::all())]
    devices: Select,
    /// Writes a picture of the window to this file, as PNG, and closes
    #[arg(long)]
    picture: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), String> {
    options.picture.as_deref().map_or(Ok(()), check_file).map_err(|error| error.to_string())?;
    let mut app = App::new(options.devices.clone(), options.unknowns as usize);
    if let Some(file) = options.picture {
        app = app.with_picture(file);
    }
    let size = ViewportBuilder::default().with_inner_size([720.0, 320.0]);
    let native = eframe::NativeOptions { viewport: size, ..Default::default() };
    let error = Arc::new(Mutex::new(None));
    let watched = Watched { app, error: error.clone() };
    let shown = eframe::run_native("Lapidary", native, Box::new(|_| Ok(Box::new(watched))));
    shown.map_err(|error| without_window(&options.devices, &error))?;
    let error = error.lock().map_err(|error| error.to_string())?.take();
    error.map_or(Ok(()), Err)
}

/// Says why there is no window. If the devices do not open either, says why not, because no display helps then.
fn without_window(devices: &Select, error: &eframe::Error) -> String {
    if let Err(error) = Machine::open(devices) {
        return error.to_string();
    }
    let text = error.to_string();
    // the text of an error of winit begins with a place in the source of winit
    let cause = text.split_once("os error at ").and_then(|(_, rest)| rest.split_once(": ")).map_or(&*text, |(_, cause)| cause);
    let cause = cause.trim_end_matches('.');
    format!("no window: {cause}; run the program on a display, or on that of `xvfb-run -a`")
}

/// The window, and its error after it has been closed.
struct Watched {
    app: App,
    error: Arc<Mutex<Option<String>>>,
}

impl eframe::App for Watched {
    fn ui(&mut self, ui: &mut egui::Ui, _: &mut eframe::Frame) {
        self.app.show(ui);
    }

    fn on_exit(&mut self) {
        if let Ok(mut error) = self.error.lock() {
            let closed = self.app.is_drawing().then_some("the window was closed before its picture was written");
            *error = self.app.error().or(closed).map(str::to_owned);
        }
    }
}
