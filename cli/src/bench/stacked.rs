//! Draws parts of wholes as stacked bars, in an SVG picture.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::timeline::COLORS;
use crate::failure::{Failure, Result};

/// A bar: its name, a text above it, and the heights of its parts from bottom to top.
pub struct Bar {
    /// Name of the bar, below the bar.
    pub name: String,
    /// Text above the bar.
    pub note: String,
    /// Heights of the parts, one for each name of a part.
    pub parts: Vec<f64>,
}

/// Draws stacked bars with the title `title` and the vertical axis `y`, and returns the text of an SVG file. `parts` holds the names of the parts
/// from bottom to top. The legend shows the parts that are not 0 in all bars. The last part is the rest of each whole, and is grey.
pub fn svg(title: &str, [x, y]: [&str; 2], parts: &[&str], bars: &[Bar]) -> Result<String> {
    let mut text = String::new();
    draw(&mut text, title, [x, y], parts, bars).map_err(|e| Failure::check(format!("cannot draw: {e}")))?;
    Ok(text)
}

fn draw(text: &mut String, title: &str, [x, y]: [&str; 2], parts: &[&str], bars: &[Bar]) -> Result<(), Box<dyn std::error::Error>> {
    let highest = bars.iter().map(|bar| bar.parts.iter().sum()).fold(0.0, f64::max);
    let count = bars.len() as f64;
    let root = SVGBackend::with_string(text, (800, 500)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(60)
        // the legend lies on the right of the bars
        .build_cartesian_2d(0.0..count * 1.4, 0.0..highest.max(1e-9) * 1.08)?;
    chart.configure_mesh().x_desc(x).y_desc(y).disable_x_mesh().x_labels(0).max_light_lines(0).draw()?;
    let [colors @ .., of_rest] = &COLORS;
    for (part, name) in parts.iter().enumerate() {
        if bars.iter().all(|bar| bar.parts[part] == 0.0) {
            continue;
        }
        let color = if part + 1 == parts.len() { of_rest } else { &colors[part % colors.len()] };
        let color = color.mix(0.8).filled();
        let rectangles = bars.iter().enumerate().map(|(number, bar)| {
            let below: f64 = bar.parts[..part].iter().sum();
            Rectangle::new([(number as f64 + 0.15, below), (number as f64 + 0.85, below + bar.parts[part])], color)
        });
        let series = chart.draw_series(rectangles)?;
        series.label(*name).legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 16, y + 4)], color));
    }
    let style = |vertical| ("sans-serif", 13).into_text_style(&root).pos(Pos::new(HPos::Center, vertical));
    chart.draw_series(bars.iter().enumerate().map(|(number, bar)| {
        let top = bar.parts.iter().sum();
        Text::new(bar.note.clone(), (number as f64 + 0.5, top), style(VPos::Bottom))
    }))?;
    let area = chart.plotting_area();
    for (number, bar) in bars.iter().enumerate() {
        let (left, bottom) = area.map_coordinate(&(number as f64 + 0.5, 0.0));
        root.draw(&Text::new(bar.name.clone(), (left, bottom + 6), style(VPos::Top)))?;
    }
    chart.configure_series_labels().border_style(BLACK).background_style(WHITE).position(SeriesLabelPosition::UpperRight).draw()?;
    root.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_each_bar_is_drawn_with_its_height() {
        let bar = |name: &str, parts: [f64; 4]| Bar { name: name.to_owned(), note: format!("{name} ms"), parts: parts.to_vec() };
        let text = svg(
            "LU",
            ["n", "%"],
            &["panel", "update", "never", "rest"],
            &[bar("64", [60.0, 30.0, 0.0, 10.0]), bar("128", [20.0, 60.0, 0.0, 20.0])],
        )
        .unwrap();
        let has = |word: &str| text.lines().any(|line| line.trim() == word);
        assert!(
            ["LU", "n", "%", "panel", "update", "rest", "64", "128", "64 ms", "128 ms"].iter().all(|word| has(word))
                && !has("never"),
            "{text}"
        );
        let number = |line: &str, key: &str| -> u32 { line.split(key).nth(1).unwrap().split('"').next().unwrap().parse().unwrap() };
        // the top and the height of each part with a colour, without the legend
        let places = |color: &str| -> Vec<[u32; 2]> {
            let is_part = |line: &&str| line.starts_with("<rect") && line.contains(color) && !line.contains("width=\"16\"");
            text.lines().filter(is_part).map(|line| [" y=\"", " height=\""].map(|key| number(line, key))).collect()
        };
        // the colours of the first, the second and the last part
        let [panels, updates, rests] = ["#005AA0", "#C85000", "#787878"].map(places);
        assert_eq!([panels.len(), updates.len(), rests.len()], [2; 3], "{text}");
        for bar in [0, 1] {
            assert_eq!(updates[bar][0] + updates[bar][1], panels[bar][0], "an update lies on its panel: {text}");
            assert_eq!(rests[bar][0] + rests[bar][1], updates[bar][0], "a rest lies on its update: {text}");
        }
        let is_multiple = |[larger, smaller]: [[u32; 2]; 2], times: u32| larger[1].abs_diff(times * smaller[1]) <= times;
        assert!(is_multiple([panels[0], panels[1]], 3) && is_multiple([updates[1], updates[0]], 2), "{panels:?} {updates:?}");
        assert!(is_multiple([rests[1], rests[0]], 2), "{rests:?}");
    }
}
