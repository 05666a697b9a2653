//! Listing of the OpenCL devices.

use std::sync::{Mutex, OnceLock, PoisonError};

use cl3::device::{
    CL_DEVICE_AVAILABLE, CL_DEVICE_COMPILER_AVAILABLE, CL_DEVICE_EXTENSIONS, CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_NAME,
    CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, CL_DEVICE_SINGLE_FP_CONFIG, CL_DEVICE_TYPE_ALL,
    CL_DEVICE_VERSION, CL_DRIVER_VERSION, CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, get_device_ids,
};
use cl3::error_codes::DLOPEN_RUNTIME_LOAD_FAILED;
use cl3::platform::{CL_PLATFORM_NAME, CL_PLATFORM_VERSION, get_platform_data, get_platform_ids};
use cl3::types::{cl_device_id, cl_platform_id};
use lapidary_core::{DeviceFacts, Error, ErrorKind, Result};

use crate::conv::failed;
use crate::drivers;
use crate::facts::{DeviceQuery, to_text};

/// The status code that the OpenCL loader returns if no driver is registered.
const PLATFORM_NOT_FOUND_KHR: i32 = -1001;

/// An OpenCL device, and the properties that its driver reports.
#[derive(Clone, Debug)]
pub struct Found {
    pub(crate) platform: cl_platform_id,
    pub(crate) device: cl_device_id,
    /// The facts about the device. `facts.memory` is the number of bytes that registers may use.
    pub facts: DeviceFacts,
    /// Name of the OpenCL platform.
    pub platform_name: String,
    /// Versions of the platform, the device and the driver.
    pub versions: String,
    /// Vendor, extensions and vector widths of the device. A compiled binary may depend on these properties besides `versions`.
    pub(crate) compiler_traits: String,
    /// Whether the device uses host memory, which also holds the caller's matrices.
    pub(crate) is_unified: bool,
    /// Size of the device's global memory, in bytes.
    pub memory: usize,
    pub(crate) rounds_divisions: bool,
}

// SAFETY: OpenCL handles may be used from any thread (OpenCL specification, appendix A).
unsafe impl Send for Found {}
// SAFETY: several threads may use the OpenCL handle of a platform or a device at once (OpenCL specification, appendix A).
unsafe impl Sync for Found {}

impl Found {
    /// The OpenCL handle of the device, by which an application identifies the device.
    #[must_use]
    pub fn handle(&self) -> cl_device_id {
        self.device
    }
}

/// All devices found, and notes on missing or broken drivers.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The devices found; the index of a device is its number.
    pub devices: Vec<Found>,
    /// Messages about drivers and platforms that are missing or broken.
    pub notes: Vec<String>,
}

/// Lists the devices of all platforms. Each platform is queried separately, so that a broken platform does not hide the devices of
/// other platforms.
#[must_use]
pub fn list() -> Listing {
    // while one thread initialises PoCL 3.1, PoCL reports no devices to other threads
    static ASKING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut listing = Listing::default();
    match get_platform_ids() {
        Ok(platforms) => platforms.into_iter().for_each(|platform| listing.add(platform)),
        Err(DLOPEN_RUNTIME_LOAD_FAILED) => {
            listing.notes.push(drivers::loader());
            return listing;
        }
        Err(PLATFORM_NOT_FOUND_KHR) => listing.notes.push("the OpenCL loader finds no driver".to_owned()),
        Err(code) => listing.notes.push(failed("clGetPlatformIDs", code).to_string()),
    }
    // the list of drivers that do not load is made only once, because the search loads every driver
    static UNLOADABLE: OnceLock<Vec<String>> = OnceLock::new();
    listing.notes.extend_from_slice(UNLOADABLE.get_or_init(drivers::unloadable));
    listing
}

impl Listing {
    fn add(&mut self, platform: cl_platform_id) {
        let text = |what| get_platform_data(platform, what).map(|bytes| to_text(&bytes)).unwrap_or_default();
        let (name, version) = (text(CL_PLATFORM_NAME), text(CL_PLATFORM_VERSION));
        match get_device_ids(platform, CL_DEVICE_TYPE_ALL) {
            Ok(devices) if !devices.is_empty() => {
                for device in devices {
                    match describe(platform, device, self.devices.len(), &name, &version) {
                        Ok(found) => self.devices.push(found),
                        Err(reason) => self.notes.push(format!("OpenCL platform {name}: {reason}")),
                    }
                }
            }
            Ok(_) | Err(cl3::error_codes::CL_DEVICE_NOT_FOUND) => {
                // Mesa's platform rusticl has only the devices of the drivers that the environment variable `RUSTICL_ENABLE` names
                let hint =
                    if name == "rusticl" { ": RUSTICL_ENABLE=llvmpipe, or another of its drivers, would show some" } else { "" };
                self.notes.push(format!("OpenCL platform {name} has no devices{hint}"));
            }
            Err(code) => self.notes.push(format!("OpenCL platform {name}: {}", failed("clGetDeviceIDs", code))),
        }
    }

    /// The device with the number `index`.
    ///
    /// # Errors
    /// No device has the number `index`. The error lists the devices that exist.
    pub(crate) fn device(&self, index: usize, operation: &'static str) -> Result<Found> {
        self.devices.get(index).cloned().ok_or_else(|| {
            let named = |found: &Found| format!("{} ({})", found.facts.name, found.facts.identity.model);
            let there: Vec<String> = self.devices.iter().map(named).collect();
            let there = if there.is_empty() { "no OpenCL device".to_owned() } else { there.join(", ") };
            let notes: String = self.notes.iter().map(|note| format!("; {note}")).collect();
            Error::new(ErrorKind::NoSuchDevice, operation, format!("there is no opencl:{index}; there is {there}{notes}"))
        })
    }
}

/// Describes a device, which gets the number `index`, or returns the reason why the device cannot be used.
fn describe(
    platform: cl_platform_id,
    device: cl_device_id,
    index: usize,
    platform_name: &str,
    version: &str,
) -> Result<Found, String> {
    let asked = DeviceQuery(device);
    let answers = [CL_DEVICE_AVAILABLE, CL_DEVICE_COMPILER_AVAILABLE].map(|what| asked.number(what));
    let [is_available, has_compiler] = answers.map(|answer| answer.map(|value| value != 0));
    usable(&asked.text(CL_DEVICE_NAME)?, is_available?, has_compiler?)?;
    let facts = asked.facts(format!("opencl:{index}"), platform_name)?;
    let widths = [CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE].map(|what| asked.optional(what));
    Ok(Found {
        platform,
        device,
        platform_name: platform_name.to_owned(),
        versions: format!("{version}; {}; {}", asked.text(CL_DEVICE_VERSION)?, asked.text(CL_DRIVER_VERSION)?),
        compiler_traits: format!("{}; {}; vectors of {widths:?}", facts.identity.vendor, asked.text(CL_DEVICE_EXTENSIONS)?),
        is_unified: asked.is_unified(),
        memory: asked.size(CL_DEVICE_GLOBAL_MEM_SIZE)?,
        rounds_divisions: asked.number(CL_DEVICE_SINGLE_FP_CONFIG)? & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0,
        facts,
    })
}

/// Checks that a device is available and has a compiler. The error is the reason why the device cannot be used.
fn usable(name: &str, is_available: bool, has_compiler: bool) -> Result<(), String> {
    match (is_available, has_compiler) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("{name} is not available")),
        (true, false) => Err(format!("{name} has no compiler")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_takes_no_programs_is_passed_over_with_a_note() {
        assert_eq!(usable("x", true, true), Ok(()));
        assert_eq!(usable("x", false, true), Err("x is not available".to_owned()));
        assert_eq!(usable("x", true, false), Err("x has no compiler".to_owned()));
    }

    #[test]
    fn an_absent_device_is_answered_by_what_there_is() {
        let listing = Listing { devices: Vec::new(), notes: vec!["a driver is broken".to_owned()] };
        let error = listing.device(3, "from_parts").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSuchDevice);
        assert!(error.to_string().contains("opencl:3; there is no OpenCL device; a driver is broken"), "{error}");
    }
}
