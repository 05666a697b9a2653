//! Visits a page with Chromium without a window.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::server::Server;
use crate::Result;

/// Debian's package of the browser, and the name of its program.
pub const PACKAGE: &str = "chromium";
/// Time in which a page must report. The GPU of the browser is a CPU here.
const REPORT_TIME: Duration = Duration::from_secs(120);
/// Time in which the browser must end after the report.
const END_TIME: Duration = Duration::from_secs(60);
/// Options for a browser without a window, a sandbox (which needs rights that a container lacks) and services of its vendor.
const OPTIONS: &[&str] = &[
    "--headless",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=900,1300",
];

/// Options with which the browser offers a GPU that is computed by the CPU.
pub const WITH_GPU: &[&str] = &["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];
/// Without these options, a browser without a GPU refuses its adapter.
pub const WITHOUT_GPU: &[&str] = &[];
/// Option with which the host [`INSECURE`] is this computer.
pub const WITH_INSECURE_HOST: &[&str] = &["--host-resolver-rules=MAP page.test 127.0.0.1"];
/// A host for which the browser offers no WebGPU, because its pages come neither by https nor from localhost.
pub const INSECURE: &str = "page.test";

/// Opens the checks of the page on the host `host` in a new browser, and returns the report of the page. The browser writes a picture of
/// the page to `picture`.
///
/// # Errors
/// The browser does not start, or the page does not report in time.
pub fn visit(server: &Server, host: &str, options: &[&str], picture: &Path) -> Result<String> {
    let profile = picture.with_extension("profile");
    let _ = std::fs::remove_dir_all(&profile);
    let mut command = Command::new(PACKAGE);
    command.args(OPTIONS).args(options).arg(format!("http://{host}:{}/?check", server.port));
    command.arg(format!("--user-data-dir={}", profile.display())).arg(format!("--screenshot={}", picture.display()));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut browser = command.spawn().map_err(|error| format!("{PACKAGE}: {error}"))?;
    let report = server.report(REPORT_TIME);
    let time = if report.is_some() { END_TIME } else { Duration::ZERO };
    let ended = end(&mut browser, time);
    let _ = std::fs::remove_dir_all(&profile);
    ended?;
    report.ok_or_else(|| format!("the page on {host} has not reported within {REPORT_TIME:?}"))
}

/// Waits until the browser has ended. A browser that does not end within `time` is killed.
fn end(browser: &mut Child, time: Duration) -> Result<()> {
    let start = Instant::now();
    let failed = |error: std::io::Error| format!("{PACKAGE}: {error}");
    while start.elapsed() < time {
        if browser.try_wait().map_err(failed)?.is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    browser.kill().and_then(|()| browser.wait()).map(drop).map_err(failed)
}
