//! The kernels of one device, and the queues that run them.

use std::collections::{HashMap, HashSet};
use std::iter::successors;
use std::sync::Arc;

use lapidary_core::{DType, DeviceFacts, Error, ErrorKind, Instruction, Limits, ProgramCache, Result};
use lapidary_kernels::{
    Call, Choices, Dialect, Products, Program, Purpose, Scratch, StripParams, Target, TileParams, instructions,
};

use crate::buffer::{Buffer, Context, Event};
use crate::conv::View;
use crate::platform::Found;
use crate::program::Programs;
use crate::queue::Queue;

/// The kernels of one device, and the queues that run them.
#[derive(Debug)]
pub(crate) struct Kernels {
    context: Arc<Context>,
    found: Found,
    lanes: Vec<Lane>,
    /// Index of the lane in which the current instruction is enqueued.
    current: usize,
    programs: Programs,
    choices: Choices,
    verified: VerifiedChoices,
}

/// A queue with the scratch memory of its kernels. Two queues do not share scratch memory, because their kernels may run at
/// the same time.
#[derive(Debug)]
struct Lane {
    queue: Arc<Queue>,
    scratch: Scratch<Buffer>,
}

/// Records which kernel parameters are known to work on this device. Arrays hold one value for f32 and one for f64.
#[derive(Debug, Default)]
struct VerifiedChoices {
    products: [bool; 2],
    /// The tiles that are known to work on this device in small products.
    tiles: HashSet<(DType, TileParams)>,
    pivot_search_group_size: [bool; 2],
    trsm_group_size: [bool; 2],
    laswp_group_size: [bool; 2],
    strips: HashSet<(DType, StripParams)>,
    /// Whether the device can run programs for which there are substitutes.
    runs: HashMap<Program, bool>,
}

impl Kernels {
    pub fn new(context: Arc<Context>, found: Found, queues: Vec<Queue>, cache: Arc<ProgramCache>) -> Self {
        let choices = Choices::choose(&found.facts, Dialect::OpenClC);
        let lanes = queues.into_iter().map(|queue| Lane { queue: Arc::new(queue), scratch: Scratch::default() }).collect();
        let (programs, verified) = (Programs::new(cache), VerifiedChoices::default());
        Kernels { context, found, lanes, current: 0, programs, choices, verified }
    }

    /// Blocks until all queues are empty. In a queue shared with an application, the application's own commands must complete, too.
    pub fn finish(&self) -> Result<()> {
        self.lanes.iter().try_for_each(|lane| lane.queue.finish())
    }

    /// Limits scratch memory. `limit` is the device's memory limit in bytes, of which each queue gets an equal share.
    pub fn limit_memory(&mut self, limit: usize) {
        let share = limit / self.lanes.len();
        self.choices = self.choices.within_memory(share);
        self.lanes.iter_mut().for_each(|lane| lane.scratch.limit_memory(share));
    }

    /// Bytes of the memory limit that are reserved for scratch memory; other buffers may not use these bytes.
    pub fn scratch_bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.scratch.bytes()).sum()
    }

    /// Frees the memory kept from earlier calls: scratch memory, and buffers that are still set as kernel arguments.
    pub fn trim(&mut self) {
        self.programs.forget_kernels();
        self.lanes.iter_mut().for_each(|lane| lane.scratch.clear());
    }

    /// Chooses kernels that use local memory and barriers, on any device. With the chosen kernels, many small work-groups factor a
    /// panel together.
    pub fn use_tiles(&mut self) -> Result<()> {
        let facts = &self.found.facts;
        let choices = Choices::shared(facts, Dialect::OpenClC)
            .map_err(|reason| Error::new(ErrorKind::Unsupported, "with_tiles", reason).with("device", &facts.name))?;
        let small = Choices { products: [Products::Tile(TileParams::SMALL); 2], pivot_search_group_size: 8, units: 1, ..choices };
        // compilers for CPUs take minutes to compile kernels with large work-groups
        let choices = if facts.is_cpu() { small } else { choices };
        let max_scratch_bytes = self.choices.max_scratch_bytes;
        self.choices = Choices {
            strip_group_size: 128,
            multi_group_min_rows: 16,
            laswp_group_size: 16,
            trsm_group_size: [16; 2],
            batch_group: 16,
            max_scratch_bytes,
            ..choices
        };
        Ok(())
    }

    /// Chooses kernels that factor panels by strips, in work-groups of `items` work-items.
    pub fn use_strips(&mut self, items: usize) -> Result<()> {
        let choices = self.choices.with_strips(items, &self.found.facts.limits);
        self.choices = choices.map_err(|reason| Error::invalid("with_strips", reason))?;
        self.verified = VerifiedChoices::default();
        Ok(())
    }

    /// Chooses the kernels for products, in f32 and in f64.
    pub fn use_products(&mut self, products: [Products; 2]) {
        self.choices.products = products;
        self.verified = VerifiedChoices::default();
    }

    /// Compiles the program of a product in single precision, or loads it from the cache.
    pub fn prepare_program(&mut self) -> Result<()> {
        let (program, _) = self.product();
        self.programs.program(&self.context, &self.found, &program).map(drop)
    }

    /// Creates the kernel of a product in single precision.
    pub fn prepare_kernel(&mut self) -> Result<()> {
        let (program, kernel) = self.product();
        self.programs.kernel(&self.context, &self.found, &program, kernel).map(drop)
    }

    /// Tests the kernels that `instruction` needs, if it is the first instruction of its kind that is enqueued. Where the compiler
    /// refuses a kernel, smaller values replace its parameters: the tile of a product, the strip of a panel, or the size of a
    /// work-group.
    fn choose_working_kernels(&mut self, dtype: DType, instruction: &Instruction<View<'_>>) -> Result<()> {
        // a batch of large matrices runs as a series of instructions, each for one matrix
        let single = instructions::single(&self.choices, &self.found.facts.limits, dtype, instruction);
        let instruction = single.as_ref().unwrap_or(instruction);
        // whether the instruction computes products, and the possible numbers of rows of the panels that it factors
        let (multiplies, panel) = match instruction {
            Instruction::Gemm { .. } | Instruction::Trsm { .. } | Instruction::Trtri { .. } => (true, None),
            Instruction::Getrf { a, .. } => (true, Some((a.rows - a.rows.min(a.cols)).max(1)..=a.rows)),
            Instruction::Laswp { .. }
            | Instruction::Copy { .. }
            | Instruction::Scale { .. }
            | Instruction::GemmBatched { .. }
            | Instruction::GetrfBatched { .. }
            | Instruction::GetrsBatched { .. }
            | Instruction::ZeroPivots { .. } => (false, None),
        };
        let at = usize::from(dtype == DType::F64);
        let Kernels { programs, context, found, choices, verified, .. } = self;
        if let (true, false, Some(first)) = (multiplies, verified.products[at], choices.product(dtype).tile()) {
            // each tile needs less local memory than the tile that was tried before it
            let less = |tile: TileParams| Limits { local_memory: tile.local_bytes(dtype).saturating_sub(1), ..found.facts.limits };
            let next = |tile| TileParams::choose(dtype, &less(tile)).ok();
            let tile = first_that_works(first, next, |tile| {
                let (program, kernel) = Products::Tile(tile).plain(dtype);
                programs.try_kernel(context, found, &program, kernel)
            })?;
            choices.products[at] = choices.product(dtype).with_tile(tile);
            verified.products[at] = true;
        }
        if let (true, Some(large)) = (multiplies && choices.units > 1, choices.product(dtype).tile()) {
            let tiles = match instruction {
                Instruction::Gemm { c, .. } => choices.product_of(dtype, c.rows, c.cols).tile().into_iter().collect(),
                // all other instructions that multiply contain products of any size
                _ => TileParams::smaller(dtype).to_vec(),
            };
            for params in tiles {
                if params == large || verified.tiles.contains(&(dtype, params)) {
                    continue;
                }
                let (program, kernel) = Products::Tile(params).plain(dtype);
                let next = |units: usize| (units > 1).then_some(1);
                choices.units = first_that_works(choices.units, next, |units| match units {
                    1 => Ok(()),
                    _ => programs.try_kernel(context, found, &program, kernel),
                })?;
                verified.tiles.insert((dtype, params));
            }
        }
        if let Some(heights) = &panel {
            let (shortest, tallest) = (*heights.start(), *heights.end());
            // if no strip works, panels are factored column by column in both precisions
            let next = |items: usize| (items > 0).then_some(if items > LEAST_STRIP { items / 2 } else { 0 });
            choices.strip_group_size = first_that_works(choices.strip_group_size, next, |items| {
                // tests each strip shape that a panel may need: strips of shorter panels may have more columns
                let less = |&rows: &usize| (rows > shortest).then_some(shortest.max(rows.saturating_sub(items.max(1))));
                let shapes = successors(Some(tallest), less)
                    .filter_map(|rows| Choices { strip_group_size: items, ..*choices }.strip_params(dtype, rows));
                shapes.into_iter().try_for_each(|params| {
                    if verified.strips.contains(&(dtype, params)) {
                        return Ok(());
                    }
                    programs.try_kernel(context, found, &Program::Strips { dtype, params }, "getrf_strip")?;
                    verified.strips.insert((dtype, params));
                    Ok(())
                })
            })?;
        }
        // with a work-group size of 0, each work-item solves or exchanges rows alone
        let halved = |items: usize| (items > 0).then_some(items / 2);
        if matches!(instruction, Instruction::Trsm { .. } | Instruction::Getrf { .. }) && !verified.trsm_group_size[at] {
            choices.trsm_group_size[at] = first_that_works(choices.trsm_group_size[at], halved, |items| match items {
                0 => Ok(()),
                items => programs.try_kernel(context, found, &Program::Solve { dtype, items }, "solve"),
            })?;
            verified.trsm_group_size[at] = true;
        }
        if matches!(instruction, Instruction::Laswp { .. } | Instruction::Getrf { .. }) && !verified.laswp_group_size[at] {
            choices.laswp_group_size = first_that_works(choices.laswp_group_size, halved, |items| match items {
                0 => Ok(()),
                items => programs.try_kernel(context, found, &Program::Exchange { dtype, items }, "exchange"),
            })?;
            verified.laswp_group_size[at] = true;
        }
        if panel.is_some() && !verified.pivot_search_group_size[at] {
            let next = |items: usize| (items > 1).then_some(items / 2);
            choices.pivot_search_group_size = first_that_works(choices.pivot_search_group_size, next, |items| {
                programs.try_kernel(context, found, &Program::Panel { dtype, items }, "getrf_panel")
            })?;
            verified.pivot_search_group_size[at] = true;
        }
        Ok(())
    }

    fn product(&self) -> (Program, &'static str) {
        self.choices.product(DType::F32).plain(DType::F32)
    }

    /// Enqueues an instruction on matrices of `dtype` in the queue with the index `number`. The instruction starts after the events
    /// in `after`, which belong to other queues. Returns the queue and the event that signals the end of the instruction.
    ///
    /// # Safety
    /// The conditions of [`instructions::enqueue`] hold.
    pub unsafe fn run(
        &mut self,
        dtype: DType,
        instruction: &Instruction<View<'_>>,
        number: usize,
        after: &[&Event],
    ) -> Result<(Arc<Queue>, Event)> {
        self.current = number;
        let queue = Arc::clone(&self.lanes[number].queue);
        let begun = self.choose_working_kernels(dtype, instruction).and_then(|()| queue.wait_for(after));
        // SAFETY: the caller guarantees the conditions of `instructions::enqueue`.
        let enqueued = begun.and_then(|()| unsafe { instructions::enqueue(self, dtype, instruction) });
        let end = enqueued.and_then(|()| queue.end());
        end.map(|end| (Arc::clone(&queue), end)).map_err(|error| {
            // the wait is necessary because kernels enqueued before the error may access memory that the caller frees after the
            // error
            let finished = queue.finish();
            let error = finished.err().filter(|finished| finished.kind() == ErrorKind::DeviceLost).unwrap_or(error);
            error.with("instruction", instruction.name())
        })
    }
}

/// Size in work-items of the smallest work-group that the search for a kernel that factors panels by strips tries.
const LEAST_STRIP: usize = 32;

/// Returns the first value for which `make` succeeds, beginning with `first` and going on with `next`. An error other than
/// `DeviceFailed` and `Unsupported` ends the search.
fn first_that_works<P: Copy>(first: P, next: impl Fn(P) -> Option<P>, mut make: impl FnMut(P) -> Result<()>) -> Result<P> {
    let mut choice = first;
    loop {
        let Err(error) = make(choice) else { return Ok(choice) };
        match (error.kind(), next(choice)) {
            (ErrorKind::DeviceFailed | ErrorKind::Unsupported, Some(smaller)) => choice = smaller,
            _ => return Err(error),
        }
    }
}

impl Target for Kernels {
    type Buffer = Buffer;

    fn facts(&self) -> &DeviceFacts {
        &self.found.facts
    }

    fn choices(&self) -> &Choices {
        &self.choices
    }

    fn can_run(&mut self, program: &Program, kernel: &'static str) -> Result<bool> {
        if let Some(&runs) = self.verified.runs.get(program) {
            return Ok(runs);
        }
        let runs = match self.programs.try_kernel(&self.context, &self.found, program, kernel) {
            Ok(()) => true,
            Err(error) if matches!(error.kind(), ErrorKind::DeviceFailed | ErrorKind::Unsupported) => false,
            Err(error) => return Err(error),
        };
        self.verified.runs.insert(*program, runs);
        Ok(runs)
    }

    unsafe fn launch(&mut self, call: &Call<'_, '_, Buffer>) -> Result<()> {
        let kernel = self.programs.kernel(&self.context, &self.found, &call.program, call.kernel)?;
        let queue = &self.lanes[self.current].queue;
        // SAFETY: the caller guarantees the conditions of `Target::launch`.
        let launched = unsafe { queue.launch(kernel, call.global, call.program.local(), call.args) };
        launched.map_err(|error| error.with("kernel", call.kernel))
    }

    fn scratch(&mut self, purpose: Purpose, bytes: usize) -> Result<Arc<Buffer>> {
        let Lane { queue, scratch } = &mut self.lanes[self.current];
        if scratch.must_finish(purpose, bytes) {
            queue.finish()?;
            self.programs.forget_kernels();
        }
        scratch.get(purpose, bytes, |bytes| Buffer::new(&self.context, bytes))
    }
}

#[cfg(test)]
mod tests {
    use lapidary_kernels::VectorParams;

    use super::*;

    #[test]
    fn what_does_not_work_gives_way_to_the_next() {
        let next = |items: usize| (items > 1).then_some(items / 2);
        let with_at_most = |most: usize, kind| {
            first_that_works(64, next, |items| if items <= most { Ok(()) } else { Err(Error::new(kind, "compile", "no")) })
        };
        assert_eq!(with_at_most(64, ErrorKind::DeviceFailed).unwrap(), 64);
        assert_eq!(with_at_most(31, ErrorKind::Unsupported).unwrap(), 16);
        assert_eq!(with_at_most(0, ErrorKind::DeviceFailed).unwrap_err().kind(), ErrorKind::DeviceFailed);
        assert_eq!(with_at_most(31, ErrorKind::OutOfMemory).unwrap_err().kind(), ErrorKind::OutOfMemory);
    }

    /// Tests a device that reports a larger maximum work-group size than its kernels support.
    #[test]
    fn groups_of_too_many_are_halved() {
        let Some((found, context)) = crate::program::tests::device() else { return };
        let queue = Queue::new(&context, &found).unwrap();
        let most = found.facts.limits.work_group;
        let mut kernels = Kernels::new(Arc::new(context), found, vec![queue], Arc::new(ProgramCache::new(None)));
        kernels.found.facts.limits.work_group = usize::MAX;
        kernels.choices.pivot_search_group_size = 2 * most.next_power_of_two();
        kernels.choices.strip_group_size = 2 * most.next_power_of_two();
        kernels.choices.trsm_group_size[0] = 2 * most.next_power_of_two();
        kernels.choices.laswp_group_size = 2 * most.next_power_of_two();
        let buffer = Buffer::new(&kernels.context, 8).unwrap();
        let part = View { buffer: &buffer, at: 0, rows: 2, cols: 1, ld: 2 };
        let panel = Instruction::Getrf { pivoting: true, first_row: 0, a: part, ipiv: part, info: part };
        kernels.choose_working_kernels(DType::F32, &panel).unwrap();
        assert!(kernels.choices.pivot_search_group_size <= most, "{}", kernels.choices.pivot_search_group_size);
        assert!(kernels.choices.strip_group_size <= most, "{}", kernels.choices.strip_group_size);
        let Choices { trsm_group_size: [trsm_group_size, _], laswp_group_size, .. } = kernels.choices;
        assert!(
            [trsm_group_size, laswp_group_size].iter().all(|items| (1..=most).contains(items)),
            "{trsm_group_size}, {laswp_group_size}"
        );
    }

    /// Compiles every variant of the kernels for products by vector loads that devices choose or tests run. A variant that does not
    /// compile would silently give way to tiles.
    #[test]
    fn products_by_vectors_compile() {
        let Some((found, context)) = crate::program::tests::device() else { return };
        let mut programs = Programs::new(Arc::new(ProgramCache::new(None)));
        let small = VectorParams { mwg: 32, nwg: 32, kwg: 4, mr: 4, nr: 8, lanes_n: 4, zigzag: true, ahead: false };
        let mut compiles = |program: Program| {
            let _ = programs.program(&context, &found, &program).unwrap();
        };
        for dtype in [DType::F32, DType::F64].into_iter().filter(|&dtype| found.facts.computes(dtype)) {
            let ahead = VectorParams { zigzag: false, ahead: true, ..small };
            for params in [VectorParams::wide(dtype), VectorParams::narrow(dtype), small, ahead] {
                for (trans_b, vec_c) in [(false, false), (false, true), (true, false), (true, true)] {
                    compiles(Program::GemmVector { dtype, params, trans_b, vec_c });
                }
            }
            compiles(Program::Pad { dtype, items: 256 });
        }
    }
}
