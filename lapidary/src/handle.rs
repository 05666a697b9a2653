//! The devices of a machine: one variant for each backend of this build.

use lapidary_backend_cpu::CpuDevice;
#[cfg(feature = "opencl")]
use lapidary_backend_opencl::OpenClDevice;
#[cfg(feature = "wgpu")]
use lapidary_backend_wgpu::WgpuDevice;
use lapidary_core::{DeviceInfo, DeviceVisitor, Drive, Driver, Error, Instruction, Lane, RawMat, Result, Run};

/// A device of any backend. What is called on it is one match, then static code.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a machine holds a handful")]
pub(crate) enum Handle {
    Cpu(Driver<CpuDevice>),
    #[cfg(feature = "opencl")]
    OpenCl(Driver<OpenClDevice>),
    #[cfg(feature = "wgpu")]
    Wgpu(Driver<WgpuDevice>),
    #[cfg(test)]
    Null(Driver<lapidary_core::null::NullDevice>),
}

/// Calls a method of the driver inside.
macro_rules! driver {
    ($handle:expr, $driver:ident => $call:expr) => {
        match $handle {
            Handle::Cpu($driver) => $call,
            #[cfg(feature = "opencl")]
            Handle::OpenCl($driver) => $call,
            #[cfg(feature = "wgpu")]
            Handle::Wgpu($driver) => $call,
            #[cfg(test)]
            Handle::Null($driver) => $call,
        }
    };
}

impl Drive for Handle {
    fn info(&self) -> &DeviceInfo {
        driver!(self, d => d.info())
    }
    fn drive(&self, run: &Run<'_>, lanes: &[Lane]) {
        driver!(self, d => d.drive(run, lanes));
    }
    fn free_all(&self) {
        driver!(self, d => d.free_all());
    }
    fn trim(&self) {
        driver!(self, d => d.trim());
    }
    fn free_memory(&self) -> usize {
        driver!(self, d => d.free_memory())
    }
}

impl Handle {
    /// See [`Driver::launch`].
    #[inline]
    pub(crate) unsafe fn launch(&self, instruction: &Instruction<RawMat>) -> Result<()> {
        // SAFETY: as the caller promises.
        driver!(self, d => unsafe { d.launch(instruction) })
    }

    /// Whether a matrix of that key lies here.
    pub(crate) fn holds(&self, key: u64) -> bool {
        driver!(self, d => d.resident(key).is_ok())
    }

    /// Why the device is gone for good, if it is.
    pub(crate) fn lost(&self) -> Option<Error> {
        match self {
            Handle::Cpu(_) => None,
            #[cfg(feature = "opencl")]
            Handle::OpenCl(driver) => driver.device().lost(),
            #[cfg(feature = "wgpu")]
            Handle::Wgpu(driver) => driver.device().lost(),
            #[cfg(test)]
            Handle::Null(_) => None,
        }
    }

    /// Shows the device.
    pub(crate) fn show(&self, visitor: &mut impl DeviceVisitor) {
        driver!(self, d => visitor.visit(d.device()));
    }

    /// See [`Driver::upload`].
    pub(crate) unsafe fn upload(&self, key: u64, from: &RawMat) -> Result<()> {
        // SAFETY: as the caller promises.
        driver!(self, d => unsafe { d.upload(key, from) })
    }

    /// See [`Driver::download`].
    pub(crate) unsafe fn download(&self, key: u64, to: &RawMat) -> Result<()> {
        // SAFETY: as the caller promises.
        driver!(self, d => unsafe { d.download(key, to) })
    }

    /// See [`Driver::refill`].
    pub(crate) unsafe fn refill(&self, key: u64, from: &RawMat) -> Result<()> {
        // SAFETY: as the caller promises.
        driver!(self, d => unsafe { d.refill(key, from) })
    }

    /// Copies a resident matrix of `peer` into one of ours, if the driver does so
    /// by itself; whether it did.
    #[cfg_attr(
        not(any(feature = "opencl", feature = "wgpu")),
        allow(unused_variables, clippy::unnecessary_wraps, reason = "drivers copy")
    )]
    pub(crate) fn copy_from_peer(&self, key: u64, peer: &Handle, peer_key: u64, bytes: usize) -> Result<bool> {
        match (self, peer) {
            #[cfg(feature = "opencl")]
            (Handle::OpenCl(to), Handle::OpenCl(from)) if to.device().is_peer_of(from.device()) => {
                let (buffer, source) = (to.resident(key)?, from.resident(peer_key)?);
                to.device().copy_from_peer(from.device(), &source, &buffer, bytes).map(|()| true)
            }
            #[cfg(feature = "wgpu")]
            (Handle::Wgpu(to), Handle::Wgpu(from)) if to.device().is_peer_of(from.device()) => {
                let (buffer, source) = (to.resident(key)?, from.resident(peer_key)?);
                to.device().copy_from_peer(from.device(), &source, &buffer, bytes).map(|()| true)
            }
            _ => Ok(false),
        }
    }

    /// See [`Driver::discard`].
    pub(crate) fn discard(&self, key: u64) {
        driver!(self, d => d.discard(key));
    }
}
