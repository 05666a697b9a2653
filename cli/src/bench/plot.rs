//! Draws speed against size as an SVG picture.

use std::path::Path;

use plotters::prelude::*;

use crate::failure::{Failure, Result};

/// A curve of the plot: its name and its points (size, GFLOP/s).
pub struct Curve {
    /// Name of the curve in the legend.
    pub name: String,
    /// Points of the curve, sorted by size.
    pub points: Vec<(f64, f64)>,
}

const COLORS: [RGBColor; 2] = [RGBColor(0, 90, 160), RGBColor(200, 80, 0)];

/// Draws the curves. Returns the text of an SVG file.
pub fn svg(title: &str, axis: &str, curves: &[Curve]) -> Result<String> {
    let mut text = String::new();
    draw(&mut text, title, axis, curves).map_err(|e| Failure::check(format!("cannot plot: {e}")))?;
    Ok(text)
}

fn draw(text: &mut String, title: &str, axis: &str, curves: &[Curve]) -> Result<(), Box<dyn std::error::Error>> {
    let most = |f: fn(&(f64, f64)) -> f64| curves.iter().flat_map(|c| &c.points).map(f).fold(0.0, f64::max) * 1.08;
    let root = SVGBackend::with_string(text, (800, 500)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..most(|p| p.0), 0.0..most(|p| p.1))?;
    chart.configure_mesh().x_desc(axis).y_desc("GFLOP/s (median)").max_light_lines(0).draw()?;
    for (curve, color) in curves.iter().zip(COLORS.iter().cycle()) {
        let points = || curve.points.iter().copied();
        let line = chart.draw_series(LineSeries::new(points(), color.stroke_width(2)))?;
        line.label(&curve.name).legend(|(x, y)| Rectangle::new([(x, y - 4), (x + 16, y + 4)], color.filled()));
        chart.draw_series(points().map(|point| Circle::new(point, 4, color.filled())))?;
    }
    chart.configure_series_labels().border_style(BLACK).background_style(WHITE).position(SeriesLabelPosition::LowerRight).draw()?;
    root.present()?;
    Ok(())
}

/// Refuses a file name that does not end in `.svg`.
pub fn check_picture(path: &Path) -> Result<()> {
    match path.extension() {
        Some(extension) if extension == "svg" => Ok(()),
        Some(_) | None => Err(Failure::file(path, "--plot draws an SVG, name a file that ends in .svg")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_names_its_curves_and_axes() {
        let curve = |name: &str| Curve { name: name.to_owned(), points: vec![(64.0, 1.0), (128.0, 2.0)] };
        let text = svg("gemm f64", "n", &[curve("ours"), curve("peer")]).unwrap();
        assert!(text.starts_with("<svg"));
        assert!(["gemm f64", "ours", "peer", "GFLOP/s"].iter().all(|word| text.contains(word)), "{text}");
    }
}
