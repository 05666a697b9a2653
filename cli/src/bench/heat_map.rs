//! Draws speeds over two parameters as an SVG picture with one coloured cell for each pair of values.

use std::error::Error;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::failure::{Failure, Result};

/// The colours from the lowest to the highest speed. The lightness (in Oklab) falls by equal steps, so that the colours are ordered
/// even without their hues.
const SCALE: [RGBColor; 6] = [
    RGBColor(249, 247, 217),
    RGBColor(179, 213, 167),
    RGBColor(90, 178, 151),
    RGBColor(0, 135, 146),
    RGBColor(11, 87, 124),
    RGBColor(32, 43, 81),
];

/// Background and hatching of a cell without a value.
const NO_VALUE: [RGBColor; 2] = [RGBColor(232, 232, 232), RGBColor(150, 150, 150)];

/// Height of a line of text in pixels.
const LINE: i32 = 14;

/// Estimated width of a character in pixels.
const CHARACTER: i32 = 7;

/// Space between the parts of the picture in pixels.
const MARGIN: i32 = 12;

/// Height of the title in pixels.
const TITLE: i32 = 40;

/// Width of the bar of the legend, and of a cell without a value in the legend, in pixels.
const BAR: i32 = 18;

/// Width of the legend with its texts, in pixels.
const LEGEND: i32 = 110;

/// Smallest height of the bar of the legend in pixels.
const MIN_BAR_HEIGHT: i32 = 120;

/// Number of intervals between the labels of the legend.
const LEGEND_INTERVALS: i32 = 4;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), Box<dyn Error>>;

/// Draws a heat map and returns it as the text of an SVG file.
///
/// `x` and `y` hold the name of each parameter and its values. `cells[j][i]` is the speed in GFLOP/s for value `i` of `x` and value
/// `j` of `y`. The values of `x` rise to the right, and the values of `y` rise to the top. A cell is hatched if it has no finite
/// speed.
pub fn heat_map(title: &str, x: (&str, &[String]), y: (&str, &[String]), cells: &[Vec<Option<f64>>]) -> Result<String> {
    let mut text = String::new();
    HeatMap::new(title, x, y, cells).draw(&mut text).map_err(|e| Failure::check(format!("cannot draw: {e}")))?;
    Ok(text)
}

/// A heat map and its layout. All lengths are in pixels.
struct HeatMap<'a> {
    title: &'a str,
    x: (&'a str, &'a [String]),
    y: (&'a str, &'a [String]),
    cells: &'a [Vec<Option<f64>>],
    /// The lowest and the highest speed. `None` if no cell has a speed.
    range: Option<(f64, f64)>,
    /// Width and height of a cell.
    cell: (i32, i32),
    /// Left and top edge of the cells.
    origin: (i32, i32),
    /// Whether the labels of the values of `x` are too wide for a cell, so that they are rotated.
    rotates_labels: bool,
}

impl<'a> HeatMap<'a> {
    fn new(title: &'a str, x: (&'a str, &'a [String]), y: (&'a str, &'a [String]), cells: &'a [Vec<Option<f64>>]) -> Self {
        let speeds = || cells.iter().flatten().flatten().copied().filter(|speed| speed.is_finite());
        let range = speeds().reduce(f64::min).zip(speeds().reduce(f64::max));
        let share = |pixels: i32, count: usize| pixels / to_pixels(count).max(1);
        let cell = (share(640, x.1.len()).clamp(LINE, 72), share(420, y.1.len()).clamp(LINE, 36));
        let left = 2 * MARGIN + LINE + longest(y.1);
        HeatMap { title, x, y, cells, range, cell, origin: (left, TITLE), rotates_labels: longest(x.1) > cell.0 }
    }

    /// Width and height of all cells.
    fn extent(&self) -> (i32, i32) {
        (self.cell.0 * to_pixels(self.x.1.len()), self.cell.1 * to_pixels(self.y.1.len()))
    }

    /// Height of the labels of the values of `x`.
    fn label_height(&self) -> i32 {
        if self.rotates_labels { longest(self.x.1) } else { LINE }
    }

    /// The speed of a cell. `None` if the speed is missing or not finite.
    fn speed(&self, column: usize, row: usize) -> Option<f64> {
        self.cells.get(row)?.get(column).copied().flatten().filter(|speed| speed.is_finite())
    }

    /// Place of a speed on the scale, from 0 for the lowest speed to 1 for the highest.
    fn share(&self, speed: f64) -> f64 {
        self.range.filter(|(low, high)| low < high).map_or(1.0, |(low, high)| (speed - low) / (high - low))
    }

    fn draw(&self, text: &mut String) -> Drawn {
        let ((left, top), (width, height)) = (self.origin, self.extent());
        let below = 2 * MARGIN + self.label_height() + LINE;
        let title_width = to_pixels(self.title.chars().count()) * CHARACTER * 3 / 2 + 2 * MARGIN;
        let size =
            (left + (width + 2 * MARGIN + LEGEND).max(title_width - left), top + height.max(MIN_BAR_HEIGHT + 2 * BAR) + below);
        let root = SVGBackend::with_string(text, (size.0.unsigned_abs(), size.1.unsigned_abs())).into_drawing_area();
        root.fill(&WHITE)?;
        root.draw(&Text::new(self.title, (MARGIN, TITLE / 2), style(TITLE / 2, HPos::Left, &BLACK)))?;
        for row in 0..self.y.1.len() {
            for column in 0..self.x.1.len() {
                self.draw_cell(&root, column, row)?;
            }
        }
        self.draw_axes(&root)?;
        self.draw_legend(&root)?;
        root.present()?;
        Ok(())
    }

    fn draw_cell(&self, root: &Area<'_>, column: usize, row: usize) -> Drawn {
        let ((left, top), (width, height)) = (self.origin, self.cell);
        let from_top = to_pixels(self.y.1.len() - 1 - row);
        let corner = (left + width * to_pixels(column), top + height * from_top);
        let Some(speed) = self.speed(column, row) else { return hatch(root, corner, self.cell) };
        let share = self.share(speed);
        root.draw(&Rectangle::new([corner, (corner.0 + width, corner.1 + height)], color(share).filled()))?;
        let label = label(speed);
        if text_width(&label) <= width {
            let center = (corner.0 + width / 2, corner.1 + height / 2);
            root.draw(&Text::new(label, center, style(LINE, HPos::Center, if share > 0.5 { &WHITE } else { &BLACK })))?;
        }
        Ok(())
    }

    /// Draws the frame of the cells, the values of both parameters and the names of the parameters.
    fn draw_axes(&self, root: &Area<'_>) -> Drawn {
        let ((left, top), (width, height), cell) = (self.origin, self.extent(), self.cell);
        let bottom = top + height;
        root.draw(&Rectangle::new([(left, top), (left + width, bottom)], BLACK))?;
        for (column, value) in self.x.1.iter().enumerate() {
            let center = left + cell.0 * to_pixels(column) + cell.0 / 2;
            let (offset, style) = match self.rotates_labels {
                true => (MARGIN / 2, style(LINE, HPos::Right, &BLACK).transform(FontTransform::Rotate270)),
                false => (MARGIN / 2 + LINE / 2, style(LINE, HPos::Center, &BLACK)),
            };
            root.draw(&Text::new(value.as_str(), (center, bottom + offset), style))?;
        }
        for (row, value) in self.y.1.iter().enumerate() {
            let center = bottom - cell.1 * to_pixels(row) - cell.1 / 2;
            root.draw(&Text::new(value.as_str(), (left - MARGIN / 2, center), style(LINE, HPos::Right, &BLACK)))?;
        }
        let below = bottom + MARGIN + self.label_height() + LINE / 2;
        root.draw(&Text::new(self.x.0, (left + width / 2, below), style(LINE, HPos::Center, &BLACK)))?;
        let beside = style(LINE, HPos::Center, &BLACK).transform(FontTransform::Rotate270);
        root.draw(&Text::new(self.y.0, (MARGIN + LINE / 2, top + height / 2), beside))?;
        Ok(())
    }

    /// Draws the bar of colours with its speeds. If there is a cell without a speed, the legend explains the hatching.
    fn draw_legend(&self, root: &Area<'_>) -> Drawn {
        let left = self.origin.0 + self.extent().0 + 2 * MARGIN;
        let (top, height) = (self.origin.1 + LINE, (self.extent().1 - LINE - 2 * BAR).max(MIN_BAR_HEIGHT));
        if let Some((low, high)) = self.range {
            root.draw(&Text::new("GFLOP/s", (left, top - LINE), style(LINE, HPos::Left, &BLACK)))?;
            for y in 0..height {
                let share = 1.0 - f64::from(y) / f64::from(height);
                root.draw(&Rectangle::new([(left, top + y), (left + BAR, top + y + 1)], color(share).filled()))?;
            }
            for mark in 0..=LEGEND_INTERVALS {
                let share = f64::from(mark) / f64::from(LEGEND_INTERVALS);
                let y = top + height - height * mark / LEGEND_INTERVALS;
                let speed = label(low + (high - low) * share);
                root.draw(&Text::new(speed, (left + BAR + MARGIN / 2, y), style(LINE, HPos::Left, &BLACK)))?;
            }
        }
        let mut all = (0..self.y.1.len()).flat_map(|row| (0..self.x.1.len()).map(move |column| (column, row)));
        if all.any(|(column, row)| self.speed(column, row).is_none()) {
            let corner = (left, top + height + MARGIN);
            hatch(root, corner, (BAR, BAR))?;
            root.draw(&Text::new("no value", (left + BAR + MARGIN / 2, corner.1 + BAR / 2), style(LINE, HPos::Left, &BLACK)))?;
        }
        Ok(())
    }
}

/// Draws a cell without a value: a grey rectangle with diagonal lines.
fn hatch(root: &Area<'_>, (left, top): (i32, i32), (width, height): (i32, i32)) -> Drawn {
    root.draw(&Rectangle::new([(left, top), (left + width, top + height)], NO_VALUE[0].filled()))?;
    // The line x + y = `sum`, in coordinates of the cell, enters the cell at its left or bottom edge.
    for sum in (6..width + height).step_by(8) {
        let (from, to) =
            ((left + (sum - height).max(0), top + sum.min(height)), (left + sum.min(width), top + (sum - width).max(0)));
        root.draw(&PathElement::new([from, to], NO_VALUE[1]))?;
    }
    Ok(())
}

/// The colour at a place of the scale from 0 to 1, interpolated between the colours of [`SCALE`].
fn color(share: f64) -> RGBColor {
    let at = share.clamp(0.0, 1.0) * (SCALE.len() - 1) as f64;
    let lower = (at as usize).min(SCALE.len() - 2);
    let (from, to, part) = (SCALE[lower], SCALE[lower + 1], at - lower as f64);
    let between = |from: u8, to: u8| (f64::from(from) + (f64::from(to) - f64::from(from)) * part).round() as u8;
    RGBColor(between(from.0, to.0), between(from.1, to.1), between(from.2, to.2))
}

/// Formats a speed with three significant digits, or without decimals from 100 on.
fn label(speed: f64) -> String {
    let decimals = if speed < 10.0 { 2 } else { usize::from(speed < 100.0) };
    format!("{speed:.decimals$}")
}

/// Style of a text that is vertically centred at its position. `size` is the height of the text in pixels.
fn style(size: i32, horizontal: HPos, color: &RGBColor) -> TextStyle<'_> {
    TextStyle::from(("sans-serif", size).into_font()).color(color).pos(Pos::new(horizontal, VPos::Center))
}

fn text_width(text: &str) -> i32 {
    to_pixels(text.chars().count()) * CHARACTER
}

/// Width of the longest text.
fn longest(texts: &[String]) -> i32 {
    texts.iter().map(|text| text_width(text)).max().unwrap_or(0)
}

/// Converts a count to a coordinate. A count that no picture could show becomes the largest coordinate.
fn to_pixels(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(values: &[usize]) -> Vec<String> {
        values.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_heat_map_shows_speeds_values_names_and_missing_cells() {
        let cells = [vec![Some(1.0), Some(20.0), None], vec![Some(300.4), Some(f64::NAN)]];
        let text = heat_map("gemm <f32>", ("kwg", &values(&[8, 16, 32])), ("mwg", &values(&[64, 128])), &cells).unwrap();
        let has = |word: &str| text.lines().any(|line| line.trim() == word);
        for word in ["gemm &lt;f32&gt;", "kwg", "8", "16", "32", "mwg", "64", "128", "GFLOP/s", "1.00", "20.0", "300", "no value"] {
            assert!(has(word), "{word}: {text}");
        }
        assert!(!text.contains("NaN"), "{text}");
        let [cells_without_value, lowest, highest] = [NO_VALUE[0], SCALE[0], SCALE[5]]
            .map(|RGBColor(r, g, b)| text.matches(&format!("fill=\"#{r:02X}{g:02X}{b:02X}\"")).count());
        // Three cells and the legend are hatched. The legend also contains the highest speed.
        assert_eq!((cells_without_value, lowest > 0, highest > 1), (4, true, true), "{text}");
    }

    #[test]
    fn numbers_that_do_not_fit_their_cell_are_left_out() {
        let x = values(&(1000..1040).collect::<Vec<_>>());
        let text = heat_map("t", ("x", &x), ("y", &values(&[1])), &[vec![Some(77777.0); 40]]).unwrap();
        // The five labels of the legend show the speed, and the cells do not.
        assert_eq!(text.lines().filter(|line| line.trim() == "77777").count(), 5, "{text}");
        assert_eq!(text.matches("rotate(270").count(), 41, "{text}");
        assert!(!text.contains("no value"));
        assert!(heat_map("t", ("x", &[]), ("y", &[]), &[]).unwrap().starts_with("<svg"));
    }

    #[test]
    fn faster_cells_are_darker() {
        let brightness = |share: f64| {
            let RGBColor(r, g, b) = color(share);
            [(r, 0.2126), (g, 0.7152), (b, 0.0722)].map(|(part, weight)| f64::from(part) * weight).iter().sum::<f64>()
        };
        assert!((0..100).all(|step| brightness(f64::from(step) / 100.0) > brightness(f64::from(step + 1) / 100.0)));
        assert_eq!([0.0, 1.0].map(color), [SCALE[0], SCALE[5]]);
    }
}
