//! Limits of [`Program::HeldRows`](crate::Program::HeldRows), whose work-items hold the rows of a panel in registers, and the number of its
//! work-groups on a device.

use lapidary_core::{DType, DeviceFacts};

use crate::messages::PIECE;
use crate::mma::{MAX_LOCAL_BYTES, SUB_GROUP};
use crate::tuning::takes_ptx;

/// Maximum number of columns of a panel if each work-item holds one row.
const WIDTH: usize = 32;
/// Numbers of rows that a work-item can hold. The registers have room for [`WIDTH`] elements, so that panels become narrower as work-items hold
/// more rows.
const ROWS_OF_ITEM: [usize; 3] = [1, 2, 4];
/// Maximum number of work-groups that wait for one another. Each receives a record of all others in each step.
const MAX_GROUPS: usize = 64;
/// Number of elements of other columns that a work-item moves at once.
const MOVES: usize = 16;
/// Number of pieces of a row, and of a record, which has a head of two pieces besides the row. (Both are smaller in `f32`.)
const ROW_PIECES: usize = WIDTH * size_of::<f64>() / PIECE;
const RECORD_PIECES: usize = 2 + ROW_PIECES;
/// Number of pieces that a launch sends: a record for each step and each work-group, and the rows of L.
pub(crate) const PIECES: usize = WIDTH * (MAX_GROUPS * RECORD_PIECES + ROW_PIECES);
/// Number of pieces that a work-item receives in a step.
const AT_ONCE: usize = 5;

/// Returns the constants of the kernel text.
pub(crate) fn constants(shape: HeldShape, uses_ptx: bool) -> [(&'static str, usize); 4] {
    let max_groups = if uses_ptx { MAX_GROUPS } else { 1 };
    [("width", shape.width()), ("max_groups", max_groups), ("moves", MOVES), ("at_once", AT_ONCE)]
}

/// The shape of a work-group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeldShape {
    /// Number of work-items.
    pub items: usize,
    /// Number of rows that each work-item holds.
    pub each: usize,
}

impl HeldShape {
    /// Number of rows that a work-group holds.
    fn rows(self) -> usize {
        self.items.max(1) * self.each
    }

    /// Maximum number of columns of a panel. Sub-groups of as many work-items solve for a column.
    pub(crate) fn width(self) -> usize {
        WIDTH / self.each
    }
}

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
        self.shapes(rows, || [items].into_iter()).next().is_some()
    }

    /// Returns the shapes of work-groups that hold a panel of `rows` rows, for the given numbers of work-items in the order of preference. Shapes
    /// whose work-items hold fewer rows come first, because their panels have more columns.
    pub(crate) fn shapes<I: Iterator<Item = usize>>(&self, rows: usize, items: impl Fn() -> I) -> impl Iterator<Item = HeldShape> {
        let held = *self;
        let shapes = ROWS_OF_ITEM.into_iter().flat_map(move |each| items().map(move |items| HeldShape { items, each }));
        shapes.filter(move |shape| rows.div_ceil(shape.rows()) <= held.max_groups(shape.items))
    }

    /// Returns the maximum number of work-groups of `items` work-items, each of which receives the records of all work-groups.
    fn max_groups(&self, items: usize) -> usize {
        self.groups.min(AT_ONCE * items / RECORD_PIECES)
    }

    /// Returns the number of work-groups of a shape of [`shapes`](Self::shapes) that factor a panel of `rows` rows, and exchange the rows of
    /// `others` other columns.
    pub(crate) fn groups(&self, rows: usize, shape: HeldShape, others: usize) -> usize {
        rows.div_ceil(shape.rows()).max(others.div_ceil(EXCHANGED_COLUMNS).min(self.max_groups(shape.items)))
    }
}

/// Returns the bytes of local memory of a work-group.
///
/// # Errors
/// A parameter violates a constraint, which the error states with its reason.
pub(crate) fn local_bytes(dtype: DType, shape: HeldShape, uses_ptx: bool) -> Result<usize, String> {
    let (HeldShape { items, .. }, width) = (shape, shape.width());
    if !items.is_power_of_two() || items < WIDTH {
        return Err(format!("{items} work-items are no power of two from {WIDTH} on"));
    }
    // a text without PTX holds a candidate and a value for each work-item, by which work-items exchange data
    let (sub_groups, groups, exchanged) =
        if uses_ptx { (items / SUB_GROUP, MAX_GROUPS, 0) } else { (1, 1, items * (2 * dtype.size() + size_of::<u64>())) };
    let records = (sub_groups + groups) * (2 * PIECE + width * dtype.size());
    let elements = width * shape.rows() + width * (width + 1);
    // the places of the pivots, and two lists of twice as many places
    let places = 5 * width * size_of::<u32>();
    let bytes = records + elements * dtype.size() + places + exchanged;
    if uses_ptx && bytes > MAX_LOCAL_BYTES {
        return Err(format!("{bytes} bytes exceed the local memory of a multiprocessor"));
    }
    Ok(bytes)
}
