//! Records the most recent accesses to each part of a matrix, so that the search for dependencies finds conflicting accesses.
//!
//! An [`AccessMap`] cuts the matrix into vertical strips, at every column at which an access began or ended, and cuts each strip
//! into segments of rows. A segment stores the last command that wrote its elements, and the commands that have read its elements
//! since. A single segment replaces all segments of a strip that a write covers, so that the amortised cost of an access stays
//! small.

use crate::instruction::{Access, Region};

const NOBODY: u32 = u32::MAX;

/// A range of rows of one strip, from the end of the preceding segment up to row `end`.
#[derive(Clone, Debug)]
struct Segment {
    end: usize,
    writer: u32,
    readers: Vec<u32>,
}

/// A range of columns of the matrix, from the end of the preceding strip up to column `end`.
#[derive(Clone, Debug)]
struct Strip {
    end: usize,
    segments: Vec<Segment>,
}

/// The recorded accesses to one matrix or register. An access is recorded as long as a command that follows may have to wait for
/// it.
#[derive(Clone, Debug)]
pub(crate) struct AccessMap {
    strips: Vec<Strip>,
}

impl AccessMap {
    pub(crate) fn new(rows: usize, cols: usize) -> Self {
        let mut map = AccessMap { strips: Vec::new() };
        map.reset(rows, cols);
        map
    }

    /// Removes all recorded accesses and sets the size to `rows` × `cols`. The allocated memory is kept for reuse.
    pub(crate) fn reset(&mut self, rows: usize, cols: usize) {
        self.strips.truncate(1);
        if self.strips.is_empty() {
            self.strips.push(Strip { end: cols, segments: Vec::new() });
        }
        let strip = &mut self.strips[0];
        strip.end = cols;
        strip.segments.truncate(1);
        match strip.segments.first_mut() {
            None => strip.segments.push(Segment { end: rows, writer: NOBODY, readers: Vec::new() }),
            Some(segment) => {
                segment.readers.clear();
                (segment.end, segment.writer) = (rows, NOBODY);
            }
        }
    }

    /// Records that command `who` accesses `region`. Calls `found` with each previously recorded command for which `who` must
    /// wait.
    pub(crate) fn touch(&mut self, region: Region, access: Access, who: u32, found: &mut impl FnMut(u32)) {
        if region.rows == 0 || region.cols == 0 {
            return;
        }
        let first = self.cut(region.col);
        let last = self.cut(region.col + region.cols);
        for strip in &mut self.strips[first..last] {
            strip.touch(region.row, region.row + region.rows, access, who, found);
        }
    }

    /// Makes `col` a boundary between strips. Returns the index of the strip that begins at column `col`.
    fn cut(&mut self, col: usize) -> usize {
        if col == 0 {
            return 0;
        }
        let at = self.strips.partition_point(|strip| strip.end < col);
        if self.strips[at].end > col {
            let left = Strip { end: col, segments: self.strips[at].segments.clone() };
            self.strips.insert(at, left);
        }
        at + 1
    }
}

impl Strip {
    fn touch(&mut self, row: usize, end: usize, access: Access, who: u32, found: &mut impl FnMut(u32)) {
        let first = self.cut(row);
        let last = self.cut(end);
        for segment in &mut self.segments[first..last] {
            segment.touch(access, who, found);
        }
        if access == Access::Write {
            self.segments[first].end = end;
            self.segments.drain(first + 1..last);
        }
    }

    /// Makes `row` a boundary between segments. Returns the index of the segment that begins at row `row`.
    fn cut(&mut self, row: usize) -> usize {
        if row == 0 {
            return 0;
        }
        let at = self.segments.partition_point(|segment| segment.end < row);
        if self.segments[at].end > row {
            let top = Segment { end: row, ..self.segments[at].clone() };
            self.segments.insert(at, top);
        }
        at + 1
    }
}

impl Segment {
    fn touch(&mut self, access: Access, who: u32, found: &mut impl FnMut(u32)) {
        if self.writer != NOBODY {
            found(self.writer);
        }
        match access {
            Access::Read => {
                if self.readers.last() != Some(&who) {
                    self.readers.push(who);
                }
            }
            Access::Write => {
                self.readers.drain(..).for_each(&mut *found);
                self.writer = who;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn accesses() -> impl Strategy<Value = Vec<(Region, Access)>> {
        let region = (0..6_usize, 0..6_usize, 0..4_usize, 0..4_usize).prop_map(|(row, col, rows, cols)| Region {
            row,
            col,
            rows: rows.min(8 - row),
            cols: cols.min(8 - col),
        });
        prop::collection::vec((region, prop_oneof![Just(Access::Read), Just(Access::Write)]), 1..40)
    }

    /// The expected record of one element: the last command that wrote the element, and the commands that have read the element
    /// since.
    #[derive(Clone, Default)]
    struct Cell {
        writer: Option<u32>,
        readers: Vec<u32>,
    }

    fn by_definition(cells: &mut [Cell], region: Region, access: Access, who: u32) -> BTreeSet<u32> {
        let mut found = BTreeSet::new();
        for i in region.row..region.row + region.rows {
            for j in region.col..region.col + region.cols {
                let cell = &mut cells[i + 8 * j];
                found.extend(cell.writer);
                match access {
                    Access::Read => cell.readers.push(who),
                    Access::Write => {
                        found.extend(cell.readers.drain(..));
                        cell.writer = Some(who);
                    }
                }
            }
        }
        found.remove(&who);
        found
    }

    proptest! {
        #[test]
        fn finds_what_the_definition_finds(lists in prop::collection::vec(accesses(), 1..4)) {
            let mut map = AccessMap::new(5, 3);
            for list in lists {
                map.reset(8, 8);
                let mut cells = vec![Cell::default(); 64];
                for (who, (region, access)) in (0..).zip(list) {
                    let mut found = BTreeSet::new();
                    map.touch(region, access, who, &mut |earlier| { found.insert(earlier); });
                    prop_assert_eq!(found, by_definition(&mut cells, region, access, who));
                }
            }
        }
    }
}
