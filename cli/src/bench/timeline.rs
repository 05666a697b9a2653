//! Draws the commands of each queue of each device as bars over time, in an SVG picture.

use plotters::prelude::*;

use crate::failure::{Failure, Result};
use crate::trace::Event;

const COLORS: [RGBColor; 6] = [
    RGBColor(0, 90, 160),
    RGBColor(200, 80, 0),
    RGBColor(60, 140, 60),
    RGBColor(150, 60, 130),
    RGBColor(120, 120, 120),
    RGBColor(180, 150, 0),
];

/// Draws a timeline and returns it as the text of an SVG file. `rows` holds the label and the kind of each row, from top to bottom.
/// `bars` holds the events, each with the index of its row. Rows of the same kind have the same colour.
pub fn svg(title: &str, rows: &[(String, String)], bars: &[(usize, Event)]) -> Result<String> {
    let mut text = String::new();
    draw(&mut text, title, rows, bars).map_err(|e| Failure::check(format!("cannot draw: {e}")))?;
    Ok(text)
}

fn draw(
    text: &mut String,
    title: &str,
    rows: &[(String, String)],
    bars: &[(usize, Event)],
) -> Result<(), Box<dyn std::error::Error>> {
    let last = bars.iter().map(|(_, event)| event.end).fold(0.0, f64::max).max(1e-9);
    let height = 110 + 34 * u32::try_from(rows.len())?;
    let root = SVGBackend::with_string(text, (1000, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let count = rows.len() as f64;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .build_cartesian_2d(-0.3 * last * 1e3..last * 1e3, 0.0..count)?;
    chart.configure_mesh().x_desc("milliseconds").disable_y_mesh().disable_y_axis().max_light_lines(0).draw()?;
    let kinds: Vec<&String> = rows.iter().map(|(_, kind)| kind).collect();
    let color = |row: usize| {
        let first = kinds.iter().position(|kind| *kind == kinds[row]).unwrap_or(0);
        COLORS[first % COLORS.len()]
    };
    // The first of `rows` is drawn at the top of the picture.
    let place = |row: usize| count - row as f64;
    chart.draw_series(bars.iter().map(|(row, event)| {
        let (top, bottom) = ((event.start * 1e3, place(*row) - 0.15), (event.end * 1e3, place(*row) - 0.85));
        Rectangle::new([top, bottom], color(*row).mix(0.8).filled())
    }))?;
    chart.draw_series(
        rows.iter()
            .enumerate()
            .map(|(row, (name, _))| Text::new(name.clone(), (-0.29 * last * 1e3, place(row) - 0.35), ("sans-serif", 13))),
    )?;
    root.present()?;
    Ok(())
}
