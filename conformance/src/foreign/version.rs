//! What libraries call themselves, where they do.
#![allow(unsafe_code, reason = "functions of foreign libraries")]

use std::ffi::{CStr, c_char, c_int};

use libloading::Library as Dylib;

/// Name, version and configuration of the first library that tells.
pub(super) fn version(dylibs: &[&Dylib], prefix: &str) -> Option<String> {
    let told = |dylib: &&Dylib| openblas(dylib, prefix).or_else(|| mkl(dylib)).or_else(|| blis(dylib)).or_else(|| reference(dylib));
    dylibs.iter().find_map(told).or_else(|| dylibs.iter().find_map(|dylib| reference_blas(dylib)))
}

/// A function without arguments that gives back a string.
///
/// # Safety
/// `symbol` is such a function, and the string stays; null stands for none.
unsafe fn said(dylib: &Dylib, symbol: &str) -> Option<String> {
    type Say = unsafe extern "C" fn() -> *const c_char;
    // SAFETY: as the caller promises.
    unsafe {
        let say = dylib.get::<Say>(symbol).ok()?;
        let text = say();
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

/// Version and configuration, and the processor whose kernels run.
fn openblas(dylib: &Dylib, prefix: &str) -> Option<String> {
    let suffixes = ["", "64_", "_64"];
    // SAFETY: OpenBLAS declares both so; the strings are constants.
    let config = suffixes.iter().find_map(|suffix| unsafe { said(dylib, &format!("{prefix}openblas_get_config{suffix}")) })?;
    // SAFETY: as before.
    let core = suffixes.iter().find_map(|suffix| unsafe { said(dylib, &format!("{prefix}openblas_get_corename{suffix}")) });
    Some(core.map_or(config.clone(), |core| format!("{config}, {core} kernels")))
}

fn blis(dylib: &Dylib) -> Option<String> {
    // SAFETY: BLIS declares it so; the string is a constant.
    unsafe { said(dylib, "bli_info_get_version_str") }.map(|version| format!("BLIS {version}"))
}

fn mkl(dylib: &Dylib) -> Option<String> {
    type Write = unsafe extern "C" fn(*mut c_char, c_int);
    let mut text = [0_u8; 256];
    // SAFETY: the function of MKL writes at most 255 bytes, here with room for a last zero.
    unsafe {
        let write = dylib.get::<Write>("MKL_Get_Version_String").ok()?;
        write(text.as_mut_ptr().cast(), 255);
    }
    Some(CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy().trim().to_owned())
}

/// The reference BLAS without LAPACK names no version; the Fortran wrappers of its C interface
/// are nobody else's.
fn reference_blas(dylib: &Dylib) -> Option<String> {
    // SAFETY: the address is looked up and not used.
    let wrapper = unsafe { dylib.get::<*const ()>("dcabs1sub_") };
    wrapper.is_ok().then(|| "LAPACK BLAS of a version that it does not tell".to_owned())
}

/// The version of LAPACK that a library follows: netlib's own and others'.
fn reference(dylib: &Dylib) -> Option<String> {
    type Version = unsafe extern "C" fn(*mut i64, *mut i64, *mut i64);
    let [mut major, mut minor, mut patch] = [0; 3];
    // SAFETY: the standard function, which writes three integers; there is room for long ones,
    // and on a little-endian machine short ones are the first half of them.
    unsafe { dylib.get::<Version>("ilaver_").ok()?(&mut major, &mut minor, &mut patch) };
    Some(format!("LAPACK {major}.{minor}.{patch}"))
}
