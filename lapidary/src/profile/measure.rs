//! Measures the profile of a device.

use std::sync::atomic::{AtomicBool, Ordering};

use lapidary_core::{DType, DeviceRuntime, Error, Result, TimedKernel};

use super::{DeviceProfile, TypeProfile};
use crate::machine::Machine;
use crate::price::speeds::memory_bandwidth;

/// Sizes in bytes of the measured transfers.
const TRANSFERS: [usize; 5] = [4 << 10, 64 << 10, 1 << 20, 8 << 20, 64 << 20];
/// Number of columns of the panel beside which a product is measured.
const PANEL: usize = 512;
/// Order of the products that are measured while other devices compute products of the same order.
const BUSY_ORDER: usize = 1280;
/// Maximum side of a measured matrix.
const LONGEST_SIDE: usize = 10_240;
/// Widths of the measured kernels ([`TimedKernel::width`]). The number of rows of each measured matrix in `f64` is an odd number of
/// cache lines of 64 bytes, so that the elements of a row do not compete for a few lines of a processor's caches. LU of order 2560 took
/// 2.5 times as long as LU of order 2000 on a processor.
const WIDTHS: [usize; 8] = [40, 72, 152, 296, 600, 1208, 2408, 4808];
/// Number of rows by which a side exceeds a multiple of a width.
const ODD_LINES: usize = 24;

/// The shapes of a kernel that are measured for one width, in ascending order of their work. A shape that exceeds [`LONGEST_SIDE`] is
/// left out.
fn shapes(kernel: TimedKernel, width: usize) -> Vec<[usize; 3]> {
    let side = |factor: usize| if factor == 1 { width } else { factor * width + ODD_LINES };
    let shapes: Vec<[usize; 3]> = match kernel {
        // square products, and products of panels with few terms
        TimedKernel::Gemm => [1, 4, 16, 64, 256].map(|factor| [side(factor), side(factor), width]).into(),
        TimedKernel::Trsm => [1, width / 8, width, side(8)].map(|nrhs| [width, nrhs, width]).into(),
        // square matrices and tall panels
        TimedKernel::Getrf => [1, 4, 16, 64, 256].map(|factor| [side(factor), width, width]).into(),
        TimedKernel::Laswp => [40, 600, 9608].map(|cols| [side(4), cols, width]).into(),
    };
    shapes.into_iter().filter(|sizes| sizes.iter().all(|&side| side <= LONGEST_SIDE)).collect()
}

/// Number of shapes of all kernels.
fn shape_count() -> usize {
    TimedKernel::ALL.iter().flat_map(|&kernel| WIDTHS.map(|width| shapes(kernel, width).len())).sum()
}

/// The measurement of a profile, whose progress it tells.
struct Measurement<'a> {
    runtime: &'a DeviceRuntime,
    /// A shape is not measured if its expected time exceeds this number of seconds.
    longest: f64,
    done: usize,
    steps: usize,
    tell: &'a mut dyn FnMut(usize, usize, &str),
}

impl Measurement<'_> {
    fn begin(&mut self, what: &str) {
        (self.tell)(self.done, self.steps, what);
        self.done += 1;
    }

    fn transfers(&mut self) -> Result<[Vec<(usize, f64)>; 2]> {
        let mut transfers = [Vec::new(), Vec::new()];
        if self.runtime.facts().host_memory {
            return Ok(transfers);
        }
        for bytes in TRANSFERS {
            self.begin(&format!("transfers of {} KiB", bytes >> 10));
            match self.runtime.time_transfers(bytes) {
                Ok(times) => (0..2).for_each(|way| transfers[way].push((bytes, times[way].shortest()))),
                Err(error) if transfers[0].is_empty() || !error.kind().is_out_of_memory() => return Err(error),
                Err(_) => break,
            }
        }
        Ok(transfers)
    }

    /// Measures the run times of a kernel, one for each shape. Skips a shape if its expected run time exceeds `longest`, or if the memory of
    /// the device has no room for its matrices.
    fn kernel(&mut self, kernel: TimedKernel, dtype: DType) -> Result<Vec<([usize; 3], f64)>> {
        let (mut measured, mut speed) = (Vec::new(), 0.0_f64);
        for sizes in WIDTHS.into_iter().flat_map(|width| shapes(kernel, width)) {
            let work = kernel.work(sizes);
            self.begin(&format!("{} {dtype} {}", kernel.name(), sizes.map(|size| size.to_string()).join(" × ")));
            if work > self.longest * speed && !measured.is_empty() {
                continue;
            }
            match self.runtime.time_kernel(kernel, dtype, sizes) {
                Ok(times) => {
                    let seconds = times.shortest();
                    measured.push((sizes, seconds));
                    speed = speed.max(work / seconds);
                }
                Err(error) if measured.is_empty() || !error.kind().is_out_of_memory() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(measured)
    }

    fn profile(&mut self, dtypes: &[DType]) -> Result<DeviceProfile> {
        let runtime = self.runtime;
        let (facts, memory) = (runtime.facts(), runtime.free_memory());
        self.begin("latency and memory bandwidth");
        let mut profile = DeviceProfile {
            name: facts.name.clone(),
            description: facts.description.clone(),
            memory: facts.memory.map(|_| memory),
            max_buffer: Some(facts.limits.buffer).filter(|&bytes| bytes != usize::MAX),
            queues: facts.queues,
            host_memory: facts.host_memory,
            latency: runtime.time_kernel(TimedKernel::Gemm, DType::F32, [1; 3])?.shortest(),
            bandwidth: memory_bandwidth(runtime)?,
            ..DeviceProfile::default()
        };
        profile.transfers = self.transfers()?;
        for &dtype in dtypes {
            self.begin(&format!("a product beside a panel in {dtype}"));
            let beside_panel = runtime.time_beside_panel(dtype, PANEL)?;
            let mut times = TypeProfile { lookahead: runtime.lookahead(dtype), beside_panel, ..TypeProfile::default() };
            for kernel in TimedKernel::ALL {
                times.kernels.insert(kernel, self.kernel(kernel, dtype)?);
            }
            profile.types.insert(dtype, times);
        }
        Ok(profile)
    }
}

impl Machine {
    /// Measures the profile of the device with the index `device` for the element types `dtypes`, while the other devices of the machine
    /// are idle. Then measures the slowdown of products on this device while the other devices compute products, since devices may share
    /// hardware. The method skips a shape of a kernel if the expected run time exceeds `longest` seconds. `tell` is called before each measurement with the number of
    /// completed measurements, the number of all measurements, and the name of the measurement.
    ///
    /// # Errors
    /// The machine has no such device, a device does not compute in one of the types, has too little memory, or fails.
    pub fn profile(
        &self,
        device: usize,
        dtypes: &[DType],
        longest: f64,
        tell: &mut dyn FnMut(usize, usize, &str),
    ) -> Result<DeviceProfile> {
        const OPERATION: &str = "profile";
        let all: Vec<usize> = (0..self.runtimes().len()).collect();
        let runtime =
            self.runtimes().get(device).ok_or_else(|| Error::invalid(OPERATION, format!("there is no device {device}")))?;
        for &dtype in dtypes {
            if self.capable_devices(dtype, OPERATION, &all)?.len() < all.len() {
                return Err(Error::invalid(OPERATION, format!("not all devices compute in {dtype}")));
            }
        }
        let _exclusive = self.exclusive(&all);
        self.runtimes().iter().for_each(DeviceRuntime::make_room);
        let steps = 2 + if runtime.facts().host_memory { 0 } else { TRANSFERS.len() } + dtypes.len() * (1 + shape_count());
        let others = all.iter().filter(|&&other| other != device).map(|&other| &self.runtimes()[other]);
        let mut measurement = Measurement { runtime, longest, done: 0, steps, tell };
        let mut profile = measurement.profile(dtypes)?;
        measurement.begin("products beside those of other devices");
        profile.sharers = others.clone().map(|other| other.facts().name.clone()).collect();
        profile.slowdown = slowdown(runtime, &others.collect::<Vec<_>>(), dtypes.first().copied().unwrap_or(DType::F32))?;
        Ok(profile)
    }
}

/// Measures the slowdown s by other devices: while the d devices `others` compute products, a product on the device of `runtime` takes
/// 1 + s·d times its run time alone.
fn slowdown(runtime: &DeviceRuntime, others: &[&DeviceRuntime], dtype: DType) -> Result<f64> {
    let time = || runtime.time_kernel(TimedKernel::Gemm, dtype, [BUSY_ORDER; 3]).map(|times| times.median());
    if others.is_empty() {
        return Ok(0.0);
    }
    let (alone, is_done) = (time()?, AtomicBool::new(false));
    let beside = std::thread::scope(|scope| {
        let busy: Vec<_> = others.iter().map(|other| scope.spawn(|| other.keep_busy(dtype, BUSY_ORDER, &is_done))).collect();
        let beside = time();
        is_done.store(true, Ordering::Relaxed);
        let ended = busy.into_iter().map(|thread| thread.join().expect("the thread does not panic"));
        ended.collect::<Result<()>>().and(beside)
    })?;
    Ok(((beside / alone - 1.0) / others.len() as f64).max(0.0))
}
