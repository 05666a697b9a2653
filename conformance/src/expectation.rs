//! Known failures of devices and drivers, which the file `conformance/expectations.toml` lists.
//!
//! An entry names trials that are known to fail on certain devices for one reason. If a trial that an entry names passes, the run
//! counts as failed, so that the entry is removed once its reason has gone. If a trial that an entry names fails in a check that
//! the entry does not name, the run counts as failed too.

use serde::Deserialize;
use wildmatch::WildMatch;

use crate::Failure;
use crate::report::{Identity, Verdict};

/// One entry of `expectations.toml`: a known failure.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// Pattern of the names of the trials, for example `f32::*::keeps_subnormals`. `*` stands for any text and `?` for any
    /// character.
    pub pattern: String,
    /// Patterns of the devices that are known to fail. A pattern must match the model alone, or the text of model, driver and
    /// interface.
    pub devices: Vec<String>,
    /// The first driver version that fails. `None` sets no lower limit: all versions below `before` fail.
    pub from: Option<String>,
    /// The first driver version that no longer fails. `None` sets no upper limit: all versions from `from` on fail.
    pub before: Option<String>,
    /// Whether the entry applies only to devices that flush subnormal numbers. The suite tests with two products whether a device
    /// does.
    #[serde(default)]
    pub flushes: bool,
    /// Names of the checks that are known to fail.
    pub checks: Vec<String>,
    /// Reason of the known failure.
    pub reason: String,
    /// Link to the bug report or the decision about the known failure.
    pub link: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    expectation: Vec<Expectation>,
}

/// The entries of `expectations.toml`.
///
/// # Panics
/// `known` never panics: a test shows that the file can be read.
#[must_use]
pub fn known() -> Vec<Expectation> {
    read(include_str!("../expectations.toml")).expect("the file is right")
}

/// Reads entries from TOML text.
///
/// # Errors
/// The text is not TOML, or an entry has an unknown field or lacks a field.
pub fn read(text: &str) -> Result<Vec<Expectation>, String> {
    toml::from_str(text).map(|file: File| file.expectation).map_err(|error| error.to_string())
}

impl Expectation {
    /// Whether the entry applies to `subject`. `flushes` states whether this subject flushes subnormal numbers.
    #[must_use]
    pub fn is_about(&self, subject: &Identity, flushes: bool) -> bool {
        let Identity { device, driver, api, .. } = subject;
        let version = version(driver);
        let is_in_range = self.from.as_deref().is_none_or(|from| self::version(from) <= version)
            && self.before.as_deref().is_none_or(|before| version < self::version(before));
        let names = [device.clone(), format!("{device} {driver} {api}")];
        let is_named = self.devices.iter().any(|pattern| names.iter().any(|name| WildMatch::new(pattern).matches(name)));
        is_named && is_in_range && (flushes || !self.flushes)
    }

    /// Whether the entry applies to the trial that is called `trial`.
    #[must_use]
    pub fn covers(&self, trial: &str) -> bool {
        WildMatch::new(&self.pattern).matches(trial)
    }
}

/// The version in the description of a driver: the first number with dots, as `25.0.7` in `Mesa 25.0.7-2 (git)`. The description of
/// an OpenCL device gives the versions of its platform and of the standard first; the version of the driver stands after the last
/// semicolon. If a description contains no version, its version counts as lower than all others.
fn version(text: &str) -> Vec<u64> {
    let numbers = text.rsplit("; ").next().unwrap_or_default().split(|c: char| !c.is_ascii_digit() && c != '.');
    let first = numbers.map(|number| number.trim_matches('.')).find(|number| number.contains('.'));
    first.unwrap_or_default().split('.').filter_map(|part| part.parse().ok()).collect()
}

/// Returns the verdict of a trial, and the reason that the deciding entry gives. `expectations` are the entries that apply to the
/// subject.
#[must_use]
pub fn judge(expectations: &[Expectation], trial: &str, outcome: Result<(), &Failure>) -> (Verdict, String) {
    let mut covering = expectations.iter().filter(|entry| entry.covers(trial)).peekable();
    let words = |entry: &Expectation| format!("{} ({})", entry.reason, entry.link);
    match outcome {
        Ok(()) => covering.peek().map_or((Verdict::Passed, String::new()), |entry| (Verdict::UnexpectedlyPassed, words(entry))),
        Err(failure) => {
            let reason = covering.find(|entry| entry.checks.iter().any(|check| check == failure.check));
            reason.map_or((Verdict::Failed, String::new()), |entry| (Verdict::Expected, words(entry)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Expectation, judge, known, read, version};
    use crate::Failure;
    use crate::report::{Identity, Verdict};

    const TEXT: &str = r#"
[[expectation]]
pattern = "f32::gemm::*nan*"
devices = ["Model 8", "Model 7 *"]
from = "1.9"
before = "1.12.3"
checks = ["gemm: class"]
reason = "skips zeros"
link = "https://example.org/1"
"#;

    fn device(driver: &str) -> Identity {
        Identity { device: "Model 7 rev B".to_owned(), driver: driver.to_owned(), ..Identity::default() }
    }

    fn entries() -> Vec<Expectation> {
        read(TEXT).unwrap()
    }

    #[test]
    fn a_known_failure_is_expected() {
        let (verdict, why) = judge(&entries(), "f32::gemm::nan_propagates", Err(&Failure::new("gemm: class", "x")));
        assert_eq!((verdict, why.as_str()), (Verdict::Expected, "skips zeros (https://example.org/1)"));
    }

    #[test]
    fn an_unexpected_pass_is_a_failure() {
        let (verdict, why) = judge(&entries(), "f32::gemm::nan_propagates", Ok(()));
        assert!(verdict == Verdict::UnexpectedlyPassed && verdict.is_bad() && why.contains("skips zeros"));
        assert_eq!(judge(&entries(), "f64::gemm::nan_propagates", Ok(())).0, Verdict::Passed);
    }

    #[test]
    fn a_failure_for_another_reason_does_not_match() {
        let (verdict, why) = judge(&entries(), "f32::gemm::nan_propagates", Err(&Failure::new("memory: canaries", "x")));
        assert!(verdict == Verdict::Failed && why.is_empty());
        let other_trial = judge(&entries(), "f32::gemm::random", Err(&Failure::new("gemm: class", "x")));
        assert_eq!(other_trial.0, Verdict::Failed);
    }

    #[test]
    fn versions_of_drivers_have_a_beginning_and_an_end() {
        let about = |driver: &str| entries()[0].is_about(&device(driver), false);
        assert!(about("driver 1.9") && about("v1.10.0-rc1") && about("Mesa 1.12.2"));
        assert!(!about("1.8.99") && !about("1.12.3") && !about("2.0") && !about("unknown"));
        assert_eq!(version("llvmpipe Mesa 25.0.7-2 (LLVM 19.1.7)"), [25, 0, 7]);
        let other = Identity { device: "Model 70".to_owned(), ..device("1.9") };
        assert!(!entries()[0].is_about(&other, true));
    }

    /// The driver descriptions of an H100, of PoCL and of rusticl, as OpenCL returns them.
    #[test]
    fn the_version_of_an_opencl_device_is_that_of_its_driver() {
        let told = [
            ("OpenCL 3.0 CUDA 13.0.98; OpenCL 3.0 CUDA; 580.159.04", vec![580, 159, 4]),
            ("OpenCL 3.0 PoCL 3.1+debian  Linux; OpenCL 3.0 PoCL HSTR: pthread-x86_64; 3.1+debian", vec![3, 1]),
            ("OpenCL 3.0 ; OpenCL 3.0 ; 22.3.6", vec![22, 3, 6]),
        ];
        for (text, expected) in told {
            assert_eq!(version(text), expected, "{text}");
        }
        let about = |driver: &str| entries()[0].is_about(&device(driver), false);
        assert!(about("OpenCL 3.0 X 9.9; OpenCL 3.0; 1.10") && !about("OpenCL 1.10; OpenCL 1.10; 2.0"));
    }

    #[test]
    fn entries_about_flushing_hold_where_it_is_seen() {
        let [mut entry] = <[Expectation; 1]>::try_from(entries()).unwrap();
        entry.flushes = true;
        assert!(entry.is_about(&device("1.9"), true) && !entry.is_about(&device("1.9"), false));
    }

    /// OpenCL and Vulkan allow a device to flush subnormal numbers in single precision. No other interface of this test allows a
    /// device to flush them.
    #[test]
    fn flushing_is_excused_on_graphics_interfaces_in_single_precision_alone() {
        let excused = |device: &str, driver: &str, api: &str, trial: &str| {
            let [device, driver, api] = [device, driver, api].map(str::to_owned);
            let identity = Identity { device, driver, api, ..Identity::default() };
            let about = |entry: &Expectation| entry.flushes && entry.is_about(&identity, true) && entry.covers(trial);
            known().iter().any(about)
        };
        for name in ["gemm::keeps_subnormals", "trsm::keeps_subnormals", "trsm::subnormal_pivots_divide"] {
            for (device, driver) in [
                ("NVIDIA H100 80GB HBM3, NVIDIA (vulkan)", ""),
                ("NVIDIA H100 80GB HBM3, NVIDIA CUDA", "OpenCL 3.0 CUDA 13.0.98"),
                ("llvmpipe, rusticl", ""),
            ] {
                assert!(excused(device, driver, "lapidary 0.1.0", &format!("f32::{name}")), "{device}");
                assert!(!excused(device, driver, "lapidary 0.1.0", &format!("f64::{name}")), "{device}");
            }
            let processor = ("AMD EPYC 7763 64-Core Processor (AVX2)", "", "lapidary 0.1.0");
            let library = ("CPU", "OpenBLAS 0.3.21 Haswell kernels", "cblas, 32-bit integers");
            for (device, driver, api) in [processor, library] {
                assert!(!excused(device, driver, api, &format!("f32::{name}")), "{device}");
            }
        }
    }

    /// OpenBLAS selects its kernels by the CPU. An entry about the kernels of one CPU must not excuse the kernels of
    /// another CPU.
    #[test]
    fn pivots_of_either_zero_are_excused_with_the_kernels_that_spread_nan() {
        let excused = |kernels: &str, trial: &str| {
            let driver = format!("OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY {kernels} MAX_THREADS=64, {kernels} kernels");
            let subject =
                Identity { device: "CPU".to_owned(), driver, api: "cblas, 32-bit integers".to_owned(), ..Identity::default() };
            known().iter().any(|entry| entry.is_about(&subject, false) && entry.covers(trial))
        };
        for trial in ["trsm::zero_pivots_divide", "trsm::negative_zero_pivots_divide", "trsm::nan_propagates"] {
            let (single, double) = (format!("f32::{trial}"), format!("f64::{trial}"));
            assert!(excused("Haswell", &single) && excused("Zen", &single), "{trial}");
            assert!(!excused("Haswell", &double) && !excused("Zen", &double), "{trial}");
            assert!(
                !excused("SkylakeX", &single) && !excused("Cooperlake", &single) && !excused("Sandybridge", &single),
                "{trial}"
            );
        }
    }

    #[test]
    fn the_entries_of_the_suite_can_be_read_and_give_reasons() {
        for entry in known() {
            assert!(!entry.checks.is_empty() && !entry.reason.is_empty() && !entry.link.is_empty(), "{entry:?}");
        }
        assert!(read("[[expectation]]\npattern = \"x\"").is_err());
        assert!(read(&TEXT.replace("reason", "cause")).is_err());
    }
}
