//! Tests of the devices that a subject [passes on](crate::Subject::devices): memory, transfers, the order of commands,
//! instructions and errors.

pub mod batches;
pub mod faults;
pub mod instructions;
pub mod inverses;
pub mod large;
mod launches;
mod on_device;
pub mod ordering;
pub mod transfer;

pub use instructions::Instructions;
pub use on_device::OnDevice;

use lapidary_core::{Device, Scalar};

use crate::{Failure, Subject, Trial};

/// A test of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The test [`transfer::round_trip`].
    RoundTrip,
    /// The test [`transfer::bits`].
    Bits,
    /// The test [`transfer::indices`].
    Indices,
    /// The test [`ordering::chain`].
    Chain,
    /// The test [`ordering::queues`].
    Queues,
    /// The test [`ordering::threads`].
    Threads,
    /// The test [`instructions::products`].
    Products,
    /// The test [`instructions::products_in_norm`].
    InNorm,
    /// The test [`instructions::new_memory`].
    NewMemory,
    /// The test [`instructions::moves`].
    Moves,
    /// The test [`instructions::triangles`].
    Triangles,
    /// The test [`inverses::ill_conditioned`].
    IllConditioned,
    /// The test [`instructions::panels`].
    Panels,
    /// The test [`instructions::without_pivoting`].
    WithoutPivoting,
    /// The test [`instructions::zero_pivot`].
    ZeroPivot,
    /// The test [`batches::products`].
    BatchedProducts,
    /// The test [`batches::systems`].
    BatchedSystems,
    /// The test [`faults::too_much_memory`].
    TooMuchMemory,
    /// The test [`large::one_buffer`].
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
            Probe::InNorm => instructions::products_in_norm::<T>(trial),
            Probe::NewMemory => instructions::new_memory::<T>(trial),
            Probe::Moves => instructions::moves::<T>(trial),
            Probe::Triangles => instructions::triangles::<T>(trial),
            Probe::IllConditioned => inverses::ill_conditioned::<T>(trial),
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

/// Runs `probe` on each device of a subject, if the device computes in the precision of `T`. The trial is skipped if the probe
/// applies to none of the devices.
///
/// # Errors
/// A probe failed on a device. The failure names the device.
pub fn every<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>, probe: Probe) -> Result<(), Failure> {
    let (mut verdict, mut skipped) = (None, None);
    trial.subject.devices(&mut |device| {
        let is_over = matches!(&verdict, Some(Err(Failure { lacks_memory: false, .. })));
        if is_over || !device.facts().computes(T::DTYPE) {
            return;
        }
        let outcome = probe.run::<T>(&trial.of(device)).map_err(|failure| failure.on(&device.facts().name));
        // the probe may not apply to this device although it applies to another device
        match trial.ledger.take_skipped() {
            Some(why) if outcome.is_ok() => skipped = Some(why),
            _ => verdict = Some(worse(verdict.take(), outcome)),
        }
    });
    let skip = || trial.skip(skipped.unwrap_or_else(|| "the subject offers no device of its own".to_owned()));
    verdict.unwrap_or_else(skip)
}

/// Combines the outcomes of two devices. A wrong result on one device takes precedence over lack of memory on the other.
fn worse(before: Option<Result<(), Failure>>, outcome: Result<(), Failure>) -> Result<(), Failure> {
    match (before, outcome) {
        (_, Err(failure)) if !failure.lacks_memory => Err(failure),
        (Some(Err(lacking)), _) => Err(lacking),
        (_, outcome) => outcome,
    }
}
