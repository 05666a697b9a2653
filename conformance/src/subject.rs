//! What the suite grades.

use lapidary_core::{DType, Device, MatMut, MatRef, Routine};
// the types in the methods of `Subject`; the macro `routines_of` uses them too
pub use lapidary_core::{Gemm, GemmBatched, Getrf, GetrfBatched, Getrs, GetrsBatched, Laswp, Result, Scalar, Trsm};

use crate::bounds::eta;
use crate::report::Identity;

/// Anything that computes the routines on host matrices.
///
/// Each method owes what the argument struct's documentation says; the suite
/// assumes nothing else. Wrong shapes are to be answered with
/// [`ErrorKind::InvalidArgument`](lapidary_core::ErrorKind::InvalidArgument)
/// before anything is written.
pub trait Subject: Sync {
    /// How reports call it, for example `cpu:0`.
    fn name(&self) -> String;

    /// The smallest positive number that the subject must compute with. A device that [flushes](Flushing) takes smaller ones
    /// for zero.
    fn smallest<T: Scalar>(&self) -> f64 {
        eta::<T>()
    }

    /// What it is, as far as it tells.
    fn identity(&self) -> Identity {
        let os = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        Identity { name: self.name(), os, ..Identity::default() }
    }

    /// Whether it computes in a precision; where not, its trials are skipped.
    fn computes(&self, _dtype: DType) -> bool {
        true
    }

    /// Bytes of memory that each of its devices may use, where somebody limits them: then a call
    /// that is refused for lack of memory is no failure, and its trial is skipped.
    fn memory_limit(&self) -> Option<usize> {
        None
    }

    /// Shows the devices behind it; to a subject without any, what is asked of devices
    /// does not apply.
    fn devices(&self, _visit: &mut dyn FnMut(&dyn Device)) {}

    /// The same subject on one device and on several. `None` if that makes no difference, as for a library; an error if one of
    /// the two does not open.
    fn one_and_several(&self) -> Option<Result<[Self; 2]>>
    where
        Self: Sized,
    {
        None
    }

    /// How many devices had a task since last asked; none if it cannot tell. Devices take tasks
    /// as they come, so that one of several may do all.
    fn took_part(&self) -> Option<usize> {
        None
    }

    /// The reason for which a property that calls these routines does not apply to the subject, if there is one: the trial is
    /// skipped. Only a subject that lacks what the property needs may give a reason.
    fn lacks(&self, dtype: DType, _calls: &[Routine], _property: &str) -> Option<String> {
        (!self.computes(dtype)).then(|| format!("it does not compute in {dtype}"))
    }

    /// `C ← α·op(A)·op(B) + β·C`.
    ///
    /// # Errors
    /// Wrong shapes, or a failed device.
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()>;

    /// `B ← α·op(A)⁻¹·B` or `B ← α·B·op(A)⁻¹`.
    ///
    /// # Errors
    /// Wrong shapes, or a failed device.
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()>;

    /// `A = P·L·U` in place. The value is LAPACK's `info`: zero, or the 1-based
    /// index of the first pivot that is exactly zero.
    ///
    /// # Errors
    /// Wrong shapes, or a failed device; never a zero pivot.
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize>;

    /// `B ← op(A)⁻¹·B` from the factors of A.
    ///
    /// # Errors
    /// Wrong shapes or row indices, or a failed device.
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()>;

    /// Row exchanges.
    ///
    /// # Errors
    /// Wrong row indices, or a failed device.
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()>;

    /// `C ← α·op(A)·op(B) + β·C` for each matrix of a batch; by default one call for each.
    ///
    /// # Errors
    /// Wrong shapes, or a failed device.
    fn gemm_batched<T: Scalar>(&self, args: GemmBatched<'_, T>) -> Result<()> {
        let GemmBatched { alpha, op_a, a, op_b, b, beta, c } = args.check()?.into_inner();
        let mut each = c.into_matrices().enumerate();
        each.try_for_each(|(i, c)| self.gemm(Gemm { alpha, op_a, a: a.get(i), op_b, b: b.get(i), beta, c }))
    }

    /// `A = P·L·U` of each matrix of a batch, in place; by default one call for each.
    ///
    /// # Errors
    /// Wrong shapes, or a failed device; never a zero pivot.
    fn getrf_batched<T: Scalar>(&self, args: GetrfBatched<'_, T>) -> Result<()> {
        let GetrfBatched { a, ipiv, info, pivoting } = args.check()?.into_inner();
        let order = a.shape().0.min(a.shape().1);
        let mut each = a.into_matrices().zip(info).enumerate();
        each.try_for_each(|(i, (a, info))| {
            let told = self.getrf(Getrf { a, ipiv: &mut ipiv[i * order..][..order], pivoting })?;
            *info = i32::try_from(told).expect("info counts rows");
            Ok(())
        })
    }

    /// `B ← op(A)⁻¹·B` from the factors of each matrix of a batch; by default one call for each.
    ///
    /// # Errors
    /// Wrong shapes or row indices, or a failed device.
    fn getrs_batched<T: Scalar>(&self, args: GetrsBatched<'_, T>) -> Result<()> {
        let GetrsBatched { op, lu, ipiv, b } = args.check()?.into_inner();
        let order = lu.shape().0;
        let mut each = b.into_matrices().enumerate();
        each.try_for_each(|(i, b)| self.getrs(Getrs { op, lu: lu.get(i), ipiv: &ipiv[i * order..][..order], b }))
    }
}

/// Passes the routines of a [`Subject`] to a macro, as `method: Arguments => value` for each routine, after what the caller adds.
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

/// Implements the routines of a [`Subject`] by those of one of its fields, whose factorisation may have another name.
#[macro_export]
macro_rules! routines_of {
    ($field:tt, $getrf:ident) => {
        $crate::for_routines! { $crate::methods_of!($field, $getrf) }
    };
}

/// The methods of [`routines_of`].
#[doc(hidden)]
#[macro_export]
macro_rules! methods_of {
    (($field:tt, $getrf:ident) $($method:ident: $Args:ident => $value:ty,)*) => {$(
        fn $method<T: $crate::subject::Scalar>(&self, args: $crate::subject::$Args<'_, T>) -> $crate::subject::Result<$value> {
            // the field's factorisation may return `info` in a type of its own
            $crate::methods_of!(@call $method, $getrf, self.$field, args).map(::std::convert::Into::into)
        }
    )*};
    (@call getrf, $getrf:ident, $to:expr, $args:ident) => { $to.$getrf($args) };
    (@call $method:ident, $getrf:ident, $to:expr, $args:ident) => { $to.$method($args) };
}

/// A subject that takes subnormal operands and results for zero. All other requirements apply to it.
#[derive(Clone, Copy, Debug)]
pub struct Flushing<'a, S: ?Sized> {
    subject: &'a S,
    flushes: bool,
}

impl<'a, S: Subject + ?Sized> Flushing<'a, S> {
    /// The subject, owing nothing below the normal numbers.
    pub fn of(subject: &'a S) -> Self {
        Flushing { subject, flushes: true }
    }

    /// The subject, owing nothing below the normal numbers if it is seen to [flush](flushes) them.
    ///
    /// # Errors
    /// A call failed.
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
    fn lacks(&self, dtype: DType, calls: &[Routine], property: &str) -> Option<String> {
        self.subject.lacks(dtype, calls, property)
    }
    routines_of!(subject, getrf);
}

/// Whether a subject takes subnormal numbers for zero, operands and results.
///
/// # Errors
/// A call failed.
pub fn flushes<S: Subject + ?Sized, T: Scalar>(subject: &S) -> Result<bool> {
    flushed::<S, T>(subject).map(|(operands, results)| operands && results)
}

/// Whether a subject takes subnormal numbers for zero: as operands (a subnormal number times
/// four), and as results (the smallest normal number times a half).
///
/// # Errors
/// A call failed.
pub fn flushed<S: Subject + ?Sized, T: Scalar>(subject: &S) -> Result<(bool, bool)> {
    let is_zero = |x: f64, y: f64| {
        let (x, y, mut z) = ([T::from_f64(x)], [T::from_f64(y)], [T::ONE]);
        let [x, y] = [&x, &y].map(|x| MatRef::col_major(x, 1, 1));
        subject.gemm(Gemm::new(x?, y?, MatMut::col_major(&mut z, 1, 1)?)).map(|()| z[0] == T::ZERO)
    };
    Ok((is_zero(T::MIN_POSITIVE / 2.0, 4.0)?, is_zero(T::MIN_POSITIVE, 0.5)?))
}
