//! Determines the size of a file's integers. The module calls a function whose result depends on whether its integers have 32 or 64
//! bits.
#![allow(unsafe_code, reason = "functions of foreign libraries")]

use lapidary_core::DType;
use libloading::Library as Dylib;

use super::integer::Width;
use super::style::Style;

/// The size of the integers in a file. `None` if the file has no function from which the module can determine the size. The symbols
/// of other files that this file loads count as its own symbols.
pub(super) fn width(dylib: &Dylib, style: &Style) -> Option<Width> {
    if cfg!(not(all(target_endian = "little", target_pointer_width = "64"))) {
        return None;
    }
    by_dot(dylib, style).or_else(|| (!style.by_value).then(|| by_version(dylib, style))?)
}

/// Determines the size of integers by a dot product. The length argument is one if the function reads 32 bits of it, and negative
/// if the function reads 64 bits. For a negative length the function reads no elements and returns zero.
fn by_dot(dylib: &Dylib, style: &Style) -> Option<Width> {
    let symbol = style.symbol(DType::F64, "dot");
    let (length, stride) = ((-1_i64 << 32) + 1, 1_i64);
    let (x, y) = ([2.0_f64], [3.0_f64]);
    // SAFETY: `Dot` is the type of the standard function, which accepts any length. If integers are passed by reference, a function
    // with 32-bit integers reads the first half of each 64-bit integer, which is the lower half on a little-endian CPU. If integers
    // are passed by value, a function with 32-bit integers reads the lower half of each register. The function reads at most the
    // one element of x and of y, which this function owns.
    let dot = unsafe {
        if !style.by_value {
            type Dot = unsafe extern "C" fn(*const i64, *const f64, *const i64, *const f64, *const i64) -> f64;
            dylib.get::<Dot>(&*symbol).ok()?(&length, x.as_ptr(), &stride, y.as_ptr(), &stride)
        } else {
            type Dot = unsafe extern "C" fn(i64, *const f64, i64, *const f64, i64) -> f64;
            dylib.get::<Dot>(&*symbol).ok()?(length, x.as_ptr(), stride, y.as_ptr(), stride)
        }
    };
    Some(if dot == 0.0 { Width::Bits64 } else { Width::Bits32 })
}

/// Determines the size of integers by the version of LAPACK. Each of the three numbers of the version is small and starts as −1 in
/// 64 bits. A function with 32-bit integers leaves the upper half of each number unchanged, so that it stays negative.
fn by_version(dylib: &Dylib, style: &Style) -> Option<Width> {
    type Version = unsafe extern "C" fn(*mut i64, *mut i64, *mut i64);
    let [mut major, mut minor, mut patch] = [-1_i64; 3];
    // SAFETY: `Version` is the type of the standard function, which writes three integers to variables of this function. Each
    // variable has room for 64 bits.
    unsafe { dylib.get::<Version>(style.named("ilaver")).ok()?(&mut major, &mut minor, &mut patch) };
    Some(if major < 0 { Width::Bits32 } else { Width::Bits64 })
}
