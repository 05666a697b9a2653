//! Choice of the core on which a sleeping thread wakes up.
//!
//! Linux looks for an idle core for a woken thread, but skips cores whose virtual CPU is descheduled. If Linux finds no idle core,
//! it queues the woken thread on the waker's core, where the thread waits milliseconds for the load balancer. The waker's core is
//! removed from the sleeping thread's affinity mask until the thread has finished its job, so that Linux cannot queue the thread on
//! the waker's core. The thread itself removes the core of its last waker before it sleeps, because a waker that first changed the
//! masks of many threads would wake the last of these threads late. A waker that runs on another core than the last waker removes
//! its own core from the mask of the thread that it wakes.

#[cfg(target_os = "linux")]
pub(super) use linux::{Mask, Placement, own_core};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{Mask, Placement, own_core};

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// The affinity mask of a thread; `None` if the system does not report it.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Mask(Option<CpuSet>);

    /// Restricts the cores on which one thread of the team may wake up.
    #[derive(Debug, Default)]
    pub(crate) struct Placement {
        /// Id of the thread while other threads may change its affinity mask, else 0. The thread permits changes of its mask when
        /// it begins and before each sleep, and forbids them when it takes a job.
        sleeper: AtomicI32,
        /// Number of the core on which the thread's last waker ran, plus 1; 0 before the first job.
        last_waker: AtomicUsize,
        masks: Mutex<Option<Masks>>,
    }

    /// The two affinity masks of a sleeping thread.
    #[derive(Debug, PartialEq)]
    struct Masks {
        /// The affinity mask to restore after the job: the thread's own mask, or the mask of the job's caller if a waker has set
        /// both masks.
        whole: CpuSet,
        /// The affinity mask `whole` without the waker's core. The thread has this mask until it restores `whole`.
        temporary: CpuSet,
    }

    impl Mask {
        /// The affinity mask of the calling thread.
        pub fn own() -> Self {
            Mask(sched_getaffinity(None).ok())
        }
    }

    /// Number of the core on which the calling thread runs.
    pub fn own_core() -> usize {
        sched_getcpu()
    }

    impl Placement {
        fn masks(&self) -> MutexGuard<'_, Option<Masks>> {
            self.masks.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Permits other threads to change this thread's affinity mask. The thread calls `register` when it begins and before each
        /// sleep.
        pub fn register(&self) {
            let (own, last_waker) = (gettid(), self.last_waker.load(Ordering::Relaxed));
            let mut masks = self.masks();
            if masks.is_none()
                && last_waker > 0
                && let Ok(whole) = sched_getaffinity(None)
            {
                exclude(last_waker - 1, own, whole, &mut masks);
            }
            self.sleeper.store(own.as_raw_nonzero().get(), Ordering::Release);
        }

        /// Whether the thread has begun and registered.
        pub fn is_known(&self) -> bool {
            self.sleeper.load(Ordering::Relaxed) != 0
        }

        /// Removes `core`, the core of the waker, from the affinity mask of the sleeping thread. The waker calls this function
        /// before it wakes the thread. `callers` is the affinity mask of the job's caller, which is passed because the waker's own
        /// mask may be temporary.
        pub fn exclude(&self, core: usize, callers: &Mask) {
            self.last_waker.store(core + 1, Ordering::Relaxed);
            let Some(sleeper) = Pid::from_raw(self.sleeper.load(Ordering::Acquire)) else { return };
            if let Some(whole) = callers.0 {
                exclude(core, sleeper, whole, &mut self.masks());
            }
        }

        /// The affinity mask that `restore` sets; `None` if the mask of the thread was not changed.
        #[cfg(test)]
        pub fn whole(&self) -> Option<CpuSet> {
            self.masks().as_ref().map(|masks| masks.whole)
        }

        /// Forbids other threads to change this thread's affinity mask. The thread calls `awake` after it has woken up.
        pub fn awake(&self) {
            self.sleeper.store(0, Ordering::Relaxed);
        }

        /// Restores the affinity mask of the calling thread after its job.
        pub fn restore(&self) {
            let masks = self.masks().take();
            if let Some(Masks { whole, temporary }) = masks
                && sched_getaffinity(None).is_ok_and(|now| now == temporary)
            {
                // no other code has changed the affinity mask; if the control group of the process has lost cores, the system
                // removes them from `whole`
                let _ = sched_setaffinity(None, &whole);
            }
        }
    }

    /// Removes a core from the affinity mask of a thread, unless the core is removed already or is the only core.
    fn exclude(core: usize, thread: Pid, whole: CpuSet, masks: &mut Option<Masks>) {
        let mut temporary = whole;
        temporary.unset(core);
        let wanted = Some(Masks { whole, temporary });
        if *masks != wanted && temporary.count() > 0 && sched_setaffinity(Some(thread), &temporary).is_ok() {
            *masks = wanted;
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    /// Replaces the affinity mask, which Lapidary does not query on systems other than Linux.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Mask;

    impl Mask {
        pub fn own() -> Self {
            Mask
        }
    }

    /// Replaces the number of the calling thread's core, which Lapidary does not query on systems other than Linux.
    pub fn own_core() -> usize {
        0
    }

    /// Does nothing, because systems other than Linux have no interface for affinity masks or need no restriction.
    #[derive(Debug, Default)]
    pub(crate) struct Placement;

    impl Placement {
        pub fn register(&self) {}
        pub fn is_known(&self) -> bool {
            true
        }
        pub fn exclude(&self, _: usize, _: &Mask) {}
        pub fn awake(&self) {}
        pub fn restore(&self) {}
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::{Mask, Placement, own_core};

    fn cores() -> CpuSet {
        sched_getaffinity(None).unwrap()
    }

    /// Number of cores after one core is removed from a mask, but at least 1.
    fn reduced(before: &CpuSet) -> u32 {
        before.count().saturating_sub(1).max(1)
    }

    /// One thread acts as the sleeper, as its waker, and as the caller of the job.
    #[test]
    fn a_sleeper_may_use_all_cores_but_its_wakers_until_it_restores_them() {
        let (placement, before, mask, core) = (Placement::default(), cores(), Mask::own(), own_core());
        placement.exclude(core, &mask);
        assert_eq!(cores(), before, "no thread sleeps");
        placement.awake();
        for _ in 0..2 {
            // the thread itself excludes the core of its last waker
            placement.register();
            assert_eq!((cores().count(), cores().is_set(core)), (reduced(&before), before.count() == 1));
            placement.register();
            // a waker that runs on another core than the last waker excludes its own core
            let other = (0..CpuSet::MAX_CPU).rfind(|&core| before.is_set(core)).unwrap();
            placement.exclude(other, &mask);
            // the mask to be restored is the caller's mask, not the temporary mask of the waker
            assert_eq!(placement.whole(), (before.count() > 1).then_some(before));
            assert_eq!((cores().count(), cores().is_set(other)), (reduced(&before), before.count() == 1));
            placement.exclude(core, &mask);
            placement.awake();
            placement.restore();
            assert_eq!(cores(), before);
        }
    }

    #[test]
    fn a_new_thread_has_no_last_waker() {
        let (placement, before) = (Placement::default(), cores());
        placement.register();
        assert_eq!(cores(), before);
    }

    /// An affinity mask that other code sets during the job is not overwritten when the job ends.
    #[test]
    fn another_mask_that_is_set_meanwhile_stays() {
        let (placement, before) = (Placement::default(), cores());
        placement.register();
        placement.exclude(own_core(), &Mask::own());
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
