//! Builds the folder of the page: the compiled library, the JavaScript that calls it, and the static files.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;
use crate::cross;
use crate::workspace::Workspace;

const TARGET: &str = "wasm32-unknown-unknown";
/// Folder of the static files.
const STATIC: &str = "web/static";
/// Largest size of the library in bytes, compressed as a server sends it.
const MAX_COMPRESSED: usize = 3 << 20;

/// A folder with all files of the page.
pub struct Page {
    pub folder: PathBuf,
    /// Size of the library in bytes, compressed as a server sends it.
    pub compressed: usize,
}

/// Builds the folder of the page in cargo's target folder. If there is no compiler for browsers, the inner result is an error that says
/// why.
///
/// # Errors
/// The compiler refuses the library, or the compressed library exceeds the maximum size.
pub fn build(ws: &Workspace) -> Result<Result<Page>> {
    let (folder, target) = (ws.target("web"), ws.target("browser"));
    let package = ["--package", "lapidary-web", "--lib", "--profile", "web"];
    let (cargo, _) = match cross::cargo(ws, "build", &[TARGET], &package) {
        Ok(cargo) => cargo,
        Err(missing) => return Ok(Err(missing)),
    };
    // a target folder of its own, whichever compiler is used, so that the path of the library is known
    cargo.arg("--target-dir").arg(&target).run()?;
    copy(&ws.root.join(STATIC), &folder)?;
    let library = target.join(TARGET).join("web/lapidary_web.wasm");
    let program = ["run", "--locked", "--quiet", "--package", "lapidary-web", "--features", "bindings", "--bin", "bindings", "--"];
    ws.cargo(&program).arg(library).arg(folder.join("pkg")).run()?;
    let compressed = compressed_size(&folder.join("pkg/lapidary_web_bg.wasm"))?;
    if compressed > MAX_COMPRESSED {
        return Err(format!("the library takes {compressed} bytes compressed, more than {MAX_COMPRESSED}"));
    }
    Ok(Ok(Page { folder, compressed }))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let failed = |error: std::io::Error| format!("{}: {error}", to.display());
    std::fs::create_dir_all(to).map_err(failed)?;
    for entry in std::fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().expect("an entry of a folder has a name");
        std::fs::copy(&path, to.join(name)).map_err(failed)?;
    }
    Ok(())
}

fn compressed_size(file: &Path) -> Result<usize> {
    let output = Command::new("gzip").args(["-9", "-c"]).arg(file).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("gzip: {error}"))?;
    if output.status.success() { Ok(output.stdout.len()) } else { Err(format!("gzip cannot read {}", file.display())) }
}
