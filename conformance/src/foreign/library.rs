//! A loaded library as a subject.

use lapidary_core::{Error, ErrorKind, Gemm, Getrf, Getrs, Laswp, Result, Scalar, Trsm, TrsmMode};

use super::integer::{Width, by_width};
use super::names::{CBLAS, FORTRAN, Source};
use super::symbols::{Interface, load};
use super::{cblas, fortran};
use crate::Subject;

/// A BLAS, a LAPACK or both, loaded from shared libraries.
#[derive(Debug)]
pub struct Library {
    name: String,
    fortran: Interface,
    cblas: Option<Interface>,
}

impl Library {
    /// Loads the library of a [name](super) such as `blas:libopenblas.so.0`.
    ///
    /// # Errors
    /// The name is misspelled, a file cannot be loaded, or none has a routine of the BLAS
    /// or LAPACK.
    pub fn open(name: &str) -> Result<Self> {
        let source = Source::parse(name)?;
        let dylibs = source.paths.iter().map(|path| load(path)).collect::<Result<Vec<_>>>()?;
        let fortran = Interface::new(&dylibs, FORTRAN, &["gemm", "trsm", "getrf", "getrs", "laswp"]);
        let cblas = (!source.fortran).then(|| Interface::new(&dylibs, CBLAS, &["gemm", "trsm"])).filter(Interface::is_there);
        if cblas.is_none() && !fortran.is_there() {
            let none = format!("{name} has no routine of the BLAS or LAPACK, such as dgemm_ or sgetrf_");
            return Err(Error::new(ErrorKind::NoSuchDevice, "open", none));
        }
        Ok(Library { name: name.into(), fortran, cblas })
    }

    /// The interface of cblas, where it has a routine.
    fn cblas<T: Scalar>(&self, routine: &str) -> Option<&Interface> {
        self.cblas.as_ref().filter(|cblas| cblas.has(T::DTYPE, routine))
    }
}

impl Subject for Library {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let args = args.check()?.into_inner();
        match self.cblas::<T>("gemm") {
            Some(interface) => by_width!(cblas::gemm(interface, args)),
            None => by_width!(fortran::gemm(&self.fortran, args)),
        }
    }

    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let args = args.check()?.into_inner();
        if args.mode == TrsmMode::Inverted {
            return Err(Error::new(ErrorKind::Unsupported, "trsm", "the BLAS does not let a caller ask for inverted blocks"));
        }
        match self.cblas::<T>("trsm") {
            Some(interface) => by_width!(cblas::trsm(interface, args)),
            None => by_width!(fortran::trsm(&self.fortran, args)),
        }
    }

    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        by_width!(fortran::getrf(&self.fortran, args.check()?.into_inner()))
    }

    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        by_width!(fortran::getrs(&self.fortran, args.check()?.into_inner()))
    }

    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        by_width!(fortran::laswp(&self.fortran, args.check()?.into_inner()))
    }
}
