//! The kernels of one device, and the queue that runs them.

use std::iter::successors;
use std::ops::RangeInclusive;
use std::sync::Arc;

use lapidary_core::{DType, Error, ErrorKind, Instruction, ProgramCache, Result};
use lapidary_kernels::{Call, Choices, Limits, Products, Program, Purpose, Scratch, Target, TileParams, instructions};

use crate::buffer::{Buffer, Context};
use crate::conv::View;
use crate::platform::Found;
use crate::program::Programs;
use crate::queue::Queue;

/// The kernels of one device, and the queue that runs them.
#[derive(Debug)]
pub(crate) struct Kernels {
    context: Arc<Context>,
    found: Found,
    queue: Queue,
    programs: Programs,
    choices: Choices,
    settled: Settled,
    scratch: Scratch<Buffer>,
}

/// Which choices are known to work here, in f32 and in f64.
#[derive(Debug, Default)]
struct Settled {
    products: [bool; 2],
    searchers: [bool; 2],
    solvers: [bool; 2],
    exchangers: [bool; 2],
    /// Heights of panels whose strips work.
    strips: [Option<RangeInclusive<usize>>; 2],
}

/// In the names of devices whose loops end early.
const SHORT_LOOPS: &str = "llvmpipe";

impl Kernels {
    pub fn new(context: Arc<Context>, found: Found, queue: Queue, cache: Arc<ProgramCache>) -> Result<Self> {
        let choices = if found.is_cpu { Choices::barrier_free(&found.limits, found.vector_bits) } else { Self::shared(&found)? };
        let choices = if found.name.contains(SHORT_LOOPS) { choices.with_short_loops() } else { choices };
        let programs = Programs::new(cache);
        Ok(Kernels { context, found, queue, programs, choices, settled: Settled::default(), scratch: Scratch::default() })
    }

    /// Waits for everything in the queue, the application's work too.
    pub fn finish(&self) -> Result<()> {
        self.queue.finish()
    }

    /// Gives up the memory of earlier calls.
    pub fn forget_arguments(&mut self) {
        self.programs.forget_kernels();
        self.scratch = Scratch::default();
    }

    /// Computes with local memory and barriers, and panels by many small work-groups, whatever the device is.
    pub fn use_tiles(&mut self) -> Result<()> {
        let found = &self.found;
        let choices = if found.is_cpu { Choices::shared_on_processor(&found.limits) } else { Self::shared(found)? };
        self.choices = Choices { strips: 128, spread: 16, exchangers: 16, solvers: [16; 2], ..choices };
        Ok(())
    }

    fn shared(found: &Found) -> Result<Choices> {
        let too_small = |reason| Error::new(ErrorKind::Unsupported, "open", format!("{}: {reason}", found.name));
        let choices = Choices::shared(&found.limits).map_err(too_small)?;
        Ok(choices.with_units(found.compute_units as usize, &found.limits))
    }

    /// Factors panels by strips for groups of so many work-items.
    pub fn use_strips(&mut self, items: usize) -> Result<()> {
        let choices = self.choices.with_strips(items, &self.found.limits);
        self.choices = choices.map_err(|reason| Error::invalid("with_strips", reason))?;
        self.settled = Settled::default();
        Ok(())
    }

    /// Computes products in these ways.
    pub fn use_products(&mut self, products: [Products; 2]) {
        self.choices.products = products;
        self.settled = Settled::default();
    }

    /// Compiles or loads the program of a product in single precision.
    pub fn prepare_program(&mut self) -> Result<()> {
        let (program, _) = self.product();
        self.programs.program(&self.context, &self.found, &program).map(drop)
    }

    /// Makes the kernel of a product in single precision.
    pub fn prepare_kernel(&mut self) -> Result<()> {
        let (program, kernel) = self.product();
        self.programs.kernel(&self.context, &self.found, &program, kernel).map(drop)
    }

    /// Before the first instruction of its kind: goes down to tiles, strips of panels and groups that
    /// search, solve and exchange of a size that the device's compiler takes.
    fn settle(&mut self, dtype: DType, instruction: &Instruction<View<'_>>) -> Result<()> {
        // products, and the heights of panels
        let (multiplies, panel) = match instruction {
            Instruction::Gemm { .. } | Instruction::Trsm { .. } | Instruction::Trtri { .. } => (true, None),
            Instruction::Getrf { a, .. } => (true, Some((a.rows - a.rows.min(a.cols)).max(1)..=a.rows)),
            Instruction::Laswp { .. } | Instruction::Copy { .. } | Instruction::Scale { .. } => (false, None),
        };
        let at = usize::from(dtype == DType::F64);
        let Kernels { programs, context, found, choices, settled, .. } = self;
        if let (true, false, Products::Tile(first)) = (multiplies, settled.products[at], choices.product(dtype)) {
            // safe choices go down in local memory
            let less = |params: TileParams| Limits { local_memory: params.local_bytes(dtype).saturating_sub(1), ..found.limits };
            let next = |params| TileParams::choose(dtype, &less(params)).ok();
            let params = first_that_works(first, next, |params| {
                let (program, kernel) = Products::Tile(params).plain(dtype);
                programs.try_kernel(context, found, &program, kernel)
            })?;
            choices.products[at] = Products::Tile(params);
            settled.products[at] = true;
        }
        let known = |heights: &RangeInclusive<usize>| settled.strips[at].as_ref().is_some_and(|known| covers(known, heights));
        if let Some(heights) = panel.as_ref().filter(|heights| !known(heights)) {
            let (shortest, tallest) = (*heights.start(), *heights.end());
            // without strips panels go column by column, in both precisions
            let next = |items: usize| (items > 0).then_some(if items > LEAST_STRIP { items / 2 } else { 0 });
            let strips = first_that_works(choices.strips, next, |items| {
                // every shape that a panel may have; a shorter one may hold more
                let less = |&rows: &usize| (rows > shortest).then_some(shortest.max(rows.saturating_sub(items.max(1))));
                let heights = successors(Some(tallest), less);
                let shapes = heights.filter_map(|rows| Choices { strips: items, ..*choices }.strips(dtype, rows));
                let mut shapes: Vec<_> = shapes.collect();
                shapes.dedup();
                shapes
                    .into_iter()
                    .try_for_each(|params| programs.try_kernel(context, found, &Program::Strips { dtype, params }, "getrf_strip"))
            })?;
            if strips != choices.strips {
                choices.strips = strips;
                settled.strips = [None, None];
            }
            settled.strips[at] = Some(heights.clone());
        }
        // without groups each work-item solves and exchanges alone
        let halved = |items: usize| (items > 0).then_some(items / 2);
        if matches!(instruction, Instruction::Trsm { .. } | Instruction::Getrf { .. }) && !settled.solvers[at] {
            choices.solvers[at] = first_that_works(choices.solvers[at], halved, |items| match items {
                0 => Ok(()),
                items => programs.try_kernel(context, found, &Program::Solve { dtype, items }, "solve"),
            })?;
            settled.solvers[at] = true;
        }
        if matches!(instruction, Instruction::Laswp { .. } | Instruction::Getrf { .. }) && !settled.exchangers[at] {
            choices.exchangers = first_that_works(choices.exchangers, halved, |items| match items {
                0 => Ok(()),
                items => programs.try_kernel(context, found, &Program::Exchange { dtype, items }, "exchange"),
            })?;
            settled.exchangers[at] = true;
        }
        if panel.is_some() && !settled.searchers[at] {
            let next = |items: usize| (items > 1).then_some(items / 2);
            choices.searchers = first_that_works(choices.searchers, next, |items| {
                programs.try_kernel(context, found, &Program::Panel { dtype, items }, "getrf_panel")
            })?;
            settled.searchers[at] = true;
        }
        Ok(())
    }

    fn product(&self) -> (Program, &'static str) {
        self.choices.product(DType::F32).plain(DType::F32)
    }

    /// Runs an instruction on matrices of `dtype` to its end.
    ///
    /// # Safety
    /// As [`instructions::enqueue`].
    pub unsafe fn run(&mut self, dtype: DType, instruction: &Instruction<View<'_>>) -> Result<()> {
        // SAFETY: as the caller promises. The queue is drained after a failure too:
        // what was enqueued must not touch memory that the caller takes back.
        let result = self.settle(dtype, instruction).and_then(|()| unsafe { instructions::enqueue(self, dtype, instruction) });
        result.and(self.queue.drain()).map_err(|error| error.with("instruction", instruction.name()))
    }
}

fn covers(all: &RangeInclusive<usize>, some: &RangeInclusive<usize>) -> bool {
    all.contains(some.start()) && all.contains(some.end())
}

/// Fewest work-items that are worth a strip of their own.
const LEAST_STRIP: usize = 32;

/// The first choice, or the next one of which the kernel can be made and run.
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

    fn choices(&self) -> &Choices {
        &self.choices
    }

    unsafe fn launch(&mut self, call: &Call<'_, '_, Buffer>) -> Result<()> {
        let kernel = self.programs.kernel(&self.context, &self.found, &call.program, call.kernel)?;
        // SAFETY: as the caller promises.
        let launched = unsafe { self.queue.launch(kernel, call.global, call.program.local(), call.args) };
        launched.map_err(|error| error.with("kernel", call.kernel))
    }

    fn scratch(&mut self, purpose: Purpose, bytes: usize) -> Result<Arc<Buffer>> {
        self.scratch.get(purpose, bytes, |bytes| Buffer::new(&self.context, bytes))
    }
}

#[cfg(test)]
mod tests {
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

    /// A device that promises more work-items than its kernels can have.
    #[test]
    fn groups_of_too_many_are_halved() {
        let Some((found, context)) = crate::program::tests::device() else { return };
        let queue = Queue::new(&context, &found).unwrap();
        let most = found.limits.work_group;
        let mut kernels = Kernels::new(Arc::new(context), found, queue, Arc::new(ProgramCache::new(None))).unwrap();
        kernels.found.limits.work_group = usize::MAX;
        kernels.choices.searchers = 2 * most.next_power_of_two();
        kernels.choices.strips = 2 * most.next_power_of_two();
        kernels.choices.solvers[0] = 2 * most.next_power_of_two();
        kernels.choices.exchangers = 2 * most.next_power_of_two();
        let buffer = Buffer::new(&kernels.context, 8).unwrap();
        let part = View { buffer: &buffer, at: 0, rows: 2, cols: 1, ld: 2 };
        let panel = Instruction::Getrf { pivoting: true, first_row: 0, a: part, ipiv: part, info: part };
        kernels.settle(DType::F32, &panel).unwrap();
        assert!(kernels.choices.searchers <= most, "{}", kernels.choices.searchers);
        assert!(kernels.choices.strips <= most, "{}", kernels.choices.strips);
        let Choices { solvers: [solvers, _], exchangers, .. } = kernels.choices;
        assert!([solvers, exchangers].iter().all(|items| (1..=most).contains(items)), "{solvers}, {exchangers}");
    }
}
