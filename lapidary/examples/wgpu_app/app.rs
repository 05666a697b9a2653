//! The wgpu objects of the application: a device, buffers, shaders and a texture.

use std::error::Error;

use lapidary::wgpu::wgpu::{self, BufferUsages};
use lapidary::wgpu::{required_features, required_limits};

use crate::Capacitor;

/// Pixels in a row of the picture. A row has a multiple of 256 bytes, as wgpu requires for copies from a texture.
pub const WIDTH: u32 = 768;

const FORMAT: wgpu::TextureFormat = wgpu::TextureFormat::Rgba8Unorm;

/// The device of the application, and the buffers that both of its shaders read.
pub struct App {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    grid: wgpu::Buffer,
    points: wgpu::Buffer,
}

impl App {
    /// Opens a device that Lapidary can share, and copies the problem to it.
    pub fn open(adapter: &wgpu::Adapter, problem: &Capacitor) -> Result<Self, Box<dyn Error>> {
        let wanted = wgpu::DeviceDescriptor {
            required_features: required_features(adapter),
            required_limits: required_limits(adapter),
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&wanted))?;
        let filled = |data: &[u8], usage| {
            let buffer = buffer(&device, data.len() as u64, usage | BufferUsages::COPY_DST);
            queue.write_buffer(&buffer, 0, data);
            buffer
        };
        let [width, height] = problem.size();
        let grid = filled(&[width.to_le_bytes(), height.to_le_bytes()].concat(), BufferUsages::UNIFORM);
        let points = filled(&problem.bytes(), BufferUsages::STORAGE);
        Ok(App { device, queue, grid, points })
    }

    /// Makes a buffer of `count` `f32` elements that Lapidary can use.
    pub fn shared(&self, count: u32) -> wgpu::Buffer {
        buffer(&self.device, 4 * u64::from(count), BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST)
    }

    /// Writes the matrix and the right-hand side of `n` unknowns.
    pub fn fill(&self, n: u32, a: &wgpu::Buffer, b: &wgpu::Buffer) {
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some("fill"),
            layout: None,
            module: &self.module(include_str!("fill.wgsl")),
            entry_point: None,
            compilation_options: wgpu::PipelineCompilationOptions::default(),
            cache: None,
        });
        let bindings = self.bindings(&pipeline.get_bind_group_layout(0), &[a, b]);
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &bindings, &[]);
        pass.dispatch_workgroups(n.div_ceil(64), n, 1);
        drop(pass);
        self.queue.submit([encoder.finish()]);
    }

    /// Draws the solution from its buffer. Returns `rows` rows of [`WIDTH`] pixels with four bytes each.
    pub fn draw(&self, solution: &wgpu::Buffer, rows: u32) -> Result<Vec<u8>, Box<dyn Error>> {
        let size = wgpu::Extent3d { width: WIDTH, height: rows, depth_or_array_layers: 1 };
        let texture = self.device.create_texture(&wgpu::TextureDescriptor {
            label: Some("picture"),
            size,
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: FORMAT,
            usage: wgpu::TextureUsages::RENDER_ATTACHMENT | wgpu::TextureUsages::COPY_SRC,
            view_formats: &[],
        });
        let pipeline = self.picture();
        let bindings = self.bindings(&pipeline.get_bind_group_layout(0), &[solution]);
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let target = wgpu::RenderPassColorAttachment {
            view: &texture.create_view(&wgpu::TextureViewDescriptor::default()),
            depth_slice: None,
            resolve_target: None,
            ops: wgpu::Operations::default(),
        };
        let mut pass =
            encoder.begin_render_pass(&wgpu::RenderPassDescriptor { color_attachments: &[Some(target)], ..Default::default() });
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &bindings, &[]);
        pass.draw(0..3, 0..1);
        drop(pass);
        let bytes = u64::from(4 * WIDTH * rows);
        let copy = buffer(&self.device, bytes, BufferUsages::COPY_DST | BufferUsages::MAP_READ);
        let layout = wgpu::TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(4 * WIDTH), rows_per_image: None };
        encoder.copy_texture_to_buffer(texture.as_image_copy(), wgpu::TexelCopyBufferInfo { buffer: &copy, layout }, size);
        self.queue.submit([encoder.finish()]);
        self.mapped(&copy)
    }

    /// Returns the numbers in a buffer, for tests.
    #[cfg(test)]
    pub fn read(&self, from: &wgpu::Buffer) -> Vec<f32> {
        let copy = buffer(&self.device, from.size(), BufferUsages::COPY_DST | BufferUsages::MAP_READ);
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(from, 0, &copy, 0, from.size());
        self.queue.submit([encoder.finish()]);
        let bytes = self.mapped(&copy).unwrap();
        bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    fn picture(&self) -> wgpu::RenderPipeline {
        let module = self.module(&format!("const WIDTH = {WIDTH};\n{}", include_str!("draw.wgsl")));
        self.device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
            label: Some("draw"),
            layout: None,
            vertex: wgpu::VertexState {
                module: &module,
                entry_point: None,
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                buffers: &[],
            },
            primitive: wgpu::PrimitiveState::default(),
            depth_stencil: None,
            multisample: wgpu::MultisampleState::default(),
            fragment: Some(wgpu::FragmentState {
                module: &module,
                entry_point: None,
                compilation_options: wgpu::PipelineCompilationOptions::default(),
                targets: &[Some(FORMAT.into())],
            }),
            multiview_mask: None,
            cache: None,
        })
    }

    fn module(&self, text: &str) -> wgpu::ShaderModule {
        let text = [include_str!("grid.wgsl"), text].concat();
        self.device
            .create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source: wgpu::ShaderSource::Wgsl(text.into()) })
    }

    /// Binds the buffers of the problem, followed by the other buffers of a shader.
    fn bindings(&self, layout: &wgpu::BindGroupLayout, others: &[&wgpu::Buffer]) -> wgpu::BindGroup {
        let buffers = [&self.grid, &self.points].into_iter().chain(others.iter().copied());
        let entries: Vec<_> = (0..)
            .zip(buffers)
            .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
            .collect();
        self.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries })
    }

    /// Waits for all submitted commands and returns the bytes of a buffer.
    fn mapped(&self, buffer: &wgpu::Buffer) -> Result<Vec<u8>, Box<dyn Error>> {
        buffer.map_async(wgpu::MapMode::Read, .., |_| {});
        self.device.poll(wgpu::PollType::wait_indefinitely())?;
        Ok(buffer.get_mapped_range(..)?.to_vec())
    }
}

fn buffer(device: &wgpu::Device, size: u64, usage: BufferUsages) -> wgpu::Buffer {
    device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
}
