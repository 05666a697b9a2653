//! Plans a call and runs it on the devices that can access its matrices.

use std::sync::Arc;

use lapidary_backend_cpu::CpuDevice;
use lapidary_core::algorithms::Problem;
use lapidary_core::{
    Accuracy, DType, DeviceRuntime, Error, ErrorKind, Home, InPlace, Instant, Instruction, Layout, MatrixId, RawMat, Reach,
    Resources, Result, RunError, Schedule, check_wait, resident_device, run,
};

use crate::copy::DeviceCopy;
use crate::machine::{DIRECT_FLOPS, Machine};
use crate::price::{HostCall, Listener, Pricing, Reason};

pub(crate) use planner::{PLANNED_DEVICES, Planner, flops};

mod planner;
#[cfg(test)]
mod tests;

/// Maximum number of restarts of a call with smaller tiles. A device that refuses 1/4096 of the memory that it reported would
/// refuse any amount, and plans with even smaller tiles would be long.
const MAX_ATTEMPTS: u32 = 12;

/// A call on resident matrices does not wait for other calls if its columns in host memory, such as pivots, take at most this
/// number of bytes. Every device is assumed to have this much memory beyond its memory limit.
pub(crate) const MAX_UNLOCKED_COLUMN_BYTES: usize = 64 << 10;

impl Machine {
    /// Plans, schedules and runs a call on the devices that can access its matrices. An error that occurs before the run leaves the
    /// outputs of the call unchanged.
    pub(crate) fn run(&self, problem: &Problem, memory: &[RawMat]) -> Result<()> {
        self.run_for(problem.operation(), problem, memory)
    }

    /// Runs a call that is a part of another operation, as [`Machine::run`] does. Errors name `operation`, not the routine of the
    /// call.
    pub(crate) fn run_for(&self, operation: &'static str, problem: &Problem, memory: &[RawMat]) -> Result<()> {
        self.run_anywhere(operation, problem, memory).map_err(Error::untouched).map(drop)
    }

    /// Runs a factorisation as [`Machine::run`] does. If devices hold the whole matrix during the call, returns the copy of the
    /// factors that they keep.
    pub(crate) fn run_and_keep(&self, problem: &Problem, memory: &[RawMat]) -> Result<Option<DeviceCopy>> {
        self.run_anywhere(problem.operation(), problem, memory).map_err(Error::untouched)
    }

    fn run_anywhere(&self, operation: &'static str, problem: &Problem, memory: &[RawMat]) -> Result<Option<DeviceCopy>> {
        match self.resident_device(operation, memory)? {
            Some(device) => self.run_resident(operation, problem, memory, device).map(|()| None),
            None => self.run_on_host(operation, problem, memory),
        }
    }

    /// Returns the device that holds matrices of the call, or `None` if all matrices lie in host memory.
    ///
    /// # Errors
    /// Matrices lie on several devices, a matrix was uploaded to another machine, or a matrix on a device is row-major.
    pub(crate) fn resident_device(&self, operation: &'static str, memory: &[RawMat]) -> Result<Option<usize>> {
        if memory.iter().any(|raw| matches!(raw.home, Home::Device(_)) && raw.layout == Layout::RowMajor) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                operation,
                "a matrix on a device is factored column-major only; pass it untransposed",
            ));
        }
        for raw in memory {
            if let Home::Device(resident) = raw.home
                && self.runtimes().get(resident.device).is_none_or(|runtime| runtime.resident(resident.key).is_err())
            {
                return Err(Error::invalid(operation, "a matrix was uploaded to another machine"));
            }
        }
        resident_device(operation, memory)
    }

    /// Sets the panel width of a factorisation to the width in the settings.
    pub(crate) fn with_panels(&self, problem: Problem) -> Problem {
        match problem {
            Problem::Getrf { problem, .. } => Problem::Getrf { problem, nb: self.settings().nb },
            other => other,
        }
    }

    /// Runs a call on host matrices. If the machine chooses devices by price and the chosen devices run out of memory or are
    /// lost, other devices run the call, unless results have been written.
    fn run_on_host(&self, operation: &'static str, problem: &Problem, memory: &[RawMat]) -> Result<Option<DeviceCopy>> {
        let mut capable = self.devices_for_host(problem.dtype(), operation)?;
        // The runs of this call on devices that failed. Runs on failed devices are recorded with the time of the whole call,
        // since this time is the cost of having chosen the failed devices.
        let mut failed = Vec::new();
        loop {
            let call = HostCall { machine: self, problem, memory, capable: &capable };
            let reason = self.reason(&call);
            let is_priced = reason == Reason::Price || !failed.is_empty();
            let pricing = self.pricing().filter(|_| is_priced);
            let run = if let Some(Listener(tell)) = self.listener().filter(|_| reason != Reason::Small) {
                // The explanation lists all prices, so a call with a listener does not use a cached choice of devices.
                let priced = pricing.map(|pricing| pricing.price(&call));
                tell(&self.explanation(&call, reason, priced.as_ref()));
                priced.and_then(|priced| priced.begin())
            } else {
                pricing.and_then(|pricing| pricing.begin(&call))
            };
            let devices = run.as_ref().map_or_else(|| call.devices_without_prices(reason), |run| run.devices.clone());
            let done = match self.launch_on_host(&devices, problem, memory) {
                Some(done) => done.map(|()| None),
                None => self.run_planned(problem, memory, &devices, false),
            };
            match done.map_err(Error::untouched) {
                Ok(copy) => {
                    // prices are those of calls with products of bound 1
                    let is_of_bound_1 =
                        !matches!(problem, Problem::Getrf { problem, .. } if problem.accuracy == Accuracy::Normwise);
                    if let Some(pricing) = self.pricing().filter(|_| is_of_bound_1) {
                        failed.into_iter().for_each(|run| pricing.record(run, true));
                        run.into_iter().for_each(|run| pricing.record(run, false));
                    }
                    return Ok(copy);
                }
                Err(error) => {
                    self.pricing().into_iter().for_each(Pricing::forget_choices);
                    if !error.kind().is_recoverable_elsewhere() || !error.is_untouched() || devices.len() == capable.len() {
                        return Err(error);
                    }
                    capable.retain(|device| !devices.contains(device));
                    failed.extend(run);
                }
            }
        }
    }

    /// Returns the reason why devices take part in a call on host matrices.
    pub(crate) fn reason(&self, call: &HostCall<'_>) -> Reason {
        match () {
            () if self.pricing().is_none() && self.runtimes().len() == 1 => Reason::Selected,
            () if self.settings().reproducible && call.capable.len() < self.runtimes().len() => Reason::OneModel,
            () if call.capable.len() == 1 => Reason::Alone,
            () if call.device_if_small().is_some() => Reason::Small,
            () if self.pricing().is_some() => Reason::Price,
            () => Reason::Selected,
        }
    }

    /// Returns the device that runs a small call on host matrices: the first one that computes in host memory. Returns `None` if the call is not
    /// small, if no such device can run it, or if the reproducible mode runs calls on devices of another model.
    #[inline]
    pub(crate) fn device_for_small_call(&self, dtype: DType, flops: f64, memory: &[RawMat]) -> Option<&DeviceRuntime> {
        let on_host = |raw: &RawMat| matches!(raw.home, Home::Host(_));
        let is_able =
            |runtime: &&DeviceRuntime| runtime.facts().host_memory && runtime.facts().computes(dtype) && runtime.lost().is_none();
        if flops > DIRECT_FLOPS || !memory.iter().all(on_host) {
            return None;
        }
        let device = self.runtimes().iter().position(|runtime| is_able(&runtime))?;
        let takes_part = |device| self.devices_for_host(dtype, "").is_ok_and(|devices| devices.contains(&device));
        (!self.settings().reproducible || takes_part(device)).then(|| &self.runtimes()[device])
    }

    /// Returns those of `devices` that are not lost and support `dtype`.
    pub(crate) fn capable_devices(&self, dtype: DType, operation: &'static str, devices: &[usize]) -> Result<Vec<usize>> {
        let is_there = |device: &usize| self.runtimes()[*device].lost().is_none();
        let there: Vec<usize> = devices.iter().copied().filter(is_there).collect();
        if let (true, Some(lost)) = (there.is_empty(), devices.iter().find_map(|&device| self.runtimes()[device].lost())) {
            return Err(lost);
        }
        let is_able = |device: usize| self.runtimes()[device].facts().computes(dtype);
        let capable: Vec<usize> = there.into_iter().filter(|&device| is_able(device)).collect();
        if capable.is_empty() {
            let names: Vec<&str> = devices.iter().map(|&device| self.runtimes()[device].facts().name.as_str()).collect();
            let message =
                format!("{} has no double precision; use f32, or add a device that has it, such as cpu", names.join(", "));
            return Err(Error::new(ErrorKind::Unsupported, operation, message));
        }
        Ok(capable)
    }

    /// Returns the devices that may take part in a call on host matrices.
    pub(crate) fn devices_for_host(&self, dtype: DType, operation: &'static str) -> Result<Vec<usize>> {
        let all: Vec<usize> = (0..self.runtimes().len()).collect();
        let capable = self.capable_devices(dtype, operation, &all)?;
        Ok(if self.settings().reproducible { self.of_one_model(&capable) } else { capable })
    }

    /// Returns those of `devices` that run a reproducible call: the first [`PLANNED_DEVICES`] devices of one model. Of several models, the method
    /// takes the model with the highest estimated speed.
    fn of_one_model(&self, devices: &[usize]) -> Vec<usize> {
        let facts = |device: usize| self.runtimes()[device].facts();
        let rate = |device: &&usize| facts(**device).rates.flops;
        let Some(&fastest) = devices.iter().rev().max_by(|a, b| rate(a).total_cmp(&rate(b))) else { return Vec::new() };
        let same = |device: &usize| facts(*device).identity == facts(fastest).identity;
        devices.iter().copied().filter(same).take(PLANNED_DEVICES).collect()
    }

    /// Checks that a call may wait for each of `devices`.
    fn check_waits(&self, operation: &'static str, devices: &[usize]) -> Result<()> {
        devices.iter().try_for_each(|&device| {
            let facts = self.runtimes()[device].facts();
            check_wait(operation, facts.host_may_wait).map_err(|error| error.with("device", &facts.name))
        })
    }

    /// Returns the CPU, if it is the only device of the machine, all matrices lie in host memory, and `needs_no_plan` is
    /// true.
    pub(crate) fn only_cpu(&self, memory: &[RawMat]) -> Option<&DeviceRuntime> {
        let [runtime] = self.runtimes() else { return None };
        let is_on_host = memory.iter().all(|raw| matches!(raw.home, Home::Host(_)));
        (is_on_host && self.needs_no_plan(runtime)).then_some(runtime)
    }

    /// Whether `runtime` can run a call on host matrices alone and without a plan. `true` if `runtime` is the CPU, no panel width
    /// is set, no trace is recorded, and calls need not be reproducible.
    fn needs_no_plan(&self, runtime: &DeviceRuntime) -> bool {
        let is_processor = runtime.facts().host_memory && runtime.device().downcast::<CpuDevice>().is_some();
        is_processor && self.settings().nb.is_none() && self.trace().is_none() && !self.settings().reproducible
    }

    /// Whether the CPU is the only one of `devices`, and needs no plan for a call on host matrices.
    pub(crate) fn runs_without_plan(&self, devices: &[usize]) -> bool {
        matches!(*devices, [device] if self.needs_no_plan(&self.runtimes()[device]))
    }

    /// Runs a call on host matrices as instructions of the CPU, if the CPU is the only device of the call and needs no plan.
    /// Returns `None` if a plan is needed.
    fn launch_on_host(&self, devices: &[usize], problem: &Problem, memory: &[RawMat]) -> Option<Result<()>> {
        if !self.runs_without_plan(devices) {
            return None;
        }
        let runtime = &self.runtimes()[devices[0]];
        let mut instructions = problem.instructions().into_iter().map(|instruction| instruction.map(|matrix| memory[matrix]));
        // SAFETY: `memory` describes the matrices of checked arguments, which the caller borrows during the call, mutably where
        // kernels write, so that no other access conflicts.
        unsafe {
            if memory.iter().any(|raw| raw.layout == Layout::RowMajor) {
                // only a matrix to be factored can be row-major; the normal form of all other problems is column-major
                let Instruction::Getrf { pivoting, a, ipiv, info, .. } = instructions.next()? else { return None };
                runtime.getrf_by_rows(pivoting, &a, &ipiv, &info)
            } else {
                Some(instructions.try_for_each(|instruction| runtime.launch(&instruction)))
            }
        }
    }

    /// Runs a call with resident matrices on the device that holds them. Matrices of the call that are not resident lie in host memory.
    fn run_resident(&self, operation: &'static str, problem: &Problem, memory: &[RawMat], device: usize) -> Result<()> {
        let devices = self.capable_devices(problem.dtype(), operation, &[device])?;
        self.check_waits(operation, &devices)?;
        let runtime = &self.runtimes()[device];
        // A solve with a device's copy of the factors does not free other copies. If a solve with a device's copy runs out of
        // memory, it starts again with the factors in host memory.
        let is_copy = |raw: &RawMat| matches!(raw.home, Home::Device(resident) if runtime.is_copy(resident.key));
        if !memory.iter().any(is_copy) {
            self.runtimes().iter().for_each(DeviceRuntime::release_copies);
        }
        // Kernels on resident matrices may need the memory that earlier calls have kept, on this device and on devices that are
        // the same hardware.
        self.runtimes().iter().for_each(DeviceRuntime::release_registers);
        // a column in host memory, such as pivots, is copied to the device and back
        let resident = memory.iter().all(|raw| matches!(raw.home, Home::Device(_)) || raw.cols <= 1);
        if resident {
            let columns: usize = memory.iter().filter(|raw| matches!(raw.home, Home::Host(_))).map(RawMat::bytes).sum();
            let _exclusive = (columns > MAX_UNLOCKED_COLUMN_BYTES).then(|| self.exclusive(&devices));
            // a planned call may have kept registers again while this call waited for the lock
            runtime.release_registers();
            let by_panels = problem.by_panels(runtime.lookahead(problem.dtype()));
            let schedule = by_panels.map(|problem| self.schedule_in_place(&problem, runtime, memory.len())).transpose()?;
            let call = InPlace { instructions: &problem.instructions(), schedule: schedule.as_deref(), memory };
            // SAFETY: `memory` describes the matrices of checked arguments, which the caller borrows during the call, mutably where
            // kernels write, so that no other access conflicts.
            return unsafe { runtime.run_in_place(&call, self.watch()) };
        }
        self.run_planned(problem, memory, &devices, resident).map(drop)
    }

    /// Plans a call, schedules it for the devices and runs it. `resident` means that all matrices with more than one column lie on
    /// the only device. Returns the copy of the factors if devices hold the whole matrix during the call.
    pub(crate) fn run_planned(
        &self,
        problem: &Problem,
        memory: &[RawMat],
        devices: &[usize],
        resident: bool,
    ) -> Result<Option<DeviceCopy>> {
        self.check_waits(problem.operation(), devices)?;
        let planner = Planner { machine: self, problem, memory, devices, resident };
        let exclusive = self.exclusive(devices).into_iter().zip(devices);
        let taking_part = planner.measured();
        // other calls may use the devices that are left out
        let _exclusive: Vec<_> = exclusive.filter(|(_, device)| taking_part.contains(device)).collect();
        let (devices, planner) = (&taking_part, Planner { devices: &taking_part, ..planner });
        let runtimes = planner.runtimes();
        // Devices that are the same GPU share the memory of the GPU. Some devices with idle copies do not state their memory size.
        // If a device runs out of memory during the run, the memory that the devices `others` keep for later calls is freed.
        let mut others = self.pricing().map_or_else(Vec::new, |pricing| pricing.same_hardware(devices));
        others.extend(devices.iter().filter(|&&device| self.runtimes()[device].has_idle_copies()));
        let (start, mut most, mut attempts, mut refused) = (Instant::now(), usize::MAX, 0, None);
        loop {
            let scheduled = planner.schedule(most);
            // the error of the device says more than the planner's error that no plan fits into the memory
            let (schedule, copy_limit) = scheduled.map_err(|error| refused.take().unwrap_or(error))?;
            for (device, runtime) in runtimes.iter().enumerate().filter(|(_, runtime)| runtime.has_idle_copies()) {
                runtime.make_room_for(schedule.register_bytes(device));
            }
            // SAFETY: `memory` describes the matrices of checked arguments, which the caller borrows during the call, mutably where
            // kernels write, so that no other access conflicts.
            let outcome = self.with_lane_pool(|pool| unsafe { run(pool, &runtimes, &schedule, memory, self.watch()) });
            match (outcome, copy_limit) {
                (Ok(()), _) => {
                    planner.record(start.elapsed());
                    return Ok(self.copy_of_factors(problem, devices));
                }
                (Err(RunError { error, touched: false, .. }), _) if error.kind().is_out_of_memory() && !others.is_empty() => {
                    others.drain(..).for_each(|other| self.runtimes()[other].make_room());
                }
                // A device has less memory than it reported: the call is planned again with smaller tiles, until tiles cannot be
                // smaller.
                (Err(RunError { error, touched: false, .. }), Some(limit))
                    if error.kind().is_out_of_memory() && attempts < MAX_ATTEMPTS && !self.settings().reproducible =>
                {
                    // the next plan gets half of the memory that this plan uses, since half of a larger reported size might allow
                    // the same plan
                    let needed = (0..devices.len()).map(|device| schedule.footprint(device)).max();
                    most = limit.min(needed.unwrap_or(limit)) / 2;
                    attempts += 1;
                    refused = Some(error);
                }
                (Err(RunError { error, .. }), _) => return Err(error),
            }
        }
    }
}

impl Machine {
    /// Returns the copy of the factors that the devices of a run have kept, if the matrix is square.
    fn copy_of_factors(&self, problem: &Problem, devices: &[usize]) -> Option<DeviceCopy> {
        let Problem::Getrf { problem, .. } = problem else { return None };
        // A solve with parts of factors on several devices sums in another order than a solve with all factors on one device.
        let is_kept = problem.m == problem.n && !self.settings().reproducible;
        is_kept.then(|| DeviceCopy::keep(self, devices, MatrixId(0), problem.n)).flatten()
    }
}

impl Machine {
    /// Returns the schedule of a call on `matrices` resident matrices of one device, which works on them in place.
    fn schedule_in_place(&self, problem: &Problem, runtime: &DeviceRuntime, matrices: usize) -> Result<Arc<Schedule>> {
        let facts = runtime.facts();
        let reach = Reach { memory: 0, in_place: vec![true; matrices], flops: facts.rates.flops, queues: facts.queues };
        let resources = Resources { resident: true, ..Resources::alike(1, None, problem.dtype().size()) };
        self.schedules().get(problem, &resources, vec![reach], |reaches| {
            let plan = problem.plan(&resources).map_err(|limit| limit.of(&facts.name))?;
            Schedule::new(plan, reaches).map_err(|short| short.of(&facts.name))
        })
    }
}
