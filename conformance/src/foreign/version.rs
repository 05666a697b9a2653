//! Finds the name and version of a library, if the library reports them.
#![allow(unsafe_code, reason = "functions of foreign libraries")]

use std::ffi::{CStr, c_char, c_int};

use libloading::Library as Dylib;

/// Name, version and configuration that the first of the files with a known version function reports.
pub(super) fn version(dylibs: &[&Dylib], prefix: &str) -> Option<String> {
    let told = |dylib: &&Dylib| openblas(dylib, prefix).or_else(|| mkl(dylib)).or_else(|| blis(dylib)).or_else(|| reference(dylib));
    dylibs.iter().find_map(told).or_else(|| dylibs.iter().find_map(|dylib| reference_blas(dylib)))
}

/// Calls a function that has no arguments and returns a string.
///
/// # Safety
/// `symbol` must be a function of the type `Say`. The returned string must stay valid until this function returns; null is allowed.
unsafe fn call_string_fn(dylib: &Dylib, symbol: &str) -> Option<String> {
    type Say = unsafe extern "C" fn() -> *const c_char;
    // SAFETY: the caller guarantees that the function `symbol` has the type `Say` and that its string stays valid.
    unsafe {
        let say = dylib.get::<Say>(symbol).ok()?;
        let text = say();
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

/// Version and configuration of OpenBLAS, and the CPU for which its kernels are written.
fn openblas(dylib: &Dylib, prefix: &str) -> Option<String> {
    let suffixes = ["", "64_", "_64"];
    // SAFETY: OpenBLAS declares `openblas_get_config` with the type `Say`, and the string is a constant.
    let config =
        suffixes.iter().find_map(|suffix| unsafe { call_string_fn(dylib, &format!("{prefix}openblas_get_config{suffix}")) })?;
    // SAFETY: OpenBLAS declares `openblas_get_corename` with the type `Say`, and the string is a constant.
    let core =
        suffixes.iter().find_map(|suffix| unsafe { call_string_fn(dylib, &format!("{prefix}openblas_get_corename{suffix}")) });
    Some(core.map_or(config.clone(), |core| format!("{config}, {core} kernels")))
}

fn blis(dylib: &Dylib) -> Option<String> {
    // SAFETY: BLIS declares `bli_info_get_version_str` with the type `Say`, and the string is a constant.
    unsafe { call_string_fn(dylib, "bli_info_get_version_str") }.map(|version| format!("BLIS {version}"))
}

fn mkl(dylib: &Dylib) -> Option<String> {
    type Write = unsafe extern "C" fn(*mut c_char, c_int);
    let mut text = [0_u8; 256];
    // SAFETY: `MKL_Get_Version_String` writes at most 255 bytes to `text`, which this function owns. The array has one more byte,
    // which stays zero.
    unsafe {
        let write = dylib.get::<Write>("MKL_Get_Version_String").ok()?;
        write(text.as_mut_ptr().cast(), 255);
    }
    Some(CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy().trim().to_owned())
}

/// Recognises the reference BLAS without LAPACK, which has no function for its version. Only Netlib's library has the function
/// `dcabs1sub_`, a Fortran wrapper for the C interface.
fn reference_blas(dylib: &Dylib) -> Option<String> {
    // SAFETY: `get` only looks up the address of the symbol, and no code uses this address.
    let wrapper = unsafe { dylib.get::<*const ()>("dcabs1sub_") };
    wrapper.is_ok().then(|| "LAPACK BLAS of a version that it does not tell".to_owned())
}

/// The version of LAPACK that a library states. Netlib's library and several other libraries have a function for this version.
fn reference(dylib: &Dylib) -> Option<String> {
    type Version = unsafe extern "C" fn(*mut i64, *mut i64, *mut i64);
    let [mut major, mut minor, mut patch] = [0; 3];
    // SAFETY: `Version` is the type of the standard function `ilaver_`, which writes three integers to variables of this function.
    // Each variable has 64 bits. If the library has 32-bit integers, it writes the first half of each variable, which on a
    // little-endian CPU is the lower half.
    unsafe { dylib.get::<Version>("ilaver_").ok()?(&mut major, &mut minor, &mut patch) };
    Some(format!("LAPACK {major}.{minor}.{patch}"))
}
