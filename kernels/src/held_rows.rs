//! Limits of [`Program::HeldRows`](crate::Program::HeldRows), whose work-items hold the rows of a panel in registers, and the number of its
//! work-groups on a device.

use lapidary_core::{DType, DeviceFacts};

use crate::mma::SUB_GROUP;
use crate::tuning::takes_ptx;

/// Maximum number of work-groups. A word of 32 bits holds the number of a work-group and that of a row.
const MAX_GROUPS: usize = 255;
/// Maximum number of rows of a panel.
const MAX_ROWS: usize = (1 << 24) - 1;
/// Maximum number of 32-bit words in a row, which a work-item holds in registers.
const ROW_WORDS: usize = 128;
/// Minimum value of the parameter `width`.
const MIN_WIDTH: usize = 16;
/// Number of elements of other columns that a work-item moves at once.
pub(crate) const MOVES: usize = 16;
/// Number of 64-bit words in a region: two records for each work-group. A record has four words for the magnitude and the place of a
/// candidate, `ROW_WORDS` for its row, and four for its reciprocal and the rounding to whole vectors.
pub(crate) const REGION: usize = 2 * MAX_GROUPS * (4 + ROW_WORDS + 4);
/// Size of the memory for messages in bytes: two words and two regions. All panels use the same size.
pub const RECORD_BYTES: usize = (2 + 2 * REGION) * size_of::<u64>();

/// Maximum number of columns in which a work-group exchanges rows, as long as the device can run more work-groups.
const EXCHANGED_COLUMNS: usize = 32;

/// The variant of the kernel that a device runs, and the number of its work-groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldRows {
    /// Whether work-items exchange messages and compare candidates by PTX instructions.
    pub uses_ptx: bool,
    /// Maximum number of work-groups, which wait for one another. All work-groups of all queues must run at the same time.
    pub groups: usize,
}

impl HeldRows {
    /// Returns how the kernels run on a device.
    #[must_use]
    pub fn on(facts: &DeviceFacts) -> Self {
        // Devices of other instruction sets may not run work-groups at the same time. A device with a single queue belongs to an
        // application, whose other kernels may occupy the multiprocessors.
        let together = takes_ptx(facts) && facts.queues > 1;
        let groups = if together { facts.compute_units.unwrap_or(1) / facts.queues } else { 1 };
        HeldRows { uses_ptx: takes_ptx(facts), groups: groups.clamp(1, MAX_GROUPS) }
    }

    /// Returns whether work-groups of `items` work-items hold a panel of `rows` rows.
    #[must_use]
    pub fn hold(&self, rows: usize, items: usize) -> bool {
        // each work-item receives the candidate of one work-group
        rows.div_ceil(items.max(1)) <= self.groups.min(items) && rows <= MAX_ROWS
    }

    /// Returns the number of work-groups of `items` work-items that factor a panel of `rows` rows, which [`hold`](Self::hold), and exchange
    /// the rows of `others` other columns.
    pub(crate) fn groups(&self, rows: usize, items: usize, others: usize) -> usize {
        rows.div_ceil(items).max(others.div_ceil(EXCHANGED_COLUMNS).min(self.groups.min(items)))
    }
}

/// Returns the bytes of local memory of a work-group of `items` work-items that holds rows of `width` columns.
///
/// # Errors
/// A parameter violates a constraint, which the error states with its reason.
pub(crate) fn local_bytes(dtype: DType, items: usize, width: usize, uses_ptx: bool) -> Result<usize, String> {
    if uses_ptx && !items.is_multiple_of(SUB_GROUP) {
        return Err(format!("{items} work-items are no whole sub-groups of {SUB_GROUP}"));
    }
    if !width.is_power_of_two() || width < MIN_WIDTH || width * dtype.size() > ROW_WORDS * size_of::<u32>() {
        return Err(format!("{width} columns are no power of two from {MIN_WIDTH} on whose elements fit {ROW_WORDS} registers"));
    }
    if !items.is_power_of_two() {
        return Err(format!("{items} work-items are no power of two"));
    }
    if MOVES * items < 2 * width {
        return Err(format!(
            "{items} work-items move {MOVES} elements each, which are fewer than the 2·{width} rows of the exchanges"
        ));
    }
    // local memory holds two candidates for each work-item, a row with a reciprocal, the places of `width` pivots, and two lists of
    // 2·`width` places
    Ok(2 * items * (dtype.size() + size_of::<u64>()) + (1 + width) * dtype.size() + 5 * width * size_of::<u32>())
}
