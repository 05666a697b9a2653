//! Checks whether the host has enough free memory for a trial with large operands. Without enough memory the trial is skipped,
//! since the system might end the program.

use lapidary_host::memory;

use crate::Failure;

/// Number of bytes of free memory that every host is assumed to have.
pub(crate) const ASSUMED_BYTES: usize = 1 << 30;

/// Number of bytes of memory that a trial with small matrices needs.
pub(crate) const SMALL: usize = 16 << 20;

/// If fewer bytes than this number are free, calls may fail with errors of any kind, since threads and drivers need memory too.
pub(crate) const MIN_FREE_BYTES: usize = 128 << 20;

/// Checks whether a trial may use `bytes` bytes of memory: at most `ASSUMED_BYTES`, or at most half of the free memory. The other
/// half of the free memory remains for other programs.
///
/// # Errors
/// The trial may not use `bytes` bytes of memory. The text gives the reason.
pub fn room_for(bytes: usize) -> Result<(), String> {
    enough(bytes, memory::left().map(|left| usize::try_from(left.free).unwrap_or(usize::MAX)))
}

/// Name of the check in the failures that [`for_elements`] returns.
pub(crate) const CHECK: &str = "suite: room";

/// Checks whether the system allocates `bytes` bytes now. The function frees the memory without writing it. The amount of free
/// memory does not show whether the address space of the process is limited, but a failed allocation does.
///
/// # Errors
/// The system refuses the allocation. The text gives the number of bytes.
pub(crate) fn can_allocate(bytes: usize) -> Result<(), String> {
    let refused = |_| format!("too little memory: the system refuses this process {} MiB more", bytes >> 20);
    Vec::<u8>::new().try_reserve_exact(bytes).map_err(refused)
}

/// Checks whether the system allocates the memory of a case whose matrices have `count` elements together: the operands, their
/// copies, and the [`Double`](crate::oracle::double::Double) numbers of the oracle.
///
/// # Errors
/// The system refuses the memory, which is no failure of the subject.
pub(crate) fn for_elements(count: usize) -> Result<(), Failure> {
    let lacking = |why| Failure { lacks_memory: true, ..Failure::new(CHECK, why) };
    can_allocate(64 * count).map_err(lacking)
}

fn enough(bytes: usize, free: Option<usize>) -> Result<(), String> {
    let gib = |bytes: usize| format!("{:.1} GiB", crate::bounds::real(bytes) / crate::bounds::real(1 << 30));
    match free {
        _ if bytes <= ASSUMED_BYTES => Ok(()),
        Some(free) if bytes <= free / 2 => Ok(()),
        Some(free) => {
            Err(format!("it takes {} of host memory, and half of the {} that are free may be used", gib(bytes), gib(free)))
        }
        None => Err(format!("it takes {} of host memory, and this system does not tell how much is free", gib(bytes))),
    }
}

#[cfg(test)]
mod tests {
    use super::{can_allocate, enough};

    #[test]
    fn what_no_system_gives_is_refused_by_its_size() {
        assert!(can_allocate(1 << 20).is_ok());
        assert!(can_allocate(usize::MAX / 4).unwrap_err().contains("too little memory"));
    }

    #[test]
    fn half_of_what_is_free_may_be_used() {
        let gib = |count: usize| count << 30;
        assert!(enough(gib(1), None).is_ok() && enough(gib(8), Some(gib(16))).is_ok());
        assert!(enough(gib(9), Some(gib(16))).unwrap_err().contains("9.0 GiB of host memory, and half of the 16.0 GiB"));
        assert!(enough(gib(2), None).unwrap_err().contains("does not tell"));
    }
}
