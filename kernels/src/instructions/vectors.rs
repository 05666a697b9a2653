//! Products of operands that lie in whole vectors, or are moved so.

use lapidary_core::{DType, Feature, Op, Result};

use super::Sequence;
use super::gemm::{Factor, Product, lines};
use crate::call::{Arg, Call, Target, View};
use crate::choices::VectorProducts;
use crate::params::VectorParams;
use crate::program::{Program, SIDE};
use crate::scratch::Purpose;

/// With fewer rows, columns or terms moving the operands costs more than it saves.
const SMALL: usize = 64;
/// Maximum number of terms (the extent k) whose operands are moved at a time; a multiple of the slice of every kernel.
const DEPTH: usize = 4096;
/// Minimum number of wide tiles. With fewer, multiprocessors of a large device would idle.
const MANY: usize = 96;
/// Work-items of a group that moves a square.
const MOVERS: usize = 256;

/// Rows and columns from which on it pays to move a B in f32 that is not transposed, since the
/// kernel is faster without turning its vectors. In f64 it multiplies long enough to hide that.
const MIN_EXTENT_TO_REPACK: usize = 2048;

/// Lines of a factor that are moved into vectors: how many, where they lie with the distances
/// of lines and of their terms, and where they go.
struct Moved<'a, B> {
    count: usize,
    source: (View<'a, B>, usize, usize),
    to: View<'a, B>,
}

// derived, these would ask for `B: Clone`
impl<B> Clone for Moved<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for Moved<'_, B> {}

impl<'a, B> Moved<'a, B> {
    /// The arguments of the kernel `pad`, except the buffer that it writes.
    fn args(&self) -> [Arg<'a, B>; 7] {
        let (source, by_line, by_k) = self.source;
        let [lines, at, by_line, by_k, dst, ld] = [self.count, source.at, by_line, by_k, self.to.at, self.to.ld].map(Arg::Size);
        [Arg::In(source.buffer), lines, at, by_line, by_k, dst, ld]
    }
}

/// Whether every column begins with a vector.
fn begins_in_vectors<B>(view: &View<'_, B>, v: usize) -> bool {
    view.at.is_multiple_of(v) && view.ld.is_multiple_of(v)
}

/// Whether every column is whole vectors.
fn is_in_vectors<B>(view: &View<'_, B>, v: usize) -> bool {
    begins_in_vectors(view, v) && view.rows.is_multiple_of(v)
}

/// A factor with its terms `p..p + k`.
fn terms<B>((op, x): Factor<'_, B>, along_rows: bool, p: usize, k: usize) -> Factor<'_, B> {
    (op, if op.is_trans() == along_rows { x.sub(p, 0, k, x.cols) } else { x.sub(0, p, x.rows, k) })
}

impl<D: Target> Sequence<'_, D> {
    pub(super) unsafe fn vectors(&mut self, products: &VectorProducts, product: Product<'_, D::Buffer>) -> Result<()> {
        let Product { k, a, b, c, .. } = product;
        let tiles = |params: &VectorParams| c.rows.div_ceil(params.mwg) * c.cols.div_ceil(params.nwg);
        // the tiles of the last columns begin inside C
        let suits = |params: &VectorParams| tiles(params) >= MANY && c.cols >= params.nwg;
        let params = products.wide.filter(suits).unwrap_or(products.narrow);
        let depth = self.depth(&params, &product);
        let beyond = c.cols < params.nwg || c.cols > params.nwg * self.device.facts().limits.groups;
        if beyond || depth == 0 {
            // SAFETY: the module's contract.
            return unsafe { self.tile(&products.tile, product) };
        }
        for p in (0..k).step_by(depth) {
            let k = depth.min(k - p);
            let beta = if p == 0 { product.beta } else { self.value(1.0) };
            let slab = Product { k, a: terms(a, true, p, k), b: terms(b, false, p, k), beta, ..product };
            // SAFETY: the module's contract.
            unsafe { self.slab(&params, slab)? };
        }
        Ok(())
    }

    /// Terms of a product that are multiplied at a time: all if nothing must be moved, else
    /// whole slices for which there is room. None if that does not pay.
    fn depth(&self, params: &VectorParams, product: &Product<'_, D::Buffer>) -> usize {
        let Product { k, c, .. } = *product;
        let (m_pad, n_pad) = self.moves(params, product);
        if m_pad + n_pad == 0 {
            return k;
        }
        let (max_scratch_bytes, groups) = (self.device.choices().max_scratch_bytes, self.device.facts().limits.groups);
        if c.rows.min(c.cols).min(k) < SMALL || m_pad.max(n_pad) > SIDE * groups {
            return 0;
        }
        let room = max_scratch_bytes / ((m_pad + n_pad) * self.dtype.size()) / params.kwg * params.kwg;
        room.min(DEPTH).min(k.next_multiple_of(params.kwg))
    }

    /// Number of lines of A and of B to be moved into vectors, in whole vectors; 0 for an operand that lies in vectors already.
    fn moves(&self, params: &VectorParams, Product { k, a, b, c, .. }: &Product<'_, D::Buffer>) -> (usize, usize) {
        let v = VectorParams::vector(self.dtype);
        let (m_pad, n_pad) = (c.rows.next_multiple_of(v), c.cols.next_multiple_of(v));
        if !k.is_multiple_of(params.kwg) || !is_in_vectors(c, v) {
            // elements of C may lie in the buffer of a factor, which is then read in elements too
            return (m_pad, n_pad);
        }
        let worth_moving = self.dtype == DType::F32 && c.rows.min(c.cols) >= MIN_EXTENT_TO_REPACK;
        let turns = params.turns_b(self.dtype) && self.device.facts().has(Feature::PartsOfVectors) && !worth_moving;
        let a_fits = !a.0.is_trans() && begins_in_vectors(&a.1, v);
        let b_fits = if b.0.is_trans() { c.cols.is_multiple_of(v) } else { turns } && begins_in_vectors(&b.1, v);
        (if a_fits { 0 } else { m_pad }, if b_fits { 0 } else { n_pad })
    }

    /// A product with so few terms that operands may be moved.
    unsafe fn slab(&mut self, params: &VectorParams, product: Product<'_, D::Buffer>) -> Result<()> {
        let Product { k, a, b, c, .. } = product;
        let (m_pad, n_pad) = self.moves(params, &product);
        let (moves_a, moves_b) = (m_pad > 0, n_pad > 0);
        let k_pad = k.next_multiple_of(params.kwg);
        let place = self.device.scratch(Purpose::Panels, (m_pad + n_pad) * k_pad * self.dtype.size())?;
        let part = |at, count| View { buffer: &*place, at, rows: count, cols: k_pad, ld: count };
        let (a_place, b_place) = (part(0, m_pad), part(m_pad * k_pad, n_pad));
        let left = moves_a.then(|| Moved { count: c.rows, source: lines(a, a.0.is_trans(), 0, 0), to: a_place });
        let right = moves_b.then(|| Moved { count: c.cols, source: lines(b, !b.0.is_trans(), 0, 0), to: b_place });
        // SAFETY: the module's contract; the scratch memory holds what is moved, and
        // the operands then lie as the kernel asks.
        unsafe {
            match (left, right) {
                (Some(first), second) => self.pad(k, first, second)?,
                (None, Some(only)) => self.pad(k, only, None)?,
                (None, None) => {}
            }
            let a = if moves_a { (Op::NoTrans, a_place) } else { a };
            let b = if moves_b { (Op::Trans, b_place) } else { b };
            let (trans_b, vec_c) = (b.0.is_trans(), is_in_vectors(&c, VectorParams::vector(self.dtype)));
            let program = Program::GemmVector { dtype: self.dtype, params: *params, trans_b, vec_c };
            self.tiles(program, "gemm_vector", [params.mwg, params.nwg], Product { k: k_pad, a, b, ..product })
        }
    }

    /// Puts lines of one or two matrices side by side, zeros where there are none.
    unsafe fn pad(&mut self, k: usize, first: Moved<'_, D::Buffer>, second: Option<Moved<'_, D::Buffer>>) -> Result<()> {
        let program = Program::Pad { dtype: self.dtype, items: 1 << MOVERS.min(self.device.facts().limits.work_group).ilog2() };
        let k_pad = first.to.cols;
        let squares = [first.to.ld.max(second.map_or(0, |second| second.to.ld)), k_pad].map(|side| side.div_ceil(SIDE));
        let global = [squares[0] * program.local()[0], squares[1] * if second.is_some() { 2 } else { 1 }];
        let (a, b) = (first.args(), second.unwrap_or(first).args());
        let args = [&[Arg::Size(k), Arg::Size(k_pad)][..], &a, &b, &[Arg::Out(first.to.buffer)]].concat();
        // SAFETY: as the caller promises; arguments as the kernel lists them.
        unsafe { self.device.launch(&Call { program, kernel: "pad", global, args: &args }) }
    }
}
