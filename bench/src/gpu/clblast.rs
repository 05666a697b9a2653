//! Calls of `CLBlast`, if the library is found on the system, on an OpenCL device.

use std::ptr;

use lapidary::opencl::cl3::types::{cl_command_queue, cl_context, cl_device_id, cl_event, cl_mem};
use lapidary::opencl::cl3::{command_queue, context, memory};
use lapidary::{DType, Scalar};
use libloading::{Library, Symbol};

use super::Prepared;
use super::problem::{Operands, Problem, Product};
use crate::cublas::{self, answer};

/// File name of the `CLBlast` library in Debian, and the environment variable that names another file.
const CLBLAST: &str = "libclblast.so.1";
const VARIABLE: &str = "LAPIDARY_PEER_CLBLAST";

/// The values by which CBLAS and `CLBlast` denote column-major storage, a plain and a transposed operand, the lower triangle, a
/// stored diagonal and the left side.
const COL_MAJOR: i32 = 102;
const NO_TRANS: i32 = 111;
const TRANS: i32 = 112;
const LOWER: i32 = 122;
const NON_UNIT: i32 = 131;
const LEFT: i32 = 141;

type Gemm<T> = unsafe extern "C" fn(
    i32,
    i32,
    i32,
    usize,
    usize,
    usize,
    T,
    cl_mem,
    usize,
    usize,
    cl_mem,
    usize,
    usize,
    T,
    cl_mem,
    usize,
    usize,
    *mut cl_command_queue,
    *mut cl_event,
) -> i32;

type Trsm<T> = unsafe extern "C" fn(
    i32,
    i32,
    i32,
    i32,
    i32,
    usize,
    usize,
    T,
    cl_mem,
    usize,
    usize,
    cl_mem,
    usize,
    usize,
    *mut cl_command_queue,
    *mut cl_event,
) -> i32;

/// `CLBlast` on one device. The program keeps the context and the queue until the process ends.
pub struct ClBlast {
    dylib: Library,
    context: cl_context,
    queue: cl_command_queue,
}

/// A matrix in device memory, which is freed when the value is dropped.
struct Buffer(cl_mem);

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the driver has returned the buffer, and `self` owns its only reference.
        let _ = unsafe { memory::release_mem_object(self.0) };
    }
}

/// A call of `CLBlast` with the matrices A, B and the result.
struct Call<'c> {
    clblast: &'c ClBlast,
    problem: Problem,
    matrices: [Buffer; 3],
}

impl ClBlast {
    /// Loads the library, and creates a context and a queue on a device.
    ///
    /// # Errors
    /// The library is not found, or the driver refuses the context or the queue.
    pub fn open(device: cl_device_id) -> Result<Self, String> {
        let dylib = cublas::open(VARIABLE, [CLBLAST])?;
        let context = context::create_context(&[device], ptr::null(), None, ptr::null_mut()).map_err(failed)?;
        // SAFETY: the device handle is valid as long as the process runs, and the driver has just returned the context for this
        // device.
        let queue = unsafe { command_queue::create_command_queue(context, device, 0) }.map_err(failed)?;
        Ok(ClBlast { dylib, context, queue })
    }

    /// Path of the library, which stands for its version, because `CLBlast` has no function that returns the version.
    pub fn version(&self) -> String {
        std::env::var(VARIABLE).unwrap_or_else(|_| CLBLAST.to_owned())
    }

    /// Copies the operands of a product or a solve to the device. Returns `None` for other routines, which `CLBlast` lacks.
    ///
    /// # Errors
    /// The device has too little memory.
    pub fn prepare<'c, T: Scalar>(&'c self, operands: &Operands<T>) -> Result<Option<Box<dyn Prepared<T> + 'c>>, String> {
        if let Problem::Factors { .. } | Problem::System { .. } = operands.problem {
            return Ok(None);
        }
        let matrices = [self.upload(&operands.a)?, self.upload(&operands.b)?, self.upload(&operands.unwritten())?];
        Ok(Some(Box::new(Call { clblast: self, problem: operands.problem, matrices })))
    }

    fn upload<T: Scalar>(&self, data: &[T]) -> Result<Buffer, String> {
        let flags = memory::CL_MEM_READ_WRITE | memory::CL_MEM_COPY_HOST_PTR;
        // SAFETY: `data` is borrowed, and the driver copies it to the new buffer before the call returns.
        let mem = unsafe { memory::create_buffer(self.context, flags, size_of_val(data), data.as_ptr().cast_mut().cast()) };
        mem.map(Buffer).map_err(failed)
    }

    /// Returns the function whose name consists of the letter of the element type and of `name`.
    fn symbol<T: Scalar, F>(&self, name: &str) -> Result<Symbol<'_, F>, String> {
        let letter = if T::DTYPE == DType::F64 { 'D' } else { 'S' };
        // SAFETY: each caller passes the signature in the C header of `CLBlast` as `F`.
        unsafe { self.dylib.get(format!("CLBlast{letter}{name}").as_bytes()) }.map_err(|error| error.to_string())
    }
}

impl Call<'_> {
    fn multiply<T: Scalar>(&self, product: Product) -> Result<(), String> {
        let Product { m, n, k, trans } = product;
        let [op_a, op_b] = trans.map(|trans| if trans { TRANS } else { NO_TRANS });
        let (lda, ldb) = (product.shape_a().0, product.shape_b().0);
        let [Buffer(a), Buffer(b), Buffer(c)] = self.matrices;
        let mut queue = self.clblast.queue;
        let gemm = self.clblast.symbol::<T, Gemm<T>>("gemm")?;
        // SAFETY: the type of the symbol is the signature in the C header of `CLBlast`. The buffers hold m·k, k·n and m·n elements,
        // whose columns are packed. No event is asked for.
        let status = unsafe {
            let (queue, event) = (&raw mut queue, ptr::null_mut());
            gemm(COL_MAJOR, op_a, op_b, m, n, k, T::ONE, a, 0, lda, b, 0, ldb, T::ZERO, c, 0, m, queue, event)
        };
        answer("CLBlast's gemm", status)
    }

    /// Copies B to X and solves L·X = B in the copy.
    fn solve<T: Scalar>(&self, n: usize, nrhs: usize) -> Result<(), String> {
        let [Buffer(a), Buffer(b), Buffer(x)] = self.matrices;
        let mut queue = self.clblast.queue;
        let trsm = self.clblast.symbol::<T, Trsm<T>>("trsm")?;
        // SAFETY: the type of the symbol is the signature in the C header of `CLBlast`. The buffers hold n², n·nrhs and n·nrhs
        // elements, whose columns are packed. The queue runs the copy before the solve. No event is asked for.
        unsafe {
            let copied = command_queue::enqueue_copy_buffer(queue, b, x, 0, 0, n * nrhs * size_of::<T>(), 0, ptr::null());
            release(copied.map_err(failed)?);
            let (queue, event) = (&raw mut queue, ptr::null_mut());
            let status = trsm(COL_MAJOR, LEFT, LOWER, NO_TRANS, NON_UNIT, n, nrhs, T::ONE, a, 0, n, x, 0, n, queue, event);
            answer("CLBlast's trsm", status)
        }
    }
}

impl<T: Scalar> Prepared<T> for Call<'_> {
    fn name(&self) -> &'static str {
        "clblast"
    }

    fn run(&mut self, times: usize) -> Result<(), String> {
        for _ in 0..times {
            match self.problem {
                Problem::Product(product) => self.multiply::<T>(product)?,
                Problem::Solve { n, nrhs } => self.solve::<T>(n, nrhs)?,
                Problem::Factors { .. } | Problem::System { .. } => return Err("CLBlast has no factorisation".to_owned()),
            }
        }
        command_queue::finish(self.clblast.queue).map_err(failed)
    }

    fn read(&self, to: &mut [T]) -> Result<Vec<usize>, String> {
        let (bytes, host) = (size_of_val(to), to.as_mut_ptr().cast());
        // SAFETY: `to` is borrowed exclusively and has as many elements as the result. The read is blocking, so that it ends before
        // the call returns.
        unsafe {
            let read =
                command_queue::enqueue_read_buffer(self.clblast.queue, self.matrices[2].0, 1, 0, bytes, host, 0, ptr::null());
            release(read.map_err(failed)?);
        }
        Ok(Vec::new())
    }
}

/// # Safety
/// The caller must own the only reference of the event.
unsafe fn release(event: cl_event) {
    // SAFETY: the caller owns the event.
    let _ = unsafe { lapidary::opencl::cl3::event::release_event(event) };
}

fn failed(code: i32) -> String {
    format!("the driver answers {code}")
}
