//! Checks that each crate depends only on crates that it may use.

use cargo_metadata::{DependencyKind, Package};

use super::Finding;
use crate::workspace::Workspace;

/// The dependencies that a crate may have. A name that ends in `*` stands for all crates whose names begin with the text before
/// `*`.
struct Row {
    crates: &'static str,
    may_use: &'static [&'static str],
    /// Dependencies that the crate may have in addition for tests and benchmarks.
    tests_may_use: &'static [&'static str],
}

const CORE: &str = "lapidary-core";
const KERNELS: &str = "lapidary-kernels";
const HOST: &str = "lapidary-host";
const CPU: &str = "lapidary-backend-cpu";
const SUITE: &str = "lapidary-conformance";
const TUNE: &str = "lapidary-tune";

/// The allowed dependencies, which `ARCHITECTURE.md` draws as arrows. If no row names a crate of the workspace, the check reports
/// an error.
const ROWS: &[Row] = &[
    Row { crates: CORE, may_use: &[], tests_may_use: &[] },
    Row { crates: KERNELS, may_use: &[CORE], tests_may_use: &[] },
    Row { crates: "lapidary-backend-*", may_use: &[CORE, KERNELS], tests_may_use: &[SUITE] },
    Row { crates: HOST, may_use: &[], tests_may_use: &[] },
    Row { crates: TUNE, may_use: &[], tests_may_use: &[] },
    Row { crates: SUITE, may_use: &[CORE, KERNELS, CPU, HOST], tests_may_use: &[] },
    Row { crates: "lapidary", may_use: &[CORE, KERNELS, "lapidary-backend-*"], tests_may_use: &[SUITE] },
    Row { crates: "lapidary-cli", may_use: &["lapidary", SUITE, HOST, TUNE], tests_may_use: &[] },
    Row { crates: "lapidary-capi", may_use: &["lapidary"], tests_may_use: &[] },
    Row { crates: "lapidary-bench", may_use: &["lapidary", CPU, HOST], tests_may_use: &[] },
    Row { crates: "lapidary-web", may_use: &["lapidary"], tests_may_use: &[] },
    Row { crates: "lapidary-xtask", may_use: &[], tests_may_use: &[] },
];

/// External crates that some of our crates may use, and the invariant that this list protects. The name of an external crate does
/// not show whether the crate opens devices, so `tidy` refuses every external crate that the list does not name. Tests and build
/// scripts may use any crate.
struct Outside {
    crates: &'static str,
    may_use: &'static [&'static str],
    invariant: &'static str,
}

const OUTSIDE: &[Outside] = &[
    Outside {
        crates: CORE,
        may_use: &["blake3", "enum_dispatch", "loom", "rayon-core", "rustix", "web-time"],
        invariant: "core knows no vendor",
    },
    Outside { crates: KERNELS, may_use: &["minijinja", "tempfile"], invariant: "kernels opens no device" },
];

/// One dependency of one crate, which `ARCHITECTURE.md` draws as an arrow.
#[derive(Clone, Copy)]
struct Arrow<'a> {
    from: &'a str,
    to: &'a str,
    kind: DependencyKind,
}

/// Finds dependencies that neither `ROWS` nor the list of external crates allows.
pub fn check(ws: &Workspace) -> Vec<Finding> {
    ws.packages().into_iter().flat_map(arrows).filter_map(judge).collect()
}

fn arrows(package: &Package) -> Vec<Arrow<'_>> {
    let arrow = |to, kind| Arrow { from: &package.name, to, kind };
    let itself = arrow(CORE, DependencyKind::Development);
    let rest = package.dependencies.iter().map(|d| arrow(d.name.as_str(), d.kind));
    // The first entry is the crate itself if no row names it, so that the check also reports a crate without dependencies.
    std::iter::once(itself).filter(|_| row(&package.name).is_none()).chain(rest).collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}

fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| matches(row.crates, name))
}

fn judge(arrow: Arrow<'_>) -> Option<Finding> {
    let Arrow { from, to, kind } = arrow;
    let Some(row) = row(from) else {
        return Some(Finding::new(from, "not in the table of arrows (xtask/src/tidy/arrows.rs)"));
    };
    // the tests of a crate use its own feature `test-hooks`
    if from == to && kind == DependencyKind::Development {
        return None;
    }
    let ours = to == "lapidary" || to.starts_with("lapidary-");
    if !ours {
        return outside(arrow);
    }
    let tests: &[&str] = if kind == DependencyKind::Development { row.tests_may_use } else { &[] };
    let allowed = row.may_use.iter().chain(tests).any(|pattern| matches(pattern, to));
    (!allowed).then(|| Finding::new(from, format!("depends on {to}; its arrows are {:?}", row.may_use)))
}

fn outside(arrow: Arrow<'_>) -> Option<Finding> {
    let Arrow { from, to, kind } = arrow;
    let list = OUTSIDE.iter().find(|list| list.crates == from)?;
    let Outside { may_use, invariant, .. } = list;
    let allowed = kind != DependencyKind::Normal || may_use.contains(&to);
    (!allowed).then(|| {
        let message = format!(
            "depends on {to}, which is not on its list of outside crates {may_use:?}. The list keeps \"{invariant}\" true: \
             a crate that opens devices is not told by its name. If {to} opens none, add it in xtask/src/tidy/arrows.rs"
        );
        Finding::new(from, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use DependencyKind::{Build, Development, Normal};

    fn bad(from: &str, to: &str, kind: DependencyKind) -> bool {
        judge(Arrow { from, to, kind }).is_some()
    }

    #[test]
    fn arrows_point_one_way() {
        for (from, to) in [
            (CORE, CPU),
            (CPU, "lapidary"),
            (CPU, SUITE),
            (SUITE, "lapidary"),
            ("lapidary", "lapidary-cli"),
            (KERNELS, CPU),
            ("lapidary-capi", CORE),
            ("lapidary-new", "libc"),
        ] {
            assert!(bad(from, to, Normal), "{from} → {to}");
        }
    }

    #[test]
    fn tests_may_use_the_suite() {
        assert!(bad("lapidary", SUITE, Normal) && bad("lapidary", SUITE, Build) && !bad("lapidary", SUITE, Development));
        assert!(!bad("lapidary-backend-x", CORE, Normal) && !bad("lapidary", "faer", Normal));
        assert!(!bad("lapidary-cli", SUITE, Normal) && bad(CORE, SUITE, Development));
        assert!(!bad(CORE, CORE, Development) && bad(CORE, CORE, Normal));
    }

    #[test]
    fn core_and_kernels_use_no_unlisted_crate() {
        for to in ["cl3", "opencl3", "ash", "cudarc", "wgpu", "libloading"] {
            assert!(bad(CORE, to, Normal) && bad(KERNELS, to, Normal), "{to}");
            assert!(!bad("lapidary-backend-x", to, Normal), "{to}");
        }
        assert!(!bad(CORE, "blake3", Normal) && bad(KERNELS, "blake3", Normal));
        assert!(!bad(CORE, "proptest", Development) && !bad(KERNELS, "cc", Build));
        let finding = judge(Arrow { from: KERNELS, to: "cl3", kind: Normal }).unwrap();
        assert!(finding.message.contains("depends on cl3") && finding.message.contains("opens no device"), "{finding}");
    }
}
