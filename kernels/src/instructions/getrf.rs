//! A = P·L·U of a panel, recursively: pivots stay on the device.

use lapidary_core::{Diag, Op, Result, Scalar, Side, Swaps, Uplo};

use super::Sequence;
use crate::call::{Arg, Call, Purpose, Target, View};
use crate::program::{COLUMNS, PANEL, Program, STRIPS, notes, rows_of_group};
use crate::strips::StripParams;

/// Most rows of a panel that goes column by column: every group reads the notes of all.
const MOST_ROWS: usize = 1 << 18;

/// A panel: whether rows are exchanged, and the matrix's row that is its row 0.
struct Panel<'a, B> {
    pivoting: bool,
    first_row: usize,
    a: View<'a, B>,
    ipiv: View<'a, B>,
    info: View<'a, B>,
}

// derived, these would ask for `B: Clone`
impl<B> Clone for Panel<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for Panel<'_, B> {}

impl<B> Panel<'_, B> {
    /// Columns `col..col + cols` from row `col` on.
    fn from(self, col: usize, cols: usize) -> Self {
        let (a, ipiv) = (self.a.sub(col, col, self.a.rows - col, cols), self.ipiv.sub(col, 0, cols, 1));
        Panel { first_row: self.first_row + col, a, ipiv, ..self }
    }

    fn swaps(&self) -> Swaps {
        Swaps { side: Side::Left, forward: true, first_row: self.first_row }
    }
}

/// How a narrow panel is factored.
enum Narrow {
    /// By strips, each held by one group.
    Strips(StripParams),
    /// Column by column, by many groups.
    Columns,
    /// By one group, so many columns at most.
    Group(usize),
}

impl Narrow {
    /// Most columns.
    fn width(&self) -> usize {
        match self {
            Narrow::Strips(params) => STRIPS * params.width,
            Narrow::Columns => COLUMNS,
            Narrow::Group(width) => *width,
        }
    }
}

impl<D: Target> Sequence<'_, D> {
    pub(super) unsafe fn getrf<T: Scalar>(
        &mut self,
        pivoting: bool,
        first_row: usize,
        a: View<'_, D::Buffer>,
        (ipiv, info): (View<'_, D::Buffer>, View<'_, D::Buffer>),
    ) -> Result<()> {
        let order = a.rows.min(a.cols);
        let whole = Panel { pivoting, first_row, a, ipiv, info };
        let (left, right) = (whole.from(0, order), a.sub(0, order, a.rows, a.cols - order));
        // SAFETY: the module's contract.
        unsafe {
            self.factor::<T>(left)?;
            self.eliminate::<T>(left, right)
        }
    }

    /// A panel of at least as many rows as columns.
    unsafe fn factor<T: Scalar>(&mut self, panel: Panel<'_, D::Buffer>) -> Result<()> {
        let Panel { a, .. } = panel;
        if a.is_empty() {
            return Ok(());
        }
        let way = self.narrow::<T>(a.rows);
        let width = way.width();
        if a.cols <= width {
            // SAFETY: the module's contract.
            return unsafe {
                match way {
                    Narrow::Strips(params) => self.getrf_strips::<T>(params, panel),
                    Narrow::Columns => self.getrf_columns::<T>(panel),
                    Narrow::Group(_) => self.getrf_panel::<T>(panel),
                }
            };
        }
        let n1 = (a.cols / 2).next_multiple_of(width);
        let (left, right) = (panel.from(0, n1), a.sub(0, n1, a.rows, a.cols - n1));
        let below = panel.from(n1, a.cols - n1);
        // SAFETY: the module's contract.
        unsafe {
            // (A11; A21) ← P1·(L11; L21)·U11
            self.factor::<T>(left)?;
            self.eliminate::<T>(left, right)?;
            // A22 ← P2·L22·U22, A21 ← P2ᵀ·A21
            self.factor::<T>(below)?;
            self.exchange::<T>(below, a.sub(n1, 0, a.rows - n1, n1))
        }
    }

    /// How panels of so many rows are factored.
    fn narrow<T: Scalar>(&self, rows: usize) -> Narrow {
        let choices = self.device.choices();
        match choices.strips(T::DTYPE, rows) {
            Some(params) => Narrow::Strips(params),
            None if (choices.spread..=MOST_ROWS).contains(&rows) => Narrow::Columns,
            None => Narrow::Group((1..=PANEL).rev().find(|&cols| self.rounds(rows, cols) <= choices.rounds).unwrap_or(1)),
        }
    }

    /// Rounds that the loops of one work-item go in a panel of one group: for each column over
    /// its rows, to search them and to scale them, and in each over the columns that are left.
    fn rounds(&self, rows: usize, cols: usize) -> usize {
        rows.div_ceil(self.device.choices().searchers) * (2 * cols + cols * (cols + 1) / 2)
    }

    /// The columns right of a factored panel: A12 ← L11⁻¹·(P1ᵀ·A12), A22 ← A22 − A21·A12.
    unsafe fn eliminate<T: Scalar>(&mut self, left: Panel<'_, D::Buffer>, right: View<'_, D::Buffer>) -> Result<()> {
        if right.is_empty() {
            return Ok(());
        }
        let (n1, below) = (left.a.cols, left.a.rows - left.a.cols);
        let (a12, a22) = (right.sub(0, 0, n1, right.cols), right.sub(n1, 0, below, right.cols));
        let unit_lower = (Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
        // SAFETY: the module's contract.
        unsafe {
            self.exchange::<T>(left, right)?;
            self.trsm::<T>(unit_lower, left.a.sub(0, 0, n1, n1), a12)?;
            self.gemm(-T::ONE, (false, left.a.sub(n1, 0, below, n1)), (false, a12), T::ONE, a22)
        }
    }

    /// The exchanges of a panel on other columns of its rows.
    unsafe fn exchange<T: Scalar>(&mut self, panel: Panel<'_, D::Buffer>, others: View<'_, D::Buffer>) -> Result<()> {
        if !panel.pivoting {
            return Ok(());
        }
        // SAFETY: the module's contract.
        unsafe { self.laswp::<T>(panel.swaps(), others, panel.ipiv) }
    }

    /// A panel by strips, each held by one work-group. Step s eliminates strip s − 1 and
    /// factors strip s; after the last strip there are exchanges to its left.
    unsafe fn getrf_strips<T: Scalar>(&mut self, params: StripParams, panel: Panel<'_, D::Buffer>) -> Result<()> {
        let strips = panel.a.cols.div_ceil(params.width);
        let program = Program::Strips { dtype: T::DTYPE, params };
        // SAFETY: the module's contract.
        unsafe { self.getrf_step(program, "getrf_strip", panel, (0, 1), &[])? };
        for step in 1..=strips {
            let others = strips - 1;
            if others > 0 && (step < strips || panel.pivoting) {
                // SAFETY: the module's contract.
                unsafe { self.getrf_step(program, "getrf_strip", panel, (step, others), &[])? };
            }
        }
        Ok(())
    }

    /// A narrow panel, by many work-groups, which are told of one another between two kernels.
    unsafe fn getrf_columns<T: Scalar>(&mut self, panel: Panel<'_, D::Buffer>) -> Result<()> {
        let Panel { a, .. } = panel;
        let program = self.device.choices().columns(T::DTYPE);
        let groups = a.rows.div_ceil(rows_of_group(program.local()[0]));
        let notes = self.device.scratch(Purpose::Notes, notes(groups) * T::DTYPE.size())?;
        for step in 0..=a.cols {
            // SAFETY: the module's contract.
            unsafe { self.getrf_step(program, "getrf_column", panel, (step, groups), &[Arg::Out(&*notes)])? };
        }
        Ok(())
    }

    /// One of the kernels that factor a panel together, by so many groups.
    unsafe fn getrf_step(
        &mut self,
        program: Program,
        kernel: &'static str,
        panel: Panel<'_, D::Buffer>,
        (step, groups): (usize, usize),
        rest: &[Arg<'_, D::Buffer>],
    ) -> Result<()> {
        let Panel { pivoting, first_row, a, ipiv, info } = panel;
        let sizes = [a.rows, a.cols, usize::from(pivoting), first_row, step].map(Arg::Size);
        let pivots = [Arg::Out(ipiv.buffer), Arg::Size(ipiv.at), Arg::Out(info.buffer), Arg::Size(info.at)];
        let args = [&sizes[..], &Arg::output(a), &pivots, rest].concat();
        // SAFETY: the module's contract; arguments as the kernels list them.
        unsafe { self.device.launch(&Call { program, kernel, global: [groups * program.local()[0], 1], args: &args }) }
    }

    /// A narrow panel, by one work-group.
    unsafe fn getrf_panel<T: Scalar>(&mut self, panel: Panel<'_, D::Buffer>) -> Result<()> {
        let Panel { pivoting, first_row, a, ipiv, info } = panel;
        let items = self.device.choices().searchers;
        let sizes = [a.rows, a.cols, usize::from(pivoting), first_row].map(Arg::Size);
        let memory = [Arg::Out(ipiv.buffer), Arg::Size(ipiv.at), Arg::Out(info.buffer), Arg::Size(info.at)];
        let args = [&sizes[..], &Arg::output(a), &memory].concat();
        let program = Program::Panel { dtype: T::DTYPE, items };
        // SAFETY: the module's contract; arguments as the kernel lists them.
        unsafe { self.device.launch(&Call { program, kernel: "getrf_panel", global: [items, 1], args: &args }) }
    }
}
