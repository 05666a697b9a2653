//! Which crate may depend on which.

use cargo_metadata::{DependencyKind, Package};

use super::Finding;
use super::words::VENDORS;
use crate::workspace::Workspace;

/// What crates of a name may depend on; `*` stands for any ending.
struct Row {
    crates: &'static str,
    may_use: &'static [&'static str],
    /// In tests and benchmarks besides.
    tests_may_use: &'static [&'static str],
}

const CORE: &str = "lapidary-core";
const CPU: &str = "lapidary-backend-cpu";
const SUITE: &str = "lapidary-conformance";

/// The arrows of `ARCHITECTURE.md`. A crate that no row names may not exist.
const ROWS: &[Row] = &[
    Row { crates: CORE, may_use: &[], tests_may_use: &[] },
    Row { crates: "lapidary-kernels", may_use: &[CORE], tests_may_use: &[] },
    Row { crates: "lapidary-backend-*", may_use: &[CORE, "lapidary-kernels"], tests_may_use: &[SUITE] },
    Row { crates: SUITE, may_use: &[CORE, "lapidary-kernels", CPU], tests_may_use: &[] },
    Row { crates: "lapidary", may_use: &[CORE, "lapidary-kernels", "lapidary-backend-*"], tests_may_use: &[SUITE] },
    Row { crates: "lapidary-cli", may_use: &["lapidary", SUITE], tests_may_use: &[] },
    Row { crates: "lapidary-capi", may_use: &["lapidary"], tests_may_use: &[] },
    Row { crates: "lapidary-bench", may_use: &["lapidary", CPU], tests_may_use: &[] },
    Row { crates: "lapidary-xtask", may_use: &[], tests_may_use: &[] },
];

/// One dependency of one crate.
#[derive(Clone, Copy)]
struct Arrow<'a> {
    from: &'a str,
    to: &'a str,
    in_tests: bool,
}

/// Dependencies that no arrow allows.
pub fn check(ws: &Workspace) -> Vec<Finding> {
    ws.packages().into_iter().flat_map(arrows).filter_map(judge).collect()
}

fn arrows(package: &Package) -> Vec<Arrow<'_>> {
    let arrow = |to, in_tests| Arrow { from: &package.name, to, in_tests };
    let itself = arrow(CORE, true);
    let rest = package.dependencies.iter().map(|d| arrow(d.name.as_str(), d.kind == DependencyKind::Development));
    // a crate without dependencies must be in the table too
    std::iter::once(itself).filter(|_| row(&package.name).is_none()).chain(rest).collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}

fn row(name: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| matches(row.crates, name))
}

fn judge(arrow: Arrow<'_>) -> Option<Finding> {
    let Arrow { from, to, in_tests } = arrow;
    let finding = |message: String| Some(Finding::new(from, message));
    let Some(row) = row(from) else { return finding("not in the table of arrows (xtask/src/tidy/arrows.rs)".into()) };
    let vendor = |name: &str| VENDORS.iter().any(|vendor| name.split(['-', '_']).any(|part| part == *vendor));
    if from == CORE && vendor(to) {
        return finding(format!("depends on {to}; core knows no vendor"));
    }
    let ours = to == "lapidary" || to.starts_with("lapidary-");
    let tests: &[&str] = if in_tests { row.tests_may_use } else { &[] };
    let allowed = row.may_use.iter().chain(tests).any(|pattern| matches(pattern, to));
    if ours && !allowed { finding(format!("depends on {to}; its arrows are {:?}", row.may_use)) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(from: &str, to: &str, in_tests: bool) -> bool {
        judge(Arrow { from, to, in_tests }).is_some()
    }

    #[test]
    fn arrows_point_one_way() {
        for (from, to) in [
            (CORE, CPU),
            (CORE, "opencl-sys"),
            (CORE, "wgpu"),
            (CPU, "lapidary"),
            (CPU, SUITE),
            (SUITE, "lapidary"),
            ("lapidary", "lapidary-cli"),
            ("lapidary-kernels", CPU),
            ("lapidary-capi", CORE),
            ("lapidary-new", "libc"),
        ] {
            assert!(bad(from, to, false), "{from} → {to}");
        }
    }

    #[test]
    fn tests_may_use_the_suite() {
        assert!(bad("lapidary", SUITE, false) && !bad("lapidary", SUITE, true));
        assert!(!bad("lapidary-backend-x", CORE, false) && !bad("lapidary", "faer", false));
        assert!(!bad("lapidary-cli", SUITE, false) && bad(CORE, SUITE, true));
    }
}
