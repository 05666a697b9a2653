//! Settings of machines that are tested.

use std::path::PathBuf;

use lapidary::Settings;

/// Settings that leave the user's compiled programs alone.
pub fn settings() -> Settings {
    Settings { cache_dir: Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("programs")), ..Settings::default() }
}

/// A few tiles or a narrow panel of the small scope fit, a whole matrix does not.
pub fn limited(bytes: usize) -> Settings {
    Settings { memory_limit: Some(bytes), ..settings() }
}
