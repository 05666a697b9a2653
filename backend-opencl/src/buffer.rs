//! Owned handles of the driver, which are released when they are dropped, and buffers that hold such a handle.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cl3::memory::{CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, create_buffer, release_mem_object};
use cl3::types::{cl_command_queue, cl_context, cl_event, cl_kernel, cl_mem, cl_program};
use lapidary_core::{Error, Result};

use crate::conv::failed;

/// Defines types that own a handle of the driver. A caller could not handle the error of a failed release,
/// so `drop` ignores this error and never panics.
macro_rules! owned {
    ($($name:ident of $handle:ident by $release:path;)+) => {$(
        #[derive(Debug)]
        pub(crate) struct $name(pub(crate) $handle);

        // SAFETY: OpenCL handles may be used from any thread (OpenCL specification, appendix A).
        unsafe impl Send for $name {}
        // SAFETY: several threads may use an OpenCL handle at once, except the handle of a kernel, whose arguments a lock protects.
        unsafe impl Sync for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: this value owns the handle, which is released only here.
                let _ = unsafe { $release(self.0) };
            }
        }
    )+};
}

owned! {
    Context of cl_context by cl3::context::release_context;
    CommandQueue of cl_command_queue by cl3::command_queue::release_command_queue;
    BuiltProgram of cl_program by cl3::program::release_program;
    Kernel of cl_kernel by cl3::kernel::release_kernel;
    Event of cl_event by cl3::event::release_event;
    Mem of cl_mem by release_mem_object;
}

/// A region of the device's memory. A clone of a buffer refers to the same region of memory.
#[derive(Clone, Debug)]
pub struct Buffer {
    mem: Arc<Mem>,
    /// Whether the buffer belongs to an application, whose queue may hold commands that use it.
    adopted: bool,
}

impl Buffer {
    pub(crate) fn new(context: &Context, bytes: usize) -> Result<Self> {
        // OpenCL returns an error for a buffer of 0 bytes
        Self::with_flags(context, bytes.max(1), CL_MEM_READ_WRITE)
    }

    /// Allocates memory that the host may map without a copy.
    pub(crate) fn pinned(context: &Context, bytes: usize) -> Result<Self> {
        Self::with_flags(context, bytes.max(1), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR)
    }

    fn with_flags(context: &Context, bytes: usize, flags: u64) -> Result<Self> {
        // SAFETY: the host pointer is null, so the driver allocates the memory.
        let mem = unsafe { create_buffer(context.0, flags, bytes, ptr::null_mut::<c_void>()) };
        mem.map(|mem| Buffer { mem: Arc::new(Mem(mem)), adopted: false })
            .map_err(|code| failed("clCreateBuffer", code).with("bytes", bytes))
    }

    /// Wraps a buffer of an application. The OpenCL handle is retained until the last clone of the returned buffer is dropped.
    ///
    /// # Safety
    /// `mem` is a valid buffer in the context of the device.
    ///
    /// # Errors
    /// A call of the driver fails, or the buffer is smaller than `bytes`.
    pub unsafe fn adopt(mem: cl_mem, bytes: usize) -> Result<Self> {
        // SAFETY: the caller guarantees that `mem` is a valid buffer.
        unsafe { cl3::memory::retain_mem_object(mem) }.map_err(|code| failed("clRetainMemObject", code))?;
        let buffer = Buffer { mem: Arc::new(Mem(mem)), adopted: true };
        let info = cl3::memory::get_mem_object_info(mem, cl3::memory::CL_MEM_SIZE);
        let size = info.map_err(|code| failed("clGetMemObjectInfo", code))?.to_size();
        if size < bytes {
            return Err(Error::invalid("wrap", format!("the buffer holds {size} bytes, the matrix takes {bytes}")));
        }
        Ok(buffer)
    }

    pub(crate) fn handle(&self) -> cl_mem {
        self.mem.0
    }

    pub(crate) fn is_adopted(&self) -> bool {
        self.adopted
    }
}
