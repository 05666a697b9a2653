//! Shows the progress of long work: a bar if standard error is a terminal, else plain lines.
//!
//! Progress goes to standard error, so that results on standard output can be piped.

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle, WeakProgressBar};

use crate::report::{note, out};

/// A progress display, which counts the completed steps. The bar shows the share of the steps that are completed, which may differ
/// from the share of the time that has passed.
pub struct Progress {
    bar: Option<ProgressBar>,
    /// Whether a display without a bar prints lines.
    prints: bool,
    ticker: Option<Ticker>,
}

/// The bar of the latest display.
static BAR: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

fn latest_bar() -> MutexGuard<'static, Option<WeakProgressBar>> {
    BAR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the bar of the latest display from the terminal, when the program ends before the display is dropped.
pub fn clear() {
    if let Some(bar) = latest_bar().as_ref().and_then(WeakProgressBar::upgrade) {
        bar.finish_and_clear();
    }
}

/// Longest time between two lines of a display without a bar.
const TICK: Duration = Duration::from_secs(10);

/// A thread that prints what is under way, so that a long step without a terminal is not silent.
struct Ticker {
    states: Sender<String>,
    thread: JoinHandle<()>,
}

impl Ticker {
    /// Starts the thread, which calls `print` with the latest state whenever the time `tick` has passed.
    fn start(tick: Duration, print: impl Fn(&str) + Send + 'static) -> Self {
        let (states, received) = channel();
        Ticker { states, thread: std::thread::spawn(move || Self::run(tick, &received, print)) }
    }

    fn run(tick: Duration, received: &Receiver<String>, print: impl Fn(&str)) {
        let (mut state, mut due) = (String::new(), Instant::now() + tick);
        loop {
            match received.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(next) => state = next,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    if !state.is_empty() {
                        print(&state);
                    }
                    due = Instant::now() + tick;
                }
            }
        }
    }
}

impl Progress {
    /// Starts a display of `steps` steps.
    pub fn new(steps: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| ProgressBar::new(steps as u64));
        if let Some(bar) = &bar {
            let style = ProgressStyle::with_template("{bar:24} {pos}/{len} {elapsed} {msg}");
            bar.set_style(style.expect("the template is right"));
            bar.enable_steady_tick(Duration::from_millis(200));
            *latest_bar() = Some(bar.downgrade());
        }
        Progress { bar, prints: true, ticker: None }
    }

    /// A display that shows nothing, for work inside one step of another display.
    pub fn silent() -> Self {
        Progress { bar: None, prints: false, ticker: None }
    }

    /// Makes a display without a bar print a line about what is under way every ten seconds.
    pub fn ticking(mut self) -> Self {
        self.ticker = self.bar.is_none().then(|| Ticker::start(TICK, |state| note(&format!("… {state}"))));
        self
    }

    fn tell(&self, state: &str) {
        if let Some(ticker) = &self.ticker {
            // the thread lives as long as the display
            let _ = ticker.states.send(state.to_owned());
        }
    }

    /// Shows the name of the step that begins.
    pub fn begin(&self, what: &str) {
        self.tell(what);
        match &self.bar {
            Some(bar) => bar.set_message(what.to_owned()),
            None if self.prints => note(&format!("{what} …")),
            None => {}
        }
    }

    /// Shows that all steps before `step` are complete, and what is under way. A display without a bar prints this only at
    /// the next tick ([`ticking`](Self::ticking)).
    pub fn advance(&self, step: f64, what: &str) {
        self.tell(what);
        // after an interruption, the time of a search is infinite
        if let Some(bar) = self.bar.as_ref().filter(|_| step.is_finite()) {
            bar.set_position(step as u64);
            bar.set_message(what.to_owned());
        }
    }

    /// Shows what is under way in the present step. A display without a bar prints this only at the next tick
    /// ([`ticking`](Self::ticking)).
    pub fn state(&self, what: &str) {
        self.tell(what);
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
        }
    }

    /// Counts a completed step.
    pub fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Prints a line to standard error without disturbing the bar.
    pub fn note(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| note(line)),
            None => note(line),
        }
    }

    /// Prints a line of results to standard output without disturbing the bar.
    pub fn println(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| out(line)),
            None => out(line),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if let Some(Ticker { states, thread }) = self.ticker.take() {
            drop(states);
            // a panic of the thread was printed
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticker_prints_the_latest_state_again_and_again_until_it_is_dropped() {
        let (lines, printed) = channel();
        let ticker = Ticker::start(Duration::from_millis(20), move |state| lines.send(state.to_owned()).unwrap());
        ["first", "second"].iter().for_each(|state| ticker.states.send((*state).to_owned()).unwrap());
        let wait = || printed.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!([wait(), wait()], ["second", "second"]);
        drop(ticker.states);
        ticker.thread.join().unwrap();
        assert!(printed.try_iter().all(|line| line == "second"));
    }
}
