//! The files that register drivers with the loaders of the operating system.

use std::fs;
use std::path::{Path, PathBuf};

/// A driver that is registered by a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFile {
    /// The file that registers the driver.
    pub manifest: PathBuf,
    /// The library that the file names: a path, or a name for which the system searches.
    pub library: PathBuf,
}

impl DriverFile {
    /// The drivers that are registered by files with the extension `extension`, sorted by path. Each element of `places` is a
    /// file that registers a driver, or a folder of such files. `library` finds the driver's library in the text of a file. On
    /// Windows and macOS the result is empty, because drivers are registered in other ways there.
    pub fn registered(
        places: impl IntoIterator<Item = PathBuf>,
        extension: &str,
        library: impl Fn(&str, &Path) -> Option<PathBuf>,
    ) -> Vec<Self> {
        if !cfg!(all(unix, not(target_vendor = "apple"))) {
            return Vec::new();
        }
        let files = places.into_iter().flat_map(|place| match fs::read_dir(&place) {
            Ok(folder) => folder.filter_map(|file| Some(file.ok()?.path())).collect(),
            Err(_) => vec![place],
        });
        let mut files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|found| found == extension)).collect();
        files.sort();
        files.dedup();
        let named = |manifest: PathBuf| {
            let library = library(&fs::read_to_string(&manifest).ok()?, &manifest)?;
            Some(DriverFile { manifest, library })
        };
        files.into_iter().filter_map(named).collect()
    }
}
