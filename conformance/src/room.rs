//! How much memory the machine has left, so that a trial of large operands is skipped where the
//! system would end the program instead.

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

/// Bytes that can be had without pushing others out; the least of what the machine and the
/// control group of the process have left.
fn available() -> Option<usize> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let machine = field(&read("/proc/meminfo")?, "MemAvailable:")? << 10;
    let group = || {
        in_group(&read("/sys/fs/cgroup/memory.max")?, &read("/sys/fs/cgroup/memory.current")?, &read("/sys/fs/cgroup/memory.stat")?)
    };
    Some(group().map_or(machine, |group| group.min(machine)))
}

/// What a control group leaves; none if it sets no limit. Cached files give way.
fn in_group(limit: &str, used: &str, statistics: &str) -> Option<usize> {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    Some(number(limit)?.saturating_sub(number(used)?.saturating_sub(field(statistics, "file ")?)))
}

/// The number after a word at the beginning of a line.
fn field(text: &str, word: &str) -> Option<usize> {
    let rest = text.lines().find_map(|line| line.strip_prefix(word))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{enough, field, in_group};

    #[test]
    fn half_of_what_is_free_may_be_used() {
        let gib = |count: usize| count << 30;
        assert!(enough(gib(1), None).is_ok() && enough(gib(8), Some(gib(16))).is_ok());
        assert!(enough(gib(9), Some(gib(16))).unwrap_err().contains("9.0 GiB of host memory, and half of the 16.0 GiB"));
        assert!(enough(gib(2), None).unwrap_err().contains("does not tell"));
    }

    #[test]
    fn a_control_group_leaves_its_limit_less_what_is_used_but_for_files() {
        let text = "anon 5\nfile 30\nfile_mapped 7\n";
        assert_eq!(field(text, "file "), Some(30));
        assert_eq!((in_group("100\n", "60\n", text), in_group("max\n", "60\n", text)), (Some(70), None));
    }
}
