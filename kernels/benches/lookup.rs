//! This benchmark measures how long the database of kernels takes: to read all entries and look up those of a device, as when a
//! device is opened (at most 1 ms), and to find the kernel for a product, as in each call (at most 1 µs). The figures are in
//! `bench/results/2026-11-26-kernel-lookup.txt`.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use lapidary_core::{DType, DeviceFacts, DeviceKind};
use lapidary_kernels::{Database, Dialect, Tuning};

/// A GPU with the limits of many desktop devices.
fn gpu() -> DeviceFacts {
    let mut facts = DeviceFacts::new("gpu:0");
    facts.identity.kind = DeviceKind::Gpu;
    facts.limits.work_group = 1024;
    facts.limits.local_memory = 48 << 10;
    facts.compute_units = Some(132);
    facts
}

/// The text of a user who has tuned a thousand products, each for a device of its own.
fn tuned() -> String {
    let entry = |device: usize| {
        format!("[device number {device}]\ngemm_tile f64 opencl mwg=32 nwg=32 kwg=16 mr=4 nr=4 vwm=1 stages=2  # gflops=1000\n")
    };
    (0..1000).map(entry).collect()
}

fn opening(c: &mut Criterion) {
    let facts = gpu();
    c.bench_function("lookup of a device", |b| {
        b.iter(|| Tuning::lookup(Database::shipped(), black_box(&facts), Dialect::OpenClC));
    });
    let text = tuned();
    c.bench_function("reading 1000 tuned entries", |b| {
        b.iter(|| {
            let mut database = Database::default();
            assert!(database.add("tuned", black_box(&text)).is_empty());
            Tuning::lookup(&database.then(Database::shipped()), &facts, Dialect::OpenClC)
        });
    });
}

fn calls(c: &mut Criterion) {
    let tuning = Tuning::lookup(Database::shipped(), &gpu(), Dialect::OpenClC);
    for n in [64, 512, 4096] {
        c.bench_function(&format!("kernel of a product of order {n}"), |b| {
            b.iter(|| tuning.products(black_box(DType::F64), black_box([n; 3])).next());
        });
    }
}

criterion_group!(benches, opening, calls);
criterion_main!(benches);
