//! Ours against other libraries, in one process and in turn.
//!
//! `cargo run --release -p lapidary-bench -- [GROUP...] [--peer LIST] [--n LIST] [--reps R]
//! [--seconds S] [--dtype T] [--routine LIST] [--json FILE]`
//!
//! Groups: `gemm getrf trsm small outofcore opencl wgpu default batched rest`, all but the last five unless named;
//! `default` times the machine that chooses the devices of each call beside each of its devices alone, for one element type or
//! some of `gemm trsm getrf gesv` where `--dtype` and `--routine` say so;
//! `opencl` runs against `CLBlast` (`LAPIDARY_PEER_CLBLAST`, else Debian's), `wgpu`, `batched` and `rest` against
//! cuBLAS and cuSOLVER where they are (`LAPIDARY_PEER_CUBLAS`, `LAPIDARY_PEER_CUDART`,
//! `LAPIDARY_PEER_CUSOLVER`, else by their own names). Peers:
//! `openblas` (`LAPIDARY_PEER_OPENBLAS`, else Debian's), `mkl`
//! (`LAPIDARY_PEER_MKL`, the path of `libmkl_rt.so.2`), `faer`, and for small
//! products `tile`, the kernel itself without a machine around it. A library
//! that is not there is left out, unless `--peer` names it. All groups but the last five run
//! on the processor alone, or on those of its devices that `LAPIDARY_DEVICE` names.
//!
//! **Threads that spin.** The workers of a BLAS go on looking for work after a
//! call and would take the cores from whoever is timed next. So before each
//! timed call we wait until the process's threads use no processor time
//! ([`rest`](lapidary_host::rest())). Sides take turns, and every other round in reverse order.
//!
//! **Environment.** [`blas::prepare_environment`] sets three variables that the
//! libraries read, unless they are set; the printed versions name the kernels.

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
