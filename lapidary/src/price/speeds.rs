//! Measured speeds of one device, and estimates of the times of calls from these speeds.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use lapidary_core::command::Command;
use lapidary_core::{Access, Cost, DType, DeviceRuntime, Extent, Instruction, Plan, RawMat, Result, TimedKernel};

use super::kernel::{Curve, Kernel, timed};

/// Orders of the matrices with which a kernel is measured.
const ORDERS: [usize; 4] = [64, 256, 1024, 4096];
/// A kernel is not measured at the next order if it took longer than this number of seconds at the current order, since the next
/// order is four times as large and takes 64 times as long.
const LONGEST_SECONDS: f64 = 4e-3;
/// Order of the matrix in a matrix-vector product that measures the memory bandwidth.
const COLUMN_ORDER: usize = 2048;
/// Sizes in bytes of the two transfers that measure the latency and the bandwidth.
const TRANSFERS: [usize; 2] = [4 << 10, 32 << 20];
/// Bytes of device memory that a measurement needs. A device whose memory limit is below this number is not measured.
pub const LEAST_MEMORY: usize = TRANSFERS[1];

/// Speeds of one device. Each speed is measured when a call first needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Speeds {
    /// Speeds of transfers to the device and back. `None` if the transfers were not measured, or if the device works in host
    /// memory.
    pub transfers: Option<[Transfer; 2]>,
    pub kernels: BTreeMap<(TimedKernel, DType), Kernel>,
    /// Memory bandwidth in bytes per second, from a kernel that uses each matrix element once.
    pub memory: Option<f64>,
}

/// Model of the time of a transfer: a latency, and a time for each byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Transfer {
    pub latency: f64,
    /// Transfer rate in bytes per second.
    pub bandwidth: f64,
}

impl Transfer {
    /// Makes the model from two measured transfers: the latency is the shorter time, and the bandwidth is the difference of the
    /// bytes divided by the difference of the seconds.
    fn through([few, many]: [usize; 2], [short, long]: [f64; 2]) -> Self {
        let latency = short.min(long);
        let bandwidth = (many - few) as f64 / (long - latency).max(1e-9);
        Transfer { latency, bandwidth }
    }

    fn seconds(&self, bytes: usize) -> f64 {
        if bytes == 0 { 0.0 } else { self.latency + bytes as f64 / self.bandwidth }
    }
}

impl Speeds {
    /// Whether all speeds that these instructions need have been measured.
    pub fn has(&self, runtime: &DeviceRuntime, dtype: DType, instructions: &[Instruction<RawMat>]) -> bool {
        let has_kernel = |kernel| self.kernels.contains_key(&(kernel, dtype));
        (self.transfers.is_some() || runtime.facts().host_memory)
            && self.memory.is_some()
            && instructions.iter().filter_map(kernel).all(has_kernel)
    }

    /// Measures the speeds that [`Self::has`] checks, except those that have been measured before.
    ///
    /// # Errors
    /// The device failed, or has too little memory for the smallest matrices.
    pub fn measure(&mut self, runtime: &DeviceRuntime, dtype: DType, instructions: &[Instruction<RawMat>]) -> Result<()> {
        if self.transfers.is_none() && !runtime.facts().host_memory {
            let [small, large] = [runtime.time_transfers(TRANSFERS[0])?, runtime.time_transfers(TRANSFERS[1])?];
            self.transfers = Some([0, 1].map(|way| Transfer::through(TRANSFERS, [small[way].shortest(), large[way].shortest()])));
        }
        if self.memory.is_none() {
            self.memory = Some(memory_bandwidth(runtime)?);
        }
        for kernel in instructions.iter().filter_map(kernel) {
            if let Entry::Vacant(entry) = self.kernels.entry((kernel, dtype)) {
                entry.insert(measure(runtime, kernel, dtype)?);
            }
        }
        Ok(())
    }

    /// Estimates the seconds of an instruction whose kernel has been measured.
    fn instruction<O: Extent + Copy>(&self, instruction: &Instruction<O>, dtype: DType) -> f64 {
        let elements = (instruction.elements() * dtype.size()) as f64 / self.memory.unwrap_or(f64::INFINITY);
        let measured = kernel(instruction).and_then(|kernel| self.kernels.get(&(kernel, dtype)));
        let flops = instruction.flops();
        measured.map_or(0.0, |measured| measured.squares().seconds(flops)).max(elements)
    }

    /// Estimates the seconds of a call on host matrices.
    pub fn call(&self, dtype: DType, instructions: &[Instruction<RawMat>]) -> f64 {
        let kernels: f64 = instructions.iter().map(|instruction| self.instruction(instruction, dtype)).sum();
        let [to, back] = traffic(instructions);
        self.transfers.map_or(kernels, |[write, read]| kernels + write.seconds(to) + read.seconds(back))
    }
}

/// The kernel from whose measured times the time of an instruction is estimated. `None` if the time is estimated from the memory bandwidth,
/// as the time of row exchanges is.
fn kernel<O: Extent + Copy>(instruction: &Instruction<O>) -> Option<TimedKernel> {
    timed(instruction).map(|(kernel, _)| kernel).filter(|kernel| *kernel != TimedKernel::Laswp)
}

/// Measures the memory bandwidth in bytes per second, by a matrix-vector product.
pub(crate) fn memory_bandwidth(runtime: &DeviceRuntime) -> Result<f64> {
    let bytes = COLUMN_ORDER * COLUMN_ORDER * DType::F32.size();
    Ok(bytes as f64 / runtime.time_kernel(TimedKernel::Gemm, DType::F32, [COLUMN_ORDER, 1, COLUMN_ORDER])?.shortest())
}

/// Measures a kernel at ascending orders. The measurements end when a kernel takes longer than [`LONGEST_SECONDS`] or when the
/// device runs out of memory.
fn measure(runtime: &DeviceRuntime, kernel: TimedKernel, dtype: DType) -> Result<Kernel> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for n in ORDERS {
        let seconds = match runtime.time_kernel(kernel, dtype, [n; 3]) {
            Err(error) if points.is_empty() || !error.kind().is_out_of_memory() => return Err(error),
            Err(_) => break,
            Ok(times) => times.shortest(),
        };
        points.push((kernel.work([n; 3]), seconds));
        if seconds > LONGEST_SECONDS {
            break;
        }
    }
    Ok(Kernel::of_squares(Curve(points)))
}

/// Measures how many floating-point operations of products a device computes per second, with the largest of the measured matrices.
pub(crate) fn product_rate(runtime: &DeviceRuntime, dtype: DType) -> Result<f64> {
    let kernel = measure(runtime, TimedKernel::Gemm, dtype)?;
    let largest = kernel.squares().0.last().map_or(0.0, |&(flops, seconds)| flops / seconds);
    Ok(largest)
}

/// Returns how many bytes a device with memory of its own copies from host matrices for these instructions, and how many bytes it
/// copies back to host matrices.
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

impl Cost for Speeds {
    fn seconds(&self, plan: &Plan, command: &Command) -> f64 {
        // a device that works in host memory reads and writes each byte of a copy once
        let copy = |bytes: usize| 2.0 * bytes as f64 / self.memory.unwrap_or(f64::INFINITY);
        let transfer = |way: usize, bytes| self.transfers.map_or_else(|| copy(bytes), |ways| ways[way].seconds(bytes));
        match command {
            Command::Ld(ld) => transfer(0, plan.bytes_of(ld.tile)),
            Command::St(st) => transfer(1, plan.bytes_of(st.tile)),
            Command::Exec(exec) => self.instruction(&exec.instruction, plan.dtype()),
            Command::Mark(_) | Command::Bar(_) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use lapidary_core::Layout;
    use lapidary_core::command::Command;
    use lapidary_core::instruction::Region;

    use super::*;

    #[test]
    fn a_copy_in_host_memory_takes_time() {
        let mut plan = Plan::new("copy", DType::F64);
        let a = plan.input("A", (1000, 1), Layout::ColMajor);
        plan.task("copy", Region { row: 0, col: 0, rows: 1000, cols: 1 });
        plan.ld(a, &(0..1000), &(0..1));
        let load = plan.commands().iter().find(|command| matches!(command, Command::Ld(_))).unwrap();
        let in_host_memory = Speeds { memory: Some(1e9), ..Speeds::default() };
        assert!((in_host_memory.seconds(&plan, load) - 16e-6).abs() < 1e-9);
        let copying = Speeds { transfers: Some([Transfer { latency: 1.0, bandwidth: 1e3 }; 2]), ..in_host_memory };
        assert!((copying.seconds(&plan, load) - 9.0).abs() < 1e-9);
    }
}
