//! `cargo xtask kernels`: merges tuned kernels into the database of kernels.
//!
//! The chore reads files that `lapidary tune --export` has written. It works on lines: it does not know which parameters a kernel
//! has. The tests of the crate `kernels` refuse a database with a kernel that does not exist.

mod line;
mod merge;

use std::path::PathBuf;

use crate::Result;
use crate::workspace::Workspace;

/// Folder of the database.
const FOLDER: &str = "kernels/database";
/// Files of the database.
const FILES: [&str; 5] = ["cpu.txt", "gemm.txt", "getrf.txt", "groups.txt", "thresholds.txt"];

/// Merges the entries of exported files into the files of the database. A later file replaces entries of an earlier one. If a line
/// of any file is no entry, no file is written.
pub fn run(ws: &Workspace, exports: &[&str]) -> Result<()> {
    if exports.is_empty() {
        return Err("name the files that `lapidary tune --export` has written".into());
    }
    let paths = FILES.map(|file| ws.root.join(FOLDER).join(file));
    let before: Vec<String> = paths.iter().map(read).collect::<Result<_>>()?;
    let mut after = before.clone();
    for export in exports {
        let text = read(&PathBuf::from(export))?;
        let entries = merge::exported(export, &text)?;
        for (file, text) in FILES.iter().zip(&mut after) {
            *text = merge::merged(file, text, &entries)?;
        }
        println!("number of entries in {export}: {}", entries.len());
    }
    for ((path, before), after) in paths.iter().zip(&before).zip(&after) {
        if before != after {
            std::fs::write(path, after).map_err(|error| format!("{}: {error}", path.display()))?;
            println!("changed {}", path.display());
        }
    }
    Ok(())
}

fn read(path: &PathBuf) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
