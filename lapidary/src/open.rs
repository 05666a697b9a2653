//! Opens the devices that a selection names.

#[cfg(feature = "program-cache")]
use std::sync::Arc;

use lapidary_backend_cpu::CpuDevice;
#[cfg(feature = "program-cache")]
use lapidary_core::ProgramCache;
use lapidary_core::{Device, Error, ErrorKind, Result};
#[cfg(any(feature = "opencl", feature = "wgpu"))]
use lapidary_kernels::Database;

use crate::select::{Backend, Pick, Select, Which};
use crate::settings::Settings;

/// Opened devices, the program cache that they share, and the reasons why some devices are not opened.
pub(crate) struct Opened {
    pub(crate) devices: Vec<Box<dyn Device>>,
    #[cfg(feature = "program-cache")]
    pub(crate) cache: Arc<ProgramCache>,
    pub(crate) notes: Vec<String>,
}

/// Opens the devices of a selection, in the order of the selection.
///
/// # Errors
/// A device that the selection names by number cannot be opened, a backend that the selection names has no device that can be
/// opened, or no device at all is opened.
pub(crate) fn open(select: &Select, settings: &Settings) -> Result<Opened> {
    let opened = Opened {
        devices: Vec::new(),
        #[cfg(feature = "program-cache")]
        cache: Arc::new(settings.program_cache()),
        notes: Vec::new(),
    };
    let mut opening = Opening {
        settings,
        opened,
        #[cfg(any(feature = "opencl", feature = "wgpu"))]
        kernels: None,
    };
    select.picks.iter().try_for_each(|pick| opening.pick(pick))?;
    if opening.opened.devices.is_empty() {
        return Err(Error::new(ErrorKind::NoSuchDevice, "open", format!("`{select}` names no device")));
    }
    Ok(opening.opened)
}

/// Boxes a device of any backend.
pub(crate) fn boxed(device: impl Device) -> Box<dyn Device> {
    Box::new(device)
}

struct Opening<'a> {
    settings: &'a Settings,
    opened: Opened,
    /// The database of kernels, which is read when the first device is opened.
    #[cfg(any(feature = "opencl", feature = "wgpu"))]
    kernels: Option<Arc<Database>>,
}

/// The devices that a backend lists. Each element of `devices` contains the model of a device and states whether the device is the
/// CPU of this computer.
#[cfg(any(feature = "opencl", feature = "wgpu"))]
struct Kind {
    devices: Vec<(String, bool)>,
    notes: Vec<String>,
}

impl Opening<'_> {
    fn pick(&mut self, pick: &Pick) -> Result<()> {
        #[cfg(any(feature = "opencl", feature = "wgpu"))]
        let failures = crate::probe::failures(pick.backend, self.settings);
        #[cfg(any(feature = "opencl", feature = "wgpu"))]
        if !failures.is_empty() {
            if pick.which != Which::Present {
                return Err(crate::probe::left_out(pick.backend, &failures));
            }
            self.opened.notes.extend(failures);
            return Ok(());
        }
        match pick.backend {
            Backend::Cpu => {
                let limit = self.settings.memory_limit;
                let devices = match &pick.which {
                    Which::Listed(indices) => indices.iter().map(|&index| CpuDevice::new(index, limit)).collect(),
                    Which::Present | Which::Every => vec![CpuDevice::whole(limit)],
                };
                #[cfg(any(feature = "opencl", feature = "wgpu"))]
                let devices = {
                    let kernels = self.kernels();
                    devices.into_iter().map(|device| device.with_database(&kernels)).collect::<Vec<CpuDevice>>()
                };
                self.opened.devices.extend(devices.into_iter().map(boxed));
                Ok(())
            }
            #[cfg(feature = "opencl")]
            Backend::OpenCl => {
                let listing = crate::opencl::list();
                let devices =
                    listing.devices.iter().map(|found| (found.facts.identity.model.clone(), found.facts.is_cpu())).collect();
                let (limit, cache) = (self.settings.memory_limit, Arc::clone(&self.opened.cache));
                let kernels = self.kernels();
                let open = |indices: &[usize]| crate::opencl::OpenClDevice::open_all(indices, limit, &cache);
                let times = self.settings.kernel_times;
                let with_kernels = move |device: crate::opencl::OpenClDevice| {
                    let device = device.with_database(&kernels);
                    Ok(boxed(if times { device.with_kernel_times()? } else { device }))
                };
                let kind = Kind { devices, notes: listing.notes };
                self.extend(pick, &kind, |indices| open(indices).into_iter().map(|device| device.and_then(&with_kernels)).collect())
            }
            #[cfg(feature = "wgpu")]
            Backend::Wgpu => {
                let listing = crate::wgpu::list();
                let devices = listing.devices.iter().map(|found| (found.info.name.clone(), found.is_cpu)).collect();
                let (limit, cache) = (self.settings.memory_limit, Arc::clone(&self.opened.cache));
                let kernels = self.kernels();
                let open = |&index: &usize| crate::wgpu::WgpuDevice::open(index, limit, Arc::clone(&cache));
                let times = self.settings.kernel_times;
                let with_kernels = move |device: crate::wgpu::WgpuDevice| {
                    let device = device.with_database(&kernels);
                    Ok(boxed(if times { device.with_kernel_times()? } else { device }))
                };
                let kind = Kind { devices, notes: listing.notes };
                self.extend(pick, &kind, |indices| indices.iter().map(|index| open(index).and_then(&with_kernels)).collect())
            }
            #[cfg(not(all(feature = "opencl", feature = "wgpu")))]
            missing => Err(crate::select::not_in_build(missing)),
        }
    }

    /// Returns the database of kernels: the user's tuned kernels, then those that ship with Lapidary.
    #[cfg(any(feature = "opencl", feature = "wgpu"))]
    fn kernels(&mut self) -> Arc<Database> {
        let (settings, notes) = (self.settings, &mut self.opened.notes);
        let read = || {
            let (database, problems) = crate::tuned::database(settings);
            notes.extend(problems);
            Arc::new(database)
        };
        Arc::clone(self.kernels.get_or_insert_with(read))
    }

    /// Opens the devices of one backend. Every device that the selection names by number must open. If the selection names only the
    /// backend, at least one device of the backend must open.
    #[cfg(any(feature = "opencl", feature = "wgpu"))]
    fn extend(&mut self, pick: &Pick, kind: &Kind, open: impl Fn(&[usize]) -> Vec<Result<Box<dyn Device>>>) -> Result<()> {
        let indices: Vec<usize> = match &pick.which {
            Which::Listed(indices) => {
                let opened: Result<Vec<_>> = open(indices).into_iter().collect();
                self.opened.devices.extend(opened?);
                return Ok(());
            }
            Which::Every if kind.devices.is_empty() => {
                let message = format!("there is no {} device: {}", pick.backend, kind.notes.join("; "));
                return Err(Error::new(ErrorKind::NoSuchDevice, "open", message));
            }
            Which::Every => (0..kind.devices.len()).collect(),
            Which::Present => {
                let (left_out, indices) = (0..kind.devices.len()).partition::<Vec<_>, _>(|&index| kind.devices[index].1);
                let name = |index: usize| {
                    format!(
                        "{}:{index} ({}) is the processor and is not opened unless it is named",
                        pick.backend, kind.devices[index].0
                    )
                };
                self.opened.notes.extend(left_out.into_iter().map(name));
                indices
            }
        };
        let (before, mut refused) = (self.opened.devices.len(), None);
        for opened in open(&indices) {
            match opened {
                Ok(device) => self.opened.devices.push(device),
                Err(error) => {
                    self.opened.notes.push(error.to_string());
                    refused.get_or_insert(error);
                }
            }
        }
        match refused {
            Some(error) if self.opened.devices.len() == before && pick.which == Which::Every => Err(error),
            Some(_) | None => Ok(()),
        }
    }
}
