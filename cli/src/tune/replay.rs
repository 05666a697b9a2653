//! Replays of the strategies on a recorded search. The table and the picture show how fast each strategy finds fast points.

use std::path::Path;

use lapidary::DType;
use lapidary::kernels::space::axes;
use lapidary_tune::{Method, Recording, Space, Trial, replay};
use serde_json::json;

use crate::bench::measure::median;
use crate::bench::plot::{Curve, Style, svg};
use crate::failure::{Failure, Result};
use crate::io::atomic;
use crate::report::{Report, fixed, note, number, out, seconds};

/// Number of searches of each strategy. The searches differ in their seeds.
const SEEDS: u64 = 20;
/// Fraction of the best speed whose time the table shows.
const GOAL: f64 = 0.9;
/// Number of points of a curve in each octave of time.
const POINTS_PER_OCTAVE: i32 = 8;
/// Number of octaves of time that the picture shows.
const OCTAVES: i32 = 10;

/// How searches are replayed.
pub struct Replay {
    /// Seed of the first search. The seeds of the other searches follow.
    pub seed: u64,
    /// Simulated time of each search, in seconds.
    pub budget_seconds: f64,
}

impl Replay {
    /// Replays each strategy on the recording in the file `path`. Prints a table, and writes a picture and a JSON file if they are
    /// requested.
    ///
    /// # Errors
    /// The file cannot be read or is no recording, the recording has no time, the budget ends before the first measurement, or a
    /// file cannot be written.
    pub fn run(&self, path: &Path, plot: Option<&Path>, json: Option<&Path>) -> Result<()> {
        let recording = read(path)?;
        let times = recording.rows().filter_map(|(_, row)| row.result.as_ref().ok().copied());
        let best = times.min_by(f64::total_cmp).ok_or_else(|| Failure::file(path, "no point of the recording has a time"))?;
        let structural = structural_axes(recording.title());
        let space = recording.space(|axis| structural.contains(&axis));
        let space = space.ok_or_else(|| Failure::file(path, "the axes have too many combinations of values"))?;
        let all = Method::ALL.map(|method| self.search(method, &space, &recording, best));
        if all.iter().flat_map(|searches| &searches.progress).all(Vec::is_empty) {
            let message = format!("--budget {}: no strategy measures a point in this time", self.budget_seconds);
            return Err(Failure::usage(message));
        }
        self.print(&recording, best, &all);
        if let Some(plot) = plot {
            let style =
                Style { title: title(&recording), x: "seconds", y: "best speed / speed of the best (median)", marks_points: false };
            let curves = all.each_ref().map(|searches| searches.curve(self.budget_seconds));
            atomic::write_text(plot, &svg(&style, &curves)?)?;
        }
        self.report(&recording, best, &all).save(json)
    }

    /// Runs the searches of a strategy.
    fn search(&self, method: Method, space: &Space, recording: &Recording, best: f64) -> Searches {
        let budget_seconds = self.budget_seconds;
        let progress = |number: u64| {
            let trial = Trial { method, first: &[], seed: self.seed.wrapping_add(number), budget_seconds };
            let improvements = replay(space, recording, &trial).into_iter();
            // a measurement that begins within the budget can end after it
            improvements.filter(|(time, _)| *time <= budget_seconds).map(|(time, found)| (time, best / found)).collect()
        };
        Searches { method, progress: (0..SEEDS).map(progress).collect() }
    }

    fn print(&self, recording: &Recording, best: f64, all: &[Searches]) {
        out(title(recording));
        let (points, failed) = counts(recording);
        let budget = self.budget_seconds;
        out(&format!("{points} points, {failed} failed; best {}; {SEEDS} seeds of {budget} s", seconds(best)));
        out(&format!("{:<12}{:>15}{:>15}{:>15}", "strategy", "median of best", "worst seed", "90 % after"));
        for searches in all {
            let [median, worst] = searches.fractions(budget).map(|fraction| format!("{} %", fixed(100.0 * fraction, 1)));
            let time = searches.median_seconds();
            let time = if time.is_finite() { format!("{} s", fixed(time, 1)) } else { "not reached".to_owned() };
            out(&format!("{:<12}{median:>15}{worst:>15}{time:>15}", searches.method));
        }
    }

    fn report(&self, recording: &Recording, best: f64, all: &[Searches]) -> Report {
        let (points, failed) = counts(recording);
        let strategy = |searches: &Searches| {
            let [median, worst] = searches.fractions(self.budget_seconds);
            let time = number(searches.median_seconds());
            json!({
                "strategy": searches.method.name(),
                "median_fraction": median,
                "worst_fraction": worst,
                "median_seconds_to_90_percent": time,
            })
        };
        let strategies: serde_json::Value = all.iter().map(strategy).collect();
        let mut report = Report::default();
        report.figure("recording", recording.title()).figure("points", points).figure("failed", failed);
        report.figure("best_seconds", best).figure("budget_seconds", self.budget_seconds);
        report.figure("seeds", SEEDS).figure("strategies", strategies);
        report
    }
}

/// The searches of one strategy.
struct Searches {
    method: Method,
    /// For each search, a list of its improvements. An improvement consists of the simulated time and of the best speed so far, divided by
    /// the best speed of the recording.
    progress: Vec<Vec<(f64, f64)>>,
}

impl Searches {
    /// The fractions of the best speed that the searches have reached after `seconds`: the median over the searches, and the lowest.
    fn fractions(&self, seconds: f64) -> [f64; 2] {
        let reached = |search: &Vec<(f64, f64)>| {
            let until = search.iter().take_while(|(time, _)| *time <= seconds);
            until.last().map_or(0.0, |(_, fraction)| *fraction)
        };
        let reached: Vec<f64> = self.progress.iter().map(reached).collect();
        let worst = reached.iter().copied().fold(1.0, f64::min);
        [median(reached), worst]
    }

    /// The median of the times that the searches take to reach the fraction [`GOAL`] of the best speed. The time of a search that never
    /// reaches this fraction counts as infinite.
    fn median_seconds(&self) -> f64 {
        let reached = |search: &Vec<(f64, f64)>| search.iter().find(|(_, fraction)| *fraction >= GOAL).map(|(time, _)| *time);
        median(self.progress.iter().map(|search| reached(search).unwrap_or(f64::INFINITY)).collect())
    }

    /// A curve that shows, for each time, the median over the searches of the fraction of the best speed that they have reached by then.
    fn curve(&self, budget_seconds: f64) -> Curve {
        let times = (0..=OCTAVES * POINTS_PER_OCTAVE).rev();
        let times = times.map(|step| budget_seconds * (-f64::from(step) / f64::from(POINTS_PER_OCTAVE)).exp2());
        let points = times.map(|time| (time, self.fractions(time)[0])).filter(|(_, fraction)| *fraction > 0.0);
        Curve { name: self.method.name().to_owned(), points: points.collect() }
    }
}

fn read(path: &Path) -> Result<Recording> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, format!("cannot read: {error}")))?;
    text.parse().map_err(|error: lapidary_tune::ParseError| Failure::line(path, error.line as u64, error.reason))
}

/// The title of a recording, or a general title.
fn title(recording: &Recording) -> &str {
    if recording.title().is_empty() { "recorded search" } else { recording.title() }
}

/// The number of points and the number of points that have failed.
fn counts(recording: &Recording) -> (usize, usize) {
    (recording.rows().len(), recording.rows().filter(|(_, row)| row.result.is_err()).count())
}

/// The structural axes of the kernel whose name begins the title of a recording.
fn structural_axes(title: &str) -> Vec<&'static str> {
    // the element type changes the values of the axes only
    let known = title.split_whitespace().next().and_then(|kernel| axes(kernel, DType::F64));
    if known.is_none() {
        note("note: the recording names no kernel, so that no axis counts as structural");
    }
    known.into_iter().flatten().filter(|axis| axis.is_structural).map(|axis| axis.name).collect()
}
