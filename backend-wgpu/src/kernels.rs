//! Runs the kernels of one device. The calls of kernels are first collected and then submitted together in compute passes.

use std::collections::HashMap;
use std::sync::Arc;

use lapidary_core::{DType, DeviceFacts, Error, ErrorKind, Instruction, KernelTime, ProgramCache, Result};
use lapidary_kernels::{Arg, Call, Database, Dialect, Program, Purpose, Scratch, Target, Tuning, instructions, wgsl};

use crate::buffer::Buffer;
use crate::conv::View;
use crate::program::Programs;
use crate::queue::{Queue, Submission};
use crate::times::{Label, Queries, Times};

/// Number of kernel calls in the first compute pass of an instruction, and the maximum number in any compute pass. Until this
/// maximum, each pass holds twice as many kernel calls as the previous pass. The device runs a pass while the host collects the
/// calls of the next pass.
const CALLS_PER_PASS: (usize, usize) = (16, 1024);

/// Maximum number of kernel calls of streams in one submission. A submission takes the host as long as some ten calls.
const MAX_STREAM_CALLS: usize = 128;

/// The compiled kernels of one device, and the collected kernel calls that are not submitted yet.
#[derive(Debug)]
pub(crate) struct Kernels {
    queue: Arc<Queue>,
    programs: Programs,
    facts: Arc<DeviceFacts>,
    /// The kernels of the database.
    listed: Tuning,
    /// The kernels in use: those that a caller prefers, then those of the database.
    tuning: Tuning,
    /// Buffer with the arguments of all kernel calls of a pass. The arguments of a kernel call begin at a multiple of `stride`
    /// bytes.
    arguments: wgpu::Buffer,
    stride: usize,
    /// Arguments of the kernel calls that are collected for the next pass.
    staged: Vec<u8>,
    /// The bytes that the buffer `arguments` holds since the last pass that wrote it. A pass whose arguments equal `written` does
    /// not write the buffer again.
    written: Vec<u8>,
    calls: Vec<Gathered>,
    /// Number of collected calls that belong to complete instructions of streams.
    in_stream: usize,
    /// Maximum number of kernel calls in the next pass.
    room: usize,
    /// Number of collected calls at which a stream submits them.
    stream_room: usize,
    /// Bind groups of the current instruction, or of the instructions of streams since the last token. The bind groups are then dropped,
    /// because a bind group keeps the buffers of registers alive.
    bound: HashMap<Bound, wgpu::BindGroup>,
    /// The last submitted pass of the current instruction.
    submitted: Option<Submission>,
    /// The last submission.
    last: Option<Submission>,
    /// Why calls of streams were not submitted, until a token reports it.
    refused: Option<Error>,
    scratch: Scratch<Buffer>,
    /// The times of kernels, if the device records them.
    times: Option<Times>,
}

/// Key of a bind group: a program, the name of a kernel of the program, and the buffers of the operands.
type Bound = (Program, &'static str, Vec<wgpu::Buffer>);

/// A kernel call that is not submitted yet.
#[derive(Debug)]
struct Gathered {
    pipeline: wgpu::ComputePipeline,
    bound: wgpu::BindGroup,
    offset: u32,
    groups: [u32; 2],
    label: Label,
}

impl Kernels {
    pub fn new(queue: Arc<Queue>, facts: Arc<DeviceFacts>, disk: Arc<ProgramCache>) -> Result<Self> {
        let programs = Programs::new(&queue, facts.limits, disk)?;
        let stride = queue.device().limits().min_uniform_buffer_offset_alignment.max(LONGEST as u32) as usize;
        let descriptor = wgpu::BufferDescriptor {
            label: Some("arguments"),
            size: (CALLS_PER_PASS.1 * stride) as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        };
        let arguments = queue.guarded("open", |device| device.create_buffer(&descriptor))?;
        let tuning = Tuning::lookup(Database::shipped(), &facts, Dialect::Wgsl);
        Ok(Kernels {
            queue,
            programs,
            listed: tuning.clone(),
            tuning,
            facts,
            arguments,
            stride,
            staged: Vec::new(),
            written: Vec::new(),
            calls: Vec::new(),
            in_stream: 0,
            room: CALLS_PER_PASS.0,
            stream_room: 1,
            bound: HashMap::new(),
            submitted: None,
            last: None,
            refused: None,
            scratch: Scratch::default(),
            times: None,
        })
    }

    /// Records the times of kernels from now on.
    pub fn record_times(&mut self) {
        self.times = Some(Times::default());
    }

    /// Removes and returns the times of the kernels. `None` if the device records no times.
    pub fn take_times(&mut self) -> Option<Result<Vec<KernelTime>>> {
        let period = self.queue.timestamp_period();
        self.times.as_mut().map(|times| times.take(period))
    }

    /// Replaces the kernels of the database. The limit of scratch memory stays.
    pub fn list(&mut self, mut tuning: Tuning) {
        tuning.max_scratch_bytes = self.listed.max_scratch_bytes;
        self.listed = tuning.clone();
        self.tuning = tuning;
    }

    /// Chooses the kernels that a text of the database names before all others.
    pub fn prefer(&mut self, entries: &str) -> Result<()> {
        let tuning = self.listed.clone().preferring(entries, &self.facts, Dialect::Wgsl);
        self.tuning = tuning.map_err(|reason| Error::invalid("prefer_kernels", reason).with("device", &self.facts.name))?;
        Ok(())
    }

    /// Makes all further compilations include every check that wgpu can make while a kernel runs.
    #[cfg(feature = "test-hooks")]
    pub fn use_checks(&mut self) {
        self.programs.use_checks();
    }

    /// Limits scratch memory to its share of `limit`, which is the device's memory limit in bytes.
    pub fn limit_memory(&mut self, limit: usize) {
        self.listed = self.listed.clone().within_memory(limit);
        self.tuning = self.tuning.clone().within_memory(limit);
        self.scratch.limit_memory(limit);
    }

    /// Returns the number of bytes of the device's memory limit that are reserved for scratch memory. Registers and matrices must
    /// not use the reserved bytes.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch.bytes()
    }

    /// Frees the scratch memory that is kept from one instruction to the next.
    pub fn trim(&mut self) {
        self.scratch.clear();
    }

    /// Submits an instruction on matrices of type `dtype`. Returns the last submission, or `None` if the instruction needs no kernel.
    ///
    /// # Safety
    /// The caller upholds the contract of [`instructions::enqueue`].
    pub unsafe fn run(&mut self, dtype: DType, instruction: &Instruction<View<'_>>) -> Result<Option<Submission>> {
        let queue = Arc::clone(&self.queue);
        self.submit_stream()?;
        self.discard();
        // SAFETY: the caller of `run` upholds the contract of `instructions::enqueue`.
        let guarded = queue.guarded("launch", |_| unsafe { instructions::enqueue(self, dtype, instruction) });
        let submitted = guarded.and_then(|enqueued| enqueued).and_then(|()| self.submit());
        let settled = self.times.as_mut().map_or(Ok(()), |times| times.settle(&queue));
        let result = submitted.and(settled);
        self.discard();
        self.programs.keep();
        let last = self.submitted.take();
        result.map(|()| last.clone()).map_err(|error| {
            // the caller may free the operands after an error, so `run` first waits until the submitted kernels have completed; in a
            // browser, a submitted kernel keeps its operands
            let done = last.filter(|_| self.facts.host_may_wait).map_or(Ok(()), |last| self.queue.wait(&last));
            done.err().unwrap_or(error).with("instruction", instruction.name())
        })
    }

    /// Collects the kernel calls of an instruction of a stream. A stream submits its first call at once, and then ever more calls
    /// together, up to the number `MAX_STREAM_CALLS`.
    ///
    /// # Safety
    /// The caller upholds the contract of [`instructions::enqueue`].
    pub unsafe fn collect(&mut self, dtype: DType, instruction: &Instruction<View<'_>>) -> Result<()> {
        let queue = Arc::clone(&self.queue);
        self.drop_incomplete();
        // SAFETY: the caller of `collect` upholds the contract of `instructions::enqueue`.
        let guarded = queue.guarded("launch", |_| unsafe { instructions::enqueue(self, dtype, instruction) });
        self.programs.keep();
        let collected = guarded.and_then(|enqueued| enqueued).and_then(|()| {
            self.in_stream = self.calls.len();
            if self.in_stream < self.stream_room {
                return Ok(());
            }
            self.stream_room = MAX_STREAM_CALLS.min(2 * self.stream_room);
            self.submit()
        });
        collected.map_err(|error| {
            self.drop_incomplete();
            error.with("instruction", instruction.name())
        })
    }

    /// Submits the collected calls of streams.
    pub fn submit_stream(&mut self) -> Result<()> {
        self.drop_incomplete();
        self.submit()
    }

    /// Submits the collected calls of streams, and returns the last submission.
    pub fn end_stream(&mut self) -> Result<Option<Submission>> {
        let submitted = self.submit_stream();
        self.discard();
        self.stream_room = 1;
        let refused = self.refused.take();
        submitted.and(refused.map_or(Ok(()), Err)).map(|()| self.last.clone())
    }

    /// Makes a submission of a transfer the last one.
    pub fn set_last(&mut self, submission: Submission) {
        self.last = Some(submission);
    }

    /// Drops the collected calls of an instruction that has failed or panicked.
    fn drop_incomplete(&mut self) {
        self.calls.truncate(self.in_stream);
        self.staged.truncate(self.in_stream * self.stride);
    }

    /// Drops the collected kernel calls and the bind groups of the last instruction.
    fn discard(&mut self) {
        self.in_stream = 0;
        self.drop_incomplete();
        self.bound.clear();
        self.room = CALLS_PER_PASS.0;
    }

    /// Submits the collected kernel calls. Calls that wgpu refuses are dropped, because it would refuse them again. If they are calls of
    /// streams, the next token reports the error, too.
    fn submit(&mut self) -> Result<()> {
        let is_of_streams = self.in_stream > 0;
        self.submit_calls().inspect_err(|error| {
            self.in_stream = 0;
            self.drop_incomplete();
            if is_of_streams {
                self.refused = Some(error.clone());
            }
        })
    }

    /// Submits the collected kernel calls. The calls share one compute pass. If times are recorded, each call has a pass of its own instead.
    fn submit_calls(&mut self) -> Result<()> {
        if self.calls.is_empty() {
            return Ok(());
        }
        // `written` is empty until the submission has succeeded: if the write fails, the contents of the buffer are unknown
        let written = std::mem::take(&mut self.written);
        let (queue, calls, staged) = (&self.queue, &self.calls, &self.staged);
        let is_timed = self.times.is_some();
        let (submission, queries) = queue.guarded("launch", |device| {
            if !written.starts_with(staged) {
                queue.write(&self.arguments, staged);
            }
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("EXEC") });
            let queries = is_timed.then(|| Queries::new(device, calls.len()));
            // only a whole pass has timestamps
            let calls_per_pass = if is_timed { 1 } else { calls.len() };
            for (number, calls) in (0..).zip(calls.chunks(calls_per_pass)) {
                let timestamp_writes = queries.as_ref().map(|queries| queries.of(number));
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: None, timestamp_writes });
                for call in calls {
                    pass.set_pipeline(&call.pipeline);
                    pass.set_bind_group(0, &call.bound, &[call.offset]);
                    pass.dispatch_workgroups(call.groups[0], call.groups[1], 1);
                }
            }
            if let Some(queries) = &queries {
                queries.resolve(&mut encoder);
            }
            (queue.submit(encoder), queries)
        })?;
        if let (Some(times), Some(queries)) = (&mut self.times, queries) {
            times.add(self.calls.iter().map(|call| call.label).collect(), queries, submission.clone());
        }
        self.last = Some(submission.clone());
        self.submitted = Some(submission);
        self.calls.clear();
        self.in_stream = 0;
        self.written = if written.starts_with(&self.staged) { written } else { std::mem::take(&mut self.staged) };
        self.staged.clear();
        Ok(())
    }

    /// Submits the collected kernel calls, and waits until the device has completed all submissions. After `finish`, no kernel
    /// uses scratch memory that has been replaced.
    fn finish(&mut self) -> Result<()> {
        self.submit()?;
        self.bound.clear();
        let queue = &self.queue;
        let descriptor = wgpu::CommandEncoderDescriptor { label: Some("finish") };
        // the queue runs submissions in order, so this empty submission ends after all preceding submissions
        let last = queue.guarded("launch", |device| queue.submit(device.create_command_encoder(&descriptor)))?;
        queue.wait(&last)
    }

    /// Appends the arguments of a kernel call to `staged`. Returns the offset in `staged`, in bytes, at which the appended
    /// arguments begin.
    fn stage(&mut self, args: &[Arg<'_, Buffer>]) -> Result<u32> {
        let begin = self.staged.len();
        for arg in args {
            match *arg {
                Arg::In(_) | Arg::Image(_) | Arg::Out(_) => {}
                Arg::Size(value) => self.put(&narrow::<u32, _>(value)?.to_ne_bytes()),
                Arg::Stride(value) => self.put(&narrow::<i32, _>(value)?.to_ne_bytes()),
                Arg::F64(value) => self.put(&value.to_ne_bytes()),
                Arg::F32(value) => self.put(&value.to_ne_bytes()),
            }
        }
        debug_assert!(self.staged.len() - begin <= LONGEST);
        self.staged.resize(begin + self.stride, 0);
        narrow(begin)
    }

    /// Appends a value to `staged` at the next offset that is a multiple of the value's size, as WGSL requires for members of
    /// structures.
    fn put(&mut self, bytes: &[u8]) {
        self.staged.resize(self.staged.len().next_multiple_of(bytes.len()), 0);
        self.staged.extend_from_slice(bytes);
    }
}

/// Maximum size of the arguments of one kernel call, in bytes.
pub(crate) const LONGEST: usize = 256;

/// Converts a number to 32 bits, because kernels count in 32 bits. Returns an error if the number does not fit into 32 bits.
fn narrow<N: TryFrom<V>, V: Copy + std::fmt::Display>(value: V) -> Result<N> {
    let message = || format!("{value} does not fit the 32 bits that kernels count in");
    N::try_from(value).map_err(|_| Error::new(ErrorKind::Unsupported, "launch", message()))
}

impl Target for Kernels {
    type Buffer = Buffer;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    fn begin(&mut self, operation: &'static str) {
        if let Some(times) = &mut self.times {
            times.operation = operation;
        }
    }

    unsafe fn launch(&mut self, call: &Call<'_, '_, Buffer>) -> Result<()> {
        if self.calls.len() == self.room {
            self.submit()?;
            self.room = CALLS_PER_PASS.1.min(2 * self.room);
        }
        let memory: Vec<&wgpu::Buffer> = call.args.iter().filter_map(Arg::memory).map(|buffer| &buffer.raw).collect();
        let same: Vec<usize> =
            memory.iter().map(|buffer| memory.iter().position(|other| other == buffer).expect("itself")).collect();
        let offset = self.stage(call.args)?;
        let local = call.program.local();
        let groups = [call.global[0].div_ceil(local[0]), call.global[1].div_ceil(local[1])];
        let groups = [narrow(groups[0])?, narrow(groups[1])?];

        let kernel = self.programs.kernel(&self.queue, &call.program, call.kernel, &same)?;
        let key = (call.program, call.kernel, memory.iter().copied().cloned().collect());
        let bound = self.bound.entry(key).or_insert_with(|| {
            let window = wgpu::BufferBinding { buffer: &self.arguments, offset: 0, size: std::num::NonZero::new(LONGEST as u64) };
            let operands = wgsl::bindings(call.kernel, &same).into_iter().map(|(i, _)| memory[i].as_entire_binding());
            let resources = std::iter::once(wgpu::BindingResource::Buffer(window)).chain(operands);
            let entries: Vec<_> =
                (0..).zip(resources).map(|(binding, resource)| wgpu::BindGroupEntry { binding, resource }).collect();
            let descriptor = wgpu::BindGroupDescriptor { label: None, layout: &kernel.layout, entries: &entries };
            self.queue.device().create_bind_group(&descriptor)
        });
        let operation = self.times.as_ref().map_or("", |times| times.operation);
        let label = Label { kernel: call.kernel, operation };
        self.calls.push(Gathered { pipeline: kernel.pipeline.clone(), bound: bound.clone(), offset, groups, label });
        Ok(())
    }

    fn scratch(&mut self, purpose: Purpose, bytes: usize) -> Result<Arc<Buffer>> {
        if self.scratch.must_finish(purpose, bytes) {
            self.finish()?;
        }
        self.scratch.get(purpose, bytes, |bytes| Buffer::new(&self.queue, bytes))
    }
}

#[cfg(test)]
mod tests {
    use lapidary_core::{HostRect, Value};

    use super::*;
    use crate::buffer::Rect;
    use crate::facts::facts;
    use crate::transfers::Transfers;

    /// Returns the kernels of the first adapter and its transfers to and from the device, or `None` if there is no adapter.
    fn first() -> Option<(Kernels, [Arc<Transfers>; 2])> {
        let queue = crate::program::tests::queue().map(Arc::new)?;
        let disk = Arc::new(ProgramCache::new(None));
        let facts = Arc::new(facts(&queue, &disk, "wgpu".to_owned(), None));
        let kernels = Kernels::new(Arc::clone(&queue), facts, disk).unwrap();
        Some((kernels, [wgpu::MapMode::Write, wgpu::MapMode::Read].map(|mode| Arc::new(Transfers::new(Arc::clone(&queue), mode)))))
    }

    /// Tests that a pass writes its arguments to the buffer if they differ from the arguments of the preceding pass.
    #[test]
    fn passes_with_the_same_arguments_and_with_others_take_turns() {
        let Some((mut kernels, [load, store])) = first() else { return };
        let (mut x, mut read) = ([1.0_f32, 2.0], [0.0_f32; 2]);
        let buffer = Buffer::new(&kernels.queue, size_of_val(&x)).unwrap();
        // SAFETY: the rectangles are the arrays `x` and `read`, the view `c` lies in `buffer`, and nothing else accesses the
        // arrays or the buffer.
        unsafe {
            let rect = Rect { buffer: buffer.clone(), offset: 0, ld: 2 };
            load.run(HostRect::packed(&mut x, 2), &rect).unwrap();
            for beta in [3.0, 3.0, 5.0, 5.0, 5.0, 3.0] {
                let c = View { buffer: &buffer, at: 0, rows: 2, cols: 1, ld: 2 };
                let scale = Instruction::Scale { beta: Value::F32(beta), c };
                let _ = kernels.run(DType::F32, &scale).unwrap();
            }
            store.run(HostRect::packed(&mut read, 2), &rect).unwrap();
        }
        assert_eq!(read, x.map(|x| x * 27.0 * 125.0));
    }

    #[test]
    fn calls_that_a_panic_left_behind_are_not_run() {
        let Some((mut kernels, [load, store])) = first() else { return };
        let (mut x, mut read) = ([1.0_f32, 2.0], [0.0_f32; 2]);
        let [from, to] = [0, 1].map(|_| Buffer::new(&kernels.queue, size_of_val(&x)).unwrap());
        let view = |buffer| View { buffer, at: 0, rows: 2, cols: 1, ld: 2 };
        let rect = |buffer: &Buffer| Rect { buffer: buffer.clone(), offset: 0, ld: 2 };
        // SAFETY: the rectangles are the arrays `x` and `read`, the views lie in the buffers `from` and `to`, and nothing else
        // accesses the arrays or the buffers.
        unsafe {
            load.run(HostRect::packed(&mut x, 2), &rect(&from)).unwrap();
            // collects kernel calls that are not submitted, as an instruction leaves them when it panics
            let scale = Instruction::Scale { beta: Value::F32(3.0), c: view(&from) };
            instructions::enqueue(&mut kernels, DType::F32, &scale).unwrap();
            let _ = kernels.run(DType::F32, &Instruction::Copy { a: view(&from), b: view(&to) }).unwrap();
            store.run(HostRect::packed(&mut read, 2), &rect(&to)).unwrap();
        }
        assert_eq!(read, x);
    }
}
