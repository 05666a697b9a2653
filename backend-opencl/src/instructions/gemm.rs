//! C ← α·op(A)·op(B) + β·C.

use lapidary_core::{Result, Scalar};
use lapidary_kernels::{PanelParams, TileParams, opencl};

use super::{Kernels, Products, Purpose, real, size};
use crate::conv::View;
use crate::queue::Arg;

/// An operand and whether it enters transposed.
pub(super) type Factor<'a> = (bool, View<'a>);

/// Bytes of a line of a packed panel: a panel of B stays in a first-level cache.
const DEPTH_BYTES: usize = 4096;
/// Most rows of A or columns of B that are packed at a time.
const PACKED: usize = 4096;

impl Kernels {
    pub(super) unsafe fn gemm<T: Scalar>(&mut self, alpha: T, a: Factor<'_>, b: Factor<'_>, beta: T, c: View<'_>) -> Result<()> {
        let k = if a.0 { a.1.rows } else { a.1.cols };
        // SAFETY: the module's contract.
        unsafe {
            if c.is_empty() {
                Ok(())
            } else if k == 0 || alpha == T::ZERO {
                self.scale(beta, c)
            } else {
                match self.products::<T>() {
                    Products::Tile(params) => self.tile(&params, k, alpha, a, b, beta, c),
                    Products::Panel(params) => self.panels(&params, k, alpha, a, b, beta, c),
                }
            }
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the arguments of gemm")]
    unsafe fn tile<T: Scalar>(
        &mut self,
        params: &TileParams,
        k: usize,
        alpha: T,
        (trans_a, a): Factor<'_>,
        (trans_b, b): Factor<'_>,
        beta: T,
        c: View<'_>,
    ) -> Result<()> {
        let TileParams { mwg, nwg, mr, nr, .. } = *params;
        let local = [mwg / mr, nwg / nr];
        let global = [c.rows.div_ceil(mwg) * local[0], c.cols.div_ceil(nwg) * local[1]];
        let sizes = [size(c.rows), size(c.cols), size(k), real(alpha)];
        let args = [&sizes[..], &Arg::matrix(a), &Arg::matrix(b), &[real(beta)], &Arg::matrix(c)].concat();
        // SAFETY: the module's contract; arguments as the kernel lists them.
        unsafe { self.launch(&opencl::gemm_tile(T::DTYPE, params, trans_a, trans_b), "gemm_tile", global, local, &args) }
    }

    /// Block by block, so that the packed panels stay small.
    #[allow(clippy::too_many_arguments, reason = "the arguments of gemm")]
    unsafe fn panels<T: Scalar>(
        &mut self,
        params: &PanelParams,
        k: usize,
        alpha: T,
        a: Factor<'_>,
        b: Factor<'_>,
        beta: T,
        c: View<'_>,
    ) -> Result<()> {
        let (depth, (mr, nr)) = (DEPTH_BYTES / T::DTYPE.size(), (params.mr(), params.nr));
        let source = opencl::gemm_panel(T::DTYPE, params);
        let rows = c.rows.min(PACKED).next_multiple_of(mr);
        let cols = c.cols.min(PACKED).next_multiple_of(nr);
        let panels = self.scratch(Purpose::Panels, (rows + cols) * k.min(depth) * T::DTYPE.size())?;
        let room = Arg::Mem(panels.handle());
        for p in (0..k).step_by(depth) {
            let kc = depth.min(k - p);
            let b_at = rows * kc;
            let beta = if p == 0 { beta } else { T::ONE };
            for j in (0..c.cols).step_by(PACKED) {
                let nc = PACKED.min(c.cols - j);
                // SAFETY: the module's contract; the panels have room for one block of each factor.
                unsafe { self.pack(&source, (nr, b_at), (nc, kc), lines(b, !b.0, p, j), room)? };
                for i in (0..c.rows).step_by(PACKED) {
                    let mc = PACKED.min(c.rows - i);
                    let sizes = [size(mc), size(nc), size(kc), real(alpha), room, size(0), size(b_at), real(beta)];
                    let args = [&sizes[..], &Arg::matrix(c.sub(i, j, mc, nc))].concat();
                    let global = [nc.div_ceil(nr), mc.div_ceil(mr)];
                    // SAFETY: as above; arguments as the kernels list them.
                    unsafe {
                        self.pack(&source, (mr, 0), (mc, kc), lines(a, a.0, p, i), room)?;
                        self.launch(&source, "gemm_panel", global, [1, 1], &args)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Packs `count` lines of `kc` elements into panels of `width` lines at `at`.
    unsafe fn pack(
        &mut self,
        source: &lapidary_kernels::Source,
        (width, at): (usize, usize),
        (count, kc): (usize, usize),
        (from, by_line, by_k): (View<'_>, usize, usize),
        room: Arg,
    ) -> Result<()> {
        let width_arg = Arg::U32(u32::try_from(width).expect("a panel is narrow"));
        let memory = [Arg::Mem(from.buffer.handle()), Arg::U64(from.at), size(by_line), size(by_k), room, size(at)];
        let args = [&[width_arg, size(count), size(kc)][..], &memory].concat();
        // SAFETY: as the caller promises; arguments as the kernel lists them.
        unsafe { self.launch(source, "pack", [count.div_ceil(width), 1], [1, 1], &args) }
    }
}

/// The lines of a factor from line `first` and element `p` on, with the distances
/// of lines and of their elements. Lines run along columns or along rows.
fn lines<'a>((_, view): Factor<'a>, along_columns: bool, p: usize, first: usize) -> (View<'a>, usize, usize) {
    let (row, col, by_line, by_k) = if along_columns { (p, first, view.ld, 1) } else { (first, p, 1, view.ld) };
    (View { at: view.element(row, col), ..view }, by_line, by_k)
}
