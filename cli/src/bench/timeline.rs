//! Draws the commands of each queue of each device as bars over time, in an SVG picture.

use plotters::prelude::*;

use crate::failure::{Failure, Result};
use crate::trace::Event;

/// The colours of kinds of bars.
pub const COLORS: [RGBColor; 6] = [
    RGBColor(0, 90, 160),
    RGBColor(200, 80, 0),
    RGBColor(60, 140, 60),
    RGBColor(150, 60, 130),
    RGBColor(180, 150, 0),
    RGBColor(120, 120, 120),
];

/// A timeline without its bars.
pub struct Timeline<'a> {
    /// Title of the picture.
    pub title: &'a str,
    /// The label of each row, from top to bottom.
    pub rows: &'a [String],
    /// The kinds of bars. The position of a kind in the list decides its colour.
    pub kinds: &'a [&'a str],
    /// Whether a legend names the kinds that occur.
    pub has_legend: bool,
}

/// Draws a timeline and returns it as the text of an SVG file. `bars` holds the events, each with the index of its row.
pub fn svg(timeline: &Timeline<'_>, bars: &[(usize, Event)]) -> Result<String> {
    let mut text = String::new();
    draw(&mut text, timeline, bars).map_err(|e| Failure::check(format!("cannot draw: {e}")))?;
    Ok(text)
}

fn draw(text: &mut String, timeline: &Timeline<'_>, bars: &[(usize, Event)]) -> Result<(), Box<dyn std::error::Error>> {
    let Timeline { title, rows, kinds, has_legend } = *timeline;
    let last = bars.iter().map(|(_, event)| event.end).fold(0.0, f64::max).max(1e-9) * 1e3;
    let count = rows.len() as f64;
    // the legend lies below the last row
    let lowest = if has_legend { -1.0 } else { 0.0 };
    let height = 110 + 34 * u32::try_from(rows.len() + usize::from(has_legend))?;
    let root = SVGBackend::with_string(text, (1000, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .build_cartesian_2d(-0.3 * last..last, lowest..count)?;
    chart.configure_mesh().x_desc("milliseconds").disable_y_mesh().disable_y_axis().max_light_lines(0).draw()?;
    let color = |kind: &str| COLORS[kinds.iter().position(|known| *known == kind).unwrap_or(0) % COLORS.len()].mix(0.8);
    // The first of `rows` is drawn at the top of the picture.
    let place = |row: usize| count - row as f64;
    chart.draw_series(bars.iter().map(|(row, event)| {
        let (top, bottom) = ((event.start * 1e3, place(*row) - 0.15), (event.end * 1e3, place(*row) - 0.85));
        Rectangle::new([top, bottom], color(&event.kind).filled())
    }))?;
    let label = |text: &str, x: f64, top: f64| Text::new(text.to_owned(), (x, top - 0.35), ("sans-serif", 13));
    chart.draw_series(rows.iter().enumerate().map(|(row, name)| label(name, -0.29 * last, place(row))))?;
    if has_legend {
        let there: Vec<&&str> = kinds.iter().filter(|kind| bars.iter().any(|(_, event)| event.kind == **kind)).collect();
        let left = |number: usize| last * (number as f64 / there.len() as f64);
        chart.draw_series(there.iter().enumerate().map(|(number, kind)| {
            Rectangle::new([(left(number), -0.3), (left(number) + 0.012 * last, -0.7)], color(kind).filled())
        }))?;
        chart.draw_series(there.iter().enumerate().map(|(number, kind)| label(kind, left(number) + 0.018 * last, 0.0)))?;
    }
    root.present()?;
    Ok(())
}
