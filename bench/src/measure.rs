//! Times several libraries in turn.

use std::time::Instant;

use lapidary_host::rest;

use crate::settings::Settings;

/// Smallest and largest number of repetitions for one case.
const REPS: (usize, usize) = (3, 201);

/// A library or a device that is timed. `work` prepares a call, runs the call, and returns the seconds that the call alone took.
pub struct Side<'a> {
    /// Name of the library or the device in the table.
    pub name: String,
    work: Box<dyn FnMut() -> f64 + 'a>,
}

impl<'a> Side<'a> {
    /// Creates a side. The closure `work` must measure its calls with [`timed`].
    pub fn new(name: impl Into<String>, work: impl FnMut() -> f64 + 'a) -> Self {
        Side { name: name.into(), work: Box::new(work) }
    }
}

/// The times of all repetitions of one library or device.
pub struct Times {
    /// Name of the library or the device in the table.
    pub name: String,
    /// Seconds of each repetition, in ascending order.
    pub seconds: Vec<f64>,
}

impl Times {
    /// The median of the seconds.
    pub fn median(&self) -> f64 {
        self.seconds[self.seconds.len() / 2]
    }
}

/// The largest magnitude of all values, or NaN if a value is NaN.
pub fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.map(f64::abs).fold(0.0, larger)
}

/// The larger of two values, or NaN if one of them is NaN.
pub fn larger(most: f64, x: f64) -> f64 {
    if most.is_nan() || x <= most { most } else { x }
}

/// Measures the seconds that `work` takes.
pub fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

/// Measures the seconds that a call takes.
///
/// # Errors
/// The call fails.
pub fn try_timed<E>(call: impl FnOnce() -> Result<(), E>) -> Result<f64, E> {
    let mut outcome = Ok(());
    let seconds = timed(|| outcome = call());
    outcome.map(|()| seconds)
}

/// Measures the seconds of one call, as the mean over so many calls that together they take about 0.2 ms.
pub fn timed_each(mut call: impl FnMut()) -> f64 {
    let once = timed(&mut call).max(1e-9);
    let times = (2e-4 / once).ceil().min(1e6);
    timed(|| (0..times as usize).for_each(|_| call())) / times
}

/// Times the libraries or devices in turn. Before the first timed round each library makes one untimed call, so that its threads are
/// started and its memory is allocated. Directly before each timed call, each library makes `settings.before` further untimed calls.
pub fn in_turn(settings: &Settings, mut sides: Vec<Side<'_>>) -> Vec<Times> {
    for side in &mut sides {
        (side.work)();
    }
    let start = Instant::now();
    let is_enough = |rep: usize| match settings.reps {
        Some(reps) => rep >= reps,
        None => rep >= REPS.1 || (rep >= REPS.0 && start.elapsed().as_secs_f64() > settings.seconds),
    };
    alternate(settings.before, sides, is_enough)
}

/// Times the libraries or devices in rounds until `is_enough` returns true for the number of completed rounds. Every second round
/// runs in reverse order. Directly before each timed call, each library makes `before` untimed calls.
pub fn alternate(before: usize, mut sides: Vec<Side<'_>>, is_enough: impl Fn(usize) -> bool) -> Vec<Times> {
    let mut times: Vec<Times> = sides.iter().map(|side| Times { name: side.name.clone(), seconds: Vec::new() }).collect();
    let mut rep = 0;
    while !is_enough(rep) {
        for i in 0..sides.len() {
            let i = if rep.is_multiple_of(2) { i } else { sides.len() - 1 - i };
            if !rest() {
                eprintln!("warning: threads still busy before {}", times[i].name);
            }
            (0..before).for_each(|_| _ = (sides[i].work)());
            times[i].seconds.push((sides[i].work)());
        }
        rep += 1;
    }
    times.iter_mut().for_each(|times| times.seconds.sort_by(f64::total_cmp));
    times
}
