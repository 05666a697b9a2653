//! Benchmark group `opencl`: times products by Lapidary and by `CLBlast` on an OpenCL device, with matrices in device memory.

use std::ptr;

use lapidary::core::flops;
use lapidary::opencl::cl3::types::{cl_command_queue, cl_context, cl_event, cl_mem};
use lapidary::opencl::{cl3, list};
use lapidary::{Backend, DType, Gemm, Machine, MatMut, MatRef, Select};
use libloading::{Library, Symbol};

use crate::cases::{ROUNDING, assert_alike, random};
use crate::measure::{Side, in_turn, timed};
use crate::report::{Report, Unit};
use crate::settings::Settings;

/// File name of the `CLBlast` library in Debian.
const CLBLAST: &str = "libclblast.so.1";

type Dgemm = unsafe extern "C" fn(
    i32,
    i32,
    i32,
    usize,
    usize,
    usize,
    f64,
    cl_mem,
    usize,
    usize,
    cl_mem,
    usize,
    usize,
    f64,
    cl_mem,
    usize,
    usize,
    *mut cl_command_queue,
    *mut cl_event,
) -> i32;

/// The values by which CBLAS denotes column-major storage and an operand that is not transposed.
const COL_MAJOR: i32 = 102;
const NO_TRANS: i32 = 111;

/// `CLBlast` on one device. The program keeps the context and the queue until the process ends.
struct ClBlast {
    path: String,
    dylib: Library,
    context: cl_context,
    queue: cl_command_queue,
}

impl ClBlast {
    fn open(index: usize) -> Result<Self, String> {
        let path = std::env::var("LAPIDARY_PEER_CLBLAST").unwrap_or_else(|_| CLBLAST.to_owned());
        // SAFETY: the initialisers of `CLBlast` may run at any time.
        let dylib = unsafe { Library::new(&path) }.map_err(|error| error.to_string())?;
        let device = list().devices[index].handle();
        let failed = |code: i32| format!("the driver answers {code}");
        let context = cl3::context::create_context(&[device], ptr::null(), None, ptr::null_mut()).map_err(failed)?;
        // SAFETY: the device handle is valid as long as the process runs, and the driver has just returned the context for this
        // device.
        let queue = unsafe { cl3::command_queue::create_command_queue(context, device, 0) }.map_err(failed)?;
        Ok(ClBlast { path, dylib, context, queue })
    }

    fn upload(&self, data: &[f64]) -> cl_mem {
        let flags = cl3::memory::CL_MEM_READ_WRITE | cl3::memory::CL_MEM_COPY_HOST_PTR;
        // SAFETY: `data` is borrowed, and the driver copies it to the new buffer before the call returns.
        let mem = unsafe { cl3::memory::create_buffer(self.context, flags, size_of_val(data), data.as_ptr().cast_mut().cast()) };
        mem.expect("the device has memory")
    }

    fn download(&self, mem: cl_mem, data: &mut [f64]) {
        // SAFETY: `data` is borrowed exclusively, and the buffer is at least as large as `data`. The read is blocking, so that it
        // ends before the call returns.
        let event = unsafe {
            let (bytes, to) = (size_of_val(data), data.as_mut_ptr().cast());
            cl3::command_queue::enqueue_read_buffer(self.queue, mem, 1, 0, bytes, to, 0, ptr::null())
        };
        event.expect("the buffer is read");
    }

    fn gemm(&self, n: usize, [a, b, c]: [cl_mem; 3]) {
        // SAFETY: the type `Dgemm` is the signature in the C interface of `CLBlast`. The caller passes three buffers of n²
        // elements.
        unsafe {
            let gemm: Symbol<'_, Dgemm> = self.dylib.get(b"CLBlastDgemm").expect("the library has dgemm");
            let mut queue = self.queue;
            let status =
                gemm(COL_MAJOR, NO_TRANS, NO_TRANS, n, n, n, 1.0, a, 0, n, b, 0, n, 0.0, c, 0, n, &raw mut queue, ptr::null_mut());
            assert_eq!(status, 0, "CLBlastDgemm");
        }
        cl3::command_queue::finish(self.queue).expect("the product ends");
    }
}

/// Times square products in double precision on the first OpenCL device that computes in double precision.
pub fn products(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let Some(index) = list().devices.iter().position(|found| found.facts.computes(DType::F64)) else {
        println!("no OpenCL device with double precision: {:?}", list().notes);
        return Ok(());
    };
    let peer = ClBlast::open(index).map_err(|error| format!("CLBlast: {error}"))?;
    let select: Select = format!("{}:{index}", Backend::OpenCl).parse().map_err(|error: lapidary::Error| error.to_string())?;
    let machine = Machine::open(&select).map_err(|error| error.to_string())?;
    // `CLBlast` has no function that returns its version, so the report contains the path of the library instead.
    report.add_participants(machine.devices(), [("clblast", peer.path.clone())].into_iter());
    for n in settings.sizes(&[1024, 2048]) {
        let (a, b, mut ours, mut theirs) =
            (random::<f64>(n * n, 1), random::<f64>(n * n, 2), vec![f64::NAN; n * n], vec![f64::NAN; n * n]);
        let upload = |data: &[f64]| machine.upload(MatRef::col_major(data, n, n).expect("n² elements")).expect("it fits");
        let (our_a, our_b, mut our_c) = (upload(&a), upload(&b), upload(&ours));
        let mems = [peer.upload(&a), peer.upload(&b), peer.upload(&theirs)];
        let product =
            || timed(|| machine.gemm(Gemm::new(our_a.view(), our_b.view(), our_c.view_mut())).expect("the product works"));
        let times = in_turn(settings, vec![Side::new("ours", product), Side::new("clblast", || timed(|| peer.gemm(n, mems)))]);
        our_c.download(MatMut::col_major(&mut ours, n, n).expect("n² elements")).expect("the result is read");
        peer.download(mems[2], &mut theirs);
        assert_alike("dgemm", n, ROUNDING, &[ours, theirs]);
        report.add("dgemm resident", &format!("n={n}"), Unit::Gflops(flops::gemm(n, n, n)), &times);
    }
    Ok(())
}
