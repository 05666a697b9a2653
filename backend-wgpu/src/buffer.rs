//! Buffers in device memory.

#[cfg(feature = "test-hooks")]
use std::sync::Arc;

use lapidary_core::{Error, ErrorKind, Result, SharedRect};

#[cfg(feature = "test-hooks")]
use crate::meter::Counted;
use crate::queue::Queue;

/// Usages of a buffer that holds a register.
const USES: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC).union(wgpu::BufferUsages::COPY_DST);

/// A region of the device's memory that holds a register or a matrix. Each region is a wgpu buffer of its own, because wgpu
/// tracks the use of whole buffers.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub(crate) raw: wgpu::Buffer,
    /// Keeps the bytes of this buffer counted until the buffer is dropped. `None` for a buffer that belongs to the application.
    #[cfg(feature = "test-hooks")]
    _counted: Option<Arc<Counted>>,
}

/// A column-major rectangle in a buffer.
pub(crate) type Rect = SharedRect<Buffer>;

impl Buffer {
    pub(crate) fn new(queue: &Queue, bytes: usize) -> Result<Self> {
        let most = queue.largest_binding();
        if bytes > most {
            let message = format!(
                "{bytes} bytes are more than the {most} that a kernel reaches in one buffer; from host memory they pass in tiles"
            );
            return Err(Error::new(ErrorKind::OutOfMemory, "alloc", message));
        }
        // a binding must not be empty, and its size must be a multiple of the size of every element type
        let size = (bytes.max(1) as u64).next_multiple_of(8);
        let descriptor = wgpu::BufferDescriptor { label: Some("register"), size, usage: USES, mapped_at_creation: false };
        let buffer = queue.guarded("alloc", |device| device.create_buffer(&descriptor));
        let own = |raw| Buffer {
            raw,
            #[cfg(feature = "test-hooks")]
            _counted: Some(Arc::new(Counted::new(queue.meter(), size as usize))),
        };
        buffer.map(own).map_err(|error| error.with("bytes", bytes))
    }

    /// Wraps a buffer of the application that is to hold a matrix of `bytes` bytes.
    pub(crate) fn adopt(queue: &Queue, buffer: wgpu::Buffer, bytes: usize) -> Result<Self> {
        let (size, most) = (buffer.size() as usize, queue.largest_binding());
        let missing = USES.difference(buffer.usage());
        let wrong = if size < bytes {
            format!("the buffer holds {size} bytes, the matrix takes {bytes}")
        } else if size > most {
            format!("the buffer holds {size} bytes, a kernel reaches {most} of a buffer")
        } else if !missing.is_empty() {
            format!("the buffer lacks the usages {missing:?}; make it with STORAGE | COPY_SRC | COPY_DST")
        } else {
            // this command never runs, but wgpu rejects the creation of the command if the buffer belongs to another device
            let probed = queue.guarded("wrap", |device| {
                let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("wrap") });
                encoder.clear_buffer(&buffer, 0, Some(0));
                drop(encoder.finish());
            });
            let wrapped = Buffer {
                raw: buffer,
                #[cfg(feature = "test-hooks")]
                _counted: None,
            };
            return probed.map(|()| wrapped).map_err(|error| match error.kind() {
                ErrorKind::DeviceFailed => Error::invalid("wrap", "the buffer is destroyed or another device's").caused_by(error),
                _ => error,
            });
        };
        Err(Error::invalid("wrap", wrong))
    }
}
