//! Tests with folders of files that imitate Linux systems: nested control groups, both versions of control groups, and containers
//! that show only a part of the control groups.

use std::fs;

use tempfile::TempDir;

use super::*;

const V1_MOUNT: &str = "30 20 0:26 / /sys/fs/cgroup/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n";
const V2_MOUNT: &str = "31 20 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

/// Creates a folder that imitates a Linux system. `files` holds the name and the text of each file in the folder.
fn system(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn left_in(files: &[(&str, &str)], swap: u64) -> Option<(u64, u64)> {
    left(system(files).path(), swap).map(|MemoryLeft { free, most }| (free, most))
}

#[test]
fn cached_files_give_way_and_the_tightest_group_counts() {
    let of_two = |group: &str, swap| {
        let files = [
            ("proc/self/cgroup", group),
            ("proc/self/mountinfo", V2_MOUNT),
            ("sys/fs/cgroup/a/memory.max", "1000\n"),
            ("sys/fs/cgroup/a/memory.current", "600\n"),
            ("sys/fs/cgroup/a/memory.stat", "anon 300\nactive_file 100\ninactive_file 50\nslab_reclaimable 10\n"),
            ("sys/fs/cgroup/a/memory.swap.max", "30\n"),
            ("sys/fs/cgroup/a/memory.swap.current", "10\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/memory.current", "600\n"),
            ("sys/fs/cgroup/a/c/memory.max", "500\n"),
            ("sys/fs/cgroup/a/c/memory.current", "200\n"),
            ("sys/fs/cgroup/a/c/memory.swap.max", "max\n"),
        ];
        left_in(&files, swap)
    };
    assert_eq!(of_two("0::/a\n", 0), Some((560, 560)));
    assert_eq!(of_two("0::/a\n", 15), Some((560, 575)));
    assert_eq!(of_two("0::/a\n", 99), Some((560, 580)), "the group has 20 bytes of swap left");
    assert_eq!(of_two("0::/a/b\n", 0), Some((560, 560)), "the group around it has the limit");
    assert_eq!(of_two("0::/a/c\n", 99), Some((300, 399)), "the inner one is tighter");
    assert_eq!(of_two("0::/d\n", 99), None, "no limit");
}

#[test]
fn groups_of_version_one_are_known_by_their_controller() {
    let of_one = |cgroup: &str, memsw: &[(&str, &str)]| {
        let files = [
            ("proc/self/cgroup", cgroup),
            ("proc/self/mountinfo", V1_MOUNT),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n"),
            ("sys/fs/cgroup/memory/x/y/memory.limit_in_bytes", "1000\n"),
            ("sys/fs/cgroup/memory/x/y/memory.usage_in_bytes", "900\n"),
            ("sys/fs/cgroup/memory/x/y/memory.stat", "active_file 1\ntotal_active_file 200\ntotal_inactive_file 300\n"),
        ];
        left_in(&[&files, memsw].concat(), 80)
    };
    let group = "4:memory:/x/y\n3:cpu:/z\n0::/\n";
    assert_eq!(of_one(group, &[]), Some((600, 680)));
    let memsw = [
        ("sys/fs/cgroup/memory/x/y/memory.memsw.limit_in_bytes", "1000\n"),
        ("sys/fs/cgroup/memory/x/y/memory.memsw.usage_in_bytes", "950\n"),
    ];
    assert_eq!(of_one(group, &memsw), Some((550, 550)), "swap counts against the same limit");
    assert!(of_one("3:cpu:/x/y\n4:memory:/\n", &[]).unwrap().0 > 1 << 60);
}

#[test]
fn a_container_that_shows_a_part_of_the_groups_is_understood() {
    let container = |cgroup: &str, mount: &str| {
        let files = [
            ("proc/self/cgroup", cgroup),
            ("proc/self/mountinfo", mount),
            ("sys/fs/cgroup/memory.max", "700\n"),
            ("sys/fs/cgroup/memory.current", "200\n"),
        ];
        left_in(&files, 0)
    };
    let part = V2_MOUNT.replace(" / /sys", " /box/1 /sys");
    assert_eq!(container("0::/box/1\n", &part), Some((500, 500)), "the mount is the group");
    assert_eq!(container("0::/\n", V2_MOUNT), Some((500, 500)), "a name space of its own");
    assert_eq!(container("0::/elsewhere\n", &part), Some((500, 500)), "a group that is not shown");
}

#[test]
fn systems_without_groups_have_no_limit() {
    assert_eq!(left_in(&[], 9), None);
    assert_eq!(left_in(&[("proc/self/cgroup", "0::/\n"), ("proc/self/mountinfo", V2_MOUNT)], 9), None);
    let other = "22 1 8:1 / / rw - ext4 /dev/root rw\nbroken\n";
    assert_eq!(left_in(&[("proc/self/cgroup", "broken\n"), ("proc/self/mountinfo", other)], 9), None);
}
