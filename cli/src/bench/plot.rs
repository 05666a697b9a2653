//! Draws curves, such as speed against size, as an SVG picture.

use std::path::Path;

use plotters::prelude::*;

use super::measure::Measured;
use super::placement::Placement;
use crate::failure::{Failure, Result};

/// Texts of a plot, and how it shows its points.
pub struct Style<'a> {
    /// Title of the picture.
    pub title: &'a str,
    /// Name of the horizontal axis. The horizontal axis has a logarithmic scale.
    pub x: &'a str,
    /// Name of the vertical axis.
    pub y: &'a str,
    /// Whether each point of a curve has a mark.
    pub marks_points: bool,
}

/// A curve of the plot: its name and its points, such as (size, GFLOP/s).
pub struct Curve {
    /// Name of the curve in the legend.
    pub name: String,
    /// Points of the curve, sorted by their first coordinate, which is positive.
    pub points: Vec<(f64, f64)>,
}

/// Estimated width of a character of the title, in pixels.
const TITLE_CHARACTER: u32 = 11;

const COLORS: [RGBColor; 5] =
    [RGBColor(0, 90, 160), RGBColor(200, 80, 0), RGBColor(60, 140, 60), RGBColor(140, 70, 160), RGBColor(120, 120, 120)];

/// The curves of speed against the size n, which every routine has: one curve of Lapidary for each placement, then a curve of the
/// peer library if there is a name `peer`.
pub fn curves(results: &[Measured], placements: &[Placement], peer: Option<&Path>) -> Vec<Curve> {
    let points = |speed: &dyn Fn(&Measured) -> Option<f64>| -> Vec<(f64, f64)> {
        results.iter().filter_map(|result| Some((result.shape.n as f64, speed(result)?))).collect()
    };
    let ours = placements.iter().map(|&placement| Curve {
        name: if placements.len() == 1 { "lapidary" } else { placement.curve() }.to_owned(),
        points: points(&|result| result.ours.0.gflops().filter(|_| result.placement == placement)),
    });
    let peer = peer.map(|path| Curve {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        points: points(&|result| result.peer.as_ref().and_then(|(peer, _)| peer.gflops())),
    });
    ours.chain(peer).collect()
}

/// Draws the curves. Returns the text of an SVG file.
pub fn svg(style: &Style<'_>, curves: &[Curve]) -> Result<String> {
    let mut text = String::new();
    draw(&mut text, style, curves).map_err(|e| Failure::check(format!("cannot plot: {e}")))?;
    Ok(text)
}

fn draw(text: &mut String, style: &Style<'_>, curves: &[Curve]) -> Result<(), Box<dyn std::error::Error>> {
    let points = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let fastest = points().map(|(_, speed)| speed).fold(0.0, f64::max);
    let octaves = octaves(points().map(|(size, _)| size));
    let sizes = (octaves[0]..octaves[octaves.len() - 1]).log_scale().with_key_points(octaves);
    // the picture is as wide as its title
    let width =
        u32::try_from(style.title.chars().count()).unwrap_or(u32::MAX).saturating_mul(TITLE_CHARACTER).saturating_add(24).max(800);
    let root = SVGBackend::with_string(text, (width, 500)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(style.title, ("sans-serif", 20))
        .margin(12)
        // The label of the last size is centred on the right edge of the axes.
        .margin_right(32)
        .x_label_area_size(44)
        .y_label_area_size(60)
        .build_cartesian_2d(sizes, 0.0..fastest * 1.08)?;
    chart.configure_mesh().x_desc(style.x).y_desc(style.y).x_label_formatter(&|size| size.to_string()).max_light_lines(0).draw()?;
    for (curve, color) in curves.iter().zip(COLORS.iter().cycle()) {
        let points = || curve.points.iter().copied();
        let line = chart.draw_series(LineSeries::new(points(), color.stroke_width(2)))?;
        line.label(&curve.name).legend(|(x, y)| Rectangle::new([(x, y - 4), (x + 16, y + 4)], color.filled()));
        if style.marks_points {
            chart.draw_series(points().map(|point| Circle::new(point, 4, color.filled())))?;
        }
    }
    chart.configure_series_labels().border_style(BLACK).background_style(WHITE).position(SeriesLabelPosition::LowerRight).draw()?;
    root.present()?;
    Ok(())
}

/// The powers of two from the largest one that is at most each of the sizes to the smallest one that exceeds each of them.
fn octaves(sizes: impl Iterator<Item = f64> + Clone) -> Vec<f64> {
    let (least, most) = (sizes.clone().fold(f64::INFINITY, f64::min), sizes.fold(1.0, f64::max));
    let first = least.min(most).log2().floor().exp2();
    let powers = std::iter::successors(Some(first), |power| Some(power * 2.0));
    let above = powers.clone().take_while(|power| *power <= most).count();
    powers.take(above + 1).collect()
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
        let style = Style { title: "gemm f64", x: "n", y: "GFLOP/s", marks_points: true };
        let text = svg(&style, &[curve("ours"), curve("peer")]).unwrap();
        assert!(text.starts_with("<svg"));
        assert!(["gemm f64", "ours", "peer", "GFLOP/s"].iter().all(|word| text.contains(word)), "{text}");
        let labels = ["64", "128", "256"].map(|size| text.lines().any(|line| line.trim() == size));
        assert_eq!(labels, [true; 3], "{text}");
        let plain = svg(&Style { marks_points: false, ..style }, &[curve("ours")]).unwrap();
        assert_eq!([&text, &plain].map(|text| text.matches("<circle").count()), [4, 0]);
    }

    #[test]
    fn a_long_title_makes_the_picture_wider() {
        let width = |title: &str| -> u32 {
            let text = svg(&Style { title, x: "n", y: "GFLOP/s", marks_points: true }, &[]).unwrap();
            text.split("width=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        assert_eq!((width("gemm f64"), width(&"x".repeat(100))), (800, 1124));
    }

    #[test]
    fn the_axis_of_sizes_encloses_all_sizes() {
        let ends = |sizes: &[f64]| octaves(sizes.iter().copied());
        assert_eq!(ends(&[100.0, 1000.0]), [64.0, 128.0, 256.0, 512.0, 1024.0]);
        assert_eq!([ends(&[1.0]), ends(&[64.0]), ends(&[96.0])], [[1.0, 2.0], [64.0, 128.0], [64.0, 128.0]]);
        assert_eq!(ends(&[]), [1.0, 2.0]);
    }
}
