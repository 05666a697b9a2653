//! Benchmarks Lapidary and other libraries, which run in the same process and take turns.
//!
//! `cargo run --release -p lapidary-bench -- [GROUP...] [--peer LIST] [--n LIST] [--reps R]
//! [--before R] [--seconds S] [--dtype T] [--routine LIST] [--json FILE]`
//!
//! Groups: `gemm getrf trsm small outofcore opencl wgpu default batched rest`. If the command line names no group, the first five
//! groups run. These five groups run on the processor alone, or on those CPU devices that `LAPIDARY_DEVICE` names. Group `default`
//! times a machine with all devices, which chooses the devices of each call, and each device alone in turn. In group `default`,
//! `--dtype` selects one element type, and `--routine` selects some of `gemm trsm getrf gesv`. Group `opencl` compares Lapidary
//! with `CLBlast` (`LAPIDARY_PEER_CLBLAST`, else Debian's library). Groups `wgpu`, `batched` and `rest` compare Lapidary with
//! cuBLAS and cuSOLVER if these libraries are found (`LAPIDARY_PEER_CUBLAS`, `LAPIDARY_PEER_CUDART`, `LAPIDARY_PEER_CUSOLVER`, else
//! NVIDIA's file names).
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
mod cusolver;
mod measure;
mod opencl;
mod outofcore;
mod peer;
mod processor;
mod report;
mod rest;
mod settings;
mod wgpu;

use report::Report;
use settings::Settings;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    blas::prepare_environment();
    let settings = Settings::from_args(std::env::args().skip(1))?;
    let mut report = Report::new(settings.before);
    for group in &settings.groups {
        match group.as_str() {
            "batched" => batched::run(&settings, &mut report)?,
            "default" => choice::run(&settings, &mut report)?,
            "opencl" => opencl::products(&settings, &mut report)?,
            "wgpu" => wgpu::products(&settings, &mut report)?,
            "rest" => rest::run(&settings, &mut report)?,
            "outofcore" => outofcore::run(&settings, &mut report)?,
            group => cases::run(group, &settings, &mut report)?,
        }
    }
    settings.json.as_deref().map_or(Ok(()), |path| report.save(path))
}
