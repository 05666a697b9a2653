//! Benchmark group `rest`: times the first calls after a pause, with matrices in device memory, because a GPU lowers its clock
//! while it idles. cuBLAS and cuSOLVER take turns with Lapidary if their libraries are found.

use std::thread::sleep;
use std::time::Duration;

use lapidary::{DType, Gemm, Getrf, Machine, MatRef, Select};

use crate::cases::{name, random};
use crate::cublas::{Cublas, Real};
use crate::cusolver::Cusolver;
use crate::gpu::problem::Product;
use crate::measure::timed;
use crate::report::Report;
use crate::settings::Settings;

/// Duration of a pause in which no call is made.
const REST: Duration = Duration::from_secs(2);
/// Number of successive calls after each pause.
const CALLS: usize = 6;
/// Number of pauses for each library.
const RESTS: usize = 3;

/// Times products and LU factorisations on each device that has its own memory.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let text = |error: lapidary::Error| error.to_string();
    let all = Machine::open(&Select::all()).map_err(text)?;
    let peer = Cublas::find(settings);
    let solver = Cusolver::find(settings, peer.as_ref());
    let versions = [peer.as_ref().map(|peer| ("cublas", peer.version())), solver.as_ref().map(|peer| ("cusolver", peer.version()))];
    report.add_participants(all.devices(), versions.into_iter().flatten());
    for n in settings.sizes(&[4096, 8192]) {
        let of_type = |dtype| settings.dtype.is_none_or(|only| only == dtype);
        for device in all.devices().filter(|device| !device.host_memory) {
            let machine = Machine::open(&device.name.parse().map_err(text)?).map_err(text)?;
            if of_type(DType::F32) {
                ours::<f32>(&machine, &device.name, n, report).map_err(text)?;
            }
            if of_type(DType::F64) && device.computes(DType::F64) {
                ours::<f64>(&machine, &device.name, n, report).map_err(text)?;
            }
        }
        if of_type(DType::F32) {
            theirs::<f32>(peer.as_ref(), solver.as_ref(), n, report);
        }
        if of_type(DType::F64) {
            theirs::<f64>(peer.as_ref(), solver.as_ref(), n, report);
        }
    }
    Ok(())
}

fn ours<T: Real>(machine: &Machine, device: &str, n: usize, report: &mut Report) -> lapidary::Result<()> {
    let data = random::<T>(n * n, 1);
    let upload = || machine.upload(MatRef::col_major(&data, n, n)?);
    let (a, mut c, mut ipiv) = (upload()?, upload()?, vec![0; n]);
    let product = || machine.gemm(Gemm::new(a.view(), a.view(), c.view_mut())).expect("the product works");
    time::<T>("gemm", device, n, report, product);
    let factor = || {
        c.copy_from(&a).expect("the copy works");
        let _ = machine.getrf_into(Getrf::new(c.view_mut(), &mut ipiv)).expect("LU works");
    };
    time::<T>("getrf", device, n, report, factor);
    Ok(())
}

fn theirs<T: Real>(peer: Option<&Cublas>, solver: Option<&Cusolver<'_>>, n: usize, report: &mut Report) {
    let data = random::<T>(n * n, 1);
    if let Some(peer) = peer {
        let memory = [0, 1, 2].map(|_| peer.upload(&data));
        time::<T>("gemm", "cublas", n, report, || peer.gemm(Product::square(n), memory, 1).expect("the product works"));
        memory.into_iter().for_each(|memory| peer.free(memory));
    }
    if let Some(solver) = solver {
        let factors = solver.prepare(n, &data).expect("the device has memory");
        time::<T>("getrf", "cusolver", n, report, || solver.getrf(&factors, 1).expect("LU works"));
    }
}

/// Times the calls after several pauses. For each position after a pause, reports the median time over all pauses in milliseconds.
fn time<T: Real>(routine: &str, side: &str, n: usize, report: &mut Report, mut call: impl FnMut()) {
    call(); // compiles the kernels
    let mut rounds: Vec<Vec<f64>> = Vec::new();
    for _ in 0..RESTS {
        sleep(REST);
        rounds.push((0..CALLS).map(|_| timed(&mut call) * 1e3).collect());
    }
    let name = format!("{} {side}", name::<T>(routine));
    for number in 0..CALLS {
        let mut times: Vec<f64> = rounds.iter().map(|round| round[number]).collect();
        times.sort_by(f64::total_cmp);
        report.remark(&name, &format!("n={n}"), &format!("ms of call {} after a rest", number + 1), times[RESTS / 2]);
    }
}
