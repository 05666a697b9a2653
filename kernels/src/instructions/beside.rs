//! Products that leave multiprocessors free for a panel of LU, which another queue factors at the same time.
//!
//! A GPU may start a work-group of a kernel only after all work-groups of earlier kernels in any queue have started. A panel is a chain of
//! small kernels, each of which would wait for a large product. A product beside a panel therefore has fewer work-groups than the device has
//! multiprocessors, and each of them computes several tiles. The threshold `beside_panel` is chosen so that the panel has been factored when
//! these work-groups end. Another launch on the whole device then computes the rest of the product.

use lapidary_core::{PanelShape, Result};

use super::Sequence;
use super::gemm::{Product, launch};
use crate::call::Target;
use crate::program::Program;
use crate::thresholds::Threshold;

/// Minimum number of free multiprocessors, in eighths of all multiprocessors. The products inside a panel use them, too.
const MIN_FREE_EIGHTHS: usize = 3;
/// Number of multiprocessors that are free in addition to those of the work-groups that factor a panel together.
const SPARE: usize = 2;

impl<D: Target> Sequence<'_, D> {
    /// Returns the number of work-groups of a product that runs while another queue factors a panel. Returns `None` if no queue factors a
    /// panel, or if the device does not state the number of its multiprocessors.
    ///
    /// The work-groups that factor a panel wait for one another, and each of them may need a multiprocessor of its own.
    fn groups_beside_panel(&self) -> Option<usize> {
        let (PanelShape { rows, cols }, units) = (self.device.conditions().beside_panel?, self.device.facts().compute_units?);
        let tuning = self.device.tuning();
        let of_panel = tuning.held_shapes(self.dtype, rows).next();
        let together = of_panel.map_or(0, |shape| tuning.held_rows.groups(rows, shape, cols) + SPARE);
        Some(units.saturating_sub(together.max(units * MIN_FREE_EIGHTHS / 8)).max(1))
    }

    /// Computes a product by `gemm_mma`. If a panel is factored at the same time, the product leaves multiprocessors free. Each element of the
    /// product has the same bits as without a panel.
    pub(super) unsafe fn tiles_beside_panel(
        &mut self,
        program: Program,
        kernel: &'static str,
        tile @ [mwg, nwg]: [usize; 2],
        product: Product<'_, D::Buffer>,
    ) -> Result<()> {
        let (m, n) = (product.c.rows, product.c.cols);
        let (tall, tiles_of_group) = (m.div_ceil(mwg), self.threshold(Threshold::BesidePanel));
        let groups = self.groups_beside_panel().filter(|&groups| tiles_of_group > 0 && groups < tall * n.div_ceil(nwg));
        // columns of C that are computed beside the panel
        let beside = groups.map_or(0, |groups| groups.saturating_mul(tiles_of_group).div_ceil(tall).saturating_mul(nwg).min(n));
        // SAFETY: the caller upholds the contract of this module, and the two products have no element of C in common.
        unsafe {
            if let Some(groups) = groups {
                launch(self.device, (program.looping(), kernel), [groups, 1], product.part((0, 0, m, beside)))?;
            }
            if beside < n { self.tiles(program, kernel, tile, product.part((0, beside, m, n - beside))) } else { Ok(()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lapidary_core::{Conditions, DType, DeviceFacts, Instruction, Lookahead, Op, Value};

    use super::*;
    use crate::call::{Arg, Call, View};
    use crate::database::Database;
    use crate::instructions::enqueue;
    use crate::scratch::Purpose;
    use crate::tuning::{Dialect, Tuning};

    /// A launch of a product: its work-groups, whether they may compute several tiles, the sizes m, n and k, and the places and leading
    /// dimensions of A, B and C.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Part {
        groups: usize,
        loops: bool,
        sizes: [usize; 3],
        places: [[usize; 2]; 3],
    }

    /// A device that runs no kernel, while another queue factors a panel.
    struct Recorder {
        facts: DeviceFacts,
        tuning: Tuning,
        beside_panel: Option<PanelShape>,
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

        fn conditions(&self) -> Conditions {
            Conditions { beside_panel: self.beside_panel, ..Conditions::default() }
        }

        unsafe fn launch(&mut self, call: &Call<'_, '_, ()>) -> Result<()> {
            let local = call.program.local();
            let size = |at: usize| match call.args[at] {
                Arg::Size(size) => size,
                other => panic!("{other:?}"),
            };
            let groups = [0, 1].map(|dimension: usize| call.global[dimension].div_ceil(local[dimension])).into_iter().product();
            let loops = matches!(call.program, Program::GemmMma { loops: true, .. });
            let places = [5, 8, 12].map(|at| [size(at), size(at + 1)]);
            self.parts.push(Part { groups, loops, sizes: [0, 1, 2].map(size), places });
            Ok(())
        }

        fn scratch(&mut self, _: Purpose, _: usize) -> Result<Arc<()>> {
            unreachable!("the terms are not divided")
        }
    }

    /// Returns the launches of C ← C − A·op(B), where the leading dimension of each matrix is `ld`.
    fn launched(mut recorder: Recorder, op_b: Op, [m, n, k]: [usize; 3], ld: usize) -> Vec<Part> {
        let view = |at, (rows, cols)| View { buffer: &(), at, rows, cols, ld };
        let [alpha, beta] = [-1.0, 1.0].map(Value::F64);
        let (a, b, c) = (view(2, (m, k)), view(4, op_b.shape((k, n))), view(6, (m, n)));
        let product = Instruction::Gemm { alpha, op_a: Op::NoTrans, a, op_b, b, beta, c };
        // SAFETY: the recorder runs no kernel.
        unsafe { enqueue(&mut recorder, DType::F64, &product).unwrap() };
        recorder.parts
    }

    fn facts(units: usize) -> DeviceFacts {
        let mut facts = DeviceFacts::new("test:0");
        facts.limits = crate::limits(1024, 48 << 10);
        facts.limits.groups = 65_535;
        (facts.compute_units, facts.queues) = (Some(units), 2);
        facts
    }

    /// A product beside a panel leaves three eighths of the multiprocessors free. Its work-groups compute the number of tiles that the threshold
    /// names, and another launch computes the rest. Both launches together cover each element of C once. They read the rows of A and the
    /// columns of op(B) that belong to their elements of C.
    #[test]
    fn a_product_beside_a_panel_leaves_multiprocessors_free() {
        let (m, n, k) = (300, 200, 40);
        let on = |family: &str, entry: &str, op_b, beside_panel| {
            let (facts, text) = (facts(12), format!("{family}\nstop gemm\n{entry}"));
            let tuning = Tuning::lookup(Database::shipped(), &facts, Dialect::OpenClC);
            let tuning = tuning.preferring(&text, &facts, Dialect::OpenClC).unwrap();
            launched(Recorder { facts, tuning, beside_panel, parts: Vec::new() }, op_b, [m, n, k], 1000)
        };
        let mma = "gemm_mma mwg=32 nwg=32 kwg=16 mw=16 nw=16 stages=2 raster=2 split=1 unit=8 guarded=1 ptx=0";
        let panel = Some(PanelShape { rows: 50, cols: 40 });
        for op_b in [Op::NoTrans, Op::Trans] {
            let whole = Part { groups: 10 * 7, loops: false, sizes: [m, n, k], places: [[2, 1000], [4, 1000], [6, 1000]] };
            // the shipped value is 0
            assert_eq!([on(mma, "", op_b, panel), on(mma, "beside_panel tiles=3", op_b, None)], [vec![whole], vec![whole]]);
            // 8 work-groups with three tiles each compute at least 24 tiles, which lie in 3 of the 7 columns of 10 tiles
            let b_of_rest = if op_b == Op::Trans { 4 + 96 } else { 4 + 96 * 1000 };
            let beside = Part { groups: 8, loops: true, sizes: [m, 96, k], ..whole };
            let places = [[2, 1000], [b_of_rest, 1000], [6 + 96 * 1000, 1000]];
            let rest = Part { groups: 10 * 4, sizes: [m, n - 96, k], places, ..whole };
            assert_eq!(on(mma, "beside_panel tiles=3", op_b, panel), [beside, rest]);
            assert_eq!(on(mma, "beside_panel tiles=9", op_b, panel), [Part { groups: 8, loops: true, ..whole }], "no rest");
        }
        let tile = "gemm_tile mwg=32 nwg=32 kwg=8 mr=4 nr=4 vwm=1 stages=2";
        assert_eq!(on(tile, "beside_panel tiles=3", Op::NoTrans, panel).len(), 1, "other kernels are launched whole");
        let large = "gemm_mma mwg=128 nwg=128 kwg=16 mw=64 nw=32 stages=2 raster=2 split=1 unit=8 guarded=1 ptx=0";
        assert_eq!(on(large, "beside_panel tiles=3", Op::NoTrans, panel)[0].groups, 6, "there is a multiprocessor for each tile");
    }

    /// By the shipped entries for compute capability 9.0, a product leaves a multiprocessor for each work-group that factors the panel, and at
    /// least three eighths of all multiprocessors.
    #[test]
    fn shipped_entries_leave_a_multiprocessor_for_each_work_group_of_a_panel() {
        let mut facts = facts(132);
        facts.identity.architecture = "sm_90".to_owned();
        let tuning = Tuning::lookup(Database::shipped(), &facts, Dialect::OpenClC);
        let lookahead = [DType::F32, DType::F64].map(|dtype| tuning.lookahead(dtype));
        assert_eq!(lookahead, [Lookahead { min_order: 2048, min_nb: 1024 }; 2]);
        // 64 work-groups exchange the rows of 2048 columns, and 56 work-groups hold 14336 rows
        for (rows, cols, free) in [(7168, 1024, 49), (14336, 2048, 64 + 2), (14336, 1024, 56 + 2)] {
            let (facts, tuning, beside_panel) = (facts.clone(), tuning.clone(), Some(PanelShape { rows, cols }));
            let parts =
                launched(Recorder { facts, tuning, beside_panel, parts: Vec::new() }, Op::NoTrans, [8192, 8192, 1024], 8192);
            assert_eq!((parts[0].groups, parts[0].loops), (132 - free, true), "{rows} × {cols}");
            assert_eq!(parts.iter().map(|part| part.sizes[1]).sum::<usize>(), 8192);
        }
    }
}
