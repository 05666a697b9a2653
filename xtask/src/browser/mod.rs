//! Builds the page of the folder `web`, and tests it in a browser without a window.

mod build;
mod chromium;
mod server;

use serde_json::Value;

use crate::Result;
use crate::cross;
use crate::workspace::Workspace;
use chromium::{INSECURE, PACKAGE, WITH_GPU, WITH_INSECURE_HOST, WITHOUT_GPU, visit};
use server::Server;

/// Port on which [`serve`] offers the page, if no port is given.
const PORT: u16 = 8080;
/// Number of checks that the page has at least.
const CHECKS: usize = 14;

/// Builds the page, and tests it in three browsers: with a GPU, with a GPU that the browser refuses, and without WebGPU.
pub fn test(ws: &Workspace) -> Result<String> {
    let page = match build::build(ws)? {
        Ok(page) => page,
        Err(missing) => return Ok(format!("not run: {missing}")),
    };
    if let Err(missing) = cross::install(&[PACKAGE]) {
        return Ok(format!("not run: {missing}"));
    }
    let pictures = ws.target("web-pictures");
    std::fs::create_dir_all(&pictures).map_err(|error| format!("{}: {error}", pictures.display()))?;
    let look = |host: &str, options: &[&str], picture: &str| {
        visit(&Server::start(&page.folder, 0)?, host, options, &pictures.join(picture))
    };
    let gpu = solved(&look("localhost", WITH_GPU, "solved.png")?)?;
    refused(&look("localhost", WITHOUT_GPU, "refused.png")?)?;
    refused(&look(INSECURE, WITH_INSECURE_HOST, "without.png")?)?;
    Ok(format!("on {gpu}, {:.2} MB compressed; pictures in {}", page.compressed as f64 / 1e6, pictures.display()))
}

/// Builds the page and serves it until the process is ended.
pub fn serve(ws: &Workspace, port: Option<&str>) -> Result<()> {
    let port = port.map_or(Ok(PORT), |port| port.parse().map_err(|_| format!("`{port}` is no port")))?;
    let page = build::build(ws)??;
    let server = Server::start(&page.folder, port)?;
    println!("{} bytes compressed; open http://localhost:{}", page.compressed, server.port);
    server.serve();
    Ok(())
}

/// Checks the report of a page whose browser offers a GPU. Returns the model of the GPU.
fn solved(report: &str) -> Result<String> {
    let report = Report::parse(report)?;
    for (text, passed) in &report.checks {
        println!("{} {text}", if *passed { "ok    " } else { "FAILED" });
    }
    match report.checks.iter().find(|(_, passed)| !passed) {
        Some((text, _)) => Err(text.clone()),
        None if !report.error.is_empty() => Err(report.error),
        None if report.checks.len() < CHECKS => Err(format!("the page has made {} checks of {CHECKS}", report.checks.len())),
        None => Ok(report.gpu),
    }
}

/// Checks the report of a page whose browser offers no GPU: the page must say so.
fn refused(report: &str) -> Result<()> {
    let report = Report::parse(report)?;
    println!("without a GPU, the page says: {}", report.error);
    let is_told = report.gpu.is_empty() && report.error.contains("this browser has no WebGPU");
    if is_told { Ok(()) } else { Err(format!("the page does not say that there is no GPU: `{}`", report.error)) }
}

/// What a page has posted.
struct Report {
    gpu: String,
    error: String,
    checks: Vec<(String, bool)>,
}

impl Report {
    fn parse(text: &str) -> Result<Self> {
        let report: Value = serde_json::from_str(text).map_err(|error| format!("the report of the page: {error}"))?;
        let field = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
        let check = |check: &Value| Some((field(check, "text")?, check["passed"].as_bool()?));
        let parts = || {
            let checks = report["checks"].as_array()?.iter().map(check).collect::<Option<_>>()?;
            Some(Report { gpu: field(&report, "gpu")?, error: field(&report, "error")?, checks })
        };
        parts().ok_or_else(|| format!("the report of the page lacks a field: {text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_with_a_failed_or_missing_check_or_an_error_is_an_error() {
        let check = |passed| format!(r#"{{"text": "a product", "passed": {passed}}}"#);
        let report = |last, count: usize, error| {
            let checks = vec![check(true); count - 1].join(",");
            format!(r#"{{"gpu": "a GPU", "error": "{error}", "checks": [{checks}, {}]}}"#, check(last))
        };
        assert_eq!(solved(&report(true, CHECKS, "")), Ok("a GPU".to_owned()));
        assert_eq!(solved(&report(false, CHECKS, "")), Err("a product".to_owned()));
        assert_eq!(solved(&report(true, CHECKS, "lost")), Err("lost".to_owned()));
        assert!(solved(&report(true, CHECKS - 1, "")).is_err() && solved("{}").is_err() && solved("").is_err());
    }

    #[test]
    fn a_page_without_a_gpu_must_say_so() {
        let report = |gpu, error| format!(r#"{{"gpu": "{gpu}", "error": "{error}", "checks": []}}"#);
        assert_eq!(refused(&report("", "request: this browser has no WebGPU")), Ok(()));
        assert!(refused(&report("", "unreachable")).is_err() && refused(&report("a GPU", "")).is_err());
    }
}
