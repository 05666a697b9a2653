//! Products and LU on a wgpu device, with matrices on the device, against cuBLAS and
//! cuSOLVER where they are. Both sides run batches of at least [`BATCH`], so that the clock
//! stays up and no submission of a product counts.

use std::sync::Arc;

use lapidary::core::{Getrf, Op};
use lapidary::wgpu::{Batch, WgpuDevice, list};
use lapidary::{DType, Machine, MatRef, ProgramCache, Select};

use crate::cases::random;
use crate::cublas::{Cublas, Real};
use crate::cusolver::Cusolver;
use crate::measure::{Side, in_turn, largest, timed};
use crate::report::{Report, Unit};
use crate::settings::Settings;

/// Seconds of a batch.
const BATCH: f64 = 0.1;

/// Square products on the first adapter, a processor only if there is no other.
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
    let select: Select = format!("wgpu:{index}").parse().map_err(|error: lapidary::Error| error.to_string())?;
    let machine = Machine::open(&select).map_err(|error| error.to_string())?;
    let solver = peer.as_ref().and_then(|peer| Cusolver::open(peer).inspect_err(|error| println!("no cuSOLVER: {error}")).ok());
    for n in settings.sizes(if found.is_cpu { &[512] } else { &[1024, 2048, 4096, 8192] }) {
        factors::<f32>(settings, report, &machine, solver.as_ref(), n)?;
        if found.f64 {
            factors::<f64>(settings, report, &machine, solver.as_ref(), n)?;
        }
    }
    Ok(())
}

/// LU of a copy of a matrix; both sides make the copy on the device.
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
    let mut ours = |times| {
        timed(|| {
            for _ in 0..times {
                lu.copy_from(&original).expect("the copy works");
                machine.getrf_into(Getrf::new(lu.view_mut(), &mut ipiv)).expect("LU works");
            }
        }) / times as f64
    };
    // the first one waits for its kernels to be compiled
    ours(1);
    let times = (BATCH / ours(2)).ceil().max(1.0) as usize;
    let warm = times / 2 + 1;
    let mut sides = vec![Side::new("ours", || {
        ours(warm);
        ours(times)
    })];
    let mut theirs = peer.map(|peer| peer.prepare(n, &a));
    if let (Some(peer), Some(theirs)) = (peer, &mut theirs) {
        sides.push(Side::new("cusolver", move || {
            peer.getrf(theirs, warm);
            timed(|| peer.getrf(theirs, times)) / times as f64
        }));
    }
    let measured = in_turn(settings, sides);
    if let (Some(peer), Some(theirs)) = (peer, theirs) {
        let pivots = peer.finish(&theirs);
        // where two magnitudes are all but equal rounding decides, and from there on all differ
        let same = ipiv.iter().zip(&pivots).take_while(|&(&ours, &theirs)| ours + 1 == theirs).count();
        println!("{same} of {n} pivots are the same before one differs");
        assert!(same > 0, "n={n}: not even the first pivot is the same");
    }
    let name = if T::DTYPE == DType::F64 { "dgetrf" } else { "sgetrf" };
    report.add(name, &format!("n={n} resident"), Unit::Gflops(2.0 / 3.0 * (n as f64).powi(3)), &measured);
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
    let run = |times| ours.seconds(times).expect("the product works");
    // the first product waits for its kernels to be compiled
    run(1);
    let times = (BATCH / (run(8) / 8.0)).ceil().max(1.0) as usize;
    // a side that was at rest has let the clock fall: half a batch brings it up again
    let warm = times / 2 + 1;
    let mut sides = vec![Side::new("ours", || {
        run(warm);
        run(times) / times as f64
    })];
    let theirs = peer.map(|peer| (peer, [peer.upload(&a), peer.upload(&b), peer.upload(&a)]));
    if let Some((peer, memory)) = &theirs {
        sides.push(Side::new("cublas", || {
            peer.gemm(n, trans, *memory, warm);
            timed(|| peer.gemm(n, trans, *memory, times)) / times as f64
        }));
    }
    let measured = in_turn(settings, sides);
    if let Some((peer, memory)) = theirs {
        let mut expected = vec![T::ZERO; n * n];
        peer.download(memory[2], &mut expected);
        let result = ours.result().map_err(|error| error.to_string())?;
        let apart = largest(result.iter().zip(&expected).map(|(x, y)| x.to_f64() - y.to_f64()));
        memory.into_iter().for_each(|memory| peer.free(memory));
        // both sum n products of factors below one
        assert!(apart <= 4.0 * n as f64 * T::UNIT_ROUNDOFF * (n as f64).sqrt(), "n={n}: {apart:e} apart");
    }
    let name = if T::DTYPE == DType::F64 { "dgemm" } else { "sgemm" };
    let letters = trans.map(|trans| if trans { 'T' } else { 'N' });
    report.add(name, &format!("n={n} {}{} resident", letters[0], letters[1]), Unit::Gflops(2.0 * (n as f64).powi(3)), &measured);
    Ok(())
}
