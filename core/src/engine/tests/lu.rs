//! Runs of the plans of LU in random legal orders, on devices whose memory just suffices, and on devices with more memory.

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
        let problem = Problem { m, n, pivoting: true, layout: Layout::ColMajor, dtype: DType::F64 };
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

/// Runs a plan of LU on devices of unlike speed with two kernel queues by the function `how`. Each device has `times` times the memory that it
/// needs. Returns a digest of the results.
fn factored(
    (m, n, place): (usize, usize, Place),
    times: usize,
    late: Option<u64>,
    how: impl Fn(&Schedule, &Runtimes, &[RawMat]) -> Result<(), RunError>,
) -> u64 {
    let devices = if let Place::Distributed { shares } = &place { shares.len() } else { 1 };
    let mut factorisation = Factorisation::new(m, n);
    let plan = getrf::plan(&factorisation.problem, &Blocking { mc: m, nc: 4, kc: 2, nb: 3, share: 1, place });
    let bindings = factorisation.bindings();
    let ample = Reach { memory: usize::MAX / 16, in_place: vec![false; 3], flops: 1.0, queues: 2 };
    let needed = Schedule::new(plan.clone(), vec![ample.clone(); devices]).unwrap();
    let runtimes: Vec<DeviceRuntime> = (0..devices)
        .map(|device| {
            let mut own =
                DigestDevice { late: late.map(LateQueues::new), ..DigestDevice::new(Some(times * needed.footprint(device))) };
            own.facts.queues = 2;
            own.facts.rates.flops = 1e3_f64.powi(device as i32);
            runtime(own)
        })
        .collect();
    let schedule = Schedule::new(plan, reaches(&runtimes, &bindings)).unwrap();
    how(&schedule, &runtimes, &bindings).unwrap();
    factorisation.bits()
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        Just(Place::Streamed),
        Just(Place::Held { loads: true }),
        prop::collection::vec(0..4_u32, 0..3).prop_map(|others| Place::Distributed { shares: [vec![2], others].concat() }),
    ]
}

proptest! {
    #[test]
    fn lu_gives_the_same_bits_in_every_legal_order(
        (m, n) in (1..14_usize, 1..14_usize),
        place in place(),
        times in 1..3_usize,
        choices in prop::collection::vec(any::<u8>(), 1..64),
        late in prop::option::of(any::<u64>()),
    ) {
        let expected = factored((m, n, place.clone()), 10, None, |s, d, b| step_by_step(s, d, b, &[0]));
        let stepped = factored((m, n, place.clone()), times, None, |s, d, b| step_by_step(s, d, b, &choices));
        prop_assert_eq!(stepped, expected);
        prop_assert_eq!(factored((m, n, place), times, late, with_threads), expected);
    }
}
