//! Benchmark group `wgpu`: times products, triangular solves and LU factorisations on a wgpu device, with matrices in device
//! memory. cuBLAS and cuSOLVER take turns with Lapidary if their libraries are found. Each measurement repeats a call for at least
//! [`BATCH`] seconds, so that the clock of the GPU stays high and the time for the submission of a call is negligible.

use std::sync::Arc;

use lapidary::core::{Getrf, Op, Trsm, flops};
use lapidary::wgpu::{Batch, WgpuDevice, list};
use lapidary::{Machine, MatMut, MatRef, ProgramCache, Select};

use crate::cases::{assert_alike, name, random, triangle};
use crate::cublas::{Cublas, Real};
use crate::cusolver::Cusolver;
use crate::measure::{Side, Times, in_turn, timed};
use crate::report::{Report, Unit};
use crate::settings::Settings;

/// Largest difference between the results of Lapidary and cuBLAS that rounding errors explain, in units of `n·u` and of the largest
/// element. The two libraries sum in a similar order, so that their results are close.
const ROUNDING: f64 = 4.0;

/// Shortest duration of a measurement with repeated calls, in seconds.
const BATCH: f64 = 0.1;

/// Times products, solves and factorisations on the first wgpu adapter that is not a processor. If all adapters are processors, the
/// first adapter is used.
pub fn products(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let listing = list();
    let index = listing.devices.iter().position(|found| !found.is_cpu).unwrap_or(0);
    let Some(found) = listing.devices.get(index) else {
        println!("no adapter: {:?}", listing.notes);
        return Ok(());
    };
    println!("wgpu:{index}: {} ({} {})", found.info.name, found.info.driver, found.info.driver_info);
    let device = WgpuDevice::open(index, None, Arc::new(ProgramCache::new(None))).map_err(|error| error.to_string())?;
    let peer = Cublas::open().inspect_err(|error| println!("no cuBLAS: {error}")).ok();
    let select: Select = format!("wgpu:{index}").parse().map_err(|error: lapidary::Error| error.to_string())?;
    let machine = Machine::open(&select).map_err(|error| error.to_string())?;
    let solver = peer.as_ref().and_then(|peer| Cusolver::open(peer).inspect_err(|error| println!("no cuSOLVER: {error}")).ok());
    let versions = [peer.as_ref().map(|peer| ("cublas", peer.version())), solver.as_ref().map(|peer| ("cusolver", peer.version()))];
    report.add_participants(machine.devices(), versions.into_iter().flatten());
    let sizes: &[usize] = if found.is_cpu { &[512] } else { &[1024, 2048, 4096, 8192, 1023, 4095] };
    for n in settings.sizes(sizes) {
        product::<f32>(settings, report, &device, peer.as_ref(), n, [false, false])?;
    }
    if !found.is_cpu {
        for trans in [[true, false], [false, true], [true, true]] {
            product::<f32>(settings, report, &device, peer.as_ref(), 4096, trans)?;
        }
    }
    if found.f64 {
        for n in settings.sizes(if found.is_cpu { &[512] } else { &[1024, 4096, 8192] }) {
            product::<f64>(settings, report, &device, peer.as_ref(), n, [false, false])?;
        }
    }
    for n in settings.sizes(if found.is_cpu { &[512] } else { &[8192] }) {
        solution::<f32>(settings, report, &machine, peer.as_ref(), n)?;
        if found.f64 {
            solution::<f64>(settings, report, &machine, peer.as_ref(), n)?;
        }
    }
    for n in settings.sizes(if found.is_cpu { &[512] } else { &[1024, 2048, 4096, 8192] }) {
        factors::<f32>(settings, report, &machine, solver.as_ref(), n)?;
        if found.f64 {
            factors::<f64>(settings, report, &machine, solver.as_ref(), n)?;
        }
    }
    Ok(())
}

/// Times Lapidary and its peer library in turn. Each closure makes as many calls as its argument states, and waits until the last
/// call has ended.
fn batches(settings: &Settings, mut ours: impl FnMut(usize), theirs: Option<(&str, impl FnMut(usize))>) -> Vec<Times> {
    // The first call compiles its kernels, so the program does not time this call.
    ours(1);
    let times = (BATCH / (timed(|| ours(4)) / 4.0)).ceil().max(1.0) as usize;
    // A GPU lowers its clock while it idles. Half as many untimed calls as timed calls raise the clock again.
    let batch = |call: &mut dyn FnMut(usize)| {
        call(times / 2 + 1);
        timed(|| call(times)) / times as f64
    };
    let mut sides = vec![Side::new("ours", move || batch(&mut ours))];
    if let Some((name, mut theirs)) = theirs {
        sides.push(Side::new(name, move || batch(&mut theirs)));
    }
    in_turn(settings, sides)
}

/// Times X ← L⁻¹·B. Before each solve, both libraries copy B to X within device memory.
fn solution<T: Real>(
    settings: &Settings,
    report: &mut Report,
    machine: &Machine,
    peer: Option<&Cublas>,
    n: usize,
) -> Result<(), String> {
    let text = |error: lapidary::Error| error.to_string();
    let (a, b) = (triangle::<T>(n), random::<T>(n * n, 5));
    let upload = |data: &[T]| machine.upload(MatRef::col_major(data, n, n).map_err(text)?).map_err(text);
    let (left, right, mut x) = (upload(&a)?, upload(&b)?, upload(&b)?);
    let ours = |times| {
        for _ in 0..times {
            x.copy_from(&right).expect("the copy works");
            machine.trsm(Trsm::new(left.view(), x.view_mut())).expect("the solve works");
        }
    };
    let theirs = peer.map(|peer| (peer, [&a, &b, &b].map(|data| peer.upload(data))));
    let measured =
        batches(settings, ours, theirs.as_ref().map(|&(peer, memory)| ("cublas", move |times| peer.trsm(n, memory, times))));
    if let Some((peer, memory)) = theirs {
        let mut both = vec![vec![T::ZERO; n * n]; 2];
        x.download(MatMut::col_major(&mut both[0], n, n).map_err(text)?).map_err(text)?;
        peer.download(memory[2], &mut both[1]);
        memory.into_iter().for_each(|memory| peer.free(memory));
        assert_alike("trsm", n, ROUNDING, &both);
    }
    let name = name::<T>("trsm");
    report.add(&name, &format!("n={n} resident"), Unit::Gflops(flops::trsm(n, n)), &measured);
    Ok(())
}

/// Times LU factorisations. Before each factorisation, both libraries copy the matrix within device memory.
fn factors<T: Real>(
    settings: &Settings,
    report: &mut Report,
    machine: &Machine,
    peer: Option<&Cusolver<'_>>,
    n: usize,
) -> Result<(), String> {
    let text = |error: lapidary::Error| error.to_string();
    let a = random::<T>(n * n, 3);
    let host = MatRef::col_major(&a, n, n).map_err(text)?;
    let (original, mut lu) = (machine.upload(host).map_err(text)?, machine.upload(host).map_err(text)?);
    let mut ipiv = vec![0; n];
    let ours = |times| {
        for _ in 0..times {
            lu.copy_from(&original).expect("the copy works");
            let _ = machine.getrf_into(Getrf::new(lu.view_mut(), &mut ipiv)).expect("LU works");
        }
    };
    let theirs = peer.map(|peer| (peer, peer.prepare(n, &a)));
    let measured = batches(settings, ours, theirs.as_ref().map(|(peer, memory)| ("cusolver", |times| peer.getrf(memory, times))));
    if let Some((peer, theirs)) = theirs {
        let pivots = peer.finish(&theirs);
        // If two candidates for a pivot have nearly equal magnitudes, rounding errors decide between them, and all later pivots may
        // differ too.
        let same = ipiv.iter().zip(&pivots).take_while(|&(&ours, &theirs)| ours + 1 == theirs).count();
        println!("{same} of {n} pivots are the same before one differs");
        assert!(same > 0, "n={n}: not even the first pivot is the same");
    }
    let name = name::<T>("getrf");
    report.add(&name, &format!("n={n} resident"), Unit::Gflops(flops::getrf(n, n)), &measured);
    Ok(())
}

fn product<T: Real>(
    settings: &Settings,
    report: &mut Report,
    device: &WgpuDevice,
    peer: Option<&Cublas>,
    n: usize,
    trans: [bool; 2],
) -> Result<(), String> {
    let (a, b) = (random::<T>(n * n, 1), random::<T>(n * n, 2));
    let ops = trans.map(|trans| if trans { Op::Trans } else { Op::NoTrans });
    let ours = Batch::new(device, n, ops, [&a, &b]).map_err(|error| error.to_string())?;
    let unwritten = vec![T::from_f64(f64::NAN); n * n];
    let theirs = peer.map(|peer| (peer, [&a, &b, &unwritten].map(|data| peer.upload(data))));
    let run = |times| {
        ours.seconds(times).expect("the product works");
    };
    let measured =
        batches(settings, run, theirs.as_ref().map(|&(peer, memory)| ("cublas", move |times| peer.gemm(n, trans, memory, times))));
    if let Some((peer, memory)) = theirs {
        let mut both = vec![ours.result().map_err(|error| error.to_string())?, vec![T::ZERO; n * n]];
        peer.download(memory[2], &mut both[1]);
        memory.into_iter().for_each(|memory| peer.free(memory));
        assert_alike("gemm", n, ROUNDING, &both);
    }
    let name = name::<T>("gemm");
    let letters = trans.map(|trans| if trans { 'T' } else { 'N' });
    report.add(&name, &format!("n={n} {}{} resident", letters[0], letters[1]), Unit::Gflops(flops::gemm(n, n, n)), &measured);
    Ok(())
}
