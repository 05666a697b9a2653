//! A cache of schedules, so that a repeated call is not planned again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lapidary_core::algorithms::Problem;
use lapidary_core::{Reach, Resources, Result, Schedule};

/// Maximum number of cached schedules.
const KEPT: usize = 16;

/// Maximum number of commands of a cached schedule. A schedule with this number of commands takes some hundred kilobytes.
const MAX_COMMANDS: usize = 2048;

#[derive(Debug)]
struct Kept {
    problem: Problem,
    resources: Resources,
    schedule: Arc<Schedule>,
}

/// Schedules of the latest calls, in order from the most recently used to the least recently used.
#[derive(Debug, Default)]
pub(crate) struct Schedules(Mutex<VecDeque<Kept>>);

impl Schedules {
    /// Returns the schedule of `problem` for the given resources and for the given access of each device to the matrices
    /// (`reaches`). If no such schedule is cached, the function `schedule` makes one.
    ///
    /// # Errors
    /// The function returns the error of `schedule`, if `schedule` fails.
    pub fn get(
        &self,
        problem: &Problem,
        resources: &Resources,
        reaches: Vec<Reach>,
        schedule: impl FnOnce(Vec<Reach>) -> Result<Schedule>,
    ) -> Result<Arc<Schedule>> {
        let is_same =
            |kept: &Kept| kept.problem == *problem && kept.resources == *resources && kept.schedule.reach() == &reaches[..];
        // A problem with α or β NaN is not equal to itself, so a cached schedule would never be found.
        #[allow(clippy::eq_op, reason = "NaN is not equal to itself")]
        let is_found_again = *problem == *problem;
        let mut all = self.all();
        if let Some(kept) = all.iter().position(is_same).and_then(|at| all.remove(at)) {
            let schedule = Arc::clone(&kept.schedule);
            all.push_front(kept);
            return Ok(schedule);
        }
        drop(all);
        let schedule = Arc::new(schedule(reaches)?);
        if is_found_again && schedule.plan().commands().len() <= MAX_COMMANDS {
            let mut all = self.all();
            all.push_front(Kept { problem: *problem, resources: resources.clone(), schedule: Arc::clone(&schedule) });
            all.truncate(KEPT);
        }
        Ok(schedule)
    }

    /// Returns the number of cached schedules.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.all().len()
    }

    fn all(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use lapidary_core::algorithms::laswp;
    use lapidary_core::{DType, Side};

    use super::*;

    /// A problem that exchanges rows of a matrix with `n` columns.
    fn exchanges(n: usize) -> Problem {
        Problem::Laswp(laswp::Problem { m: 8, n, pivots: 8, side: Side::Left, forward: true, dtype: DType::F64 })
    }

    fn get(schedules: &Schedules, n: usize, flops: f64) -> Arc<Schedule> {
        get_within(schedules, n, flops, 1 << 20)
    }

    fn get_within(schedules: &Schedules, n: usize, flops: f64, limit: usize) -> Arc<Schedule> {
        let reaches = vec![Reach { memory: 1 << 20, in_place: vec![false; 2], flops, queues: 1 }];
        let resources = Resources::alike(1, Some(limit), 8);
        let made = |reaches| Ok(Schedule::new(exchanges(n).plan(&resources).unwrap(), reaches).unwrap());
        schedules.get(&exchanges(n), &resources, reaches, made).unwrap()
    }

    #[test]
    fn the_same_call_has_the_same_schedule_and_others_have_their_own() {
        let schedules = Schedules::default();
        let first = get(&schedules, 10, 1.0);
        assert!(Arc::ptr_eq(&first, &get(&schedules, 10, 1.0)));
        assert!(!Arc::ptr_eq(&first, &get(&schedules, 11, 1.0)), "another problem");
        assert!(!Arc::ptr_eq(&first, &get(&schedules, 10, 2.0)), "other devices");
        assert!(!Arc::ptr_eq(&first, &get_within(&schedules, 10, 1.0, 1 << 19)), "less room for copies");
        assert_eq!(first.plan().matrices()[0].cols, 10);
    }

    #[test]
    fn the_latest_few_are_kept() {
        let schedules = Schedules::default();
        let first = get(&schedules, 1, 1.0);
        for n in 2..=KEPT {
            get(&schedules, n, 1.0);
        }
        assert!(Arc::ptr_eq(&first, &get(&schedules, 1, 1.0)), "used last, it is the last to go");
        (100..100 + KEPT).for_each(|n| drop(get(&schedules, n, 1.0)));
        assert_eq!(schedules.all().len(), KEPT);
        assert!(!Arc::ptr_eq(&first, &get(&schedules, 1, 1.0)));
    }
}
