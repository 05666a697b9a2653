//! Chooses the devices that run a call, by the expected time (the price) on each set of devices
//! (docs/decisions/0017-calls-choose-by-price.md).
//!
//! A price is an estimate from measured speeds, multiplied by a correction from the times of earlier calls of about the same size.

mod cached;
mod choice;
mod explain;
pub(crate) mod kernel;
mod runs;
pub(crate) mod speeds;
mod store;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lapidary_core::algorithms::Problem;
use lapidary_core::{DeviceRuntime, Instant, Instruction, RawMat};

use cached::Cache;
use choice::{ENOUGH_RUNS, Price};
pub use explain::{Explanation, PricedSet, Reason};
pub(crate) use explain::{Listener, Tell};
use runs::{Bucket, Runs};
use speeds::Speeds;
pub(crate) use store::Records;

use crate::machine::{DIRECT_FLOPS, Machine};
use crate::run::{Planner, flops};

/// The data by which a machine chooses the devices of a call.
#[derive(Debug)]
pub(crate) struct Pricing {
    /// For each device, the lowest index of a device of the machine that is the same hardware. Two backends may open the same GPU.
    hardware: Vec<usize>,
    state: Mutex<State>,
    cache: Mutex<Cache>,
}

#[derive(Debug)]
struct State {
    records: Records,
    /// Measured speeds of each device.
    speeds: Vec<Speed>,
    /// Sets of devices that have been priced so far.
    sets: Vec<Set>,
    /// Pairs of a set of devices and a size of call that this set has run in this process. The first call of a size on a set of
    /// devices is not recorded, since the driver may compile kernels and allocate memory during this call.
    warm: HashSet<(Vec<usize>, Bucket)>,
}

#[derive(Debug)]
enum Speed {
    /// No speed of the device has been measured or loaded from disk.
    Unknown,
    Measured(Speeds),
    /// The device failed while its speeds were measured. The machine never chooses this device by price.
    Failed,
}

/// A set of devices, in ascending order of index, with the times of the calls that it has run.
#[derive(Debug)]
struct Set {
    devices: Vec<usize>,
    runs: Runs,
    /// Whether run times were added since the file of this set of devices was last written.
    is_unsaved: bool,
    /// For each size of call: the time of the simulated plan, divided by the estimated time if the devices never waited for each
    /// other.
    slowdown: HashMap<Bucket, f64>,
    /// For each size of call: the total time, in seconds, of the calls that other sets of devices have run since this set of
    /// devices last ran a call of that size.
    seconds_on_other_sets: HashMap<Bucket, f64>,
}

/// The prices of a call on the sets of devices that can run it. The set of devices that is chosen for the call comes first.
pub(crate) struct Priced {
    prices: Vec<Price>,
    bucket: Bucket,
}

/// A call that has begun on chosen devices.
#[derive(Debug)]
pub(crate) struct Run {
    pub devices: Vec<usize>,
    bucket: Bucket,
    estimate: f64,
    start: Instant,
    /// Whether the choice of the devices comes from the cache of choices.
    is_cached: bool,
}

impl Priced {
    /// Begins to measure the time of the call on the chosen set of devices. Returns `None` if no set of devices has a price.
    pub fn begin(&self) -> Option<Run> {
        let Price { devices, estimate, .. } = self.prices.first()?;
        Some(Run { devices: devices.clone(), bucket: self.bucket, estimate: *estimate, start: Instant::now(), is_cached: false })
    }

    /// Whether the machine runs the call on the chosen devices only to measure them, although another set of devices has a lower
    /// price.
    pub fn is_trial(&self) -> bool {
        self.prices.iter().skip(1).any(|price| price.is_cheaper_than(&self.prices[0]))
    }
}

/// A call on host matrices, and the devices that can run it.
pub(crate) struct HostCall<'a> {
    pub machine: &'a Machine,
    pub problem: &'a Problem,
    pub memory: &'a [RawMat],
    pub capable: &'a [usize],
}

impl HostCall<'_> {
    /// Returns the instructions of the call.
    fn instructions(&self) -> Vec<Instruction<RawMat>> {
        self.problem.instructions().iter().map(|instruction| instruction.map(|matrix| self.memory[matrix])).collect()
    }

    /// Number of floating-point operations of the call.
    pub fn flops(&self) -> f64 {
        flops(self.problem, self.memory)
    }

    /// Returns the first device that computes in host memory, if the call is small.
    pub fn device_if_small(&self) -> Option<usize> {
        let device = self.capable.iter().copied().find(|&device| self.runtime(device).facts().host_memory)?;
        (self.flops() <= DIRECT_FLOPS).then_some(device)
    }

    /// Returns the devices that run the call if no set of devices has a price. `reason` is the reason why devices take part in the call.
    pub fn devices_without_prices(&self, reason: Reason) -> Vec<usize> {
        match reason {
            Reason::Small => self.device_if_small().into_iter().collect(),
            // the first device is the CPU if the CPU can run the call
            Reason::Price | Reason::Unmeasured => vec![self.capable[0]],
            _ => self.capable.to_vec(),
        }
    }

    fn runtime(&self, device: usize) -> &DeviceRuntime {
        &self.machine.runtimes()[device]
    }
}

impl Pricing {
    pub fn new(runtimes: &[DeviceRuntime], records: Records) -> Self {
        let speeds = runtimes.iter().map(|_| Speed::Unknown).collect();
        let state = State { records, speeds, sets: Vec::new(), warm: HashSet::new() };
        Pricing { hardware: hardware(runtimes), state: Mutex::new(state), cache: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses the devices of a call and begins to measure the time of the call. If no choice of devices is cached for the problem,
    /// the call is priced, and the new choice is cached if the next calls would choose the same devices. Returns `None` if no set
    /// of devices has a price.
    pub fn begin(&self, call: &HostCall<'_>) -> Option<Run> {
        let cached = self.cache().begin(call.problem, call.capable);
        cached.or_else(|| {
            let priced = self.price(call);
            self.cache().add(call.problem, call.capable, &priced);
            priced.begin()
        })
    }

    /// Prices a call without running it. Returns the prices, and whether the choice of devices is cached. If a choice is cached,
    /// its set of devices comes first in the prices.
    pub fn explain(&self, call: &HostCall<'_>) -> (Priced, bool) {
        let mut priced = self.price(call);
        let cached = self.cache().price(call.problem, call.capable).cloned();
        let is_cached = cached.is_some();
        if let Some(cached) = cached {
            let now = priced.prices.iter().position(|price| price.devices == cached.devices);
            let first = now.map_or(cached, |at| priced.prices.remove(at));
            priced.prices.insert(0, first);
        }
        (priced, is_cached)
    }

    /// Clears the cache of choices of devices. The machine calls this method after a call has failed.
    pub fn forget_choices(&self) {
        self.cache().clear();
    }

    /// Returns the other devices that are the same hardware as one of `devices`.
    pub fn same_hardware(&self, devices: &[usize]) -> Vec<usize> {
        let is_same = |device: usize| devices.iter().any(|&other| self.hardware[other] == self.hardware[device]);
        (0..self.hardware.len()).filter(|device| !devices.contains(device) && is_same(*device)).collect()
    }

    /// Prices the call on the sets of devices that can run it.
    pub fn price(&self, call: &HostCall<'_>) -> Priced {
        let (instructions, bucket, mut state) = (call.instructions(), Bucket::of(call.problem), self.state());
        // the lock of the cache is released before files of speeds and run times are read or written
        let ended = std::mem::take(&mut self.cache().ended);
        state.add_all(ended);
        let mut prices = Vec::new();
        for &device in call.capable {
            if let Some(speeds) = state.speeds_of(call, device, &instructions) {
                let estimate = speeds.call(bucket.dtype, &instructions);
                let is_planned = !call.runtime(device).facts().host_memory;
                let ratio = if is_planned { state.slowdown(call, &[device], &bucket, estimate) } else { 1.0 };
                let estimate = estimate * ratio;
                prices.push(state.price(vec![device], &bucket, [estimate; 2]));
            }
        }
        let alone = prices.iter().map(|price| price.seconds).fold(f64::INFINITY, f64::min);
        for devices in self.device_sets(&prices, call.machine.runtimes()) {
            // lower bound of the time: all devices of the set work at the same time and never wait for each other
            let bound = |seconds: fn(&Price) -> f64| {
                let together = prices.iter().filter(|price| devices.contains(&price.devices[0]));
                1.0 / together.map(|price| 1.0 / seconds(price)).sum::<f64>()
            };
            if bound(|price| price.seconds) < alone {
                let estimate = bound(|price| price.estimate);
                let slowdown = state.slowdown(call, &devices, &bucket, estimate);
                let estimates = [estimate, bound(|price| price.seconds)].map(|seconds| seconds * slowdown);
                prices.push(state.price(devices, &bucket, estimates));
            }
        }
        choice::sort(&mut prices);
        Priced { prices, bucket }
    }

    /// Returns the sets of several devices that are to be priced: all devices, and all devices but the CPU. If several devices are
    /// the same hardware, only the device with the lowest price among them belongs to a set.
    fn device_sets(&self, alone: &[Price], runtimes: &[DeviceRuntime]) -> Vec<Vec<usize>> {
        let is_cheapest = |price: &&Price| {
            let hardware = self.hardware[price.devices[0]];
            let same = alone.iter().filter(|other| self.hardware[other.devices[0]] == hardware);
            same.map(|other| other.seconds).fold(f64::INFINITY, f64::min) >= price.seconds
        };
        let all: Vec<usize> = alone.iter().filter(is_cheapest).map(|price| price.devices[0]).collect();
        let apart: Vec<usize> = all.iter().copied().filter(|&device| !runtimes[device].facts().host_memory).collect();
        let mut sets = vec![all, apart];
        sets.dedup();
        sets.retain(|devices| devices.len() > 1);
        sets
    }

    /// Records the time of a call that has succeeded. `has_failed` means that the devices of `run` failed and other devices
    /// completed the call.
    pub fn record(&self, run: Run, has_failed: bool) {
        let seconds = run.start.elapsed().as_secs_f64();
        if run.is_cached && !has_failed {
            self.cache().ended.push((run, seconds));
        } else {
            self.state().add(run, seconds, has_failed);
        }
    }
}

impl Drop for Pricing {
    /// Saves the run times that are not on disk yet, so that the next process can load them.
    fn drop(&mut self) {
        let ended = std::mem::take(&mut self.cache().ended);
        let mut state = self.state();
        state.add_all(ended);
        let unsaved: Vec<_> = state.sets.iter().filter(|set| set.is_unsaved).map(|set| set.devices.clone()).collect();
        unsaved.iter().for_each(|devices| state.save(devices));
    }
}

impl State {
    /// Adds the time of one call to the run times of the set of devices that was chosen for the call.
    fn add(&mut self, Run { devices, bucket, estimate, .. }: Run, seconds: f64, has_failed: bool) {
        for set in &mut self.sets {
            let seconds_on_other_sets = set.seconds_on_other_sets.entry(bucket).or_default();
            *seconds_on_other_sets = if set.devices == devices { 0.0 } else { *seconds_on_other_sets + seconds };
        }
        if !has_failed && self.warm.insert((devices.clone(), bucket)) {
            return;
        }
        let set = self.set(&devices);
        let count = set.runs.count(&bucket);
        set.runs.add(bucket, seconds / estimate);
        set.is_unsaved = true;
        // The file of a set of devices is written when a size of call reaches `ENOUGH_RUNS` runs, not after every call, since
        // writing a file takes as long as a small call.
        if count + 1 == ENOUGH_RUNS {
            self.save(&devices);
        }
    }

    /// Adds the times of several calls that have succeeded, as [`Self::add`] does.
    fn add_all(&mut self, ended: Vec<(Run, f64)>) {
        ended.into_iter().for_each(|(run, seconds)| self.add(run, seconds, false));
    }

    /// Returns the speeds of a device, or `None` if the device cannot be measured. Speeds that `instructions` need and that are
    /// still unknown are measured first.
    fn speeds_of(&mut self, call: &HostCall<'_>, device: usize, instructions: &[Instruction<RawMat>]) -> Option<&Speeds> {
        if matches!(self.speeds[device], Speed::Unknown) {
            // `set` loads the run times and the speeds of the device from disk
            self.set(&[device]);
            if matches!(self.speeds[device], Speed::Unknown) {
                self.speeds[device] = Speed::Measured(Speeds::default());
            }
        }
        let Speed::Measured(speeds) = &mut self.speeds[device] else { return None };
        let (runtime, dtype) = (call.runtime(device), call.problem.dtype());
        if !speeds.has(runtime, dtype, instructions) {
            let _exclusive = call.machine.exclusive(&[device]);
            // Free the memory that the device keeps for its next call, so that the measurement has enough memory.
            runtime.make_room();
            if let Err(error) = speeds.measure(runtime, dtype, instructions) {
                // A device that is out of memory is measured again later, unless its memory limit is too small for any
                // measurement.
                let is_limit = runtime.facts().memory.is_some_and(|limit| limit < speeds::LEAST_MEMORY);
                if !error.kind().is_out_of_memory() || is_limit {
                    self.speeds[device] = Speed::Failed;
                }
                return None;
            }
            self.save(&[device]);
        }
        match &self.speeds[device] {
            Speed::Measured(speeds) => Some(speeds),
            Speed::Unknown | Speed::Failed => None,
        }
    }

    /// Returns the entry of a set of devices. The first request for a set of devices loads its run times from disk.
    fn set(&mut self, devices: &[usize]) -> &mut Set {
        let at = self.sets.iter().position(|set| set.devices == devices).unwrap_or_else(|| {
            let runs = self.load(devices);
            let (slowdown, seconds_on_other_sets) = (HashMap::new(), HashMap::new());
            self.sets.push(Set { devices: devices.to_vec(), runs, is_unsaved: false, slowdown, seconds_on_other_sets });
            self.sets.len() - 1
        });
        &mut self.sets[at]
    }

    /// Computes the price of a set of devices: `estimate` times the correction from run times, or `uncorrected` if no run times
    /// correct the estimate.
    fn price(&mut self, devices: Vec<usize>, bucket: &Bucket, [estimate, uncorrected]: [f64; 2]) -> Price {
        let Set { runs, seconds_on_other_sets, .. } = self.set(&devices);
        let seconds = runs.correction(bucket, devices.len() > 1).map_or(uncorrected, |correction| estimate * correction);
        let seconds_on_other_sets = seconds_on_other_sets.get(bucket).copied().unwrap_or(0.0);
        Price { estimate, seconds, runs: runs.count(bucket), seconds_on_other_sets, devices }
    }

    /// Returns the time of the simulated plan divided by `bound`, or 1 if no plan can be simulated.
    fn slowdown(&mut self, call: &HostCall<'_>, devices: &[usize], bucket: &Bucket, bound: f64) -> f64 {
        if let Some(&slowdown) = self.set(devices).slowdown.get(bucket) {
            return slowdown;
        }
        // If no plan can be simulated, no ratio is stored, since the next call of this size may have a plan that can be simulated.
        let Some(seconds) = self.simulate(call, devices) else { return 1.0 };
        let slowdown = (seconds / bound).max(1.0);
        self.set(devices).slowdown.insert(*bucket, slowdown);
        slowdown
    }

    /// Simulates the plan of the call and returns the simulated seconds. Returns `None` if no plan is possible or if the plan is
    /// too long.
    fn simulate(&self, call: &HostCall<'_>, devices: &[usize]) -> Option<f64> {
        let measured = |&device: &usize| match &self.speeds[device] {
            Speed::Measured(speeds) => Some(speeds),
            Speed::Unknown | Speed::Failed => None,
        };
        let costs = devices.iter().map(measured).collect::<Option<Vec<_>>>()?;
        let HostCall { machine, problem, memory, .. } = *call;
        Planner { machine, problem, memory, devices, resident: false }.simulated_seconds(&costs)
    }
}

/// For each device, the lowest index of a device that is the same hardware. Two devices are the same hardware if they have the
/// same model, come from different backends, and have the same position among the devices of this model in their backends.
fn hardware(runtimes: &[DeviceRuntime]) -> Vec<usize> {
    let kind = |runtime: &DeviceRuntime| runtime.facts().name.split(':').next().unwrap_or_default().to_owned();
    let model = |runtime: &DeviceRuntime| runtime.facts().identity.model.clone();
    let rank = |device: usize| {
        let before = runtimes[..device]
            .iter()
            .filter(|other| (kind(other), model(other)) == (kind(&runtimes[device]), model(&runtimes[device])));
        before.count()
    };
    let is_same = |a: usize, b: usize| {
        let (of_a, of_b) = (&runtimes[a], &runtimes[b]);
        a == b || (!model(of_a).is_empty() && model(of_a) == model(of_b) && kind(of_a) != kind(of_b) && rank(a) == rank(b))
    };
    (0..runtimes.len()).map(|device| (0..device).find(|&other| is_same(other, device)).unwrap_or(device)).collect()
}
