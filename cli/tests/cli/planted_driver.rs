//! A driver of OpenCL and of Vulkan without devices. When it is opened it ends the process, or hangs, as the environment
//! variable `DRIVER_FATE` says.
#![expect(non_snake_case, reason = "the loaders ask for these names")]

use std::ffi::{CStr, c_char, c_void};

fn meet_fate() {
    match std::env::var("DRIVER_FATE").as_deref() {
        Ok("abort") => std::process::abort(),
        Ok("exit") => std::process::exit(0),
        Ok("hang") => loop {
            std::thread::sleep(std::time::Duration::from_secs(1));
        },
        _ => {}
    }
}

/// The function that OpenCL's loader asks for its platforms: there are none.
extern "C" fn clIcdGetPlatformIDsKHR(_: u32, _: *mut *mut c_void, count: *mut u32) -> i32 {
    const PLATFORM_NOT_FOUND_KHR: i32 = -1001;
    meet_fate();
    // SAFETY: the loader passes a place for the number, or null.
    unsafe { count.as_mut().map(|count| *count = 0) };
    PLATFORM_NOT_FOUND_KHR
}

/// Debian's loader wants this function of each driver. It is called for platforms only.
#[unsafe(no_mangle)]
extern "C" fn clGetPlatformInfo() -> i32 {
    const INVALID_PLATFORM: i32 = -32;
    INVALID_PLATFORM
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clGetExtensionFunctionAddress(name: *const c_char) -> *const c_void {
    // SAFETY: the loader passes a name.
    if unsafe { CStr::from_ptr(name) } == c"clIcdGetPlatformIDsKHR" {
        clIcdGetPlatformIDsKHR as *const c_void
    } else {
        std::ptr::null()
    }
}

#[unsafe(no_mangle)]
extern "C" fn vk_icdGetInstanceProcAddr(_: *mut c_void, _: *const c_char) -> *const c_void {
    meet_fate();
    std::ptr::null()
}
