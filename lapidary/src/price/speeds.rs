//! Measured speeds of one device, and what a call costs there.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use lapidary_core::command::Command;
use lapidary_core::{Access, Cost, DType, DeviceRuntime, Extent, Instruction, Plan, RawMat, Result, TimedKernel, flops};

/// Orders of the matrices with which a kernel is measured.
const ORDERS: [usize; 4] = [64, 256, 1024, 4096];
/// A kernel is not measured at the next order if it took longer than this at the one before: it would take 64 times as long.
const LONGEST_SECONDS: f64 = 4e-3;
/// Order of the matrix of a product by one column, which measures the memory.
const COLUMN_ORDER: usize = 2048;
/// Bytes of the transfers that measure the latency and the bandwidth.
const TRANSFERS: [usize; 2] = [4 << 10, 32 << 20];
/// Bytes that a measurement takes: no speed is known of a device that may use less.
pub const LEAST_MEMORY: usize = TRANSFERS[1];

/// Speeds of one device. Each speed is measured when a call first needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Speeds {
    /// Transfers to the device and back; `None` if they were not measured, as on a device that works in host memory.
    pub transfers: Option<[Transfer; 2]>,
    pub kernels: BTreeMap<(TimedKernel, DType), Kernel>,
    /// Bytes per second of kernels that use each element once.
    pub memory: Option<f64>,
}

/// Seconds of a transfer: the latency, and a time for each byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Transfer {
    pub latency: f64,
    /// Bytes per second.
    pub bandwidth: f64,
}

/// Operations and seconds of a kernel on square matrices, ascending.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kernel(pub Vec<(f64, f64)>);

impl Transfer {
    /// The line through two measurements.
    fn through([few, many]: [usize; 2], [short, long]: [f64; 2]) -> Self {
        let latency = short.min(long);
        let bandwidth = (many - few) as f64 / (long - latency).max(1e-9);
        Transfer { latency, bandwidth }
    }

    fn seconds(&self, bytes: usize) -> f64 {
        if bytes == 0 { 0.0 } else { self.latency + bytes as f64 / self.bandwidth }
    }
}

impl Kernel {
    /// Seconds of so many operations. Interpolates between measured points on logarithmic axes, and extrapolates beyond the
    /// last one with a slope of at most 1. Constant below the first one.
    fn seconds(&self, flops: f64) -> f64 {
        let points = &self.0;
        let above = points.partition_point(|(measured, _)| *measured < flops);
        let ((from, start), (to, end)) = match (above, points.len()) {
            (0, _) => return points[0].1,
            (_, 1) => return points[0].1 * flops / points[0].0,
            (above, count) => (points[above.min(count - 1) - 1], points[above.min(count - 1)]),
        };
        let power = ((end / start).ln() / (to / from).ln()).clamp(0.0, 1.0);
        end * (flops / to).powf(power)
    }
}

/// The measured kernel by which the time of an instruction is estimated; none for instructions that only move elements. A
/// batch is estimated as one kernel with as many operations.
fn timed<O>(instruction: &Instruction<O>) -> Option<TimedKernel> {
    match instruction {
        Instruction::Gemm { .. } | Instruction::GemmBatched { .. } => Some(TimedKernel::Gemm),
        Instruction::Trsm { .. } | Instruction::Trtri { .. } | Instruction::GetrsBatched { .. } => Some(TimedKernel::Trsm),
        Instruction::Getrf { .. } | Instruction::GetrfBatched { .. } => Some(TimedKernel::Getrf),
        Instruction::Laswp { .. } | Instruction::Copy { .. } | Instruction::Scale { .. } | Instruction::ZeroPivots { .. } => None,
    }
}

impl Speeds {
    /// Whether everything is measured that the time of these instructions depends on.
    pub fn has(&self, driver: &DeviceRuntime, dtype: DType, instructions: &[Instruction<RawMat>]) -> bool {
        let has_kernel = |kernel| self.kernels.contains_key(&(kernel, dtype));
        (self.transfers.is_some() || driver.facts().host_memory)
            && self.memory.is_some()
            && instructions.iter().filter_map(timed).all(has_kernel)
    }

    /// Measures the speeds for which [`Self::has`] looks, unless they have been measured.
    ///
    /// # Errors
    /// The device failed, or has no memory for the smallest matrices.
    pub fn measure(&mut self, driver: &DeviceRuntime, dtype: DType, instructions: &[Instruction<RawMat>]) -> Result<()> {
        if self.transfers.is_none() && !driver.facts().host_memory {
            let [small, large] = [driver.time_transfers(TRANSFERS[0])?, driver.time_transfers(TRANSFERS[1])?];
            self.transfers = Some([0, 1].map(|way| Transfer::through(TRANSFERS, [small[way], large[way]])));
        }
        if self.memory.is_none() {
            let bytes = COLUMN_ORDER * COLUMN_ORDER * DType::F32.size();
            self.memory = Some(bytes as f64 / driver.time_kernel(TimedKernel::Gemm, DType::F32, COLUMN_ORDER, 1)?);
        }
        for kernel in instructions.iter().filter_map(timed) {
            if let Entry::Vacant(entry) = self.kernels.entry((kernel, dtype)) {
                entry.insert(measure(driver, kernel, dtype)?);
            }
        }
        Ok(())
    }

    /// Seconds of an instruction whose kernel was measured.
    fn instruction<O: Extent + Copy>(&self, instruction: &Instruction<O>, dtype: DType) -> f64 {
        let elements = (instruction.elements() * dtype.size()) as f64 / self.memory.unwrap_or(f64::INFINITY);
        let kernel = timed(instruction).and_then(|kernel| self.kernels.get(&(kernel, dtype)));
        kernel.map_or(0.0, |kernel| kernel.seconds(instruction.flops())).max(elements)
    }

    /// Seconds of a call on host matrices.
    pub fn call(&self, dtype: DType, instructions: &[Instruction<RawMat>]) -> f64 {
        let kernels: f64 = instructions.iter().map(|instruction| self.instruction(instruction, dtype)).sum();
        let [to, back] = traffic(instructions);
        self.transfers.map_or(kernels, |[write, read]| kernels + write.seconds(to) + read.seconds(back))
    }
}

/// Measures a kernel at ascending orders, until it takes long or memory is short.
fn measure(driver: &DeviceRuntime, kernel: TimedKernel, dtype: DType) -> Result<Kernel> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for n in ORDERS {
        let seconds = match driver.time_kernel(kernel, dtype, n, n) {
            Err(error) if points.is_empty() || !error.kind().is_out_of_memory() => return Err(error),
            Err(_) => break,
            Ok(seconds) => seconds,
        };
        let flops = match kernel {
            TimedKernel::Gemm => flops::gemm(n, n, n),
            TimedKernel::Trsm => flops::trsm(n, n),
            TimedKernel::Getrf => flops::getrf(n, n),
        };
        points.push((flops, seconds));
        if seconds > LONGEST_SECONDS {
            break;
        }
    }
    Ok(Kernel(points))
}

/// Bytes that a device with memory of its own reads from host matrices, and writes to them.
fn traffic(instructions: &[Instruction<RawMat>]) -> [usize; 2] {
    let mut moved: Vec<(RawMat, [bool; 2])> = Vec::new();
    for instruction in instructions {
        let mut operands = 0..;
        instruction.operands(|raw, access| {
            let reads = instruction.reads(operands.next().expect("endless"));
            let at = moved.iter().position(|(other, _)| *other == raw).unwrap_or_else(|| {
                moved.push((raw, [false; 2]));
                moved.len() - 1
            });
            moved[at].1[0] |= reads;
            moved[at].1[1] |= access == Access::Write;
        });
    }
    [0, 1].map(|way| moved.iter().filter(|(_, ways)| ways[way]).map(|(raw, _)| raw.bytes()).sum())
}

impl Cost for &Speeds {
    fn seconds(&self, plan: &Plan, command: &Command) -> f64 {
        let transfer = |way: usize, reg| self.transfers.map_or(0.0, |ways| ways[way].seconds(plan.registers()[reg].bytes()));
        match command {
            Command::Ld(ld) => transfer(0, ld.reg),
            Command::St(st) => transfer(1, st.reg),
            Command::Exec(exec) => self.instruction(&exec.instruction, plan.dtype()),
            Command::Mark(_) | Command::Bar(_) => 0.0,
        }
    }
}
