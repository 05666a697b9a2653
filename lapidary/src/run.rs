//! A call from its plan to its end, on the devices that reach its memory.

use std::sync::Arc;

use lapidary_core::algorithms::Problem;
use lapidary_core::{
    Driver, Error, ErrorKind, Home, InPlace, Layout, RawMat, Reach, Resources, Result, RunError, Schedule, reach, resident_device,
    run,
};

use crate::machine::Machine;

#[cfg(test)]
mod tests;

/// Times that a call is begun again in smaller tiles. A device that refuses the
/// 4096th part of what it promised refuses anything, and plans in tiny tiles are long.
const MOST_ATTEMPTS: u32 = 12;

/// Bytes of columns, such as pivots, for which a call on resident matrices does not wait for other calls. A device has room for
/// so much in addition to its memory limit.
const FEW_BYTES: usize = 64 << 10;

impl Machine {
    /// Plans, schedules and runs a call on the devices that reach its memory. What goes wrong
    /// before it runs leaves its outputs as they were.
    pub(crate) fn run(&self, problem: &Problem, memory: &[RawMat]) -> Result<()> {
        self.run_for(problem.operation(), problem, memory)
    }

    /// The same as a part of an operation of another name.
    pub(crate) fn run_for(&self, operation: &'static str, problem: &Problem, memory: &[RawMat]) -> Result<()> {
        self.run_planned(operation, problem, memory).map_err(Error::untouched)
    }

    fn run_planned(&self, operation: &'static str, problem: &Problem, memory: &[RawMat]) -> Result<()> {
        if memory.iter().any(|raw| matches!(raw.home, Home::Device(_)) && raw.layout == Layout::RowMajor) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                operation,
                "a matrix on a device is factored column-major only; pass it untransposed",
            ));
        }
        for raw in memory {
            if let Home::Device(resident) = raw.home
                && self.drivers().get(resident.device).is_none_or(|driver| driver.resident(resident.key).is_err())
            {
                return Err(Error::invalid(operation, "a matrix was uploaded to another machine"));
            }
        }
        let home = resident_device(operation, memory)?;
        // a column, such as pivots, is copied to the device and back
        let resident = home.is_some() && memory.iter().all(|raw| matches!(raw.home, Home::Device(_)) || raw.cols <= 1);
        let devices: Vec<usize> = home.map_or_else(|| (0..self.drivers().len()).collect(), |device| vec![device]);
        let devices = self.able(problem.dtype(), operation, &devices)?;
        let drivers: Vec<&Driver> = devices.iter().map(|&device| &self.drivers()[device]).collect();
        if home.is_some() {
            // kernels beside matrices on a device may need what calls before kept, there and on devices that share it
            self.drivers().iter().for_each(Driver::release_registers);
        }
        let instructions = if resident { problem.instructions() } else { None };
        if let (Some(instructions), &[driver]) = (instructions, &drivers[..]) {
            let columns: usize = memory.iter().filter(|raw| matches!(raw.home, Home::Host(_))).map(RawMat::bytes).sum();
            let _turn = (columns > FEW_BYTES).then(|| self.turn(&devices));
            // a planned call that ran since has kept the memory of its registers
            driver.release_registers();
            let schedule =
                problem.by_panels(driver.facts().queues).map(|problem| self.schedule_in_place(&problem, driver, memory.len()));
            let schedule = schedule.transpose()?;
            let call = InPlace { instructions: &instructions, schedule: schedule.as_deref(), memory };
            // SAFETY: `memory` comes from checked arguments: matrices are lent for the
            // call, and those that are written uniquely.
            return unsafe { driver.run_in_place(&call, self.trace()) };
        }
        let _turn = self.turn(&devices);
        let (mut most, mut attempts, mut refused) = (usize::MAX, 0, None);
        loop {
            let limited = |(&device, driver): (&usize, &&Driver)| {
                let memory_of_device = driver.free_memory().min(most);
                Reach { memory: memory_of_device, ..reach(device, driver.facts(), memory) }
            };
            let reaches: Vec<Reach> = devices.iter().zip(&drivers).map(limited).collect();
            let (smallest, copy_limit) = copy_limit(&drivers, &reaches).unzip();
            let resources = Resources { devices: devices.len(), copy_limit, element: problem.dtype().size(), resident };
            let name = |device: usize| drivers[device].facts().name.as_str();
            let make = |reaches| {
                let plan = problem.plan(&resources).map_err(|limit| limit.of(smallest.map_or("", name)))?;
                Schedule::new(plan, reaches).map_err(|short| short.of(name(short.device)))
            };
            let schedule = self.schedules().get(problem, &resources, reaches, make);
            // the device's own refusal says more than that too little is left of its memory
            let schedule = schedule.map_err(|error| refused.take().unwrap_or(error))?;
            // SAFETY: `memory` comes from checked arguments: matrices are lent for the
            // call, and those that are written uniquely.
            let outcome = self.with_crew(|crew| unsafe { run(crew, &drivers, &schedule, memory, self.trace()) });
            match (outcome, copy_limit) {
                (Ok(()), _) => return Ok(()),
                // a device has less memory than it said: smaller tiles, until none is small enough
                (Err(RunError { error, touched: false, .. }), Some(limit))
                    if error.kind().is_out_of_memory() && attempts < MOST_ATTEMPTS =>
                {
                    // what the device promised beyond the needs of this plan, no plan would feel
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
    /// The schedule of a call on `matrices` resident matrices of a device, which works on them in place.
    fn schedule_in_place(&self, problem: &Problem, driver: &Driver, matrices: usize) -> Result<Arc<Schedule>> {
        let facts = driver.facts();
        let reach = Reach { memory: 0, in_place: vec![true; matrices], flops: facts.rates.flops, queues: facts.queues };
        let resources = Resources { devices: 1, copy_limit: None, element: problem.dtype().size(), resident: true };
        self.schedules().get(problem, &resources, vec![reach], |reaches| {
            let plan = problem.plan(&resources).map_err(|limit| limit.of(&facts.name))?;
            Schedule::new(plan, reaches).map_err(|short| short.of(&facts.name))
        })
    }
}

/// The smallest memory of the devices that work on copies, after the number of its device; no
/// buffer then is larger than the half of it.
fn copy_limit(drivers: &[&Driver], reaches: &[Reach]) -> Option<(usize, usize)> {
    let copies = drivers.iter().zip(reaches).enumerate().filter(|(_, (_, reach))| reach.in_place.contains(&false));
    let largest = |driver: &Driver| driver.facts().limits.buffer.saturating_mul(2);
    copies.map(|(device, (driver, reach))| (device, reach.memory.min(largest(driver)))).min_by_key(|(_, limit)| *limit)
}
