//! A subject behind a pointer, so that the properties are compiled for one type and not once for each subject.
#![allow(unsafe_code, reason = "arguments of a type that is known by its dtype")]

use std::mem::ManuallyDrop;

use lapidary_core::{DType, Device, Gemm, GemmBatched, Getrf, GetrfBatched, Getrs, GetrsBatched, Laswp, Result, Scalar, Trsm};

use crate::Subject;
use crate::report::Identity;

/// A [`Subject`] of any type.
pub type AnySubject = dyn Erased;

/// The methods of [`Subject`] without type parameters, so that a trait object can have them.
pub trait Erased: Sync {
    /// Calls [`Subject::name`].
    fn name(&self) -> String;
    /// Calls [`Subject::smallest`].
    fn smallest(&self, dtype: DType) -> f64;
    /// Calls [`Subject::identity`].
    fn identity(&self) -> Identity;
    /// Calls [`Subject::computes`].
    fn computes(&self, dtype: DType) -> bool;
    /// Calls [`Subject::memory_limit`].
    fn memory_limit(&self) -> Option<usize>;
    /// Calls [`Subject::devices`].
    fn devices(&self, visit: &mut dyn FnMut(&dyn Device));
    /// Calls [`Subject::took_part`].
    fn took_part(&self) -> Option<usize>;
    /// Calls [`Subject::lacks`].
    fn lacks(&self, dtype: DType, routine: &str, property: &str) -> Option<String>;
    /// Runs a routine in single precision and returns its `info`.
    ///
    /// # Errors
    /// The routine of the subject returned an error.
    fn single(&self, call: Call<'_, f32>) -> Result<usize>;
    /// Runs a routine in double precision and returns its `info`.
    ///
    /// # Errors
    /// The routine of the subject returned an error.
    fn double(&self, call: Call<'_, f64>) -> Result<usize>;
}

/// A routine with its arguments.
pub enum Call<'a, T: Scalar> {
    /// A call of [`Subject::gemm`].
    Gemm(Gemm<'a, T>),
    /// A call of [`Subject::trsm`].
    Trsm(Trsm<'a, T>),
    /// A call of [`Subject::getrf`].
    Getrf(Getrf<'a, T>),
    /// A call of [`Subject::getrs`].
    Getrs(Getrs<'a, T>),
    /// A call of [`Subject::laswp`].
    Laswp(Laswp<'a, T>),
    /// A call of [`Subject::gemm_batched`].
    GemmBatched(GemmBatched<'a, T>),
    /// A call of [`Subject::getrf_batched`].
    GetrfBatched(GetrfBatched<'a, T>),
    /// A call of [`Subject::getrs_batched`].
    GetrsBatched(GetrsBatched<'a, T>),
}

impl<'a, T: Scalar> Call<'a, T> {
    /// Calls the routine of the subject. Returns `info` of a factorisation, and 0 after any other routine.
    fn of<S: Subject>(self, subject: &S) -> Result<usize> {
        match self {
            Call::Gemm(args) => subject.gemm(args).map(|()| 0),
            Call::Trsm(args) => subject.trsm(args).map(|()| 0),
            Call::Getrf(args) => subject.getrf(args),
            Call::Getrs(args) => subject.getrs(args).map(|()| 0),
            Call::Laswp(args) => subject.laswp(args).map(|()| 0),
            Call::GemmBatched(args) => subject.gemm_batched(args).map(|()| 0),
            Call::GetrfBatched(args) => subject.getrf_batched(args).map(|()| 0),
            Call::GetrsBatched(args) => subject.getrs_batched(args).map(|()| 0),
        }
    }

    /// Returns the call with the type `U` in place of `T`. `T` and `U` must be the same type.
    fn typed<U: Scalar>(self) -> Call<'a, U> {
        assert_eq!(T::DTYPE, U::DTYPE, "both are one type");
        // SAFETY: `Scalar` is sealed and each scalar type has its own dtype, so that equal dtypes mean equal types.
        unsafe { std::mem::transmute_copy(&ManuallyDrop::new(self)) }
    }
}

impl<S: Subject> Erased for S {
    fn name(&self) -> String {
        Subject::name(self)
    }
    fn smallest(&self, dtype: DType) -> f64 {
        if dtype == DType::F32 { Subject::smallest::<f32>(self) } else { Subject::smallest::<f64>(self) }
    }
    fn identity(&self) -> Identity {
        Subject::identity(self)
    }
    fn computes(&self, dtype: DType) -> bool {
        Subject::computes(self, dtype)
    }
    fn memory_limit(&self) -> Option<usize> {
        Subject::memory_limit(self)
    }
    fn devices(&self, visit: &mut dyn FnMut(&dyn Device)) {
        Subject::devices(self, visit);
    }
    fn took_part(&self) -> Option<usize> {
        Subject::took_part(self)
    }
    fn lacks(&self, dtype: DType, routine: &str, property: &str) -> Option<String> {
        Subject::lacks(self, dtype, routine, property)
    }
    fn single(&self, call: Call<'_, f32>) -> Result<usize> {
        call.of(self)
    }
    fn double(&self, call: Call<'_, f64>) -> Result<usize> {
        call.of(self)
    }
}

/// Calls the routine of the subject in the precision of the arguments.
fn run<T: Scalar>(subject: &AnySubject, call: Call<'_, T>) -> Result<usize> {
    if T::DTYPE == DType::F32 { subject.single(call.typed()) } else { subject.double(call.typed()) }
}

impl Subject for AnySubject {
    fn name(&self) -> String {
        Erased::name(self)
    }
    fn smallest<T: Scalar>(&self) -> f64 {
        Erased::smallest(self, T::DTYPE)
    }
    fn identity(&self) -> Identity {
        Erased::identity(self)
    }
    fn computes(&self, dtype: DType) -> bool {
        Erased::computes(self, dtype)
    }
    fn memory_limit(&self) -> Option<usize> {
        Erased::memory_limit(self)
    }
    fn devices(&self, visit: &mut dyn FnMut(&dyn Device)) {
        Erased::devices(self, visit);
    }
    fn took_part(&self) -> Option<usize> {
        Erased::took_part(self)
    }
    fn lacks(&self, dtype: DType, routine: &str, property: &str) -> Option<String> {
        Erased::lacks(self, dtype, routine, property)
    }
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        run(self, Call::Gemm(args)).map(drop)
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        run(self, Call::Trsm(args)).map(drop)
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        run(self, Call::Getrf(args))
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        run(self, Call::Getrs(args)).map(drop)
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        run(self, Call::Laswp(args)).map(drop)
    }
    fn gemm_batched<T: Scalar>(&self, args: GemmBatched<'_, T>) -> Result<()> {
        run(self, Call::GemmBatched(args)).map(drop)
    }
    fn getrf_batched<T: Scalar>(&self, args: GetrfBatched<'_, T>) -> Result<()> {
        run(self, Call::GetrfBatched(args)).map(drop)
    }
    fn getrs_batched<T: Scalar>(&self, args: GetrsBatched<'_, T>) -> Result<()> {
        run(self, Call::GetrsBatched(args)).map(drop)
    }
}
