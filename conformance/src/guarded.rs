//! A subject whose panics become errors.
//!
//! A panic that leaves a check would end the trial, and the failing case would be lost. If the panic becomes the error of a
//! call, the check fails in its case, the case is shrunk, and the run continues.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lapidary_core::{
    DType, Device, Error, ErrorKind, Gemm, GemmBatched, Getrf, GetrfBatched, Getrs, GetrsBatched, Laswp, Result, Scalar, Trsm,
};

use crate::Subject;
use crate::report::Identity;

/// A subject whose routines return an error where they would panic.
#[derive(Clone, Copy, Debug)]
pub struct Guarded<S>(pub S);

fn guarded<R>(operation: &'static str, call: impl FnOnce() -> Result<R>) -> Result<R> {
    // a panic can leave only the operands of this call half-written, and no check reads them afterwards
    let failed =
        |panic: Box<dyn Any + Send>| Error::new(ErrorKind::DeviceFailed, operation, format!("panic: {}", message(&*panic)));
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| Err(failed(panic)))
}

/// The message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a message".to_owned())
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
    fn took_part(&self) -> Option<usize> {
        self.0.took_part()
    }
    fn lacks(&self, dtype: DType, routine: &str, property: &str) -> Option<String> {
        self.0.lacks(dtype, routine, property)
    }
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        guarded("gemm", || self.0.gemm(args))
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        guarded("trsm", || self.0.trsm(args))
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        guarded("getrf", || self.0.getrf(args))
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        guarded("getrs", || self.0.getrs(args))
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        guarded("laswp", || self.0.laswp(args))
    }
    fn gemm_batched<T: Scalar>(&self, args: GemmBatched<'_, T>) -> Result<()> {
        guarded("gemm_batched", || self.0.gemm_batched(args))
    }
    fn getrf_batched<T: Scalar>(&self, args: GetrfBatched<'_, T>) -> Result<()> {
        guarded("getrf_batched", || self.0.getrf_batched(args))
    }
    fn getrs_batched<T: Scalar>(&self, args: GetrsBatched<'_, T>) -> Result<()> {
        guarded("getrs_batched", || self.0.getrs_batched(args))
    }
}
