//! Tests on Windows by Wine.

use std::fs;
use std::path::Path;

use super::{Emulator, SUITE};
use crate::Result;
use crate::cross;
use crate::runner::Invocation;
use crate::workspace::Workspace;

const TARGET: &str = "x86_64-pc-windows-gnu";
const COMPILER: &str = "x86_64-w64-mingw32-gcc";

/// Debian's packages of Wine and of a C compiler for Windows.
const PACKAGES: &[&str] = &["gcc-mingw-w64-x86-64", "wine64"];

/// Path of Wine. Debian installs no command `wine64` in the search path.
const WINE: &str = "/usr/lib/wine/wine64";

/// C source of a library that Wine 8 lacks. Rust programs load this library for random numbers. Its only function calls another
/// function of Windows.
const RANDOM: &str = "unsigned char SystemFunction036(void *buffer, unsigned long length);
__declspec(dllexport) int ProcessPrng(unsigned char *buffer, unsigned long long length) {
    return SystemFunction036(buffer, (unsigned long)length);
}
";

/// Builds the conformance suite for Windows and runs it by Wine.
pub fn check(ws: &Workspace) -> Result<String> {
    if let Err(missing) = cross::install(PACKAGES) {
        return Ok(format!("not run: {missing}"));
    }
    let libraries = ws.target("wine-libraries");
    random(ws, &libraries)?;
    let env = [("WINEPREFIX", ws.target("wine")), ("WINEDEBUG", "-all".into()), ("WINEPATH", for_windows(&libraries).into())];
    Emulator { target: TARGET, linker: COMPILER, program: Path::new(WINE), env: &env }.test(ws, SUITE)
}

/// The path in Windows notation. In Wine, drive Z is the whole file system.
fn for_windows(path: &Path) -> String {
    format!("Z:{}", path.to_string_lossy().replace('/', "\\"))
}

/// Compiles the library for random numbers into a folder in which Wine searches for libraries.
fn random(ws: &Workspace, folder: &Path) -> Result<()> {
    let source = folder.join("random.c");
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(&source, RANDOM));
    written.map_err(|error| format!("{}: {error}", source.display()))?;
    let compiler = Invocation::new(COMPILER, &ws.root, &["-shared", "-o"]).arg(folder.join("bcryptprimitives.dll"));
    compiler.arg(source).arg("-ladvapi32").run()
}
