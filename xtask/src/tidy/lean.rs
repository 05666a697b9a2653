//! Checks that a build for the CPU alone contains no crate that only other backends need.

use super::Finding;
use crate::Result;
use crate::workspace::Workspace;

/// Crates that only compiled programs and drivers need.
const UNWANTED: &[&str] = &["blake3", "cc", "directories", "cl3", "wgpu", "lapidary-kernels"];

/// Finds crates in the build for the CPU alone that only other backends need.
pub fn check(ws: &Workspace) -> Result<Vec<Finding>> {
    let args =
        ["tree", "--package", "lapidary", "--no-default-features", "--edges", "normal,build", "--prefix", "none", "--offline"];
    Ok(unwanted(&ws.cargo(&args).output()?))
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
}
