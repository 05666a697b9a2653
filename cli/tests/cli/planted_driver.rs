//! An OpenCL and Vulkan driver without devices, for tests. When a loader opens the driver, the driver ends the process or hangs, as
//! the environment variable `DRIVER_FATE` requests.
#![expect(non_snake_case, reason = "the loaders ask for these names")]

use std::ffi::{CStr, c_char, c_void};

fn apply_failure_mode() {
    match std::env::var("DRIVER_FATE").as_deref() {
        Ok("abort") => std::process::abort(),
        Ok("exit") => std::process::exit(0),
        Ok("hang") => loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        },
        _ => {}
    }
}

/// OpenCL's loader calls this function for the driver's platforms. The driver reports that it has no platform.
extern "C" fn clIcdGetPlatformIDsKHR(_: u32, _: *mut *mut c_void, count: *mut u32) -> i32 {
    const PLATFORM_NOT_FOUND_KHR: i32 = -1001;
    apply_failure_mode();
    // SAFETY: the loader passes either null or the address of a number that it lends exclusively for the call.
    unsafe { count.as_mut().map(|count| *count = 0) };
    PLATFORM_NOT_FOUND_KHR
}

/// Debian's OpenCL loader requires each driver to export this function, but calls it only for platforms, which this driver does not
/// have.
#[unsafe(no_mangle)]
extern "C" fn clGetPlatformInfo() -> i32 {
    const INVALID_PLATFORM: i32 = -32;
    INVALID_PLATFORM
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clGetExtensionFunctionAddress(name: *const c_char) -> *const c_void {
    // SAFETY: the loader passes the address of a zero-terminated name, which stays valid during the call.
    if unsafe { CStr::from_ptr(name) } == c"clIcdGetPlatformIDsKHR" {
        clIcdGetPlatformIDsKHR as *const c_void
    } else {
        std::ptr::null()
    }
}

#[unsafe(no_mangle)]
extern "C" fn vk_icdGetInstanceProcAddr(_: *mut c_void, _: *const c_char) -> *const c_void {
    apply_failure_mode();
    std::ptr::null()
}
