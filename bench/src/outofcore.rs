//! Benchmark group `outofcore`: times the solution of a system that is larger than the memory limit of the devices.

use std::error::Error;

use lapidary::{Machine, MatMut, Settings as Limits, flops};

use crate::cases::{copy, random};
use crate::gpu::check::{HPL_THRESHOLD, hpl};
use crate::measure::{Side, in_turn, timed};
use crate::processor;
use crate::report::{Report, Unit};
use crate::settings::Settings;

/// Memory limit of each device in bytes.
const LIMIT: usize = 256 << 20;

/// Accuracy and memory use of one solution.
#[derive(Clone, Copy, Default)]
struct Figures {
    residual: f64,
    /// Peak memory of the first solution, in bytes. Later solutions reuse memory that the allocator has kept, so that their peaks
    /// would be too low.
    peak_bytes: Option<u64>,
}

/// Times the solution of `A·x = b`, once in place and once on devices that keep copies within [`LIMIT`]. The solution in place runs
/// first, because it leaves no freed memory that the solution within [`LIMIT`] could reuse.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let open = |memory_limit| processor::open(&Limits::default().memory_limit(memory_limit));
    let machines = [("in place", open(None)?), ("limited", open(Some(LIMIT))?)];
    report.add_participants(machines[0].1.devices(), std::iter::empty());
    for n in settings.sizes(&[12_000]) {
        let (a, b) = (random::<f64>(n * n, 6), random::<f64>(n, 7));
        let mut work = [a.clone(), b.clone()];
        let mut figures = [Figures::default(); 2];
        let memory = std::cell::RefCell::new(&mut work);
        let sides = machines.iter().zip(&mut figures).map(|((name, machine), figures)| {
            let (a, b, memory) = (&a, &b, &memory);
            Side::new(*name, move || {
                let [lu, x] = &mut **memory.borrow_mut();
                copy(lu, a);
                copy(x, b);
                let before = forget_peak();
                let seconds = timed(|| solve(machine, n, lu, x));
                figures.peak_bytes.get_or_insert(peak().saturating_sub(before));
                figures.residual = hpl(n, a, b, x);
                assert!(figures.residual < HPL_THRESHOLD, "the residual is {}", figures.residual);
                seconds
            })
        });
        let times = in_turn(settings, sides.collect());
        report.add("dgesv", &format!("n={n} limit=256M"), Unit::Gflops(flops::getrf(n, n)), &times);
        for ((name, _), Figures { residual, peak_bytes }) in machines.iter().zip(figures) {
            let peak = peak_bytes.unwrap_or(0) as f64 / f64::from(1 << 20);
            report.remark("dgesv", &format!("n={n} {name}"), "hpl_residual", residual);
            report.remark("dgesv", &format!("n={n} {name}"), "peak_mebibytes_beyond_matrices", peak);
        }
    }
    Ok(())
}

fn solve(machine: &Machine, n: usize, a: &mut [f64], b: &mut [f64]) {
    let (a, b) = (MatMut::col_major(a, n, n).expect("n² elements"), MatMut::col_major(b, n, 1).expect("n elements"));
    let lu = machine.gesv(a, b).expect("the solve works");
    assert_eq!(lu.info(), 0, "a random matrix is regular");
}

/// Resets the peak of the process's resident memory. Returns the present resident memory in bytes (Linux; 0 on other systems).
fn forget_peak() -> u64 {
    // A write of "5" to `/proc/self/clear_refs` resets the peak of the resident memory, see proc(5).
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    status("VmRSS:")
}

/// The peak of the process's resident memory, in bytes (Linux; 0 on other systems).
fn peak() -> u64 {
    status("VmHWM:")
}

fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
}
