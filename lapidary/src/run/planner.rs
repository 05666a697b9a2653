//! Plans a call and schedules it for given devices.

use std::sync::Arc;
use std::time::Duration;

use lapidary_core::algorithms::{LimitTooSmall, Problem};
use lapidary_core::{
    Blocking, Cost, DeviceRuntime, Identity, MemoryShortfall, Place, RawMat, Reach, Resources, Result, Schedule, reach,
};

use crate::machine::Machine;

/// Maximum number of commands of a plan that is simulated to compute the price of a call. Simulating this number of commands takes
/// a few milliseconds.
const MAX_SIMULATED: usize = 4096;

/// Makes the schedule of a call for given devices.
#[derive(Clone, Copy)]
pub(crate) struct Planner<'a> {
    pub machine: &'a Machine,
    pub problem: &'a Problem,
    pub memory: &'a [RawMat],
    pub devices: &'a [usize],
    /// Whether all matrices with more than one column lie on the only device.
    pub resident: bool,
}

/// Minimum time of a long call, in seconds. The speeds of devices are measured before a call that is long by the estimates in the facts of the devices,
/// and before the first call after one that was long.
const WORTH_MEASURING: f64 = 1.0;

/// Number of devices for which the planner plans every reproducible call. The call may run on fewer devices.
pub(crate) const PLANNED_DEVICES: usize = 8;

/// Minimum order of a matrix that several devices hold together, unless the panel width is set or calls are reproducible. On a processor with two cores,
/// LU of order 600 took 22 ms on `cpu+opencl:0` (PoCL), 10 ms on `opencl:0` and 4.6 ms on `cpu` (bench/results/opencl/2026-11-29-pocl-small.txt).
const LEAST_DISTRIBUTED: usize = 1024;
/// The share of the fastest device in a matrix that devices of different models hold together.
const SHARE_OF_FASTEST: f64 = 16.0;

/// Minimum measured speed at which a device gets a share, as a fraction of the speed of the fastest device. A slower device would shorten the call by
/// less than a tenth.
const MIN_MEASURED: f64 = 0.1;
/// Minimum estimated speed at which a device gets a share, as a fraction of the estimated speed of the fastest device. It is higher than
/// [`MIN_MEASURED`], because the real speed of a device may be several times lower than the estimate. A product of order 16384 took 1.07 s when the
/// processor beside an H200 had a share by its estimate, and 0.17 s on the H200 alone.
const MIN_ESTIMATED: f64 = 0.5;

/// Number of floating-point operations of a problem on matrices in `memory`.
pub(crate) fn flops(problem: &Problem, memory: &[RawMat]) -> f64 {
    problem.instructions().iter().map(|instruction| instruction.map(|matrix| memory[matrix])).map(|call| call.flops()).sum()
}

/// Whether a device copies the first matrix of a call.
fn copies(reach: &Reach) -> bool {
    reach.in_place.first() == Some(&false)
}

impl<'a> Planner<'a> {
    pub fn runtimes(&self) -> Vec<&'a DeviceRuntime> {
        self.devices.iter().map(|&device| &self.machine.runtimes()[device]).collect()
    }

    /// Returns for each device how the device accesses the matrices, if each device may use at most `most` bytes of memory.
    ///
    /// If several devices hold the matrix of a factorisation together, a device that could work in host memory also works on copies of its
    /// columns. The other devices load panels from host memory, whose elements must not change meanwhile.
    fn reaches(&self, most: usize) -> Vec<Reach> {
        let limited = |(&device, runtime): (&usize, &DeviceRuntime)| {
            let (memory, flops) = (runtime.free_memory().min(most), self.machine.product_rate(device, self.problem.dtype()));
            Reach { memory, flops, ..reach(device, runtime.facts(), self.memory) }
        };
        let reaches: Vec<Reach> = self.devices.iter().zip(self.runtimes()).map(limited).collect();
        if let Problem::Getrf { problem, .. } = self.problem
            && !self.resident
            && reaches.iter().any(|reach| reach.in_place.contains(&false))
        {
            let copying = |reach: &Reach| Reach { in_place: vec![false; reach.in_place.len()], ..reach.clone() };
            let copying: Vec<Reach> = reaches.iter().map(copying).collect();
            if matches!(self.resources(&copying).0.getrf(problem.m, problem.n).place, Place::Distributed { .. }) {
                return copying;
            }
        }
        reaches
    }

    /// The shares of the devices in a matrix that they hold together, or in a result that is divided among them. Devices of the same model have
    /// equal shares. The shares of devices of different models are proportional to their speeds: the measured speeds
    /// ([`Machine::measure_rates`]), or before the first measurement the estimates in the facts of the devices.
    fn shares(&self) -> Vec<u32> {
        let equal = vec![1; self.devices.len()];
        if self.has_one_model() {
            return equal;
        }
        let rates = self.rates();
        let fastest = rates.iter().copied().fold(0.0, f64::max);
        let least = fastest * if self.is_measured() { MIN_MEASURED } else { MIN_ESTIMATED };
        // Shares are small whole numbers, so that they do not change with each disturbance of a measurement. They are rounded down, so that a slow
        // device does not finish last.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number from 0 to 16")]
        let share = |rate: f64| if rate < least { 0 } else { (SHARE_OF_FASTEST * rate / fastest) as u32 };
        if fastest > 0.0 && fastest.is_finite() { rates.into_iter().map(share).collect() } else { equal }
    }

    /// Whether the speeds of all devices in products have been measured.
    fn is_measured(&self) -> bool {
        self.devices.iter().all(|&device| self.machine.has_product_rate(device, self.problem.dtype()))
    }

    /// For each device, the number of operations of products per second: the mean over all devices of its model.
    fn rates(&self) -> Vec<f64> {
        let rate = |device: usize| self.machine.product_rate(device, self.problem.dtype());
        let models = self.runtimes().into_iter().map(|runtime| &runtime.facts().identity);
        let of_model = |model: &Identity| {
            let same: Vec<f64> =
                models.clone().zip(self.devices).filter(|(other, _)| *other == model).map(|(_, &device)| rate(device)).collect();
            same.iter().sum::<f64>() / same.len() as f64
        };
        models.clone().map(of_model).collect()
    }

    /// Returns the devices that take part in the call.
    ///
    /// - In a factorisation, only the devices with a share take part if every device of the call copies the matrix, or if a single device has a share
    ///   and copies the matrix. If a device without a share took part too, the planner would distribute a matrix that one device could hold, or would
    ///   transfer the trailing matrix in each step. Unless the user has set the panel width, the fastest device takes part alone if it needs less time
    ///   than all devices together.
    /// - In other calls, all devices take part. A device without a share takes tasks of another device if the call then ends earlier, or if the other
    ///   device is lost.
    pub fn taking_part(&self) -> Vec<usize> {
        let shares = self.shares();
        let &Problem::Getrf { problem, nb } = self.problem else { return self.devices.to_vec() };
        let reaches = self.reaches(usize::MAX);
        let with_shares: Vec<usize> = (0..shares.len()).filter(|&at| shares[at] > 0).collect();
        let is_alone = matches!(with_shares[..], [at] if copies(&reaches[at]));
        if self.resident || !(is_alone || reaches.iter().all(copies)) {
            return self.devices.to_vec();
        }
        let with_shares: Vec<usize> = with_shares.into_iter().map(|at| self.devices[at]).collect();
        if is_alone || nb.is_some() || self.is_reproducible() {
            return with_shares;
        }
        let fastest = (0..shares.len()).rev().max_by_key(|&at| shares[at]).map_or(0, |at| self.devices[at]);
        let (alone, together) = (Planner { devices: &[fastest], ..*self }, Planner { devices: &with_shares, ..*self });
        let blocking = |planner: &Planner<'_>| planner.resources(&planner.reaches(usize::MAX)).0.getrf(problem.m, problem.n);
        let has_room_alone = matches!(blocking(&alone).place, Place::Held { .. }) || !alone.reaches(usize::MAX).iter().any(copies);
        let is_faster_alone = match (has_room_alone, blocking(&together)) {
            (true, _) => problem.order() < together.least_distributed(),
            (_, Blocking { place: Place::Shared, nb, .. }) => together.is_slow_in_strips(nb),
            (_, _) => false,
        };
        if is_faster_alone { vec![fastest] } else { with_shares }
    }

    /// Returns the number of operations that a device computes in the time in which its link moves a byte, by the estimates in the facts of the
    /// devices. If the devices differ, returns the largest of their numbers.
    fn operations_per_byte(&self) -> f64 {
        let rates = self.runtimes().into_iter().map(|runtime| runtime.facts().rates);
        rates.map(|rates| rates.flops / rates.bandwidth).fold(0.0, f64::max)
    }

    /// Returns the smallest order n from which on all these devices together factor a square matrix earlier than the fastest of them alone.
    ///
    /// Let P be the number of operations that a device computes in a second, B the number of bytes that its link moves in a second (both by the
    /// estimates in the facts of the devices), and s the share of the fastest device. Together, the devices save 2/3·n³/P·(1 − s) seconds of
    /// computation. They lose the time in which panels move between the devices and in which devices wait for panels. This time is taken to be
    /// that of moving 3/2·n² elements, and matrices smaller than [`LEAST_DISTRIBUTED`] are not distributed.
    fn least_distributed(&self) -> usize {
        let (shares, element) = (self.shares(), self.problem.dtype().size() as f64);
        let of_fastest = f64::from(shares.iter().copied().max().unwrap_or(1)) / f64::from(shares.iter().sum::<u32>());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a conversion from a float saturates")]
        let order = (9.0 / 4.0 * element * self.operations_per_byte() / (1.0 - of_fastest)) as usize;
        order.max(LEAST_DISTRIBUTED)
    }

    /// Returns whether these devices factor a matrix later than one of them alone, if their memory together has no room for it. All devices
    /// together load and store the trailing matrix in each step, and compute 2·nb operations for each element that they load. One device alone
    /// works left-looking, and is taken to compute all the time.
    fn is_slow_in_strips(&self, nb: usize) -> bool {
        self.devices.len() as f64 * 2.0 * nb as f64 / (self.problem.dtype().size() as f64) < self.operations_per_byte()
    }

    /// Measures the speeds of the devices if the call needs them, and returns the devices that take part. The caller holds the locks of the
    /// devices.
    pub fn measured(&self) -> Vec<usize> {
        if self.needs_rates() {
            self.machine.measure_rates(self.devices, self.problem.dtype());
        }
        self.taking_part()
    }

    /// Whether devices of different models share the work in proportion to speeds that are not measured yet, and measuring them takes a small
    /// part of the call, or is the only way to share the work well.
    fn needs_rates(&self) -> bool {
        if self.resident || self.has_one_model() || self.is_measured() {
            return false;
        }
        let reaches = self.reaches(usize::MAX);
        match self.problem {
            Problem::Getrf { .. } => reaches.iter().any(copies),
            Problem::Gemm(_) | Problem::Trsm(_) | Problem::Getrs(_) => {
                reaches.iter().any(copies) && (self.is_long() || self.machine.has_long_call())
            }
            Problem::Laswp(_) | Problem::Batched(_) => false,
        }
    }

    /// Records the time that the call took. If the call was long although its estimate was not, the estimates of the devices may be wrong, and the machine
    /// measures the speeds before the next call.
    pub fn record(&self, time: Duration) {
        if time.as_secs_f64() >= WORTH_MEASURING && !self.has_one_model() && !self.is_measured() {
            self.machine.record_long_call();
        }
    }

    /// Whether the devices need so long for the call, by the estimates in their facts, that a measurement of their speeds is worth its time.
    fn is_long(&self) -> bool {
        let estimated: f64 = self.runtimes().iter().map(|runtime| runtime.facts().rates.flops).sum();
        flops(self.problem, self.memory) >= WORTH_MEASURING * estimated
    }

    /// For each device, the smallest extent of its parts of a result that devices of different models divide among them ([`Resources::tails`]).
    /// A device that computes P operations per second and copies B elements per second computes m·k·w products and sums in 2·m·k·w/P
    /// seconds, and copies the m·k elements of A in m·k/B seconds, so that both take equally long for the width w = P/(2·B). A device that
    /// works in place copies nothing.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a conversion from a float saturates")]
    fn tails(&self, reaches: &[Reach]) -> Vec<usize> {
        if self.has_one_model() {
            return vec![usize::MAX; self.devices.len()];
        }
        let element = self.problem.dtype().size() as f64;
        let width = |(runtime, reach): (&DeviceRuntime, &Reach)| match reach.in_place.contains(&false) {
            true => (reach.flops * element / (2.0 * runtime.facts().rates.bandwidth)) as usize,
            false => 0,
        };
        self.runtimes().into_iter().zip(reaches).map(width).collect()
    }

    /// Whether the bits of the result must not depend on the number of devices. Matrices of a resident call lie on one device anyway.
    fn is_reproducible(&self) -> bool {
        self.machine.settings().reproducible && !self.resident
    }

    /// Whether all devices are of the same model.
    fn has_one_model(&self) -> bool {
        let runtimes = self.runtimes();
        runtimes.iter().all(|runtime| runtime.facts().identity == runtimes[0].facts().identity)
    }

    /// Returns the resources of the eight devices for which the planner plans a reproducible call. These resources depend neither on the number
    /// of the devices of the call, nor on the memory that other matrices use at present.
    fn reproducible(&self, resources: &Resources) -> Resources {
        let stated = self.runtimes().into_iter().filter_map(|runtime| runtime.facts().memory).min();
        let memory = resources.memory.map(|memory| stated.map_or(memory, |stated| stated / 4 * 3) / self.planned_on_one());
        let (shares, tails) = (vec![1; PLANNED_DEVICES], vec![usize::MAX; PLANNED_DEVICES]);
        Resources { shares, tails, memory, lookahead: None, ..*resources }
    }

    /// Returns the memory that a device needs, if [`Self::reproducible`] gives `bytes` of it to each planned device.
    fn whole_memory(&self, bytes: usize) -> usize {
        bytes.saturating_mul(self.planned_on_one()).div_ceil(3).saturating_mul(4)
    }

    /// Returns the number of parts into which [`Self::reproducible`] divides the memory of a real device, one part for each planned device. In
    /// LU, one real device may hold the columns of all planned devices at the same time. In other routines, a real device runs the tasks of the
    /// planned devices one after the other, and each task may use the whole memory.
    fn planned_on_one(&self) -> usize {
        if matches!(self.problem, Problem::Getrf { .. }) { PLANNED_DEVICES } else { 1 }
    }

    /// Returns the resources that determine block sizes, and the index of the device with the least memory among devices that
    /// work on copies.
    fn resources(&self, reaches: &[Reach]) -> (Resources, Option<usize>) {
        let (runtimes, is_copying) = (self.runtimes(), |device: &usize| reaches[*device].in_place.contains(&false));
        let copying = || (0..reaches.len()).filter(is_copying);
        let buffer_of = |device: usize| runtimes[device].facts().limits.buffer;
        let (memory, buffer) = (copying().map(|device| reaches[device].memory).min(), copying().map(buffer_of).min());
        // one buffer must have room for half of the memory that a device uses
        let smallest = copying().min_by_key(|&device| reaches[device].memory.min(buffer_of(device).saturating_mul(2)));
        let element = self.problem.dtype().size();
        let lookahead = if let [runtime] = runtimes[..] { runtime.lookahead(self.problem.dtype()) } else { None };
        let all_copy = reaches.iter().all(copies);
        let (shares, tails, resident) = (self.shares(), self.tails(reaches), self.resident);
        let resources = Resources { shares, memory, buffer, tails, element, all_copy, resident, lookahead };
        (if self.is_reproducible() { self.reproducible(&resources) } else { resources }, smallest)
    }

    /// Returns the schedule for devices that may each use at most `most` bytes, and the smallest memory of a device that works on
    /// copies.
    pub fn schedule(&self, most: usize) -> Result<(Arc<Schedule>, Option<usize>)> {
        let (reaches, runtimes) = (self.reaches(most), self.runtimes());
        let (resources, smallest) = self.resources(&reaches);
        let name = |device: usize| runtimes[device].facts().name.as_str();
        // the plan states the memory for registers; the error states the memory limit that the user must set, which also covers other matrices and
        // the scratch memory of kernels
        let refused = |small: LimitTooSmall| {
            let of_device = |bytes: usize| if self.is_reproducible() { self.whole_memory(bytes) } else { bytes };
            let limit = |bytes| smallest.map_or(bytes, |device| runtimes[device].limit_with_free(of_device(bytes)));
            LimitTooSmall { limit: limit(small.limit), least: limit(small.least), ..small }.of(smallest.map_or("", name))
        };
        let short = |short: MemoryShortfall| {
            let limit = |bytes| runtimes[short.device].limit_with_free(bytes);
            MemoryShortfall { limit: limit(short.limit), needed: limit(short.needed), ..short }.of(name(short.device))
        };
        let make = |reaches| {
            let mut plan = self.problem.plan(&resources).map_err(refused)?;
            if self.is_reproducible() {
                plan.assign(|planned| planned * runtimes.len() / PLANNED_DEVICES);
            }
            Schedule::new(plan, reaches).map_err(short)
        };
        Ok((self.machine.schedules().get(self.problem, &resources, reaches, make)?, resources.copy_limit()))
    }

    /// Simulates the call and returns the simulated seconds. `costs` has one element for each device. Returns `None` if the devices
    /// cannot run the call, or if the plan has so many commands that a simulation takes a noticeable time.
    pub fn simulated_seconds(&self, costs: &[impl Cost]) -> Option<f64> {
        let (resources, _) = self.resources(&self.reaches(usize::MAX));
        if self.problem.commands(&resources) > MAX_SIMULATED {
            return None;
        }
        let (schedule, _) = self.schedule(usize::MAX).ok()?;
        Some(schedule.simulate(costs).seconds())
    }
}

#[cfg(test)]
mod tests;
