//! Searches for the fastest kernels of a call, and compares the best of them with the kernel in use.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use lapidary::kernels::database::Kernel;
use lapidary_tune::{Journal, Known, Method, Progress as State, Search, run};

use super::goal::{Device, Goal, alone};
use super::message::Job;
use super::meter::{Meter, median};
use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::report::{fixed, seconds};

/// How candidates are searched.
pub struct Plan<'a> {
    /// Strategy of each search.
    pub method: Method,
    /// Seed of the strategy.
    pub seed: u64,
    /// Time of each search, in seconds.
    pub budget: f64,
    /// Folder of the journals.
    pub journals: PathBuf,
    /// Whether each candidate is checked with odd sizes and all transpositions.
    pub is_paranoid: bool,
    /// Whether the user has interrupted the program.
    pub interrupted: &'a AtomicBool,
}

/// A candidate with its time.
#[derive(Clone, Copy)]
pub struct Candidate {
    /// The kernel with its parameters.
    pub kernel: Kernel,
    /// Median time of a call, in seconds.
    pub seconds: f64,
}

/// Number of candidates of each search that are measured again at the end.
const FINALISTS: usize = 3;
/// Number of rounds in which the finalists are measured again.
const ROUNDS: usize = 5;

impl Plan<'_> {
    /// Searches the space of one kernel. The search continues the journal of an earlier one. Returns the fastest candidates.
    ///
    /// # Errors
    /// The journal cannot be read or written, or no candidate can be run.
    pub fn search(
        &self,
        goal: &Goal,
        device: &Device,
        used: Kernel,
        meter: &mut Meter,
        shown: &Shown<'_>,
    ) -> Result<Vec<Candidate>> {
        let (mut journal, known) = self.journal(goal, device, shown.progress)?;
        let first: Vec<usize> = goal.point_of(used).into_iter().collect();
        let mut search = Search::new(self.method.start(&goal.space, &first, self.seed));
        for (request, outcome) in known.iter().filter_map(|known| known.measurement(&goal.space)) {
            search.restore(request, outcome);
        }
        let start = Instant::now();
        // after an interruption the budget is spent
        let now = || if self.interrupted.load(Ordering::Relaxed) { f64::INFINITY } else { start.elapsed().as_secs_f64() };
        let measure = |request: lapidary_tune::Request| {
            let job = goal.job(request.point, request.runs);
            meter.measure(&mut journal, goal.space.point(request.point), &job, self.is_paranoid)
        };
        run(&mut search, self.budget, now, measure, |state| shown.show(goal, state))?;
        let mut estimates: Vec<_> = search.estimates().copied().collect();
        estimates.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let candidate = |point, seconds| Candidate { kernel: goal.kernel_at(point), seconds };
        Ok(estimates.into_iter().take(FINALISTS).map(|best| candidate(best.point, best.seconds)).collect())
    }

    fn journal(&self, goal: &Goal, device: &Device, progress: &Progress) -> Result<(Journal, Vec<Known>)> {
        let path = self.journals.join(journal_name(goal));
        std::fs::create_dir_all(&self.journals).map_err(|error| Failure::write(&self.journals, error))?;
        let (journal, known) = Journal::open(&path, &goal.header(device)).map_err(|error| Failure::file(&path, error))?;
        if let Some(old) = journal.set_aside() {
            progress.note(&format!("note: the journal of another driver or version is now {}", old.display()));
        }
        let is_culprit = |known: &&Known| known.result.as_ref().is_err_and(|reason| reason.contains("the process ended"));
        for Known { values, .. } in known.iter().filter(is_culprit) {
            let named = goal.space.axes().iter().zip(values).map(|(axis, value)| format!(" {}={value}", axis.name));
            progress.note(&format!("note: {}{} is skipped: it ended an earlier run", goal.kernel, named.collect::<String>()));
        }
        Ok((journal, known))
    }

    /// Measures the candidates again, in several rounds. Each round measures all candidates, in a random order. Returns the candidates from
    /// the fastest to the slowest, and without those that failed in a round.
    ///
    /// # Errors
    /// No worker process starts.
    pub fn compare(&self, goal: &Goal, candidates: Vec<Candidate>, meter: &mut Meter) -> Result<Vec<Candidate>> {
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); candidates.len()];
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        for _ in 0..ROUNDS {
            rng.shuffle(&mut order);
            for &at in &order {
                let job = Job { call: goal.call.clone(), entries: alone(candidates[at].kernel, goal.call.dtype()), runs: 1 };
                if let Ok(timing) = meter.run(&job)? {
                    times[at].push(timing.seconds);
                }
            }
        }
        let timed = candidates.into_iter().zip(times).filter(|(_, times)| times.len() == ROUNDS);
        let mut timed: Vec<Candidate> = timed.map(|(candidate, times)| Candidate { seconds: median(times), ..candidate }).collect();
        timed.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(timed)
    }
}

/// The file name of the journal of a search.
pub fn journal_name(goal: &Goal) -> String {
    let sizes = goal.call.sizes.map(|size| size.to_string()).join("x");
    format!("{}-{}-{}-{sizes}.journal", goal.call.routine, goal.kernel, goal.call.dtype())
}

/// Opens the journal of a search again, and returns the outcomes of the candidates of its space. Returns no outcomes if there is no journal, or if its
/// outcomes belong to another driver or to another version of the kernels.
///
/// # Errors
/// The journal cannot be read.
pub fn outcomes(journals: &Path, goal: &Goal, device: &Device) -> Result<Vec<Known>> {
    let path = journals.join(journal_name(goal));
    if !path.exists() {
        return Ok(Vec::new());
    }
    let opened = Journal::open(&path, &goal.header(device)).map_err(|error| Failure::file(&path, error))?;
    Ok(opened.1.into_iter().filter(|known| goal.space.find(&known.values).is_some()).collect())
}

/// The display of the progress of all searches.
pub struct Shown<'a> {
    /// The bar, whose steps are seconds.
    pub progress: &'a Progress,
    /// Seconds that the searches before this one took.
    pub before: f64,
    /// Number of floating-point operations of the call, if it has any.
    pub flops: Option<f64>,
}

impl Shown<'_> {
    fn show(&self, goal: &Goal, state: &State) {
        let best = state.best.map_or_else(
            || "no candidate runs yet".to_owned(),
            |best| format!("best {} {}", self.speed(best.seconds), goal.kernel_at(best.point)),
        );
        let tried = state.timed + state.failed;
        self.progress.advance(self.before + state.elapsed_seconds, &format!("{tried} of {} tried, {best}", goal.space.len()));
    }

    /// The speed of a call that takes `time` seconds, or the time if the call has no floating-point operations.
    pub fn speed(&self, time: f64) -> String {
        self.flops.map_or_else(|| seconds(time), |flops| format!("{} GFLOP/s", fixed(flops / time / 1e9, 1)))
    }
}
