//! Profiles of devices: measured times of kernels and transfers, from which plans are simulated.

mod measure;

use std::collections::BTreeMap;

use lapidary_core::command::Command;
use lapidary_core::{Cost, DType, Lookahead, Plan, Reach, Resources, TimedKernel};

use crate::price::kernel::{Curve, Kernel, timed};

/// The measured times of one device. [`Machine::profile`](crate::Machine::profile) measures a profile.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DeviceProfile {
    /// Name of the device, such as `opencl:0`.
    pub name: String,
    /// One line of text for users: the model of the device and its driver, or the origin of the times.
    pub description: String,
    /// Number of bytes of device memory for registers. `None` if the device works in host memory or states no limit.
    pub memory: Option<usize>,
    /// Maximum size of a buffer in bytes. `None` if the device has no such limit.
    pub max_buffer: Option<usize>,
    /// Number of kernel queues.
    pub queues: usize,
    /// Whether the device computes on host memory directly, without a copy.
    pub host_memory: bool,
    /// The slowdown s by other devices: while d of the devices `sharers` run kernels, a kernel of this device takes 1 + s·d times its run
    /// time alone. A simulation uses s for every pair of devices of this profile. The value is 0 if the device was measured alone.
    pub slowdown: f64,
    /// Names of the devices that computed while `slowdown` was measured.
    pub sharers: Vec<String>,
    /// Seconds of the smallest kernel. No command takes less time.
    pub latency: f64,
    /// Memory bandwidth in bytes per second.
    pub bandwidth: f64,
    /// Bytes and seconds of transfers to the device and of transfers back to the host, in ascending order. The lists are empty if the
    /// device works in host memory.
    pub transfers: [Vec<(usize, f64)>; 2],
    /// The times of kernels for each element type.
    pub types: BTreeMap<DType, TypeProfile>,
}

/// The measured times of kernels of one device for one element type.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TypeProfile {
    /// When and how LU on this device alone works in panels.
    pub lookahead: Option<Lookahead>,
    /// The slowdown s by the other kernel queue: while one kernel queue factors a panel of LU and the other runs another kernel, each of the
    /// two kernels takes 1 + s times its run time alone. With s = 1, both kernels take as long as one after the other.
    pub beside_panel: f64,
    /// For each kernel, the seconds of several shapes. A shape is given by its sizes m, n and k. C of a product is m×n, and its inner
    /// size is k. The triangle of a triangular solve has the order m, and there are n right-hand sides. The matrix of a factorisation
    /// is m×n. Row exchanges apply k pivots to an m×n matrix. Kernels ignore the sizes that they do not have.
    pub kernels: BTreeMap<TimedKernel, Vec<([usize; 3], f64)>>,
}

/// The cost model of a profile for one element type.
#[derive(Clone, Debug)]
pub struct ProfileCosts {
    slowdown: f64,
    beside_panel: f64,
    latency: f64,
    bandwidth: f64,
    element: usize,
    transfers: [Option<Curve>; 2],
    kernels: BTreeMap<TimedKernel, Kernel>,
}

impl DeviceProfile {
    /// The resources of a call on `devices` devices of this profile whose matrices lie in host memory. Returns `None` if the profile
    /// has no times for the element type.
    #[must_use]
    pub fn resources(&self, dtype: DType, devices: usize) -> Option<Resources> {
        let TypeProfile { lookahead, .. } = self.types.get(&dtype)?;
        let memory = (!self.host_memory).then(|| self.memory.unwrap_or(usize::MAX));
        let buffer = memory.map(|_| self.max_buffer.unwrap_or(usize::MAX));
        let lookahead = lookahead.filter(|_| devices == 1 && self.queues > 1);
        Some(Resources { buffer, lookahead, ..Resources::alike(devices, memory, dtype.size()) })
    }

    /// The properties of the device that the dispatcher needs to run `plan`.
    #[must_use]
    pub fn reach(&self, plan: &Plan) -> Reach {
        let in_place = vec![self.host_memory; plan.matrices().len()];
        // devices of one profile are equally fast, so that any number serves
        Reach { memory: self.memory.unwrap_or(usize::MAX), in_place, flops: 1.0, queues: self.queues }
    }

    /// The cost model for an element type. Returns `None` if the profile has no times for the element type.
    #[must_use]
    pub fn costs(&self, dtype: DType) -> Option<ProfileCosts> {
        let TypeProfile { kernels, beside_panel, .. } = self.types.get(&dtype)?;
        let kernels = kernels.iter().filter_map(|(&kernel, shapes)| Some((kernel, Kernel::of_shapes(kernel, shapes)?)));
        let curve = |points: &Vec<(usize, f64)>| -> Option<Curve> {
            let points: Vec<_> = points.iter().map(|&(bytes, seconds)| (bytes as f64, seconds)).collect();
            (!points.is_empty()).then_some(Curve(points))
        };
        let [to_device, to_host] = &self.transfers;
        Some(ProfileCosts {
            slowdown: self.slowdown,
            beside_panel: *beside_panel,
            latency: self.latency,
            bandwidth: self.bandwidth,
            element: dtype.size(),
            transfers: [curve(to_device), curve(to_host)],
            kernels: kernels.collect(),
        })
    }
}

impl ProfileCosts {
    /// Seconds of a transfer of `bytes` bytes to the device (`way` 0) or back to the host (`way` 1).
    fn transfer(&self, way: usize, bytes: usize) -> f64 {
        self.transfers[way].as_ref().filter(|_| bytes > 0).map_or(0.0, |curve| curve.transfer_seconds(bytes as f64))
    }
}

impl Cost for ProfileCosts {
    fn seconds(&self, plan: &Plan, command: &Command) -> f64 {
        match command {
            Command::Ld(ld) => self.transfer(0, plan.bytes_of(ld.tile)),
            Command::St(st) => self.transfer(1, plan.bytes_of(st.tile)),
            Command::Exec(exec) => {
                let instruction = &exec.instruction;
                let measured = timed(instruction)
                    .and_then(|(kernel, sizes)| Some(self.kernels.get(&kernel)?.seconds(kernel.width(sizes), kernel.work(sizes))));
                // a kernel without measured times takes as long as the accesses to its operands
                let seconds = measured.unwrap_or_else(|| (instruction.elements() * self.element) as f64 / self.bandwidth);
                seconds.max(self.latency)
            }
            Command::Mark(_) | Command::Bar(_) => 0.0,
        }
    }

    fn slowdown(&self) -> f64 {
        self.slowdown
    }

    fn queue_slowdown(&self, is_panel: bool) -> f64 {
        if is_panel { self.beside_panel } else { 1.0 }
    }
}
