//! Name and version of a library, if it reports them.
#![allow(unsafe_code, reason = "functions of foreign libraries")]

use std::ffi::{CStr, c_char, c_int};

use libloading::Library as Dylib;

/// Name, version and configuration of the first file that reports them.
pub(super) fn version(dylibs: &[&Dylib], prefix: &str) -> Option<String> {
    let told = |dylib: &&Dylib| openblas(dylib, prefix).or_else(|| mkl(dylib)).or_else(|| blis(dylib)).or_else(|| reference(dylib));
    dylibs.iter().find_map(told).or_else(|| dylibs.iter().find_map(|dylib| reference_blas(dylib)))
}

/// Calls a function that has no arguments and returns a string.
///
/// # Safety
/// `symbol` must be a function of this type, and the string must stay valid. The function may return null.
unsafe fn call_string_fn(dylib: &Dylib, symbol: &str) -> Option<String> {
    type Say = unsafe extern "C" fn() -> *const c_char;
    // SAFETY: the caller guarantees that the function has this type and that the string stays valid.
    unsafe {
        let say = dylib.get::<Say>(symbol).ok()?;
        let text = say();
        (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

/// Version and configuration of OpenBLAS, and the CPU for which its kernels are written.
fn openblas(dylib: &Dylib, prefix: &str) -> Option<String> {
    let suffixes = ["", "64_", "_64"];
    // SAFETY: OpenBLAS declares the function with this type, and the string is a constant.
    let config =
        suffixes.iter().find_map(|suffix| unsafe { call_string_fn(dylib, &format!("{prefix}openblas_get_config{suffix}")) })?;
    // SAFETY: OpenBLAS declares the function with this type, and the string is a constant.
    let core =
        suffixes.iter().find_map(|suffix| unsafe { call_string_fn(dylib, &format!("{prefix}openblas_get_corename{suffix}")) });
    Some(core.map_or(config.clone(), |core| format!("{config}, {core} kernels")))
}

fn blis(dylib: &Dylib) -> Option<String> {
    // SAFETY: BLIS declares the function with this type, and the string is a constant.
    unsafe { call_string_fn(dylib, "bli_info_get_version_str") }.map(|version| format!("BLIS {version}"))
}

fn mkl(dylib: &Dylib) -> Option<String> {
    type Write = unsafe extern "C" fn(*mut c_char, c_int);
    let mut text = [0_u8; 256];
    // SAFETY: the function of MKL writes at most 255 bytes; the array has one more byte, which stays zero.
    unsafe {
        let write = dylib.get::<Write>("MKL_Get_Version_String").ok()?;
        write(text.as_mut_ptr().cast(), 255);
    }
    Some(CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy().trim().to_owned())
}

/// Recognises the reference BLAS without LAPACK, which has no function for its version. Only this library has the Fortran
/// wrappers of the C interface.
fn reference_blas(dylib: &Dylib) -> Option<String> {
    // SAFETY: the address is looked up but not used.
    let wrapper = unsafe { dylib.get::<*const ()>("dcabs1sub_") };
    wrapper.is_ok().then(|| "LAPACK BLAS of a version that it does not tell".to_owned())
}

/// The version of LAPACK that a library implements. Netlib's library and several other libraries report this version.
fn reference(dylib: &Dylib) -> Option<String> {
    type Version = unsafe extern "C" fn(*mut i64, *mut i64, *mut i64);
    let [mut major, mut minor, mut patch] = [0; 3];
    // SAFETY: the function pointer has the type of the standard function, which writes three integers; each has room for 64
    // bits, and on a little-endian CPU a 32-bit integer is the first half.
    unsafe { dylib.get::<Version>("ilaver_").ok()?(&mut major, &mut minor, &mut patch) };
    Some(format!("LAPACK {major}.{minor}.{patch}"))
}
