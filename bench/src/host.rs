//! Benchmark group `host`: times products of matrices in host memory on one device. cuBLASXt takes turns with Lapidary if the library of
//! cuBLAS is found.

mod sides;

use std::iter::repeat_n;

use lapidary::backend::DeviceKind;
use lapidary::opencl::list;
use lapidary::{DType, DeviceFacts, Machine, Select};

use self::sides::{Entrant, Input, Output, PAGEABLE, PEER, PINNED, RESIDENT, borrow, fastest, multiply, stay};
use crate::cublas::{Cublas, Real};
use crate::cublasxt::Pinned;
use crate::gpu::ours;
use crate::gpu::problem::{Operands, Problem, Product, check_memory};
use crate::measure::{Side, in_turn};
use crate::opencl::first_gpu;
use crate::report::{Report, Unit};
use crate::settings::Settings;

/// Times products of the orders `--n`. The element type is `--dtype`, by default `f64`. The device is the one that `LAPIDARY_DEVICE` names.
/// If the variable names none, it is the first GPU among the OpenCL devices, or the first OpenCL device if none is a GPU.
///
/// # Errors
/// Lapidary failed or computed a wrong result for at least one order, or a file cannot be written.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let Some(select) = device()? else { return Ok(()) };
    let machine = Machine::open(&select).map_err(|error| Select::attribute_to_env(error).to_string())?;
    let mut devices = machine.devices();
    let (Some(device), None) = (devices.next(), devices.next()) else {
        return Err(format!("group `host` measures one device, and `{select}` names several"));
    };
    let peer = settings.wants("cublas").then(|| Cublas::find(settings)).flatten();
    report.add_participants(machine.devices(), peer.iter().map(|peer| ("cublas", peer.version())));
    let sizes = settings.sizes(if device.identity.kind == DeviceKind::Gpu { &[4096, 8192, 16384] } else { &[512, 1024] });
    let bench = Bench { settings, machine: &machine, device, peer: peer.as_ref(), largest: sizes.iter().copied().max() };
    let mut failures = Vec::new();
    for n in sizes {
        let outcome = match settings.dtype.unwrap_or(DType::F64) {
            DType::F32 => bench.order::<f32>(n, report),
            DType::F64 => bench.order::<f64>(n, report),
            DType::I32 => unreachable!("no routine computes in integers"),
        };
        failures.extend(outcome.err().map(|error| format!("n={n}: {error}")));
        // The figures survive if the program is stopped at a larger order.
        report.save(settings)?;
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// The selection of `LAPIDARY_DEVICE`, or the usual device if the variable names none. Prints a line if there is no usual device.
fn device() -> Result<Option<Select>, String> {
    let named = Select::from_env().map_err(|error| error.to_string())?;
    if named != Select::all() {
        return Ok(Some(named));
    }
    let listing = list();
    let found = first_gpu(&listing.devices).map(|(index, _)| Select::opencl(index));
    if found.is_none() {
        println!("no OpenCL device: {:?}", listing.notes);
    }
    Ok(found)
}

struct Bench<'a> {
    settings: &'a Settings,
    machine: &'a Machine,
    device: &'a DeviceFacts,
    peer: Option<&'a Cublas>,
    /// The order that is also timed with β = 1.
    largest: Option<usize>,
}

impl<'a> Bench<'a> {
    fn order<T: Real>(&self, n: usize, report: &mut Report) -> Result<(), String> {
        let operands = match self.has_room::<T>(n).and_then(|()| Operands::<T>::random(Problem::Product(Product::square(n)))) {
            Ok(operands) => operands,
            Err(error) => {
                println!("gemm n={n} is left out: {error}");
                return Ok(());
            }
        };
        let mut entrants = self.ours(n, &operands)?;
        entrants.extend(self.peers(n, &operands, report));
        let entrants = self.time(&operands, entrants, None, report)?;
        if self.largest != Some(n) {
            return Ok(());
        }
        let in_host_memory = |entrant: &Entrant<'_, T>| entrant.memory == PINNED && entrant.name != RESIDENT;
        let pinned = entrants.into_iter().filter(in_host_memory).collect();
        self.time(&operands, pinned, Some(&operands.a), report).map(drop)
    }

    /// Checks the host memory for all matrices: A and B of the operands, three matrices in the pinned memory of each library, a result in
    /// pageable memory of each library, and the results of the resident side. A device may keep its matrices in host memory.
    fn has_room<T>(&self, n: usize) -> Result<(), String> {
        let of_device = if self.device.host_memory || self.device.identity.kind == DeviceKind::Cpu { 3 } else { 0 };
        let of_peer = if self.peer.is_some() { 4 } else { 0 };
        check_memory::<T>(repeat_n((n, n), 8 + of_device + of_peer))
    }

    /// The sides of Lapidary. The resident side is left out if its matrices take more than half of the memory of the device, since the
    /// other sides need device memory too.
    fn ours<'o, T: Real>(&self, n: usize, operands: &'o Operands<T>) -> Result<Vec<Entrant<'o, T>>, String>
    where
        'a: 'o,
    {
        let pin = |data: &[T]| {
            let mut memory = self.machine.alloc_host(n * n).map_err(|error| error.to_string())?;
            memory.copy_from_slice(data);
            Ok::<_, String>(memory)
        };
        let pinned: [Input<'o, T>; 2] = [Box::new(pin(&operands.a)?), Box::new(pin(&operands.b)?)];
        let to: Output<'o, T> = Box::new(self.machine.alloc_host(n * n).map_err(|error| error.to_string())?);
        let mut sides = vec![
            multiply(self.machine, PINNED, n, pinned, to),
            multiply(self.machine, PAGEABLE, n, borrow(operands), Box::new(operands.unwritten())),
        ];
        let bytes = 3 * size_of_val(operands.a.as_slice());
        if self.device.memory.is_some_and(|memory| memory / 2 < bytes) {
            println!("gemm n={n}: {RESIDENT} is left out: the matrices take {} MiB of device memory", bytes >> 20);
            return Ok(sides);
        }
        match ours::prepare(self.machine, operands) {
            Ok(resident) => sides.push(stay(resident, Box::new(operands.unwritten()))),
            Err(error) => println!("gemm n={n}: {RESIDENT} is left out: {error}"),
        }
        Ok(sides)
    }

    /// The sides of cuBLASXt. A side that fails is named and left out.
    fn peers<'o, T: Real>(&self, n: usize, operands: &'o Operands<T>, report: &mut Report) -> Vec<Entrant<'o, T>>
    where
        'a: 'o,
    {
        let Some(cuda) = self.peer else { return Vec::new() };
        let pinned = || {
            let [a, b] = [Pinned::new(cuda, &operands.a)?, Pinned::new(cuda, &operands.b)?];
            let to: Output<'o, T> = Box::new(Pinned::new(cuda, &operands.a)?);
            Ok::<([Input<'o, T>; 2], _), String>(([Box::new(a), Box::new(b)], to))
        };
        let in_pinned = pinned().and_then(|(from, to)| fastest(cuda, (PINNED, &[false]), operands, from, to, report));
        let to = Box::new(operands.unwritten());
        let in_pageable = fastest(cuda, (PAGEABLE, &[false, true]), operands, borrow(operands), to, report);
        let sides = [(PINNED, in_pinned), (PAGEABLE, in_pageable)].into_iter();
        sides.filter_map(|(memory, side)| side.map_err(|error| println!("gemm n={n} {memory}: no {PEER}: {error}")).ok()).collect()
    }

    /// Times the entrants in turn, checks the results of their last calls, and reports the times of those whose results are right.
    /// Returns these entrants.
    fn time<'o, T: Real>(
        &self,
        operands: &Operands<T>,
        entrants: Vec<Entrant<'o, T>>,
        before: Option<&[T]>,
        report: &mut Report,
    ) -> Result<Vec<Entrant<'o, T>>, String> {
        let (mut ready, mut right) = (Vec::new(), Vec::new());
        for mut entrant in entrants {
            match entrant.run(before) {
                Ok(_) => ready.push(entrant),
                Err(error) => entrant.leave_out(operands, &error)?,
            }
        }
        let work = |entrant| {
            let entrant: &mut Entrant<'o, T> = entrant;
            Side::new(entrant.name, move || entrant.run(before).expect("a call succeeds again"))
        };
        let times = in_turn(self.settings, ready.iter_mut().map(work).collect());
        let (mut pinned, mut pageable) = (Vec::new(), Vec::new());
        for (entrant, times) in ready.into_iter().zip(times) {
            match entrant.check(operands, before) {
                Ok(()) if entrant.memory == PINNED => pinned.push(times),
                Ok(()) => pageable.push(times),
                Err(error) => {
                    entrant.leave_out(operands, &error)?;
                    continue;
                }
            }
            right.push(entrant);
        }
        for (memory, times) in [(PINNED, pinned), (PAGEABLE, pageable)] {
            let size = format!("{} {memory}{}", operands.problem.size(), before.map_or("", |_| " beta=1"));
            if !times.is_empty() {
                report.add(&operands.name(), &size, Unit::Gflops(operands.problem.flops()), &times);
            }
        }
        Ok(right)
    }
}
