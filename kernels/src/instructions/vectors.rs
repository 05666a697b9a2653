//! Products of operands that lie in whole vectors, or are moved so.

use lapidary_core::{Result, Scalar};

use super::Sequence;
use super::gemm::{Factor, lines};
use crate::call::{Arg, Call, Purpose, Target, VectorProducts, View};
use crate::params::VectorParams;
use crate::program::Program;

/// Below so many rows, columns or terms moving the operands costs more than it saves.
const SMALL: usize = 64;
/// Most terms for which operands are moved at a time.
const DEPTH: usize = 4096;
/// Tiles from which on wide ones leave no multiprocessor of a large device idle.
const MANY: usize = 96;
/// Work-items of a group that moves a square.
const MOVERS: usize = 256;

/// Columns from which on it pays to move a B that is not transposed, since the kernel is
/// faster without turning its vectors.
const WORTH_MOVING: usize = 3072;

fn lies_in_vectors<B>(view: &View<'_, B>, v: usize) -> bool {
    view.at.is_multiple_of(v) && view.ld.is_multiple_of(v)
}

/// A factor with its terms `p..p + k`.
fn terms<B>((trans, x): Factor<'_, B>, along_rows: bool, p: usize, k: usize) -> Factor<'_, B> {
    (trans, if trans == along_rows { x.sub(p, 0, k, x.cols) } else { x.sub(0, p, x.rows, k) })
}

impl<D: Target> Sequence<'_, D> {
    #[allow(clippy::too_many_arguments, reason = "the arguments of gemm")]
    pub(super) unsafe fn vectors<T: Scalar>(
        &mut self,
        products: &VectorProducts,
        k: usize,
        alpha: T,
        a: Factor<'_, D::Buffer>,
        b: Factor<'_, D::Buffer>,
        beta: T,
        c: View<'_, D::Buffer>,
    ) -> Result<()> {
        if c.rows.min(c.cols).min(k) < SMALL {
            // SAFETY: the module's contract.
            return unsafe { self.tile(&products.tile, k, alpha, a, b, beta, c) };
        }
        let tiles = |params: &VectorParams| c.rows.div_ceil(params.mwg) * c.cols.div_ceil(params.nwg);
        let params = products.wide.filter(|wide| tiles(wide) >= MANY).unwrap_or(products.narrow);
        let moves = self.moves::<T>(&params, k, a, b, &c);
        let depth = if moves == (false, false) { k } else { DEPTH.min(k) };
        for p in (0..k).step_by(depth) {
            let kc = depth.min(k - p);
            let beta = if p == 0 { beta } else { T::ONE };
            // SAFETY: the module's contract.
            unsafe { self.slab(&params, kc, alpha, terms(a, true, p, kc), terms(b, false, p, kc), beta, c)? };
        }
        Ok(())
    }

    /// Which of A and B must be moved into vectors.
    fn moves<T: Scalar>(
        &self,
        params: &VectorParams,
        k: usize,
        a: Factor<'_, D::Buffer>,
        b: Factor<'_, D::Buffer>,
        c: &View<'_, D::Buffer>,
    ) -> (bool, bool) {
        let v = VectorParams::vector(T::DTYPE);
        if !k.is_multiple_of(params.kwg) || !lies_in_vectors(c, v) || !c.rows.is_multiple_of(v) {
            // elements of C may lie in the buffer of a factor, which is then read in elements too
            return (true, true);
        }
        let turns = params.turns_b(T::DTYPE) && self.device.choices().parts_of_vectors && c.cols < WORTH_MOVING;
        let b_fits = if b.0 { c.cols.is_multiple_of(v) } else { turns };
        (a.0 || !lies_in_vectors(&a.1, v), !b_fits || !lies_in_vectors(&b.1, v))
    }

    /// C ← α·A·op(B) + β·C for so few terms that operands may be moved.
    #[allow(clippy::too_many_arguments, reason = "the arguments of gemm")]
    unsafe fn slab<T: Scalar>(
        &mut self,
        params: &VectorParams,
        k: usize,
        alpha: T,
        a: Factor<'_, D::Buffer>,
        b: Factor<'_, D::Buffer>,
        beta: T,
        c: View<'_, D::Buffer>,
    ) -> Result<()> {
        let v = VectorParams::vector(T::DTYPE);
        let (moves_a, moves_b) = self.moves::<T>(params, k, a, b, &c);
        let k_pad = k.next_multiple_of(params.kwg);
        let lines_of = |moved: bool, count: usize| if moved { count.next_multiple_of(v) } else { 0 };
        let (m_pad, n_pad) = (lines_of(moves_a, c.rows), lines_of(moves_b, c.cols));
        let scratch = self.device.scratch(Purpose::Panels, (m_pad + n_pad) * k_pad * T::DTYPE.size())?;
        let place = |at, rows| View { buffer: &*scratch, at, rows, cols: k_pad, ld: rows };
        let vec_c = lies_in_vectors(&c, v) && c.rows.is_multiple_of(v);
        // SAFETY: the module's contract; the scratch memory holds what is moved.
        unsafe {
            let a = if moves_a { self.pad::<T>((c.rows, k), lines(a, a.0, 0, 0), place(0, m_pad))? } else { a.1 };
            let b_place = place(m_pad * k_pad, n_pad);
            let b = if moves_b { (true, self.pad::<T>((c.cols, k), lines(b, !b.0, 0, 0), b_place)?) } else { b };
            self.vector_tiles(params, vec_c, k_pad, alpha, a, b, beta, c)
        }
    }

    /// Puts lines side by side, zeros where there are none; gives the place back.
    unsafe fn pad<'b, T: Scalar>(
        &mut self,
        (count, k): (usize, usize),
        (from, by_line, by_k): (View<'_, D::Buffer>, usize, usize),
        to: View<'b, D::Buffer>,
    ) -> Result<View<'b, D::Buffer>> {
        const SIDE: usize = 32;
        let program = Program::Pad { dtype: T::DTYPE, items: MOVERS.min(self.device.choices().most) };
        let source = [Arg::In(from.buffer), Arg::Size(from.at), Arg::Size(by_line), Arg::Size(by_k)];
        let target = [Arg::Out(to.buffer), Arg::Size(to.at), Arg::Size(to.ld), Arg::Size(to.cols)];
        let args = [&[Arg::Size(count), Arg::Size(k)][..], &source, &target].concat();
        let global = [to.ld.div_ceil(SIDE) * program.local()[0], to.cols.div_ceil(SIDE)];
        // SAFETY: as the caller promises; arguments as the kernel lists them.
        unsafe { self.device.launch(&Call { program, kernel: "pad", global, args: &args })? };
        Ok(to)
    }

    #[allow(clippy::too_many_arguments, reason = "the arguments of gemm")]
    unsafe fn vector_tiles<T: Scalar>(
        &mut self,
        params: &VectorParams,
        vec_c: bool,
        k: usize,
        alpha: T,
        a: View<'_, D::Buffer>,
        b: Factor<'_, D::Buffer>,
        beta: T,
        c: View<'_, D::Buffer>,
    ) -> Result<()> {
        let program = Program::GemmVector { dtype: T::DTYPE, params: *params, trans_b: b.0, vec_c };
        // SAFETY: the module's contract; the operands lie as the kernel asks.
        unsafe { self.tiles(program, "gemm_vector", [params.mwg, params.nwg], k, alpha, (false, a), b, beta, c) }
    }
}
