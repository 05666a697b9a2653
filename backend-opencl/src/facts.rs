//! Queries of an OpenCL driver, and the [`DeviceFacts`] made from the answers.

use cl3::device::{
    CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV, CL_DEVICE_DOUBLE_FP_CONFIG, CL_DEVICE_EXTENSIONS,
    CL_DEVICE_GLOBAL_MEM_SIZE, CL_DEVICE_HOST_UNIFIED_MEMORY, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, CL_DEVICE_IMAGE_SUPPORT,
    CL_DEVICE_LOCAL_MEM_SIZE, CL_DEVICE_MAX_COMPUTE_UNITS, CL_DEVICE_MAX_MEM_ALLOC_SIZE, CL_DEVICE_MAX_WORK_GROUP_SIZE,
    CL_DEVICE_NAME, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, CL_DEVICE_TYPE, CL_DEVICE_TYPE_CPU, CL_DEVICE_TYPE_GPU, CL_DEVICE_VENDOR,
    CL_DRIVER_VERSION, get_device_data,
};
use cl3::types::{cl_device_id, cl_device_info};
use lapidary_core::{DType, DeviceFacts, DeviceKind, Feature, Limits};

use crate::conv::failed;

/// Mesa's llvmpipe silently stops the loops of a work-item after 65535 iterations in total (`LP_MAX_TGSI_LOOP_ITERATIONS`). The
/// text is the part of the device name that identifies llvmpipe. The number is the maximum number of iterations that a kernel may
/// spend in loops over a matrix dimension.
const SHORT_LOOPS: (&str, usize) = ("llvmpipe", 60_000);

/// Queries the properties of one device.
#[derive(Clone, Copy)]
pub(crate) struct DeviceQuery(pub cl_device_id);

impl DeviceQuery {
    fn bytes(self, what: cl_device_info) -> Result<Vec<u8>, String> {
        get_device_data(self.0, what).map_err(|code| format!("a device does not answer: {}", failed("clGetDeviceInfo", code)))
    }

    pub fn text(self, what: cl_device_info) -> Result<String, String> {
        self.bytes(what).map(|bytes| to_text(&bytes))
    }

    pub fn number(self, what: cl_device_info) -> Result<u64, String> {
        self.bytes(what).map(|bytes| to_number(&bytes))
    }

    pub fn size(self, what: cl_device_info) -> Result<usize, String> {
        self.number(what).map(|value| usize::try_from(value).unwrap_or(usize::MAX))
    }

    /// A numeric property of the device; 0 if the driver does not support the query.
    pub fn optional(self, what: cl_device_info) -> u64 {
        self.number(what).unwrap_or(0)
    }

    /// Maximum number of pixels of an image of a buffer. Kernels address a pixel by a signed integer of 32 bits.
    fn image_pixels(self) -> usize {
        usize::try_from(self.optional(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE).min(i32::MAX as u64)).unwrap_or(0)
    }

    /// Whether the device shares its memory with the host.
    pub fn is_unified(self) -> bool {
        self.optional(CL_DEVICE_HOST_UNIFIED_MEMORY) != 0
    }

    /// The facts about this device; `name` is the name by which a user selects it.
    pub fn facts(self, name: String, platform: &str) -> Result<DeviceFacts, String> {
        let (model, extensions) = (self.text(CL_DEVICE_NAME)?, self.text(CL_DEVICE_EXTENSIONS)?);
        let has = |extension: &str| extensions.split_whitespace().any(|name| name == extension);
        let kind = match self.number(CL_DEVICE_TYPE)? {
            kinds if kinds & CL_DEVICE_TYPE_CPU != 0 => DeviceKind::Cpu,
            kinds if kinds & CL_DEVICE_TYPE_GPU != 0 => DeviceKind::Gpu,
            _ => DeviceKind::Other,
        };
        let is_cpu = kind == DeviceKind::Cpu;
        let (units, vector_bits) = (self.size(CL_DEVICE_MAX_COMPUTE_UNITS)?, 32 * self.size(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT)?);
        let memory = self.size(CL_DEVICE_GLOBAL_MEM_SIZE)?;
        let capability = || {
            let [major, minor] = [CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV];
            format!("sm_{}{}", self.optional(major), self.optional(minor))
        };
        // every OpenCL queue can record timestamps, so the feature `Timestamps` needs no query
        let features = [("cl_khr_fp16", Feature::F16), ("cl_khr_subgroups", Feature::Subgroups)];
        let features = features.into_iter().filter(|(extension, _)| has(extension)).map(|(_, feature)| feature);
        let mut facts = DeviceFacts::new(name);
        facts.description = format!("{model}, {platform}");
        facts.limits = self.limits(&model)?;
        if has("cl_nv_device_attribute_query") {
            // NVIDIA's driver reports a quarter of the memory as the maximum size of a buffer, but allocates larger buffers: version 580
            // gave 60 GiB of an H200, where it reported 34
            facts.limits.buffer = facts.limits.buffer.max(memory);
        }
        // in OpenCL C, each component of a vector is a separate memory location
        facts.features = features.chain([Feature::Timestamps, Feature::PartsOfVectors]).collect();
        if self.optional(CL_DEVICE_DOUBLE_FP_CONFIG) != 0 {
            facts.dtypes = vec![DType::F32, DType::F64];
        }
        facts.compute_units = Some(units);
        facts.vector_bits = vector_bits;
        // registers may take 90 % of the memory that belongs to a GPU, but only 25 % of memory shared with the host, which also
        // holds the caller's matrices
        facts.memory = Some(if is_cpu || self.is_unified() { memory / 4 } else { memory / 10 * 9 });
        // estimates: a CPU core does one vector multiply-add per cycle at 2.5 GHz; a multiprocessor does 100 GFLOP/s
        facts.rates.flops = units as f64 * if is_cpu { 2.5e9 * 2.0 * vector_bits as f64 / 64.0 } else { 1e11 };
        facts.rates.bandwidth = if is_cpu { 5e9 } else { 2e10 };
        facts.identity.kind = kind;
        facts.identity.vendor = self.text(CL_DEVICE_VENDOR)?;
        facts.identity.architecture = has("cl_nv_device_attribute_query").then(capability).unwrap_or_default();
        facts.identity.model = model;
        facts.identity.driver = format!("{platform} {}", self.text(CL_DRIVER_VERSION)?);
        Ok(facts)
    }

    /// The limits of the device, whose product name is `model`.
    fn limits(self, model: &str) -> Result<Limits, String> {
        let mut limits = Limits::default();
        // some drivers report a maximum work-group size of 0
        limits.work_group = self.size(CL_DEVICE_MAX_WORK_GROUP_SIZE)?.max(1);
        limits.local_memory = self.size(CL_DEVICE_LOCAL_MEM_SIZE)?;
        limits.buffer = self.size(CL_DEVICE_MAX_MEM_ALLOC_SIZE)?;
        if model.contains(SHORT_LOOPS.0) {
            limits.loop_iterations = SHORT_LOOPS.1;
        }
        if self.optional(CL_DEVICE_IMAGE_SUPPORT) != 0 {
            limits.image_pixels = self.image_pixels();
        }
        Ok(limits)
    }
}

/// Decodes a little-endian integer of 1 to 8 bytes.
fn to_number(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    let count = bytes.len().min(8);
    wide[..count].copy_from_slice(&bytes[..count]);
    u64::from_le_bytes(wide)
}

/// Decodes a zero-terminated string.
pub(crate) fn to_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').trim().to_owned()
}
