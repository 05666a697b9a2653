//! Benchmark group `streams`: times calls in a stream on each device that has its own memory, against calls of `Machine`, each of which
//! waits, and against cuBLAS if its library is found. A series of calls is waited for once, except the calls of `Machine`.

use lapidary::{DType, DeviceMatrix, Gemm, Getrf, Getrs, HostVec, Machine, MatMut, MatRef, Op, Reading, Result, Select, Stream};

use crate::cases::{name, random};
use crate::cublas::{Cublas, Real};
use crate::gpu::problem::Product;
use crate::measure::{Side, in_turn, timed};
use crate::report::{Report, Unit};
use crate::settings::Settings;

/// Number of products in a series.
const CALLS: usize = 2000;

/// Times series of products and copies of matrices of the orders `--n` (default 64), and the chain of a product, a factorisation and a solve of order 512.
pub fn run(settings: &Settings, report: &mut Report) -> std::result::Result<(), String> {
    let text = |error: lapidary::Error| error.to_string();
    let all = Machine::open(&Select::all()).map_err(text)?;
    let peer = Cublas::find(settings);
    report.add_participants(all.devices(), peer.iter().map(|peer| ("cublas", peer.version())));
    for device in all.devices().filter(|device| !device.host_memory) {
        let machine = Machine::open(&device.name.parse().map_err(text)?).map_err(text)?;
        let bench = Bench { settings, machine: &machine, device: &device.name, peer: peer.as_ref() };
        let of_type = |dtype| settings.dtype.is_none_or(|only| only == dtype) && device.computes(dtype);
        if of_type(DType::F64) {
            bench.run::<f64>(report).map_err(text)?;
        }
        if of_type(DType::F32) {
            bench.run::<f32>(report).map_err(text)?;
        }
    }
    Ok(())
}

struct Bench<'a> {
    settings: &'a Settings,
    machine: &'a Machine,
    device: &'a str,
    peer: Option<&'a Cublas>,
}

impl Bench<'_> {
    fn run<T: Real>(&self, report: &mut Report) -> Result<()> {
        for n in self.settings.sizes(&[64]) {
            self.products::<T>(n, report)?;
            self.reads::<T>(n, report)?;
        }
        self.chain::<T>(512, report)
    }

    fn upload<T: Real>(&self, n: usize, seed: u64) -> Result<DeviceMatrix<T>> {
        self.machine.upload(MatRef::col_major(&random::<T>(n * n, seed), n, n)?)
    }

    /// Times of one call in series of products.
    fn products<T: Real>(&self, n: usize, report: &mut Report) -> Result<()> {
        let (a, mut c, mut d) = (self.upload::<T>(n, 1)?, self.upload(n, 2)?, self.upload(n, 3)?);
        let stream = self.machine.stream(a.device())?;
        let per_call = |seconds: f64| seconds / CALLS as f64;
        let in_stream = || {
            per_call(timed(|| {
                for _ in 0..CALLS {
                    stream.gemm(Gemm::new(a.view(), a.view(), c.view_mut())).expect("the product works");
                }
                stream.wait().expect("the products work");
            }))
        };
        let each_waits = || {
            per_call(timed(|| {
                for _ in 0..CALLS {
                    self.machine.gemm(Gemm::new(a.view(), a.view(), d.view_mut())).expect("the product works");
                }
            }))
        };
        let mut sides = vec![Side::new("stream", in_stream), Side::new("each waits", each_waits)];
        let memory = self.peer.map(|peer| [0, 1, 2].map(|_| peer.upload(&random::<T>(n * n, 1))));
        if let (Some(peer), Some(memory)) = (self.peer, memory) {
            let series = move || per_call(timed(|| peer.gemm(Product::square(n), memory, CALLS).expect("the products work")));
            sides.push(Side::new("cublas", series));
        }
        let times = in_turn(self.settings, sides);
        report.add(&format!("{} in series, {}", name::<T>("gemm"), self.device), &format!("n={n}"), Unit::Nanoseconds, &times);
        if let (Some(peer), Some(memory)) = (self.peer, memory) {
            memory.into_iter().for_each(|memory| peer.free(memory));
        }
        Ok(())
    }

    /// Times of the copy of a matrix to the host: by a stream into memory that the stream allocates, into ordinary memory and into pinned
    /// memory, and by `DeviceMatrix::download`.
    fn reads<T: Real>(&self, n: usize, report: &mut Report) -> Result<()> {
        let a = self.upload::<T>(n, 1)?;
        let stream = self.machine.stream(a.device())?;
        let mut pinned = Some(self.machine.alloc_host::<T>(n * n)?);
        let (mut plain, mut host) = (Some(vec![T::ZERO; n * n].into()), vec![T::ZERO; n * n]);
        let into = |memory: &mut Option<HostVec<T>>| {
            let to = memory.take().expect("the memory is back");
            *memory = Some(stream.read_into(&a, to).and_then(Reading::wait).expect("the copy works"));
        };
        let sides = vec![
            Side::new("read", || timed(|| drop(stream.read(&a).and_then(Reading::wait).expect("the copy works")))),
            Side::new("into ordinary", || timed(|| into(&mut plain))),
            Side::new("into pinned", || timed(|| into(&mut pinned))),
            Side::new("download", || {
                timed(|| a.download(MatMut::col_major(&mut host, n, n).expect("a view")).expect("the copy works"))
            }),
        ];
        let routine = format!("{} read, {}", T::DTYPE, self.device);
        report.add(&routine, &format!("n={n}"), Unit::Nanoseconds, &in_turn(self.settings, sides));
        Ok(())
    }

    /// Times of a product, the factorisation of the result, and a solve with the factors.
    fn chain<T: Real>(&self, n: usize, report: &mut Report) -> Result<()> {
        let (a, b) = (self.upload::<T>(n, 1)?, self.upload::<T>(n, 2)?);
        let (mut c, mut x) = (self.upload::<T>(n, 3)?, self.upload::<T>(n, 4)?);
        let (mut d, mut y) = (self.upload::<T>(n, 3)?, self.upload::<T>(n, 4)?);
        let stream = self.machine.stream(a.device())?;
        let mut pivots = self.machine.pivots_on(a.device(), n)?;
        let mut ipiv = vec![0; n];
        let in_stream = || {
            timed(|| {
                let mut enqueue = |stream: &Stream| -> Result<()> {
                    stream.gemm(Gemm::new(a.view(), b.view(), c.view_mut()))?;
                    stream.getrf_into(c.view_mut(), &mut pivots)?;
                    stream.getrs(Op::NoTrans, c.view(), &pivots, x.view_mut())?;
                    stream.wait()
                };
                enqueue(&stream).expect("the chain works");
            })
        };
        let each_waits = || {
            timed(|| {
                let mut call = || -> Result<()> {
                    self.machine.gemm(Gemm::new(a.view(), b.view(), d.view_mut()))?;
                    let _ = self.machine.getrf_into(Getrf::new(d.view_mut(), &mut ipiv))?;
                    self.machine.getrs(Getrs::new(d.view(), &ipiv, y.view_mut()))
                };
                call().expect("the chain works");
            })
        };
        let times = in_turn(self.settings, vec![Side::new("stream", in_stream), Side::new("each waits", each_waits)]);
        let routine = format!("{} getrf getrs, {}", name::<T>("gemm"), self.device);
        report.add(&routine, &format!("n={n}"), Unit::Nanoseconds, &times);
        Ok(())
    }
}
