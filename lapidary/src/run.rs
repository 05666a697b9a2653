//! A call from its plan to its end, on the devices that reach its memory.

use lapidary_backend_cpu::CpuDevice;
use lapidary_core::algorithms::Problem;
use lapidary_core::{
    Driver, Error, ErrorKind, Home, Layout, RawMat, Reach, Resources, Rest, Result, RunError, Schedule, reach, resident_device, run,
};

use crate::machine::Machine;

/// Times that a call is begun again in smaller tiles. A device that refuses the
/// 4096th part of what it promised refuses anything, and plans in tiny tiles are long.
const MOST_ATTEMPTS: u32 = 12;

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
                && self.drivers.get(resident.device).is_none_or(|driver| driver.resident(resident.key).is_err())
            {
                return Err(Error::invalid(operation, "a matrix was uploaded to another machine"));
            }
        }
        let home = resident_device(operation, memory)?;
        // a column, such as the indices of rows, is soon copied
        let resident = home.is_some() && memory.iter().all(|raw| matches!(raw.home, Home::Device(_)) || raw.cols <= 1);
        let devices: Vec<usize> = home.map_or_else(|| (0..self.drivers.len()).collect(), |device| vec![device]);
        let devices = self.able(problem.dtype(), operation, &devices)?;
        let drivers: Vec<&Driver> = devices.iter().map(|&device| &self.drivers[device]).collect();
        let _turn = self.turn();
        if home.is_some() {
            // kernels beside matrices on a device may need what calls before kept, there and on devices that share it
            self.drivers.iter().for_each(Driver::trim);
        }
        let (mut most, mut attempts, mut refused) = (usize::MAX, 0, None);
        loop {
            let limited = |(&device, driver): (&usize, &&Driver)| {
                let memory_of_device = driver.free_memory().min(most);
                Reach { memory: memory_of_device, ..reach(device, driver.info(), memory) }
            };
            let reaches: Vec<Reach> = devices.iter().zip(&drivers).map(limited).collect();
            let (smallest, copy_limit) = copy_limit(&drivers, &reaches).unzip();
            let resources = Resources { devices: devices.len(), copy_limit, element: problem.dtype().size(), resident };
            let name = |device: usize| drivers[device].info().name.as_str();
            let plan = problem.plan(&resources).map_err(|limit| limit.of(smallest.map_or("", name)));
            let schedule = plan.and_then(|plan| Schedule::new(plan, reaches).map_err(|short| short.of(name(short.device))));
            // the device's own refusal says more than that too little is left of its memory
            let schedule = schedule.map_err(|error| refused.take().unwrap_or(error))?;
            // SAFETY: `memory` comes from checked arguments: matrices are lent for the
            // call, and those that are written uniquely.
            let outcome = unsafe { run(&self.crew, &drivers, &schedule, memory, self.trace.as_ref()) };
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
                // what is written cannot be taken back: the processor goes on from there
                (Err(RunError { touched: true, rest: Some(rest), .. }), _) if home.is_none() => {
                    return self.finish_by_processor(schedule, rest, memory).map_err(|RunError { error, .. }| error);
                }
                (Err(RunError { error, .. }), _) => return Err(error),
            }
        }
    }

    /// Does what devices without memory left undone. The processor works on the
    /// matrices themselves, so that it needs none; its devices are made for the purpose.
    fn finish_by_processor(&self, schedule: Schedule, rest: Rest, memory: &[RawMat]) -> Result<(), RunError> {
        let drivers: Vec<_> = (0..CpuDevice::count()).map(|i| Driver::new(Box::new(CpuDevice::new(i, None)))).collect();
        let drivers: Vec<&Driver> = drivers.iter().collect();
        let reaches = drivers.iter().enumerate().map(|(device, driver)| reach(device, driver.info(), memory)).collect();
        let schedule = schedule.resume(rest, reaches).expect("without a limit every plan fits");
        // SAFETY: as for the run before it, which has ended.
        unsafe { run(&self.crew, &drivers, &schedule, memory, self.trace.as_ref()) }
    }
}

/// The smallest memory of the devices that work on copies, after the number of its device; no
/// buffer then is larger than the half of it.
fn copy_limit(drivers: &[&Driver], reaches: &[Reach]) -> Option<(usize, usize)> {
    let copies = drivers.iter().zip(reaches).enumerate().filter(|(_, (_, reach))| reach.in_place.contains(&false));
    let largest = |driver: &Driver| driver.info().largest_buffer.map_or(usize::MAX, |bytes| bytes.saturating_mul(2));
    copies.map(|(device, (driver, reach))| (device, reach.memory.min(largest(driver)))).min_by_key(|(_, limit)| *limit)
}

#[cfg(test)]
mod tests {
    use lapidary_core::null::{NullDevice, Record, Request};
    use lapidary_core::{Device, ErrorKind, Gemm, Getrf, MatMut, MatRef, Result};

    use super::{CpuDevice, MOST_ATTEMPTS};
    use crate::open::boxed;
    use crate::{Machine, Settings};

    const N: usize = 240;

    /// What a null device of a machine was asked so far.
    fn record(machine: &Machine, device: usize) -> Record {
        machine.drivers[device].device().downcast::<NullDevice>().expect("a null device").record()
    }

    /// A product of ones on a device; what became of it, of C, which is −1 before, and the requests to the device.
    fn product(device: NullDevice) -> (Result<()>, Vec<f64>, Vec<Request>) {
        let settings = Settings::default();
        let machine = Machine::of(vec![Box::new(device)], &settings);
        let (ones, mut c) = (vec![1.0; N * N], vec![-1.0; N * N]);
        let a = MatRef::col_major(&ones, N, N).unwrap();
        let outcome = machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, N, N).unwrap()));
        (outcome, c, record(&machine, 0).requests)
    }

    /// A product where the device runs short at one of its requests; which elements were computed.
    /// A null device stores nothing: what it did is as it was.
    fn computed(request: usize) -> usize {
        let (outcome, c, _) = product(NullDevice::new(Some(1 << 20)).short_at(request));
        outcome.unwrap();
        assert!(c.iter().all(|&x| x == -1.0 || x == N as f64), "request {request}");
        c.iter().filter(|&&x| x != -1.0).count()
    }

    #[test]
    fn the_processor_finishes_what_a_device_began() {
        let computed: Vec<usize> = (0..60).map(computed).collect();
        // before anything is stored the device itself begins again, in smaller tiles
        assert!(computed[..4].iter().all(|&count| count == 0), "{computed:?}");
        assert!(computed.iter().any(|&count| 0 < count && count < N * N), "{computed:?}");
    }

    #[test]
    fn a_device_that_does_nothing_is_an_error_and_the_processor_does_not_step_in() {
        let refusing = NullDevice::new(Some(80 << 30)).with_only(0);
        let lost = NullDevice::new(Some(80 << 30)).lost_at(0);
        for (device, kind) in [(refusing, ErrorKind::OutOfMemory), (lost, ErrorKind::DeviceLost)] {
            let (outcome, c, requests) = product(device);
            let error = outcome.unwrap_err();
            assert!(error.kind() == kind && error.to_string().contains("outputs: as they were"), "{error}");
            assert!(c.iter().all(|&x| x == -1.0), "{error}");
            assert!(requests.len() <= 2 * MOST_ATTEMPTS as usize, "{requests:?}");
        }
    }

    #[test]
    fn the_memory_of_copies_is_kept_for_the_next_call_and_given_back_when_asked() {
        let settings = Settings::default();
        let machine = Machine::of(vec![Box::new(NullDevice::new(Some(1 << 20)))], &settings);
        let ones = vec![1.0; N * N];
        let a = MatRef::col_major(&ones, N, N).unwrap();
        let allocations = || {
            let mut c = vec![0.0; N * N];
            let before = record(&machine, 0).requests.len();
            machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, N, N).unwrap())).unwrap();
            record(&machine, 0).requests[before..].iter().filter(|request| matches!(request, Request::Alloc(_))).count()
        };
        assert!(allocations() > 0);
        assert_eq!(allocations(), 0);
        machine.trim();
        assert_eq!(record(&machine, 0).held, 0);
        assert!(allocations() > 0);
        let matrix = machine.upload(a).unwrap();
        assert_eq!(record(&machine, 0).held, N * N * size_of::<f64>());
        drop(matrix);
    }

    /// A CPU device gains nothing by queues of their own, and a wake-up costs more than a small tile.
    #[test]
    fn the_callers_thread_copies_and_computes_for_a_cpu_device_with_a_limit() {
        const LIMIT: Option<usize> = Some(64 << 10);
        let settings = Settings::default();
        let threads = |device: Box<dyn Device>| {
            let machine = Machine::of(vec![device], &settings);
            let (ones, mut c) = (vec![1.0; N * N], vec![0.0; N * N]);
            let a = MatRef::col_major(&ones, N, N).unwrap();
            machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, N, N).unwrap())).unwrap();
            format!("{:?}", machine.crew)
        };
        assert_eq!(threads(Box::new(CpuDevice::new(0, LIMIT))), "Crew(0 threads)");
        assert_eq!(threads(Box::new(NullDevice::new(LIMIT))), "Crew(2 threads)");
    }

    /// Matrices on one device find the memory free that calls on host matrices had, on all that may share it.
    #[test]
    fn matrices_on_a_device_have_the_memory_of_copies() {
        let settings = Settings::default();
        let null = || boxed(NullDevice::new(Some(4 << 20)));
        let machine = Machine::of(vec![null(), null()], &settings);
        let held = || [0, 1].map(|device| record(&machine, device).held);
        let (ones, bytes) = (vec![1.0; N * N], N * N * size_of::<f64>());
        let a = MatRef::col_major(&ones, N, N).unwrap();
        let on_host = || {
            let mut c = vec![0.0; N * N];
            machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, N, N).unwrap())).unwrap();
            assert!(held()[0] > 0, "the first device works, and keeps its memory: {:?}", held());
        };
        on_host();
        let mut matrix = machine.upload_to(1, a).unwrap();
        assert_eq!(held(), [0, bytes]);
        on_host();
        // pivots lie in host memory
        let _ = machine.getrf_into(Getrf::new(matrix.view_mut(), &mut [0; N])).unwrap();
        assert!(held()[0] == 0 && held()[1] < bytes + (4 << 10), "more than pivots and info: {:?}", held());
    }

    /// What a device promises beyond the needs of a call is no reason to give up.
    #[test]
    fn tiles_shrink_from_what_the_call_needs() {
        let (outcome, _, requests) = product(NullDevice::new(Some(80 << 30)).with_only(100 << 10));
        outcome.unwrap();
        assert!(requests.iter().any(|request| matches!(request, Request::Read(..))), "the device itself did it");
    }
}
