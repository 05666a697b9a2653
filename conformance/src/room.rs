//! How much memory the machine has left, so that a trial of large operands is skipped where the
//! system would end the program instead.

use sysinfo::System;

/// Bytes that every machine is taken to have.
const ALWAYS: usize = 1 << 30;

/// Whether there is room for so many bytes, without taking more than half of what is free: the
/// rest is for those who share the machine.
///
/// # Errors
/// There is not; the text says why.
pub fn room_for(bytes: usize) -> Result<(), String> {
    enough(bytes, available())
}

fn enough(bytes: usize, available: Option<usize>) -> Result<(), String> {
    let gib = |bytes: usize| format!("{:.1} GiB", crate::bounds::real(bytes) / crate::bounds::real(1 << 30));
    match available {
        _ if bytes <= ALWAYS => Ok(()),
        Some(free) if bytes <= free / 2 => Ok(()),
        Some(free) => {
            Err(format!("it takes {} of host memory, and half of the {} that are free may be used", gib(bytes), gib(free)))
        }
        None => Err(format!("it takes {} of host memory, and this system does not tell how much is free", gib(bytes))),
    }
}

/// Bytes that can be had without pushing others out: the least of what the machine and the
/// control group, of version 1 or 2, have left. The group is the one that a container shows as
/// its own; of groups nested in it `sysinfo` tells nothing.
fn available() -> Option<usize> {
    let mut system = System::new();
    system.refresh_memory();
    // asked for groups where the system tells no total, `sysinfo` panics
    let known = system.total_memory() > 0;
    let group = known.then(|| system.cgroup_limits()).flatten().map(|group| in_group(group.total_memory, group.rss));
    known.then(|| bytes(group.map_or(system.available_memory(), |group| group.min(system.available_memory()))))
}

/// What a control group leaves. Cached files give way: only what programs hold counts.
fn in_group(limit: u64, held: u64) -> u64 {
    limit.saturating_sub(held)
}

fn bytes(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::{available, enough, in_group};

    #[test]
    fn half_of_what_is_free_may_be_used() {
        let gib = |count: usize| count << 30;
        assert!(enough(gib(1), None).is_ok() && enough(gib(8), Some(gib(16))).is_ok());
        assert!(enough(gib(9), Some(gib(16))).unwrap_err().contains("9.0 GiB of host memory, and half of the 16.0 GiB"));
        assert!(enough(gib(2), None).unwrap_err().contains("does not tell"));
    }

    #[test]
    fn a_control_group_leaves_its_limit_less_what_programs_hold() {
        assert_eq!((in_group(100, 30), in_group(100, 130)), (70, 0));
    }

    #[test]
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    fn these_systems_tell_what_is_free() {
        assert!(available().is_some_and(|free| free > 1 << 20), "{:?}", available());
    }
}
