//! Shape of the strips by which panels are factored. A strip consists of a few neighbouring columns of a panel and lies in
//! scratch memory. A work-group loads a strip into registers, either for one step or until the strip is factored.

use lapidary_core::{DType, Limits};

use crate::params::parameters;

parameters! {
/// Shape of a strip, in scratch memory and in the registers of one work-group.
pub struct StripParams {
    /// Number of work-items in a work-group, a power of two.
    pub items: usize,
    /// Number of rows that a work-item holds. A panel has at most `items` × `rows` rows.
    pub rows: usize,
    /// Number of columns of a strip, a power of two from 2 to half of `items`. Because the width is a power of two, all rows of a
    /// strip on the diagonal of the panel lie in the strip.
    pub width: usize,
}
}

/// The largest strips of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripLimits {
    /// Maximum number of rows per work-item ([`Threshold::StripRows`](crate::Threshold)).
    pub rows: usize,
    /// Maximum number of elements per work-item, unless two columns need more ([`Threshold::StripElements`](crate::Threshold)).
    pub elements: usize,
    /// Whether one launch factors all strips. Otherwise each strip has a launch of its own.
    pub waits: bool,
}

impl StripLimits {
    /// Maximum number of columns of a strip. If each strip has a launch of its own, wide strips save launches. If one launch
    /// factors all strips, strips are so narrow that the kernel text can unroll the loop over the columns
    /// (bench/results/wgpu/2026-11-23-h100-waits.txt). The number is fixed by the texts, so that it is no entry of the database.
    fn columns(self) -> usize {
        if self.waits { 4 } else { 8 }
    }
}

impl StripParams {
    /// Returns the widest strip of work-groups of `items` work-items. `None` if the work-groups are too small for any strip.
    #[must_use]
    pub fn widest(items: usize) -> Option<Self> {
        Self::choose(1, items, StripLimits { rows: 4, elements: usize::MAX, waits: false })
    }

    /// Chooses the shape of the strips for a panel of `rows` rows and work-groups of `items` work-items, a power of two. Returns `None`
    /// if the panel has too many rows, or if the work-groups are too small for any strip.
    #[must_use]
    pub fn choose(rows: usize, items: usize, most: StripLimits) -> Option<Self> {
        if items < 4 {
            return None;
        }
        // a multiple of 4 gives whole vectors, and keeps the number of shapes small, each of which is compiled separately
        let rows = rows.div_ceil(items).next_multiple_of(4);
        // a power of two gives whole vectors, and makes blocks whose width is a power of two consist of whole strips
        let width = (most.elements / rows).clamp(2, most.columns()).min(items / 2);
        (rows <= most.rows).then(|| StripParams { items, rows, width: 1 << width.ilog2() })
    }

    /// Returns the number of rows of a strip. Rows of the strip beyond the rows of the panel are zero.
    #[must_use]
    pub fn height(&self) -> usize {
        self.items * self.rows
    }

    /// Returns the size of a strip in scratch memory, in bytes.
    pub(crate) fn bytes(&self, dtype: DType) -> usize {
        self.height() * self.width * dtype.size()
    }

    /// Returns the number of elements of the vectors in which kernels move strips. A vector has 16 bytes, or less if a row of a
    /// strip has less.
    pub(crate) fn vector(&self, dtype: DType) -> usize {
        if dtype == DType::F32 && self.width.is_multiple_of(4) { 4 } else { 2 }
    }

    /// Checks that a device can run the kernels.
    ///
    /// # Errors
    /// A parameter violates a constraint, which the error states with its reason.
    pub fn check(&self, dtype: DType, limits: &Limits) -> Result<(), String> {
        let Self { items, rows, width } = *self;
        if !items.is_power_of_two() {
            return Err(format!("{items} work-items do not halve to one candidate"));
        }
        if rows == 0 || !rows.is_multiple_of(4) {
            return Err(format!("a work-item with {rows} rows holds no panel in whole vectors"));
        }
        if !width.is_power_of_two() || width < 2 || 2 * width > items {
            return Err(format!("{items} work-items do not take a row of {width} columns each, in vectors, twice"));
        }
        if items > limits.work_group {
            return Err(format!("{items} work-items are more than the {} of a work-group", limits.work_group));
        }
        // in elements: the candidates of all work-items and lines with their row numbers, two rows, and four width × width arrays
        // in integers: the numbers of 2 × width exchanged rows, the place of the best candidate, and the ticket of the work-group
        let reals = 2 * (items + LINES) + 2 * width + 4 * width * width;
        // 48 bytes are added for padding, because a compiler may align the arrays to whole vectors
        let bytes = reals * dtype.size() + (2 * width + 2) * size_of::<u32>() + 3 * 16;
        let fits = bytes <= limits.local_memory;
        if fits { Ok(()) } else { Err(format!("a strip takes {bytes} bytes of the {} of local memory", limits.local_memory)) }
    }
}

/// Number of lines into which the search for a pivot divides the candidates. In the last step, all work-items compare the best
/// candidates of the lines.
pub(crate) const LINES: usize = 16;

/// Number of strips in which one work-item copies a row back to the panel. The work-item computes once, for all these strips,
/// where the exchanges of later strips move the row.
pub(crate) const STRIPS_PER_ITEM: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_hold_every_row() {
        for (dtype, rows, expected) in [
            (DType::F32, 1, Some((256, 4, 8))),
            (DType::F32, 4096, Some((256, 16, 8))),
            (DType::F32, 4097, Some((256, 20, 4))),
            (DType::F32, 8193, None),
            (DType::F64, 1000, Some((256, 4, 8))),
            (DType::F64, 4096, Some((256, 16, 2))),
            (DType::F64, 8192, Some((256, 32, 2))),
            (DType::F64, 8193, None),
        ] {
            let expected = expected.map(|(items, rows, width)| StripParams { items, rows, width });
            let most = |waits| StripLimits { rows: 32, elements: if dtype == DType::F64 { 32 } else { 128 }, waits };
            assert_eq!(StripParams::choose(rows, 256, most(false)), expected, "{dtype} {rows}");
            let narrow = expected.map(|params| StripParams { width: params.width.min(4), ..params });
            assert_eq!(StripParams::choose(rows, 256, most(true)), narrow, "{dtype} {rows}, waiting");
        }
        // work-groups with so few work-items that no strip fits, or no wide one
        for (items, width) in [(0, None), (2, None), (4, Some(2)), (16, Some(8))] {
            assert_eq!(StripParams::widest(items).map(|params| params.width), width, "{items}");
        }
    }

    #[test]
    fn a_device_that_is_too_small_is_told_why() {
        let limits = crate::limits(256, 16 << 10);
        let params = StripParams { items: 256, rows: 16, width: 2 };
        assert_eq!(params.check(DType::F64, &limits), Ok(()));
        assert!(params.check(DType::F64, &crate::limits(128, 16 << 10)).unwrap_err().contains("128"));
        assert!(params.check(DType::F64, &crate::limits(256, 4096)).unwrap_err().contains("local memory"));
        assert!(StripParams { width: 512, ..params }.check(DType::F64, &limits).unwrap_err().contains("columns"));
        assert!(StripParams { rows: 0, ..params }.check(DType::F64, &limits).unwrap_err().contains("rows"));
        // with 6 columns, the eleventh strip would have rows 60 to 65 on the diagonal, but a strip has only 64 rows
        let beyond = StripParams { items: 16, rows: 4, width: 6 };
        assert!(beyond.check(DType::F64, &limits).unwrap_err().contains("columns"));
        assert!(StripParams { items: 96, ..params }.check(DType::F64, &limits).unwrap_err().contains("halve"));
    }
}
