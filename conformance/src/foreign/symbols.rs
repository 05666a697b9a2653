//! Looks up the routines that a library exports through one interface (Fortran or cblas), and the size of its integers.
#![allow(unsafe_code, reason = "functions of foreign libraries")]

use std::error::Error as _;
use std::path::Path;

use lapidary_core::{DType, Error, ErrorKind, Result, Routine, Scalar};
use libloading::Library as Dylib;

use super::integer::Width;
use super::probe;
use super::style::Style;

/// The files of a library.
pub(super) type Dylibs<'a> = &'a [&'static Dylib];

/// Loads a library. The library stays loaded until the program ends.
pub(super) fn load(path: &Path) -> Result<&'static Dylib> {
    // SAFETY: loading runs the initialisers of the library, which the user named as a BLAS.
    let dylib = unsafe { Dylib::new(path) }.map_err(|cause| {
        // the message of the loader tells which file or symbol is missing
        let why = cause.source().map_or_else(|| cause.to_string(), ToString::to_string);
        Error::invalid("open", format!("cannot load {}: {why}", path.display())).caused_by(cause)
    })?;
    Ok(Box::leak(Box::new(dylib)))
}

/// One interface of a library: Fortran or cblas.
#[derive(Debug)]
pub(super) struct Interface {
    /// The files that have a routine of this interface.
    files: Vec<File>,
    style: Style,
}

/// A file and the size of its integers. Another file of the library may use another size.
#[derive(Debug)]
struct File {
    dylib: &'static Dylib,
    width: Width,
}

impl Interface {
    /// Looks up the routines of one interface. The spelling of the symbols is the first one in which a file has any of the
    /// routines, or the first of all if no file has a routine.
    ///
    /// # Errors
    /// A file has routines, but the name of the library does not state the size of integers, and the file has no function
    /// from which this size can be determined.
    pub fn new(dylibs: Dylibs<'_>, styles: &[Style], routines: &[Routine], stated: Option<Width>) -> Result<Self> {
        let style = found(dylibs, styles, routines).unwrap_or(&styles[0]).clone();
        let file = |dylib| {
            let width = style.width.or(stated).or_else(|| probe::width(dylib, &style)).ok_or_else(unknown_width)?;
            Ok(File { dylib, width })
        };
        let files = dylibs.iter().copied().filter(|dylib| has(dylib, &style, routines)).map(file);
        Ok(Interface { files: files.collect::<Result<_>>()?, style })
    }

    /// Whether the library has any of the routines.
    pub fn is_there(&self) -> bool {
        !self.files.is_empty()
    }

    /// Describes the sizes of the integers in the files.
    pub fn widths(&self) -> &'static str {
        let has = |width| self.files.iter().any(|file| file.width == width);
        match (has(Width::Bits32), has(Width::Bits64)) {
            (true, true) => "32- and 64-bit integers",
            (false, true) => "64-bit integers",
            (true | false, false) => "32-bit integers",
        }
    }

    /// The size of the integers of a routine. `None` if the library lacks the routine.
    pub fn width(&self, dtype: DType, routine: Routine) -> Option<Width> {
        let symbol = self.symbol(dtype, routine);
        self.files.iter().find(|file| exists(file.dylib, &symbol)).map(|file| file.width)
    }

    /// The symbol of a routine.
    pub fn symbol(&self, dtype: DType, routine: Routine) -> String {
        self.style.symbol(dtype, routine.name())
    }

    /// Whether the library has a routine.
    pub fn has(&self, dtype: DType, routine: Routine) -> bool {
        self.width(dtype, routine).is_some()
    }

    /// Looks up a routine for numbers of the type `T`.
    ///
    /// # Safety
    /// `F` must be the type of the routine.
    ///
    /// # Errors
    /// The library lacks the routine.
    pub unsafe fn find<T: Scalar, F: Copy>(&self, routine: Routine) -> Result<F> {
        let symbol = self.symbol(T::DTYPE, routine);
        // SAFETY: the caller guarantees that `F` is the type of the routine.
        let found = self.files.iter().find_map(|file| unsafe { file.dylib.get::<F>(&*symbol) }.ok());
        found.map(|f| *f).ok_or_else(|| Error::new(ErrorKind::Unsupported, routine.name(), format!("the library has no {symbol}")))
    }
}

/// The first spelling in which a file has any of the routines.
pub(super) fn found<'a>(dylibs: Dylibs<'_>, styles: &'a [Style], routines: &[Routine]) -> Option<&'a Style> {
    styles.iter().find(|style| dylibs.iter().any(|dylib| has(dylib, style, routines)))
}

/// Whether a file has any of the routines.
fn has(dylib: &Dylib, style: &Style, routines: &[Routine]) -> bool {
    let exists = |dtype| routines.iter().any(|routine| exists(dylib, &style.symbol(dtype, routine.name())));
    [DType::F32, DType::F64].into_iter().any(exists)
}

fn unknown_width() -> Error {
    let how = "nothing tells the size of the library's integers: end its name with #lp64 (32 bits) or #ilp64 (64 bits)";
    Error::invalid("open", how)
}

fn exists(dylib: &Dylib, symbol: &str) -> bool {
    // SAFETY: the address is looked up but not used.
    unsafe { dylib.get::<*const ()>(symbol) }.is_ok()
}
