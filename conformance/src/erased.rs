//! A subject behind a pointer, so that the properties are compiled for one type and not once for each type of subject.
#![allow(unsafe_code, reason = "arguments of a type that is known by its dtype")]

use std::mem::ManuallyDrop;

use lapidary_core::{
    DType, Device, Gemm, GemmBatched, Getrf, GetrfBatched, Getrs, GetrsBatched, Laswp, MatMut, MatRef, Result, Routine, Scalar,
    Trsm,
};

use crate::report::Identity;
use crate::subject::Factors;
use crate::{Subject, for_routines};

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
    /// Calls [`Subject::devices_used`].
    fn devices_used(&self) -> Option<usize>;
    /// Calls [`Subject::skip_reason`].
    fn skip_reason(&self, dtype: DType, calls: &[Routine], property: &str) -> Option<String>;
    /// Calls [`Subject::gesv_mixed`].
    fn gesv_mixed(&self, a: MatRef<'_, f64>, b: MatRef<'_, f64>, x: MatMut<'_, f64>) -> Option<Result<Factors>>;
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

/// The return value of a routine, which converts to the number `info` and back.
trait Outcome {
    fn to_info(self) -> usize;
    fn from_info(info: usize) -> Self;
}

impl Outcome for () {
    fn to_info(self) -> usize {
        0
    }
    fn from_info(_: usize) {}
}

impl Outcome for usize {
    fn to_info(self) -> usize {
        self
    }
    fn from_info(info: usize) -> usize {
        info
    }
}

macro_rules! define_call {
    (() $($method:ident: $Args:ident => $value:ty,)*) => {
        /// A routine with its arguments.
        pub enum Call<'a, T: Scalar> {$(
            #[doc = concat!("See [`Subject::", stringify!($method), "`].")]
            $Args($Args<'a, T>),
        )*}

        impl<T: Scalar> Call<'_, T> {
            /// Runs the routine of a subject. Returns the `info` of a factorisation, else 0.
            fn of<S: Subject>(self, subject: &S) -> Result<usize> {
                match self {
                    $(Call::$Args(args) => subject.$method(args).map(Outcome::to_info),)*
                }
            }
        }
    };
}

for_routines! { define_call!() }

impl<'a, T: Scalar> Call<'a, T> {
    /// Returns the call with the type `U` in place of `T`. The function panics unless `T` and `U` have the same dtype.
    fn typed<U: Scalar>(self) -> Call<'a, U> {
        assert_eq!(T::DTYPE, U::DTYPE, "both are one type");
        // SAFETY: the assertion above shows that `T` and `U` have the same dtype. The trait `Scalar` is sealed, and each scalar
        // type has its own dtype, so that `T` and `U` are the same type and the copy has the type of the original. `ManuallyDrop`
        // keeps the original from being dropped a second time.
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
    fn devices_used(&self) -> Option<usize> {
        Subject::devices_used(self)
    }
    fn skip_reason(&self, dtype: DType, calls: &[Routine], property: &str) -> Option<String> {
        Subject::skip_reason(self, dtype, calls, property)
    }
    fn gesv_mixed(&self, a: MatRef<'_, f64>, b: MatRef<'_, f64>, x: MatMut<'_, f64>) -> Option<Result<Factors>> {
        Subject::gesv_mixed(self, a, b, x)
    }
    fn single(&self, call: Call<'_, f32>) -> Result<usize> {
        call.of(self)
    }
    fn double(&self, call: Call<'_, f64>) -> Result<usize> {
        call.of(self)
    }
}

/// Calls the routine that `call` names, in the precision of its arguments, and returns `info`.
fn run<T: Scalar>(subject: &AnySubject, call: Call<'_, T>) -> Result<usize> {
    if T::DTYPE == DType::F32 { subject.single(call.typed()) } else { subject.double(call.typed()) }
}

macro_rules! run_erased {
    (() $($method:ident: $Args:ident => $value:ty,)*) => {$(
        fn $method<T: Scalar>(&self, args: $Args<'_, T>) -> Result<$value> {
            run(self, Call::$Args(args)).map(Outcome::from_info)
        }
    )*};
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
    fn devices_used(&self) -> Option<usize> {
        Erased::devices_used(self)
    }
    fn skip_reason(&self, dtype: DType, calls: &[Routine], property: &str) -> Option<String> {
        Erased::skip_reason(self, dtype, calls, property)
    }
    fn gesv_mixed(&self, a: MatRef<'_, f64>, b: MatRef<'_, f64>, x: MatMut<'_, f64>) -> Option<Result<Factors>> {
        Erased::gesv_mixed(self, a, b, x)
    }
    for_routines! { run_erased!() }
}
