//! Benchmark group `batched`: times batches of small products and of small LU factorisations, with matrices in device memory.
//! cuBLAS takes turns with Lapidary if its library is found.

use lapidary::{Batch, BatchMut, DType, GemmBatched, GetrfBatched, Machine, MatMut, MatRef, Select};

use crate::cases::{MAGNIFIED, ROUNDING, assert_alike, name, random};
use crate::cublas::{Cublas, Real};
use crate::measure::{Side, Times, in_turn, timed};
use crate::report::{Report, Unit};
use crate::settings::Settings;

/// Number of matrices in each batch.
const COUNT: usize = 10_000;

/// Times batched products and batched LU factorisations on each device that has its own memory.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), String> {
    let text = |error: lapidary::Error| error.to_string();
    let all = Machine::open(&Select::all()).map_err(text)?;
    let peer = Cublas::find(settings);
    let peer = peer.as_ref();
    report.add_participants(all.devices(), peer.iter().map(|peer| ("cublas", peer.version())));
    for device in all.devices().filter(|device| !device.host_memory) {
        let machine = Machine::open(&device.name.parse().map_err(text)?).map_err(text)?;
        let mut bench = Bench { settings, machine: &machine, peer, report };
        for n in settings.sizes(&[8, 16, 32, 64]) {
            if device.computes(DType::F64) {
                products::<f64>(&mut bench, n).map_err(text)?;
                factors::<f64>(&mut bench, n).map_err(text)?;
            }
            products::<f32>(&mut bench, n).map_err(text)?;
            factors::<f32>(&mut bench, n).map_err(text)?;
        }
    }
    Ok(())
}

/// A device, the cuBLAS library with which it is compared, and the report that receives the figures.
struct Bench<'a> {
    settings: &'a Settings,
    machine: &'a Machine,
    peer: Option<&'a Cublas>,
    report: &'a mut Report,
}

impl Bench<'_> {
    /// Adds the times of a batched routine to the report. For each matrix, the routine takes `of_cube`·n³ floating-point
    /// operations.
    fn report<T: Real>(&mut self, routine: &str, n: usize, of_cube: f64, times: &[Times]) {
        let device = self.machine.devices().next().map_or("", |device| &device.name);
        let name = format!("{} {device}", name::<T>(routine));
        let flops = of_cube * (n as f64).powi(3) * COUNT as f64;
        self.report.add(&name, &format!("{COUNT} of n={n}"), Unit::Gflops(flops), times);
    }
}

fn products<T: Real>(bench: &mut Bench<'_>, n: usize) -> lapidary::Result<()> {
    let &mut Bench { settings, machine, peer, .. } = bench;
    let (a, b) = (random::<T>(n * n * COUNT, 1), random::<T>(n * n * COUNT, 2));
    let unwritten = vec![T::from_f64(f64::NAN); n * n * COUNT];
    let upload = |data: &[T]| machine.upload(MatRef::col_major(data, n, n * COUNT)?);
    let (left, right, mut product) = (upload(&a)?, upload(&b)?, upload(&unwritten)?);
    let theirs = peer.map(|peer| (peer, [&a, &b, &unwritten].map(|data| peer.upload(data))));
    let mut sides = vec![Side::new("ours", || {
        timed(|| {
            let (a, b) = (Batch::from_columns(left.view(), COUNT), Batch::from_columns(right.view(), COUNT));
            let c = BatchMut::from_columns(product.view_mut(), COUNT).expect("equal widths");
            machine
                .gemm_batched(GemmBatched::new(a.expect("equal widths"), b.expect("equal widths"), c))
                .expect("the products work");
        })
    })];
    sides.extend(theirs.map(|(peer, memory)| Side::new("cublas", move || timed(|| peer.gemm_batched(n, COUNT, memory)))));
    let times = in_turn(settings, sides);
    if let Some((peer, memory)) = theirs {
        let mut both = [unwritten.clone(), unwritten];
        product.download(MatMut::col_major(&mut both[0], n, n * COUNT)?)?;
        peer.download(memory[2], &mut both[1]).expect("the copy works");
        memory.into_iter().for_each(|memory| peer.free(memory));
        assert_alike("gemm_batched", n, ROUNDING, &both);
    }
    bench.report::<T>("gemm_batched", n, 2.0, &times);
    Ok(())
}

/// Times batched LU factorisations. Each timed call first copies the matrices within device memory. A timed call of Lapidary also
/// copies its pivots to host memory. cuBLAS is timed in two ways: without this copy of the pivots, and with it.
fn factors<T: Real>(bench: &mut Bench<'_>, n: usize) -> lapidary::Result<()> {
    let &mut Bench { settings, machine, peer, .. } = bench;
    let a = random::<T>(n * n * COUNT, 3);
    let upload = || machine.upload(MatRef::col_major(&a, n, n * COUNT)?);
    let (original, mut lu) = (upload()?, upload()?);
    let [(mut ipiv, mut info), (mut their_ipiv, mut their_info)] = [0; 2].map(|zero| (vec![zero; n * COUNT], vec![zero; COUNT]));
    let theirs = peer.map(|peer| (peer, peer.prepare_lu(n, COUNT, &a)));
    let mut sides = vec![Side::new("ours", || {
        timed(|| {
            lu.copy_from(&original).expect("the copy works");
            let a = BatchMut::from_columns(lu.view_mut(), COUNT).expect("equal widths");
            machine.getrf_batched(GetrfBatched::new(a, &mut ipiv, &mut info)).expect("the factorisations work");
        })
    })];
    let theirs = theirs.as_ref();
    if let Some((peer, work)) = theirs {
        sides.push(Side::new("cublas", || timed(|| peer.getrf_batched(n, COUNT, work))));
        sides.push(Side::new("cublas+ipiv", || {
            timed(|| {
                peer.getrf_batched(n, COUNT, work);
                peer.pivots(work, &mut their_ipiv, &mut their_info);
            })
        }));
    }
    let times = in_turn(settings, sides);
    if let Some((peer, work)) = theirs {
        let mut both = [a.clone(), a];
        lu.download(MatMut::col_major(&mut both[0], n, n * COUNT)?)?;
        peer.download(work.lu, &mut both[1]).expect("the copy works");
        assert_alike("getrf_batched", n, MAGNIFIED, &both);
    }
    bench.report::<T>("getrf_batched", n, 2.0 / 3.0, &times);
    Ok(())
}
