//! Products that leave multiprocessors free for a panel of LU, which another queue factors at the same time.
//!
//! A GPU may start a work-group of a kernel only after all work-groups of earlier kernels in any queue have started. A panel is a chain of
//! small kernels, each of which would wait for a large product. A product beside a panel is therefore launched in parts, one after the other.
//! A part has fewer work-groups than the device has multiprocessors.

use std::ops::Range;

use lapidary_core::Result;

use super::Sequence;
use super::gemm::Product;
use crate::call::Target;
use crate::program::Program;
use crate::thresholds::Threshold;

/// Returns the numbers of rows and of columns of parts into which a product of `tall` × `wide` tiles is cut, so that no part has more than
/// `most` tiles. There are as few parts as possible. Of several ways to cut, the one with the parts closest to a square is chosen, because a
/// square part reads the fewest operands.
fn cut([tall, wide]: [usize; 2], most: usize) -> [usize; 2] {
    let of_rows = |rows: usize| {
        let height = tall.div_ceil(rows);
        (height <= most).then(|| {
            let cols = wide.div_ceil((most / height).min(wide));
            (rows * cols, height + wide.div_ceil(cols), [rows, cols])
        })
    };
    (1..=tall).filter_map(of_rows).min().map_or([tall, wide], |(_, _, counts)| counts)
}

/// Cuts an extent into `count` ranges of whole tiles, whose numbers of tiles differ by at most one. The last tile may be a part of a tile.
fn ranges(extent: usize, tile: usize, count: usize) -> impl Iterator<Item = Range<usize>> {
    let tiles = extent.div_ceil(tile);
    let bound = move |part: usize| (part * tiles / count * tile).min(extent);
    (0..count).map(move |part| bound(part)..bound(part + 1))
}

impl<D: Target> Sequence<'_, D> {
    /// Returns the maximum number of work-groups of a launch that leaves multiprocessors free for a panel. Returns `None` if no panel runs at
    /// the same time, or if the number of multiprocessors is not known.
    fn groups_beside_panel(&self) -> Option<usize> {
        let (rows, units) = (self.device.beside_panel()?, self.device.facts().compute_units?);
        let rows_of_unit = self.threshold(Threshold::BesidePanel);
        // the products inside a short panel need multiprocessors, too, and the products beside a tall panel need more than the panel
        (rows_of_unit > 0).then(|| (units - rows.div_ceil(rows_of_unit).clamp(units / 8, units / 4)).max(1))
    }

    /// Computes a product as [`tiles`](Self::tiles) does, in parts if a panel runs at the same time. Each work-group computes the same
    /// elements in the same order as without parts.
    pub(super) unsafe fn tiles_beside_panel(
        &mut self,
        program: Program,
        kernel: &'static str,
        tile @ [mwg, nwg]: [usize; 2],
        product: Product<'_, D::Buffer>,
    ) -> Result<()> {
        let (m, n) = (product.c.rows, product.c.cols);
        let tiles = [m.div_ceil(mwg), n.div_ceil(nwg)];
        let [of_rows, of_cols] = self.groups_beside_panel().map_or([1, 1], |most| cut(tiles, most));
        for cols in ranges(n, nwg, of_cols) {
            for rows in ranges(m, mwg, of_rows) {
                let part = product.part((rows.start, cols.start, rows.len(), cols.len()));
                // SAFETY: the caller upholds the contract of this module, and the parts do not overlap.
                unsafe { self.tiles(program, kernel, tile, part)? };
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lapidary_core::{DType, DeviceFacts, Instruction, Limits, Lookahead, Op, Value};

    use super::*;
    use crate::call::{Arg, Call, View};
    use crate::database::Database;
    use crate::instructions::enqueue;
    use crate::scratch::Purpose;
    use crate::tuning::{Dialect, Tuning};

    /// A launch of a product: the sizes of C, and the places and leading dimensions of A, B and C.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Part {
        groups: usize,
        sizes: [usize; 3],
        places: [[usize; 2]; 3],
    }

    /// A device that runs no kernel, while another queue factors a panel.
    struct Recorder {
        facts: DeviceFacts,
        tuning: Tuning,
        beside_panel: Option<usize>,
        parts: Vec<Part>,
    }

    impl Target for Recorder {
        type Buffer = ();

        fn facts(&self) -> &DeviceFacts {
            &self.facts
        }

        fn tuning(&self) -> &Tuning {
            &self.tuning
        }

        fn beside_panel(&self) -> Option<usize> {
            self.beside_panel
        }

        unsafe fn launch(&mut self, call: &Call<'_, '_, ()>) -> Result<()> {
            let local = call.program.local();
            let size = |at: usize| match call.args[at] {
                Arg::Size(size) => size,
                other => panic!("{other:?}"),
            };
            let groups = [0, 1].map(|dimension: usize| call.global[dimension].div_ceil(local[dimension])).into_iter().product();
            let places = [5, 8, 12].map(|at| [size(at), size(at + 1)]);
            self.parts.push(Part { groups, sizes: [0, 1, 2].map(size), places });
            Ok(())
        }

        fn scratch(&mut self, _: Purpose, _: usize) -> Result<Arc<()>> {
            unreachable!("the terms are not divided")
        }
    }

    /// Returns the launches of C ← C − A·op(B), where the leading dimension of each matrix is 1000, beside a panel of `beside_panel` rows
    /// on a device of 12 multiprocessors.
    fn launched(entry: &str, (op_b, [m, n, k]): (Op, [usize; 3]), beside_panel: Option<usize>) -> Vec<Part> {
        let limits = Limits { work_group: 1024, local_memory: 48 << 10, groups: 65_535, ..Limits::default() };
        let facts = DeviceFacts { compute_units: Some(12), limits, ..DeviceFacts::new("test:0") };
        let tuning = Tuning::lookup(Database::shipped(), &facts, Dialect::OpenClC);
        let tuning = tuning.preferring(&format!("{entry}\nstop gemm"), &facts, Dialect::OpenClC).unwrap();
        let mut recorder = Recorder { facts, tuning, beside_panel, parts: Vec::new() };
        let view = |at, (rows, cols)| View { buffer: &(), at, rows, cols, ld: 1000 };
        let [alpha, beta] = [-1.0, 1.0].map(Value::F64);
        let (a, b, c) = (view(1, (m, k)), view(2, op_b.shape((k, n))), view(3, (m, n)));
        let product = Instruction::Gemm { alpha, op_a: Op::NoTrans, a, op_b, b, beta, c };
        // SAFETY: the recorder runs no kernel.
        unsafe { enqueue(&mut recorder, DType::F64, &product).unwrap() };
        recorder.parts
    }

    const MMA: &str = "gemm_mma mwg=32 nwg=32 kwg=16 mw=16 nw=16 stages=2 raster=2 split=1 unit=0 guarded=1\n";

    /// A product beside a panel is computed in parts, which cover each element of C once. The panel leaves some multiprocessors free, and a part
    /// has at most one work-group for each of them. A part reads the rows of A and the columns of op(B) that belong to its elements of C.
    #[test]
    fn parts_of_a_product_leave_multiprocessors_free() {
        let (m, n, k) = (300, 200, 40);
        for op_b in [Op::NoTrans, Op::Trans] {
            let all = |entry: &str, rows| launched(&format!("{MMA}{entry}"), (op_b, [m, n, k]), rows);
            let whole = Part { groups: 10 * 7, sizes: [m, n, k], places: [[1, 1000], [2, 1000], [3, 1000]] };
            // the shipped value is 0
            assert_eq!([all("", Some(100)), all("beside_panel rows=25", None)], [vec![whole], vec![whole]]);
            for (rows, most) in [(50, 10), (51, 9), (10_000, 9)] {
                let mut covered = vec![0; m * n];
                for Part { groups, sizes: [rows, cols, terms], places } in all("beside_panel rows=25", Some(rows)) {
                    let [i, j] = [(places[2][0] - 3) % 1000, (places[2][0] - 3) / 1000];
                    let b = if op_b == Op::Trans { 2 + j } else { 2 + 1000 * j };
                    assert_eq!((terms, [i % 32, j % 32], [places[0][0], places[1][0]]), (k, [0; 2], [1 + i, b]));
                    assert!(groups <= most && groups == rows.div_ceil(32) * cols.div_ceil(32), "{groups} of {most}");
                    (j..j + cols).for_each(|j| covered[i + j * m..i + rows + j * m].iter_mut().for_each(|count| *count += 1));
                }
                assert!(covered.iter().all(|&count| count == 1), "beside a panel of {rows} rows");
            }
        }
        let tile = "gemm_tile mwg=32 nwg=32 kwg=8 mr=4 nr=4 vwm=1 stages=2\nbeside_panel rows=25";
        assert_eq!(launched(tile, (Op::NoTrans, [m, n, k]), Some(100)).len(), 1, "other kernels are launched whole");
    }

    /// The shipped entries for compute capability 9.0 leave 30 of 132 multiprocessors free for a panel of 7680 rows, and never less than an
    /// eighth or more than a quarter of them.
    #[test]
    fn shipped_entries_leave_a_multiprocessor_for_each_256_rows() {
        let limits = Limits { work_group: 1024, local_memory: 48 << 10, groups: 65_535, ..Limits::default() };
        let mut facts = DeviceFacts { compute_units: Some(132), queues: 2, limits, ..DeviceFacts::new("test:0") };
        facts.identity.architecture = "sm_90".to_owned();
        let tuning = Tuning::lookup(Database::shipped(), &facts, Dialect::OpenClC);
        let lookahead = [DType::F32, DType::F64].map(|dtype| tuning.lookahead(dtype));
        assert_eq!(lookahead, [Lookahead { min_order: 4096, min_nb: 1024 }; 2]);
        let view = |at, rows, cols| View { buffer: &(), at, rows, cols, ld: 8192 };
        let [alpha, beta] = [-1.0, 1.0].map(Value::F64);
        let (op_a, op_b) = (Op::NoTrans, Op::NoTrans);
        let (a, b, c) = (view(512, 7680, 512), view(8192 * 1024, 512, 7168), view(8192 * 1024 + 512, 7680, 7168));
        // the second panel gets an eighth of the device, and the third one gets a quarter of it
        for (rows, most, parts) in [(7680, 102, 35), (512, 116, 30), (100_000, 99, 35)] {
            let (facts, tuning) = (facts.clone(), tuning.clone());
            let mut recorder = Recorder { facts, tuning, beside_panel: Some(rows), parts: Vec::new() };
            // SAFETY: the recorder runs no kernel.
            unsafe { enqueue(&mut recorder, DType::F64, &Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c }).unwrap() };
            let groups: Vec<usize> = recorder.parts.iter().map(|part| part.groups).collect();
            // 60 × 56 tiles of 128 × 128 elements
            assert_eq!((groups.iter().sum::<usize>(), groups.len()), (60 * 56, parts), "{groups:?}");
            assert!(groups.iter().all(|groups| (most * 4 / 5..=most).contains(groups)), "{groups:?}");
        }
    }

    /// The parts of all ways to cut cover each tile once, and no part has more tiles than allowed.
    #[test]
    fn parts_cover_each_tile_once_within_the_limit() {
        for tall in 1..40 {
            for wide in [1, 2, 3, 7, 30, 64] {
                for most in [1, 2, 5, 36, 100] {
                    let counts = cut([tall, wide], most);
                    let [rows, cols] = [(tall, counts[0]), (wide, counts[1])].map(|(extent, count)| {
                        let ranges: Vec<_> = ranges(extent, 1, count).collect();
                        let ends = ranges.iter().map(|range| range.end).collect::<Vec<_>>();
                        assert!(ranges.iter().all(|range| !range.is_empty()) && ends.last() == Some(&extent));
                        assert!(ranges.iter().skip(1).map(|range| range.start).eq(ends[..count - 1].iter().copied()));
                        ranges.iter().map(Range::len).max().unwrap()
                    });
                    assert!(rows * cols <= most, "{tall} × {wide} by {most}: {counts:?}");
                    assert!(counts[0] * counts[1] >= (tall * wide).div_ceil(most));
                }
            }
        }
    }

    /// Large products take at most a tenth more parts than their number of tiles requires, and their parts are about square.
    #[test]
    fn parts_of_large_products_are_full() {
        assert_eq!(cut([60, 56], 100), [5, 7]);
        assert_eq!([cut([60, 1], 100), cut([1, 300], 100), cut([10, 10], 100)], [[1, 1], [1, 3], [1, 1]]);
        for tall in 20..100 {
            for most in [68, 100, 116] {
                let [rows, cols] = cut([tall, tall - 4], most);
                let least = (tall * (tall - 4)).div_ceil(most);
                assert!(rows * cols <= least + least.div_ceil(10) + 1, "{tall} by {most}: {rows} × {cols} parts, at least {least}");
            }
        }
    }

    #[test]
    fn the_last_range_may_end_within_a_tile() {
        assert_eq!(ranges(100, 16, 3).collect::<Vec<_>>(), [0..32, 32..64, 64..100]);
    }
}
