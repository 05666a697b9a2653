//! Stores speeds and run times of devices on disk, in the cache folder of compiled programs.
//!
//! A record contains the speeds and run times of a set of devices. The key of a record names the models, driver versions and
//! numbers of cores of the devices, so that no record is found after a driver update. A record with an invalid line of text is
//! ignored, and the speeds of the device are measured again.

use std::collections::HashMap;
use std::fmt::Write as _;
#[cfg(feature = "program-cache")]
use std::sync::Arc;

use lapidary_core::algorithms::Problem;
use lapidary_core::{DType, TimedKernel};
#[cfg(feature = "program-cache")]
use lapidary_core::{DeviceRuntime, Identity, ProgramCache};

use super::kernel::{Curve, Kernel};
use super::runs::{Bucket, RUNS_KEPT, Runs};
use super::speeds::{Speeds, Transfer};
use super::{Speed, State};

const DTYPES: [DType; 2] = [DType::F32, DType::F64];

/// Reads and writes records of speeds and run times in the cache folder of compiled programs.
#[cfg(feature = "program-cache")]
#[derive(Debug)]
pub(crate) struct Records {
    folder: Arc<ProgramCache>,
    /// For each device, a line of text that names everything that may change the speed of the device.
    devices: Vec<String>,
}

#[cfg(feature = "program-cache")]
impl Records {
    pub fn new(runtimes: &[DeviceRuntime], folder: Arc<ProgramCache>) -> Self {
        let line = |runtime: &DeviceRuntime| {
            let facts = runtime.facts();
            let (identity, units) = (&facts.identity, facts.compute_units.unwrap_or(0));
            let Identity { model, architecture, driver, .. } = identity;
            let memory = facts.memory;
            format!("{} model={model} architecture={architecture} driver={driver} units={units} memory={memory:?}\n", facts.name)
        };
        Records { folder, devices: runtimes.iter().map(line).collect() }
    }

    fn key(&self, devices: &[usize]) -> String {
        let lines: String = devices.iter().map(|&device| &*self.devices[device]).collect();
        format!("prices of lapidary {}\n{lines}", env!("CARGO_PKG_VERSION"))
    }

    fn load(&self, devices: &[usize]) -> Option<String> {
        self.folder.load(&self.key(devices)).and_then(|bytes| String::from_utf8(bytes).ok())
    }

    fn store(&self, devices: &[usize], text: &str) {
        self.folder.store(&self.key(devices), text.as_bytes());
    }
}

/// Without the feature `program-cache`, no speeds and run times are stored: a build without this feature has only the CPU backend
/// and no choice between devices.
#[cfg(not(feature = "program-cache"))]
#[derive(Debug)]
pub(crate) struct Records;

#[cfg(not(feature = "program-cache"))]
impl Records {
    fn load(&self, _: &[usize]) -> Option<String> {
        None
    }

    fn store(&self, _: &[usize], _: &str) {}
}

impl State {
    /// Loads the run times of a set of devices from disk. For a set of one device, also loads the speeds of this device.
    pub(super) fn load(&mut self, devices: &[usize]) -> Runs {
        let text = self.records.load(devices);
        let Some((speeds, runs)) = text.and_then(|text| read(&text)) else { return Runs::default() };
        if let ([device], Some(speeds)) = (devices, speeds) {
            self.speeds[*device] = Speed::Measured(speeds);
        }
        runs
    }

    /// Stores the run times of a set of devices on disk. For a set of one device, also stores the speeds of this device.
    pub(super) fn save(&mut self, devices: &[usize]) {
        let set = self.set(devices);
        set.is_unsaved = false;
        let runs = set.runs.clone();
        let speeds = match devices {
            [device] => match &self.speeds[*device] {
                Speed::Measured(speeds) => Some(speeds),
                Speed::Unknown | Speed::Failed => None,
            },
            _ => None,
        };
        self.records.store(devices, &write(speeds, &runs));
    }
}

/// Formats speeds and run times as text. Each line of the text has one entry, whose words are separated by spaces.
fn write(speeds: Option<&Speeds>, runs: &Runs) -> String {
    let mut text = String::new();
    if let Some(Speeds { transfers, kernels, memory }) = speeds {
        for Transfer { latency, bandwidth } in transfers.iter().flatten() {
            let _ = writeln!(text, "transfer {latency:e} {bandwidth:e}");
        }
        if let Some(bandwidth) = memory {
            let _ = writeln!(text, "memory {bandwidth:e}");
        }
        for ((kernel, dtype), measured) in kernels {
            let (name, Curve(points)) = (kernel.name(), measured.squares());
            let points: String = points.iter().map(|(flops, seconds)| format!(" {flops:e} {seconds:e}")).collect();
            let _ = writeln!(text, "kernel {name} {dtype}{points}");
        }
    }
    for (Bucket { operation, dtype, size }, ratios) in &runs.0 {
        let ratios: String = ratios.iter().map(|ratio| format!(" {ratio:e}")).collect();
        let size = size.map(|half_octaves| format!(" {half_octaves}")).concat();
        let _ = writeln!(text, "runs {operation} {dtype}{size}{ratios}");
    }
    text
}

/// Parses the text of a record. Returns the speeds, if the text has any, and the run times. Returns `None` if a line of the text is
/// invalid.
fn read(text: &str) -> Option<(Option<Speeds>, Runs)> {
    let (mut speeds, mut runs, mut transfers) = (Speeds::default(), HashMap::new(), Vec::new());
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match *words.first()? {
            "transfer" => match numbers(&words[1..])?[..] {
                [latency, bandwidth] => transfers.push(Transfer { latency, bandwidth }),
                _ => return None,
            },
            "memory" => match numbers(&words[1..])?[..] {
                [bandwidth] => speeds.memory = Some(bandwidth),
                _ => return None,
            },
            "kernel" => {
                let kernel = TimedKernel::ALL.into_iter().find(|kernel| Some(&kernel.name()) == words.get(1))?;
                let points: Vec<(f64, f64)> = numbers(words.get(3..)?)?.chunks_exact(2).map(|point| (point[0], point[1])).collect();
                let is_ascending = points.is_sorted_by(|a, b| a.0 < b.0);
                (!points.is_empty() && is_ascending).then_some(())?;
                speeds.kernels.insert((kernel, dtype(words.get(2)?)?), Kernel::of_squares(Curve(points)));
            }
            "runs" => {
                let operation = Problem::operation_named(words.get(1)?)?;
                let size = words.get(3..7)?.iter().map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>()?;
                let ratios = numbers(words.get(7..)?)?;
                (1..=RUNS_KEPT).contains(&ratios.len()).then_some(())?;
                runs.insert(Bucket { operation, dtype: dtype(words.get(2)?)?, size: size.try_into().ok()? }, ratios);
            }
            _ => return None,
        }
    }
    speeds.transfers = match transfers.len() {
        0 => None,
        _ => Some(transfers.try_into().ok()?),
    };
    Some(((speeds != Speeds::default()).then_some(speeds), Runs(runs)))
}

fn dtype(word: &str) -> Option<DType> {
    DTYPES.into_iter().find(|dtype| dtype.to_string() == word)
}

/// Parses positive finite numbers. Returns `None` if a word is not a positive finite number.
fn numbers(words: &[&str]) -> Option<Vec<f64>> {
    let number = |word: &&str| word.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    words.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> (Speeds, Runs) {
        let kernel = Kernel::of_squares(Curve(vec![(1e3, 1e-6), (1e6, 0.1)]));
        let transfer = Transfer { latency: 1e-5, bandwidth: 2.5e10 };
        let speeds = Speeds {
            transfers: Some([transfer, Transfer { latency: 1.0 / 3.0, ..transfer }]),
            kernels: [((TimedKernel::Getrf, DType::F32), kernel)].into(),
            memory: Some(1e11),
        };
        let mut runs = Runs::default();
        for ratio in [0.1, 1.0 / 3.0] {
            runs.add(Bucket { operation: "getrs", dtype: DType::F64, size: [20, 0, 7, 0] }, ratio);
        }
        (speeds, runs)
    }

    #[test]
    fn a_record_reads_as_it_was_written() {
        let (speeds, runs) = record();
        assert_eq!(read(&write(Some(&speeds), &runs)), Some((Some(speeds), runs.clone())));
        assert_eq!(read(&write(None, &runs)), Some((None, runs)));
        assert_eq!(read(""), Some((None, Runs::default())));
    }

    #[test]
    fn a_damaged_record_is_none() {
        let (speeds, runs) = record();
        let text = write(Some(&speeds), &runs);
        for (old, new) in [
            ("transfer 1e-5", "transfer -1e-5"),
            ("transfer 1e-5", "transfer NaN"),
            ("kernel getrf", "kernel potrf"),
            (" f32 ", " f16 "),
            ("1e3 1e-6", "1e7 1e-6"),
            ("runs getrs", "runs"),
            (" 20 0 7 0 ", " 20 0 -7 0 "),
            ("memory", "memoir"),
        ] {
            assert!(text.contains(old), "{old} is not in\n{text}");
            assert_eq!(read(&text.replacen(old, new, 1)), None, "{old} → {new}");
        }
    }
}
