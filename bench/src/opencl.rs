//! Benchmark group `opencl`: times products, triangular solves and LU factorisations on an OpenCL device, with matrices in device
//! memory. cuBLAS, cuSOLVER and `CLBlast` take turns with Lapidary if their libraries are found.

use lapidary::backend::DeviceKind;
use lapidary::opencl::{Found, list};
use lapidary::{DType, Machine, Select};

use crate::cublas::Cublas;
use crate::cusolver::Cusolver;
use crate::gpu::clblast::ClBlast;
use crate::gpu::problem::{Case, factors, of_orders, products, solves, transposed, update};
use crate::gpu::{Bench, Peers};
use crate::report::Report;
use crate::settings::Settings;

/// Times the cases on the first GPU of the OpenCL devices, or on the first device if none is a GPU.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let listing = list();
    let Some((index, found)) = first_gpu(&listing.devices) else {
        println!("no OpenCL device: {:?}", listing.notes);
        return Ok(());
    };
    let machine = Machine::open(&Select::opencl(index)).map_err(|error| error.to_string())?;
    let cublas = Cublas::find(settings);
    let cusolver = Cusolver::find(settings, cublas.as_ref());
    let open = || ClBlast::open(found.handle()).inspect_err(|error| println!("no CLBlast: {error}")).ok();
    let clblast = settings.wants("clblast").then(open).flatten();
    let peers = Peers {
        cublas: cublas.as_ref().filter(|_| settings.wants("cublas")),
        cusolver: cusolver.as_ref(),
        clblast: clblast.as_ref(),
    };
    let is_gpu = found.facts.identity.kind == DeviceKind::Gpu;
    let usual = || if is_gpu { on_gpu() } else { on_processor() };
    Bench::new(settings, report, &machine, peers).run(&settings.orders().map_or_else(usual, of_orders))
}

/// The number of the first GPU, or of the first device if none is a GPU.
pub fn first_gpu(devices: &[Found]) -> Option<(usize, &Found)> {
    let is_gpu = |found: &Found| found.facts.identity.kind == DeviceKind::Gpu;
    let index = devices.iter().position(is_gpu).unwrap_or(0);
    devices.get(index).map(|found| (index, found))
}

/// The cases on a GPU. Solves with few right-hand sides come first, because a library that is slow in one case is left out of later
/// ones.
fn on_gpu() -> Vec<Case> {
    [
        products(DType::F64, &[512, 1024, 2048, 4096, 8192, 16384]),
        transposed(DType::F64, 4096),
        products(DType::F64, &[4095, 5000]),
        update(DType::F64, 8192, 128),
        products(DType::F32, &[1024, 2048, 4096, 8192, 16384]),
        solves(DType::F64, &[(4096, 128), (8192, 128), (16384, 128), (4096, 4096), (8192, 8192), (16384, 16384)]),
        solves(DType::F32, &[(8192, 8192)]),
        factors(DType::F64, &[1024, 4096, 8192, 16384]),
        factors(DType::F32, &[8192, 16384]),
    ]
    .concat()
}

/// The cases on a processor, which take seconds.
fn on_processor() -> Vec<Case> {
    [
        products(DType::F64, &[256]),
        transposed(DType::F64, 128),
        products(DType::F64, &[255]),
        update(DType::F64, 256, 32),
        products(DType::F32, &[256]),
        solves(DType::F64, &[(256, 32), (256, 256)]),
        solves(DType::F32, &[(256, 256)]),
        factors(DType::F64, &[256]),
        factors(DType::F32, &[256]),
    ]
    .concat()
}
