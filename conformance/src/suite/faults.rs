//! Properties of calls after a failed call, and of calls from several threads at once.

use lapidary_core::{ErrorKind, Gemm, MatMut, MatRef, Scalar};

use super::Entry;
use crate::cases::{Fill, GemmCase, Rng};
use crate::properties::gemm::check_gemm;
use crate::{Failure, Ledger, Subject, Trial};

pub(super) fn entries<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    vec![
        ("a_refused_call_leaves_no_trace", "After a call with wrong arguments the next one is right.", refused_then_right::<S, T>),
        ("threads_share_the_subject", "Calls from several threads at once give exact integers.", threads::<S, T>),
    ]
}

fn integers(seed: u64, size: usize) -> GemmCase {
    GemmCase { fill: Fill::Integers, ..GemmCase::packed([size, size + 1, size - 1], seed) }
}

fn refused_then_right<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    for size in trial.scope.edges().into_iter().map(|[size, ..]| size.max(2)) {
        let (a, mut c) = (vec![T::ONE; size * size], vec![T::ONE; size * size]);
        let square = |data| MatRef::col_major(data, size, size).expect("the data holds it");
        let short = MatMut::col_major(&mut c, size - 1, size).expect("the data holds it");
        match trial.subject.gemm(Gemm::new(square(&a), square(&a), short)).map_err(|error| error.kind()) {
            Err(ErrorKind::InvalidArgument) => {}
            other => return Err(Failure::new("errors: wrong arguments", format!("C has too few rows: {other:?}"))),
        }
        check_gemm::<S, T>(trial, &integers(trial.scope.seed, size))?;
    }
    Ok(())
}

fn threads<S: Subject + ?Sized, T: Scalar>(trial: &Trial<'_, S>) -> Result<(), Failure> {
    let (subject, scope, rng) = (trial.subject, trial.scope, &mut Rng::new(trial.scope.seed));
    let sizes: Vec<usize> = (0..4).map(|_| 2 + rng.below(scope.max)).collect();
    trial.ledger.evidence("NN", scope.max);
    let calls = |size: usize| {
        let ledger = Ledger::default();
        let trial = Trial { subject, scope, ledger: &ledger };
        (0..4).try_for_each(|seed| check_gemm::<S, T>(&trial, &integers(seed, size)))
    };
    std::thread::scope(|threads| {
        let running: Vec<_> = sizes.into_iter().map(|size| threads.spawn(move || calls(size))).collect();
        let panicked = || Err(Failure::new("faults: no panic", "a thread panicked"));
        running.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| panicked()))
    })
}
