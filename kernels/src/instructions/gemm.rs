//! Enqueues the kernels of a product C ← α·op(A)·op(B) + β·C.

use lapidary_core::{Accuracy, DType, Error, ErrorKind, Op, Result, Value};

use super::Sequence;
use super::{block, mma};
use crate::block::BlockParams;
use crate::call::{Arg, Call, Target, View};
use crate::mma::MmaParams;
use crate::params::{PanelBlocks, PanelParams};
use crate::product::Product as Kernel;
use crate::program::Program;
use crate::scratch::Purpose;

/// Maximum number of terms of a product in single precision whose error is bounded in norm. The sums of longer products would lose accuracy, and
/// `gesv_mixed` would need more steps of refinement (bench/results/opencl/2026-11-29-h200-mixed.txt).
const MAX_NORMWISE_TERMS: usize = 4096;

/// A factor of a product: the operation op and the matrix to which op is applied.
pub(super) type Factor<'a, B> = (Op, View<'a, B>);

/// A product C ← α·op(A)·op(B) + β·C with k terms in each sum, where no matrix is empty.
pub(super) struct Product<'a, B> {
    pub k: usize,
    pub alpha: Value,
    pub a: Factor<'a, B>,
    pub b: Factor<'a, B>,
    pub beta: Value,
    pub c: View<'a, B>,
}

// implemented by hand, because a derived `Clone` would require `B: Clone`
impl<B> Clone for Product<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for Product<'_, B> {}

impl<'a, B> Product<'a, B> {
    /// Returns the product that computes `rows` × `cols` elements of C, which begin at element (`i`, `j`):
    /// C(i, j) ← α·op(A)(i, :)·op(B)(:, j) + β·C(i, j).
    pub fn part(self, (i, j, m, n): (usize, usize, usize, usize)) -> Self {
        let (a, b, c) = (rows(self.a, i, m), rows((self.b.0.flip(), self.b.1), j, n), self.c.sub(i, j, m, n));
        Product { a: (self.a.0, a), b: (self.b.0, b), c, ..self }
    }

    /// Returns the product with `k` terms of each sum, from term `first` on: C ← α·op(A)(:, first..)·op(B)(first.., :) + β·C.
    fn terms(self, first: usize, k: usize) -> Self {
        let (a, b) = (rows((self.a.0.flip(), self.a.1), first, k), rows(self.b, first, k));
        Product { k, a: (self.a.0, a), b: (self.b.0, b), ..self }
    }
}

/// Returns rows `first..first + count` of op(A) with all columns.
fn rows<B>((op, a): Factor<'_, B>, first: usize, count: usize) -> View<'_, B> {
    if op.is_trans() { a.sub(0, first, a.rows, count) } else { a.sub(first, 0, count, a.cols) }
}

/// Launches `groups` work-groups of a kernel that computes tiles of C.
pub(super) unsafe fn launch<D: Target>(
    device: &mut D,
    (program, kernel): (Program, &'static str),
    groups: [usize; 2],
    Product { k, alpha, a, b, beta, c }: Product<'_, D::Buffer>,
) -> Result<()> {
    let sizes = [Arg::Size(c.rows), Arg::Size(c.cols), Arg::Size(k), Arg::factor(alpha)];
    let input = if program.reads_images() { Arg::image } else { Arg::input };
    let args = [&sizes[..], &input(a.1), &input(b.1), &[Arg::factor(beta)], &Arg::output(c)].concat();
    let local = program.local();
    let global = [groups[0] * local[0], groups[1] * local[1]];
    // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
    unsafe { device.launch(&Call { program, kernel, global, args: &args }) }
}

impl<D: Target> Sequence<'_, D> {
    pub(super) unsafe fn gemm(
        &mut self,
        alpha: Value,
        a: Factor<'_, D::Buffer>,
        b: Factor<'_, D::Buffer>,
        beta: Value,
        c: View<'_, D::Buffer>,
    ) -> Result<()> {
        let k = a.0.shape((a.1.rows, a.1.cols)).1;
        // SAFETY: the caller upholds the contract of this module.
        unsafe {
            if c.is_empty() {
                Ok(())
            } else if k == 0 || alpha.is_zero() {
                self.scale(beta, c)
            } else {
                let in_norm = self.dtype == DType::F32 && self.device.conditions().accuracy == Accuracy::Normwise;
                let most = if in_norm { MAX_NORMWISE_TERMS } else { k };
                (0..k).step_by(most).try_for_each(|first| {
                    let beta = if first == 0 { beta } else { self.value(1.0) };
                    self.multiply(Product { k, alpha, a, b, beta, c }.terms(first, most.min(k - first)))
                })
            }
        }
    }

    /// Computes a product with the first kernel that the database names for its size, that suits its operands, and that the device
    /// can run. The last kernel is used without asking the device, so that the error of its compiler is reported, unless a probe decides.
    unsafe fn multiply(&mut self, product: Product<'_, D::Buffer>) -> Result<()> {
        let (Product { k, a, b, c, .. }, dtype) = (product, self.dtype);
        let groups = self.device.facts().limits.groups;
        let kernels: Vec<Kernel> =
            self.device.tuning().products_with(self.device.conditions().accuracy, dtype, [c.rows, c.cols, k]).collect();
        for (number, &kernel) in kernels.iter().enumerate() {
            let program = match kernel {
                // SAFETY: the caller upholds the contract of this module.
                Kernel::Vector(params) => match unsafe { self.vectors(&params, product)? } {
                    true => return Ok(()),
                    false => continue,
                },
                Kernel::Tile(params) => {
                    let (trans_a, trans_b) = (a.0.is_trans(), b.0.is_trans());
                    Program::GemmTile { dtype, params, trans_a, trans_b }
                }
                Kernel::Panel(params, _) => Program::GemmPanel { dtype, params },
                Kernel::Block(params) => {
                    let trans = [a.0, b.0].map(Op::is_trans);
                    let divided = |split| {
                        let params = BlockParams { split, ..params };
                        block::program(dtype, params, trans, [c.rows, c.cols, k], groups)
                    };
                    // SAFETY: the caller upholds the contract of this module.
                    if unsafe { self.split(&kernel, divided, product)? } {
                        return Ok(());
                    }
                    divided(1)
                }
                Kernel::Mma(params) => {
                    let Some(program) = mma::program(dtype, MmaParams { split: 1, ..params }, &product) else { continue };
                    let divided = |split| mma::program(dtype, MmaParams { split, ..params }, &product).unwrap_or(program);
                    // SAFETY: the caller upholds the contract of this module.
                    if unsafe { self.split(&kernel, divided, product)? } {
                        return Ok(());
                    }
                    program
                }
            };
            let is_last = number + 1 == kernels.len() && program.probe().is_none();
            if !is_last && !self.device.can_run(&program, kernel.kernel())? {
                continue;
            }
            // SAFETY: the caller upholds the contract of this module.
            return unsafe {
                match kernel {
                    Kernel::Panel(params, blocks) => self.panels(&params, &blocks, product),
                    Kernel::Mma(_) => self.tiles_beside_panel(program, kernel.kernel(), kernel.tile(), product),
                    Kernel::Tile(_) | Kernel::Vector(_) | Kernel::Block(_) => {
                        self.tiles(program, kernel.kernel(), kernel.tile(), product)
                    }
                }
            };
        }
        Err(Error::new(ErrorKind::Unsupported, "gemm", "the database names no kernel that the device can run"))
    }

    /// Computes a product with a kernel in which each work-group computes one tile of C.
    pub(super) unsafe fn tiles(
        &mut self,
        program: Program,
        kernel: &'static str,
        tile @ [mwg, nwg]: [usize; 2],
        product: Product<'_, D::Buffer>,
    ) -> Result<()> {
        self.parts((product.c.rows, product.c.cols), tile, |device, part @ (.., m, n)| {
            // SAFETY: the caller upholds the contract of this module.
            unsafe { launch(device, (program, kernel), [m.div_ceil(mwg), n.div_ceil(nwg)], product.part(part)) }
        })
    }

    /// Chooses the number of terms, and the number of rows of A and of columns of B, that are packed at a time. The packed block
    /// fits scratch memory, but contains at least one term of one panel of each factor.
    fn packed(&self, params: &PanelParams, blocks: &PanelBlocks, k: usize) -> (usize, [usize; 2]) {
        let (mr, nr) = (params.mr(), params.nr);
        let room = self.device.tuning().max_scratch_bytes / self.dtype.size();
        // if scratch memory is short, fewer terms are packed at a time: about as many as rows of A or columns of B, and so few that a
        // packed panel of `mr` rows or `nr` columns fits, but at least one term
        let short = (room / 2).isqrt().min(room / (2 * mr.max(nr))).max(1);
        let depth = blocks.kc.min(k).min(short);
        // whole panels, and at least one
        let lines = |most: usize, width: usize| most.next_multiple_of(width).min((room / depth / 2 / width * width).max(width));
        (depth, [lines(blocks.mc, mr), lines(blocks.nc, nr)])
    }

    /// Computes a product block by block, so that the packed panels stay small.
    unsafe fn panels(
        &mut self,
        params: &PanelParams,
        blocks: &PanelBlocks,
        Product { k, alpha, a, b, beta, c }: Product<'_, D::Buffer>,
    ) -> Result<()> {
        let ((depth, [most_rows, most_cols]), (mr, nr)) = (self.packed(params, blocks, k), (params.mr(), params.nr));
        let program = Program::GemmPanel { dtype: self.dtype, params: *params };
        let rows = c.rows.min(most_rows).next_multiple_of(mr);
        let cols = c.cols.min(most_cols).next_multiple_of(nr);
        let panels = self.device.scratch(Purpose::Panels, (rows + cols) * depth * self.dtype.size())?;
        for p in (0..k).step_by(depth) {
            let kc = depth.min(k - p);
            let b_at = rows * kc;
            let beta = if p == 0 { beta } else { self.value(1.0) };
            for j in (0..c.cols).step_by(most_cols) {
                let nc = most_cols.min(c.cols - j);
                // SAFETY: the caller upholds the contract of this module, and the panels have room for one block of each factor.
                unsafe { self.pack(program, (nr, b_at), (nc, kc), lines(b, !b.0.is_trans(), p, j), &panels)? };
                for i in (0..c.rows).step_by(most_rows) {
                    let mc = most_rows.min(c.rows - i);
                    let sizes = [Arg::Size(mc), Arg::Size(nc), Arg::Size(kc), Arg::factor(alpha)];
                    let packed = [Arg::In(&*panels), Arg::Size(0), Arg::Size(b_at), Arg::factor(beta)];
                    let args = [&sizes[..], &packed, &Arg::output(c.sub(i, j, mc, nc))].concat();
                    let global = [nc.div_ceil(nr), mc.div_ceil(mr)];
                    // SAFETY: the panels have room for one block of each factor, and the arguments match the kernels' parameters.
                    unsafe {
                        self.pack(program, (mr, 0), (mc, kc), lines(a, a.0.is_trans(), p, i), &panels)?;
                        self.device.launch(&Call { program, kernel: "gemm_panel", global, args: &args })?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Packs `count` lines of `kc` elements into panels of `width` lines, which begin at element `at` of `panels`.
    unsafe fn pack(
        &mut self,
        program: Program,
        (width, at): (usize, usize),
        (count, kc): (usize, usize),
        (from, by_line, by_k): (View<'_, D::Buffer>, usize, usize),
        panels: &D::Buffer,
    ) -> Result<()> {
        let sizes = [width, count, kc].map(Arg::Size);
        let source = [Arg::In(from.buffer), Arg::Size(from.at), Arg::Size(by_line), Arg::Size(by_k)];
        let args = [&sizes[..], &source, &[Arg::Out(panels), Arg::Size(at)]].concat();
        // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
        unsafe { self.device.launch(&Call { program, kernel: "pack", global: [count.div_ceil(width), 1], args: &args }) }
    }
}

/// Returns the part of a factor from line `first` and element `p` on, the distance between lines, and the distance between
/// elements of a line. A line is a column of the matrix if `along_columns` is set, and a row otherwise.
pub(super) fn lines<B>((_, view): Factor<'_, B>, along_columns: bool, p: usize, first: usize) -> (View<'_, B>, usize, usize) {
    let (row, col, by_line, by_k) = if along_columns { (p, first, view.ld, 1) } else { (first, p, 1, view.ld) };
    (View { at: view.element(row, col), ..view }, by_line, by_k)
}
