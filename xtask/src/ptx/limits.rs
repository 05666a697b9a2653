//! The number of work-groups that a multiprocessor holds at the same time (CUDA C++ Programming Guide, section "Compute
//! Capabilities", and the occupancy calculator of CUDA).

/// The resources of a multiprocessor.
#[derive(Clone, Copy)]
pub struct Multiprocessor {
    local_bytes: usize,
}

impl Multiprocessor {
    /// The resources of a multiprocessor in a GPU of compute capability 9.0.
    pub const SM_90: Self = Multiprocessor { local_bytes: 228 << 10 };
    /// The resources of a multiprocessor in a GPU of compute capability 8.0.
    pub const SM_80: Self = Multiprocessor { local_bytes: 164 << 10 };
}

/// Number of work-items in a sub-group.
const SUB_GROUP: usize = 32;
/// Number of registers of a multiprocessor.
const REGISTERS: usize = 65_536;
/// Registers of a sub-group are allocated in multiples of this number.
const REGISTER_UNIT: usize = 256;
/// The number of sub-groups to which a multiprocessor allocates registers is rounded down to a multiple of this number.
const PARTITIONS: usize = 4;
/// Maximum number of sub-groups that a multiprocessor runs at the same time.
const SUB_GROUPS: usize = 64;
/// Maximum number of work-groups that a multiprocessor runs at the same time.
const GROUPS: usize = 32;
/// Local memory of a work-group is allocated in multiples of this number of bytes.
const LOCAL_UNIT: usize = 128;
/// Number of bytes of local memory that CUDA reserves for each work-group.
const RESERVED_BYTES: usize = 1 << 10;

/// Returns the number of work-groups of `items` work-items that a multiprocessor runs at the same time.
pub fn groups(unit: Multiprocessor, items: usize, registers: usize, local_bytes: usize) -> usize {
    let sub_groups = items.div_ceil(SUB_GROUP).max(1);
    let of_sub_group = (registers * SUB_GROUP).next_multiple_of(REGISTER_UNIT).max(REGISTER_UNIT);
    let with_registers = REGISTERS / of_sub_group / PARTITIONS * PARTITIONS;
    let with_memory = unit.local_bytes / (local_bytes.next_multiple_of(LOCAL_UNIT) + RESERVED_BYTES);
    GROUPS.min(SUB_GROUPS / sub_groups).min(with_registers / sub_groups).min(with_memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_resource_bounds_the_groups() {
        let on = |items, registers, local_bytes| groups(Multiprocessor::SM_90, items, registers, local_bytes);
        assert_eq!(on(32, 16, 0), 32, "work-groups");
        assert_eq!(on(256, 16, 0), 8, "sub-groups");
        assert_eq!(on(256, 254, 0), 1, "registers: 8 sub-groups of 8192");
        assert_eq!([on(128, 168, 0), on(128, 128, 0)], [3, 4], "registers: 12 and 16 sub-groups");
        assert_eq!(on(128, 32, 65_536), 3, "local memory");
        assert_eq!([on(32, 16, 227 << 10), on(32, 16, (227 << 10) + 1)], [1, 0]);
        assert_eq!([Multiprocessor::SM_90, Multiprocessor::SM_80].map(|unit| groups(unit, 128, 32, 65_536)), [3, 2]);
    }
}
