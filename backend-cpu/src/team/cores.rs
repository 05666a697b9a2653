//! Number of cores that the process may use. The hardware threads of one core count as one core, because two of them compute hardly
//! faster than one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

/// Number of cores that the affinity mask and the control group of the calling thread allow at present. Linux reports which
/// hardware threads share a core. On other systems, each hardware thread counts as a core.
pub(crate) fn cores() -> usize {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    allowed().map_or(threads, |cores| threads.min(cores)).max(1)
}

/// The result of [`cores`], cached for a tenth of a second and shared by all threads, because [`cores`] takes tens of microseconds.
pub(super) fn recent_cores() -> usize {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    /// Upper 32 bits: the time of the last query of the cores, in tenths of a second since `BEGIN`, counted from 1. Lower 32 bits:
    /// the number of cores that this query returned.
    static ANSWER: AtomicU64 = AtomicU64::new(0);
    let now = BEGIN.get_or_init(Instant::now).elapsed().as_millis() as u64 / 100 + 1;
    let answer = ANSWER.load(Ordering::Relaxed);
    if answer >> 32 == now & 0xffff_ffff {
        return (answer & 0xffff_ffff) as usize;
    }
    let cores = cores();
    ANSWER.store(now << 32 | cores as u64, Ordering::Relaxed);
    cores
}

/// Number of cores in the affinity mask of the calling thread.
#[cfg(target_os = "linux")]
fn allowed() -> Option<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    /// For each hardware thread, the first hardware thread of its core, or the thread itself if the system does not report its
    /// core.
    static FIRST: OnceLock<Vec<usize>> = OnceLock::new();
    let first_of_core = |cpu: usize| {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        std::fs::read_to_string(file).ok().and_then(|list| first(&list)).unwrap_or(cpu)
    };
    let first = FIRST.get_or_init(|| (0..CpuSet::MAX_CPU.min(known_threads())).map(first_of_core).collect());
    let mask = sched_getaffinity(None).ok()?;
    Some(distinct((0..CpuSet::MAX_CPU).filter(|&cpu| mask.is_set(cpu)), first))
}

#[cfg(not(target_os = "linux"))]
fn allowed() -> Option<usize> {
    None
}

/// One more than the highest number of a hardware thread; 0 if the system does not report the numbers of hardware threads.
#[cfg(target_os = "linux")]
fn known_threads() -> usize {
    let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
    possible.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok()).map_or(0, |last| last + 1)
}

/// The first number in a list such as `0,64` or `0-1`.
#[cfg(target_os = "linux")]
fn first(list: &str) -> Option<usize> {
    list.trim().split([',', '-']).next()?.parse().ok()
}

/// Number of different cores to which `threads` belong. `first[i]` is the first hardware thread of the core to which hardware
/// thread `i` belongs.
#[cfg(target_os = "linux")]
fn distinct(threads: impl Iterator<Item = usize>, first: &[usize]) -> usize {
    let mut cores: Vec<usize> = threads.map(|thread| first.get(thread).copied().unwrap_or(thread)).collect();
    cores.sort_unstable();
    cores.dedup();
    cores.len()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_core_count_once() {
        assert_eq!(["0,64\n", "3-5\n", "7\n", "", "x"].map(first), [Some(0), Some(3), Some(7), None, None]);
        let pairs = [0, 1, 2, 3, 0, 1, 2, 3];
        for (threads, cores) in [(0..8, 4), (0..4, 4), (2..6, 4), (4..5, 1), (6..10, 4), (0..0, 0)] {
            assert_eq!(distinct(threads.clone(), &pairs), cores, "{threads:?}");
        }
    }

    #[test]
    fn recent_cores_are_cores() {
        let threads = thread::available_parallelism().unwrap().get();
        assert!((1..=threads).contains(&recent_cores()));
    }

    #[test]
    fn a_thread_of_one_hardware_thread_has_one_core() {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
        thread::spawn(|| {
            let mask = sched_getaffinity(None).unwrap();
            let mut one = CpuSet::new();
            one.set((0..CpuSet::MAX_CPU).find(|&cpu| mask.is_set(cpu)).unwrap());
            sched_setaffinity(None, &one).unwrap();
            assert_eq!((allowed(), cores()), (Some(1), 1));
        })
        .join()
        .unwrap();
    }
}
