//! How much host memory there is, so that a program refuses work for which it would be killed.

use std::path::Path;

use sysinfo::System;

use crate::groups;

/// Host memory that this process can have, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Without pushing others out: cached files give way, programs stay where they are.
    pub free: u64,
    /// All that can be had. On Linux this counts swap space besides; elsewhere it is all the memory
    /// of the machine, since those systems make room in ways that they do not tell beforehand.
    pub most: u64,
}

impl Left {
    /// The lesser of two bounds.
    #[must_use]
    pub fn min(self, other: Left) -> Left {
        Left { free: self.free.min(other.free), most: self.most.min(other.most) }
    }
}

/// What the machine, the control groups of this process (version 1 or 2, and those around
/// them) and the limit on its address space leave. None where the system does not tell.
#[must_use]
pub fn left() -> Option<Left> {
    let mut system = System::new();
    system.refresh_memory();
    // a system that does not tell says 0
    let (total, free) = (system.total_memory(), system.available_memory());
    if total == 0 || free == 0 {
        return None;
    }
    let swap = system.free_swap();
    let most = if cfg!(target_os = "linux") { free.saturating_add(swap) } else { total };
    let address_space = address_space().map(|bytes| Left { free: bytes, most: bytes });
    let bounds = [groups::left(Path::new("/"), swap), address_space];
    Some(bounds.into_iter().flatten().fold(Left { free, most }, Left::min))
}

/// What the limit on the address space (`ulimit -v`) leaves, if there is one.
#[cfg(target_os = "linux")]
fn address_space() -> Option<u64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(pages * rustix::param::page_size() as u64))
}

#[cfg(not(target_os = "linux"))]
fn address_space() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::{Left, left};

    #[test]
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    fn these_systems_tell_what_is_left() {
        let Left { free, most } = left().unwrap();
        assert!(free > 1 << 20 && most >= free, "{free} {most}");
    }

    #[test]
    fn each_bound_counts() {
        let (a, b) = (Left { free: 1, most: 5 }, Left { free: 2, most: 4 });
        assert_eq!((a.min(b), b.min(a)), (Left { free: 1, most: 4 }, Left { free: 1, most: 4 }));
    }
}
