//! Functions that read, write and compare conformance reports in files.

use std::path::{Path, PathBuf};

use lapidary_conformance::report::{Report, Verdict, html};

use crate::failure::{Failure, Result};
use crate::io::{self, atomic};
use crate::report::out;

/// Reads a report from a file. `asked` is the option that names the file, which an error message mentions.
pub fn read(path: &Path, asked: &str) -> Result<Report> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, error))?;
    let wanted = |error| format!("{error}; {asked} takes a file that `lapidary conformance --json` has written");
    Report::from_json(&text).map_err(|error| Failure::file(path, wanted(error)))
}

/// Writes a report as JSON.
pub fn write(path: &Path, report: &Report) -> Result<()> {
    atomic::write_text(path, &report.to_json())
}

/// Refuses a file name that does not end in `.html` or `.htm`.
pub fn check_page(path: &Path) -> Result<()> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html" | "htm") => Ok(()),
        Some(_) | None => Err(Failure::file(path, "--report writes a page, name a file that ends in .html")),
    }
}

/// Writes an HTML page that shows one or several reports.
pub fn write_page(path: &Path, reports: &[Report]) -> Result<()> {
    let page = html::pages(reports).map_err(|error| Failure::write(path, error))?;
    atomic::write_text(path, &page)
}

/// Compares reports: prints their verdicts and writes them on one HTML page. The command succeeds even if a report says that its
/// subject failed.
pub fn compare(files: &[PathBuf], page: Option<&Path>) -> Result<()> {
    let output = page.map(Path::to_path_buf);
    for input in files {
        io::check_distinct(&[("--compare", Some(input)), ("--report", output.as_ref())])?;
    }
    page.map_or(Ok(()), check_page)?;
    let reports = files.iter().map(|path| read(path, "--compare")).collect::<Result<Vec<_>>>()?;
    for (path, report) in files.iter().zip(&reports) {
        let verdict = match report.passed() {
            _ if report.nothing_applied() => "nothing applied",
            true if report.is_cut_off() => "cut off",
            true => "conforms",
            false if report.is_cut_off() => "cut off, does not conform",
            false => "does not conform",
        };
        let (passed, all) = (report.count(Verdict::Passed), report.trials.len());
        let skipped = report.count(Verdict::Skipped);
        let of = format!("{} ({})", report.subject.name, path.display());
        out(&format!("{of}: {verdict}, {passed} of {all} trials passed, {skipped} skipped"));
    }
    page.map_or(Ok(()), |path| write_page(path, &reports))
}
