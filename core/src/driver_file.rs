//! Finds the files that register drivers. A loader library reads from these files where the drivers are.

use std::fs;
use std::path::{Path, PathBuf};

/// A driver, and the file that registers it with a loader library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverFile {
    /// The file that registers the driver.
    pub manifest: PathBuf,
    /// The driver's library as `manifest` names it: a path, or a file name for which the operating system searches.
    pub library: PathBuf,
}

impl DriverFile {
    /// The drivers that are registered by files with the extension `extension`, sorted by the paths of these files. Each element
    /// of `places` is a file that registers a driver, or a folder of such files. The function `library` finds the name of the
    /// driver's library in the text and the path of a file. On Windows and macOS the result is empty, because these systems do
    /// not register drivers by files.
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
