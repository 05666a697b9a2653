//! The kernels of one device: calls are gathered and run in one compute pass.

use std::collections::HashMap;
use std::sync::Arc;

use lapidary_core::{DType, DeviceFacts, Error, ErrorKind, Instruction, ProgramCache, Result};
use lapidary_kernels::{Arg, Call, Choices, Dialect, Program, Purpose, Scratch, Target, instructions, wgsl};

use crate::buffer::Buffer;
use crate::conv::View;
use crate::program::Programs;
use crate::queue::{Queue, Submission};

/// Number of kernel calls in the first pass of an instruction, and the maximum in any pass. Each pass holds twice as many
/// as the one before. The device runs a pass while the host gathers the next one.
const CALLS_PER_PASS: (usize, usize) = (16, 1024);

/// The kernels of one device.
#[derive(Debug)]
pub(crate) struct Kernels {
    queue: Arc<Queue>,
    programs: Programs,
    facts: Arc<DeviceFacts>,
    choices: Choices,
    /// The arguments of all calls of a pass, each at a multiple of `stride`.
    arguments: wgpu::Buffer,
    stride: usize,
    /// The arguments of the pass being recorded.
    staged: Vec<u8>,
    /// The arguments that the buffer holds since the last pass: a pass with the same arguments does not write them again.
    written: Vec<u8>,
    calls: Vec<Gathered>,
    /// Calls that the pass takes.
    room: usize,
    /// Bind groups of the current instruction. Kept longer, they would keep registers alive.
    bound: HashMap<Bound, wgpu::BindGroup>,
    /// The last pass that was submitted.
    submitted: Option<Submission>,
    scratch: Scratch<Buffer>,
}

/// A kernel and the buffers of its operands.
type Bound = (Program, &'static str, Vec<wgpu::Buffer>);

/// A call that waits for its pass.
#[derive(Debug)]
struct Gathered {
    pipeline: wgpu::ComputePipeline,
    bound: wgpu::BindGroup,
    offset: u32,
    groups: [u32; 2],
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
        Ok(Kernels {
            queue,
            programs,
            choices: Choices::choose(&facts, Dialect::Wgsl),
            facts,
            arguments,
            stride,
            staged: Vec::new(),
            written: Vec::new(),
            calls: Vec::new(),
            room: CALLS_PER_PASS.0,
            bound: HashMap::new(),
            submitted: None,
            scratch: Scratch::default(),
        })
    }

    /// Computes with other kernels.
    pub fn use_choices(&mut self, choices: Choices) {
        self.choices = choices;
    }

    /// Compiles with every check that wgpu can make while a kernel runs.
    pub fn use_checks(&mut self) {
        self.programs.use_checks();
    }

    /// Keeps scratch memory within its share of `limit`, the device's memory limit in bytes.
    pub fn limit_memory(&mut self, limit: usize) {
        self.choices = self.choices.within_memory(limit);
        self.scratch.limit_memory(limit);
    }

    /// Bytes of the memory limit that are reserved for scratch memory; buffers may not use them.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch.bytes()
    }

    /// Frees the scratch memory kept from earlier calls.
    pub fn trim(&mut self) {
        self.scratch.clear();
    }

    /// Submits an instruction on matrices of `dtype` that many times; the last submission, if there is one.
    ///
    /// # Safety
    /// As [`instructions::enqueue`].
    pub unsafe fn run(&mut self, dtype: DType, instruction: &Instruction<View<'_>>, times: usize) -> Result<Option<Submission>> {
        let queue = Arc::clone(&self.queue);
        // an instruction before this one may have panicked
        self.discard();
        // SAFETY: as the caller promises.
        let mut enqueue = |_| unsafe { instructions::enqueue(self, dtype, instruction) };
        let guarded = queue.guarded("launch", |_| (0..times).try_for_each(&mut enqueue));
        let result = guarded.and_then(|enqueued| enqueued).and_then(|()| self.submit());
        self.discard();
        self.programs.keep();
        let last = self.submitted.take();
        result.map(|()| last.clone()).map_err(|error| {
            // what was submitted must not touch memory that the caller takes back
            let done = last.map_or(Ok(()), |last| self.queue.wait(&last));
            done.err().unwrap_or(error).with("instruction", instruction.name())
        })
    }

    /// Drops calls that were gathered and not submitted, those of an instruction that failed.
    fn discard(&mut self) {
        self.calls.clear();
        self.staged.clear();
        self.bound.clear();
        self.room = CALLS_PER_PASS.0;
    }

    /// Submits the gathered calls in one pass.
    fn submit(&mut self) -> Result<()> {
        if self.calls.is_empty() {
            return Ok(());
        }
        // if the write fails, the contents are unknown
        let written = std::mem::take(&mut self.written);
        let (queue, calls, staged) = (&self.queue, &self.calls, &self.staged);
        let submission = queue.guarded("launch", |device| {
            if !written.starts_with(staged) {
                queue.write(&self.arguments, staged);
            }
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("EXEC") });
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for call in calls {
                pass.set_pipeline(&call.pipeline);
                pass.set_bind_group(0, &call.bound, &[call.offset]);
                pass.dispatch_workgroups(call.groups[0], call.groups[1], 1);
            }
            drop(pass);
            queue.submit(encoder)
        })?;
        self.submitted = Some(submission);
        self.calls.clear();
        self.written = if written.starts_with(&self.staged) { written } else { std::mem::take(&mut self.staged) };
        self.staged.clear();
        Ok(())
    }

    /// Submits the recorded calls and waits until the device is idle. Replaced scratch memory is then free.
    fn finish(&mut self) -> Result<()> {
        self.submit()?;
        self.bound.clear();
        let queue = &self.queue;
        let descriptor = wgpu::CommandEncoderDescriptor { label: Some("finish") };
        // the queue is in order: what is submitted last ends last
        let last = queue.guarded("launch", |device| queue.submit(device.create_command_encoder(&descriptor)))?;
        queue.wait(&last)
    }

    /// Appends the arguments of a call; where they begin.
    fn stage(&mut self, args: &[Arg<'_, Buffer>]) -> Result<u32> {
        let begin = self.staged.len();
        for arg in args {
            match *arg {
                Arg::In(_) | Arg::Out(_) => {}
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

    /// Appends a value at a multiple of its size, as WGSL lays structures out.
    fn put(&mut self, bytes: &[u8]) {
        self.staged.resize(self.staged.len().next_multiple_of(bytes.len()), 0);
        self.staged.extend_from_slice(bytes);
    }
}

/// Bytes that the arguments of one call take at most.
pub(crate) const LONGEST: usize = 256;

/// A size in 32 bits. Offsets within a binding fit; only an application's own
/// buffer could be larger.
fn narrow<N: TryFrom<V>, V: Copy + std::fmt::Display>(value: V) -> Result<N> {
    let message = || format!("{value} does not fit the 32 bits that kernels count in");
    N::try_from(value).map_err(|_| Error::new(ErrorKind::Unsupported, "launch", message()))
}

impl Target for Kernels {
    type Buffer = Buffer;

    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn choices(&self) -> &Choices {
        &self.choices
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
        self.calls.push(Gathered { pipeline: kernel.pipeline.clone(), bound: bound.clone(), offset, groups });
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
    use crate::facts::facts;
    use crate::transfers::Transfers;

    /// The kernels of the first adapter, and transfers both ways; none where there is no adapter.
    fn first() -> Option<(Kernels, [Arc<Transfers>; 2])> {
        let queue = crate::program::tests::queue().map(Arc::new)?;
        let disk = Arc::new(ProgramCache::new(None));
        let facts = Arc::new(facts(&queue, &disk, "wgpu".to_owned(), None));
        let kernels = Kernels::new(Arc::clone(&queue), facts, disk).unwrap();
        Some((kernels, [wgpu::MapMode::Write, wgpu::MapMode::Read].map(|mode| Arc::new(Transfers::new(Arc::clone(&queue), mode)))))
    }

    /// Arguments are written again where they differ from those of the pass before.
    #[test]
    fn passes_with_the_same_arguments_and_with_others_take_turns() {
        let Some((mut kernels, [load, store])) = first() else { return };
        let (mut x, mut read) = ([1.0_f32, 2.0], [0.0_f32; 2]);
        let buffer = Buffer::new(&kernels.queue, size_of_val(&x)).unwrap();
        // SAFETY: the arrays hold the rectangle; the view lies in its buffer.
        unsafe {
            load.run(HostRect::packed(&mut x, 2), &buffer).unwrap();
            for (beta, times) in [(3.0, 1), (3.0, 1), (5.0, 1), (5.0, 2), (3.0, 1)] {
                let c = View { buffer: &buffer, at: 0, rows: 2, cols: 1, ld: 2 };
                let scale = Instruction::Scale { beta: Value::F32(beta), c };
                let _ = kernels.run(DType::F32, &scale, times).unwrap();
            }
            store.run(HostRect::packed(&mut read, 2), &buffer).unwrap();
        }
        assert_eq!(read, x.map(|x| x * 27.0 * 125.0));
    }

    #[test]
    fn calls_that_a_panic_left_behind_are_not_run() {
        let Some((mut kernels, [load, store])) = first() else { return };
        let (mut x, mut read) = ([1.0_f32, 2.0], [0.0_f32; 2]);
        let [from, to] = [0, 1].map(|_| Buffer::new(&kernels.queue, size_of_val(&x)).unwrap());
        let view = |buffer| View { buffer, at: 0, rows: 2, cols: 1, ld: 2 };
        // SAFETY: the arrays hold the rectangles; the views lie in their buffers.
        unsafe {
            load.run(HostRect::packed(&mut x, 2), &from).unwrap();
            // a panic comes after its calls were gathered
            let scale = Instruction::Scale { beta: Value::F32(3.0), c: view(&from) };
            instructions::enqueue(&mut kernels, DType::F32, &scale).unwrap();
            let _ = kernels.run(DType::F32, &Instruction::Copy { a: view(&from), b: view(&to) }, 1).unwrap();
            store.run(HostRect::packed(&mut read, 2), &to).unwrap();
        }
        assert_eq!(read, x);
    }
}
