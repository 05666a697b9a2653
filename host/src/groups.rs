//! Measures how much memory the control groups of Linux, version 1 and 2, leave for this process.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

use crate::memory::MemoryLeft;

/// Version of the control groups, which determines the names of their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Returns the smallest amount of memory that one of the control groups of this process leaves, where `swap` is the number of free
/// bytes of swap space. Returns `None` if no control group limits memory. `root` is the root folder of the system's files.
pub fn left(root: &Path, swap: u64) -> Option<MemoryLeft> {
    let memberships = read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let folders = mounts.lines().filter_map(|mount| folders(root, mount, &memberships));
    let groups = folders.flat_map(|(version, folders)| folders.into_iter().map(move |folder| (version, folder)));
    groups.filter_map(|(version, folder)| of_group(version, &folder, swap)).reduce(MemoryLeft::min)
}

/// Returns the folders of this process's control group and of all control groups that contain it. `mount` is a line of
/// `mountinfo`. Returns `None` if this line does not mount control groups that limit memory.
fn folders(root: &Path, mount: &str, memberships: &str) -> Option<(Version, Vec<PathBuf>)> {
    // fields of a line, from proc(5): id, parent, device, root, mount point, options … - type, source, options
    let (place, kind) = mount.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (shown, at) = (place.next()?, place.next()?);
    let mut kind = kind.split(' ');
    let version = match (kind.next()?, kind.nth(1)?) {
        ("cgroup2", _) => Version::Two,
        ("cgroup", options) if options.split(',').any(|option| option == "memory") => Version::One,
        _ => return None,
    };
    let member = memberships.lines().find_map(|line| membership(version, line))?;
    let inside = Path::new(member).strip_prefix(shown).unwrap_or(Path::new(""));
    let top = root.join(at.trim_start_matches('/'));
    let own = top.join(inside);
    Some((version, own.ancestors().take_while(|folder| folder.starts_with(&top)).map(Path::to_path_buf).collect()))
}

/// Returns the control group that `line`, a line of `/proc/self/cgroup`, names. Returns `None` if the control group is of another
/// version than `version`, or if it does not limit memory.
fn membership(version: Version, line: &str) -> Option<&str> {
    let mut parts = line.splitn(3, ':');
    let (number, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
    let counts = match version {
        Version::One => controllers.split(',').any(|controller| controller == "memory"),
        Version::Two => number == "0",
    };
    counts.then_some(group)
}

/// Returns how much memory one control group leaves, or `None` if the control group does not limit memory. Cached files do not
/// count as used memory, because the system frees the memory of cached files on demand.
fn of_group(version: Version, folder: &Path, swap: u64) -> Option<MemoryLeft> {
    let number = |name: &str| read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let sum = |keys: &[&str]| keys.iter().filter_map(|key| value(&stat, key)).sum::<u64>();
    match version {
        Version::One => {
            let files = sum(&["total_active_file", "total_inactive_file"]);
            let left = |limit: &str, used: &str| Some(number(limit)?.saturating_sub(number(used)?.saturating_sub(files)));
            let free = left("memory.limit_in_bytes", "memory.usage_in_bytes")?;
            // how much memory and swap space together are left, if the system limits the sum of both
            let both = left("memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes").unwrap_or(u64::MAX);
            Some(MemoryLeft { free: free.min(both), most: both.min(free.saturating_add(swap)) })
        }
        Version::Two => {
            let files = sum(&["active_file", "inactive_file", "slab_reclaimable"]);
            let free = number("memory.max")?.saturating_sub(number("memory.current")?.saturating_sub(files));
            let swap_limit = number("memory.swap.max").unwrap_or(u64::MAX);
            let swap = swap.min(swap_limit.saturating_sub(number("memory.swap.current").unwrap_or(0)));
            Some(MemoryLeft { free, most: free.saturating_add(swap) })
        }
    }
}

/// Returns the number that follows `key` on a line of `table`.
fn value(table: &str, key: &str) -> Option<u64> {
    table.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests;
