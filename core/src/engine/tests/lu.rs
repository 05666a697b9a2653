//! Runs of the plans of LU in random legal orders, on devices whose memory just suffices, and on devices with more memory.

use std::sync::atomic::AtomicUsize;

use super::*;
use crate::algorithms::getrf::{self, Problem};
use crate::blocking::{Blocking, Place};

/// The matrices of a factorisation: A in column-major order, the pivots and `info`.
struct Factorisation {
    problem: Problem,
    a: Vec<f64>,
    ipiv: Vec<i32>,
    info: [i32; 1],
}

impl Factorisation {
    fn new(m: usize, n: usize) -> Self {
        let problem = Problem::pivoted((m, n), Layout::ColMajor, DType::F64);
        let (a, ipiv) = ((0..m * n).map(|i| 1.0 + i as f64).collect(), vec![0; m.min(n)]);
        Factorisation { problem, a, ipiv, info: [0] }
    }

    fn bindings(&mut self) -> [RawMat; 3] {
        let order = self.problem.order();
        let a = MatMut::col_major(&mut self.a, self.problem.m, self.problem.n).unwrap().raw();
        let ipiv = MatMut::col_major(&mut self.ipiv, order, 1).unwrap().raw();
        [a, ipiv, MatMut::col_major(&mut self.info, 1, 1).unwrap().raw()]
    }

    fn bits(&self) -> u64 {
        let numbers = self.ipiv.iter().chain(&self.info).map(|i| u64::from(i.cast_unsigned()));
        self.a.iter().map(|x| x.to_bits()).chain(numbers).fold(0, mix)
    }
}

/// Runs a plan of LU by the function `how`. `device` makes a device that needs the given number of bytes. The devices have two kernel queues and
/// unlike speeds. Returns a digest of the results.
fn run_lu(
    (m, n, nb): (usize, usize, usize),
    place: &Place,
    device: impl Fn(usize) -> DigestDevice,
    how: impl Fn(&Schedule, &Runtimes, &[RawMat]) -> Result<(), RunError>,
) -> Result<u64, RunError> {
    let devices = if let Place::Distributed { shares, .. } = place { shares.len() } else { 1 };
    let mut factorisation = Factorisation::new(m, n);
    let plan = getrf::plan(&factorisation.problem, &Blocking { mc: m, nc: 4, kc: 2, nb, share: 1, place: place.clone() });
    let bindings = factorisation.bindings();
    let ample = Reach { memory: usize::MAX / 16, in_place: vec![false; 3], flops: 1.0, queues: 2 };
    let needed = Schedule::new(plan.clone(), vec![ample; devices]).unwrap();
    let runtimes: Vec<DeviceRuntime> = (0..devices)
        .map(|index| {
            let mut own = device(needed.footprint(index));
            own.facts.queues = 2;
            own.facts.rates.flops = 1e3_f64.powi(index as i32);
            runtime(own)
        })
        .collect();
    let schedule = Schedule::new(plan, reaches(&runtimes, &bindings)).unwrap();
    how(&schedule, &runtimes, &bindings).map(|()| factorisation.bits())
}

/// A digest of the results of a plan on devices that have `times` times the memory that they need.
fn factored(
    size: (usize, usize, usize),
    place: &Place,
    times: usize,
    late: Option<u64>,
    how: impl Fn(&Schedule, &Runtimes, &[RawMat]) -> Result<(), RunError>,
) -> u64 {
    let device = |needed| DigestDevice { late: late.map(LateQueues::new), ..DigestDevice::new(Some(times * needed)) };
    run_lu(size, place, device, how).unwrap()
}

/// A device that cannot allocate its columns ends the run before outputs are written, so that the call can be planned again.
#[test]
fn columns_get_memory_before_the_first_command() {
    let size @ (m, n, _) = (20, 20, 2);
    let place = Place::Distributed { shares: vec![1], group_length: 2 };
    for (left, seed) in [0, 1, 4].into_iter().flat_map(|fifths| (0..16_u8).map(move |seed| (8 * m * n * fifths / 5, seed))) {
        let short = |needed| DigestDevice { left: Arc::new(AtomicUsize::new(left)), ..DigestDevice::new(Some(needed)) };
        let choices: Vec<u8> = (0..16).map(|i| seed.wrapping_mul(31).wrapping_add(i * 17)).collect();
        let error = run_lu(size, &place, short, |s, d, b| step_by_step(s, d, b, &choices)).unwrap_err();
        assert_eq!((error.error.kind(), error.touched), (ErrorKind::OutOfMemory, false), "{left} bytes: {}", error.error);
    }
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        Just(Place::Streamed),
        Just(Place::Held { loads: true }),
        (prop::collection::vec(0..4_u32, 0..3), 1..5_usize)
            .prop_map(|(others, group_length)| Place::Distributed { shares: [vec![2], others].concat(), group_length }),
    ]
}

proptest! {
    #[test]
    fn lu_gives_the_same_bits_in_every_legal_order(
        size in (1..26_usize, 1..26_usize, 1..4_usize),
        place in place(),
        times in 1..3_usize,
        choices in prop::collection::vec(any::<u8>(), 1..64),
        late in prop::option::of(any::<u64>()),
    ) {
        let expected = factored(size, &place, 10, None, |s, d, b| step_by_step(s, d, b, &[0]));
        let stepped = factored(size, &place, times, None, |s, d, b| step_by_step(s, d, b, &choices));
        prop_assert_eq!(stepped, expected);
        prop_assert_eq!(factored(size, &place, times, late, with_threads), expected);
    }
}
