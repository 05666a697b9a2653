//! The kernels of one device, and the queues that run them.

use std::collections::HashMap;
use std::sync::Arc;

use lapidary_core::{Conditions, DType, DeviceFacts, Error, ErrorKind, Instruction, KernelTime, Lookahead, ProgramCache, Result};
use lapidary_kernels::{Call, Database, Dialect, Launch, Program, Purpose, Scratch, Target, Tuning, instructions, launches};

use crate::buffer::{Buffer, Context, Event};
use crate::conv::View;
use crate::platform::Found;
use crate::program::Programs;
use crate::queue::Queue;
use crate::times::Times;

/// The kernels of one device, and the queues that run them.
#[derive(Debug)]
pub(crate) struct Kernels {
    context: Arc<Context>,
    found: Found,
    lanes: Vec<Lane>,
    /// Index of the lane in which the current instruction is enqueued.
    current: usize,
    /// Conditions under which the current instruction runs.
    conditions: Conditions,
    programs: Programs,
    /// The kernels of the database.
    listed: Tuning,
    /// The kernels in use: those that a caller prefers, then those of the database.
    tuning: Tuning,
    /// Whether the device can run the programs for which there are substitutes.
    runs: HashMap<Program, bool>,
    /// The times of kernels, if the device records them.
    times: Option<Times>,
}

/// A queue with the scratch memory of its kernels. Two queues do not share scratch memory, because their kernels may run at
/// the same time.
#[derive(Debug)]
struct Lane {
    queue: Arc<Queue>,
    scratch: Scratch<Buffer>,
}

impl Kernels {
    pub fn new(context: Arc<Context>, found: Found, queues: Vec<Queue>, cache: Arc<ProgramCache>) -> Self {
        let tuning = Tuning::lookup(Database::shipped(), &found.facts, Dialect::OpenClC);
        let lanes = queues.into_iter().map(|queue| Lane { queue: Arc::new(queue), scratch: Scratch::default() }).collect();
        Kernels {
            context,
            found,
            lanes,
            current: 0,
            conditions: Conditions::default(),
            programs: Programs::new(cache),
            listed: tuning.clone(),
            tuning,
            runs: HashMap::new(),
            times: None,
        }
    }

    /// Replaces the queues by queues that record the times of kernels. No kernel has been enqueued yet.
    pub fn record_times(&mut self) -> Result<()> {
        for lane in &mut self.lanes {
            lane.queue = Arc::new(Queue::timed(&self.context, &self.found)?);
        }
        self.times = Some(Times::default());
        Ok(())
    }

    /// Waits for all kernels, and removes and returns their times. `None` if the device records no times.
    pub fn take_times(&mut self) -> Option<Result<Vec<KernelTime>>> {
        let finished = self.times.is_some().then(|| self.finish())?;
        let taken = self.times.as_mut()?.take();
        Some(finished.and(taken))
    }

    /// Returns when and how LU on the device alone works in panels.
    pub fn lookahead(&self, dtype: DType) -> Lookahead {
        self.tuning.lookahead(dtype)
    }

    /// Blocks until all queues are empty. In a queue shared with an application, the application's own commands must complete, too.
    pub fn finish(&self) -> Result<()> {
        self.lanes.iter().try_for_each(|lane| lane.queue.finish())
    }

    /// Limits scratch memory. `limit` is the device's memory limit in bytes, of which each queue gets an equal share.
    pub fn limit_memory(&mut self, limit: usize) {
        let share = limit / self.lanes.len();
        self.listed = self.listed.clone().within_memory(share);
        self.tuning = self.tuning.clone().within_memory(share);
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
    #[cfg(feature = "test-hooks")]
    pub fn use_tiles(&mut self) -> Result<()> {
        let facts = &self.found.facts;
        // compilers for CPUs take minutes to compile kernels with large work-groups or long loops between barriers
        let products = if facts.is_cpu() { "gemm_tile mwg=8 nwg=8 kwg=2 mr=2 nr=2 vwm=1 stages=2\npanel items=8\n" } else { "" };
        let [strips, columns] = [128, 256].map(|items: usize| 1_usize << items.min(facts.limits.work_group).ilog2());
        let columns = format!("strips items={strips}\ncolumns rows>=16 items={columns}\n");
        let groups = columns + "exchange items=16\nsolve items=16\nbatched items=16\n";
        let tiles = Tuning::shared(facts, Dialect::OpenClC);
        self.list(self.with_entries(tiles, &[products, &groups].concat())?);
        Ok(())
    }

    /// Chooses the kernels that a text of the database names before all others.
    pub fn prefer(&mut self, entries: &str) -> Result<()> {
        self.tuning = self.with_entries(self.listed.clone(), entries)?;
        Ok(())
    }

    fn with_entries(&self, tuning: Tuning, entries: &str) -> Result<Tuning> {
        let facts = &self.found.facts;
        let tuning = tuning.preferring(entries, facts, Dialect::OpenClC);
        tuning.map_err(|reason| Error::invalid("prefer_kernels", reason).with("device", &facts.name))
    }

    /// Replaces the kernels of the database. The limit of scratch memory stays.
    fn list(&mut self, mut tuning: Tuning) {
        tuning.max_scratch_bytes = self.listed.max_scratch_bytes;
        self.listed = tuning.clone();
        self.tuning = tuning;
    }

    /// Looks up all kernels in `database`.
    pub fn use_database(&mut self, database: &Database) {
        self.list(Tuning::lookup(database, &self.found.facts, Dialect::OpenClC));
    }

    /// Creates the kernels of an instruction on matrices of `dtype`, under `conditions`. A kernel that the driver refuses is left out, because
    /// another one replaces it when the instruction runs.
    pub fn prepare(
        &mut self,
        dtype: DType,
        instruction: &Instruction<lapidary_kernels::View<'_, ()>>,
        conditions: Conditions,
    ) -> Result<()> {
        for Launch { program, kernel, .. } in launches(&self.found.facts, &self.tuning, dtype, instruction, conditions)? {
            match self.programs.kernel(&self.context, &self.found, &program, kernel) {
                Err(error) if error.kind() == ErrorKind::DeviceLost => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Compiles the program of a product in single precision, or loads it from the cache.
    pub fn prepare_program(&mut self) -> Result<()> {
        let (program, _) = self.product()?;
        self.programs.program(&self.context, &self.found, &program).map(drop)
    }

    /// Creates the kernel of a product in single precision.
    pub fn prepare_kernel(&mut self) -> Result<()> {
        let (program, kernel) = self.product()?;
        self.programs.kernel(&self.context, &self.found, &program, kernel).map(drop)
    }

    /// Returns whether the device has the instructions that `probe` runs.
    fn has_instructions(&mut self, probe: &Program) -> Result<bool> {
        if let Some(&has) = self.runs.get(probe) {
            return Ok(has);
        }
        let kernel = self.programs.kernel(&self.context, &self.found, probe, "mma_probe")?;
        let has = crate::probe::is_right(&self.context, &self.lanes[self.current].queue, probe, kernel)?;
        self.runs.insert(*probe, has);
        Ok(has)
    }

    fn product(&self) -> Result<(Program, &'static str)> {
        let first = self.tuning.products(DType::F32, [LARGE; 3]).next();
        let product =
            first.ok_or_else(|| Error::new(ErrorKind::Unsupported, "prepare", "the device runs no kernel for products"))?;
        Ok((product.program(DType::F32), product.kernel()))
    }

    /// Enqueues instructions, each on matrices of a type, in the queue with the index `number`. The first instruction starts after the
    /// events in `after`, which belong to other queues. The instructions run under `conditions`. Returns the queue and the event that signals
    /// the end of the last instruction. There is one event for all instructions, because a marker after each of them would slow short kernels.
    ///
    /// # Safety
    /// The conditions of [`instructions::enqueue`] hold.
    pub unsafe fn run<'a>(
        &mut self,
        instructions: impl IntoIterator<Item = (DType, Instruction<View<'a>>)>,
        (number, conditions): (usize, Conditions),
        after: &[&Event],
    ) -> Result<(Arc<Queue>, Event)> {
        let queue = Arc::clone(&self.lanes[number].queue);
        queue.wait_for(after).or_else(|error| self.finish_and_fail(number, error))?;
        self.conditions = conditions;
        // SAFETY: the caller guarantees the conditions of `instructions::enqueue`.
        instructions.into_iter().try_for_each(|(dtype, instruction)| unsafe { self.enqueue(number, dtype, &instruction) })?;
        let end = queue.end().or_else(|error| self.finish_and_fail(number, error))?;
        Ok((queue, end))
    }

    /// Enqueues an instruction of a stream in queue 0, without an event.
    ///
    /// # Safety
    /// The conditions of [`instructions::enqueue`] hold.
    pub unsafe fn enqueue_in_stream(&mut self, dtype: DType, instruction: &Instruction<View<'_>>) -> Result<()> {
        self.conditions = Conditions::default();
        // SAFETY: the caller guarantees the conditions of `instructions::enqueue`.
        unsafe { self.enqueue(0, dtype, instruction) }
    }

    unsafe fn enqueue(&mut self, number: usize, dtype: DType, instruction: &Instruction<View<'_>>) -> Result<()> {
        self.current = number;
        // SAFETY: the caller guarantees the conditions of `instructions::enqueue`.
        let enqueued = unsafe { instructions::enqueue(self, dtype, instruction) };
        enqueued.or_else(|error| self.finish_and_fail(number, error)).map_err(|error| error.with("instruction", instruction.name()))
    }

    /// Waits until a queue is empty, because kernels that were enqueued before the error may access memory that the caller frees after
    /// the error. Returns the error, or the loss of the device.
    fn finish_and_fail<R>(&self, number: usize, error: Error) -> Result<R> {
        let finished = self.lanes[number].queue.finish();
        Err(finished.err().filter(|finished| finished.kind() == ErrorKind::DeviceLost).unwrap_or(error))
    }

    /// The queue of streams, which is kernel queue 0.
    pub fn stream_queue(&self) -> &Arc<Queue> {
        &self.lanes[0].queue
    }
}

/// Order of a product that is large for every device.
const LARGE: usize = 1 << 16;

impl Target for Kernels {
    type Buffer = Buffer;

    fn facts(&self) -> &DeviceFacts {
        &self.found.facts
    }

    fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    fn can_run(&mut self, program: &Program, kernel: &'static str) -> Result<bool> {
        if let Some(&runs) = self.runs.get(program) {
            return Ok(runs);
        }
        let tried = match program.probe().map(|probe| self.has_instructions(&probe)) {
            Some(Ok(false)) => Ok(false),
            Some(Err(error)) => Err(error),
            Some(Ok(true)) | None => self.programs.try_kernel(&self.context, &self.found, program, kernel).map(|()| true),
        };
        let runs = match tried {
            Ok(runs) => runs,
            // the device may have memory later
            Err(error) if error.kind() == ErrorKind::OutOfMemory => return Ok(false),
            Err(error) if matches!(error.kind(), ErrorKind::DeviceFailed | ErrorKind::Unsupported) => false,
            Err(error) => return Err(error),
        };
        self.runs.insert(*program, runs);
        Ok(runs)
    }

    fn can_read_image(&mut self, buffer: &Buffer, written: &Buffer) -> Result<bool> {
        let makes_image = || buffer.make_image(&self.context, self.found.facts.limits.image_pixels);
        Ok(buffer.handle() != written.handle() && makes_image())
    }

    fn begin(&mut self, operation: &'static str) {
        if let Some(times) = &mut self.times {
            times.begin(operation);
        }
    }

    fn conditions(&self) -> Conditions {
        self.conditions
    }

    unsafe fn launch(&mut self, call: &Call<'_, '_, Buffer>) -> Result<()> {
        let kernel = self.programs.kernel(&self.context, &self.found, &call.program, call.kernel)?;
        let queue = &self.lanes[self.current].queue;
        // SAFETY: the caller guarantees the conditions of `Target::launch`.
        let launched = unsafe { queue.launch(kernel, call.global, call.program.local(), call.args) };
        let event = launched.map_err(|error| error.with("kernel", call.kernel))?;
        if let (Some(times), Some(event)) = (&mut self.times, event) {
            times.add(call.kernel, self.current, event);
        }
        Ok(())
    }

    fn scratch(&mut self, purpose: Purpose, bytes: usize) -> Result<Arc<Buffer>> {
        let Lane { queue, scratch } = &mut self.lanes[self.current];
        if scratch.must_finish(purpose, bytes) {
            queue.finish()?;
            self.programs.forget_kernels();
        }
        let alloc = if purpose.begins_with_zeros() { Buffer::zeros } else { Buffer::new };
        scratch.get(purpose, bytes, |bytes| alloc(&self.context, bytes))
    }
}

#[cfg(test)]
mod tests {
    use cl3::command_queue::enqueue_read_buffer;
    use cl3::types::CL_BLOCKING;
    use lapidary_core::{Diag, Op, Side, TrsmMode, Uplo, Value};
    use lapidary_kernels::{HEADER_WORDS, Product, RECORD_BYTES, VectorParams};

    use super::*;

    /// Returns the kernels of the first device.
    fn first() -> Option<Kernels> {
        let (found, context) = crate::program::tests::device()?;
        let queue = Queue::new(&context, &found).unwrap();
        Some(Kernels::new(Arc::new(context), found, vec![queue], Arc::new(ProgramCache::new(None))))
    }

    /// Tests a device that reports a larger maximum work-group size than its kernels support.
    #[test]
    fn entries_that_the_compiler_refuses_give_way_to_the_next() {
        let Some(mut kernels) = first() else { return };
        let most = kernels.found.facts.limits.work_group;
        kernels.found.facts.limits.work_group = usize::MAX;
        let items = 2 * most.next_power_of_two();
        kernels.prefer(&format!("panel items={items}\npanel items=8\nstop strips\nstop columns")).unwrap();
        let buffer = Buffer::new(&kernels.context, 64).unwrap();
        let part = |rows| View { buffer: &buffer, at: 0, rows, cols: 1, ld: rows };
        let panel = Instruction::Getrf { pivoting: true, first_row: 0, a: part(2), ipiv: part(1), info: part(1) };
        // SAFETY: the views lie in the buffer, which nothing else accesses.
        let (_, event) = unsafe { kernels.run([(DType::F32, panel)], (0, Conditions::default()), &[]).unwrap() };
        crate::queue::wait(&event).unwrap();
        let runs = |items| kernels.runs.get(&Program::Panel { dtype: DType::F32, items }).copied();
        assert_eq!([items, 8].map(runs), [Some(false), Some(true)]);
    }

    /// The messages of a launch of `getrf_held_rows` or `trsv` are cleared before a later launch could take them for its own: the region that the
    /// next launch uses is zero, whatever the types and sizes of the panels and triangles were.
    #[test]
    fn messages_of_earlier_launches_are_cleared() {
        let Some(mut kernels) = first() else { return };
        if !kernels.found.facts.computes(DType::F64) {
            return;
        }
        kernels.prefer("held_rows items=64\ntrsv items=64").unwrap();
        let bytes = 128 * 128 * size_of::<f64>();
        let [matrix, sides, pivots] =
            [bytes, bytes, 64 * size_of::<i32>()].map(|bytes| Buffer::zeros(&kernels.context, bytes).unwrap());
        let queue = Arc::clone(&kernels.lanes[0].queue);
        let (panel, triangle) = ("getrf", "trsm");
        for (launches, (name, dtype, rows, cols)) in (1..).zip([
            (panel, DType::F64, 60, 32),
            (triangle, DType::F64, 128, 3),
            (panel, DType::F32, 40, 7),
            (triangle, DType::F32, 65, 1),
            (triangle, DType::F32, 5, 2),
            (panel, DType::F32, 64, 20),
            (panel, DType::F64, 5, 1),
            (triangle, DType::F64, 100, 1),
        ]) {
            let [info, ipiv] = [(0, 1), (1, cols)].map(|(at, rows)| View { buffer: &pivots, at, rows, cols: 1, ld: rows });
            let a = View { buffer: &matrix, at: 0, rows, cols, ld: rows };
            let instruction = if name == panel {
                Instruction::Getrf { pivoting: true, first_row: 0, a, ipiv, info }
            } else {
                let (mode, side, uplo, op, diag) = (TrsmMode::Substitution, Side::Left, Uplo::Upper, Op::Trans, Diag::Unit);
                let triangle = View { cols: rows, ..a };
                Instruction::Trsm {
                    mode,
                    side,
                    uplo,
                    op,
                    diag,
                    alpha: Value::new(dtype, 1.0),
                    a: triangle,
                    b: View { buffer: &sides, ..a },
                }
            };
            // SAFETY: the views lie in the buffers, which nothing else accesses.
            let (_, event) = unsafe { kernels.run([(dtype, instruction)], (0, Conditions::default()), &[]).unwrap() };
            crate::queue::wait(&event).unwrap();
            let records = kernels.scratch(Purpose::Synchronisation, 0).unwrap();
            let mut words = vec![0_u64; RECORD_BYTES / size_of::<u64>()];
            let to = words.as_mut_ptr().cast();
            // SAFETY: the queue and the buffer are valid, and the words hold as many bytes as are read before the call returns.
            let read = unsafe {
                enqueue_read_buffer(queue.handle(), records.handle(), CL_BLOCKING, 0, RECORD_BYTES, to, 0, std::ptr::null())
            };
            drop(Event(read.unwrap()));
            let (head, regions) = words.split_at(HEADER_WORDS);
            let used: Vec<bool> = regions.chunks(regions.len() / 2).map(|region| region.iter().any(|&word| word != 0)).collect();
            assert_eq!((head[0], &head[2..]), (launches, &[0; HEADER_WORDS - 2][..]), "{name} {dtype}, {rows} × {cols}");
            assert_eq!(used, [launches % 2 == 1, launches % 2 == 0], "{name} {dtype}, {rows} × {cols}");
        }
    }

    /// Compiles every kernel for products by vector loads of the database, and kernels that tests run. A kernel that does not compile
    /// would silently give way to the next entry.
    #[test]
    fn products_by_vectors_compile() {
        let Some((found, context)) = crate::program::tests::device() else { return };
        let mut programs = Programs::new(Arc::new(ProgramCache::new(None)));
        let small = VectorParams { mwg: 32, nwg: 32, kwg: 4, mr: 4, nr: 8, lanes_n: 4, zigzag: true, ahead: false, images: false };
        let mut compiles = |program: Program| {
            let _ = programs.program(&context, &found, &program).unwrap();
        };
        for dtype in [DType::F32, DType::F64].into_iter().filter(|&dtype| found.facts.computes(dtype)) {
            let listed = Tuning::shared(&found.facts, Dialect::OpenClC);
            let listed = listed.products(dtype, [LARGE; 3]).filter_map(|product| match product {
                Product::Vector(params) => Some(params),
                Product::Tile(_) | Product::Panel(..) | Product::Block(_) | Product::Mma(_) => None,
            });
            let listed: Vec<VectorParams> = listed.collect();
            assert!(listed.len() >= 2, "{listed:?}");
            let images = found.facts.limits.image_pixels > 0;
            for params in listed.into_iter().chain([small, VectorParams { zigzag: false, ahead: true, images, ..small }]) {
                for (trans_b, vec_c) in [(false, false), (false, true), (true, false), (true, true)] {
                    compiles(Program::GemmVector { dtype, params, trans_b, vec_c });
                }
            }
            compiles(Program::Pad { dtype, items: 256 });
        }
    }
}
