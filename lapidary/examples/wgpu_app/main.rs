//! An application that computes and draws with one wgpu device. Lapidary solves a system in the buffers of the application, and the
//! shaders of the application draw the solution from these buffers. Neither the matrix of the system nor the solution leaves the
//! device. No call waits between the shader that writes the matrix and the picture: Lapidary's calls go into a stream, and the device
//! runs them between the commands of the application.
//!
//! `cargo run --release -p lapidary --example wgpu_app -- potential.png`
//!
//! The application computes the electric potential of a plate capacitor in a grounded box. Laplace's equation on a grid is a linear
//! system with one equation for each point; the example stores the matrix of this system as a dense matrix. A compute shader of the
//! application writes the matrix, LU solves the system, and a render pass colours the potential and draws a line at every tenth of
//! a volt.

mod app;
#[path = "../support/atomic.rs"]
mod atomic;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use lapidary::wgpu::{WgpuDevice, wgpu};
use lapidary::{DeviceMatrix, DevicePivots, Machine, Op, Settings, Stream};

use app::{App, WIDTH};

/// Draws the electric potential of a plate capacitor; computes and draws with wgpu only
#[derive(Parser)]
struct Options {
    /// The picture, as PNG; by default potential.png in the temporary folder
    out: Option<PathBuf>,
}

/// A grid with a wall around it, and the fixed potentials of some of its points.
#[derive(Debug)]
pub struct Capacitor {
    width: u32,
    height: u32,
    held: Vec<Option<f32>>,
}

impl Capacitor {
    /// Two plates at potentials of one volt and minus one volt, in a grounded box with `width` × `height` grid points inside.
    fn new(width: u32, height: u32) -> Self {
        let held = |x, y| match (x, y) {
            _ if x == 0 || y == 0 || x > width || y > height => Some(0.0),
            _ if y == height.div_ceil(3) && (width / 4..=width / 2).contains(&x) => Some(1.0),
            _ if y == height - height / 3 && (width / 3..=width - width / 4).contains(&x) => Some(-1.0),
            _ => None,
        };
        let held = (0..height + 2).flat_map(|y| (0..width + 2).map(move |x| held(x, y))).collect();
        Capacitor { width, height, held }
    }

    fn size(&self) -> [u32; 2] {
        [self.width, self.height]
    }

    fn unknowns(&self) -> u32 {
        self.width * self.height
    }

    /// Returns all points in the format that the shaders read.
    fn bytes(&self) -> Vec<u8> {
        let point = |held: &Option<f32>| [u32::from(held.is_some()).to_le_bytes(), held.unwrap_or(0.0).to_le_bytes()].concat();
        self.held.iter().flat_map(point).collect()
    }

    /// Returns the number of rows of a picture whose grid cells are square.
    fn rows(&self) -> u32 {
        WIDTH * (self.height + 1) / (self.width + 1)
    }
}

/// The system in buffers of the application, and the stream that solves it. An application with a window keeps a `Solver`, and calls
/// [`Solver::enqueue`] for each picture.
struct Solver {
    stream: Stream,
    /// The buffers of the matrix and of the right-hand side. The solution replaces the right-hand side.
    buffers: [wgpu::Buffer; 2],
    matrix: DeviceMatrix<f32>,
    rhs: DeviceMatrix<f32>,
}

impl Solver {
    fn open(app: &App, problem: &Capacitor) -> Result<Self, Box<dyn Error>> {
        let n = problem.unknowns();
        let buffers = [app.shared(n * n), app.shared(n)];
        let settings = Settings::from_env()?;
        let shared = WgpuDevice::from_parts(app.device.clone(), app.queue.clone(), Arc::new(settings.program_cache()))?;
        let machine = Machine::from_wgpu(vec![shared], &settings)?;
        let size = n as usize;
        let (matrix, rhs) = (machine.wrap_wgpu(&buffers[0], size, size)?, machine.wrap_wgpu(&buffers[1], size, 1)?);
        Ok(Solver { stream: machine.stream(0)?, buffers, matrix, rhs })
    }

    /// Submits the computation of the potential. Commands that the application submits afterwards find the potential in
    /// [`Solver::solution`].
    fn enqueue(&mut self, app: &App, problem: &Capacitor) -> Result<DevicePivots, Box<dyn Error>> {
        let [a, b] = &self.buffers;
        app.fill(problem.unknowns(), a, b);
        let pivots = self.stream.getrf(self.matrix.view_mut())?;
        self.stream.getrs(Op::NoTrans, self.matrix.view(), &pivots, self.rhs.view_mut())?;
        // Without `flush`, the device may run commands of the application before the solve.
        self.stream.flush();
        Ok(pivots)
    }

    fn solution(&self) -> &wgpu::Buffer {
        &self.buffers[1]
    }

    /// Waits for the factorisation, and returns an error if the matrix was singular or a call failed.
    fn check(&self, pivots: &DevicePivots) -> Result<(), Box<dyn Error>> {
        match self.stream.read_pivots(pivots)?.wait()?.1.get() {
            0 => Ok(()),
            pivot => Err(format!("the potential is not determined: pivot {pivot} is zero").into()),
        }
    }
}

fn encoded(pixels: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut file = Vec::new();
    let rows = u32::try_from(pixels.len())? / 4 / WIDTH;
    let mut encoder = png::Encoder::new(&mut file, WIDTH, rows);
    encoder.set_color(png::ColorType::Rgba);
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(file)
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

fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let out = options.out.unwrap_or_else(|| std::env::temp_dir().join("potential.png"));
    if out.extension().is_none_or(|extension| extension != "png") {
        return Err(format!("{}: the picture is a PNG; name a file that ends in .png", out.display()).into());
    }
    atomic::check_file(&out)?;
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let wanted = wgpu::RequestAdapterOptions { power_preference: wgpu::PowerPreference::HighPerformance, ..Default::default() };
    let adapter = pollster::block_on(instance.request_adapter(&wanted));
    let adapter = adapter.map_err(|error| format!("nothing is drawn, there is no adapter: {error}"))?;
    let problem = Capacitor::new(24, 15);
    let app = App::open(&adapter, &problem)?;
    let mut solver = Solver::open(&app, &problem)?;
    let pivots = solver.enqueue(&app, &problem)?;
    let pixels = app.draw(solver.solution(), problem.rows())?;
    solver.check(&pivots)?;
    let picture = encoded(&pixels)?;
    atomic::write_atomically(&out, &picture)?;
    println!("{}: {} points solved and drawn in {}", adapter.get_info().name, problem.unknowns(), out.display());
    Ok(())
}
