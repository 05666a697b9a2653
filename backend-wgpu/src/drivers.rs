//! Finds Vulkan drivers that are registered but cannot be loaded. The Vulkan loader itself prints no message about a driver that
//! it cannot load.

#[cfg(unix)]
use std::error::Error;
use std::path::{Path, PathBuf};

use lapidary_core::DriverFile;

/// Returns messages for users about drivers that cannot be loaded, with the reasons. If the Vulkan loader cannot be loaded, the
/// only message is about the loader. If the Vulkan loader can be loaded, there is one message for each registered driver that
/// cannot be loaded. On Windows and on Apple systems, the function returns no messages, because these systems do not register
/// drivers by files.
pub(crate) fn unloadable() -> Vec<String> {
    if !cfg!(all(unix, not(target_vendor = "apple"))) {
        return Vec::new();
    }
    if let Some(why) = refusal(Path::new("libvulkan.so.1")) {
        return vec![format!("the Vulkan loader is not there: {why}")];
    }
    let told = |DriverFile { manifest, library }: DriverFile| {
        let why = refusal(&library).filter(|why| !why.contains(OTHER_WIDTH))?;
        Some(format!("the Vulkan driver of {} does not load: {why}", manifest.display()))
    };
    drivers().into_iter().filter_map(told).collect()
}

/// Returns the drivers that are registered in the places where the Vulkan loader searches. Only Unix-like systems register drivers by
/// files.
#[must_use]
pub fn drivers() -> Vec<DriverFile> {
    if !cfg!(unix) {
        return Vec::new();
    }
    let named = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].into_iter().find_map(std::env::var_os);
    let added = std::env::var_os("VK_ADD_DRIVER_FILES").unwrap_or_default();
    let places = named.unwrap_or_else(|| "/etc/vulkan/icd.d:/usr/local/share/vulkan/icd.d:/usr/share/vulkan/icd.d".into());
    let places = std::env::split_paths(&places).chain(std::env::split_paths(&added));
    DriverFile::registered(places, "json", |text, manifest| library(text, manifest.parent()?))
}

/// Text in the error message of `dlopen` for a library whose pointers have another width than the pointers of this program. A
/// library of another pointer width is no fault, because systems that run 32-bit and 64-bit programs have drivers for both kinds
/// of program.
const OTHER_WIDTH: &str = "wrong ELF class";

/// Returns the library that a driver's manifest names: a path relative to the folder of the manifest, or a file name for which
/// `dlopen` searches. Returns `None` if the library is for programs of another pointer width, or if the manifest names no
/// library.
fn library(manifest: &str, folder: &Path) -> Option<PathBuf> {
    let text = |field: &str| {
        let (_, rest) = manifest.split_once(&format!("\"{field}\""))?;
        let (text, _) = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?.split_once('"')?;
        Some(text)
    };
    let path = text("library_path").filter(|_| text("library_arch").is_none_or(|bits| bits == usize::BITS.to_string()))?;
    Some(if path.contains('/') { folder.join(path) } else { path.into() })
}

/// Returns the reason why `library` cannot be loaded, or `None` if it can be loaded.
#[cfg(unix)]
fn refusal(library: &Path) -> Option<String> {
    // SAFETY: the library is the Vulkan loader or a registered driver, so that the Vulkan loader may run the initialisers of the
    // library in this process anyway
    let error = unsafe { libloading::Library::new(library) }.err()?;
    Some(error.source().map_or_else(|| error.to_string(), ToString::to_string))
}

/// Returns `None`, because other systems register no drivers by files.
#[cfg(not(unix))]
fn refusal(_: &Path) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::library;
    use std::path::Path;

    #[test]
    fn drivers_for_programs_of_another_pointer_width_are_passed_over() {
        let of = |fields: &str| library(&format!(r#"{{"ICD": {{"library_path": "../x.so"{fields}}}}}"#), Path::new("/etc/icd.d"));
        let there = Path::new("/etc/icd.d/../x.so");
        assert_eq!(of("").as_deref(), Some(there));
        assert_eq!(of(&format!(r#", "library_arch" : "{}""#, usize::BITS)).as_deref(), Some(there));
        assert_eq!(of(r#", "library_arch": "16""#), None);
    }
}
