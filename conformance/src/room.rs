//! Whether the machine has memory left for a trial of large operands, which is skipped where the
//! system would end the program instead.

use lapidary_host::memory;

/// Bytes that every machine is taken to have.
const ALWAYS: usize = 1 << 30;

/// Whether there is room for so many bytes, without taking more than half of what is free: the
/// rest is for those who share the machine.
///
/// # Errors
/// There is not; the text says why.
pub fn room_for(bytes: usize) -> Result<(), String> {
    enough(bytes, memory::left().map(|left| usize::try_from(left.free).unwrap_or(usize::MAX)))
}

fn enough(bytes: usize, free: Option<usize>) -> Result<(), String> {
    let gib = |bytes: usize| format!("{:.1} GiB", crate::bounds::real(bytes) / crate::bounds::real(1 << 30));
    match free {
        _ if bytes <= ALWAYS => Ok(()),
        Some(free) if bytes <= free / 2 => Ok(()),
        Some(free) => {
            Err(format!("it takes {} of host memory, and half of the {} that are free may be used", gib(bytes), gib(free)))
        }
        None => Err(format!("it takes {} of host memory, and this system does not tell how much is free", gib(bytes))),
    }
}

#[cfg(test)]
mod tests {
    use super::enough;

    #[test]
    fn half_of_what_is_free_may_be_used() {
        let gib = |count: usize| count << 30;
        assert!(enough(gib(1), None).is_ok() && enough(gib(8), Some(gib(16))).is_ok());
        assert!(enough(gib(9), Some(gib(16))).unwrap_err().contains("9.0 GiB of host memory, and half of the 16.0 GiB"));
        assert!(enough(gib(2), None).unwrap_err().contains("does not tell"));
    }
}
