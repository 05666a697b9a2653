//! Measures how much host memory is left, so that a program can refuse work for which the system would kill the program.

use std::path::Path;

use sysinfo::System;

use crate::groups;

/// Host memory that this process can still allocate, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLeft {
    /// Memory that is available if no other program is swapped out. Cached files count as available memory.
    pub free: u64,
    /// All memory that the process can obtain. On Linux, `most` is the sum of `free` and the free swap space. On other systems,
    /// `most` is the total memory of the machine, because these systems do not report in advance how much memory they can make
    /// available.
    pub most: u64,
}

impl MemoryLeft {
    /// Returns, for each field, the smaller of the values in `self` and `other`.
    #[must_use]
    pub fn min(self, other: MemoryLeft) -> MemoryLeft {
        MemoryLeft { free: self.free.min(other.free), most: self.most.min(other.most) }
    }
}

/// Returns how much memory this process can still allocate: the smallest of the amounts that the system, the control groups of the
/// process (version 1 or 2) and the limit on its address space leave. Returns `None` if the system does not report its memory.
#[must_use]
pub fn left() -> Option<MemoryLeft> {
    let mut system = System::new();
    system.refresh_memory();
    // a system that does not report its memory returns 0
    let (total, free) = (system.total_memory(), system.available_memory());
    if total == 0 || free == 0 {
        return None;
    }
    let swap = system.free_swap();
    let most = if cfg!(target_os = "linux") { free.saturating_add(swap) } else { total };
    let address_space = address_space().map(|bytes| MemoryLeft { free: bytes, most: bytes });
    let bounds = [groups::left(Path::new("/"), swap), address_space];
    Some(bounds.into_iter().flatten().fold(MemoryLeft { free, most }, MemoryLeft::min))
}

/// Returns how many bytes the limit on the address space (`ulimit -v`) leaves to this process, or `None` if there is no such limit.
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
    use super::{MemoryLeft, left};

    #[test]
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    fn these_systems_tell_what_is_left() {
        let MemoryLeft { free, most } = left().unwrap();
        assert!(free > 1 << 20 && most >= free, "{free} {most}");
    }

    #[test]
    fn each_bound_counts() {
        let (a, b) = (MemoryLeft { free: 1, most: 5 }, MemoryLeft { free: 2, most: 4 });
        assert_eq!((a.min(b), b.min(a)), (MemoryLeft { free: 1, most: 4 }, MemoryLeft { free: 1, most: 4 }));
    }
}
