//! Checks that a build for the CPU alone contains no crate that only other backends need, and that no build contains hooks of tests.

use super::Finding;
use crate::Result;
use crate::workspace::Workspace;

/// Crates that only compiled programs and drivers need.
const UNWANTED: &[&str] = &["blake3", "cc", "directories", "cl3", "wgpu", "lapidary-kernels"];

/// Name of the feature with which our crates have hooks for tests. Only dev-dependencies may switch the feature on.
const HOOKS: &str = "test-hooks";

/// Finds crates in the build for the CPU alone that only other backends need, and hooks of tests in the builds of the library and of
/// the programs.
pub fn check(ws: &Workspace) -> Result<Vec<Finding>> {
    let tree = |package: &str, more: [&str; 3]| {
        let args = ["tree", "--package", package, "--prefix", "none", "--offline"];
        ws.cargo(&[&args[..], &more].concat()).output()
    };
    let mut findings = unwanted(&tree("lapidary", ["--no-default-features", "--edges", "normal,build"])?);
    for package in ["lapidary", "lapidary-cli", "lapidary-bench"] {
        let built = tree(package, ["--all-features", "--edges", "normal,build,features"])?;
        findings.extend(hooked(package, &built));
    }
    Ok(findings)
}

/// Finds the feature [`HOOKS`] in the output of `cargo tree` with the edges of features.
fn hooked(package: &str, tree: &str) -> Option<Finding> {
    let line = tree.lines().find(|line| line.contains(&format!("feature \"{HOOKS}\"")))?;
    Some(Finding::new(package, format!("is built with the hooks of tests: {line}")))
}

/// Finds crates of [`UNWANTED`] in the output of `cargo tree`. Each line of this output begins with the name of a crate.
fn unwanted(tree: &str) -> Vec<Finding> {
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    let finding = |name: &str| Finding::new("lapidary", format!("depends on {name} without default features"));
    names.filter(|name| UNWANTED.contains(name)).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_backends_need_is_found() {
        let lean = "lapidary v0.1.0 (/x)\nlapidary-core v0.1.0\nenum_dispatch v0.3.13 (proc-macro)\n";
        assert_eq!(unwanted(lean), []);
        assert_eq!(unwanted(&format!("{lean}blake3 v1.8.2\ncc v1.2.0 (*)\n")).len(), 2);
    }

    #[test]
    fn hooks_of_tests_are_found() {
        let tree = "lapidary v0.1.0 (/x)\nlapidary-core feature \"program-cache\"\n";
        assert_eq!(hooked("lapidary", tree), None);
        assert!(hooked("lapidary", &format!("{tree}lapidary-core feature \"test-hooks\" (*)\n")).is_some());
    }
}
