//! Drivers of Vulkan that are registered and do not load: the loader passes over them without a word.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The loader and the drivers that do not load, each with the reason. Elsewhere than on Linux and
/// its kin drivers are registered elsewhere, and none is told of.
pub(crate) fn unloadable() -> Vec<String> {
    if !cfg!(all(unix, not(target_vendor = "apple"))) {
        return Vec::new();
    }
    if let Some(why) = refusal(Path::new("libvulkan.so.1")) {
        return vec![format!("the Vulkan loader is not there: {why}")];
    }
    let told = |file: &PathBuf| {
        let why = refusal(&library(file)?)?;
        Some(format!("the Vulkan driver of {} does not load: {why}", file.display()))
    };
    registered().iter().filter_map(told).collect()
}

/// The manifests of drivers, where the loader looks for them.
fn registered() -> Vec<PathBuf> {
    let named = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].into_iter().find_map(std::env::var_os);
    let added = std::env::var_os("VK_ADD_DRIVER_FILES").unwrap_or_default();
    let places = named.unwrap_or_else(|| "/etc/vulkan/icd.d:/usr/local/share/vulkan/icd.d:/usr/share/vulkan/icd.d".into());
    let places = std::env::split_paths(&places).chain(std::env::split_paths(&added));
    let files = places.flat_map(|place| match fs::read_dir(&place) {
        Ok(folder) => folder.filter_map(|file| Some(file.ok()?.path())).collect(),
        Err(_) => vec![place],
    });
    let mut files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|extension| extension == "json")).collect();
    files.sort();
    files.dedup();
    files
}

/// The library that a manifest names: a path from the manifest's folder, or a name to look for.
fn library(manifest: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(manifest).ok()?;
    let (_, rest) = text.split_once("\"library_path\"")?;
    let (path, _) = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?.split_once('"')?;
    Some(if path.contains('/') { manifest.parent()?.join(path) } else { path.into() })
}

/// Why a library does not load, if it does not.
fn refusal(library: &Path) -> Option<String> {
    // SAFETY: the library is the loader or registered as a driver, whose initialisers the loader runs as well
    let error = unsafe { libloading::Library::new(library) }.err()?;
    Some(error.source().map_or_else(|| error.to_string(), ToString::to_string))
}
