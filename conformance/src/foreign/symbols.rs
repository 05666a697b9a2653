//! The routines of one interface of a library: which names, which integers.
#![allow(unsafe_code, reason = "functions of foreign libraries")]

use std::error::Error as _;
use std::path::Path;

use lapidary_core::{DType, Error, ErrorKind, Result, Scalar};
use libloading::Library as Dylib;

use super::integer::Width;
use super::names::Style;

/// Loads a library for as long as the program runs.
pub(super) fn load(path: &Path) -> Result<&'static Dylib> {
    // SAFETY: loading runs the library's initialisers; the caller named it as a BLAS.
    let dylib = unsafe { Dylib::new(path) }.map_err(|cause| {
        // the loader's own words say which file or symbol is missing
        let why = cause.source().map_or_else(|| cause.to_string(), ToString::to_string);
        Error::invalid("open", format!("cannot load {}: {why}", path.display())).caused_by(cause)
    })?;
    Ok(Box::leak(Box::new(dylib)))
}

/// One interface of a library: the Fortran one or cblas.
#[derive(Debug)]
pub(super) struct Interface {
    dylibs: Vec<&'static Dylib>,
    style: Style,
    there: bool,
    width: Width,
}

impl Interface {
    /// The interface in the first style that names any of the routines; in the first
    /// style of all if there is none.
    pub fn new(dylibs: &[&'static Dylib], styles: &[Style], routines: &[&str]) -> Self {
        let named = |style: &&Style| {
            let both = [DType::F32, DType::F64];
            both.iter().any(|&dtype| routines.iter().any(|routine| exists(dylibs, &style.symbol(dtype, routine))))
        };
        let found = styles.iter().find(named);
        let style = *found.unwrap_or(&styles[0]);
        let interface = Interface { dylibs: dylibs.to_vec(), style, there: found.is_some(), width: Width::Bits32 };
        let width = style.width.or_else(|| interface.probe());
        Interface { width: width.unwrap_or(interface.width), ..interface }
    }

    /// Whether the library has any of the routines.
    pub fn is_there(&self) -> bool {
        self.there
    }

    /// The size of the library's integers.
    pub fn width(&self) -> Width {
        self.width
    }

    /// How a routine is called.
    pub fn symbol(&self, dtype: DType, routine: &str) -> String {
        self.style.symbol(dtype, routine)
    }

    /// Whether a routine is there.
    pub fn has(&self, dtype: DType, routine: &str) -> bool {
        exists(&self.dylibs, &self.symbol(dtype, routine))
    }

    /// A routine for numbers `T`.
    ///
    /// # Safety
    /// `F` is its type.
    ///
    /// # Errors
    /// The library has none.
    pub unsafe fn find<T: Scalar, F: Copy>(&self, routine: &'static str) -> Result<F> {
        let symbol = self.symbol(T::DTYPE, routine);
        // SAFETY: as the caller promises.
        let found = self.dylibs.iter().find_map(|dylib| unsafe { dylib.get::<F>(&*symbol) }.ok());
        found.map(|f| *f).ok_or_else(|| Error::new(ErrorKind::Unsupported, routine, format!("the library has no {symbol}")))
    }

    /// The size of integers by a dot product. Its length is one in 32 bits and negative
    /// in 64, where nothing is read and the sum is empty. None if there is no such function.
    fn probe(&self) -> Option<Width> {
        if cfg!(not(all(target_endian = "little", target_pointer_width = "64"))) {
            return None;
        }
        let (length, stride) = ((-1_i64 << 32) + 1, 1_i64);
        let (x, y) = ([2.0_f64], [3.0_f64]);
        // SAFETY: the standard function, which refuses no length. By reference, 32-bit
        // integers are the first half of ours on a little-endian machine; by value they are
        // the lower half of the registers that the first arguments of integer type take.
        // Of x and y at most the one element is read.
        let dot = unsafe {
            if self.style.prefix.is_empty() {
                type Dot = unsafe extern "C" fn(*const i64, *const f64, *const i64, *const f64, *const i64) -> f64;
                self.find::<f64, Dot>("dot").ok()?(&length, x.as_ptr(), &stride, y.as_ptr(), &stride)
            } else {
                type Dot = unsafe extern "C" fn(i64, *const f64, i64, *const f64, i64) -> f64;
                self.find::<f64, Dot>("dot").ok()?(length, x.as_ptr(), stride, y.as_ptr(), stride)
            }
        };
        Some(if dot == 0.0 { Width::Bits64 } else { Width::Bits32 })
    }
}

fn exists(dylibs: &[&Dylib], symbol: &str) -> bool {
    // SAFETY: the address is looked up and not used.
    dylibs.iter().any(|dylib| unsafe { dylib.get::<*const ()>(symbol) }.is_ok())
}
