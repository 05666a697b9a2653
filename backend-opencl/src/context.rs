//! OpenCL contexts, which several devices may share.

use std::sync::Arc;

use cl3::context::{CL_CONTEXT_PLATFORM, create_context};
use cl3::types::cl_device_id;
use lapidary_core::{Error, ProgramCache, Result};

use crate::buffer::Context;
use crate::conv::failed;
use crate::device::OpenClDevice;
use crate::pinned::Ranges;
use crate::platform::{Found, list};

/// An OpenCL context, and the list of pinned memory that is valid for all its devices.
#[derive(Clone, Debug)]
pub(crate) struct SharedContext {
    pub handle: Arc<Context>,
    /// Address ranges of the pinned memory that the application holds.
    pub pinned: Ranges,
}

impl SharedContext {
    /// Creates a context for several devices of one platform.
    pub fn new(first: &Found, devices: &[cl_device_id]) -> Result<Self> {
        let properties = [CL_CONTEXT_PLATFORM, first.platform as isize, 0];
        let context = create_context(devices, properties.as_ptr(), None, std::ptr::null_mut());
        let context = context.map_err(|code| failed("clCreateContext", code).with("device", &first.facts.identity.model))?;
        Ok(Self::from_owned(Context(context)))
    }

    pub fn from_owned(context: Context) -> Self {
        SharedContext { handle: Arc::new(context), pinned: Ranges::default() }
    }
}

/// Whether two devices may share a context. Copies between devices with different drivers of one platform have been
/// observed to fail (PoCL's `basic` and `pthread`).
fn may_share_context(one: &Found, other: &Found) -> bool {
    one.platform == other.platform && one.facts.identity.model == other.facts.identity.model && one.versions == other.versions
}

impl OpenClDevice {
    /// Opens the device `opencl:index`. If `memory` is given, the device allocates at most `memory` bytes.
    ///
    /// # Errors
    /// No device has the number `index`, or a call of the driver fails.
    pub fn open(index: usize, memory: Option<usize>, cache: Arc<ProgramCache>) -> Result<Self> {
        let found = list().device(index, "open")?;
        let context = SharedContext::new(&found, &[found.handle()])?;
        Self::in_context(found, memory, cache, context)
    }

    /// Opens the devices whose numbers are in `indices`. Devices of the same platform, model and driver version share a context.
    /// Memory that is pinned for one device of a context is pinned for all devices of this context. The driver may
    /// [copy](lapidary_core::Device::copy_from) between the buffers of devices that share a context. A repeated number opens
    /// a CPU as another logical device, and is an error for other devices: on a GPU, a kernel may have work-groups that wait for one another. They
    /// must run at the same time, and their number is chosen for the queues of one `OpenClDevice`. On a CPU, no work-groups wait for one another.
    pub fn open_all(indices: &[usize], memory: Option<usize>, cache: &Arc<ProgramCache>) -> Vec<Result<Self>> {
        let listing = list();
        let wanted: Vec<&Found> = indices.iter().filter_map(|&index| listing.devices.get(index)).collect();
        let mut contexts: Vec<(Found, SharedContext)> = Vec::new();
        let mut open = |(at, &index): (usize, &usize)| {
            let found = listing.device(index, "open")?;
            if indices[..at].contains(&index) && !found.facts.is_cpu() {
                return Err(Error::invalid("open", format!("indices: device {index} is named twice")));
            }
            let known = contexts.iter().find(|(first, _)| may_share_context(first, &found));
            let context = match known {
                Some((_, context)) => context.clone(),
                None => {
                    let together: Vec<cl_device_id> =
                        wanted.iter().filter(|other| may_share_context(other, &found)).map(|other| other.handle()).collect();
                    match SharedContext::new(&found, &together) {
                        Ok(context) => {
                            contexts.push((found.clone(), context.clone()));
                            context
                        }
                        // if the driver refuses a common context, each device gets a context of its own
                        Err(_) => SharedContext::new(&found, &[found.handle()])?,
                    }
                }
            };
            Self::in_context(found, memory, Arc::clone(cache), context)
        };
        indices.iter().enumerate().map(&mut open).collect()
    }
}

#[cfg(test)]
mod tests {
    use lapidary_core::{DType, Device, HostRect};

    use super::*;

    #[test]
    fn only_a_cpu_is_opened_twice() {
        for (index, found) in list().devices.iter().enumerate() {
            let opened = OpenClDevice::open_all(&[index, index], None, &Arc::new(ProgramCache::new(None)));
            let refused = opened[1].as_ref().err().map(ToString::to_string).unwrap_or_default();
            let expected = if found.facts.is_cpu() { String::new() } else { format!("device {index} is named twice") };
            assert!(refused.contains(&expected) && refused.is_empty() == expected.is_empty(), "{refused}");
        }
    }

    #[test]
    fn devices_that_are_alike_share_their_context_and_pinned_memory() {
        let devices = list().devices;
        let pairs = (0..devices.len()).flat_map(|i| (0..i).map(move |j| [j, i]));
        let Some(two) = pairs.into_iter().find(|&[j, i]| may_share_context(&devices[j], &devices[i])) else {
            assert!(std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "no two OpenCL devices are alike");
            return;
        };
        let opened = OpenClDevice::open_all(&two, None, &Arc::new(ProgramCache::new(None)));
        let [one, other] = <[_; 2]>::try_from(opened).unwrap().map(|device| device.unwrap());
        assert!(one.is_peer_of(&one) && (one.is_peer_of(&other) || !one.facts().is_cpu()));
        let memory = one.alloc_pinned(64).unwrap();
        let rect = HostRect { origin: memory.ptr().cast(), dtype: DType::F64, row_stride: 1, col_stride: 8, rows: 8, cols: 1 };
        assert!(other.is_pinned(&rect));
        drop(memory);
        assert!(!other.is_pinned(&rect));
    }

    #[test]
    fn small_pinned_memory_that_is_freed_is_used_again_until_the_device_is_trimmed() {
        if list().devices.is_empty() && std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none() {
            return;
        }
        let device = OpenClDevice::open(0, None, Arc::new(ProgramCache::new(None))).unwrap();
        let [first, second] = [100, 100].map(|bytes| device.alloc_pinned(bytes).unwrap());
        let address = first.ptr();
        assert_ne!(address, second.ptr());
        // SAFETY: the memory has more than one byte.
        unsafe { *address = 1 };
        drop(first);
        let again = device.alloc_pinned(4000).unwrap();
        assert_eq!(again.ptr(), address, "one piece serves all small sizes");
        // SAFETY: as above.
        assert_eq!(unsafe { *again.ptr() }, 0, "a piece that is used again is filled with zeros");
        drop(again);
        drop(device.alloc_pinned(2 << 20).unwrap());
        assert!(device.spare.take(2 << 20).is_none(), "a large piece is not kept");
        device.trim();
        assert!(device.spare.take(4096).is_none(), "trim frees the pieces");
        drop(device);
        drop(second); // the memory of an application may outlive the device
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn pinned_memory_is_filled_with_zeros_and_goes_back_to_the_operating_system() {
        if list().devices.is_empty() && std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none() {
            return;
        }
        /// Bytes of memory that this process uses.
        fn resident() -> usize {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
        }
        const BYTES: usize = 100 << 20;
        let device = OpenClDevice::open(0, None, Arc::new(ProgramCache::new(None))).unwrap();
        let before = resident();
        for _ in 0..16 {
            let memory = device.alloc_pinned(BYTES).unwrap();
            // SAFETY: the memory has `BYTES` bytes, and nothing else accesses it.
            let bytes = unsafe { std::slice::from_raw_parts_mut(memory.ptr(), BYTES) };
            assert!(bytes.iter().all(|&byte| byte == 0));
            bytes.fill(1);
        }
        // the limit allows for other tests of this process, which use memory at the same time
        let more = resident().saturating_sub(before);
        assert!(more < 8 * BYTES, "{more} bytes more in use after sixteen pieces of {BYTES} bytes were freed");
    }
}
