//! Prints the table of times to standard output, and writes the same figures as JSON.

use std::process::Command;

use lapidary::DeviceFacts;
use serde_json::{Value, json};

use crate::gpu::comparison::Comparison;
use crate::measure::Times;
use crate::peer::threads;
use crate::settings::Settings;

/// The unit in which the table shows the time of a call.
#[derive(Clone, Copy)]
pub enum Unit {
    /// Speed in GFLOP/s. The value is the number of floating-point operations of a call.
    Gflops(f64),
    /// Time of a call in nanoseconds.
    Nanoseconds,
}

impl Unit {
    fn show(self, seconds: f64) -> String {
        match self {
            Unit::Gflops(flops) => format!("{:10.2} GFLOP/s", flops / seconds / 1e9),
            Unit::Nanoseconds => format!("{:10.1} ns", seconds * 1e9),
        }
    }
}

/// The figures of all cases that have been timed until now.
pub struct Report {
    about: Value,
    devices: Vec<Value>,
    peers: Vec<Value>,
    results: Vec<Value>,
    comparisons: Vec<Value>,
}

impl Report {
    /// Starts a report, and prints and stores the conditions of the benchmark.
    pub fn new(before: usize) -> Self {
        let state = if before == 0 { "each call after the threads came to rest" } else { "calls in a row" };
        let about = json!({
            "date": output("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"]),
            "command": std::env::args().skip(1).collect::<Vec<_>>().join(" "),
            "threads": threads(), "cpu_flags": simd_flags(),
            "lapidary": env!("CARGO_PKG_VERSION"), "commit": output("git", &["describe", "--always", "--dirty", "--abbrev=40"]),
            "rustc": output("rustc", &["--version"]),
            "method": format!("sides in turn, order reversed every other round, {state}; medians"),
        });
        println!("{about:#}");
        Report { about, devices: Vec::new(), peers: Vec::new(), results: Vec::new(), comparisons: Vec::new() }
    }

    /// Prints and stores which devices and which peer libraries are measured next.
    pub fn add_participants<'a>(
        &mut self,
        devices: impl Iterator<Item = &'a DeviceFacts>,
        peers: impl Iterator<Item = (&'static str, String)>,
    ) {
        let devices: Vec<_> = devices
            .map(|device| {
                json!({
                    "name": device.name, "description": device.description, "vendor": device.identity.vendor,
                    "driver": device.identity.driver, "compute_units": device.compute_units,
                    "dtypes": device.dtypes.iter().map(ToString::to_string).collect::<Vec<_>>(),
                })
            })
            .collect();
        let peers: Vec<_> = peers.map(|(name, version)| json!({ "name": name, "version": version })).collect();
        println!("{:#}", json!({ "devices": devices, "peers": peers }));
        self.devices.extend(devices);
        self.peers.extend(peers);
        println!("{:<8}{:<28}{:<18}{:>18}{:>10}  {:<28}{:>6}", "", "", "", "median", "ours/peer", "min … max", "reps");
    }

    /// Prints and stores the times of one case. The first element of `times` belongs to Lapidary. A printed ratio above 1 means
    /// that Lapidary is faster.
    pub fn add(&mut self, routine: &str, size: &str, unit: Unit, times: &[Times]) {
        let ours = times[0].median();
        for side in times {
            let (median, ratio) = (side.median(), side.median() / ours);
            let [min, max] = [side.seconds[0], side.seconds[side.seconds.len() - 1]].map(|seconds| seconds * 1e3);
            let spread = format!("{min:.4} … {max:.4} ms");
            let shown = unit.show(median);
            println!("{routine:<8}{size:<28}{:<18}{shown:>18}{ratio:>10.3}  {spread:<28}{:>6}", side.name, side.seconds.len());
            let gflops = if let Unit::Gflops(flops) = unit { json!(flops / median / 1e9) } else { Value::Null };
            self.results.push(json!({
                "routine": routine, "size": size, "side": side.name, "median_seconds": median, "gflops": gflops,
                "speed_ratio_ours_to_this": ratio, "samples_seconds": side.seconds,
            }));
        }
    }

    /// Prints and stores one figure of a case.
    pub fn remark(&mut self, routine: &str, size: &str, key: &str, value: f64) {
        println!("{routine:<8}{size:<28}{key} {value:.4}");
        self.results.push(json!({ "routine": routine, "size": size, key: value }));
    }

    /// Stores comparisons with other libraries.
    pub fn add_comparisons(&mut self, all: &[Comparison]) {
        self.comparisons.extend(all.iter().map(Comparison::to_json));
    }

    /// Writes all figures as JSON into the file that the option `--json` names, if there is one.
    pub fn save(&self, settings: &Settings) -> Result<(), String> {
        let Some(path) = &settings.json else { return Ok(()) };
        let mut about = self.about.clone();
        for (key, list) in [("devices", &self.devices), ("peers", &self.peers)] {
            // Several benchmark groups may have added the same devices and peer libraries.
            let mut list = list.clone();
            list.dedup();
            about[key] = list.into();
        }
        let mut all = json!({ "about": about, "results": self.results });
        if !self.comparisons.is_empty() {
            all["comparisons"] = self.comparisons.clone().into();
        }
        std::fs::write(path, format!("{all:#}\n")).map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Standard output of a program. The text is empty if the program cannot be started.
fn output(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The AVX and FMA flags that the processor reports (on Linux; the list is empty on other systems).
fn simd_flags() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    flags.split_whitespace().filter(|flag| flag.starts_with("avx") || *flag == "fma").map(str::to_owned).collect()
}
