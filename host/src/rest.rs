//! Waits until the threads of this process use no processor time.

use std::time::Duration;

/// Time between two readings of the processor time. `WINDOW` is longer than the interval between two ticks of the Linux kernel,
/// which may be 10 ms, because Linux adds the processor time of a thread on another processor only at ticks.
const WINDOW: Duration = Duration::from_millis(12);
/// Maximum processor time that the threads of an idle process use within one `WINDOW`.
const IDLE: Duration = Duration::from_micros(150);
/// Maximum number of windows that [`rest`] waits before it returns false.
const MAX_ROUNDS: usize = 50;
/// How long [`rest`] sleeps on a system that does not report the processor time.
const BLIND: Duration = Duration::from_millis(50);

/// Sleeps until the threads of this process use no processor time. Returns whether the threads came to rest within 0.6 seconds.
/// After a call, the threads of a BLAS poll for work for tens of milliseconds, and would take processors from the next
/// measurement.
#[must_use]
pub fn rest() -> bool {
    rests(processor_time, std::thread::sleep)
}

/// Waits as [`rest`] does, with any clock and any function that sleeps.
fn rests(clock: impl Fn() -> Option<Duration>, sleep: impl Fn(Duration)) -> bool {
    let Some(mut before) = clock() else {
        sleep(BLIND);
        return true;
    };
    for _ in 0..MAX_ROUNDS {
        sleep(WINDOW);
        let now = clock().unwrap_or(before);
        if now.saturating_sub(before) < IDLE {
            return true;
        }
        before = now;
    }
    false
}

/// Returns the processor time of all threads of this process.
#[cfg(unix)]
fn processor_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).ok()
}

#[cfg(not(unix))]
fn processor_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::{BLIND, IDLE, MAX_ROUNDS, WINDOW, processor_time, rests};

    /// Returns the result of [`rests`] and the time that it sleeps, for threads that work during `busy` windows.
    fn waited(busy: usize) -> (bool, Duration) {
        let (looks, slept) = (Cell::new(0), Cell::new(Duration::ZERO));
        let clock = || {
            let look = looks.replace(looks.get() + 1);
            Some(WINDOW * u32::try_from(look.min(busy)).unwrap())
        };
        (rests(clock, |time| slept.set(slept.get() + time)), slept.get())
    }

    #[test]
    fn we_wait_as_long_as_threads_work_and_not_for_ever() {
        assert_eq!(waited(0), (true, WINDOW));
        assert_eq!(waited(20), (true, 21 * WINDOW));
        assert_eq!(waited(MAX_ROUNDS + 1), (false, WINDOW * u32::try_from(MAX_ROUNDS).unwrap()));
    }

    #[test]
    fn without_a_clock_we_wait_blindly() {
        let slept = Cell::new(Duration::ZERO);
        assert!(rests(|| None, |time| slept.set(time)));
        assert_eq!(slept.get(), BLIND);
    }

    #[test]
    #[cfg(unix)]
    fn the_clock_counts_other_threads_and_no_sleep() {
        let before = processor_time().unwrap();
        let work = std::thread::spawn(move || {
            while processor_time().unwrap() < before + 100 * IDLE {
                std::hint::spin_loop();
            }
        });
        work.join().unwrap();
        assert!(processor_time().unwrap() >= before + 100 * IDLE);
    }
}
