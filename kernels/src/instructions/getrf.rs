//! A = P·L·U of a panel, block by block of its columns: pivots stay on the device.

use lapidary_core::{Diag, Op, Result, Side, Swaps, Uplo};

use super::Sequence;
use crate::call::{Arg, Call, Target, View};
use crate::program::{COLUMNS, PANEL, Program, STRIPS, STRIPS_THAT_WAIT, notes, rows_of_group};
use crate::scratch::Purpose;
use crate::strips::{STRIPS_PER_ITEM, StripParams};

/// Maximum number of rows of a panel that is factored column by column. Every group reads the pivot candidates of all groups.
const MOST_ROWS: usize = 1 << 18;

/// Columns of a panel that the columns beside it are told of at once, rounded up to whole narrow
/// panels: many, so that most of the work is products with many terms, few beside those columns.
const BLOCK: usize = 1024;

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

    /// The kernel arguments for the row indices of the pivots and for the first zero pivot.
    fn pivots(&self) -> [Arg<'_, B>; 4] {
        let Panel { ipiv, info, .. } = self;
        [Arg::Out(ipiv.buffer), Arg::Size(ipiv.at), Arg::Out(info.buffer), Arg::Size(info.at)]
    }

    fn swaps(&self) -> Swaps {
        Swaps { side: Side::Left, forward: true, first_row: self.first_row }
    }
}

/// How a narrow panel is factored.
enum PanelKernel {
    /// By at most this many strips, each of which one group factors.
    Strips(StripParams, usize),
    /// Column by column, by many groups.
    Columns,
    /// By one group, at most this many columns.
    Group(usize),
}

impl PanelKernel {
    /// Most columns.
    fn width(&self) -> usize {
        match self {
            PanelKernel::Strips(params, strips) => strips * params.width,
            PanelKernel::Columns => COLUMNS,
            PanelKernel::Group(width) => *width,
        }
    }
}

impl<D: Target> Sequence<'_, D> {
    pub(super) unsafe fn getrf(
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
            self.factor(left)?;
            self.eliminate(left, right)
        }
    }

    /// A panel of at least as many rows as columns.
    unsafe fn factor(&mut self, panel: Panel<'_, D::Buffer>) -> Result<()> {
        let Panel { a, .. } = panel;
        if a.is_empty() {
            return Ok(());
        }
        let way = self.choose_panel_kernel(a.rows);
        let width = way.width();
        if a.cols <= width {
            // SAFETY: the module's contract.
            return unsafe {
                match way {
                    PanelKernel::Strips(params, _) => self.getrf_strips(params, panel),
                    PanelKernel::Columns => self.getrf_columns(panel),
                    PanelKernel::Group(_) => self.getrf_panel(panel),
                }
            };
        }
        let block = (a.cols / 2).min(BLOCK).next_multiple_of(width);
        for col in (0..a.cols).step_by(block) {
            let part = panel.from(col, block.min(a.cols - col));
            let end = col + part.a.cols;
            // SAFETY: the module's contract.
            unsafe {
                // (A11; A21) ← P·(L11; L21)·U11
                self.factor(part)?;
                // the columns of L to the left take the exchanges too
                self.exchange(part, a.sub(col, 0, a.rows - col, col))?;
                self.eliminate(part, a.sub(col, end, a.rows - col, a.cols - end))?;
            }
        }
        Ok(())
    }

    /// Chooses how panels of `rows` rows are factored.
    fn choose_panel_kernel(&self, rows: usize) -> PanelKernel {
        let choices = self.device.choices();
        // scratch memory must hold all strips
        let most = if choices.waits { STRIPS_THAT_WAIT } else { STRIPS };
        let strips = |params: &StripParams| most.min(choices.max_scratch_bytes / params.bytes(self.dtype));
        match choices.strips(self.dtype, rows).map(|params| (params, strips(&params))) {
            Some((params, strips @ 1..)) => PanelKernel::Strips(params, strips),
            _ if (choices.multi_group_min_rows..=MOST_ROWS).contains(&rows) && self.notes(rows).1 <= choices.max_scratch_bytes => {
                PanelKernel::Columns
            }
            _ => {
                let most = self.device.facts().limits.loop_iterations;
                PanelKernel::Group((1..=PANEL).rev().find(|&cols| self.rounds(rows, cols) <= most).unwrap_or(1))
            }
        }
    }

    /// Number of groups that factor a panel of `rows` rows column by column, and bytes of scratch memory in which they exchange
    /// pivots.
    fn notes(&self, rows: usize) -> (usize, usize) {
        let groups = rows.div_ceil(rows_of_group(self.device.choices().columns(self.dtype).local()[0]));
        (groups, notes(groups) * self.dtype.size())
    }

    /// Loop iterations of one work-item if one group factors a panel. For each column the work-item searches its rows, scales
    /// them, and updates the remaining columns in them.
    fn rounds(&self, rows: usize, cols: usize) -> usize {
        rows.div_ceil(self.device.choices().pivot_search_group_size) * (2 * cols + cols * (cols + 1) / 2)
    }

    /// The columns right of a factored panel: A12 ← L11⁻¹·(P1ᵀ·A12), A22 ← A22 − A21·A12.
    unsafe fn eliminate(&mut self, left: Panel<'_, D::Buffer>, right: View<'_, D::Buffer>) -> Result<()> {
        if right.is_empty() {
            return Ok(());
        }
        let (n1, below) = (left.a.cols, left.a.rows - left.a.cols);
        let (a12, a22) = (right.sub(0, 0, n1, right.cols), right.sub(n1, 0, below, right.cols));
        let unit_lower = (Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
        // SAFETY: the module's contract.
        unsafe {
            self.exchange(left, right)?;
            self.trsm(unit_lower, left.a.sub(0, 0, n1, n1), a12)?;
            self.gemm(self.value(-1.0), (Op::NoTrans, left.a.sub(n1, 0, below, n1)), (Op::NoTrans, a12), self.value(1.0), a22)
        }
    }

    /// Applies the row exchanges of a panel to other columns of its rows.
    unsafe fn exchange(&mut self, panel: Panel<'_, D::Buffer>, others: View<'_, D::Buffer>) -> Result<()> {
        if !panel.pivoting || others.is_empty() {
            return Ok(());
        }
        // SAFETY: the module's contract.
        unsafe { self.laswp(panel.swaps(), others, panel.ipiv) }
    }

    /// Factors a panel by strips. The panel is copied to scratch memory for the strips, factored there, and copied back. Where
    /// groups may wait for one another, one launch factors all strips. Otherwise launch s eliminates strip s − 1 and factors
    /// strip s; the first launch eliminates nothing. The row exchanges of a strip reach the columns on its left only when the
    /// panel is copied back.
    unsafe fn getrf_strips(&mut self, params: StripParams, panel: Panel<'_, D::Buffer>) -> Result<()> {
        let Panel { pivoting, first_row, a, .. } = panel;
        let strips = a.cols.div_ceil(params.width);
        let place = self.device.scratch(Purpose::Strips, strips * params.bytes(self.dtype))?;
        let (program, whole) = (Program::Strips { dtype: self.dtype, params }, [params.height(), strips]);
        let extents = [a.rows, a.cols].map(Arg::Size);
        let rules = [a.cols, usize::from(pivoting), first_row].map(Arg::Size);
        let waits = self.device.choices().waits;
        let turns = waits.then(|| self.device.scratch(Purpose::StripCounters, 2 * size_of::<u32>())).transpose()?;
        // SAFETY: the module's contract; arguments as the kernels list them; there is room for all strips,
        // whose numbers are counted from zero: what every launch finds, and leaves.
        let mut launch =
            |kernel, global, args: &[Arg<'_, D::Buffer>]| unsafe { self.device.launch(&Call { program, kernel, global, args }) };
        launch("enter_strips", whole, &[&extents[..], &Arg::input(a), &[Arg::Out(&*place)]].concat())?;
        if let Some(turns) = turns {
            let args = [&rules[..], &[Arg::Out(&*place)], &panel.pivots(), &[Arg::Out(&*turns)]].concat();
            launch("getrf_strips", [strips * params.items, 1], &args)?;
        } else {
            for step in 0..strips {
                let groups = if step == 0 { 1 } else { strips - step };
                let args = [&rules[..], &[Arg::Size(step), Arg::Out(&*place)], &panel.pivots()].concat();
                launch("getrf_strip", [groups * params.items, 1], &args)?;
            }
        }
        let pivots = [Arg::In(panel.ipiv.buffer), Arg::Size(panel.ipiv.at)];
        let memory = [&[Arg::Size(first_row), Arg::In(&*place)][..], &Arg::output(a), &pivots].concat();
        launch("leave_strips", [params.height(), strips.div_ceil(STRIPS_PER_ITEM)], &[&extents[..], &memory].concat())
    }

    /// A narrow panel, by many work-groups, which are told of one another between two kernels.
    unsafe fn getrf_columns(&mut self, panel: Panel<'_, D::Buffer>) -> Result<()> {
        let Panel { a, .. } = panel;
        let program = self.device.choices().columns(self.dtype);
        let (groups, bytes) = self.notes(a.rows);
        let notes = self.device.scratch(Purpose::PivotExchange, bytes)?;
        let Panel { pivoting, first_row, .. } = panel;
        for step in 0..=a.cols {
            let sizes = [a.rows, a.cols, usize::from(pivoting), first_row, step].map(Arg::Size);
            let args = [&sizes[..], &Arg::output(a), &panel.pivots(), &[Arg::Out(&*notes)]].concat();
            let global = [groups * program.local()[0], 1];
            // SAFETY: the module's contract; arguments as the kernel lists them.
            unsafe { self.device.launch(&Call { program, kernel: "getrf_column", global, args: &args })? };
        }
        Ok(())
    }

    /// A narrow panel, by one work-group.
    unsafe fn getrf_panel(&mut self, panel: Panel<'_, D::Buffer>) -> Result<()> {
        let Panel { pivoting, first_row, a, .. } = panel;
        let items = self.device.choices().pivot_search_group_size;
        let sizes = [a.rows, a.cols, usize::from(pivoting), first_row].map(Arg::Size);
        let args = [&sizes[..], &Arg::output(a), &panel.pivots()].concat();
        let program = Program::Panel { dtype: self.dtype, items };
        // SAFETY: the module's contract; arguments as the kernel lists them.
        unsafe { self.device.launch(&Call { program, kernel: "getrf_panel", global: [items, 1], args: &args }) }
    }
}
