//! `lapidary bench profile`: measures the profile of a device.

use std::path::PathBuf;

use lapidary::DType;

use crate::failure::{Failure, Result};
use crate::io::atomic;
use crate::options::{DTypeFlag, DeviceOptions, names};
use crate::profile;
use crate::progress::Progress;
use crate::report::{out, seconds};

/// Options of `lapidary bench profile`.
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub struct Args {
    #[command(flatten)]
    pub device: DeviceOptions,
    /// Measure this element type only [default: all types in which the devices compute]
    #[arg(long, value_enum)]
    dtype: Option<DTypeFlag>,
    /// Skip shapes of a kernel whose expected run time exceeds this number of seconds
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", value_parser = parse_seconds)]
    longest: f64,
    /// Write the profile to FILE; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

const HELP: &str = "\
The profile holds the measured times of kernels of several shapes and of transfers between pageable
host memory and the device. If several devices are selected, the profile is that of the first, and also
states how much slower its products are while the others compute, since devices may share hardware.
`lapidary plan --profile FILE` predicts calls.

Examples:
  lapidary bench profile --device opencl:0 --json gpu.json
  lapidary plan getrf --n 20000 --devices 4 --profile gpu.json";

/// Measures the profile, prints a summary, and writes the requested file.
pub fn run(args: &Args) -> Result<()> {
    args.json.iter().try_for_each(|path| atomic::check_folder(path))?;
    let machine = args.device.open()?;
    let computes = |dtype: DType| machine.devices().all(|device| device.computes(dtype));
    let dtypes: Vec<DType> = match args.dtype {
        Some(dtype) => vec![dtype.into()],
        None => [DType::F32, DType::F64].into_iter().filter(|&dtype| computes(dtype)).collect(),
    };
    if let Some(dtype) = dtypes.iter().find(|&&dtype| !computes(dtype)) {
        return Err(Failure::usage(format!("not all of {} compute in {dtype}", names(machine.devices()))));
    }
    out(&format!("profile of {}", names(machine.devices().take(1))));
    let mut progress: Option<Progress> = None;
    let measured = machine.profile(0, &dtypes, args.longest, &mut |done, steps, what| {
        let progress = progress.get_or_insert_with(|| Progress::new(steps).ticking());
        progress.advance(done as f64, what);
    });
    drop(progress);
    let measured = measured?;
    if !measured.sharers.is_empty() {
        let percent = 100.0 * measured.slowdown;
        out(&format!(
            "products take {percent:.0} % longer for each of these devices that computes: {}",
            measured.sharers.join(", ")
        ));
    }
    out(&format!("latency {}", seconds(measured.latency)));
    for (way, transfers) in ["to the device", "to the host"].into_iter().zip(&measured.transfers) {
        if let Some((bytes, time)) = transfers.last() {
            out(&format!("transfers {way}: {:.2} GB/s", *bytes as f64 / time / 1e9));
        }
    }
    for (dtype, times) in &measured.types {
        for (kernel, shapes) in &times.kernels {
            let speeds = shapes.iter().map(|(sizes, seconds)| kernel.work(*sizes) / seconds / 1e9);
            out(&format!(
                "{dtype} {}: {} shapes, at most {:.1} {}",
                kernel.name(),
                shapes.len(),
                speeds.fold(0.0, f64::max),
                unit(kernel.name())
            ));
        }
    }
    args.json.iter().try_for_each(|path| atomic::write_text(path, &profile::write(&measured)))
}

/// Parses a positive number of seconds.
fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds > 0.0);
    seconds.ok_or_else(|| "a positive number of seconds is needed".to_owned())
}

/// The unit of the speed of a kernel.
fn unit(kernel: &str) -> &'static str {
    if kernel == "laswp" { "·10⁹ elements/s" } else { "GFLOP/s" }
}
