//! Products with few tiles and many terms, whose terms are divided between work-groups.

use std::sync::Arc;

use lapidary_core::Result;

use super::Sequence;
use super::gemm::Product;
use crate::call::{Arg, Call, Target, View};
use crate::product::Product as Kernel;
use crate::program::Program;
use crate::scratch::Purpose;
use crate::thresholds::Threshold;

/// Maximum number of work-items in a work-group of the kernel `sum_parts`. It is no threshold.
const SUMMERS: usize = 64;

impl<D: Target> Sequence<'_, D> {
    /// Computes a product as the sum of parts, each with a part of the terms. Returns false if the product has too few terms or too many
    /// tiles, if the device refuses a kernel, or if it lacks the memory for two parts. C is unchanged then.
    ///
    /// `divided` returns the program of `kernel` for a number of parts.
    pub(super) unsafe fn split(
        &mut self,
        kernel: &Kernel,
        divided: impl Fn(usize) -> Program,
        product: Product<'_, D::Buffer>,
    ) -> Result<bool> {
        let Product { k, alpha, a, b, beta, c } = product;
        let Some((split, parts)) = self.parts_of_terms(kernel, k, &c)? else { return Ok(false) };
        let limits = self.device.facts().limits;
        let (program, kernel_name, [mwg, nwg]) = (divided(split), kernel.kernel(), kernel.tile());
        let sum = Program::SumParts { dtype: self.dtype, items: SUMMERS.min(limits.work_group) };
        if !self.device.can_run(&program, kernel_name)? || !self.device.can_run(&sum, "sum_parts")? {
            return Ok(false);
        }
        let place = View { buffer: &*parts, at: 0, rows: c.rows, cols: c.cols, ld: c.rows };
        let sizes = [c.rows, c.cols].map(Arg::Size);
        let [one, zero] = [1.0, 0.0].map(|number| Arg::factor(self.value(number)));
        // part s ← op(A)(:, terms of s)·op(B)(terms of s, :)
        let args = [&sizes[..], &[Arg::Size(k), one], &Arg::input(a.1), &Arg::input(b.1), &[zero], &Arg::output(place)].concat();
        let local = program.local();
        let global = [c.rows.div_ceil(mwg) * local[0], c.cols.div_ceil(nwg) * split * local[1]];
        // C ← α·(part 0 + part 1 + ...) + β·C
        let sum_args = [Arg::Size(split), Arg::factor(alpha), Arg::In(&*parts), Arg::factor(beta)];
        let sum_args = [&sizes[..], &sum_args, &Arg::output(c)].concat();
        // SAFETY: the caller upholds the contract of this module. The scratch memory has room for the parts, and the arguments match the
        // kernels' parameters.
        unsafe {
            self.device.launch(&Call { program, kernel: kernel_name, global, args: &args })?;
            self.device.launch(&Call { program: sum, kernel: "sum_parts", global: [c.rows * c.cols, 1], args: &sum_args })?;
        }
        Ok(true)
    }

    /// Returns the number of parts into which the terms of a product are divided, and scratch memory for the parts. Returns `None` if the
    /// terms are not divided. With less memory there are fewer parts.
    fn parts_of_terms(&mut self, kernel: &Kernel, k: usize, c: &View<'_, D::Buffer>) -> Result<Option<(usize, Arc<D::Buffer>)>> {
        let (limits, [mwg, nwg]) = (self.device.facts().limits, kernel.tile());
        let bytes = c.rows.saturating_mul(c.cols).saturating_mul(self.dtype.size());
        let is_one_launch = |split: usize| {
            let cols = c.cols.div_ceil(nwg).saturating_mul(split);
            c.rows.div_ceil(mwg).max(cols) <= limits.groups
                && c.rows.saturating_mul(c.cols).div_ceil(SUMMERS.min(limits.work_group)) <= limits.groups
        };
        // more work-groups than occupy the device would only add traffic
        let units = self.device.facts().compute_units.unwrap_or_else(|| self.threshold(Threshold::SplitUnits));
        let tiles = c.rows.div_ceil(mwg).saturating_mul(c.cols.div_ceil(nwg));
        let enough = (self.threshold(Threshold::SplitGroups).saturating_mul(units) / tiles.max(1)).max(1);
        let mut split = kernel.parts(k).min(1 << enough.ilog2());
        while split > 1 {
            if is_one_launch(split)
                && let Some(parts) = self.scratch_if_free(Purpose::Panels, bytes.saturating_mul(split))?
            {
                return Ok(Some((split, parts)));
            }
            split /= 2;
        }
        Ok(None)
    }
}
