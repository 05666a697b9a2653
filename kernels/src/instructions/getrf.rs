//! LU factorisation A = P·L·U of a panel, one block of columns after the other. The pivots stay on the device.

use lapidary_core::{Diag, Op, Result, Side, Swaps, Uplo};

use super::Sequence;
use crate::call::{Arg, Call, Target, View};
use crate::database::Family;
use crate::held_rows::HeldShape;
use crate::messages::RECORD_BYTES;
use crate::program::{COLUMNS, Program, notes, rows_of_group};
use crate::scratch::Purpose;
use crate::strips::{STRIPS_PER_ITEM, StripParams};
use crate::thresholds::Threshold;

/// A panel that is to be factored. `pivoting` says whether rows are exchanged, and `first_row` is the row of the matrix that is
/// row 0 of the panel. `left` and `right` are the numbers of other columns, on the left and on the right of the panel, whose rows
/// are exchanged when the panel is factored.
struct Panel<'a, B> {
    pivoting: bool,
    first_row: usize,
    a: View<'a, B>,
    left: usize,
    right: usize,
    ipiv: View<'a, B>,
    info: View<'a, B>,
}

// implemented by hand, because a derived `Clone` would require `B: Clone`
impl<B> Clone for Panel<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<B> Copy for Panel<'_, B> {}

impl<'a, B> Panel<'a, B> {
    /// Returns the part of the panel that begins at row and column `col` and has `cols` columns. When the part is factored, the rows of the
    /// rest of the panel, and of the other columns of the panel, are exchanged.
    fn from(self, col: usize, cols: usize) -> Self {
        let (a, ipiv) = (self.a.sub(col, col, self.a.rows - col, cols), self.ipiv.sub(col, 0, cols, 1));
        let (left, right) = (self.left + col, self.right + self.a.cols - col - cols);
        Panel { first_row: self.first_row + col, a, left, right, ipiv, ..self }
    }

    /// Returns the columns on the left and on the right of the panel, in the same rows.
    fn others(self) -> [View<'a, B>; 2] {
        let Panel { a, left, right, .. } = self;
        [View { at: a.at - left * a.ld, cols: left, ..a }, View { at: a.at + a.cols * a.ld, cols: right, ..a }]
    }

    /// Returns the kernel arguments for `ipiv` and `info`.
    fn pivots(&self) -> [Arg<'_, B>; 4] {
        let Panel { ipiv, info, .. } = self;
        [Arg::Out(ipiv.buffer), Arg::Size(ipiv.at), Arg::Out(info.buffer), Arg::Size(info.at)]
    }

    fn swaps(&self) -> Swaps {
        Swaps { side: Side::Left, forward: true, first_row: self.first_row }
    }
}

/// Kernel that factors a narrow panel.
enum PanelKernel {
    /// The fields are the shape of a strip and the maximum number of strips. One work-group factors each strip.
    Strips(StripParams, usize),
    /// Work-groups of this shape, which wait for one another, hold the rows of the panel.
    HeldRows(HeldShape),
    /// Many work-groups factor the panel column by column. The field is the number of work-items in a work-group.
    Columns(usize),
    /// One work-group factors the panel. The fields are its number of work-items and the maximum number of columns.
    Group(usize, usize),
}

impl PanelKernel {
    /// Returns the maximum number of columns of a panel that this kernel factors.
    fn width(&self) -> usize {
        match self {
            PanelKernel::Strips(params, strips) => strips * params.width,
            PanelKernel::HeldRows(shape) => shape.width(),
            PanelKernel::Columns(_) => COLUMNS,
            PanelKernel::Group(_, width) => *width,
        }
    }
}

/// Returns the number of loop iterations of one work-item if one work-group of `items` work-items factors a panel. For each column,
/// the work-item searches its rows for the pivot, scales them, and updates the remaining columns in them.
fn rounds(rows: usize, cols: usize, items: usize) -> usize {
    rows.div_ceil(items) * (2 * cols + cols * (cols + 1) / 2)
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
        let whole = Panel { pivoting, first_row, a, left: 0, right: 0, ipiv, info };
        let (left, right) = (whole.from(0, order), a.sub(0, order, a.rows, a.cols - order));
        // SAFETY: the caller upholds the contract of this module.
        unsafe {
            self.factor(left)?;
            self.eliminate(left, right)
        }
    }

    /// Factors a panel that has at least as many rows as columns, and exchanges the rows of its other columns.
    unsafe fn factor(&mut self, panel: Panel<'_, D::Buffer>) -> Result<()> {
        let Panel { a, .. } = panel;
        if a.is_empty() {
            return Ok(());
        }
        let way = self.choose_panel_kernel(a.rows)?;
        let (width, is_held) = (way.width(), matches!(way, PanelKernel::HeldRows(_)));
        if let PanelKernel::HeldRows(shape) = way
            && a.cols <= self.threshold(Threshold::HeldBlock).max(width)
        {
            // SAFETY: the caller upholds the contract of this module.
            unsafe { self.factor_held_rows(shape, panel)? }
        } else if a.cols <= width {
            self.device.begin("getrf");
            // SAFETY: the caller upholds the contract of this module.
            unsafe {
                match way {
                    PanelKernel::Strips(params, _) => self.getrf_strips(params, panel)?,
                    PanelKernel::HeldRows(_) => unreachable!("a block is at least as wide as a panel"),
                    PanelKernel::Columns(items) => self.getrf_columns(items, panel)?,
                    PanelKernel::Group(items, _) => self.getrf_panel(items, panel)?,
                }
            }
        } else {
            // the kernel for held rows exchanges the rows of all other columns; after other kernels, a launch at the end exchanges the rows of
            // the columns outside of this panel
            let reached = if is_held { panel } else { Panel { left: 0, right: 0, ..panel } };
            let block = (a.cols / 2).min(self.threshold(Threshold::LuBlock)).next_multiple_of(width);
            for col in (0..a.cols).step_by(block) {
                let part = reached.from(col, block.min(a.cols - col));
                let end = col + part.a.cols;
                // SAFETY: the caller upholds the contract of this module.
                unsafe {
                    // P·(L11; L21)·U11 = (A11; A21), and X ← P⁻¹·X for the columns X on both sides
                    self.factor(part)?;
                    self.eliminate(part, a.sub(col, end, a.rows - col, a.cols - end))?;
                }
            }
        }
        // SAFETY: the caller upholds the contract of this module.
        if is_held { Ok(()) } else { unsafe { self.exchange(panel) } }
    }

    /// Chooses the kernel that factors narrow panels of `rows` rows: by held rows, else by strips, else column by column, else in one work-group.
    fn choose_panel_kernel(&mut self, rows: usize) -> Result<PanelKernel> {
        let dtype = self.dtype;
        let (waits, room) = (self.device.tuning().groups_may_wait, self.device.tuning().max_scratch_bytes);
        let held = self.device.tuning().held_rows;
        for entry in 0.. {
            let Some(shape) = self.device.tuning().held_shapes(dtype, rows).nth(entry) else { break };
            let program = Program::HeldRows { dtype, shape, uses_ptx: held.uses_ptx };
            if RECORD_BYTES <= room && self.device.can_run(&program, "getrf_held_rows")? {
                return Ok(PanelKernel::HeldRows(shape));
            }
        }
        let most = self.threshold(if waits { Threshold::LuWaitingStrips } else { Threshold::LuStrips });
        for entry in 0.. {
            let Some(params) = self.device.tuning().strips(dtype, rows).nth(entry) else { break };
            // scratch memory must hold all strips of a panel
            let strips = most.min(room / params.bytes(dtype));
            if strips > 0 && self.device.can_run(&Program::Strips { dtype, params }, "getrf_strip")? {
                return Ok(PanelKernel::Strips(params, strips));
            }
        }
        let columns = self.first_that_runs((Family::Columns, rows), |items| Program::Columns { dtype, items }, "getrf_column")?;
        let max_rows = self.threshold(Threshold::LuColumns);
        if let Some(items) = columns.filter(|&items| rows <= max_rows && self.notes(rows, items).1 <= room) {
            return Ok(PanelKernel::Columns(items));
        }
        let group = self.first_that_runs((Family::Panel, rows), |items| Program::Panel { dtype, items }, "getrf_panel")?;
        let items = group.unwrap_or(1);
        let most = self.device.facts().limits.loop_iterations;
        let widths = 1..=self.threshold(Threshold::LuPanel);
        Ok(PanelKernel::Group(items, widths.rev().find(|&cols| rounds(rows, cols, items) <= most).unwrap_or(1)))
    }

    /// Returns the number of work-groups of `items` work-items that factor a panel of `rows` rows column by column, and the bytes
    /// of scratch memory through which these work-groups exchange pivots.
    fn notes(&self, rows: usize, items: usize) -> (usize, usize) {
        let groups = rows.div_ceil(rows_of_group(items));
        (groups, notes(groups) * self.dtype.size())
    }

    /// Updates the columns on the right of a factored panel: A12 ← L11⁻¹·A12, A22 ← A22 − A21·A12.
    unsafe fn eliminate(&mut self, left: Panel<'_, D::Buffer>, right: View<'_, D::Buffer>) -> Result<()> {
        if right.is_empty() {
            return Ok(());
        }
        let (n1, below) = (left.a.cols, left.a.rows - left.a.cols);
        let (a12, a22) = (right.sub(0, 0, n1, right.cols), right.sub(n1, 0, below, right.cols));
        let unit_lower = (Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit);
        // SAFETY: the caller upholds the contract of this module.
        unsafe {
            self.device.begin("trsm");
            self.trsm(unit_lower, left.a.sub(0, 0, n1, n1), a12)?;
            self.update(left.a, a12, a22)
        }
    }

    /// Computes A22 ← A22 − A21·A12, where A21 is the part of a factored panel below its first square.
    unsafe fn update(&mut self, panel: View<'_, D::Buffer>, a12: View<'_, D::Buffer>, a22: View<'_, D::Buffer>) -> Result<()> {
        let a21 = panel.sub(panel.cols, 0, panel.rows - panel.cols, panel.cols);
        self.device.begin("gemm");
        // SAFETY: the caller upholds the contract of this module.
        unsafe { self.gemm(self.value(-1.0), (Op::NoTrans, a21), (Op::NoTrans, a12), self.value(1.0), a22) }
    }

    /// Applies the row exchanges of a panel to its other columns.
    unsafe fn exchange(&mut self, panel: Panel<'_, D::Buffer>) -> Result<()> {
        self.device.begin("laswp");
        let sides = panel.others().into_iter().filter(|others| panel.pivoting && !others.is_empty());
        // SAFETY: the caller upholds the contract of this module.
        sides.into_iter().try_for_each(|others| unsafe { self.laswp(panel.swaps(), others, panel.ipiv) })
    }

    /// Factors a panel by strips. The panel is copied to scratch memory for the strips, factored there, and copied back. If
    /// work-groups may wait for one another, one launch factors all strips. If work-groups may not wait, launch s eliminates
    /// strip s − 1 and factors strip s. The first launch eliminates nothing. The row exchanges of a strip reach the columns on
    /// its left only when the panel is copied back.
    unsafe fn getrf_strips(&mut self, params: StripParams, panel: Panel<'_, D::Buffer>) -> Result<()> {
        let Panel { pivoting, first_row, a, .. } = panel;
        let strips = a.cols.div_ceil(params.width);
        let place = self.device.scratch(Purpose::Strips, strips * params.bytes(self.dtype))?;
        let (program, whole) = (Program::Strips { dtype: self.dtype, params }, [params.height(), strips]);
        let extents = [a.rows, a.cols].map(Arg::Size);
        let rules = [a.cols, usize::from(pivoting), first_row].map(Arg::Size);
        let groups_may_wait = self.device.tuning().groups_may_wait;
        let turns = groups_may_wait.then(|| self.device.scratch(Purpose::Synchronisation, 2 * size_of::<u32>())).transpose()?;
        // SAFETY: the caller upholds the contract of this module, and the arguments match the kernels' parameters. The scratch
        // memory has room for all strips. The strip counters are zero before each launch, and the kernels reset them to zero.
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

    /// Factors a block by panels as wide as the shape allows, and exchanges the rows of its other columns. The launch that factors a panel also
    /// computes the rows of U in the columns of the block on its right, which a product then updates.
    unsafe fn factor_held_rows(&mut self, shape: HeldShape, block: Panel<'_, D::Buffer>) -> Result<()> {
        let Panel { a, .. } = block;
        for col in (0..a.cols).step_by(shape.width()) {
            let panel = block.from(col, shape.width().min(a.cols - col));
            let (n1, end) = (panel.a.cols, col + panel.a.cols);
            let right = a.sub(col, end, panel.a.rows, a.cols - end);
            self.device.begin("getrf");
            // SAFETY: the caller upholds the contract of this module.
            unsafe {
                self.getrf_held_rows(shape, panel, right.cols)?;
                self.update(panel.a, right.sub(0, 0, n1, right.cols), right.sub(n1, 0, right.rows - n1, right.cols))?;
            }
        }
        Ok(())
    }

    /// Factors a panel with work-groups that wait for one another, and exchanges the rows of its other columns. In the first `solved` columns
    /// on the right, computes A12 ← L11⁻¹·A12 too.
    unsafe fn getrf_held_rows(&mut self, shape: HeldShape, panel: Panel<'_, D::Buffer>, solved: usize) -> Result<()> {
        let Panel { pivoting, first_row, a, .. } = panel;
        debug_assert!(solved == 0 || a.cols == shape.width());
        let [left, right] = if pivoting { [panel.left, panel.right - solved] } else { [0; 2] };
        let held = self.device.tuning().held_rows;
        let (groups, uses_ptx) = (held.groups(a.rows, shape, left + solved + right), held.uses_ptx);
        let records = self.device.scratch(Purpose::Synchronisation, RECORD_BYTES)?;
        let sizes = [a.rows, a.cols, usize::from(pivoting), first_row, left, solved, right].map(Arg::Size);
        let args = [&sizes[..], &Arg::output(a), &panel.pivots(), &[Arg::Out(&*records)]].concat();
        let (program, global) = (Program::HeldRows { dtype: self.dtype, shape, uses_ptx }, [groups * shape.items, 1]);
        // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters. The scratch memory has
        // room for all records, was zero at first, and is written by kernels only that clear the messages of the launch before them.
        unsafe { self.device.launch(&Call { program, kernel: "getrf_held_rows", global, args: &args }) }
    }

    /// Factors a narrow panel with many work-groups, which exchange pivots between two launches.
    unsafe fn getrf_columns(&mut self, items: usize, panel: Panel<'_, D::Buffer>) -> Result<()> {
        let Panel { a, .. } = panel;
        let program = Program::Columns { dtype: self.dtype, items };
        let (groups, bytes) = self.notes(a.rows, items);
        let notes = self.device.scratch(Purpose::PivotExchange, bytes)?;
        let Panel { pivoting, first_row, .. } = panel;
        for step in 0..=a.cols {
            let sizes = [a.rows, a.cols, usize::from(pivoting), first_row, step].map(Arg::Size);
            let args = [&sizes[..], &Arg::output(a), &panel.pivots(), &[Arg::Out(&*notes)]].concat();
            let global = [groups * items, 1];
            // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
            unsafe { self.device.launch(&Call { program, kernel: "getrf_column", global, args: &args })? };
        }
        Ok(())
    }

    /// Factors a narrow panel with one work-group.
    unsafe fn getrf_panel(&mut self, items: usize, panel: Panel<'_, D::Buffer>) -> Result<()> {
        let Panel { pivoting, first_row, a, .. } = panel;
        let sizes = [a.rows, a.cols, usize::from(pivoting), first_row].map(Arg::Size);
        let args = [&sizes[..], &Arg::output(a), &panel.pivots()].concat();
        let program = Program::Panel { dtype: self.dtype, items };
        // SAFETY: the caller upholds the contract of this module, and the arguments match the kernel's parameters.
        unsafe { self.device.launch(&Call { program, kernel: "getrf_panel", global: [items, 1], args: &args }) }
    }
}
