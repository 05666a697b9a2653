//! Searches for the fastest kernels of a call, and compares the best of them with the kernel in use.

use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use lapidary::kernels::database::Kernel;
use lapidary_tune::{Header, Journal, Known, Method, Outcome, Progress as State, Search, run};

use super::goal::{Device, Goal, alone};
use super::message::Job;
use super::meter::Meter;
use crate::bench::measure::median;
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

    /// Opens the journal of a search again, and returns the outcomes of the candidates of its space. Returns no outcomes if there
    /// is no journal, or if its outcomes belong to another driver or to another version of the kernels.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn outcomes(&self, goal: &Goal, device: &Device) -> Result<Vec<Known>> {
        let path = self.journals.join(journal_name(goal, self.is_paranoid));
        if !path.exists() {
            return Ok(Vec::new());
        }
        let opened = open(&path, &self.header(goal, device))?;
        Ok(opened.1.into_iter().filter(|known| goal.space.find(&known.values).is_some()).collect())
    }

    fn journal(&self, goal: &Goal, device: &Device, progress: &Progress) -> Result<(Journal, Vec<Known>)> {
        let path = self.journals.join(journal_name(goal, self.is_paranoid));
        std::fs::create_dir_all(&self.journals).map_err(|error| Failure::write(&self.journals, error))?;
        let (journal, known) = open(&path, &self.header(goal, device))?;
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

    /// Returns the identity of a search. A journal of candidates whose edges were not checked is of no use with `--paranoid`.
    fn header(&self, goal: &Goal, device: &Device) -> Header {
        let header = goal.header(device);
        if self.is_paranoid { Header { family: format!("{} with checked edges", header.family), ..header } } else { header }
    }

    /// Measures the candidates again, in several rounds. Each round measures all candidates, in a random order. Returns the candidates from
    /// the fastest to the slowest, and without those that failed in a round. A journal keeps the rounds until the comparison is complete, so
    /// that an interrupted comparison is continued by the next run.
    ///
    /// # Errors
    /// The journal cannot be read or written, or no worker process starts.
    pub fn compare(&self, goal: &Goal, device: &Device, candidates: Vec<Candidate>, meter: &mut Meter) -> Result<Vec<Candidate>> {
        let path = self.journals.join(journal_name(goal, self.is_paranoid)).with_extension("rounds");
        let names: Vec<String> = candidates.iter().map(|candidate| candidate.kernel.to_string()).collect();
        let axes = ["candidate", "round"].map(str::to_owned).to_vec();
        let header = self.header(goal, device);
        let header = Header { family: format!("{}: {}", header.family, names.join("; ")), axes, ..header };
        std::fs::create_dir_all(&self.journals).map_err(|error| Failure::write(&self.journals, error))?;
        let (mut journal, known) = open(&path, &header)?;
        // rounds of other candidates cannot be continued
        journal.set_aside().map_or(Ok(()), std::fs::remove_file).map_err(|error| Failure::write(&path, error))?;
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); candidates.len()];
        let mut rng = fastrand::Rng::with_seed(self.seed);
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        for round in 0..ROUNDS {
            rng.shuffle(&mut order);
            for &at in &order {
                let values = [at, round];
                let outcome = match known.iter().find(|known| known.values == values) {
                    Some(known) => known.result.as_ref().map_or(Outcome::Failed, |timing| Outcome::Seconds(timing.seconds)),
                    None => {
                        let entries = alone(candidates[at].kernel, goal.call.dtype());
                        meter.measure(&mut journal, &values, &Job { call: goal.call.clone(), entries, runs: 1 }, false)?
                    }
                };
                if let Outcome::Seconds(seconds) = outcome {
                    times[at].push(seconds);
                }
            }
        }
        drop(journal);
        std::fs::remove_file(&path).map_err(|error| Failure::write(&path, error))?;
        let timed = candidates.into_iter().zip(times).filter(|(_, times)| times.len() == ROUNDS);
        let mut timed: Vec<Candidate> = timed.map(|(candidate, times)| Candidate { seconds: median(times), ..candidate }).collect();
        timed.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(timed)
    }
}

/// Opens a journal, or begins a new one.
///
/// # Errors
/// Another process writes to the journal, or the file cannot be read or written.
fn open(path: &Path, header: &Header) -> Result<(Journal, Vec<Known>)> {
    Journal::open(path, header).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => Failure::file(path, error),
        _ => Failure::write(path, error),
    })
}

/// The file name of the journal of a search. Searches that check the edges of each candidate have journals of their own.
fn journal_name(goal: &Goal, is_paranoid: bool) -> String {
    let sizes = goal.call.sizes.map(|size| size.to_string()).join("x");
    let paranoid = if is_paranoid { "-paranoid" } else { "" };
    format!("{}-{}-{}-{sizes}{paranoid}.journal", goal.call.task, goal.kernel, goal.call.dtype())
}

/// Holds the lock of a folder of journals, so that two runs of the program do not search at the same time.
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of a folder of journals, which is made if there is none.
    ///
    /// # Errors
    /// Another run holds the lock, or its file cannot be made.
    pub fn take(journals: &Path) -> Result<Self> {
        std::fs::create_dir_all(journals).map_err(|error| Failure::write(journals, error))?;
        let path = journals.join("lock");
        let file = File::create(&path).map_err(|error| Failure::write(&path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock { _file: file }),
            // some file systems have no locks
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(Lock { _file: file }),
            Err(TryLockError::Error(error)) => Err(Failure::file(&path, error)),
            Err(TryLockError::WouldBlock) => Err(Failure::usage(format!(
                "another run of `lapidary tune` for the same device and routine writes its results to {}: wait until it has ended, or name another folder with --db",
                journals.display()
            ))),
        }
    }
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
