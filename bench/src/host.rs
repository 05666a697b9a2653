//! Benchmark group `host`: times products, triangular solves, LU factorisations and systems of matrices in host memory.
//! cuBLASXt and cuSOLVER take turns with Lapidary if their libraries are found.

mod peers;
mod sides;

use lapidary::backend::DeviceKind;
use lapidary::opencl::list;
use lapidary::{DType, DeviceFacts, Machine, Routine, Select};

use self::sides::{Entrant, FIRST, Input, PAGEABLE, PINNED, RESIDENT, borrow, from_host, stay};
use crate::cases::copy;
use crate::cublas::{Cublas, Real};
use crate::cusolver::Cusolver;
use crate::gpu::ours::prepare;
use crate::gpu::problem::{Operands, Problem, Product, check_memory};
use crate::measure::{Side, in_turn};
use crate::opencl::first_gpu;
use crate::report::{Report, Unit};
use crate::settings::{ROUTINES, Settings};

/// Times the routines `--routine` with matrices of the orders `--n`. The element type is `--dtype`, by default `f64`. The device is the one that `LAPIDARY_DEVICE` names.
/// If the variable names none, it is the first GPU among the OpenCL devices, or the first OpenCL device if none is a GPU.
///
/// # Errors
/// Lapidary failed or computed a wrong result in at least one case, or a file cannot be written.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let Some(select) = device()? else { return Ok(()) };
    let machine = Machine::open(&select).map_err(|error| Select::attribute_to_env(error).to_string())?;
    let device = machine.devices().next().ok_or_else(|| format!("`{select}` names no device"))?;
    let alone = (machine.devices().count() > 1).then(|| device.name.parse().and_then(|first: Select| Machine::open(&first)));
    let alone = alone.transpose().map_err(|error| error.to_string())?;
    let cuda = Cublas::find(settings);
    let cusolver = Cusolver::find(settings, cuda.as_ref());
    let cublas = cuda.as_ref().filter(|_| settings.wants("cublas"));
    let versions = [cublas.map(|peer| ("cublas", peer.version())), cusolver.as_ref().map(|peer| ("cusolver", peer.version()))];
    report.add_participants(machine.devices(), versions.into_iter().flatten());
    let sizes = settings.sizes(if device.identity.kind == DeviceKind::Gpu { &[4096, 8192, 16384] } else { &[512, 1024] });
    let largest = sizes.iter().copied().max();
    let bench = Bench { settings, machine: &machine, alone: alone.as_ref(), device, cublas, cusolver: cusolver.as_ref(), largest };
    let mut failures = Vec::new();
    let routines: Vec<_> = ROUTINES.into_iter().filter(|&routine| settings.times(routine)).collect();
    for problem in sizes.iter().flat_map(|&n| routines.iter().map(move |&routine| square(routine, n))) {
        let outcome = match settings.dtype.unwrap_or(DType::F64) {
            DType::F32 => bench.time_problem::<f32>(problem, report),
            DType::F64 => bench.time_problem::<f64>(problem, report),
            DType::I32 => unreachable!("no routine computes in integers"),
        };
        failures.extend(outcome.err().map(|error| format!("{} {}: {error}", problem.routine().name(), problem.size())));
        // The figures survive if the program is stopped in a later case.
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

/// The problem of a routine in which all matrices are of order n, apart from the one right-hand side of a system.
fn square(routine: Routine, n: usize) -> Problem {
    match routine {
        Routine::Gemm => Problem::Product(Product::square(n)),
        Routine::Trsm => Problem::Solve { n, nrhs: n },
        Routine::Getrf => Problem::Factors { n },
        Routine::Gesv => Problem::System { n },
        Routine::Getrs | Routine::Laswp => unreachable!("the option `--routine` does not accept these routines"),
    }
}

struct Bench<'a> {
    settings: &'a Settings,
    machine: &'a Machine,
    /// The first device alone, if the machine has several devices.
    alone: Option<&'a Machine>,
    /// The first device.
    device: &'a DeviceFacts,
    cublas: Option<&'a Cublas>,
    cusolver: Option<&'a Cusolver<'a>>,
    /// The order of which products are also timed with β = 1.
    largest: Option<usize>,
}

impl<'a> Bench<'a> {
    fn time_problem<T: Real>(&self, problem: Problem, report: &mut Report) -> Result<(), String> {
        let operands = match self.has_room::<T>(problem).and_then(|()| Operands::<T>::random(problem)) {
            Ok(operands) => operands,
            Err(error) => {
                println!("{} {} is left out: {error}", problem.routine().name(), problem.size());
                return Ok(());
            }
        };
        let mut entrants = self.ours(&operands)?;
        entrants.extend(self.peers(&operands, report));
        let entrants = self.time(&operands, entrants, None, report)?;
        let Problem::Product(Product { n, .. }) = problem else { return Ok(()) };
        if self.largest != Some(n) {
            return Ok(());
        }
        let in_host_memory = |entrant: &Entrant<'_, T>| entrant.memory == PINNED && entrant.name != RESIDENT;
        let pinned = entrants.into_iter().filter(in_host_memory).collect();
        self.time(&operands, pinned, Some(&operands.a), report).map(drop)
    }

    /// Checks the host memory for all matrices: the operands, for each library the operands and the result in pinned memory and a result
    /// in pageable memory, and two results of the resident side. A device may keep its matrices in host memory.
    fn has_room<T>(&self, problem: Problem) -> Result<(), String> {
        let [a, b, c] = problem.shapes();
        let of_library = || problem.shapes().into_iter().take(problem.inputs()).chain([c, c]);
        let is_in_host_memory = self.device.host_memory || self.device.identity.kind == DeviceKind::Cpu;
        let of_device = is_in_host_memory.then_some([a, b, c]).into_iter().flatten();
        let has_peer = match problem {
            Problem::Product(_) => self.cublas.is_some(),
            Problem::Factors { .. } | Problem::System { .. } => self.cusolver.is_some(),
            Problem::Solve { .. } => false,
        };
        let of_peer = has_peer.then(of_library).into_iter().flatten();
        let of_first = self.alone.is_some().then(of_library).into_iter().flatten();
        check_memory::<T>([a, b, c, c].into_iter().chain(of_first).chain(of_library()).chain(of_device).chain(of_peer))
    }

    /// The sides of Lapidary. The resident side is left out if its matrices take more than half of the memory of the device, since the
    /// other sides need device memory too.
    fn ours<'o, T: Real>(&self, operands: &'o Operands<T>) -> Result<Vec<Entrant<'o, T>>, String>
    where
        'a: 'o,
    {
        let problem = operands.problem;
        let alloc = |machine: &Machine, len| machine.alloc_host::<T>(len).map_err(|error| error.to_string());
        let pin = |machine: &Machine, data: &[T]| {
            let mut memory = alloc(machine, data.len())?;
            copy(&mut memory, data);
            Ok(Box::new(memory) as Input<'o, T>)
        };
        let pinned = operands.inputs().map(|data| pin(self.machine, data)).collect::<Result<Vec<_>, String>>()?;
        let [of_a, of_b, (rows, cols)] = problem.shapes();
        let mut sides = vec![
            from_host(self.machine, PINNED, problem, pinned, Box::new(alloc(self.machine, rows * cols)?)),
            from_host(self.machine, PAGEABLE, problem, borrow(operands), Box::new(operands.unwritten())),
        ];
        if let Some(alone) = self.alone {
            let pinned = operands.inputs().map(|data| pin(alone, data)).collect::<Result<Vec<_>, String>>()?;
            let of_first = [
                from_host(alone, PINNED, problem, pinned, Box::new(alloc(alone, rows * cols)?)),
                from_host(alone, PAGEABLE, problem, borrow(operands), Box::new(operands.unwritten())),
            ];
            sides.extend(of_first.map(|side| side.named(FIRST)));
            return Ok(sides);
        }
        let bytes = [of_a, of_b, (rows, cols)].map(|(rows, cols)| rows * cols * size_of::<T>()).iter().sum::<usize>();
        let resident = if self.device.memory.is_some_and(|memory| memory / 2 < bytes) {
            Err(format!("the matrices take {} MiB of device memory", bytes >> 20))
        } else {
            prepare(self.machine, operands)
        };
        match resident {
            Ok(resident) => sides.push(stay(resident, Box::new(operands.unwritten()))),
            Err(error) => println!("{} {}: {RESIDENT} is left out: {error}", operands.name(), problem.size()),
        }
        Ok(sides)
    }

    /// The sides of cuBLASXt or cuSOLVER. A side that fails is named and left out.
    fn peers<'o, T: Real>(&self, operands: &'o Operands<T>, report: &mut Report) -> Vec<Entrant<'o, T>>
    where
        'a: 'o,
    {
        let attempts = match operands.problem {
            Problem::Product(_) => self.cublas.map(|cuda| peers::cublasxt(cuda, operands, report)),
            Problem::Factors { n } => self.cusolver.map(|cusolver| peers::getrf(cusolver, n, operands)),
            Problem::System { n } => self.cusolver.map(|cusolver| peers::gesv(cusolver, n, operands)),
            Problem::Solve { .. } => None,
        };
        let enter = |(memory, name, parts): peers::Attempt<'o, T>| match parts {
            Ok(parts) => Some(Entrant::new(memory, name, parts)),
            Err(error) => {
                println!("{} {} {memory}: no {name}: {error}", operands.name(), operands.problem.size());
                None
            }
        };
        attempts.into_iter().flatten().filter_map(enter).collect()
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
            match entrant.run(operands, before) {
                Ok(_) => ready.push(entrant),
                Err(error) => entrant.leave_out(operands, &error)?,
            }
        }
        let work = |entrant| {
            let entrant: &mut Entrant<'o, T> = entrant;
            Side::new(entrant.name, move || entrant.run(operands, before).expect("a call succeeds again"))
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
