//! On which core a sleeping thread wakes up.
//!
//! Linux looks for an idle core, but skips cores whose virtual CPU is descheduled. It then queues the woken thread on its
//! waker's core, where it waits milliseconds for the load balancer. So the waker removes its own core from the sleeper's
//! affinity mask, until the sleeper has done its job.

#[cfg(target_os = "linux")]
pub(super) use linux::Placement;
#[cfg(not(target_os = "linux"))]
pub(super) use other::Placement;

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::atomic::{AtomicI32, Ordering};
    use std::sync::{Mutex, PoisonError};

    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// The cores of a thread that may sleep, or has just begun.
    #[derive(Debug, Default)]
    pub(crate) struct Placement {
        /// Id of the thread until its first job, and while it sleeps or is about to; else 0.
        sleeper: AtomicI32,
        /// The mask to restore after the thread's job, which is that of its waker, and the temporary mask without the waker's core.
        cores: Mutex<Option<[CpuSet; 2]>>,
    }

    impl Placement {
        /// Called by the thread when it begins, and before it sleeps.
        pub fn register(&self) {
            self.sleeper.store(gettid().as_raw_nonzero().get(), Ordering::Release);
        }

        /// Whether the thread has begun.
        pub fn is_known(&self) -> bool {
            self.sleeper.load(Ordering::Relaxed) != 0
        }

        /// Called before the thread is woken.
        pub fn exclude_own_core(&self) {
            let Some(sleeper) = Pid::from_raw(self.sleeper.load(Ordering::Acquire)) else { return };
            let Ok(cores) = sched_getaffinity(None) else { return };
            let mut others = cores;
            others.unset(sched_getcpu());
            if others.count() > 0 && sched_setaffinity(Some(sleeper), &others).is_ok() {
                *self.cores.lock().unwrap_or_else(PoisonError::into_inner) = Some([cores, others]);
            }
        }

        /// Called by the thread when it is awake.
        pub fn awake(&self) {
            self.sleeper.store(0, Ordering::Relaxed);
        }

        /// Called by the thread after its job.
        pub fn restore(&self) {
            let set = self.cores.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some([cores, others]) = set
                && sched_getaffinity(None).is_ok_and(|now| now == others)
            {
                // nobody else has set others since; a control group that has shrunk is respected by the system
                let _ = sched_setaffinity(None, &cores);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    /// Does nothing: other systems have no affinity interface, or need none.
    #[derive(Debug, Default)]
    pub(crate) struct Placement;

    impl Placement {
        pub fn register(&self) {}
        pub fn is_known(&self) -> bool {
            true
        }
        pub fn exclude_own_core(&self) {}
        pub fn awake(&self) {}
        pub fn restore(&self) {}
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::Placement;

    fn cores() -> CpuSet {
        sched_getaffinity(None).unwrap()
    }

    /// The thread wakes itself, so that it loses the core that it runs on until it restores its mask.
    #[test]
    fn a_sleeper_may_use_all_cores_but_its_wakers_until_it_restores_them() {
        let (placement, before) = (Placement::default(), cores());
        placement.exclude_own_core();
        assert_eq!(cores(), before, "no thread sleeps");
        placement.register();
        placement.exclude_own_core();
        assert_eq!(cores().count(), before.count().saturating_sub(1).max(1));
        placement.awake();
        placement.restore();
        assert_eq!(cores(), before);
    }

    /// What someone else has set meanwhile stays.
    #[test]
    fn another_mask_that_is_set_meanwhile_stays() {
        let (placement, before) = (Placement::default(), cores());
        placement.register();
        placement.exclude_own_core();
        let excluded = (0..CpuSet::MAX_CPU).find(|&core| before.is_set(core) && !cores().is_set(core));
        let Some(excluded) = excluded else { return };
        let mut set = CpuSet::new();
        set.set(excluded);
        sched_setaffinity(None, &set).unwrap();
        placement.awake();
        placement.restore();
        assert_eq!(cores(), set);
        sched_setaffinity(None, &before).unwrap();
    }
}
