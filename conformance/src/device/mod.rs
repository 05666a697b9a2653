//! Below the routines: memory, transfers, the order of commands, instructions and errors
//! of the devices that a subject [offers](crate::Subject::devices).

pub mod faults;
pub mod instructions;
pub mod large;
mod launches;
pub mod ordering;
pub mod transfer;

pub use instructions::Instructions;

use std::marker::PhantomData;

use lapidary_core::{DType, Device, DeviceVisitor, Scalar};

use crate::{Failure, Ledger, Scope, Subject, Trial};

/// What is tried on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// See [`transfer::round_trip`].
    RoundTrip,
    /// See [`transfer::bits`].
    Bits,
    /// See [`transfer::indices`].
    Indices,
    /// See [`ordering::chain`].
    Chain,
    /// See [`ordering::threads`].
    Threads,
    /// See [`instructions::products`].
    Products,
    /// See [`instructions::new_memory`].
    NewMemory,
    /// See [`instructions::moves`].
    Moves,
    /// See [`instructions::triangles`].
    Triangles,
    /// See [`instructions::panels`].
    Panels,
    /// See [`instructions::without_pivoting`].
    WithoutPivoting,
    /// See [`instructions::zero_pivot`].
    ZeroPivot,
    /// See [`faults::too_much_memory`].
    TooMuchMemory,
    /// See [`large::one_buffer`].
    OneBuffer,
}

impl Probe {
    fn run<D: Device, T: Scalar>(self, trial: &Trial<'_, D>) -> Result<(), Failure> {
        match self {
            Probe::RoundTrip => transfer::round_trip::<D, T>(trial),
            Probe::Bits => transfer::bits::<D, T>(trial),
            Probe::Indices => transfer::indices(trial),
            Probe::Chain => ordering::chain::<D, T>(trial),
            Probe::Threads => ordering::threads::<D, T>(trial),
            Probe::Products => instructions::products::<D, T>(trial),
            Probe::NewMemory => instructions::new_memory::<D, T>(trial),
            Probe::Moves => instructions::moves::<D, T>(trial),
            Probe::Triangles => instructions::triangles::<D, T>(trial),
            Probe::Panels => instructions::panels::<D, T>(trial),
            Probe::WithoutPivoting => instructions::without_pivoting::<D, T>(trial),
            Probe::ZeroPivot => instructions::zero_pivot::<D, T>(trial),
            Probe::TooMuchMemory => faults::too_much_memory::<D, T>(trial),
            Probe::OneBuffer => large::one_buffer::<D, T>(trial),
        }
    }
}

/// Tries something on every device of a subject that computes in the precision of `T`. It is
/// skipped if it applies to none of them.
///
/// # Errors
/// The first failure, with the name of the device.
pub fn every<S: Subject, T: Scalar>(trial: &Trial<'_, S>, probe: Probe) -> Result<(), Failure> {
    let Trial { subject, scope, ledger } = *trial;
    let mut round = Round::<T> { probe, scope, ledger, verdict: None, skipped: None, dtype: PhantomData };
    subject.devices(&mut round);
    let skip = || trial.skip(round.skipped.unwrap_or_else(|| "the subject offers no device of its own".to_owned()));
    round.verdict.unwrap_or_else(skip)
}

/// A visit to one device after the other, until one fails.
struct Round<'a, T> {
    probe: Probe,
    scope: &'a Scope,
    ledger: &'a Ledger,
    /// That of the devices that were tried.
    verdict: Option<Result<(), Failure>>,
    /// Why it does not apply to the last of the others.
    skipped: Option<String>,
    dtype: PhantomData<T>,
}

impl<T: Scalar> DeviceVisitor for Round<'_, T> {
    fn visit<D: Device>(&mut self, device: &D) {
        let computes = device.info().f64 || T::DTYPE != DType::F64;
        let is_over = matches!(&self.verdict, Some(Err(failure)) if !failure.lacks_memory);
        if computes && !is_over {
            let trial = Trial { subject: device, scope: self.scope, ledger: self.ledger };
            let outcome = self.probe.run::<D, T>(&trial).map_err(|failure| failure.on(&device.info().name));
            // what does not apply to one device may have been shown of another
            match self.ledger.take_skipped() {
                Some(why) if outcome.is_ok() => self.skipped = Some(why),
                _ => self.verdict = Some(worse(self.verdict.take(), outcome)),
            }
        }
    }
}

/// A device that lacks memory hides no failure of another.
fn worse(before: Option<Result<(), Failure>>, outcome: Result<(), Failure>) -> Result<(), Failure> {
    match (before, outcome) {
        (_, Err(failure)) if !failure.lacks_memory => Err(failure),
        (Some(Err(lacking)), _) => Err(lacking),
        (_, outcome) => outcome,
    }
}
