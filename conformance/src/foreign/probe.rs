//! The size of a file's integers, by functions that the two sizes read or write differently.
#![allow(unsafe_code, reason = "functions of foreign libraries")]

use lapidary_core::DType;
use libloading::Library as Dylib;

use super::integer::Width;
use super::style::Style;

/// The size of the integers of a file; none if it has no function that tells. Symbols of the
/// files that it needs are found through it, and are those that it calls.
pub(super) fn width(dylib: &Dylib, style: &Style) -> Option<Width> {
    if cfg!(not(all(target_endian = "little", target_pointer_width = "64"))) {
        return None;
    }
    by_dot(dylib, style).or_else(|| (!style.by_value).then(|| by_version(dylib, style))?)
}

/// By a dot product. Its length is one in 32 bits and negative in 64, where nothing is read
/// and the sum is empty.
fn by_dot(dylib: &Dylib, style: &Style) -> Option<Width> {
    let symbol = style.symbol(DType::F64, "dot");
    let (length, stride) = ((-1_i64 << 32) + 1, 1_i64);
    let (x, y) = ([2.0_f64], [3.0_f64]);
    // SAFETY: the standard function, which refuses no length. By reference, 32-bit
    // integers are the first half of ours on a little-endian machine; by value they are
    // the lower half of the registers that the first arguments of integer type take.
    // Of x and y at most the one element is read.
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

/// By the version of LAPACK, three small numbers: those of 32 bits leave the second half of
/// ours as it was.
fn by_version(dylib: &Dylib, style: &Style) -> Option<Width> {
    type Version = unsafe extern "C" fn(*mut i64, *mut i64, *mut i64);
    let [mut major, mut minor, mut patch] = [-1_i64; 3];
    // SAFETY: the standard function, which writes three integers; there is room for long ones.
    unsafe { dylib.get::<Version>(style.named("ilaver")).ok()?(&mut major, &mut minor, &mut patch) };
    Some(if major < 0 { Width::Bits32 } else { Width::Bits64 })
}
