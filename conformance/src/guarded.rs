//! A wrapper of a subject, which converts panics to errors.
//!
//! If a panic of the subject ended a trial, the failing case would be lost. If the call returns an error instead, the check fails,
//! the suite searches for a simpler failing case, and the run continues.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lapidary_core::{
    DType, Device, Error, ErrorKind, Gemm, GemmBatched, Getrf, GetrfBatched, Getrs, GetrsBatched, Laswp, MatMut, MatRef, Result,
    Routine, Scalar, Trsm,
};

use crate::report::Identity;
use crate::subject::Factors;
use crate::{Subject, for_routines};

/// A subject whose routines return an error where they would panic.
#[derive(Clone, Copy, Debug)]
pub struct Guarded<S>(pub S);

fn guarded<R>(operation: &'static str, call: impl FnOnce() -> Result<R>) -> Result<R> {
    // if `call` panics, only its operands can be half-written, and no check reads them afterwards
    let failed =
        |panic: Box<dyn Any + Send>| Error::new(ErrorKind::DeviceFailed, operation, format!("panic: {}", message(&*panic)));
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(failed(panic)))
}

/// The text with which a thread panicked.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
}

macro_rules! guard {
    (() $($method:ident: $Args:ident => $value:ty,)*) => {$(
        fn $method<T: Scalar>(&self, args: $Args<'_, T>) -> Result<$value> {
            guarded(stringify!($method), || self.0.$method(args))
        }
    )*};
}

impl<S: Subject> Subject for Guarded<S> {
    fn name(&self) -> String {
        self.0.name()
    }
    fn smallest<T: Scalar>(&self) -> f64 {
        self.0.smallest::<T>()
    }
    fn identity(&self) -> Identity {
        self.0.identity()
    }
    fn computes(&self, dtype: DType) -> bool {
        self.0.computes(dtype)
    }
    fn memory_limit(&self) -> Option<usize> {
        self.0.memory_limit()
    }
    fn devices(&self, visit: &mut dyn FnMut(&dyn Device)) {
        self.0.devices(visit);
    }
    fn one_and_several(&self) -> Option<Result<[Self; 2]>> {
        self.0.one_and_several().map(|both| both.map(|both| both.map(Guarded)))
    }
    fn devices_used(&self) -> Option<usize> {
        self.0.devices_used()
    }
    fn skip_reason(&self, dtype: DType, calls: &[Routine], property: &str) -> Option<String> {
        self.0.skip_reason(dtype, calls, property)
    }
    fn gesv_mixed(&self, a: MatRef<'_, f64>, b: MatRef<'_, f64>, x: MatMut<'_, f64>) -> Option<Result<Factors>> {
        guarded("gesv_mixed", || self.0.gesv_mixed(a, b, x).transpose()).transpose()
    }
    for_routines! { guard!() }
}
