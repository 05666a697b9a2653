//! Benchmarks Lapidary and other libraries, which run in the same process and take turns.
//!
//! `cargo run --release -p lapidary-bench -- [GROUP...] [--peer LIST] [--n LIST] [--reps R]
//! [--before R] [--seconds S] [--dtype T] [--routine LIST] [--mode M] [--peak TF] [--json FILE] [--svg FILE]`
//!
//! Groups: `gemm getrf trsm small outofcore opencl wgpu default batched rest streams host`. If the command line names no group, the first five
//! groups run. These five groups run on the processor alone, or on those CPU devices that `LAPIDARY_DEVICE` names. Group `default`
//! times a machine with all devices, which chooses the devices of each call, and each device alone in turn. In groups `default` and
//! `host`, `--dtype` selects one element type, and `--routine` selects some of `gemm trsm getrf gesv`. Groups `batched`, `rest` and `streams`
//! compare Lapidary with cuBLAS and cuSOLVER if these libraries are found.
//!
//! **Groups `opencl` and `wgpu`** compare Lapidary on one GPU with cuBLAS and cuSOLVER. Group `opencl` also compares
//! Lapidary with `CLBlast`. The matrices lie in device memory. Group `opencl` uses the first GPU of the OpenCL devices, or the first device if none is a GPU. cuBLAS and
//! cuSOLVER use the first CUDA device. A library that is not found is named in one line and left out
//! (`LAPIDARY_PEER_CUBLAS`, `LAPIDARY_PEER_CUDART`, `LAPIDARY_PEER_CUSOLVER`, `LAPIDARY_PEER_CLBLAST`, else the usual file names).
//!
//! - `--n LIST` replaces the usual cases by a product, solves (n and 128 right-hand sides) and an LU factorisation of each order, in
//!   both element types. `--dtype` and `--routine` select among the cases, and `--peer` among the libraries
//!   (`cublas,cusolver,clblast`).
//! - Each case is timed in two modes. In mode `burst`, the device idles for 100 ms before each series of calls of at least 30 ms. In
//!   mode `sustained`, each series takes at least 1 s (0.1 s on a processor). Half as many untimed calls directly before each series
//!   raise the clock. The program times 7 series in mode `burst` and 3 in mode `sustained` (`--reps R` in both). `--mode M` selects
//!   one mode.
//! - Products of a series are waited for once. Lapidary's solves and factorisations are single calls, each of which is waited for,
//!   while those of the peers are waited for once. Each solve or factorisation first copies its matrix within device memory.
//! - The program checks the result of each library against the equation that the routine solves, and products and solves of the
//!   libraries against each other. A case in which Lapidary is wrong or fails has no figures, and the program ends with an error
//!   after the other cases. A library that is wrong, that fails, or whose call takes more than 2 s and more than four times as long
//!   as ours is named and left out.
//! - At the end, a table shows the median speeds and their ratio. `--peak TF` adds the share of a peak in TFLOP/s to products in
//!   `f64`. `--json FILE` is written after each case. `--svg FILE` draws the ratios.
//!
//! **Group `host`** times products, triangular solves, LU factorisations and systems with one right-hand side. The matrices lie in host
//! memory. The devices are those that `LAPIDARY_DEVICE` names, else the device of group `opencl`. The type is `f64` unless `--dtype`
//! names another one.
//!
//! - If there are several devices, the side `first device` is Lapidary on the first of them alone, and the side `resident` is left out.
//! - Lapidary and a peer take turns, each with matrices in memory that its own driver has pinned and in pageable memory. The side
//!   `resident` is Lapidary with the matrices in device memory. The operands that a call overwrites are restored before each call, and
//!   this copy is not timed.
//! - The peer of products is cuBLASXt (option `--peer cublas`) with the fastest of the blocks 2048, 4096 and 8192, and with the faster of
//!   its pinning modes if the memory is pageable. The largest order is also timed with β = 1, from pinned memory.
//! - The peer of systems is cuSOLVER (`--peer cusolver`). A and b are copied to the device, A is factored, the system is solved, and the
//!   factors, the pivots and x are copied back. All these steps are timed. The device memory is allocated before.
//! - The peer of factorisations, `cusolver resident`, is cuSOLVER with the matrix in device memory, without transfers. Triangular solves
//!   have no peer.
//! - The program checks the result of the last timed call of each side. A case for which the host has too little memory is named and left
//!   out, and so is a peer that fails or that is wrong.
//!
//! The first four groups compare Lapidary with these peers: `openblas` (`LAPIDARY_PEER_OPENBLAS`, else Debian's library), `mkl`
//! (`LAPIDARY_PEER_MKL`, the path of `libmkl_rt.so.2`), `faer`, and for small products `tile`, the CPU kernel without a machine
//! around it. A peer library that is not found is left out, unless `--peer` names it.
//!
//! **Threads that spin.** The worker threads of a BLAS spin for a while after each call and so would take processor time from the
//! library that is timed next. Before each timed call the benchmark therefore waits until the process's threads use no processor
//! time ([`rest`](lapidary_host::rest())). The libraries take turns, and every second round runs in reverse order.
//!
//! **Environment.** [`blas::prepare_environment`] sets three variables that the peer libraries read, unless the user has set
//! them. The printed versions name the kernels that OpenBLAS uses.

mod batched;
mod blas;
mod cases;
mod choice;
mod cublas;
mod cublasxt;
mod cusolver;
mod gpu;
mod host;
mod measure;
mod opencl;
mod outofcore;
mod peer;
mod processor;
mod report;
mod rest;
mod settings;
mod streams;
mod wgpu;

use std::process::ExitCode;

use report::Report;
use settings::Settings;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Box<dyn std::error::Error>> {
    blas::prepare_environment();
    let settings = Settings::from_args(std::env::args().skip(1))?;
    let mut report = Report::new(settings.before);
    let outcome = settings.groups.iter().try_for_each(|group| run(group, &settings, &mut report));
    // The figures of the cases before a failure are worth keeping.
    report.save(&settings)?;
    outcome
}

fn run(group: &str, settings: &Settings, report: &mut Report) -> Result<(), Box<dyn std::error::Error>> {
    match group {
        "batched" => Ok(batched::run(settings, report)?),
        "default" => choice::run(settings, report),
        "opencl" => Ok(opencl::run(settings, report)?),
        "host" => Ok(host::run(settings, report)?),
        "wgpu" => Ok(wgpu::run(settings, report)?),
        "rest" => Ok(rest::run(settings, report)?),
        "streams" => Ok(streams::run(settings, report)?),
        "outofcore" => outofcore::run(settings, report),
        group => cases::run(group, settings, report),
    }
}
