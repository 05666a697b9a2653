//! Benchmark group `wgpu`: times products, triangular solves and LU factorisations on a wgpu device, with matrices in device memory.
//! cuBLAS and cuSOLVER take turns with Lapidary if their libraries are found.

use lapidary::wgpu::list;
use lapidary::{DType, Machine, Select};

use crate::cublas::Cublas;
use crate::cusolver::Cusolver;
use crate::gpu::problem::{Case, factors, of_orders, products, solves, transposed};
use crate::gpu::{Bench, Peers};
use crate::report::Report;
use crate::settings::Settings;

/// Times the cases on the first wgpu adapter that is not a processor. If all adapters are processors, the first adapter is used.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let listing = list();
    let index = listing.devices.iter().position(|found| !found.is_cpu).unwrap_or(0);
    let Some(found) = listing.devices.get(index) else {
        println!("no adapter: {:?}", listing.notes);
        return Ok(());
    };
    println!("wgpu:{index}: {} ({} {})", found.info.name, found.info.driver, found.info.driver_info);
    let select: Select = format!("wgpu:{index}").parse().map_err(|error: lapidary::Error| error.to_string())?;
    let machine = Machine::open(&select).map_err(|error| error.to_string())?;
    let cublas = Cublas::find(settings);
    let cusolver = Cusolver::find(settings, cublas.as_ref());
    let peers = Peers { cublas: cublas.as_ref().filter(|_| settings.wants("cublas")), cusolver: cusolver.as_ref(), clblast: None };
    let usual = || if found.is_cpu { on_processor() } else { on_gpu() };
    Bench::new(settings, report, &machine, peers).run(&settings.orders().map_or_else(usual, of_orders))
}

fn on_gpu() -> Vec<Case> {
    let both = |make: &dyn Fn(DType) -> Vec<Case>| [make(DType::F32), make(DType::F64)].concat();
    [
        products(DType::F32, &[1024, 2048, 4096, 8192, 1023, 4095]),
        transposed(DType::F32, 4096),
        products(DType::F64, &[1024, 4096, 8192]),
        both(&|dtype| solves(dtype, &[(8192, 8192)])),
        both(&|dtype| factors(dtype, &[1024, 2048, 4096, 8192])),
    ]
    .concat()
}

fn on_processor() -> Vec<Case> {
    let of_type = |dtype| [products(dtype, &[512]), solves(dtype, &[(512, 512)]), factors(dtype, &[512])].concat();
    [DType::F32, DType::F64].map(of_type).concat()
}
