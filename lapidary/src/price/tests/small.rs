//! Tests of small calls, which one device runs.

use std::time::Duration;

use lapidary_backend_cpu::CpuDevice;
use lapidary_core::{Device, Gemm, Laswp, MatMut, MatRef};

use super::super::Reason;
use super::Paced;
use crate::open::boxed;
use crate::{Machine, Settings};

/// Opens a machine of the processor and a paced device, of which the processor is the first or the second device.
fn processor_and(
    paced: &Paced,
    processor_is_first: bool,
    open: fn(Vec<Box<dyn Device>>, &Settings) -> Machine,
    settings: &Settings,
) -> Machine {
    let [one, other] = [boxed(CpuDevice::whole(None)), boxed(paced.clone())];
    open(if processor_is_first { vec![one, other] } else { vec![other, one] }, settings)
}

/// Explains a small product, and computes it.
fn small_product(machine: &Machine) -> ((Reason, Vec<String>), [f64; 4]) {
    let (a, mut c) = ([1.0, 2.0, 3.0, 4.0], [0.0; 4]);
    let a = MatRef::col_major(&a, 2, 2).unwrap();
    let explanation = machine.explain(Gemm::new(a, a, MatMut::col_major(&mut c, 2, 2).unwrap())).unwrap();
    machine.gemm(Gemm::new(a, a, MatMut::col_major(&mut c, 2, 2).unwrap())).unwrap();
    ((explanation.reason, explanation.devices), c)
}

/// The processor runs a small call, whether or not it is the first device, and whether or not the machine chooses devices by price.
#[test]
fn small_calls_stay_on_the_processor() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { cache_dir: Some(folder.path().to_owned()), ..Settings::default() };
    for (processor_is_first, open) in [(true, Machine::choosing as fn(_, &_) -> _), (true, Machine::of), (false, Machine::of)] {
        let paced = Paced::new("paced:0", Duration::ZERO);
        let machine = processor_and(&paced, processor_is_first, open, &settings);
        let (explained, mut c) = small_product(&machine);
        assert_eq!((explained, c), ((Reason::Small, vec!["cpu".to_owned()]), [7.0, 10.0, 15.0, 22.0]));
        // unlike a product, row exchanges are not launched before the reason is determined
        machine.laswp(Laswp::new(MatMut::col_major(&mut c, 2, 2).unwrap(), &[1, 1])).unwrap();
        assert_eq!((c, paced.launches()), ([10.0, 7.0, 22.0, 15.0], 0));
    }
}

/// In the reproducible mode, the devices of the fastest model run small calls too.
#[test]
fn small_calls_that_are_reproducible_run_where_other_calls_do() {
    let settings = Settings { reproducible: true, ..Settings::default() };
    for processor_is_first in [true, false] {
        let mut paced = Paced::new("paced:0", Duration::ZERO);
        paced.facts.rates.flops = 1e15;
        let machine = processor_and(&paced, processor_is_first, Machine::of, &settings);
        assert_eq!(small_product(&machine).0, (Reason::OneModel, vec!["paced:0".to_owned()]));
        assert!(paced.launches() > 0);
    }
}
