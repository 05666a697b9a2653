//! Products of operands that are stored in whole vectors, or that are copied to whole vectors first.

use std::sync::Arc;

use lapidary_core::{ErrorKind, Feature, Limits, Op, Result};

use super::Sequence;
use super::gemm::{Factor, Product, lines};
use crate::call::{Arg, Call, Target, View};
use crate::params::{VECTOR_BYTES, VectorParams};
use crate::program::{Program, SIDE};
use crate::scratch::Purpose;
use crate::thresholds::Threshold;

/// Number of work-items in a work-group of the kernel `pad`, which divides the elements of a square. It is no threshold.
const MOVERS: usize = 256;

/// Lines of a factor that the kernel `pad` copies into whole vectors: the number of lines, the source with the distances between
/// lines and between terms, and the destination.
struct CopiedLines<'a, B> {
    count: usize,
    source: (View<'a, B>, usize, usize),
    to: View<'a, B>,
}

// implemented by hand, because a derived `Clone` would require `B: Clone`
impl<B> Clone for CopiedLines<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for CopiedLines<'_, B> {}

impl<'a, B> CopiedLines<'a, B> {
    /// Returns the arguments of the kernel `pad`, except the buffer that the kernel writes.
    fn args(&self) -> [Arg<'a, B>; 7] {
        let (source, by_line, by_k) = self.source;
        let [lines, at, by_line, by_k, dst, ld] = [self.count, source.at, by_line, by_k, self.to.at, self.to.ld].map(Arg::Size);
        [Arg::In(source.buffer), lines, at, by_line, by_k, dst, ld]
    }
}

/// Returns whether every column begins at a multiple of `v` elements, the length of a vector.
fn begins_in_vectors<B>(view: &View<'_, B>, v: usize) -> bool {
    view.at.is_multiple_of(v) && view.ld.is_multiple_of(v)
}

/// Returns whether every column consists of whole vectors of `v` elements.
fn is_in_vectors<B>(view: &View<'_, B>, v: usize) -> bool {
    begins_in_vectors(view, v) && view.rows.is_multiple_of(v)
}

/// Returns the part of a factor with the terms `p..p + k`.
fn terms<B>((op, x): Factor<'_, B>, along_rows: bool, p: usize, k: usize) -> Factor<'_, B> {
    (op, if op.is_trans() == along_rows { x.sub(p, 0, k, x.cols) } else { x.sub(0, p, x.rows, k) })
}

impl<D: Target> Sequence<'_, D> {
    /// Computes a product by vector loads. Returns false if the kernel does not suit the operands, if the device refuses the kernel,
    /// if memory for copies of the operands is lacking, or if the operands are no images. C is unchanged then.
    pub(super) unsafe fn vectors(&mut self, params: &VectorParams, product: Product<'_, D::Buffer>) -> Result<bool> {
        let Product { k, c, .. } = product;
        // the last tile along the columns begins so early that the tile ends with C, so that C needs at least `nwg` columns
        let covers = (params.nwg..=params.nwg.saturating_mul(self.device.facts().limits.groups)).contains(&c.cols);
        let depth = self.depth(params, &product);
        if !covers || depth == 0 || !self.prepare(params, product, depth)? {
            return Ok(false);
        }
        for p in (0..k).step_by(depth) {
            // SAFETY: the caller upholds the contract of this module.
            unsafe { self.slab(params, self.slab_of(product, p, depth))? };
        }
        Ok(true)
    }

    /// Returns the part of a product with the terms `p..p + depth`, or fewer at the end. The parts after the first one add to C.
    fn slab_of<'b>(&self, product: Product<'b, D::Buffer>, p: usize, depth: usize) -> Product<'b, D::Buffer> {
        let k = depth.min(product.k - p);
        let beta = if p == 0 { product.beta } else { self.value(1.0) };
        Product { k, a: terms(product.a, true, p, k), b: terms(product.b, false, p, k), beta, ..product }
    }

    /// Prepares the slabs of a product: asks the device whether it can run their kernels, and allocates their scratch memory. Returns
    /// false if the device refuses a kernel, lacks the memory, or cannot read the operands as images. No kernel has been launched then, so that C is unchanged. All slabs
    /// except the last one use the same kernels and equally much memory.
    fn prepare(&mut self, params: &VectorParams, product: Product<'_, D::Buffer>, depth: usize) -> Result<bool> {
        for p in [0, (product.k - 1) / depth * depth] {
            let slab = self.slab_of(product, p, depth);
            let (m_pad, n_pad) = self.moves(params, &slab);
            if m_pad + n_pad > 0 && !self.device.can_run(&self.pad_program(), "pad")? {
                return Ok(false);
            }
            let trans_b = n_pad > 0 || slab.b.0.is_trans();
            if !self.device.can_run(&self.vector_program(params, trans_b, &slab.c), "gemm_vector")? {
                return Ok(false);
            }
            let room = match self.room(params, &slab) {
                Err(error) if error.kind() == ErrorKind::OutOfMemory => return Ok(false),
                room => room?,
            };
            if params.images && !self.are_images(params, &slab, &room)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether the device can read the operands of a slab as images. `room` holds the copies of operands.
    fn are_images(&mut self, params: &VectorParams, slab: &Product<'_, D::Buffer>, room: &D::Buffer) -> Result<bool> {
        let (m_pad, n_pad) = self.moves(params, slab);
        let elements = self.device.facts().limits.image_pixels.saturating_mul(VectorParams::vector(self.dtype));
        for (copied, (_, operand)) in [(m_pad, slab.a), (n_pad, slab.b)] {
            // `depth` limits the size of the copies
            let fits = copied > 0 || operand.element(operand.rows, operand.cols - 1) <= elements;
            let buffer = if copied > 0 { room } else { operand.buffer };
            if !fits || !self.device.can_read_image(buffer, slab.c.buffer)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns scratch memory for the copies of the operands of a slab.
    fn room(&mut self, params: &VectorParams, slab: &Product<'_, D::Buffer>) -> Result<Arc<D::Buffer>> {
        let (m_pad, n_pad) = self.moves(params, slab);
        let k_pad = slab.k.next_multiple_of(params.kwg);
        self.device.scratch(Purpose::Panels, (m_pad + n_pad) * k_pad * self.dtype.size())
    }

    fn vector_program(&self, params: &VectorParams, trans_b: bool, c: &View<'_, D::Buffer>) -> Program {
        let vec_c = is_in_vectors(c, VectorParams::vector(self.dtype));
        Program::GemmVector { dtype: self.dtype, params: *params, trans_b, vec_c }
    }

    fn pad_program(&self) -> Program {
        Program::Pad { dtype: self.dtype, items: 1 << MOVERS.min(self.device.facts().limits.work_group).ilog2() }
    }

    /// Returns how many terms are multiplied at a time: all terms if no operand must be copied, otherwise as many whole slices as
    /// scratch memory holds. Returns 0 if the copies would take more time than they save.
    fn depth(&self, params: &VectorParams, product: &Product<'_, D::Buffer>) -> usize {
        let Product { k, c, .. } = *product;
        let (m_pad, n_pad) = self.moves(params, product);
        if m_pad + n_pad == 0 {
            return k;
        }
        let Limits { groups, image_pixels, .. } = self.device.facts().limits;
        let max_image_bytes = if params.images { image_pixels.saturating_mul(VECTOR_BYTES) } else { usize::MAX };
        let max_scratch_bytes = self.device.tuning().max_scratch_bytes.min(max_image_bytes);
        if c.rows.min(c.cols).min(k) < self.threshold(Threshold::CopyOperands) || m_pad.max(n_pad) > SIDE.saturating_mul(groups) {
            return 0;
        }
        let room = max_scratch_bytes / ((m_pad + n_pad) * self.dtype.size()) / params.kwg * params.kwg;
        let terms = self.threshold(Threshold::CopiedTerms).min(k);
        room.min(terms.next_multiple_of(params.kwg))
    }

    /// Returns the number of lines of A and of B that must be copied, rounded up to whole vectors. The number is 0 for an operand
    /// that is stored in whole vectors already.
    fn moves(&self, params: &VectorParams, Product { k, a, b, c, .. }: &Product<'_, D::Buffer>) -> (usize, usize) {
        let v = VectorParams::vector(self.dtype);
        let (m_pad, n_pad) = (c.rows.next_multiple_of(v), c.cols.next_multiple_of(v));
        if !k.is_multiple_of(params.kwg) || !is_in_vectors(c, v) {
            // both factors are copied, because C may share the buffer of a factor, and one buffer has one element type in the
            // kernel
            return (m_pad, n_pad);
        }
        let worth_moving = c.rows.min(c.cols) >= self.threshold(Threshold::RepackB);
        let turns = params.transposes_b(self.dtype) && self.device.facts().has(Feature::PartsOfVectors) && !worth_moving;
        let a_fits = !a.0.is_trans() && begins_in_vectors(&a.1, v);
        let b_fits = if b.0.is_trans() { c.cols.is_multiple_of(v) } else { turns } && begins_in_vectors(&b.1, v);
        (if a_fits { 0 } else { m_pad }, if b_fits { 0 } else { n_pad })
    }

    /// Computes a product with so few terms that copies of its operands fit into scratch memory.
    unsafe fn slab(&mut self, params: &VectorParams, product: Product<'_, D::Buffer>) -> Result<()> {
        let Product { k, a, b, c, .. } = product;
        let (m_pad, n_pad) = self.moves(params, &product);
        let (moves_a, moves_b) = (m_pad > 0, n_pad > 0);
        let k_pad = k.next_multiple_of(params.kwg);
        let place = self.room(params, &product)?;
        let part = |at, count| View { buffer: &*place, at, rows: count, cols: k_pad, ld: count };
        let (a_place, b_place) = (part(0, m_pad), part(m_pad * k_pad, n_pad));
        let left = moves_a.then(|| CopiedLines { count: c.rows, source: lines(a, a.0.is_trans(), 0, 0), to: a_place });
        let right = moves_b.then(|| CopiedLines { count: c.cols, source: lines(b, !b.0.is_trans(), 0, 0), to: b_place });
        // SAFETY: the caller upholds the contract of this module. The scratch memory has room for the copies, and all operands
        // have the layout that the kernel requires.
        unsafe {
            match (left, right) {
                (Some(first), second) => self.pad(k, first, second)?,
                (None, Some(only)) => self.pad(k, only, None)?,
                (None, None) => {}
            }
            let a = if moves_a { (Op::NoTrans, a_place) } else { a };
            let b = if moves_b { (Op::Trans, b_place) } else { b };
            let program = self.vector_program(params, b.0.is_trans(), &c);
            self.tiles(program, "gemm_vector", [params.mwg, params.nwg], Product { k: k_pad, a, b, ..product })
        }
    }

    /// Copies lines of one or two matrices side by side, with zeros in the rest of the destination.
    unsafe fn pad(
        &mut self,
        k: usize,
        first: CopiedLines<'_, D::Buffer>,
        second: Option<CopiedLines<'_, D::Buffer>>,
    ) -> Result<()> {
        let program = self.pad_program();
        let k_pad = first.to.cols;
        let squares = [first.to.ld.max(second.map_or(0, |second| second.to.ld)), k_pad].map(|side| side.div_ceil(SIDE));
        let global = [squares[0] * program.local()[0], squares[1] * if second.is_some() { 2 } else { 1 }];
        let (a, b) = (first.args(), second.unwrap_or(first).args());
        let args = [&[Arg::Size(k), Arg::Size(k_pad)][..], &a, &b, &[Arg::Out(first.to.buffer)]].concat();
        // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
        unsafe { self.device.launch(&Call { program, kernel: "pad", global, args: &args }) }
    }
}
