//! A loaded BLAS or LAPACK library as a subject.

use std::panic::resume_unwind;
use std::thread;

use lapidary_core::{DType, Error, ErrorKind, Gemm, Getrf, Getrs, Laswp, Origin, Result, Routine, Scalar, Trsm, TrsmMode};

use super::integer::{Width, by_width};
use super::names::{Affixes, Source};
use super::style::{self, KNOWN_PREFIXES};
use super::symbols::{Dylibs, Interface, found, load};
use super::version::version;
use super::{cblas, fortran};
use crate::Subject;
use crate::report::Identity;
use crate::suite::called_routines;

/// The routines of the C interface that the suite calls.
fn of_cblas() -> Vec<Routine> {
    called_routines().into_iter().filter(|routine| routine.description().origin == Origin::Blas).collect()
}

/// A BLAS, a LAPACK or both, loaded from one or more shared libraries.
#[derive(Debug)]
pub struct Library {
    name: String,
    /// The name and version that the library reports, if it reports them.
    version: Option<String>,
    fortran: Interface,
    cblas: Option<Interface>,
}

impl Library {
    /// Loads the library of a [name](super) such as `blas:libopenblas.so.0`.
    ///
    /// # Errors
    /// The name is misspelled, a file cannot be loaded, no file has a routine of the BLAS or LAPACK, or the size of a
    /// file's integers is unknown.
    pub fn open(name: &str) -> Result<Self> {
        let source = Source::parse(name)?;
        let dylibs = source.paths.iter().map(|path| load(path)).collect::<Result<Vec<_>>>()?;
        let fortran = Interface::new(&dylibs, &style::fortran(&source.affixes), &called_routines(), source.width)?;
        let cblas = || Interface::new(&dylibs, &style::cblas(&source.affixes), &of_cblas(), source.width);
        let cblas = (!source.fortran).then(cblas).transpose()?.filter(Interface::is_there);
        if cblas.is_none() && !fortran.is_there() {
            return Err(Error::invalid("open", nothing(name, &dylibs, &source.affixes)));
        }
        let prefix = source.affixes.prefix.unwrap_or_default();
        Ok(Library { name: name.into(), version: version(&dylibs, &prefix), fortran, cblas })
    }

    /// The cblas interface of the library. `None` if it lacks the routine.
    fn cblas(&self, dtype: DType, routine: Routine) -> Option<&Interface> {
        self.cblas.as_ref().filter(|cblas| cblas.has(dtype, routine))
    }

    fn has(&self, dtype: DType, routine: Routine) -> bool {
        self.cblas(dtype, routine).is_some() || self.fortran.has(dtype, routine)
    }
}

/// The error message for a library without routines. If the symbols of the library have a known prefix, the message names one of
/// these symbols.
fn nothing(name: &str, dylibs: Dylibs<'_>, stated: &Affixes) -> String {
    let style = style::fortran(stated).swap_remove(0);
    let none =
        format!("{name} has no routine of the BLAS or LAPACK, such as {} or {}", style.named("dgemm"), style.named("sgetrf"));
    let prefixed = |prefix: &&str| {
        let styles = style::fortran(&Affixes { prefix: Some((*prefix).to_owned()), suffix: None });
        found(dylibs, &styles, &called_routines()).map(|style| (style.named("dgemm"), style.affixes()))
    };
    match KNOWN_PREFIXES.iter().find_map(prefixed) {
        Some((symbol, affixes)) if stated == &Affixes::default() => {
            format!("{none}; its names are like {symbol}: write {name}{}", affixes.option())
        }
        _ => format!("{none}; if its names carry more, end yours with #prefix=P, #suffix=S or #prefix=P,suffix=S"),
    }
}

/// Runs `act` on a thread with a stack of 64 MiB. The recursive factorisation of an OpenBLAS that is built for many CPUs overflows
/// the stack of an ordinary thread (<https://github.com/OpenMathLib/OpenBLAS/issues/3229>).
fn with_stack<R: Send>(routine: Routine, act: impl FnOnce() -> Result<R> + Send) -> Result<R> {
    const BYTES: usize = 64 << 20;
    let refused = |error| {
        let what = format!("no thread with a stack of {} MiB can be started", BYTES >> 20);
        Error::new(ErrorKind::OutOfHostMemory, routine.name(), what).caused_by(error)
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(BYTES).spawn_scoped(scope, act).map_err(refused)?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// The reason for which a property does not apply to any BLAS or LAPACK. `None` if the property applies.
fn missing(property: &str) -> Option<&'static str> {
    match property {
        "wrong_shapes_are_refused" | "wrong_arguments_are_refused" | "a_refused_call_leaves_no_trace" => {
            Some("wrong arguments are refused before they reach the library, whose xerbla may stop the program")
        }
        "inverted_blocks" => Some("the BLAS does not let a caller ask for inverted blocks"),
        "without_pivoting" => Some("LAPACK has no factorisation without pivoting"),
        _ => None,
    }
}

impl Subject for Library {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn identity(&self) -> Identity {
        let os = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        let (api, known) = match &self.cblas {
            Some(cblas) if !self.fortran.is_there() => ("cblas", cblas),
            Some(_) => ("cblas and Fortran", &self.fortran),
            None => ("Fortran", &self.fortran),
        };
        let driver = self.version.clone().unwrap_or_else(|| "a library that does not name itself".into());
        Identity { name: self.name(), device: "CPU".into(), driver, api: format!("{api}, {}", known.widths()), os }
    }

    fn skip_reason(&self, dtype: DType, calls: &[Routine], property: &str) -> Option<String> {
        missing(property).map(str::to_owned).or_else(|| {
            let absent = calls.iter().find(|routine| !self.has(dtype, **routine))?;
            Some(format!("the library has no {}", self.fortran.symbol(dtype, *absent)))
        })
    }

    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let args = args.check()?.into_inner();
        match self.cblas(T::DTYPE, Routine::Gemm) {
            Some(interface) => by_width!(Routine::Gemm, cblas::gemm(interface, args)),
            None => by_width!(Routine::Gemm, fortran::gemm(&self.fortran, args)),
        }
    }

    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let args = args.check()?.into_inner();
        if args.mode == TrsmMode::Inverted {
            return Err(Error::new(
                ErrorKind::Unsupported,
                Routine::Trsm.name(),
                "the BLAS does not let a caller ask for inverted blocks",
            ));
        }
        match self.cblas(T::DTYPE, Routine::Trsm) {
            Some(interface) => by_width!(Routine::Trsm, cblas::trsm(interface, args)),
            None => by_width!(Routine::Trsm, fortran::trsm(&self.fortran, args)),
        }
    }

    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        let args = args.check()?.into_inner();
        with_stack(Routine::Getrf, || by_width!(Routine::Getrf, fortran::getrf(&self.fortran, args)))
    }

    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        by_width!(Routine::Getrs, fortran::getrs(&self.fortran, args.check()?.into_inner()))
    }

    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        by_width!(Routine::Laswp, fortran::laswp(&self.fortran, args.check()?.into_inner()))
    }
}
