//! Finds the reasons why the OpenCL loader or an OpenCL driver does not load. The loader reports no error for a registered driver
//! whose library does not load.

use std::error::Error;
use std::path::PathBuf;

use lapidary_core::DriverFile;

/// The reason why the OpenCL loader does not load.
pub(crate) fn loader() -> String {
    let why = match cl3::load_library() {
        Err(cl3_error) => cl3_error.to_string(),
        Ok(_) => "unknown".to_owned(),
    };
    format!("the OpenCL loader is not there: {why}")
}

/// The registered drivers that do not load, each with the reason. The list is empty on Windows and macOS, where drivers are
/// registered in other ways.
pub(crate) fn unloadable() -> Vec<String> {
    drivers().iter().filter_map(refusal).collect()
}

/// The drivers that are registered in the folders that OpenCL loaders read.
#[must_use]
pub fn drivers() -> Vec<DriverFile> {
    let named = ["OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH"].into_iter().find_map(std::env::var_os);
    let place = named.map_or_else(|| PathBuf::from("/etc/OpenCL/vendors"), PathBuf::from);
    let library = |text: &str| Some(PathBuf::from(text.lines().next()?.trim())).filter(|library| !library.as_os_str().is_empty());
    DriverFile::registered([place], "icd", |text, _| library(text))
}

/// The reason why a driver does not load; `None` if the driver loads, or if it is a driver for programs of another word size.
fn refusal(DriverFile { manifest, library }: &DriverFile) -> Option<String> {
    // SAFETY: loading a library runs its initialisers; the OpenCL loader runs them too, because the library is registered as a
    // driver
    let error = unsafe { libloading::Library::new(library) }.err()?;
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    // a system may have 32-bit and 64-bit drivers; a driver whose word size differs from that of this program is not an error
    (!why.contains("wrong ELF class")).then(|| format!("the OpenCL driver of {} does not load: {why}", manifest.display()))
}
