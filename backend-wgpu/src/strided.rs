//! Copies of rectangles with gaps between their columns, by a kernel.
//!
//! A copy command of wgpu copies one contiguous range, and wgpu puts a barrier between two copies to the same buffer. A rectangle
//! with gaps would take one copy and one barrier for each column. A kernel instead copies the rectangle to or from a buffer without
//! gaps, which one copy command transfers.

use lapidary_core::Result;

use crate::queue::Queue;

/// WGSL source of the two kernels.
const TEXT: &str = include_str!("strided.wgsl");
/// Number of invocations in a workgroup of the kernels, which `strided.wgsl` states too.
const ITEMS: u32 = 64;
/// Size in bytes of the words that the kernels copy.
const WORD: u64 = 4;

/// A rectangle in a buffer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    /// Position of the first column in the buffer.
    pub start: u64,
    /// Distance from one column to the next in the buffer.
    pub ld: u64,
    /// Length of a column.
    pub rows: u64,
    /// Number of columns.
    pub cols: u64,
}

/// A kernel that copies rectangles in one direction, and the buffer that holds a rectangle without gaps. The device has one queue, which runs
/// submissions in order. One buffer therefore suffices, if all commands that use it for a rectangle are in one submission.
#[derive(Debug)]
pub(crate) struct Strided {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
    packed: wgpu::Buffer,
    mode: wgpu::MapMode,
}

impl Strided {
    /// Compiles the kernel for transfers that map staging memory with `mode`. Rectangles have at most `bytes` bytes. Returns `None`
    /// if a kernel cannot address so many bytes.
    pub fn new(queue: &Queue, mode: wgpu::MapMode, bytes: u64) -> Result<Option<Self>> {
        let groups = (bytes / WORD).div_ceil(ITEMS.into());
        let limits = queue.device().limits();
        if bytes > queue.largest_binding() as u64 || groups > limits.max_compute_workgroups_per_dimension.into() {
            return Ok(None);
        }
        queue.guarded("compile", |device| {
            let source = wgpu::ShaderSource::Wgsl(TEXT.into());
            let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: Some("strided"), source });
            let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some("strided"),
                layout: None,
                module: &module,
                entry_point: Some(match mode {
                    wgpu::MapMode::Write => "unpack",
                    wgpu::MapMode::Read => "pack",
                }),
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                cache: None,
            });
            let (size, usage) = (bytes, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST);
            let descriptor = wgpu::BufferDescriptor { label: Some("packed"), size, usage, mapped_at_creation: false };
            let packed = device.create_buffer(&descriptor);
            Some(Strided { layout: pipeline.get_bind_group_layout(0), pipeline, packed, mode })
        })
    }

    /// Records the commands that copy a rectangle of `buffer` to the beginning of `staging`, or back.
    pub fn record(
        &self,
        device: &wgpu::Device,
        encoder: &mut wgpu::CommandEncoder,
        (buffer, columns): (&wgpu::Buffer, Columns),
        staging: &wgpu::Buffer,
    ) {
        let bytes = columns.rows * columns.cols;
        match self.mode {
            wgpu::MapMode::Write => {
                encoder.copy_buffer_to_buffer(staging, 0, &self.packed, 0, bytes);
                self.dispatch(device, encoder, columns, [&self.packed, buffer]);
            }
            wgpu::MapMode::Read => {
                self.dispatch(device, encoder, columns, [buffer, &self.packed]);
                encoder.copy_buffer_to_buffer(&self.packed, 0, staging, 0, bytes);
            }
        }
    }

    fn dispatch(&self, device: &wgpu::Device, encoder: &mut wgpu::CommandEncoder, columns: Columns, operands: [&wgpu::Buffer; 2]) {
        let Columns { start, ld, rows, cols } = columns;
        // a kernel can address every word of a buffer by 32 bits, because a binding has at most 2³² bytes
        #[allow(clippy::cast_possible_truncation, reason = "positions in a binding of at most 2³² bytes, in words of four bytes")]
        let words = [start, ld, rows, rows * cols].map(|bytes| (bytes / WORD) as u32);
        let size = size_of_val(&words) as u64;
        let descriptor =
            wgpu::BufferDescriptor { label: Some("rectangle"), size, usage: wgpu::BufferUsages::UNIFORM, mapped_at_creation: true };
        let rectangle = device.create_buffer(&descriptor);
        let mut mapped = rectangle.get_mapped_range_mut(..).expect("a buffer that is mapped at its creation");
        mapped.copy_from_slice(words.map(u32::to_ne_bytes).as_flattened());
        drop(mapped);
        rectangle.unmap();
        let bindings = (0..).zip([&rectangle, operands[0], operands[1]]);
        let entries: Vec<_> =
            bindings.map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() }).collect();
        let descriptor = wgpu::BindGroupDescriptor { label: Some("strided"), layout: &self.layout, entries: &entries };
        let bound = device.create_bind_group(&descriptor);
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &bound, &[]);
        pass.dispatch_workgroups(words[3].div_ceil(ITEMS), 1, 1);
    }
}
