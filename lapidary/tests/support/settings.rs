//! Settings of the machines under test.

use std::path::PathBuf;

use lapidary::Settings;

/// Settings with a cache folder of their own, so that tests do not change the user's cache of compiled programs.
pub fn settings() -> Settings {
    Settings::default().cache_dir(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("programs"))
}

/// Test settings with a memory limit. A few tiles or a narrow panel of a test matrix fit into the memory limit, but a whole matrix
/// does not.
pub fn limited(bytes: usize) -> Settings {
    settings().memory_limit(bytes)
}
