//! Sides in turn.

use std::time::Instant;

use lapidary_host::rest;

use crate::settings::Settings;

/// Fewest and most repetitions of a case.
const REPS: (usize, usize) = (3, 201);

/// Who is timed: it prepares, then gives back the seconds of what counts.
pub struct Side<'a> {
    /// Its name in the table.
    pub name: String,
    work: Box<dyn FnMut() -> f64 + 'a>,
}

impl<'a> Side<'a> {
    /// A side; see [`timed`].
    pub fn new(name: impl Into<String>, work: impl FnMut() -> f64 + 'a) -> Self {
        Side { name: name.into(), work: Box::new(work) }
    }
}

/// The times of one side.
pub struct Times {
    /// Its name in the table.
    pub name: String,
    /// Seconds, in ascending order.
    pub seconds: Vec<f64>,
}

impl Times {
    /// The middle.
    pub fn median(&self) -> f64 {
        self.seconds[self.seconds.len() / 2]
    }
}

/// The largest magnitude; NaN if there is one.
pub fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::abs).fold(0.0, |most, x| if x > most || x.is_nan() { x } else { most })
}

/// Seconds of some work.
pub fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Seconds of one of many calls, as many as take about a fifth of a millisecond.
pub fn timed_each(mut call: impl FnMut()) -> f64 {
    let once = timed(&mut call).max(1e-9);
    let times = (2e-4 / once).ceil().min(1e6);
    timed(|| (0..times as usize).for_each(|_| call())) / times
}

/// Times the sides in turn, every other round in reverse order. One round
/// before does not count: it wakes threads and touches memory. Nor do the calls of a side that come right before a timed one.
pub fn in_turn(settings: &Settings, mut sides: Vec<Side<'_>>) -> Vec<Times> {
    let mut times: Vec<Times> = sides.iter().map(|side| Times { name: side.name.clone(), seconds: Vec::new() }).collect();
    for side in &mut sides {
        (side.work)();
    }
    let (start, mut rep) = (Instant::now(), 0);
    let is_enough = |rep: usize| match settings.reps {
        Some(reps) => rep >= reps,
        None => rep >= REPS.1 || (rep >= REPS.0 && start.elapsed().as_secs_f64() > settings.seconds),
    };
    while !is_enough(rep) {
        for i in 0..sides.len() {
            let i = if rep.is_multiple_of(2) { i } else { sides.len() - 1 - i };
            if !rest() {
                eprintln!("warning: threads still busy before {}", times[i].name);
            }
            (0..settings.before).for_each(|_| _ = (sides[i].work)());
            times[i].seconds.push((sides[i].work)());
        }
        rep += 1;
    }
    times.iter_mut().for_each(|times| times.seconds.sort_by(f64::total_cmp));
    times
}
