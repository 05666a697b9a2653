//! Checks that `ARCHITECTURE.md` links to all decisions.

use super::Finding;
use crate::Result;
use crate::workspace::Workspace;

const MAP: &str = "ARCHITECTURE.md";
const DECISIONS: &str = "docs/decisions";

/// Finds files in `docs/decisions` to which `ARCHITECTURE.md` does not link.
pub fn check(ws: &Workspace) -> Result<Vec<Finding>> {
    let mut names = Vec::new();
    if ws.has(DECISIONS) {
        for entry in std::fs::read_dir(ws.root.join(DECISIONS)).map_err(|error| format!("{DECISIONS}: {error}"))? {
            names.push(entry.map_err(|error| error.to_string())?.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(unlinked(&ws.read(MAP)?, &names))
}

fn unlinked(map: &str, names: &[String]) -> Vec<Finding> {
    let linked = |name: &str| map.contains(&format!("({DECISIONS}/{name})"));
    let finding = |name: &String| Finding::new(format!("{DECISIONS}/{name}"), format!("{MAP} does not link to it"));
    names.iter().filter(|name| !linked(name)).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decision_is_linked() {
        let names = ["0001-a.md".to_owned(), "0002-b.md".to_owned()];
        assert_eq!(unlinked("[a](docs/decisions/0001-a.md)", &names).len(), 1);
    }
}
