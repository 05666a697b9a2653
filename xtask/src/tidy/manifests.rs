//! Checks that each crate's manifest takes the common values from the manifest of the workspace.

use super::Finding;
use crate::Result;
use crate::workspace::Workspace;

/// Keys that the manifest of each crate must inherit from the workspace, as lines of the manifest.
const INHERITED: &[&str] =
    &["version.workspace", "edition.workspace", "rust-version.workspace", "license.workspace", "repository.workspace"];

/// File names of the licence texts. Each folder with a manifest must contain these files, so that a published package contains
/// them.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// Finds manifests that do not inherit a common value from the workspace.
pub fn check(ws: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = root(&ws.read("Cargo.toml")?);
    for package in ws.packages() {
        let path = ws.folder(package).join("Cargo.toml");
        findings.extend(member(&path.to_string_lossy(), &ws.read(&path)?));
        findings.extend(licences(ws, &ws.folder(package).to_string_lossy())?);
    }
    Ok(findings)
}

/// The lines `key = value` of a manifest, with all spaces removed.
fn lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(|line| line.split_whitespace().collect())
}

fn root(text: &str) -> Vec<Finding> {
    let stated = lines(text).filter(|line| line.starts_with("rust-version=")).count();
    let finding = || Finding::new("Cargo.toml", format!("rust-version is stated {stated} times, not once"));
    (stated != 1).then(finding).into_iter().collect()
}

fn member(path: &str, text: &str) -> Vec<Finding> {
    let has = |wanted: &str| lines(text).any(|line| line == wanted);
    let missing = |key: &&&str| !has(&format!("{key}=true"));
    let mut findings: Vec<Finding> =
        INHERITED.iter().filter(missing).map(|key| Finding::new(path, format!("{key} = true is missing"))).collect();
    let lints = lines(text).skip_while(|line| line != "[lints]").nth(1);
    if lints.as_deref() != Some("workspace=true") {
        findings.push(Finding::new(path, "[lints] workspace = true is missing"));
    }
    findings
}

/// Finds licence texts that are missing in the folder of a package, or that differ from those in the root folder.
fn licences(ws: &Workspace, folder: &str) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for name in LICENCES {
        let path = format!("{folder}/{name}");
        if !ws.has(&path) || ws.read(&path)? != ws.read(name)? {
            findings.push(Finding::new(path, format!("is not {name} of the root; make it a link")));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nname = \"x\"\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\nrepository.workspace = true\n[lints]\nworkspace = true\n";

    #[test]
    fn every_crate_inherits() {
        assert_eq!(member("x", GOOD), []);
        for key in INHERITED {
            assert_eq!(member("x", &GOOD.replace(&format!("\n{key} = true"), "")).len(), 1, "{key}");
        }
        assert_eq!(member("x", &GOOD.replace("[lints]", "")).len(), 1);
        assert_eq!(member("x", &GOOD.replace("rust-version.workspace = true", "rust-version = \"1.70\"")).len(), 1);
    }

    #[test]
    fn the_oldest_compiler_is_stated_once() {
        assert_eq!(root("[workspace.package]\nrust-version = \"1.89\"\n"), []);
        assert_eq!(root("rust-version = \"1.89\"\nrust-version = \"1.90\"\n").len(), 1);
        assert_eq!(root("").len(), 1);
    }
}
