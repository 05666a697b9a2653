//! A loaded library as a subject.

use std::panic::resume_unwind;
use std::thread;

use lapidary_core::{DType, Error, ErrorKind, Gemm, Getrf, Getrs, Laswp, Result, Scalar, Trsm, TrsmMode};

use super::integer::{Width, by_width};
use super::names::{Affixes, Source};
use super::style::{self, KNOWN_PREFIXES};
use super::symbols::{Dylibs, Interface, found, load};
use super::version::version;
use super::{cblas, fortran};
use crate::Subject;
use crate::report::Identity;

/// Routines that are called through the Fortran interface.
const FORTRAN: &[&str] = &["gemm", "trsm", "getrf", "getrs", "laswp"];

/// Routines that are called through cblas.
const CBLAS: &[&str] = &["gemm", "trsm"];

/// A BLAS, a LAPACK or both, loaded from shared libraries.
#[derive(Debug)]
pub struct Library {
    name: String,
    /// The name and version that the library reports.
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
        let fortran = Interface::new(&dylibs, &style::fortran(&source.affixes), FORTRAN, source.width)?;
        let cblas = || Interface::new(&dylibs, &style::cblas(&source.affixes), CBLAS, source.width);
        let cblas = (!source.fortran).then(cblas).transpose()?.filter(Interface::is_there);
        if cblas.is_none() && !fortran.is_there() {
            return Err(Error::invalid("open", nothing(name, &dylibs, &source.affixes)));
        }
        let prefix = source.affixes.prefix.unwrap_or_default();
        Ok(Library { name: name.into(), version: version(&dylibs, &prefix), fortran, cblas })
    }

    /// The cblas interface, if it has the routine.
    fn cblas(&self, dtype: DType, routine: &str) -> Option<&Interface> {
        self.cblas.as_ref().filter(|cblas| cblas.has(dtype, routine))
    }

    fn has(&self, dtype: DType, routine: &str) -> bool {
        self.cblas(dtype, routine).is_some() || self.fortran.has(dtype, routine)
    }
}

/// The error message for a library without routines. If the symbols of the library have a known prefix, the message gives
/// one of the symbols.
fn nothing(name: &str, dylibs: Dylibs<'_>, stated: &Affixes) -> String {
    let style = style::fortran(stated).swap_remove(0);
    let none =
        format!("{name} has no routine of the BLAS or LAPACK, such as {} or {}", style.named("dgemm"), style.named("sgetrf"));
    let prefixed = |prefix: &&str| {
        let styles = style::fortran(&Affixes { prefix: Some((*prefix).to_owned()), suffix: None });
        found(dylibs, &styles, FORTRAN).map(|style| (style.named("dgemm"), style.affixes()))
    };
    match KNOWN_PREFIXES.iter().find_map(prefixed) {
        Some((symbol, affixes)) if stated == &Affixes::default() => {
            format!("{none}; its names are like {symbol}: write {name}{}", affixes.option())
        }
        _ => format!("{none}; if its names carry more, end yours with #prefix=P, #suffix=S or #prefix=P,suffix=S"),
    }
}

/// Runs `act` on a thread with a stack of 64 MiB. If OpenBLAS is built for many CPUs, its recursive factorisation overflows
/// the stack of an ordinary thread (<https://github.com/OpenMathLib/OpenBLAS/issues/3229>).
fn with_stack<R: Send>(operation: &'static str, act: impl FnOnce() -> Result<R> + Send) -> Result<R> {
    const BYTES: usize = 64 << 20;
    let refused = |error| {
        let what = format!("no thread with a stack of {} MiB can be started", BYTES >> 20);
        Error::new(ErrorKind::OutOfHostMemory, operation, what).caused_by(error)
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(BYTES).spawn_scoped(scope, act).map_err(refused)?;
        thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// The reason for which a property does not apply to any BLAS or LAPACK: no call asks for it, or the call could end the
/// program.
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

/// The routines that the trial of a property calls.
fn needed(routine: &str, property: &str) -> &'static [&'static str] {
    match routine {
        "gemm" | "faults" => &["gemm"],
        "trsm" => &["trsm"],
        "laswp" => &["laswp"],
        "getrf" => &["getrf"],
        "solve" => &["getrf", "getrs"],
        "memory" if property == "offsets_beyond_32_bits" => &["gemm", "laswp"],
        "memory" if property == "stale_nan_does_not_leak" => &["gemm"],
        "memory" => &["gemm", "trsm", "getrf", "getrs"],
        "large" if property == "matrix_in_host_memory" => &["gemm", "trsm", "laswp"],
        // the name of a pinned case begins with the name of its routine
        "cases" => property.split_once('_').map_or(&[], |(routine, about)| needed(routine, about)),
        // the default implementations call one routine for each matrix
        "batched" => &["gemm", "getrf", "getrs"],
        _ => &[],
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

    fn lacks(&self, dtype: DType, routine: &str, property: &str) -> Option<String> {
        missing(property).map(str::to_owned).or_else(|| {
            let needed = needed(routine, property);
            let symbol = needed.iter().find(|routine| !self.has(dtype, routine))?;
            Some(format!("the library has no {}", self.fortran.symbol(dtype, symbol)))
        })
    }

    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let args = args.check()?.into_inner();
        match self.cblas(T::DTYPE, "gemm") {
            Some(interface) => by_width!(cblas::gemm(interface, args)),
            None => by_width!(fortran::gemm(&self.fortran, args)),
        }
    }

    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        let args = args.check()?.into_inner();
        if args.mode == TrsmMode::Inverted {
            return Err(Error::new(ErrorKind::Unsupported, "trsm", "the BLAS does not let a caller ask for inverted blocks"));
        }
        match self.cblas(T::DTYPE, "trsm") {
            Some(interface) => by_width!(cblas::trsm(interface, args)),
            None => by_width!(fortran::trsm(&self.fortran, args)),
        }
    }

    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        let args = args.check()?.into_inner();
        with_stack("getrf", || by_width!(fortran::getrf(&self.fortran, args)))
    }

    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        by_width!(fortran::getrs(&self.fortran, args.check()?.into_inner()))
    }

    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        by_width!(fortran::laswp(&self.fortran, args.check()?.into_inner()))
    }
}
