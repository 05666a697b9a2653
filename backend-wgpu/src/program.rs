//! Compiles the WGSL source of programs to pipelines, and stores the driver's pipeline cache on disk.

use std::collections::HashMap;
use std::sync::Arc;

use lapidary_core::{Error, ErrorKind, Limits, ProgramCache, Result};
use lapidary_kernels::{GENERATOR, Program, Source, wgsl};

use crate::queue::Queue;

/// A compiled kernel: its pipeline and the layout of its bind groups.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub pipeline: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
}

/// The compiled kernels of one device. A kernel is compiled separately for each way in which its operands share buffers.
#[derive(Debug)]
pub(crate) struct Programs {
    limits: Limits,
    checked: bool,
    disk: Arc<ProgramCache>,
    /// The key under which the driver's pipeline cache is stored on disk, and the pipeline cache itself. `None` if the driver has
    /// no pipeline cache, or if no folder is given for programs.
    pipelines: Option<(String, wgpu::PipelineCache)>,
    kernels: HashMap<(Program, &'static str, Vec<usize>), Kernel>,
    /// Whether a kernel was compiled after the pipeline cache was last stored.
    fresh: bool,
}

impl Programs {
    pub fn new(queue: &Queue, limits: Limits, disk: Arc<ProgramCache>) -> Result<Self> {
        let has_cache = queue.device().features().contains(wgpu::Features::PIPELINE_CACHE);
        let pipelines = (has_cache && disk.keeps()).then(|| load(queue, &disk)).transpose()?;
        Ok(Programs { limits, checked: false, disk, pipelines, kernels: HashMap::new(), fresh: false })
    }

    /// Makes all further compilations include every check that wgpu can make while a kernel runs. The kernels that were compiled
    /// without the checks of wgpu are dropped.
    #[cfg(feature = "test-hooks")]
    pub fn use_checks(&mut self) {
        self.checked = true;
        self.kernels.clear();
    }

    /// Returns the kernel `name` of `program`. The kernel is compiled on the first request and then kept in memory.
    pub fn kernel(&mut self, queue: &Queue, program: &Program, name: &'static str, same: &[usize]) -> Result<&Kernel> {
        let key = (*program, name, same.to_vec());
        if !self.kernels.contains_key(&key) {
            // wgpu does not check the size of a kernel's workgroup memory, and some drivers hang if the size exceeds the device's
            // limit for workgroup memory
            program
                .check(&self.limits)
                .map_err(|reason| Error::new(ErrorKind::Unsupported, "compile", reason).with("kernel", name))?;
            let kernel = self.compile(queue, &wgsl::source(program, name, same), name, &wgsl::bindings(name, same))?;
            self.kernels.insert(key.clone(), kernel);
            self.fresh = true;
        }
        Ok(&self.kernels[&key])
    }

    /// Stores the pipeline cache on disk if a kernel was compiled after the previous call.
    pub fn keep(&mut self) {
        if let (true, Some((key, pipelines))) = (std::mem::take(&mut self.fresh), &self.pipelines)
            && let Some(data) = pipelines.get_data()
        {
            self.disk.store(key, &data);
        }
    }

    fn compile(&self, queue: &Queue, source: &Source, name: &str, bindings: &[(usize, bool)]) -> Result<Kernel> {
        self.disk.announce(&source.name);
        let compiled = queue.guarded("compile", |device| {
            let text = wgpu::ShaderSource::Wgsl(source.text.as_str().into());
            let descriptor = wgpu::ShaderModuleDescriptor { label: Some(&source.name), source: text };
            let checks = if self.checked { wgpu::ShaderRuntimeChecks::checked() } else { wgpu::ShaderRuntimeChecks::unchecked() };
            // SAFETY: the kernels access only the rectangles that their arguments describe, and the caller of a launch guarantees
            // that these rectangles may be accessed. All loops of the kernels end. A loop in which a workgroup waits for a
            // preceding workgroup ends if the preceding workgroup makes progress. Kernels in which workgroups wait are chosen
            // only if `Tuning::groups_may_wait` is set.
            let module = unsafe { device.create_shader_module_trusted(descriptor, checks) };
            let layout = layout(device, bindings);
            let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                label: Some(name),
                bind_group_layouts: &[Some(&layout)],
                immediate_size: 0,
            });
            let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: Some(name),
                layout: Some(&pipeline_layout),
                module: &module,
                entry_point: Some(name),
                compilation_options: wgpu::PipelineCompilationOptions {
                    zero_initialize_workgroup_memory: self.checked,
                    ..Default::default()
                },
                cache: self.pipelines.as_ref().map(|(_, cache)| cache),
            });
            Kernel { pipeline, layout }
        });
        compiled.map_err(|error| match error.kind() {
            ErrorKind::DeviceFailed => error.with("source", source.keep().unwrap_or_else(|_| source.name.clone())),
            _ => error,
        })
    }
}

/// Creates the layout of a bind group: first the uniform buffer with the arguments of many kernel calls, then the buffers of the
/// operands.
fn layout(device: &wgpu::Device, bindings: &[(usize, bool)]) -> wgpu::BindGroupLayout {
    let entry = |binding, ty, has_dynamic_offset| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None },
        count: None,
    };
    let operands = (1..)
        .zip(bindings)
        .map(|(binding, &(_, written))| entry(binding, wgpu::BufferBindingType::Storage { read_only: !written }, false));
    let entries: Vec<_> = std::iter::once(entry(0, wgpu::BufferBindingType::Uniform, true)).chain(operands).collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries })
}

/// Creates the driver's pipeline cache from the data that was last stored on disk. The pipeline cache is empty if no data was
/// stored, or if the driver refuses the data.
fn load(queue: &Queue, disk: &ProgramCache) -> Result<(String, wgpu::PipelineCache)> {
    let key = format!("pipelines\ngenerator {GENERATOR}\n{}", queue.identity());
    let data = disk.load(&key);
    let create = |data: Option<&[u8]>| {
        queue.guarded("create_pipeline_cache", |device| {
            let descriptor = wgpu::PipelineCacheDescriptor { label: None, data, fallback: true };
            // SAFETY: this driver created the data. The key of the data names the device and the driver, and `ProgramCache::load`
            // returned the data after it had checked the key and a checksum.
            unsafe { device.create_pipeline_cache(&descriptor) }
        })
    };
    let cache = create(data.as_deref()).or_else(|_| {
        disk.reject();
        create(None)
    })?;
    Ok((key, cache))
}

#[cfg(test)]
pub(crate) mod tests {
    use lapidary_core::DType;

    use super::*;
    use crate::platform::kernel_limits;

    /// Returns the queue of a device on the first adapter, or `None` if there is no adapter.
    pub(crate) fn queue() -> Option<Queue> {
        let listing = crate::list();
        let required = std::env::var_os("LAPIDARY_REQUIRE_WGPU").is_some();
        assert!(!listing.devices.is_empty() || !required, "no adapter: {:?}", listing.notes);
        let adapter = &listing.devices.first()?.adapter;
        let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).unwrap();
        Some(Queue::new(device, queue))
    }

    /// Returns the queue of the first adapter and the programs of its device, or `None` if there is no adapter.
    fn first() -> Option<(Queue, Programs)> {
        let queue = queue()?;
        let limits = kernel_limits(&queue.device().limits());
        let programs = Programs::new(&queue, limits, Arc::new(ProgramCache::new(None))).unwrap();
        Some((queue, programs))
    }

    #[test]
    fn a_text_that_is_refused_is_kept_and_named() {
        let Some((queue, programs)) = first() else { return };
        let source = Source { name: "broken.wgsl".to_owned(), text: "fn broken() { return 1u; }".to_owned() };
        let error = programs.compile(&queue, &source, "broken", &[]).unwrap_err().to_string();
        let file = error.split(|c: char| c.is_whitespace() || "();,".contains(c)).find(|word| word.ends_with("broken.wgsl"));
        let file = file.unwrap_or_else(|| panic!("no file is named: {error}"));
        assert_eq!(std::fs::read_to_string(file).unwrap(), source.text);
        let again = programs.compile(&queue, &source, "broken", &[]).unwrap_err().to_string();
        assert!(again.contains(file), "one file for one text: {again}");
        std::fs::remove_file(file).unwrap();
        assert!(!programs.compile(&queue, &source, "broken", &[]).unwrap_err().to_string().contains(file), "it is gone");
        assert!(error.contains("return"), "what the compiler said: {error}");
    }

    #[test]
    fn a_kernel_beyond_the_limits_is_refused_before_the_driver_sees_it() {
        let Some((queue, mut programs)) = first() else { return };
        programs.limits.local_memory = 1024;
        let mut refused = |items| {
            let error =
                programs.kernel(&queue, &Program::Panel { dtype: DType::F32, items }, "getrf_panel", &[0, 1, 2]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            error.to_string()
        };
        assert!(refused(128).contains("1536 bytes of the 1024 of local memory"), "{}", refused(128));
        programs.limits.local_memory = usize::MAX;
        programs.limits.work_group = 64;
        let error = programs.kernel(&queue, &Program::Pad { dtype: DType::F32, items: 128 }, "pad", &[0, 1, 2]).unwrap_err();
        assert!(error.to_string().contains("128 work-items are more than the 64"), "{error}");
    }
}
