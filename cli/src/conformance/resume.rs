//! Resumes a run of the conformance suite that was cut off.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};
use std::path::Path;

use lapidary_conformance::report::{GRADES, Identity, Report};
use lapidary_conformance::suite::Property;
use lapidary_conformance::{grader, grades};

use super::files;
use crate::failure::{Failure, Result};

/// Hash of the executable file. The version number is not enough, since different builds of the program can have the same version.
pub fn build() -> String {
    let program = std::env::current_exe().and_then(std::fs::read);
    program.map_or_else(
        |error| format!("unknown: {error}"),
        |bytes| {
            let mut hasher = DefaultHasher::new();
            hasher.write(&bytes);
            format!("{:016x}", hasher.finish())
        },
    )
}

/// Returns the report of a run that was cut off, so that this run can continue it. `empty` is the report of this run. If two runs
/// were cut off in the same trial, this trial counts as failed, since a third run would probably be cut off too. If two runs were
/// cut off while the grades were measured, the grades count as failed.
pub fn resume_report<S>(path: &Path, empty: Report, selected: &[Property<S>]) -> Result<Report> {
    let before = files::read(path, "--resume")?;
    let differences = differences(&before, &empty);
    if !differences.is_empty() {
        let what =
            format!("is of another run ({}): name another file, or leave out --resume to begin anew", differences.join(", "));
        return Err(Failure::file(path, what));
    }
    if let Some(why) = why_not_resumable(&before, selected) {
        return Err(Failure::file(path, format!("{why}: name another file, or leave out --resume to begin anew")));
    }
    let given_up = before.given_up().map(str::to_owned);
    let Report { begun, beginnings, trials, grades, .. } = before;
    let mut report = Report { begun, beginnings, trials, grades, ..empty };
    if let Some(what) = given_up {
        let unended = |property| grader::unended(property, &format!("two runs were cut off in this trial: {CAUSES}"));
        report.trials.extend(selected.iter().filter(|property| property.full_name() == what).map(unended));
        if what == GRADES {
            report.grades = grades::unended(&format!("two runs were cut off while they were measured: {CAUSES}"), true);
        }
        report.end();
    }
    Ok(report)
}

/// Possible causes why two runs were cut off in one trial, as a part of the message.
const CAUSES: &str = "it crashes, hangs or was stopped";

/// Why a run cannot continue from the report `before`. The report of a run contains no trial twice, and no trial that the run did
/// not select.
fn why_not_resumable<S>(before: &Report, selected: &[Property<S>]) -> Option<String> {
    let known: HashSet<String> = selected.iter().map(Property::full_name).chain([GRADES.to_owned()]).collect();
    let mut seen = HashSet::new();
    let names = before.trials.iter().map(|trial| &trial.name);
    let twice = names.clone().find(|name| !seen.insert(*name)).map(|name| format!("holds the trial `{name}` twice"));
    let unknown = || names.chain(&before.begun).find(|name| !known.contains(*name));
    twice.or_else(|| unknown().map(|name| format!("holds `{name}`, which is no trial of this run")))
}

/// Names of the settings in which the report of an earlier run differs from the report of this run.
fn differences(before: &Report, now: &Report) -> Vec<String> {
    let all = |report: &Report| {
        let Identity { name, device, driver, api, os } = report.subject.clone();
        let filter = report.filter.clone().unwrap_or_else(|| "none".to_owned());
        let told = [("device", name), ("model", device), ("driver", driver), ("interface", api), ("system", os)];
        let asked =
            [("settings", report.settings.to_string()), ("mode", report.mode.to_string()), ("seed", report.seed.to_string())];
        let program = [("filter", filter), ("suite", report.suite.clone()), ("build of the program", report.build.clone())];
        told.into_iter().chain(asked).chain(program)
    };
    let changed = all(before).zip(all(now)).filter(|(before, now)| before != now);
    changed.map(|((what, before), (_, now))| format!("{what}: `{before}` there, `{now}` here")).collect()
}
