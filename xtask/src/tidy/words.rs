//! Checks that certain words do not appear in certain files.

use super::Finding;
use super::source::Source;

/// The part of a file in which a rule searches for words.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Everything,
}

/// A rule: words that must not appear in certain files.
struct Rule {
    /// Beginnings of the paths of the files to which the rule applies. If the list is empty, the rule applies to all files.
    only: &'static [&'static str],
    /// Beginnings of the paths of files to which the rule does not apply.
    except: &'static [&'static str],
    part: Part,
    words: &'static [&'static str],
    /// The invariant that the rule protects, as a sentence.
    invariant: &'static str,
}

/// Names of vendors, of their interfaces and of their programming languages.
pub const VENDORS: &[&str] = &[
    "opencl", "cuda", "cublas", "hip", "rocm", "sycl", "vulkan", "wgpu", "wgsl", "webgpu", "metal", "nvidia", "intel", "amd",
    "radeon", "geforce", "pocl", "mesa", "mkl", "openblas",
];

const RULES: &[Rule] = &[
    Rule { only: &["core/"], except: &[], part: Part::Everything, words: VENDORS, invariant: "core names no vendor" },
    // A crate that has a driver could call the device of this driver directly, and so bypass the engine.
    Rule {
        only: &[],
        except: &["core/src/engine", "core/tests/"],
        part: Part::Code,
        words: &["device().alloc(", "device().write(", "device().read(", "device().launch("],
        invariant: "nothing but the engine calls the device of a driver",
    },
    Rule {
        only: &["backend-"],
        except: &[],
        part: Part::Code,
        words: &["algorithms", "Plan", "Schedule", "Dispatcher"],
        invariant: "backends know no algorithm and hold no policy",
    },
    Rule {
        only: &["conformance/src/"],
        except: &[],
        part: Part::Code,
        words: &["algorithms", "lapidary", "Plan", "Schedule", "DeviceRuntime"],
        invariant: "the suite shares no code with what it grades",
    },
    Rule {
        only: &[],
        except: &[],
        part: Part::Code,
        words: &["todo!", "unimplemented!", "dbg!", "#[ignore"],
        invariant: "what is not done is not there",
    },
    Rule {
        only: &[],
        except: &[],
        part: Part::Everything,
        words: &["FIX\u{4d}E", "XX\u{58}"],
        invariant: "what is known to be wrong is repaired or in the list of open issues",
    },
];

/// Finds every line with a word that must not appear in its file.
pub fn check(sources: &[Source]) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| sources.iter().flat_map(|source| rule.check(source))).collect()
}

impl Rule {
    fn covers(&self, path: &str) -> bool {
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| path.starts_with(prefix));
        (self.only.is_empty() || begins(self.only)) && !begins(self.except)
    }

    fn check(&self, source: &Source) -> Vec<Finding> {
        if !self.covers(&source.path) {
            return Vec::new();
        }
        let lines = source.code.iter().zip(&source.comments).enumerate();
        lines.filter_map(|(at, (code, comment))| self.check_line(&source.path, at + 1, code, comment)).collect()
    }

    fn check_line(&self, path: &str, line: usize, code: &str, comment: &str) -> Option<Finding> {
        let found = |text: &str| self.words.iter().find(|word| has_word(text, word));
        let found = found(code).or_else(|| if self.part == Part::Everything { found(comment) } else { None });
        found.map(|word| Finding::new(format!("{path}:{line}"), format!("`{word}`: {}", self.invariant)))
    }
}

/// Whether the text contains the word with no letter before or after it. The case of letters does not matter for names of vendors.
fn has_word(text: &str, word: &str) -> bool {
    let lower = VENDORS.contains(&word).then(|| text.to_lowercase());
    let text = lower.as_deref().unwrap_or(text);
    text.match_indices(word).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + word.len()..].chars().next());
        let open = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        let joined = |c: Option<char>| lower.is_none() && c == Some('_');
        !(open(before) || joined(before) || ends_in_letter(word) && (open(after) || joined(after)))
    })
}

fn ends_in_letter(word: &str) -> bool {
    word.ends_with(|c: char| c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&[Source::new(path, text)]).len()
    }

    #[test]
    fn core_names_no_vendor() {
        for bad in ["// as CUDA does", "const OPENCL_C: u8 = 0;", "fn f() { g(\"x\") } // Intel"] {
            assert_eq!(findings("core/src/x.rs", bad), 1, "{bad}");
            assert_eq!(findings("backend-x/src/x.rs", bad), 0, "{bad}");
        }
        assert_eq!(findings("core/src/x.rs", "// a relationship, an amdahl"), 0);
    }

    #[test]
    fn only_the_engine_calls_a_device() {
        for bad in ["self.drivers[0].device().alloc(8)", "driver.device().launch(&instruction)"] {
            assert_eq!(findings("lapidary/src/x.rs", bad), 1, "{bad}");
            assert_eq!(findings("core/src/engine/x.rs", bad), 0, "{bad}");
        }
        assert_eq!(findings("lapidary/src/x.rs", "driver.device().alloc_pinned(8); // device().alloc(8)"), 0);
    }

    #[test]
    fn backends_know_no_algorithm_and_the_suite_no_backend() {
        assert_eq!(findings("backend-cpu/src/x.rs", "use lapidary_core::algorithms::gemm;"), 1);
        assert_eq!(findings("backend-cpu/src/x.rs", "// no algorithms here, no Plan"), 0);
        assert_eq!(findings("conformance/src/x.rs", "use lapidary::Machine;"), 1);
        assert_eq!(findings("conformance/src/x.rs", "use lapidary_core::Scalar;"), 0);
    }

    #[test]
    fn nothing_is_left_undone() {
        for bad in ["fn f() { todo!() }", "fn f() { unimplemented!() }", "#[ignore = \"x\"]", "// FIX\u{4d}E later"] {
            assert_eq!(findings("cli/src/x.rs", bad), 1, "{bad}");
        }
        assert_eq!(findings("cli/src/x.rs", "let s = \"todo!\";"), 0);
    }
}
