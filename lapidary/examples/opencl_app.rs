//! An application that has an OpenCL context, a queue and buffers of its own, and
//! lets Lapidary solve in them: nothing is copied between the two.
//!
//! `cargo run --release -p lapidary --example opencl_app`
//!
//! A rod of `N` points, whose ends are held at 0 and 1, is warmed along its
//! length: `−u″ = 1`. A kernel of the application fills the matrix and the
//! right-hand side on the device, LU solves there, and a second kernel of the
//! application finds the error against `u(x) = x + x·(1 − x)/2`.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;

use lapidary::opencl::cl3::types::{cl_command_queue, cl_context, cl_device_id, cl_mem, cl_program};
use lapidary::opencl::{OpenClDevice, cl3, list};
use lapidary::{Machine, Settings};

/// Points inside the rod.
const N: usize = 500;

/// The application's kernels.
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

/// What the application has opened.
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
        // SAFETY: the handles are valid.
        let queue = unsafe { cl3::command_queue::create_command_queue(context, device, 0) }.map_err(status)?;
        let program = cl3::program::create_program_with_source(context, &[TEXT]).map_err(status)?;
        cl3::program::build_program(program, &[device], c"", None, ptr::null_mut()).map_err(status)?;
        Ok(App { context, queue, program, buffers: RefCell::default() })
    }

    fn buffer(&self, count: usize) -> Result<cl_mem, Box<dyn Error>> {
        // SAFETY: no host pointer is given.
        let mem = unsafe { cl3::memory::create_buffer(self.context, cl3::memory::CL_MEM_READ_WRITE, count * 4, ptr::null_mut()) };
        let mem = mem.map_err(status)?;
        self.buffers.borrow_mut().push(mem);
        Ok(mem)
    }

    /// Runs a kernel of the application over all points and waits.
    fn run(&self, name: &CStr, buffers: &[cl_mem]) -> Result<(), Box<dyn Error>> {
        let kernel = cl3::kernel::create_kernel(self.program, name).map_err(status)?;
        for (index, buffer) in (0..).zip(buffers) {
            let value: *const c_void = ptr::from_ref(buffer).cast();
            // SAFETY: the kernels take buffers only.
            unsafe { cl3::kernel::set_kernel_arg(kernel, index, size_of::<cl_mem>(), value) }.map_err(status)?;
        }
        let global = [N];
        // SAFETY: one dimension; the arguments are set.
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
        // SAFETY: both are ours and given back once; the driver keeps what it still uses.
        unsafe {
            cl3::event::release_event(event.map_err(status)?).map_err(status)?;
            cl3::kernel::release_kernel(kernel).map_err(status)?;
        }
        cl3::command_queue::finish(self.queue).map_err(status)
    }

    fn read(&self, mem: cl_mem) -> Result<Vec<f32>, Box<dyn Error>> {
        let mut data = vec![0.0_f32; N];
        // SAFETY: the buffer holds N elements; the call waits.
        let event = unsafe {
            let to = data.as_mut_ptr().cast();
            cl3::command_queue::enqueue_read_buffer(self.queue, mem, 1, 0, N * 4, to, 0, ptr::null())
        };
        // SAFETY: as above; given back once.
        unsafe { cl3::event::release_event(event.map_err(status)?) }.map_err(status)?;
        Ok(data)
    }
}

impl Drop for App {
    fn drop(&mut self) {
        // SAFETY: each handle is ours and given back once. What fails here nobody can mend.
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

/// The largest error of the solution on the device of that number.
fn solve(index: usize) -> Result<f32, Box<dyn Error>> {
    let device = list().devices.get(index).map(lapidary::opencl::Found::handle).ok_or("there is no such device")?;
    let app = App::open(device)?;
    let (a, b) = (app.buffer(N * N)?, app.buffer(N)?);
    app.run(c"fill", &[a, b])?;

    let settings = Settings::from_env()?;
    let cache = Arc::new(settings.program_cache());
    // SAFETY: the context and its in-order queue are the application's and live on.
    let shared = unsafe { OpenClDevice::from_parts(app.context, index, app.queue, None, cache)? };
    let machine = Machine::from_opencl(vec![shared], &settings)?;
    // SAFETY: the buffers belong to that context; the application's kernels are done.
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
