//! Tests how much memory the incomplete calls of a stream take. The test has a process of its own, because it measures the memory of its
//! process.

#[path = "support/first_devices.rs"]
mod first_devices;

use first_devices::machines;
use lapidary::{Gemm, MatRef};

/// Number of enqueued calls before the first wait.
const CALLS: usize = 100_000;

/// Maximum growth of the memory of the process, in bytes.
const MAX_GROWTH: usize = 24 << 20;

#[test]
fn many_calls_before_the_first_wait_end_and_their_memory_is_bounded() {
    for machine in machines() {
        let name = machine.devices().next().unwrap().name.clone();
        let stream = machine.stream(0).unwrap();
        let a = machine.upload(MatRef::col_major(&[1.0_f32], 1, 1).unwrap()).unwrap();
        let mut c = machine.zeros_on::<f32>(0, 1, 1).unwrap();
        let mut enqueue = |calls: usize| {
            for _ in 0..calls {
                stream.gemm(Gemm::new(a.view(), a.view(), c.view_mut()).beta(1.0)).unwrap();
            }
        };
        // the first calls compile kernels, and the driver allocates memory for its queue
        enqueue(CALLS / 20);
        stream.wait().unwrap();
        let before = resident_bytes();
        enqueue(CALLS);
        if let (Some(before), Some(after)) = (before, resident_bytes()) {
            assert!(after < before + MAX_GROWTH, "{name}: {before} bytes became {after}");
        }
        stream.wait().unwrap();
        assert_eq!(stream.read(&c).unwrap().wait().unwrap()[0], (CALLS + CALLS / 20) as f32, "{name}");
    }
}

/// Bytes of memory that this process occupies, where the system tells.
fn resident_bytes() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split_whitespace().nth(1)?.parse::<usize>().ok()? * 4096)
}
