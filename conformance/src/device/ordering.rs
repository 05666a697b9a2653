//! The order of commands: when a method returns, its effect is complete and visible to
//! every thread.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use lapidary_core::{Device, DeviceBuffer, HostRect, Instruction, Operand, Scalar};

use crate::cases::Rng;
use crate::properties::memory::completed;
use crate::{Failure, Trial};

/// Registers of the chain, and the order of the matrix in each.
const REGISTERS: usize = 4;
const N: usize = 33;

/// What is done next, to which register, from which other.
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

/// Transfers, copies and scalings of a few registers in a row, each depending on the one
/// before: what is read is what the same steps give on the host.
///
/// # Errors
/// It is something else.
pub fn chain<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    for round in 0..u64::from(trial.scope.cases.div_ceil(4)) {
        let seen = trial.ledger.evidence("", N);
        seen.exact("ordering: values", walk::<T>(trial.subject, trial.scope.seed ^ round)?)?;
    }
    Ok(())
}

/// The same from several threads at once, each with registers of its own.
///
/// # Errors
/// A thread reads something else.
pub fn threads<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let (device, seed) = (trial.subject, trial.scope.seed);
    let seen = trial.ledger.evidence("", N);
    let compared = std::thread::scope(|scope| {
        let running: Vec<_> = (0..4_u64).map(|thread| scope.spawn(move || walk::<T>(device, seed ^ (thread << 32)))).collect();
        let panicked = || Err(Failure::new("ordering: no panic", "a thread panicked"));
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect::<Result<Vec<_>, _>>()
    });
    seen.exact("ordering: values", compared?.into_iter().collect())
}

/// What is read compared with what the host has; an error if there is nothing to be compared.
fn walk<T: Scalar>(device: &dyn Device, seed: u64) -> Result<Result<(), Failure>, Failure> {
    let rng = &mut Rng::new(seed);
    let mut walk = Walk::<T>::new(device)?;
    let steps = steps(rng, 40);
    for (at, &step) in steps.iter().enumerate() {
        if !walk.step(step, rng)? {
            let detail = format!("step {at} of {:?} (seed {seed:#x}) does not give what it gives on the host", &steps[..=at]);
            return Ok(Err(Failure::new("ordering: values", detail)));
        }
    }
    Ok(Ok(()))
}

/// The registers of a device, and the same on the host.
struct Walk<'d, T> {
    device: &'d dyn Device,
    registers: Vec<DeviceBuffer>,
    expected: Vec<Vec<T>>,
}

fn done<R>(result: lapidary_core::Result<R>) -> Result<R, Failure> {
    completed("ordering: completes", result)
}

impl<'d, T: Scalar> Walk<'d, T> {
    fn new(device: &'d dyn Device) -> Result<Self, Failure> {
        let register = |_| done(device.alloc(N * N * size_of::<T>()));
        let registers = (0..REGISTERS).map(register).collect::<Result<_, _>>()?;
        Ok(Walk { device, registers, expected: vec![vec![T::ZERO; N * N]; REGISTERS] })
    }

    /// Does a step on both sides; false if what is read is not what it is on the host.
    fn step(&mut self, step: Step, rng: &mut Rng) -> Result<bool, Failure> {
        let Walk { device, registers, expected } = self;
        match step {
            Step::Write(to) => {
                expected[to].fill_with(|| T::from_f64(rng.integer(1000)));
                // SAFETY: the memory and the buffer are ours, and of that size.
                done(unsafe { device.write(HostRect::packed(&mut expected[to], N), &registers[to]) })?;
            }
            Step::Copy(to, from) => {
                self.launch(&Instruction::Copy { a: whole::<T>(&self.registers[from]), b: whole::<T>(&self.registers[to]) })?;
                self.expected[to] = self.expected[from].clone();
            }
            Step::Scale(to, factor) => {
                let beta = T::from_f64(factor);
                self.launch(&Instruction::Scale { beta: beta.into(), c: whole::<T>(&self.registers[to]) })?;
                self.expected[to].iter_mut().for_each(|x| *x = beta * *x);
            }
            Step::Read(from) => {
                let mut got = vec![T::ZERO; N * N];
                // SAFETY: the memory and the buffer are ours, and of that size.
                done(unsafe { device.read(&registers[from], HostRect::packed(&mut got, N)) })?;
                return Ok(got == expected[from]);
            }
        }
        Ok(true)
    }

    fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<(), Failure> {
        // SAFETY: the operands are buffers of ours.
        done(unsafe { self.device.launch(instruction) })
    }
}

fn whole<T: Scalar>(buffer: &DeviceBuffer) -> Operand<'_> {
    Operand::packed(buffer, N, N, T::DTYPE)
}
