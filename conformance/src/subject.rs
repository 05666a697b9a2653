//! The interface of everything that the suite can grade.

use lapidary_core::{Accuracy, DType, Device, MatMut, MatRef, Routine};
// these types appear in the signatures of `Subject`, and the macro `routines_of` names them too
pub use lapidary_core::{Gemm, GemmBatched, Getrf, GetrfBatched, Getrs, GetrsBatched, Laswp, Result, Scalar, Trsm};

use crate::bounds::eta;
use crate::report::Identity;

/// The precision of the factors with which a subject has solved a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factors {
    /// The factors are in single precision, and X was refined in double precision.
    Single,
    /// The factors are in double precision.
    Double,
}

/// A library, a device or a machine that computes the routines on host matrices.
///
/// Each method for a routine must do what the documentation of its argument struct says; the suite assumes nothing else. If the
/// shapes of the operands do not agree, the method must return
/// [`ErrorKind::InvalidArgument`](lapidary_core::ErrorKind::InvalidArgument) before it writes anything.
pub trait Subject: Sync {
    /// Name of the subject in reports, for example `cpu:0`.
    fn name(&self) -> String;

    /// The smallest positive number that the subject must compute with. A device that [flushes](Flushing) treats smaller
    /// numbers as zero.
    fn smallest<T: Scalar>(&self) -> f64 {
        eta::<T>()
    }

    /// Device, driver and interface of the subject. A property that the subject does not report is an empty text.
    fn identity(&self) -> Identity {
        let os = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        Identity { name: self.name(), os, ..Identity::default() }
    }

    /// Whether the subject computes in a precision. Trials in any other precision are skipped.
    fn computes(&self, _dtype: DType) -> bool {
        true
    }

    /// The memory limit of each device in bytes, if the user set a limit. Under a memory limit, a trial in which a call lacks
    /// memory is skipped and does not fail.
    fn memory_limit(&self) -> Option<usize> {
        None
    }

    /// Passes each device of the subject to `visit`. If the subject has no devices, the trials of devices are skipped.
    fn devices(&self, _visit: &mut dyn FnMut(&dyn Device)) {}

    /// The same subject on one device and on several. `None` if the subject cannot choose the number of devices, for example
    /// because it is a library. The value is an error if one of the two machines cannot be opened.
    fn one_and_several(&self) -> Option<Result<[Self; 2]>>
    where
        Self: Sized,
    {
        None
    }

    /// The number of devices that ran a task since the last call of this method. `None` if the subject does not know this number.
    /// On a machine of several devices the number may be one, since the first free device takes the next task.
    fn devices_used(&self) -> Option<usize> {
        None
    }

    /// The reason for which the property `_property` does not apply to the subject, so that its trial is skipped. A subject may
    /// return a reason only if it lacks something that the property needs.
    fn skip_reason(&self, dtype: DType, _calls: &[Routine], _property: &str) -> Option<String> {
        (!self.computes(dtype)).then(|| format!("it does not compute in {dtype}"))
    }

    /// `C ← α·op(A)·op(B) + β·C`.
    ///
    /// # Errors
    /// The shapes of the operands do not agree, or a device failed.
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()>;

    /// `B ← α·op(A)⁻¹·B` or `B ← α·B·op(A)⁻¹`.
    ///
    /// # Errors
    /// The shapes of the operands do not agree, or a device failed.
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()>;

    /// `A = P·L·U` in place. Returns LAPACK's `info`: zero, or the 1-based index of the first pivot that is exactly zero.
    ///
    /// # Errors
    /// The length of the array for row exchanges is wrong, or a device failed. A zero pivot is no error.
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize>;

    /// `B ← op(A)⁻¹·B` from the factors of A that [`Subject::getrf`] computed.
    ///
    /// # Errors
    /// The shapes of the operands do not agree, a row index is outside the matrix, or a device failed.
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()>;

    /// Exchanges rows of A, as LAPACK's laswp does.
    ///
    /// # Errors
    /// A row index is outside the matrix, or a device failed.
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()>;

    /// `X ← A⁻¹·B` in double precision. The subject factors A in single precision and refines X, as LAPACK's dsgesv does. If
    /// refinement does not converge, the subject factors A in double precision. `None` if the subject has no such routine.
    ///
    /// # Errors
    /// The shapes of the operands do not agree, a pivot in double precision is exactly zero, or a device failed. If a pivot is zero,
    /// the kind of the error is [`ErrorKind::Singular`](lapidary_core::ErrorKind::Singular), and X is not changed.
    fn gesv_mixed(&self, _a: MatRef<'_, f64>, _b: MatRef<'_, f64>, _x: MatMut<'_, f64>) -> Option<Result<Factors>> {
        None
    }

    /// `C ← α·op(A)·op(B) + β·C` for each matrix of a batch. The default implementation calls [`Subject::gemm`] for each
    /// matrix.
    ///
    /// # Errors
    /// The shapes of the operands do not agree, or a device failed.
    fn gemm_batched<T: Scalar>(&self, args: GemmBatched<'_, T>) -> Result<()> {
        let GemmBatched { alpha, op_a, a, op_b, b, beta, c } = args.check()?.into_inner();
        let mut each = c.into_matrices().enumerate();
        each.try_for_each(|(i, c)| self.gemm(Gemm { alpha, op_a, a: a.get(i), op_b, b: b.get(i), beta, c }))
    }

    /// `A = P·L·U` in place for each matrix of a batch. The default implementation calls [`Subject::getrf`] for each
    /// matrix.
    ///
    /// # Errors
    /// The shapes of the operands do not agree, or a device failed. A zero pivot is no error.
    fn getrf_batched<T: Scalar>(&self, args: GetrfBatched<'_, T>) -> Result<()> {
        let GetrfBatched { a, ipiv, info, pivoting } = args.check()?.into_inner();
        let order = a.shape().0.min(a.shape().1);
        let mut each = a.into_matrices().zip(info).enumerate();
        each.try_for_each(|(i, (a, info))| {
            let told = self.getrf(Getrf { a, ipiv: &mut ipiv[i * order..][..order], pivoting, accuracy: Accuracy::default() })?;
            *info = i32::try_from(told).expect("info counts rows");
            Ok(())
        })
    }

    /// `B ← op(A)⁻¹·B` from the factors of each matrix of a batch. The default implementation calls [`Subject::getrs`] for
    /// each matrix.
    ///
    /// # Errors
    /// The shapes of the operands do not agree, a row index is outside the matrix, or a device failed.
    fn getrs_batched<T: Scalar>(&self, args: GetrsBatched<'_, T>) -> Result<()> {
        let GetrsBatched { op, lu, ipiv, b } = args.check()?.into_inner();
        let order = lu.shape().0;
        let mut each = b.into_matrices().enumerate();
        each.try_for_each(|(i, b)| self.getrs(Getrs::new(lu.get(i), &ipiv[i * order..][..order], b).op(op)))
    }
}

/// Passes the list of all routines of a [`Subject`] (method, argument struct and type of the result) to the macro `$macro`, after
/// the tokens `$added`.
#[macro_export]
macro_rules! for_routines {
    ($($macro:ident)::+!($($added:tt)*)) => {
        $($macro)::+! {
            ($($added)*)
            gemm: Gemm => (),
            trsm: Trsm => (),
            getrf: Getrf => usize,
            getrs: Getrs => (),
            laswp: Laswp => (),
            gemm_batched: GemmBatched => (),
            getrf_batched: GetrfBatched => (),
            getrs_batched: GetrsBatched => (),
        }
    };
}

/// Implements each routine of a [`Subject`] by calling the same routine of one of its fields. `$getrf` is the name of the method by
/// which this field factors a matrix.
#[macro_export]
macro_rules! routines_of {
    ($field:tt, $getrf:ident) => {
        $crate::for_routines! { $crate::methods_of!($field, $getrf) }
    };
}

/// Expands to the methods that [`routines_of`] implements.
#[doc(hidden)]
#[macro_export]
macro_rules! methods_of {
    (($field:tt, $getrf:ident) $($method:ident: $Args:ident => $value:ty,)*) => {$(
        fn $method<T: $crate::subject::Scalar>(&self, args: $crate::subject::$Args<'_, T>) -> $crate::subject::Result<$value> {
            // a method of the field may return a type of its own, which converts to the number `info`
            $crate::methods_of!(@call $method, $getrf, self.$field, args).map(::std::convert::Into::into)
        }
    )*};
    (@call getrf, $getrf:ident, $to:expr, $args:ident) => { $to.$getrf($args) };
    (@call $method:ident, $getrf:ident, $to:expr, $args:ident) => { $to.$method($args) };
}

/// A subject that may treat subnormal operands and results as zero. All other requirements apply to this subject unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Flushing<'a, S: ?Sized> {
    subject: &'a S,
    flushes: bool,
}

impl<'a, S: Subject + ?Sized> Flushing<'a, S> {
    /// Wraps a subject that need not compute with subnormal numbers: it may treat them as zero.
    pub fn of(subject: &'a S) -> Self {
        Flushing { subject, flushes: true }
    }

    /// Wraps a subject. If two products show that the subject [`flushes`] subnormal numbers, the subject need not compute with
    /// subnormal numbers.
    ///
    /// # Errors
    /// A call of the wrapped subject returned an error.
    pub fn if_seen<T: Scalar>(subject: &'a S) -> Result<Self> {
        Ok(Flushing { subject, flushes: flushes::<S, T>(subject)? })
    }
}

impl<S: Subject + ?Sized> Subject for Flushing<'_, S> {
    fn name(&self) -> String {
        format!("{}, flushing", self.subject.name())
    }
    fn smallest<T: Scalar>(&self) -> f64 {
        if self.flushes { T::MIN_POSITIVE } else { self.subject.smallest::<T>() }
    }
    fn computes(&self, dtype: DType) -> bool {
        self.subject.computes(dtype)
    }
    fn memory_limit(&self) -> Option<usize> {
        self.subject.memory_limit()
    }
    fn devices(&self, visit: &mut dyn FnMut(&dyn Device)) {
        self.subject.devices(visit);
    }
    fn skip_reason(&self, dtype: DType, calls: &[Routine], property: &str) -> Option<String> {
        self.subject.skip_reason(dtype, calls, property)
    }
    fn gesv_mixed(&self, a: MatRef<'_, f64>, b: MatRef<'_, f64>, x: MatMut<'_, f64>) -> Option<Result<Factors>> {
        self.subject.gesv_mixed(a, b, x)
    }
    routines_of!(subject, getrf);
}

/// Whether a subject treats subnormal numbers as zero, both in operands and in results.
///
/// # Errors
/// A call of the subject returned an error.
pub fn flushes<S: Subject + ?Sized, T: Scalar>(subject: &S) -> Result<bool> {
    flushed::<S, T>(subject).map(|(operands, results)| operands && results)
}

/// Whether a subject treats subnormal operands as zero, and whether it treats subnormal results as zero. The test for operands
/// multiplies a subnormal number by four. The test for results multiplies the smallest normal number by one half.
///
/// # Errors
/// A call of the subject returned an error.
pub fn flushed<S: Subject + ?Sized, T: Scalar>(subject: &S) -> Result<(bool, bool)> {
    let is_zero = |x: f64, y: f64| {
        let (x, y, mut z) = ([T::from_f64(x)], [T::from_f64(y)], [T::ONE]);
        let [x, y] = [&x, &y].map(|x| MatRef::col_major(x, 1, 1));
        subject.gemm(Gemm::new(x?, y?, MatMut::col_major(&mut z, 1, 1)?)).map(|()| z[0] == T::ZERO)
    };
    Ok((is_zero(T::MIN_POSITIVE / 2.0, 4.0)?, is_zero(T::MIN_POSITIVE, 0.5)?))
}
