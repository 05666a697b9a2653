//! Settings of a machine, from code or from environment variables.

use std::env::VarError;
use std::num::IntErrorKind;
use std::path::PathBuf;

#[cfg(feature = "program-cache")]
use lapidary_core::ProgramCache;
use lapidary_core::{Error, Result};

/// The settings of a machine. `Settings::default()` has no limit and chooses everything itself.
///
/// ```
/// use lapidary::{Machine, Select, Settings};
/// let settings = Settings::default().memory_limit(256 << 20).nb(64);
/// let machine = Machine::with_settings(&Select::cpu(0), &settings)?;
/// assert_eq!(machine.devices().next().unwrap().memory, Some(256 << 20));
/// # Ok::<(), lapidary::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Maximum number of bytes of memory that each device may use. Without a memory limit, the CPU works in place on the matrices
    /// of the caller. With a memory limit, the CPU works on copies within the limit, as a device with memory of its own does.
    /// OpenCL and wgpu devices reserve an eighth of the memory limit for scratch memory of kernels; the rest is for matrices.
    pub memory_limit: Option<usize>,
    /// Number of columns of the panels of a factorisation, at least 1. If the setting is `None`, Lapidary chooses the number of
    /// columns.
    pub nb: Option<usize>,
    /// Folder of the cache of compiled programs. If the setting is `None`, compiled programs are stored in the user's cache
    /// folder. If the path is empty, no compiled programs are stored.
    pub cache_dir: Option<PathBuf>,
    /// Folder of the user's tuned kernels, which `lapidary tune` writes. If the setting is `None`, the folder is a part of the
    /// user's data folder. If the path is empty, devices use only the kernels that ship with Lapidary.
    pub kernels_dir: Option<PathBuf>,
    /// Whether a call on host matrices computes the same bits on any number of devices of one model, up to eight, if these devices have the same
    /// memory limit. Lapidary then plans each call for eight devices, even if there are fewer, so that calls take longer. If the selected devices
    /// are of several models, the devices of one model run the call: the model with the highest estimated speed. The plan uses three quarters of
    /// the memory of a device. A call fails with an error if other matrices leave less memory free.
    pub reproducible: bool,
    /// Whether OpenCL and wgpu devices record the times of their kernels ([`Machine::take_kernel_times`](crate::Machine::take_kernel_times)).
    /// The records slow short kernels. A wgpu device without timestamp queries then fails to open. Other devices ignore the setting. No
    /// environment variable has this setting.
    pub kernel_times: bool,
}

impl Settings {
    /// Sets the memory limit of each device in bytes, or removes it (`None`).
    #[must_use]
    pub fn memory_limit(self, bytes: impl Into<Option<usize>>) -> Self {
        Settings { memory_limit: bytes.into(), ..self }
    }

    /// Sets the number of columns of the panels of a factorisation, or leaves it to Lapidary (`None`).
    #[must_use]
    pub fn nb(self, columns: impl Into<Option<usize>>) -> Self {
        Settings { nb: columns.into(), ..self }
    }

    /// Sets whether calls on host matrices compute the same bits on any number of devices of one model, up to eight.
    #[must_use]
    pub fn reproducible(self, is_reproducible: bool) -> Self {
        Settings { reproducible: is_reproducible, ..self }
    }

    /// Sets the folder of the cache of compiled programs. With an empty path, no compiled programs are stored.
    #[must_use]
    pub fn cache_dir(self, folder: impl Into<PathBuf>) -> Self {
        Settings { cache_dir: Some(folder.into()), ..self }
    }

    /// Sets the folder of the user's tuned kernels. With an empty path, devices use only the kernels that ship with Lapidary.
    #[must_use]
    pub fn kernels_dir(self, folder: impl Into<PathBuf>) -> Self {
        Settings { kernels_dir: Some(folder.into()), ..self }
    }

    /// Sets whether OpenCL and wgpu devices record the times of their kernels.
    #[must_use]
    pub fn kernel_times(self, are_recorded: bool) -> Self {
        Settings { kernel_times: are_recorded, ..self }
    }

    /// Reads settings from the variables `LAPIDARY_MEMORY_LIMIT` (bytes, or `256M`, `2G`), `LAPIDARY_NB`, `LAPIDARY_REPRODUCIBLE` (0 or 1),
    /// `LAPIDARY_CACHE_DIR` and `LAPIDARY_KERNELS_DIR`. An empty variable counts as unset.
    ///
    /// # Errors
    /// The value of an environment variable is invalid.
    pub fn from_env() -> Result<Self> {
        let memory_limit = variable("LAPIDARY_MEMORY_LIMIT", Self::parse_bytes)?;
        let nb = variable("LAPIDARY_NB", |text| {
            text.parse().ok().filter(|&nb| nb > 0).ok_or("give a number of columns from 1 to 2⁶⁴ − 1")
        })?;
        let reproducible = variable("LAPIDARY_REPRODUCIBLE", |text| match text {
            "0" => Ok(false),
            "1" => Ok(true),
            _ => Err("give 0 or 1"),
        })?;
        // a path need not be valid Unicode
        let folder = |name| std::env::var_os(name).filter(|path| !path.is_empty()).map(PathBuf::from);
        let [cache_dir, kernels_dir] = ["LAPIDARY_CACHE_DIR", "LAPIDARY_KERNELS_DIR"].map(folder);
        let reproducible = reproducible.unwrap_or(false);
        Ok(Settings { memory_limit, nb, cache_dir, kernels_dir, reproducible, kernel_times: false })
    }

    /// Returns an error if a setting is zero, since no machine can work with it.
    pub(crate) fn check(&self) -> Result<()> {
        if self.nb == Some(0) {
            return Err(Error::invalid("settings", "nb = 0: a panel has at least one column; None leaves the choice to us"));
        }
        if self.memory_limit == Some(0) {
            return Err(Error::invalid("settings", "memory_limit = 0: no device works with no memory; None sets no limit"));
        }
        Ok(())
    }

    /// Returns the cache of compiled programs that machines with these settings share.
    #[cfg(feature = "program-cache")]
    #[must_use]
    pub fn program_cache(&self) -> ProgramCache {
        let of_user = || Some(directories::BaseDirs::new()?.cache_dir().join("lapidary").join("programs"));
        ProgramCache::new(self.cache_dir.clone().or_else(of_user).filter(|folder| !folder.as_os_str().is_empty()))
    }

    /// Returns the folder of the user's tuned kernels. Returns `None` if there is no such folder, or if devices use only the
    /// kernels that ship with Lapidary.
    #[cfg(any(feature = "opencl", feature = "wgpu"))]
    #[must_use]
    pub fn kernels_folder(&self) -> Option<PathBuf> {
        let of_user = || Some(directories::BaseDirs::new()?.data_dir().join("lapidary").join("kernels"));
        self.kernels_dir.clone().or_else(of_user).filter(|folder| !folder.as_os_str().is_empty())
    }

    /// Returns the database of kernels of machines with these settings: the user's tuned kernels, then those that ship with
    /// Lapidary. The second value has a note for each file that cannot be read and each line that is no entry.
    #[cfg(any(feature = "opencl", feature = "wgpu"))]
    #[must_use]
    pub fn kernel_database(&self) -> (lapidary_kernels::Database, Vec<String>) {
        crate::tuned::database(self)
    }

    /// Returns the user's tuned kernels without those that ship with Lapidary. The second value is that of
    /// [`kernel_database`](Self::kernel_database).
    #[cfg(any(feature = "opencl", feature = "wgpu"))]
    #[must_use]
    pub fn user_kernels(&self) -> (lapidary_kernels::Database, Vec<String>) {
        crate::tuned::of_user(self)
    }

    /// Returns the text of the user's tuned kernels, which is empty if there are none.
    ///
    /// # Errors
    /// A file cannot be read, or a line is no entry. The error has a note for each of them.
    #[cfg(any(feature = "opencl", feature = "wgpu"))]
    pub fn tuned_kernels(&self) -> std::result::Result<String, Vec<String>> {
        crate::tuned::text(self)
    }

    /// Parses a number of bytes: `4096`, `64K`, `256MiB`, `1.5G`, `2T`. K, M, G and T are powers of 1024.
    ///
    /// ```
    /// assert_eq!(lapidary::Settings::parse_bytes("256M"), Ok(256 << 20));
    /// assert_eq!(lapidary::Settings::parse_bytes("1.5 GiB"), Ok(1536 << 20));
    /// ```
    ///
    /// # Errors
    /// The text is not a valid number of bytes. The returned error is a message for the user.
    pub fn parse_bytes(text: &str) -> Result<usize, &'static str> {
        let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let shift = match unit.trim_start().to_ascii_uppercase().as_str() {
            "" | "B" => 0,
            "K" | "KIB" => 10,
            "M" | "MIB" => 20,
            "G" | "GIB" => 30,
            "T" | "TIB" => 40,
            _ => return Err(NO_SIZE),
        };
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        // 18 digits after the point suffice: further digits amount to less than a byte
        let part = part.get(..18).unwrap_or(part);
        let digits = |digits: &str| match digits.parse::<u64>() {
            Ok(value) => Ok(u128::from(value)),
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(TOO_LARGE),
            Err(_) => Err(NO_SIZE),
        };
        let scale = 10_u128.pow(u32::try_from(part.len()).unwrap_or(0));
        let bytes = (digits(whole)? << shift) + ((digits(part)? << shift) / scale);
        match usize::try_from(bytes) {
            Ok(0) => Err(NO_SIZE),
            // no single allocation can be larger than `isize::MAX`
            Ok(bytes) if bytes <= isize::MAX.unsigned_abs() => Ok(bytes),
            Ok(_) | Err(_) => Err(TOO_LARGE),
        }
    }
}

const NO_SIZE: &str = "a size is a positive number of bytes, such as 4096, 512M, 1.5G or 2GiB (K, M, G and T are powers of 1024)";
const TOO_LARGE: &str = "that is more than the address space holds";

fn variable<V>(name: &'static str, parse: impl Fn(&str) -> Result<V, &'static str>) -> Result<Option<V>> {
    let text = match std::env::var(name) {
        Ok(text) if !text.is_empty() => text,
        Ok(_) | Err(VarError::NotPresent) => return Ok(None),
        Err(error) => return Err(Error::invalid("settings", format!("{name} is no text")).caused_by(error)),
    };
    parse(&text).map(Some).map_err(|why| Error::invalid("settings", format!("{name} = `{text}`: {why}")))
}

#[cfg(test)]
mod tests {
    use super::Settings;

    #[cfg(feature = "program-cache")]
    #[test]
    fn an_empty_path_keeps_no_programs() {
        let keeps = |folder: &str| Settings { cache_dir: Some(folder.into()), ..Settings::default() }.program_cache().keeps();
        assert_eq!(["", "folder"].map(keeps), [false, true]);
    }

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(Settings::parse_bytes("256M"), Ok(256 << 20));
        assert_eq!(Settings::parse_bytes("10"), Ok(10));
        for (text, bytes) in
            [("2T", 2 << 40), ("2k", 2048), ("2KiB", 2048), ("2 mib", 2 << 20), ("1.5G", 3 << 29), ("3TiB", 3 << 40)]
        {
            assert_eq!(Settings::parse_bytes(text), Ok(bytes), "{text}");
        }
        // fractions are rounded down to whole bytes, however many digits the text has
        assert_eq!(Settings::parse_bytes("0.1G"), Ok(107_374_182));
        assert_eq!(Settings::parse_bytes(&format!("0.5{}K", "0".repeat(40))), Ok(512));
        assert_eq!(Settings::parse_bytes("0.0009765625K"), Ok(1));
        for bad in ["", "M", "x", "1X", "0", "0G", "-1", "+1", "1µ", "1.", ".5G", "1.5.5G", "1e3", "1GB", "0.0001K", "1 2"] {
            assert!(Settings::parse_bytes(bad).unwrap_err().contains("a positive number of bytes"), "{bad}");
        }
        let most = isize::MAX.unsigned_abs();
        assert_eq!(Settings::parse_bytes(&most.to_string()), Ok(most));
        for large in [(most + 1).to_string(), format!("{}G", (most >> 30) + 1), "9".repeat(40), format!("{}K", "9".repeat(40))] {
            assert!(Settings::parse_bytes(&large).unwrap_err().contains("address space"), "{large}");
        }
    }
}
