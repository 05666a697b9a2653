//! Tests of the order of commands. When a method of the device returns, or a token reports that a command has ended, the effect of
//! the command must be complete and visible to every thread.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use lapidary_core::{BufferRect, Conditions, Device, DeviceBuffer, HostRect, Instruction, Operand, Scalar, Token, Work};

use crate::cases::Rng;
use crate::properties::memory::completed;
use crate::{Failure, Trial};

/// Number of registers. Each register holds a square matrix of order `N`.
const REGISTERS: usize = 4;
const N: usize = 33;

/// A random step. The numbers are the register that the step writes or reads, and for a copy also the register that is copied.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write(usize),
    Copy(usize, usize),
    Scale(usize, f64),
    Read(usize),
}

fn steps(rng: &mut Rng, count: usize) -> Vec<Step> {
    let any = |rng: &mut Rng| match (rng.below(4), rng.below(REGISTERS), rng.below(REGISTERS)) {
        (0, to, _) => Step::Write(to),
        (1, to, from) if to != from => Step::Copy(to, from),
        (1 | 2, to, _) => Step::Scale(to, [-1.0, 0.5, 2.0][rng.below(3)]),
        (_, to, _) => Step::Read(to),
    };
    let first = (0..REGISTERS).map(Step::Write);
    first.chain((0..count).map(|_| any(rng))).chain((0..REGISTERS).map(Step::Read)).collect()
}

/// Runs a sequence of transfers, copies and scalings on a few registers, and a sequence of copies and scalings by one call of
/// [`Device::launch_and_read`]. Each command may depend on the preceding command. Each read must return the values that the same sequence
/// gives on the host.
///
/// # Errors
/// A read returns other values than the host computed.
pub fn chain<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    for round in 0..u64::from(trial.scope.cases.div_ceil(4)) {
        let seen = trial.ledger.evidence("", N);
        seen.exact("ordering: values", walk::<T>(trial.subject, trial.scope.seed ^ round, Way::Blocking)?)?;
        seen.exact("ordering: values", series::<T>(trial.subject, trial.scope.seed ^ round)?)?;
    }
    Ok(())
}

/// Runs random copies and scalings by one call. The results are those of [`walk`].
fn series<T: Scalar>(device: &dyn Device, seed: u64) -> Result<Result<(), Failure>, Failure> {
    let rng = &mut Rng::new(seed);
    let mut walk = Walk::<T>::new(device, Way::Blocking)?;
    for register in 0..REGISTERS {
        walk.step(Step::Write(register), rng)?;
    }
    let Walk { registers, expected, .. } = &mut walk;
    let instructions: Vec<_> = steps(rng, 40).iter().filter_map(|&step| instruction(step, registers, expected)).collect();
    let mut got = vec![vec![T::ZERO; N * N]; REGISTERS];
    let reads: Vec<_> = registers.iter().zip(&mut got).map(|(from, to)| (from, HostRect::packed(to, N))).collect();
    // SAFETY: the registers and the host matrices belong to this function and have the same size, and nothing else accesses them.
    done(unsafe { device.launch_and_read(&instructions, &reads) })?;
    let failed = || {
        Failure::new(
            "ordering: values",
            format!("{} instructions (seed {seed:#x}) give other values than on the host", instructions.len()),
        )
    };
    Ok(if got == *expected { Ok(()) } else { Err(failed()) })
}

/// Tests the order of instructions as [`chain`] does, but submits them to all queues of the device. If two successive instructions
/// are in different queues, the second is submitted with the token of the first. The host waits for instructions only before a
/// transfer.
///
/// # Errors
/// A read returns other values than the host computed.
pub fn queues<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    for round in 0..u64::from(trial.scope.cases.div_ceil(4)) {
        let seen = trial.ledger.evidence("", N);
        seen.exact("ordering: queues", walk::<T>(trial.subject, trial.scope.seed ^ round, Way::Submitting)?)?;
    }
    Ok(())
}

/// Tests the order of instructions as [`chain`] does, from several threads at once. Each thread uses registers of its own.
///
/// # Errors
/// A thread reads other values than the host computed.
pub fn threads<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let (device, seed) = (trial.subject, trial.scope.seed);
    let seen = trial.ledger.evidence("", N);
    let compared = std::thread::scope(|scope| {
        let running: Vec<_> =
            (0..4_u64).map(|thread| scope.spawn(move || walk::<T>(device, seed ^ (thread << 32), Way::Blocking))).collect();
        let panicked = || Err(Failure::new("ordering: no panic", "a thread panicked"));
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect::<Result<Vec<_>, _>>()
    });
    seen.exact("ordering: values", compared?.into_iter().collect())
}

/// The method of [`Device`] by which a test starts an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Instructions are started by [`Device::launch`].
    Blocking,
    /// Instructions are started by [`Device::submit`].
    Submitting,
}

/// Runs random steps. The inner result is an error if a read returns other values than the host computed. The outer result is an
/// error if a command failed.
fn walk<T: Scalar>(device: &dyn Device, seed: u64, way: Way) -> Result<Result<(), Failure>, Failure> {
    let rng = &mut Rng::new(seed);
    let mut walk = Walk::<T>::new(device, way)?;
    let steps = steps(rng, 40);
    for (at, &step) in steps.iter().enumerate() {
        if !walk.step(step, rng)? {
            let detail = format!("step {at} of {:?} (seed {seed:#x}) does not give what it gives on the host", &steps[..=at]);
            let check = if way == Way::Blocking { "ordering: values" } else { "ordering: queues" };
            return Ok(Err(Failure::new(check, detail)));
        }
    }
    Ok(Ok(()))
}

/// The registers of a device, and the matrices that they should hold.
struct Walk<'d, T> {
    device: &'d dyn Device,
    registers: Vec<DeviceBuffer>,
    expected: Vec<Vec<T>>,
    way: Way,
    /// Queues and tokens of the submitted instructions for which the host has not yet waited.
    under_way: Vec<(usize, Token)>,
}

fn done<R>(result: lapidary_core::Result<R>) -> Result<R, Failure> {
    completed("ordering: completes", result)
}

impl<'d, T: Scalar> Walk<'d, T> {
    fn new(device: &'d dyn Device, way: Way) -> Result<Self, Failure> {
        let register = |_| done(device.alloc(N * N * size_of::<T>()));
        let registers = (0..REGISTERS).map(register).collect::<Result<_, _>>()?;
        Ok(Walk { device, registers, expected: vec![vec![T::ZERO; N * N]; REGISTERS], way, under_way: Vec::new() })
    }

    /// Runs a step on the device and on the host. Returns false if a read returns other values than the host computed.
    fn step(&mut self, step: Step, rng: &mut Rng) -> Result<bool, Failure> {
        if matches!(step, Step::Write(_) | Step::Read(_)) {
            self.under_way.drain(..).try_for_each(|(_, token)| done(token.wait()))?;
        }
        let Walk { device, registers, expected, way, under_way } = self;
        match step {
            Step::Write(to) => {
                expected[to].fill_with(|| T::from_f64(rng.integer(1000)));
                // SAFETY: the host matrix and the register belong to this walk and have the same size, and the walk has waited for
                // all its instructions.
                done(unsafe { device.write(HostRect::packed(&mut expected[to], N), BufferRect::packed(&registers[to], N)) })?;
            }
            Step::Copy(..) | Step::Scale(..) => {
                let instruction = instruction(step, registers, expected).expect("the step is an instruction");
                run(*device, &instruction, *way, under_way, rng)?;
            }
            Step::Read(from) => {
                let mut got = vec![T::ZERO; N * N];
                // SAFETY: the matrix `got` and the register belong to this walk and have the same size, and the walk has waited for
                // all its instructions.
                done(unsafe { device.read(BufferRect::packed(&registers[from], N), HostRect::packed(&mut got, N)) })?;
                return Ok(got == expected[from]);
            }
        }
        Ok(true)
    }
}

impl<T> Drop for Walk<'_, T> {
    fn drop(&mut self) {
        // after a failure, the buffers must stay allocated until all submitted instructions have ended
        self.under_way.iter().for_each(|(_, token)| drop(token.wait()));
    }
}

/// Computes a step on the host, and returns the instruction that computes it on the device. Returns `None` if the step is a transfer.
fn instruction<'r, T: Scalar>(
    step: Step,
    registers: &'r [DeviceBuffer],
    expected: &mut [Vec<T>],
) -> Option<Instruction<Operand<'r>>> {
    match step {
        Step::Write(_) | Step::Read(_) => None,
        Step::Copy(to, from) => {
            expected[to] = expected[from].clone();
            let [a, b] = [from, to].map(|register| whole::<T>(&registers[register]));
            Some(Instruction::Copy { a, b })
        }
        Step::Scale(to, factor) => {
            let beta = T::from_f64(factor);
            expected[to].iter_mut().for_each(|x| *x = beta * *x);
            Some(Instruction::Scale { beta: beta.into(), c: whole::<T>(&registers[to]) })
        }
    }
}

/// Runs an instruction by [`Device::launch`], or submits it so that it runs after the preceding instruction.
fn run(
    device: &dyn Device,
    instruction: &Instruction<Operand<'_>>,
    way: Way,
    under_way: &mut Vec<(usize, Token)>,
    rng: &mut Rng,
) -> Result<(), Failure> {
    if way == Way::Blocking {
        // SAFETY: the operands lie in buffers of this walk, and each launched instruction ends before the next command begins.
        return done(unsafe { device.launch(instruction) });
    }
    let queue = rng.below(device.facts().queues);
    let before = under_way.last().filter(|(other, _)| *other != queue).map(|(_, token)| token);
    let work = Work::Run { instruction, queue, conditions: Conditions::default() };
    // SAFETY: the operands lie in buffers of this walk. The instruction runs after the preceding one, and the walk waits for its
    // token before it transfers or frees a buffer.
    let token = done(unsafe { device.submit(work, before.as_slice()) })?;
    under_way.push((queue, token));
    Ok(())
}

fn whole<T: Scalar>(buffer: &DeviceBuffer) -> Operand<'_> {
    Operand::packed(buffer, N, N, T::DTYPE)
}
