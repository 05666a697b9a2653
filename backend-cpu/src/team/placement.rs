//! On which core a sleeping thread wakes up.
//!
//! Linux looks for an idle core, but skips cores whose virtual CPU is descheduled. It then queues the woken thread on its
//! waker's core, where it waits milliseconds for the load balancer. So the waker's core is removed from the sleeper's affinity
//! mask until the sleeper has done its job. The sleeper itself removes the core of its last waker: if the waker changed
//! the masks of many sleepers, the last of them would start late. A waker that runs on another core removes that core.

#[cfg(target_os = "linux")]
pub(super) use linux::{Mask, Placement, own_core};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{Mask, Placement, own_core};

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// The affinity mask of a thread; `None` if the system does not tell.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Mask(Option<CpuSet>);

    /// The cores on which a thread of the team may wake up: a thread that may sleep, or has just started.
    #[derive(Debug, Default)]
    pub(crate) struct Placement {
        /// Id of the thread while others may change its mask: from its start, or from just before it sleeps, until it takes a
        /// job. Else 0.
        sleeper: AtomicI32,
        /// The core on which the thread's last waker ran, plus 1; 0 before the first job.
        last_waker: AtomicUsize,
        masks: Mutex<Option<Masks>>,
    }

    /// The affinity masks of a sleeper.
    #[derive(Debug, PartialEq)]
    struct Masks {
        /// To be restored after its job: its own, or that of the job's caller if a waker has set the masks.
        whole: CpuSet,
        /// Without the waker's core, until then.
        temporary: CpuSet,
    }

    impl Mask {
        /// The mask of the calling thread.
        pub fn own() -> Self {
            Mask(sched_getaffinity(None).ok())
        }
    }

    /// The core on which the calling thread runs.
    pub fn own_core() -> usize {
        sched_getcpu()
    }

    impl Placement {
        fn masks(&self) -> MutexGuard<'_, Option<Masks>> {
            self.masks.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Called by the thread when it begins, and before it sleeps.
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

        /// Whether the thread has begun.
        pub fn is_known(&self) -> bool {
            self.sleeper.load(Ordering::Relaxed) != 0
        }

        /// Called before the thread is woken, with the core of its waker and the mask of the job's caller. That of the waker may be
        /// a temporary one.
        pub fn exclude(&self, core: usize, callers: &Mask) {
            self.last_waker.store(core + 1, Ordering::Relaxed);
            let Some(sleeper) = Pid::from_raw(self.sleeper.load(Ordering::Acquire)) else { return };
            if let Some(whole) = callers.0 {
                exclude(core, sleeper, whole, &mut self.masks());
            }
        }

        /// The mask to be restored, if it was changed.
        #[cfg(test)]
        pub fn whole(&self) -> Option<CpuSet> {
            self.masks().as_ref().map(|masks| masks.whole)
        }

        /// Called by the thread when it is awake.
        pub fn awake(&self) {
            self.sleeper.store(0, Ordering::Relaxed);
        }

        /// Called by the thread after its job.
        pub fn restore(&self) {
            let masks = self.masks().take();
            if let Some(Masks { whole, temporary }) = masks
                && sched_getaffinity(None).is_ok_and(|now| now == temporary)
            {
                // nobody else has set others since; a control group that has shrunk is respected by the system
                let _ = sched_setaffinity(None, &whole);
            }
        }
    }

    /// Removes a core from the mask of a thread, unless that is done.
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
    /// An affinity mask, of which other systems tell nothing.
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Mask;

    impl Mask {
        pub fn own() -> Self {
            Mask
        }
    }

    /// The core on which the calling thread runs, of which other systems tell nothing.
    pub fn own_core() -> usize {
        0
    }

    /// Does nothing: other systems have no affinity interface, or need none.
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

    /// As many cores as are left without one, but one at least.
    fn reduced(before: &CpuSet) -> u32 {
        before.count().saturating_sub(1).max(1)
    }

    /// One thread plays all parts: the sleeper, its waker, and the caller of the job.
    #[test]
    fn a_sleeper_may_use_all_cores_but_its_wakers_until_it_restores_them() {
        let (placement, before, mask, core) = (Placement::default(), cores(), Mask::own(), own_core());
        placement.exclude(core, &mask);
        assert_eq!(cores(), before, "no thread sleeps");
        placement.awake();
        for _ in 0..2 {
            // it excludes the core of its last waker itself
            placement.register();
            assert_eq!((cores().count(), cores().is_set(core)), (reduced(&before), before.count() == 1));
            placement.register();
            // now those of others
            let other = (0..CpuSet::MAX_CPU).rfind(|&core| before.is_set(core)).unwrap();
            placement.exclude(other, &mask);
            // the caller's mask counts, not the temporary one of the waker
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

    /// What someone else has set meanwhile stays.
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
