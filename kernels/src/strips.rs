//! Panels by strips of columns, in memory of their own; a work-group takes one into registers for a step, or until
//! it is factored.

use lapidary_core::{DType, Limits};

/// The shape of a strip, in memory and in the registers of one work-group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StripParams {
    /// Work-items of a group, a power of two.
    pub items: usize,
    /// Rows that a work-item holds: a panel has no more than all hold.
    pub rows: usize,
    /// Columns of a strip, a power of two from 2 to half of `items`: its rows on the diagonal lie in it.
    pub width: usize,
}

impl StripParams {
    /// Most rows of a work-item: beyond, the text no longer fits the caches for
    /// instructions (bench/results/wgpu/2026-11-22-h200-strips.txt and -h100-blocks.txt).
    const TALLEST: usize = 32;

    /// Most columns: many save launches, where each strip has one, and few are written out
    /// (bench/results/wgpu/2026-11-23-h100-waits.txt).
    fn widest(waits: bool) -> usize {
        if waits { 4 } else { 8 }
    }

    /// Elements that a work-item holds: half of the registers that a compiler for NVIDIA's devices
    /// allows it, and in double precision a quarter, if that gives two columns
    /// (bench/results/wgpu/2026-11-23-h100-solve.txt).
    fn held(dtype: DType) -> usize {
        if dtype == DType::F64 { 32 } else { 128 }
    }

    /// What holds a panel of so many rows by groups of so many work-items, a power of two, that wait
    /// for one another or have a launch for each strip; nothing if the panel is too tall, or if the groups
    /// are too small for any.
    #[must_use]
    pub fn choose(dtype: DType, rows: usize, items: usize, waits: bool) -> Option<Self> {
        if items < 4 {
            return None;
        }
        // a multiple of 4: whole vectors, and few shapes, since each is compiled separately
        let rows = rows.div_ceil(items).next_multiple_of(4);
        // vectors again, and blocks of a power of two are whole strips
        let most = (Self::held(dtype) / rows).clamp(2, Self::widest(waits)).min(items / 2);
        (rows <= Self::TALLEST).then(|| StripParams { items, rows, width: 1 << most.ilog2() })
    }

    /// Rows of a strip: those of a panel, and zeros.
    #[must_use]
    pub fn height(&self) -> usize {
        self.items * self.rows
    }

    /// Bytes of a strip in memory.
    pub(crate) fn bytes(&self, dtype: DType) -> usize {
        self.height() * self.width * dtype.size()
    }

    /// Elements of a vector that strips are moved in, along rows or columns: of 16 bytes, or less if a
    /// row has less.
    pub(crate) fn vector(&self, dtype: DType) -> usize {
        if dtype == DType::F32 && self.width.is_multiple_of(4) { 4 } else { 2 }
    }

    /// Whether a device can run the kernels.
    ///
    /// # Errors
    /// The constraint that is not met, and why it is one.
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
        // a candidate of each work-item and line, with the rows where the text keeps them, two rows,
        // four squares; what comes to rows, the best of all and a turn
        let reals = 2 * (items + LINES) + 2 * width + 4 * width * width;
        // rows may be moved apart to begin with vectors
        let bytes = reals * dtype.size() + (2 * width + 2) * size_of::<u32>() + 3 * 16;
        let fits = bytes <= limits.local_memory;
        if fits { Ok(()) } else { Err(format!("a strip takes {bytes} bytes of the {} of local memory", limits.local_memory)) }
    }
}

/// Candidates that are left for all work-items to compare.
pub(crate) const LINES: usize = 16;

/// Strips that leave their memory by one work-item for each row: what the exchanges of later strips come
/// to is found out once for all of them.
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
            assert_eq!(StripParams::choose(dtype, rows, 256, false), expected, "{dtype} {rows}");
            let narrow = expected.map(|params| StripParams { width: params.width.min(4), ..params });
            assert_eq!(StripParams::choose(dtype, rows, 256, true), narrow, "{dtype} {rows}, waiting");
        }
        // groups with few work-items: too few for any strip, or for a wide one
        for (items, width) in [(0, None), (2, None), (4, Some(2)), (16, Some(8))] {
            assert_eq!(StripParams::choose(DType::F32, 1, items, false).map(|params| params.width), width, "{items}");
        }
    }

    #[test]
    fn a_device_that_is_too_small_is_told_why() {
        let limits = Limits { work_group: 256, local_memory: 16 << 10, ..Limits::default() };
        let params = StripParams::choose(DType::F64, 4096, 256, false).unwrap();
        assert_eq!(params.check(DType::F64, &limits), Ok(()));
        assert!(params.check(DType::F64, &Limits { work_group: 128, ..limits }).unwrap_err().contains("128"));
        assert!(params.check(DType::F64, &Limits { local_memory: 4096, ..limits }).unwrap_err().contains("local memory"));
        assert!(StripParams { width: 512, ..params }.check(DType::F64, &limits).unwrap_err().contains("columns"));
        assert!(StripParams { rows: 0, ..params }.check(DType::F64, &limits).unwrap_err().contains("rows"));
        // the last of three strips would have rows on the diagonal beyond its sixteen
        let beyond = StripParams { items: 16, rows: 4, width: 6 };
        assert!(beyond.check(DType::F64, &limits).unwrap_err().contains("columns"));
        assert!(StripParams { items: 96, ..params }.check(DType::F64, &limits).unwrap_err().contains("halve"));
    }
}
