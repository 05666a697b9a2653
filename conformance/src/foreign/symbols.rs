//! Looks up the routines that a library exports through one interface (Fortran or cblas), and the size of the integers in each
//! file.
#![allow(unsafe_code, reason = "functions of foreign libraries")]

use std::error::Error as _;
use std::path::Path;

use lapidary_core::{DType, Error, ErrorKind, Result, Routine, Scalar};
use libloading::Library as Dylib;

use super::integer::Width;
use super::probe;
use super::style::Style;

/// The files of which a library consists.
pub(super) type Dylibs<'a> = &'a [&'static Dylib];

/// Loads a file of a library. The file stays loaded until the program ends.
pub(super) fn load(path: &Path) -> Result<&'static Dylib> {
    // SAFETY: loading runs the initialisers of the file. The user named the file as a BLAS, and so vouches for its initialisers.
    let dylib = unsafe { Dylib::new(path) }.map_err(|cause| {
        // the message of the loader states which file or symbol is missing
        let why = cause.source().map_or_else(|| cause.to_string(), ToString::to_string);
        Error::invalid("open", format!("cannot load {}: {why}", path.display())).caused_by(cause)
    })?;
    Ok(Box::leak(Box::new(dylib)))
}

/// One interface of a library: Fortran or cblas.
#[derive(Debug)]
pub(super) struct Interface {
    /// The files that have routines of this interface.
    files: Vec<File>,
    style: Style,
}

/// A file of a library, and the size of its integers. Files of one library may use different sizes.
#[derive(Debug)]
struct File {
    dylib: &'static Dylib,
    width: Width,
}

impl Interface {
    /// Looks up the routines of one interface. The first of `styles` in which a file has one of the routines becomes the spelling
    /// of the symbols. If no file has a routine, `styles[0]` becomes the spelling.
    ///
    /// # Errors
    /// A file has routines, but the name of the library does not state the size of integers, and the file has no function that
    /// shows this size.
    pub fn new(dylibs: Dylibs<'_>, styles: &[Style], routines: &[Routine], stated: Option<Width>) -> Result<Self> {
        let style = found(dylibs, styles, routines).unwrap_or(&styles[0]).clone();
        let file = |dylib| {
            let width = style.width.or(stated).or_else(|| probe::width(dylib, &style)).ok_or_else(unknown_width)?;
            Ok(File { dylib, width })
        };
        let files = dylibs.iter().copied().filter(|dylib| has(dylib, &style, routines)).map(file);
        Ok(Interface { files: files.collect::<Result<_>>()?, style })
    }

    /// Whether the library has at least one routine of this interface.
    pub fn is_there(&self) -> bool {
        !self.files.is_empty()
    }

    /// Describes the sizes of the integers in all files of this interface.
    pub fn widths(&self) -> &'static str {
        let has = |width| self.files.iter().any(|file| file.width == width);
        match (has(Width::Bits32), has(Width::Bits64)) {
            (true, true) => "32- and 64-bit integers",
            (false, true) => "64-bit integers",
            (true | false, false) => "32-bit integers",
        }
    }

    /// The size of the integers in the file that has the routine. `None` if no file has the routine.
    pub fn width(&self, dtype: DType, routine: Routine) -> Option<Width> {
        let symbol = self.symbol(dtype, routine);
        self.files.iter().find(|file| exists(file.dylib, &symbol)).map(|file| file.width)
    }

    /// The symbol of a routine.
    pub fn symbol(&self, dtype: DType, routine: Routine) -> String {
        self.style.symbol(dtype, routine.name())
    }

    /// Whether the library has the routine in the given precision.
    pub fn has(&self, dtype: DType, routine: Routine) -> bool {
        self.width(dtype, routine).is_some()
    }

    /// Looks up a routine for numbers of the type `T`.
    ///
    /// # Safety
    /// `F` must be the type of the function that computes `routine` in the library.
    ///
    /// # Errors
    /// The library lacks the routine.
    pub unsafe fn find<T: Scalar, F: Copy>(&self, routine: Routine) -> Result<F> {
        let symbol = self.symbol(T::DTYPE, routine);
        // SAFETY: the caller guarantees that `F` is the type of the function.
        let found = self.files.iter().find_map(|file| unsafe { file.dylib.get::<F>(&*symbol) }.ok());
        found.map(|f| *f).ok_or_else(|| Error::new(ErrorKind::Unsupported, routine.name(), format!("the library has no {symbol}")))
    }
}

/// The first of `styles` in which a file has at least one of the routines.
pub(super) fn found<'a>(dylibs: Dylibs<'_>, styles: &'a [Style], routines: &[Routine]) -> Option<&'a Style> {
    styles.iter().find(|style| dylibs.iter().any(|dylib| has(dylib, style, routines)))
}

/// Whether a file has at least one of the routines in the spelling `style`.
fn has(dylib: &Dylib, style: &Style, routines: &[Routine]) -> bool {
    let exists = |dtype| routines.iter().any(|routine| exists(dylib, &style.symbol(dtype, routine.name())));
    [DType::F32, DType::F64].into_iter().any(exists)
}

fn unknown_width() -> Error {
    let how = "nothing tells the size of the library's integers: end its name with #lp64 (32 bits) or #ilp64 (64 bits)";
    Error::invalid("open", how)
}

fn exists(dylib: &Dylib, symbol: &str) -> bool {
    // SAFETY: `get` only looks up the address of the symbol, and no code uses this address.
    unsafe { dylib.get::<*const ()>(symbol) }.is_ok()
}
