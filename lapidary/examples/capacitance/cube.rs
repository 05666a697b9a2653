//! The surface of the unit cube, divided into rectangular panels.

/// A rectangle in a face of the cube. If axis `k` is normal to the face, `u` is the coordinate along axis `k + 1` and `v` along
/// axis `k + 2`, cyclically.
#[derive(Clone, Copy, Debug)]
pub struct Panel {
    /// Index of the axis normal to the face: 0, 1 or 2.
    pub axis: usize,
    /// Coordinate of the face along the axis normal to it: 0 or 1.
    pub level: f64,
    /// Ends of the panel along the first axis of the face.
    pub u: [f64; 2],
    /// Ends of the panel along the second axis of the face.
    pub v: [f64; 2],
}

impl Panel {
    /// Area of the panel.
    pub fn area(&self) -> f64 {
        (self.u[1] - self.u[0]) * (self.v[1] - self.v[0])
    }

    /// Returns the point with coordinates `(u, v)` in the plane of the panel.
    pub fn point(&self, u: f64, v: f64) -> [f64; 3] {
        let mut point = [self.level; 3];
        point[(self.axis + 1) % 3] = u;
        point[(self.axis + 2) % 3] = v;
        point
    }

    /// Returns the centre of the panel.
    pub fn centre(&self) -> [f64; 3] {
        self.point((self.u[0] + self.u[1]) / 2.0, (self.v[0] + self.v[1]) / 2.0)
    }
}

/// Returns all 6·m² panels, face by face.
pub fn panels(m: usize, grading: u32) -> Vec<Panel> {
    let lines = lines(m, grading);
    let spans: Vec<[f64; 2]> = lines.windows(2).map(|pair| [pair[0], pair[1]]).collect();
    let faces = (0..3).flat_map(|axis| [(axis, 0.0), (axis, 1.0)]);
    let cells = |(axis, level)| {
        let spans = &spans;
        spans.iter().flat_map(move |&u| spans.iter().map(move |&v| Panel { axis, level, u, v }))
    };
    faces.flat_map(cells).collect()
}

/// Returns the ends of the m panels along an edge: t ↦ ½(2t)^g for t ≤ ½, mirrored for t > ½.
fn lines(m: usize, grading: u32) -> Vec<f64> {
    let low = |i: usize| 0.5 * power(2.0 * i as f64 / m as f64, grading);
    (0..=m).map(|i| if 2 * i <= m { low(i) } else { 1.0 - low(m - i) }).collect()
}

/// Computes a power by repeated multiplication. `powi` may round differently on other platforms, and the files in
/// `data/capacitance` must not depend on the platform.
fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_cover_the_cube() {
        for (m, grading) in [(1, 1), (4, 1), (5, 3), (8, 4)] {
            let panels = panels(m, grading);
            assert_eq!(panels.len(), 6 * m * m);
            let area: f64 = panels.iter().map(Panel::area).sum();
            assert!((area - 6.0).abs() < 1e-14 * panels.len() as f64);
        }
    }

    #[test]
    fn grading_makes_panels_at_edges_small() {
        assert_eq!(lines(4, 1), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(lines(4, 3), [0.0, 0.0625, 0.5, 0.9375, 1.0]);
    }
}
