//! Draws the charge density: the cube in isometric projection, and a colour scale.

use std::fmt::Write;

use crate::cube::Panel;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 640.0;
/// Length of an edge of the cube in pixels.
const EDGE: f64 = 250.0;
/// Position in pixels of the corner (1, 1, 1).
const ORIGIN: [f64; 2] = [290.0, 325.0];
/// Left, top, width and height of the colour scale in pixels.
const SCALE: [f64; 4] = [600.0, 125.0, 26.0, 400.0];
/// Colours of the scale: viridis, from dark to light.
const COLOURS: [[f64; 3]; 9] = [
    [68.0, 1.0, 84.0],
    [71.0, 44.0, 122.0],
    [59.0, 81.0, 139.0],
    [44.0, 113.0, 142.0],
    [33.0, 144.0, 141.0],
    [39.0, 173.0, 129.0],
    [92.0, 200.0, 99.0],
    [170.0, 220.0, 50.0],
    [253.0, 231.0, 37.0],
];
/// Fraction of the surface whose density may exceed the end of the scale. The density is infinite at the edges, so a scale up to
/// the largest density would show only the panels at the edges.
const BEYOND: f64 = 0.03;

/// Draws the panels and the colour scale as an SVG picture. `charges` are the charges of the panels divided by 4πε₀.
pub fn svg(panels: &[Panel], charges: &[f64]) -> String {
    let density = densities(panels, charges);
    let range = range(panels, &density);
    let mut out = String::new();
    head(&mut out);
    for (panel, density) in panels.iter().zip(&density).filter(|(panel, _)| panel.level == 1.0) {
        polygon(&mut out, panel, &colour(position(*density, range)));
    }
    scale(&mut out, range);
    foot(&mut out, panels.len(), charges);
    out
}

/// Returns the charge densities σ = q / area, in units of ε₀·V/edge.
fn densities(panels: &[Panel], charges: &[f64]) -> Vec<f64> {
    panels.iter().zip(charges).map(|(panel, x)| 4.0 * std::f64::consts::PI * x / panel.area()).collect()
}

/// Returns the range of densities of the colour scale. The range begins at the smallest density and ends at the density that a
/// fraction [`BEYOND`] of the surface exceeds.
fn range(panels: &[Panel], density: &[f64]) -> [f64; 2] {
    let mut order: Vec<usize> = (0..density.len()).collect();
    order.sort_by(|&i, &j| density[j].total_cmp(&density[i]));
    let mut area = 0.0;
    let last = order.iter().find(|&&i| {
        area += panels[i].area() / 6.0;
        area > BEYOND
    });
    let highest = last.map_or(1.0, |&i| density[i]);
    let lowest = order.last().map_or(0.5, |&i| density[i]);
    // if all densities are equal, any non-empty range is valid
    [lowest, highest.max(lowest * 1.01)]
}

/// Returns the position of a density on the logarithmic scale, from 0 to 1.
fn position(density: f64, [low, high]: [f64; 2]) -> f64 {
    ((density / low).ln() / (high / low).ln()).clamp(0.0, 1.0)
}

fn colour(position: f64) -> String {
    let place = position * (COLOURS.len() - 1) as f64;
    let below = (place as usize).min(COLOURS.len() - 2);
    let part = place - below as f64;
    let [r, g, b] = [0, 1, 2].map(|k| (COLOURS[below][k] * (1.0 - part) + COLOURS[below + 1][k] * part).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Isometric projection: the three axes make angles of 120°.
fn project([x, y, z]: [f64; 3]) -> [f64; 2] {
    let across = (y - x) * (3.0_f64.sqrt() / 2.0);
    let down = (x + y) / 2.0 - z;
    [ORIGIN[0] + EDGE * across, ORIGIN[1] + EDGE * down]
}

fn polygon(out: &mut String, panel: &Panel, colour: &str) {
    let ([u0, u1], [v0, v1]) = (panel.u, panel.v);
    let corners = [(u0, v0), (u1, v0), (u1, v1), (u0, v1)].map(|(u, v)| project(panel.point(u, v)));
    let points = corners.map(|[x, y]| format!("{x:.2},{y:.2}")).join(" ");
    // a stroke of the same colour covers the hairlines between neighbouring panels
    let _ = writeln!(out, r#"<polygon points="{points}" fill="{colour}" stroke="{colour}"/>"#);
}

fn head(out: &mut String) {
    let _ = writeln!(
        out,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="14" fill="#222" stroke-width="0.4" stroke-linejoin="round">
<title>Surface charge density of a conducting cube</title>
<rect width="100%" height="100%" fill="white"/>
<text x="40" y="44" font-size="20">Surface charge density of a conducting cube</text>"##
    );
}

fn scale(out: &mut String, range: [f64; 2]) {
    let [left, top, width, height] = SCALE;
    const STEPS: usize = 100;
    let step = height / STEPS as f64;
    for i in 0..STEPS {
        let (y, colour) = (top + height - (i + 1) as f64 * step, colour((i as f64 + 0.5) / STEPS as f64));
        let _ =
            writeln!(out, r#"<rect x="{left}" y="{y:.2}" width="{width}" height="{step:.2}" fill="{colour}" stroke="{colour}"/>"#);
    }
    let _ = writeln!(out, r#"<text x="{left}" y="{}">σ in ε₀·V/edge</text>"#, top - 36.0);
    for value in ticks(range) {
        let (x, y) = (left + width, top + height * (1.0 - position(value, range)));
        let _ = writeln!(out, r##"<path d="M{x} {y:.2}h6" stroke="#222" stroke-width="1"/>"##);
        let _ = writeln!(out, r#"<text x="{}" y="{:.2}">{}</text>"#, x + 10.0, y + 5.0, label(value, range));
    }
}

/// Returns the ends of the colour scale and round numbers between them. Numbers too close to an end of the colour scale are
/// omitted, since their labels would overlap.
fn ticks([low, high]: [f64; 2]) -> Vec<f64> {
    let round = (0..10).map(|i| f64::from(1 << i)).flat_map(|power| [power, 1.5 * power]);
    let inside = round.filter(|&value| (0.06..0.94).contains(&position(value, [low, high])) && value > low);
    [low].into_iter().chain(inside).chain([high]).collect()
}

/// Formats the number of a tick. The last tick stands for all densities above it.
fn label(value: f64, [_, high]: [f64; 2]) -> String {
    format!("{}{value:.2}", if value >= high { "≥ " } else { "" })
}

fn foot(out: &mut String, panels: usize, charges: &[f64]) {
    let capacitance: f64 = charges.iter().sum();
    let y = HEIGHT - 24.0;
    let _ = writeln!(out, r#"<text x="40" y="{y}">{panels} panels; capacitance {capacitance:.5} · 4πε₀·edge</text>"#);
    out.push_str("</svg>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cube::panels;

    #[test]
    fn visible_panels_are_drawn_within_the_picture() {
        let panels = panels(4, 3);
        let text = svg(&panels, &vec![1.0; panels.len()]);
        assert_eq!(text.matches("<polygon").count(), 48);
        for corner in [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(project) {
            assert!((0.0..SCALE[0] - 20.0).contains(&corner[0]) && (50.0..HEIGHT - 40.0).contains(&corner[1]), "{corner:?}");
        }
    }

    #[test]
    fn the_scale_begins_dark_and_ends_light() {
        assert_eq!((colour(0.0), colour(1.0)), ("#440154".to_owned(), "#fde725".to_owned()));
        assert!((position(2.0, [1.0, 4.0]) - 0.5).abs() < 1e-15);
    }
}
