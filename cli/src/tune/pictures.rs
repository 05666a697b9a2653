//! Pictures and recordings of a search.

use std::collections::BTreeSet;
use std::path::Path;

use lapidary_tune::{Known, Recording, Row};

use super::goal::{Device, Goal};
use crate::bench::heat_map::heat_map;
use crate::bench::plot::{Curve, Style, svg};
use crate::failure::Result;
use crate::io::atomic;

/// Writes the times of a search as a recording, which can be replayed.
///
/// # Errors
/// The file cannot be written.
pub fn record(path: &Path, goal: &Goal, device: &Device, known: &[Known]) -> Result<()> {
    let title = format!("{} for {}, {}", goal.kernel, goal.call.words()?, goal.header(device).device);
    let mut recording = Recording::new(goal.space.axes().iter().map(|axis| axis.name.as_str())).titled(&title);
    for outcome in known {
        let row = match &outcome.result {
            Ok(timing) => Row { setup_seconds: timing.setup_seconds, result: Ok(timing.seconds) },
            Err(reason) => Row { setup_seconds: 0.0, result: Err(reason.clone()) },
        };
        recording.insert(outcome.values.clone(), row);
    }
    atomic::write_text(path, &recording.to_string())
}

/// Draws the speeds of a search over the two axes with the most values that were tried. A cell shows the fastest candidate among
/// those that differ in other parameters.
///
/// # Errors
/// The file cannot be written.
pub fn draw(path: &Path, goal: &Goal, known: &[Known], flops: f64) -> Result<()> {
    let axes = goal.space.axes();
    let mut tried: Vec<(usize, BTreeSet<usize>)> = (0..axes.len()).map(|axis| (axis, BTreeSet::new())).collect();
    for outcome in known {
        for (axis, values) in &mut tried {
            values.insert(outcome.values[*axis]);
        }
    }
    tried.sort_by_key(|(axis, values)| (std::cmp::Reverse(values.len()), *axis));
    let title = format!("{} for {}", goal.kernel, goal.call.words()?);
    let [x, y, ..] = &tried[..] else { return draw_line(path, &title, goal, known, flops) };
    let labels = |(_, values): &(usize, BTreeSet<usize>)| values.iter().map(ToString::to_string).collect::<Vec<String>>();
    let fastest = |x_value: usize, y_value: usize| {
        let at = |outcome: &&Known| outcome.values[x.0] == x_value && outcome.values[y.0] == y_value;
        let times = known.iter().filter(at).filter_map(|outcome| outcome.result.as_ref().ok()).map(|timing| timing.seconds);
        times.min_by(f64::total_cmp).map(|seconds| flops / seconds / 1e9)
    };
    let row = |&y_value: &usize| x.1.iter().map(|&x_value| fastest(x_value, y_value)).collect();
    let cells: Vec<Vec<Option<f64>>> = y.1.iter().map(row).collect();
    let text = heat_map(&title, (&axes[x.0].name, &labels(x)), (&axes[y.0].name, &labels(y)), &cells)?;
    atomic::write_text(path, &text)
}

/// Draws the speeds of a search with a single axis as a curve.
fn draw_line(path: &Path, title: &str, goal: &Goal, known: &[Known], flops: f64) -> Result<()> {
    let mut points: Vec<(f64, f64)> = known
        .iter()
        .filter_map(|outcome| Some((*outcome.values.first()? as f64, flops / outcome.result.as_ref().ok()?.seconds / 1e9)))
        .collect();
    // of several measurements of a value, the fastest one counts
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.total_cmp(&a.1)));
    points.dedup_by_key(|(value, _)| *value);
    let style = Style { title, x: goal.space.axes().first().map_or("", |axis| &axis.name), y: "GFLOP/s", marks_points: true };
    atomic::write_text(path, &svg(&style, &[Curve { name: goal.kernel.to_owned(), points }])?)
}

#[cfg(test)]
mod tests {
    use lapidary::DeviceFacts;
    use lapidary::kernels::Dialect;

    use lapidary_tune::{Known, Timing};

    use super::{Device, Goal, draw, record};
    use crate::tune::message::Call;
    use crate::tune::values::Values;

    #[test]
    fn a_recording_names_its_kernel_call_and_device() {
        let mut facts = DeviceFacts::new("test:0");
        facts.identity.model = "Model 1".to_owned();
        facts.identity.driver = "driver 2".to_owned();
        let device = Device { facts, language: Some(Dialect::Wgsl) };
        let call =
            Call { task: "gemm".to_owned(), is_f64: false, sizes: [8, 16, 32], transposed: [false; 2], is_padded: false, seed: 1 };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.tsv");
        record(&path, &Goal::new(call, "gemm_tile", &device, &Values::default()).unwrap(), &device, &[]).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().next(), Some("# gemm_tile for gemm f32 m=8 n=16 k=32, Model 1, driver 2, wgsl"));
    }

    #[test]
    fn a_single_parameter_is_drawn_as_a_curve() {
        let device = Device { facts: DeviceFacts::new("test:0"), language: Some(Dialect::Wgsl) };
        let call =
            Call { task: "trsm".to_owned(), is_f64: false, sizes: [64; 3], transposed: [false; 2], is_padded: false, seed: 1 };
        let goal = Goal::new(call, "triangle", &device, &Values::default()).unwrap();
        let known =
            |items: usize, seconds| Known { values: vec![items], result: Ok(Timing { setup_seconds: 0.0, runs: 1, seconds }) };
        let failed = Known { values: vec![8], result: Err("it failed".to_owned()) };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.svg");
        draw(&path, &goal, &[known(4, 2e-6), known(1, 1e-6), failed, known(4, 1e-6), known(2, 3e-6)], 1e3).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let has = |word: &str| text.lines().any(|line| line.trim() == word);
        assert!(has("triangle for trsm f32 m=64 n=64") && has("items") && has("GFLOP/s"), "{text}");
        // three values were measured, one of them twice
        assert_eq!(text.matches("<circle").count(), 3, "{text}");
    }
}
