//! Plots of the error against the size, with the bound as a line.

use std::collections::BTreeMap;

use serde::Serialize;

use super::scale::{Scale, power_of_ten};
use super::view::Column;
use super::{render, text};
use crate::bounds::real;
use crate::report::{Figure, Report};

const WIDTH: f64 = 430.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 42.0;

/// Errors below this multiple of the bound are drawn at the lower edge of the plot.
const DEPTH: f64 = 1e-6;

/// The plots of one check, one plot for each precision.
#[derive(Serialize)]
pub struct Plots {
    /// Name of the check.
    pub check: String,
    /// Number of the bound in `docs/numerics.md`.
    pub bound: u32,
    /// The plots of the check, one for each precision.
    pub plots: Vec<Plot>,
}

/// A plot and its caption.
#[derive(Serialize)]
pub struct Plot {
    /// Name of the precision.
    pub dtype: String,
    /// For each report, a description of the worst figure.
    pub says: Vec<String>,
    /// The drawing as SVG.
    pub svg: String,
}

/// A point of the plot, which stands for one figure.
#[derive(Serialize)]
struct Point {
    x: String,
    y: String,
    /// Number of the shape with which the point is drawn. Each report has its own shape.
    mark: usize,
    /// Whether the error exceeds the bound.
    over: bool,
    /// Whether the point lies outside the plot and is drawn at an edge.
    outside: bool,
    title: String,
}

/// The values that the template of a plot uses.
#[derive(Serialize)]
struct Drawing {
    id: String,
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    title: String,
    says: Vec<String>,
    /// Ticks on the axis of sizes: the position and the label of each tick.
    sizes: Vec<(String, String)>,
    errors: Vec<(String, String)>,
    /// The points of the line that shows the bound.
    limit: String,
    /// Vertical position of the label that names the bound.
    name_at: String,
    bound: u32,
    points: Vec<Point>,
}

/// Creates the plots of all checks whose bound can be drawn, sorted by the number of the bound.
pub fn plots(reports: &[Report], columns: &[Column]) -> Result<Vec<Plots>, minijinja::Error> {
    let mut checks: BTreeMap<(u32, &str), BTreeMap<&str, Series<'_>>> = BTreeMap::new();
    for column in columns {
        let trials = reports[column.report].trials.iter().filter(|trial| trial.dtype == column.dtype);
        for figure in trials.flat_map(|trial| &trial.figures).filter(|figure| drawn(figure)) {
            let check = checks.entry((figure.bound, &figure.check)).or_default();
            check.entry(&column.dtype).or_default().see(column.report, figure);
        }
    }
    checks.into_iter().map(|((bound, check), dtypes)| of_check(reports, bound, check, &dtypes)).collect()
}

/// Whether the bound of a figure can be drawn. A check that allows no difference has limit zero, and a report file may lack the
/// limit.
fn drawn(figure: &Figure) -> bool {
    figure.limit > 0.0 && figure.limit.is_finite()
}

fn of_check(reports: &[Report], bound: u32, check: &str, dtypes: &BTreeMap<&str, Series<'_>>) -> Result<Plots, minijinja::Error> {
    let plots = dtypes.iter().map(|(&dtype, series)| {
        let drawing = series.drawing(reports, format!("{check}, {dtype}"));
        let says = drawing.says.clone();
        Ok(Plot { dtype: dtype.to_owned(), says, svg: render("plot.html", include_str!("plot.html"), drawing)? })
    });
    Ok(Plots { check: check.to_owned(), bound, plots: plots.collect::<Result<_, minijinja::Error>>()? })
}

/// For one check in one precision: the worst figure of each report and size.
#[derive(Default)]
struct Series<'a>(BTreeMap<(usize, usize), &'a Figure>);

impl<'a> Series<'a> {
    fn see(&mut self, report: usize, figure: &'a Figure) {
        let worst = self.0.entry((report, figure.size)).or_insert(figure);
        if figure.used() > worst.used() {
            *worst = figure;
        }
    }

    fn drawing(&self, reports: &[Report], title: String) -> Drawing {
        let limits: BTreeMap<usize, f64> = self.0.values().map(|figure| (figure.size, figure.limit)).collect();
        let (sizes, errors) = self.scales(&limits);
        let on_line = |(&size, &limit): (&usize, &f64)| format!("{},{}", place(sizes.at(along(size))), place(errors.at(limit)));
        let mut line: Vec<String> = limits.iter().map(on_line).collect();
        // if all figures have the same size, the bound becomes a horizontal line across the plot
        if let [only] = &line[..] {
            let y = only.split_once(',').expect("x,y").1;
            line = vec![format!("{LEFT},{y}"), format!("{},{y}", WIDTH - RIGHT)];
        }
        let last = limits.last_key_value().map_or(0.0, |(_, &limit)| errors.at(limit));
        Drawing {
            id: title.chars().filter(char::is_ascii_alphanumeric).collect(),
            width: WIDTH,
            height: HEIGHT,
            left: LEFT,
            right: WIDTH - RIGHT,
            top: TOP,
            bottom: HEIGHT - BOTTOM,
            says: (0..reports.len()).filter_map(|report| self.says(reports, report)).collect(),
            sizes: sizes.ticks(2.0, 9).into_iter().map(|(power, x)| (place(x), size_label(power))).collect(),
            errors: errors.ticks(10.0, 8).into_iter().map(|(power, y)| (place(y), power_of_ten(power))).collect(),
            limit: line.join(" "),
            name_at: place(if last < TOP + 14.0 { last + 13.0 } else { last - 5.0 }),
            bound: self.0.values().next().map_or(0, |figure| figure.bound),
            points: self.0.iter().map(|(&(report, size), figure)| point(report, along(size), figure, &sizes, &errors)).collect(),
            title,
        }
    }

    fn scales(&self, limits: &BTreeMap<usize, f64>) -> (Scale, Scale) {
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)))
        };
        let highest = range(&mut limits.values().copied()).1;
        let drawn = |ratio: &f64| ratio.is_finite() && *ratio >= DEPTH * highest;
        let ratios = self.0.values().map(|figure| figure.ratio).filter(drawn);
        let errors = range(&mut ratios.chain(limits.values().copied()));
        let sizes = range(&mut limits.keys().map(|&size| along(size)));
        (Scale::around(2.0, sizes, (LEFT, WIDTH - RIGHT)), Scale::around(10.0, errors, (HEIGHT - BOTTOM, TOP)))
    }

    /// Describes the worst figure of one report.
    fn says(&self, reports: &[Report], report: usize) -> Option<String> {
        let figures = self.0.range((report, 0)..(report + 1, 0)).map(|(_, figure)| *figure);
        let worst = figures.reduce(|worst, figure| if figure.used() > worst.used() { figure } else { worst })?;
        let flags = if worst.flags.is_empty() { String::new() } else { format!(", {}", worst.flags) };
        let said = format!("worst {} of the bound, at size {}{flags}", text::share(worst.used()), worst.size);
        Some(if reports.len() > 1 { format!("{}: {said}", super::view::letter(report)) } else { said })
    }
}

/// The position of a size on the logarithmic axis. Size 0 is drawn to the left of size 1, at the position of ½.
fn along(size: usize) -> f64 {
    if size == 0 { 0.5 } else { real(size) }
}

/// The label of a power of two on the axis of sizes. A negative power stands for size 0.
fn size_label(power: i32) -> String {
    if power < 0 { "0".to_owned() } else { 2_f64.powi(power).to_string() }
}

fn point(report: usize, size: f64, figure: &Figure, sizes: &Scale, errors: &Scale) -> Point {
    Point {
        x: place(sizes.at(size)),
        y: place(errors.at(figure.ratio)),
        mark: report % 4,
        over: text::over(figure),
        outside: !errors.holds(figure.ratio),
        title: text::figure(figure),
    }
}

/// Formats a coordinate with one digit after the decimal point.
fn place(at: f64) -> String {
    format!("{at:.1}")
}
