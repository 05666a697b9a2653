//! On which core a sleeping thread wakes up.
//!
//! Linux looks for an idle core, but skips cores whose virtual CPU is descheduled. It then queues the woken thread on its
//! waker's core, where it waits milliseconds for the load balancer. So the waker's core is removed from the sleeper's affinity
//! mask until the sleeper has done its job. The sleeper removes the core of its last waker itself, since a waker that
//! changes the masks of many sleepers delays the last of them; a waker on another core removes its own.

#[cfg(target_os = "linux")]
pub(super) use linux::{Placement, Waker};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{Placement, Waker};

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::OnceCell;
    use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// A thread that wakes others: its core, and its affinity mask, which is read when first needed.
    pub(crate) struct Waker {
        core: usize,
        mask: OnceCell<Option<CpuSet>>,
    }

    /// The cores of a thread that may sleep, or has just begun.
    #[derive(Debug, Default)]
    pub(crate) struct Placement {
        /// Id of the thread until its first job, and while it sleeps or is about to; else 0.
        sleeper: AtomicI32,
        /// One more than the core of the thread's last waker; 0 before the first job.
        last_waker: AtomicUsize,
        masks: Mutex<Option<Masks>>,
    }

    /// The affinity masks of a sleeper.
    #[derive(Debug, PartialEq)]
    struct Masks {
        /// To be restored after its job. If its waker has changed the masks, that is the waker's own.
        whole: CpuSet,
        /// Without the waker's core, until then.
        temporary: CpuSet,
    }

    impl Waker {
        /// The calling thread.
        pub fn current() -> Self {
            Waker { core: sched_getcpu(), mask: OnceCell::new() }
        }
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

        /// Called before the thread is woken.
        pub fn exclude_core_of(&self, waker: &Waker) {
            self.last_waker.store(waker.core + 1, Ordering::Relaxed);
            let Some(sleeper) = Pid::from_raw(self.sleeper.load(Ordering::Acquire)) else { return };
            if let Some(whole) = waker.mask.get_or_init(|| sched_getaffinity(None).ok()) {
                exclude(waker.core, sleeper, *whole, &mut self.masks());
            }
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
    /// Nothing is known of the thread.
    pub(crate) struct Waker;

    impl Waker {
        pub fn current() -> Self {
            Waker
        }
    }

    /// Does nothing: other systems have no affinity interface, or need none.
    #[derive(Debug, Default)]
    pub(crate) struct Placement;

    impl Placement {
        pub fn register(&self) {}
        pub fn is_known(&self) -> bool {
            true
        }
        pub fn exclude_core_of(&self, _: &Waker) {}
        pub fn awake(&self) {}
        pub fn restore(&self) {}
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    use super::{Placement, Waker};

    fn cores() -> CpuSet {
        sched_getaffinity(None).unwrap()
    }

    /// A mask without some core of the thread; the same if it has only one.
    fn reduced(before: &CpuSet) -> u32 {
        before.count().saturating_sub(1).max(1)
    }

    /// The thread wakes itself, so that it loses the core that it runs on until it restores its mask.
    #[test]
    fn a_sleeper_may_use_all_cores_but_its_wakers_until_it_restores_them() {
        let (placement, before) = (Placement::default(), cores());
        placement.exclude_core_of(&Waker::current());
        assert_eq!(cores(), before, "no thread sleeps");
        placement.awake();
        for _ in 0..2 {
            // the second time, it excludes the core of its last waker itself
            placement.register();
            placement.register();
            placement.exclude_core_of(&Waker::current());
            assert_eq!(cores().count(), reduced(&before));
            placement.awake();
            placement.restore();
            assert_eq!(cores(), before);
        }
    }

    #[test]
    fn a_sleeper_excludes_the_core_of_its_last_waker() {
        let (placement, before) = (Placement::default(), cores());
        placement.register();
        assert_eq!(cores(), before, "nobody has woken it");
        placement.awake();
        placement.exclude_core_of(&Waker::current());
        placement.register();
        assert_eq!(cores().count(), reduced(&before));
        placement.awake();
        placement.restore();
        assert_eq!(cores(), before);
    }

    /// What someone else has set meanwhile stays.
    #[test]
    fn another_mask_that_is_set_meanwhile_stays() {
        let (placement, before) = (Placement::default(), cores());
        placement.register();
        placement.exclude_core_of(&Waker::current());
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
