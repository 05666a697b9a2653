//! `cargo xtask tidy`: checks the invariants of `ARCHITECTURE.md`.
//!
//! Most invariants say that something must be absent ("core names no vendor"). The rules are tables: `arrows::ROWS`,
//! `words::RULES`, `manifests::INHERITED`.

mod arrows;
mod documents;
mod lean;
mod manifests;
mod sizes;
mod source;
mod words;

use std::fmt;
use std::path::Path;

use crate::Result;
use crate::workspace::Workspace;
use source::Source;

/// A place in the repository that breaks a rule.
#[derive(Debug, PartialEq)]
struct Finding {
    place: String,
    message: String,
}

impl Finding {
    fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Finding { place: place.into(), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

/// Checks every rule and prints each violation.
pub fn run(ws: &Workspace) -> Result<()> {
    let sources = sources(ws)?;
    let mut findings = arrows::check(ws);
    findings.extend(manifests::check(ws)?);
    findings.extend(lean::check(ws)?);
    findings.extend(words::check(&sources));
    findings.extend(sizes::too_long(&sources));
    findings.extend(documents::check(ws)?);
    sizes::long(&sources).iter().for_each(|finding| println!("warning: {finding}"));
    findings.iter().for_each(|finding| println!("error: {finding}"));
    println!("tidy: {} files, {} findings", sources.len(), findings.len());
    if findings.is_empty() { Ok(()) } else { Err("the rules above are those of ARCHITECTURE.md".into()) }
}

/// Reads all Rust files of the workspace.
fn sources(ws: &Workspace) -> Result<Vec<Source>> {
    let mut paths = Vec::new();
    for package in ws.packages() {
        walk(&ws.root.join(ws.folder(package)), &mut paths).map_err(|error| format!("{}: {error}", package.name))?;
    }
    paths.sort();
    let from_root = |path: &Path| path.strip_prefix(&ws.root).unwrap_or(path).to_string_lossy().replace('\\', "/");
    paths.iter().map(|path| Ok(Source::new(from_root(path), &ws.read(path)?))).collect()
}

fn walk(folder: &Path, found: &mut Vec<std::path::PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("target") {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}
