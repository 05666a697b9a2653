//! Below the routines: memory, transfers, the order of commands, instructions and errors
//! of the devices that a subject [offers](crate::Subject::devices).

pub mod batches;
pub mod faults;
pub mod instructions;
pub mod large;
mod launches;
mod on_device;
pub mod ordering;
pub mod transfer;

pub use instructions::Instructions;
pub use on_device::OnDevice;

use lapidary_core::{Device, Scalar};

use crate::{Failure, Subject, Trial};

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
    /// See [`ordering::queues`].
    Queues,
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
    /// See [`batches::products`].
    BatchedProducts,
    /// See [`batches::systems`].
    BatchedSystems,
    /// See [`faults::too_much_memory`].
    TooMuchMemory,
    /// See [`large::one_buffer`].
    OneBuffer,
}

impl Probe {
    fn run<T: Scalar>(self, trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
        match self {
            Probe::RoundTrip => transfer::round_trip::<T>(trial),
            Probe::Bits => transfer::bits::<T>(trial),
            Probe::Indices => transfer::indices(trial),
            Probe::Chain => ordering::chain::<T>(trial),
            Probe::Queues => ordering::queues::<T>(trial),
            Probe::Threads => ordering::threads::<T>(trial),
            Probe::Products => instructions::products::<T>(trial),
            Probe::NewMemory => instructions::new_memory::<T>(trial),
            Probe::Moves => instructions::moves::<T>(trial),
            Probe::Triangles => instructions::triangles::<T>(trial),
            Probe::Panels => instructions::panels::<T>(trial),
            Probe::WithoutPivoting => instructions::without_pivoting::<T>(trial),
            Probe::ZeroPivot => instructions::zero_pivot::<T>(trial),
            Probe::BatchedProducts => batches::products::<T>(trial),
            Probe::BatchedSystems => batches::systems::<T>(trial),
            Probe::TooMuchMemory => faults::too_much_memory::<T>(trial),
            Probe::OneBuffer => large::one_buffer::<T>(trial),
        }
    }
}

/// Tries `probe` on every device of a subject that computes in the precision of `T`. The trial is skipped if the probe
/// applies to none of them.
///
/// # Errors
/// The first failure, with the name of the device.
pub fn every<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, probe: Probe) -> Result<(), Failure> {
    let (mut verdict, mut skipped) = (None, None);
    trial.subject.devices(&mut |device| {
        let is_over = matches!(&verdict, Some(Err(Failure { lacks_memory: false, .. })));
        if is_over || !device.facts().computes(T::DTYPE) {
            return;
        }
        let outcome = probe.run::<T>(&trial.of(device)).map_err(|failure| failure.on(&device.facts().name));
        // what does not apply to one device may have been shown of another
        match trial.ledger.take_skipped() {
            Some(why) if outcome.is_ok() => skipped = Some(why),
            _ => verdict = Some(worse(verdict.take(), outcome)),
        }
    });
    let skip = || trial.skip(skipped.unwrap_or_else(|| "the subject offers no device of its own".to_owned()));
    verdict.unwrap_or_else(skip)
}

/// A device that lacks memory hides no failure of another.
fn worse(before: Option<Result<(), Failure>>, outcome: Result<(), Failure>) -> Result<(), Failure> {
    match (before, outcome) {
        (_, Err(failure)) if !failure.lacks_memory => Err(failure),
        (Some(Err(lacking)), _) => Err(lacking),
        (_, outcome) => outcome,
    }
}
