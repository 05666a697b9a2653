//! Times calls of Lapidary and of other libraries on a GPU in alternation, with matrices in device memory.

pub mod check;
pub mod clblast;
pub mod comparison;
pub mod nvidia;
pub mod ours;
pub mod picture;
pub mod problem;

use std::thread::sleep;
use std::time::Duration;

use lapidary::backend::DeviceKind;
use lapidary::{DType, Machine};

use self::clblast::ClBlast;
use self::comparison::Comparison;
use self::problem::{Case, Operands};
use crate::cases::{ROUNDING, compare};
use crate::cublas::{Cublas, Real};
use crate::cusolver::Cusolver;
use crate::measure::{Side, Times, alternate, try_timed};
use crate::report::{Report, Unit};
use crate::settings::Settings;

/// A peer is left out of a case if its call takes longer than `SLOW_SECONDS` and longer than `SLOW_RATIO` of our calls.
const SLOW_SECONDS: f64 = 2.0;
const SLOW_RATIO: f64 = 4.0;

/// Duration of the calls that determine the number of calls in a series, in seconds.
const TRIAL: f64 = 0.02;

/// A call of one library whose operands lie in device memory.
pub trait Prepared<T> {
    /// Name of the library in the tables.
    fn name(&self) -> &'static str;

    /// Makes the call `times` times in succession and waits until the last call has ended.
    ///
    /// # Errors
    /// The library refuses the call, or the device fails.
    fn run(&mut self, times: usize) -> Result<(), String>;

    /// Copies the result of the last call to host memory. Returns the pivots of a factorisation, counted from 0.
    ///
    /// # Errors
    /// The transfer fails, or the factorisation found a zero pivot.
    fn read(&self, to: &mut [T]) -> Result<Vec<usize>, String>;
}

/// How often the calls of a case are repeated, and with which pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The device idles before each short series of calls, so that it may use its highest clock.
    Burst,
    /// Each series is long, so that the device reaches the clock that its power limit allows.
    Sustained,
}

impl Mode {
    pub const ALL: [Mode; 2] = [Mode::Burst, Mode::Sustained];

    pub fn name(self) -> &'static str {
        match self {
            Mode::Burst => "burst",
            Mode::Sustained => "sustained",
        }
    }

    /// Minimum duration of a timed series of calls, in seconds. On a processor, whose figures only show that the program works, a
    /// long series is shorter.
    fn seconds(self, is_gpu: bool) -> f64 {
        match self {
            Mode::Burst => 0.03,
            Mode::Sustained if is_gpu => 1.0,
            Mode::Sustained => 0.1,
        }
    }

    /// Pause before a series.
    fn pause(self) -> Duration {
        match self {
            Mode::Burst => Duration::from_millis(100),
            Mode::Sustained => Duration::ZERO,
        }
    }

    /// Number of series of each library, unless the option `--reps` states another number.
    fn reps(self) -> usize {
        match self {
            Mode::Burst => 7,
            Mode::Sustained => 3,
        }
    }
}

/// The other libraries that are found on the system.
pub struct Peers<'a> {
    pub cublas: Option<&'a Cublas>,
    pub cusolver: Option<&'a Cusolver<'a>>,
    pub clblast: Option<&'a ClBlast>,
}

impl Peers<'_> {
    /// Names and versions of the libraries.
    pub fn versions(&self) -> impl Iterator<Item = (&'static str, String)> {
        let cublas = self.cublas.map(|peer| ("cublas", peer.version()));
        let cusolver = self.cusolver.map(|peer| ("cusolver", peer.version()));
        let clblast = self.clblast.map(|peer| ("clblast", peer.version()));
        [cublas, cusolver, clblast].into_iter().flatten()
    }

    /// Copies the operands to the device for each library that has the routine. A library that fails is named and left out.
    fn prepare<T: Real>(&self, operands: &Operands<T>) -> Vec<Box<dyn Prepared<T> + '_>> {
        let cublas = self.cublas.map(|peer| nvidia::cublas(peer, operands)).map(|call| ("cublas", call));
        let cusolver = self.cusolver.map(|peer| nvidia::cusolver(peer, operands)).map(|call| ("cusolver", call));
        let clblast = self.clblast.map(|peer| peer.prepare(operands)).map(|call| ("clblast", call));
        let found = [cublas, cusolver, clblast].into_iter().flatten();
        found.filter_map(|(name, call)| call.unwrap_or_else(|error| leave_out(operands, name, &error))).collect()
    }
}

fn leave_out<T: Real, R>(operands: &Operands<T>, library: &str, error: &str) -> Option<R> {
    println!("{} {}: {library} is left out: {error}", operands.name(), operands.problem.size());
    None
}

/// A prepared call and the seconds that it takes.
struct Entrant<'a, T> {
    call: Box<dyn Prepared<T> + 'a>,
    seconds: f64,
}

impl<'a, T> Entrant<'a, T> {
    /// Makes a first call, which may compile kernels, and measures the seconds of further calls.
    fn new(mut call: Box<dyn Prepared<T> + 'a>) -> Result<Self, String> {
        call.run(1)?;
        let once = seconds(&mut *call, 1)?;
        let times = (TRIAL / once).ceil() as usize;
        let seconds = if times > 1 { seconds(&mut *call, times)? / times as f64 } else { once };
        Ok(Entrant { call, seconds })
    }

    /// Makes a series of calls. Returns the seconds of each call. Half as many untimed calls before the series raise the clock of
    /// the device, which falls while the device idles. The time of the untimed calls determines the number of timed calls.
    fn series(&mut self, mode: Mode, is_gpu: bool) -> f64 {
        sleep(mode.pause());
        let count = |seconds: f64, once: f64| (seconds / once).ceil().max(1.0) as usize;
        let mut each = |times| seconds(&mut *self.call, times).expect("a call succeeds again") / times as f64;
        self.seconds = each(count(mode.seconds(is_gpu) / 2.0, self.seconds));
        each(count(mode.seconds(is_gpu), self.seconds))
    }
}

fn seconds<T>(call: &mut dyn Prepared<T>, times: usize) -> Result<f64, String> {
    try_timed(|| call.run(times))
}

/// A device, the libraries with which Lapidary is compared on it, and the results.
pub struct Bench<'a> {
    settings: &'a Settings,
    report: &'a mut Report,
    machine: &'a Machine,
    peers: Peers<'a>,
    /// Libraries and routines that were too slow in an earlier case. They are left out of later cases, which may be larger.
    slow: Vec<(&'static str, String)>,
}

impl<'a> Bench<'a> {
    /// Prints and stores which device and which libraries are measured.
    pub fn new(settings: &'a Settings, report: &'a mut Report, machine: &'a Machine, peers: Peers<'a>) -> Self {
        report.add_participants(machine.devices(), peers.versions());
        Bench { settings, report, machine, peers, slow: Vec::new() }
    }

    /// Times all cases that the options select. A case that fails is named, and the other cases run. At the end, the method prints
    /// the table of all ratios and draws the picture.
    ///
    /// # Errors
    /// Lapidary failed or computed a wrong result in at least one case, or a file cannot be written.
    pub fn run(mut self, cases: &[Case]) -> Result<(), String> {
        let (mut all, mut failures) = (Vec::new(), Vec::new());
        let of_device = |dtype: DType| self.machine.devices().all(|device| device.computes(dtype));
        let selected: Vec<&Case> = cases.iter().filter(|case| self.settings.selects(case) && of_device(case.dtype)).collect();
        for case in selected {
            let outcome = match case.dtype {
                DType::F32 => self.time::<f32>(case),
                DType::F64 => self.time::<f64>(case),
                DType::I32 => unreachable!("no routine computes in integers"),
            };
            match outcome {
                Ok(comparisons) => {
                    self.report.add_comparisons(&comparisons);
                    all.extend(comparisons);
                    // The figures survive if the program is stopped in a later case.
                    self.report.save(self.settings)?;
                }
                Err(error) => {
                    println!("{} {} {}: {error}", case.problem.routine().name(), case.dtype, case.problem.size());
                    failures.push(error);
                }
            }
        }
        comparison::print(&all);
        if let Some(path) = &self.settings.svg {
            picture::save(path, &all)?;
        }
        if failures.is_empty() { Ok(()) } else { Err(format!("{} cases failed: {}", failures.len(), failures.join("; "))) }
    }

    fn time<T: Real>(&mut self, case: &Case) -> Result<Vec<Comparison>, String> {
        let operands = Operands::<T>::random(case.problem)?;
        let mut entrants = vec![Entrant::new(Box::new(ours::prepare(self.machine, &operands)?))?];
        for call in self.peers.prepare(&operands) {
            let key = (call.name(), operands.name());
            if self.slow.contains(&key) {
                continue;
            }
            let entrant = match Entrant::new(call) {
                Ok(peer) if peer.seconds > SLOW_SECONDS && peer.seconds > SLOW_RATIO * entrants[0].seconds => {
                    let left_out = leave_out(&operands, key.0, &format!("a call takes {:.1} s, also in later cases", peer.seconds));
                    self.slow.push(key);
                    left_out
                }
                Ok(peer) => Some(peer),
                Err(error) => leave_out(&operands, key.0, &error),
            };
            entrants.extend(entrant);
        }
        let times: Vec<_> = self.settings.modes().map(|mode| (mode, self.alternate(mode, &mut entrants))).collect();
        let right = check_all(&operands, &entrants)?;
        drop(entrants);
        let mut comparisons = Vec::new();
        for (mode, times) in times {
            let times: Vec<Times> = times.into_iter().zip(&right).filter(|(_, right)| **right).map(|(times, _)| times).collect();
            let size = format!("{} {}", case.problem.size(), mode.name());
            self.report.add(&operands.name(), &size, Unit::Gflops(case.problem.flops()), &times);
            comparisons.extend(Comparison::of(case, mode, &times, self.settings.peak));
        }
        Ok(comparisons)
    }

    fn alternate<T: Real>(&self, mode: Mode, entrants: &mut [Entrant<'_, T>]) -> Vec<Times> {
        let is_gpu = self.machine.devices().all(|device| device.identity.kind == DeviceKind::Gpu);
        let side = |entrant| {
            let entrant: &mut Entrant<'_, T> = entrant;
            Side::new(entrant.call.name(), move || entrant.series(mode, is_gpu))
        };
        let reps = self.settings.reps.unwrap_or(mode.reps());
        alternate(self.settings.before, entrants.iter_mut().map(side).collect(), |rep| rep >= reps)
    }
}

/// Checks the results of all libraries. The first one is ours. Returns for each library whether its result is right. A peer with a
/// wrong result is named.
///
/// # Errors
/// Our result is wrong.
fn check_all<T: Real>(operands: &Operands<T>, entrants: &[Entrant<'_, T>]) -> Result<Vec<bool>, String> {
    let [ours, peers @ ..] = entrants else { return Ok(Vec::new()) };
    let mut expected = operands.unwritten();
    let pivots = ours.call.read(&mut expected)?;
    check::check(operands, &expected, &pivots).map_err(|error| format!("wrong result: {error}"))?;
    let mut result = operands.unwritten();
    let mut right = vec![true];
    for peer in peers {
        let outcome = peer.call.read(&mut result).and_then(|pivots| {
            check::check(operands, &result, &pivots)?;
            // If two candidates for a pivot have nearly equal magnitudes, rounding errors decide between them. Right factors may
            // therefore differ.
            if pivots.is_empty() { compare(operands.problem.terms(), ROUNDING, &expected, &result) } else { Ok(()) }
        });
        right.push(outcome.map_err(|error| leave_out::<T, ()>(operands, peer.call.name(), &error)).is_ok());
    }
    Ok(right)
}
