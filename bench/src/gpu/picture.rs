//! Draws the ratios of Lapidary's speed to that of other libraries as bars in an SVG picture.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use super::Mode;
use super::comparison::Comparison;

/// Sizes in pixels: the height of a bar with its text, the height of the title, the width of the texts, and the width of the bars.
const ROW: i32 = 18;
const TITLE: i32 = 56;
const LABEL: i32 = 340;
const BARS: i32 = 420;

/// The ratio at which bars end, so that bars near 1 differ visibly. The text beside a bar states its ratio.
const LONGEST: f64 = 2.0;

/// Writes the picture to a file.
///
/// # Errors
/// The picture cannot be drawn or written.
pub fn save(path: &Path, all: &[Comparison]) -> Result<(), String> {
    let text = svg(all).map_err(|error| error.to_string())?;
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Draws a bar for each comparison with another library, and a line at the ratio 1.
fn svg(all: &[Comparison]) -> Result<String, Box<dyn Error>> {
    let rows: Vec<(&Comparison, f64)> = all.iter().filter_map(|row| Some((row, row.ratio()?))).collect();
    let height = TITLE + ROW * (rows.len() as i32 + 1);
    let x = |ratio: f64| LABEL + (ratio.min(LONGEST) / LONGEST * f64::from(BARS)) as i32;
    let mut text = String::new();
    {
        let root =
            SVGBackend::with_string(&mut text, (u32::try_from(LABEL + BARS + 70)?, u32::try_from(height)?)).into_drawing_area();
        root.fill(&WHITE)?;
        let (title, font) = (("sans-serif", 18).into_font(), ("sans-serif", 12).into_font());
        root.draw(&Text::new("Speed of Lapidary divided by the speed of the other library", (12, 10), title))?;
        root.draw(&Text::new("medians; dark: burst, light: sustained; line: equal speeds; bars end at 2", (12, 34), font.clone()))?;
        for (i, (row, ratio)) in rows.iter().enumerate() {
            let y = TITLE + ROW * i as i32;
            let peer = row.peer.as_ref().map_or("", |(name, _)| name);
            root.draw(&Text::new(format!("{} · {} · {peer}", row.case, row.mode.name()), (12, y + 2), font.clone()))?;
            root.draw(&Rectangle::new([(LABEL, y + 2), (x(*ratio), y + ROW - 2)], color(row.mode, peer).filled()))?;
            root.draw(&Text::new(format!("{ratio:.2}"), (x(*ratio) + 4, y + 2), font.clone()))?;
        }
        root.draw(&PathElement::new(vec![(x(1.0), TITLE), (x(1.0), height - ROW)], BLACK))?;
        root.present()?;
    }
    Ok(text)
}

fn color(mode: Mode, peer: &str) -> RGBAColor {
    let of_peer = if peer == "clblast" { RGBColor(200, 80, 0) } else { RGBColor(0, 90, 160) };
    match mode {
        Mode::Burst => of_peer.mix(1.0),
        Mode::Sustained => of_peer.mix(0.5),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comparison_has_a_bar_with_its_ratio() {
        let row = |case: &str, peer: Option<(&str, f64)>| Comparison {
            case: case.to_owned(),
            mode: Mode::Burst,
            ours: 3.0,
            of_peak: None,
            peer: peer.map(|(name, speed)| (name.to_owned(), speed)),
        };
        let text =
            svg(&[row("gemm f64 n=8 NN", Some(("cublas", 4.0))), row("trsm f64", Some(("clblast", 2.0))), row("lonely", None)]);
        let text = text.unwrap();
        assert!(["gemm f64 n=8 NN · burst · cublas", "0.75", "1.50"].iter().all(|word| text.contains(word)), "{text}");
        assert!(!text.contains("lonely"));
        // the background and two bars
        assert_eq!(text.matches("<rect").count(), 3, "{text}");
        assert!(svg(&[]).unwrap().starts_with("<svg"));
    }
}
