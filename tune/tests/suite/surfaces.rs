//! A space like that of a product by tiles, and two cost surfaces on it.

use lapidary_tune::{Axis, Outcome, Recording, Row, Space};

/// A cost surface: seconds per run, or `None` for a point that fails.
pub type Surface = fn(&[usize]) -> Option<f64>;

/// Returns the parameters `mwg nwg kwg mr nr vwm stages layout`, where the last two are structural.
pub fn space() -> Space {
    let axis = |name: &str, values: &[usize], structural| Axis { name: name.to_owned(), values: values.to_vec(), structural };
    let axes = vec![
        axis("mwg", &[16, 32, 64, 128], false),
        axis("nwg", &[16, 32, 64, 128], false),
        axis("kwg", &[4, 8, 16, 32], false),
        axis("mr", &[1, 2, 4, 8], false),
        axis("nr", &[1, 2, 4, 8], false),
        axis("vwm", &[1, 2, 4], false),
        axis("stages", &[1, 2], true),
        axis("layout", &[0, 1], true),
    ];
    Space::new(axes, |v| match v[0] / v[3] * (v[1] / v[4]) {
        _ if v[3] % v[5] != 0 => Err("vwm divides mr".to_owned()),
        items if items > 256 => Err("the work-items fit a work-group".to_owned()),
        _ => Ok(()),
    })
}

/// A small space without constraints.
pub fn small_space() -> Space {
    let axis = |name: &str, len, structural| Axis { name: name.to_owned(), values: (1..=len).collect(), structural };
    Space::new(vec![axis("a", 6, false), axis("s", 2, true), axis("b", 7, false)], |_| Ok(()))
}

/// A number in [0, 1) that depends on `values` without a pattern.
fn noise(values: &[usize]) -> f64 {
    let mix = |hash: u64, value: &usize| (hash ^ *value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    (values.iter().fold(0x1234_5678, mix).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A product of one factor for each axis.
pub fn separable(values: &[usize]) -> Option<f64> {
    let factor = |(at, value): (usize, &usize)| 1.0 + 0.2 * (noise(&[at, *value]) * 8.0).floor();
    Some(1e-3 * values.iter().enumerate().map(factor).product::<f64>())
}

/// A separable surface with interactions between pairs of axes and a random factor of up to 1.3 for each point. One point in ten
/// fails.
pub fn rugged(values: &[usize]) -> Option<f64> {
    let pair = |at: usize| 1.0 + 0.3 * noise(&[at, values[at], values[at + 1]]);
    let interactions: f64 = (0..values.len() - 1).map(pair).product();
    let seconds = separable(values)? * interactions * (1.0 + 0.3 * noise(values));
    (noise(&[noise(values).to_bits() as usize]) >= 0.1).then_some(seconds)
}

pub fn outcome(seconds: Option<f64>) -> Outcome {
    seconds.map_or(Outcome::Failed, Outcome::Seconds)
}

/// Returns the lowest cost of all points.
pub fn lowest(space: &Space, surface: Surface) -> f64 {
    space.points().filter_map(surface).min_by(f64::total_cmp).unwrap()
}

/// Returns a recording of all points, each with a setup time of half a second.
pub fn record(space: &Space, surface: Surface) -> Recording {
    let mut recording = Recording::new(space.axes().iter().map(|axis| axis.name.as_str()));
    for values in space.points() {
        let result = surface(values).ok_or_else(|| "wrong result".to_owned());
        recording.insert(values.to_vec(), Row { setup_seconds: 0.5, result });
    }
    recording
}
