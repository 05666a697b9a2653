//! Waits until nobody works.

use std::time::Duration;

/// One look at the threads.
const WINDOW: Duration = Duration::from_millis(3);
/// Processor time within a window that counts as rest.
const IDLE: Duration = Duration::from_micros(150);
/// Windows after which we go on regardless.
const MOST: usize = 200;

/// Sleeps until the threads of this process use no processor time; tells
/// whether they came to rest. Where their times cannot be read, 50 ms.
pub fn rest() -> bool {
    let Some(mut before) = processor_time() else {
        std::thread::sleep(Duration::from_millis(50));
        return true;
    };
    for _ in 0..MOST {
        std::thread::sleep(WINDOW);
        let now = processor_time().unwrap_or(before);
        if now.saturating_sub(before) < IDLE {
            return true;
        }
        before = now;
    }
    false
}

/// The processor time of all threads of this process (Linux).
fn processor_time() -> Option<Duration> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    let time = |thread: std::fs::DirEntry| -> Option<u64> {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    Some(Duration::from_nanos(threads.flatten().filter_map(time).sum()))
}
