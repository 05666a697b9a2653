//! An application that shares its OpenCL context, queue and buffers with Lapidary. Lapidary solves a system in the buffers of the
//! application, so that nothing is copied between the application and Lapidary.
//!
//! `cargo run --release -p lapidary --example opencl_app`
//!
//! The application computes the temperature of a rod at `N` points. The ends of the rod are held at 0 and 1, and the rod is
//! heated uniformly along its length: `−u″ = 1`. A kernel of the application writes the matrix and the right-hand side on the
//! device. Lapidary solves the system by LU. A second kernel of the application computes the error against `u(x) = x + x·(1 −
//! x)/2`.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;

use lapidary::opencl::cl3::types::{cl_command_queue, cl_context, cl_device_id, cl_mem, cl_program};
use lapidary::opencl::{OpenClDevice, cl3, list};
use lapidary::{Machine, Settings};

/// Number of points inside the rod.
const N: usize = 500;

/// OpenCL source of the kernels of the application.
const TEXT: &str = "
__kernel void fill(__global float *a, __global float *b) {
    const int n = get_global_size(0), i = get_global_id(0);
    const float h = 1.0f / (n + 1);
    for (int j = 0; j < n; ++j) a[i + j * n] = i == j ? 2.0f : (i - j == 1 || j - i == 1 ? -1.0f : 0.0f);
    b[i] = h * h + (i == n - 1 ? 1.0f : 0.0f);
}
__kernel void compare(__global float *u) {
    const int n = get_global_size(0), i = get_global_id(0);
    const float x = (i + 1.0f) / (n + 1);
    u[i] = fabs(u[i] - (x + x * (1 - x) / 2));
}";

/// The OpenCL objects of the application.
struct App {
    context: cl_context,
    queue: cl_command_queue,
    program: cl_program,
    buffers: RefCell<Vec<cl_mem>>,
}

fn status(code: i32) -> Box<dyn Error> {
    cl3::error_codes::error_text(code).into()
}

impl App {
    fn open(device: cl_device_id) -> Result<Self, Box<dyn Error>> {
        let context = cl3::context::create_context(&[device], ptr::null(), None, ptr::null_mut()).map_err(status)?;
        // SAFETY: the caller passes a valid device, and the context was just created for this device.
        let queue = unsafe { cl3::command_queue::create_command_queue(context, device, 0) }.map_err(status)?;
        let program = cl3::program::create_program_with_source(context, &[TEXT]).map_err(status)?;
        cl3::program::build_program(program, &[device], c"", None, ptr::null_mut()).map_err(status)?;
        Ok(App { context, queue, program, buffers: RefCell::default() })
    }

    fn buffer(&self, count: usize) -> Result<cl_mem, Box<dyn Error>> {
        // SAFETY: the context is valid, and the host pointer is null, so the driver accesses no host memory.
        let mem = unsafe { cl3::memory::create_buffer(self.context, cl3::memory::CL_MEM_READ_WRITE, count * 4, ptr::null_mut()) };
        let mem = mem.map_err(status)?;
        self.buffers.borrow_mut().push(mem);
        Ok(mem)
    }

    /// Runs a kernel of the application over all points and waits for its end.
    fn run(&self, name: &CStr, buffers: &[cl_mem]) -> Result<(), Box<dyn Error>> {
        let kernel = cl3::kernel::create_kernel(self.program, name).map_err(status)?;
        for (index, buffer) in (0..).zip(buffers) {
            let value: *const c_void = ptr::from_ref(buffer).cast();
            // SAFETY: all parameters of the kernels are buffers, and `value` points to a valid buffer handle during the call.
            unsafe { cl3::kernel::set_kernel_arg(kernel, index, size_of::<cl_mem>(), value) }.map_err(status)?;
        }
        let global = [N];
        // SAFETY: the queue and the kernel are valid, `global` has one dimension, and all arguments of the kernel are set.
        let event = unsafe {
            let no_events = ptr::null();
            cl3::command_queue::enqueue_nd_range_kernel(
                self.queue,
                kernel,
                1,
                ptr::null(),
                global.as_ptr(),
                ptr::null(),
                0,
                no_events,
            )
        };
        // SAFETY: the application owns the event and the kernel and releases each of them once; the driver keeps objects that it
        // still uses.
        unsafe {
            cl3::event::release_event(event.map_err(status)?).map_err(status)?;
            cl3::kernel::release_kernel(kernel).map_err(status)?;
        }
        cl3::command_queue::finish(self.queue).map_err(status)
    }

    fn read(&self, mem: cl_mem) -> Result<Vec<f32>, Box<dyn Error>> {
        let mut data = vec![0.0_f32; N];
        // SAFETY: `data` has memory for the N elements of the buffer, and nothing else accesses `data` until the blocking read
        // returns.
        let event = unsafe {
            let to = data.as_mut_ptr().cast();
            cl3::command_queue::enqueue_read_buffer(self.queue, mem, 1, 0, N * 4, to, 0, ptr::null())
        };
        // SAFETY: the application owns the event and releases it once.
        unsafe { cl3::event::release_event(event.map_err(status)?) }.map_err(status)?;
        Ok(data)
    }
}

impl Drop for App {
    fn drop(&mut self) {
        // SAFETY: the application owns each handle and releases it once. Errors are ignored, since `drop` cannot return them.
        unsafe {
            for &buffer in self.buffers.borrow().iter() {
                let _ = cl3::memory::release_mem_object(buffer);
            }
            let _ = cl3::program::release_program(self.program);
            let _ = cl3::command_queue::release_command_queue(self.queue);
            let _ = cl3::context::release_context(self.context);
        }
    }
}

/// Solves the system on the device with this index and returns the largest error of the solution.
fn solve(index: usize) -> Result<f32, Box<dyn Error>> {
    let device = list().devices.get(index).map(lapidary::opencl::Found::handle).ok_or("there is no such device")?;
    let app = App::open(device)?;
    let (a, b) = (app.buffer(N * N)?, app.buffer(N)?);
    app.run(c"fill", &[a, b])?;

    let settings = Settings::from_env()?;
    let cache = Arc::new(settings.program_cache());
    // SAFETY: the context and the in-order queue belong to `app`, which outlives the machine.
    let shared = unsafe { OpenClDevice::from_parts(app.context, index, app.queue, None, cache)? };
    let machine = Machine::from_opencl(vec![shared], &settings)?;
    // SAFETY: both buffers belong to the context of `shared`, and the application's kernels have completed, so that nothing else
    // uses the buffers during a call.
    let (mut matrix, mut rhs) = unsafe { (machine.wrap_opencl::<f32>(a, N, N)?, machine.wrap_opencl::<f32>(b, N, 1)?) };
    let lu = machine.getrf(matrix.view_mut())?;
    lu.solve(rhs.view_mut())?;

    app.run(c"compare", &[b])?;
    Ok(app.read(b)?.into_iter().fold(0.0, f32::max))
}

fn main() -> Result<(), Box<dyn Error>> {
    let listing = list();
    let Some(device) = listing.devices.first() else {
        println!("no OpenCL device: {}", listing.notes.join("; "));
        return Ok(());
    };
    println!("{}: largest error of {N} points {:.1e}", device.facts.identity.model, solve(0)?);
    Ok(())
}

#[test]
fn the_rod_is_warm() {
    if !list().devices.is_empty() {
        let error = solve(0).unwrap();
        assert!(error < 1e-3 && error > 0.0, "{error}");
    }
}
