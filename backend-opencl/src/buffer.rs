//! Owned handles of the driver, which are released when they are dropped, and buffers that hold such a handle.

use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, OnceLock};

use cl3::info_type::InfoType;
use cl3::memory::{
    CL_MEM_COPY_HOST_PTR, CL_MEM_OBJECT_IMAGE1D_BUFFER, CL_MEM_READ_ONLY, CL_MEM_READ_WRITE, CL_MEM_SIZE, CL_MEM_USE_HOST_PTR,
    CL_RGBA, CL_UNSIGNED_INT32, create_buffer, create_image, get_mem_object_info, release_mem_object,
    set_mem_object_destructor_callback,
};
use cl3::types::{cl_command_queue, cl_context, cl_event, cl_image_desc, cl_image_format, cl_kernel, cl_mem, cl_program};
use lapidary_core::{Error, Result, SharedRect};
use lapidary_kernels::VECTOR_BYTES;

use crate::conv::failed;
use crate::pages::Pages;

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
    memory: Arc<Memory>,
    /// Whether the buffer belongs to an application, whose queue may hold commands that use it.
    adopted: bool,
}

/// A column-major rectangle in a buffer.
pub(crate) type Rect = SharedRect<Buffer>;

/// The handle of a buffer, and the image through which kernels read the buffer.
#[derive(Debug)]
struct Memory {
    /// `None` if the driver refuses the image. Declared first, so that the image is released before the buffer.
    image: OnceLock<Option<Mem>>,
    buffer: Mem,
}

impl Buffer {
    /// Takes ownership of a handle.
    fn from_owned(buffer: Mem, adopted: bool) -> Self {
        Buffer { memory: Arc::new(Memory { image: OnceLock::new(), buffer }), adopted }
    }

    pub(crate) fn new(context: &Context, bytes: usize) -> Result<Self> {
        // OpenCL returns an error for a buffer of 0 bytes
        // SAFETY: there is no host memory.
        unsafe { Self::with_flags(context, bytes.max(1), CL_MEM_READ_WRITE, ptr::null_mut()) }
    }

    /// Allocates memory that is filled with zeros.
    pub(crate) fn zeros(context: &Context, bytes: usize) -> Result<Self> {
        let mut zeros = vec![0_u8; bytes.max(1)];
        // SAFETY: the driver copies the zeros during the call.
        unsafe { Self::with_flags(context, zeros.len(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, zeros.as_mut_ptr().cast()) }
    }

    /// Makes a buffer of host memory, which the driver may pin. The buffer owns the memory: a destructor callback frees it when the driver no longer
    /// uses it. The memory may be accessed only while it is mapped.
    pub(crate) fn pinned(context: &Context, memory: Pages) -> Result<Self> {
        /// Frees the memory that the buffer has used.
        extern "C" fn free(_: cl_mem, memory: *mut c_void) {
            // SAFETY: the pointer comes from `Box::into_raw`, and the driver calls this function once.
            drop(unsafe { Box::from_raw(memory.cast::<Pages>()) });
        }
        let memory = Box::new(memory);
        // SAFETY: the memory has this size, and lives until the driver no longer uses it.
        let buffer =
            unsafe { Self::with_flags(context, memory.bytes(), CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, memory.ptr().cast())? };
        let memory = Box::into_raw(memory);
        // SAFETY: the buffer is valid, and only `free` uses the box from now on.
        let registered = unsafe { set_mem_object_destructor_callback(buffer.handle(), free, memory.cast()) };
        // without the callback nobody knows when the driver has let go of the memory, so that it is never freed; no known driver refuses
        registered.map(|()| buffer).map_err(|code| failed("clSetMemObjectDestructorCallback", code))
    }

    /// Makes a buffer, with the memory at `host` if it is not null.
    ///
    /// # Safety
    /// The memory at `host` has `bytes` bytes, and lives as long as `flags` require.
    unsafe fn with_flags(context: &Context, bytes: usize, flags: u64, host: *mut c_void) -> Result<Self> {
        // SAFETY: the caller guarantees the size and the lifetime of the host memory, if any.
        let mem = unsafe { create_buffer(context.0, flags, bytes, host) };
        mem.map(|mem| Self::from_owned(Mem(mem), false)).map_err(|code| failed("clCreateBuffer", code).with("bytes", bytes))
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
        let buffer = Self::from_owned(Mem(mem), true);
        let size = buffer.bytes()?;
        if size < bytes {
            return Err(Error::invalid("wrap", format!("the buffer holds {size} bytes, the matrix takes {bytes}")));
        }
        Ok(buffer)
    }

    pub(crate) fn handle(&self) -> cl_mem {
        self.memory.buffer.0
    }

    /// The size of the buffer in bytes.
    fn bytes(&self) -> Result<usize> {
        let info = get_mem_object_info(self.handle(), CL_MEM_SIZE);
        info.map(InfoType::to_size).map_err(|code| failed("clGetMemObjectInfo", code))
    }

    /// Makes the image of the buffer, if there is none yet. The image covers the whole buffer, but has at most `max_pixels` pixels.
    /// Returns false if the driver refuses the image, which the buffer remembers.
    pub(crate) fn make_image(&self, context: &Context, max_pixels: usize) -> bool {
        self.memory.image.get_or_init(|| self.new_image(context, max_pixels)).is_some()
    }

    /// The handle of the image, if the buffer has one.
    pub(crate) fn image(&self) -> Option<cl_mem> {
        self.memory.image.get()?.as_ref().map(|image| image.0)
    }

    fn new_image(&self, context: &Context, max_pixels: usize) -> Option<Mem> {
        let format = cl_image_format { image_channel_order: CL_RGBA, image_channel_data_type: CL_UNSIGNED_INT32 };
        let desc = cl_image_desc {
            image_type: CL_MEM_OBJECT_IMAGE1D_BUFFER,
            image_width: (self.bytes().ok()? / VECTOR_BYTES).min(max_pixels),
            image_height: 0,
            image_depth: 0,
            image_array_size: 0,
            image_row_pitch: 0,
            image_slice_pitch: 0,
            num_mip_levels: 0,
            num_samples: 0,
            buffer: self.handle(),
        };
        // SAFETY: the format and the description live during the call, the buffer is valid, and an image of a buffer has no host pointer.
        let image = unsafe { create_image(context.0, CL_MEM_READ_ONLY, &raw const format, &raw const desc, ptr::null_mut()) };
        image.ok().map(Mem)
    }

    pub(crate) fn is_adopted(&self) -> bool {
        self.adopted
    }
}

#[cfg(test)]
mod tests {
    use cl3::memory::{CL_IMAGE_WIDTH, CL_MEM_REFERENCE_COUNT, get_image_info, retain_mem_object};

    use super::*;

    #[test]
    fn an_image_is_made_once_and_released_with_its_buffer() {
        let Some((found, context)) = crate::program::tests::device() else { return };
        let pixels = found.facts.limits.image_pixels;
        if pixels == 0 {
            eprintln!("not run: the device reads no images");
            return;
        }
        let buffer = Buffer::new(&context, 100).unwrap();
        assert_eq!(buffer.image(), None);
        assert!(buffer.make_image(&context, pixels));
        let image = buffer.image().unwrap();
        let width = get_image_info(image, CL_IMAGE_WIDTH).unwrap().to_size();
        assert_eq!(width, 6, "an image has whole pixels");
        let clone = buffer.clone();
        assert!(clone.make_image(&context, pixels) && clone.image() == Some(image));
        // the image holds a reference to the buffer until the image is released
        let memory = Mem(buffer.handle());
        // SAFETY: the handle is valid; `memory` releases this reference.
        unsafe { retain_mem_object(memory.0).unwrap() };
        let references = || get_mem_object_info(memory.0, CL_MEM_REFERENCE_COUNT).unwrap().to_uint();
        drop(buffer);
        assert_eq!(references(), 3, "the test, a clone and the image refer to the buffer");
        drop(clone);
        assert_eq!(references(), 1);
    }
}
