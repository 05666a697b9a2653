//! The default selection beside each of its devices alone, with matrices in host memory.

use std::cell::RefCell;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use lapidary::{DType, DeviceFacts, Explanation, Getrf, Machine, MatMut, MatRef, Scalar, Select, Settings as Limits, Trsm};
use lapidary_host::rest;

use crate::cases::{MAGNIFIED, ROUNDING, assert_alike, our_gemm, random, triangle};
use crate::measure::{Side, Times, in_turn, timed};
use crate::report::{Report, Unit};
use crate::settings::Settings;

/// Number of calls by which the default selection learns how long each set of devices takes, before any call is timed. They come
/// after a rest or in a row, as the timed calls do.
const LEARNING: usize = 32;
/// Number of calls that try three devices: of each, one call that may compile, and three that count.
const FEWEST_LEARNING: usize = 12;
/// Learning ends when its calls, without the first [`FEWEST_LEARNING`], have taken this many seconds.
const LONGEST_LEARNING: f64 = 4.0;
/// A device that takes more than this many times as long as the fastest is left out.
const TOO_SLOW: f64 = 4.0;
/// Number of right-hand sides in the solves that have few.
const NRHS: usize = 128;

type Call<'a, T> = Box<dyn Fn(&Machine, &mut [T]) + 'a>;

/// A call whose result overwrites a part of its input.
struct Case<'a, T> {
    routine: &'static str,
    size: String,
    flops: f64,
    /// The matrix before the call, which overwrites it with the result.
    input: Vec<T>,
    call: Call<'a, T>,
    /// How far results may lie apart, in units of `n·u`.
    slack: f64,
}

/// The machines that are compared.
struct Machines {
    all: Machine,
    /// Its devices by name.
    alone: Vec<(String, Machine)>,
    chosen: Chosen,
}

/// What the default selection has chosen for its calls, in the order of the calls.
#[derive(Clone, Default)]
struct Chosen(Arc<Mutex<Vec<Explanation>>>);

impl Chosen {
    fn add(&self, explanation: &Explanation) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(explanation.clone());
    }

    /// The devices of the calls since the last time, as text such as `cpu ×4, wgpu:0`, and the prices at the last call.
    fn take(&self) -> String {
        let calls = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let counted = calls.chunk_by(|a, b| a.devices == b.devices).map(|same| match (same[0].devices.join("+"), same.len()) {
            (devices, 1) => devices,
            (devices, count) => format!("{devices} ×{count}"),
        });
        let chosen = counted.collect::<Vec<_>>().join(", ");
        let prices = calls.last().into_iter().flat_map(|call| &call.considered);
        prices.fold(chosen, |text, set| format!("{text}; {} {:.3} ms", set.devices.join("+"), 1e3 * set.seconds))
    }
}

impl Machines {
    fn open() -> Result<Self, Box<dyn Error>> {
        let limits = Limits::from_env()?;
        let open = |select: &Select| Machine::with_settings(select, &limits);
        let chosen = Chosen::default();
        let listener = chosen.clone();
        let all = open(&Select::all())?.explained(move |explanation| listener.add(explanation));
        let open = |device: &DeviceFacts| Ok::<_, lapidary::Error>((device.name.clone(), open(&device.name.parse()?)?));
        let alone = all.devices().map(open).collect::<Result<_, _>>()?;
        Ok(Machines { all, alone, chosen })
    }
}

/// Times GEMM, TRSM, LU and GESV for each size and element type, on the default selection and on each device alone.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let machines = Machines::open()?;
    report.takes_part(machines.all.devices(), std::iter::empty());
    for n in settings.sizes(&[100, 300, 1000, 2000, 4000, 8192, 16384]) {
        if settings.dtype.is_none_or(|dtype| dtype == DType::F64) {
            cases::<f64>(n, settings, &machines, report);
        }
        if settings.dtype.is_none_or(|dtype| dtype == DType::F32) {
            cases::<f32>(n, settings, &machines, report);
        }
    }
    Ok(())
}

fn cases<T: Scalar>(n: usize, settings: &Settings, machines: &Machines, report: &mut Report) {
    let (a, b, lower) = (&random::<T>(n * n, 1), &random::<T>(n * n, 2), &triangle::<T>(n));
    let cube = (n as f64).powi(3);
    let square = |data| MatRef::col_major(data, n, n).expect("n² elements");
    let product = Case {
        routine: "gemm",
        size: format!("n={n}"),
        flops: 2.0 * cube,
        input: vec![T::from_f64(f64::NAN); n * n],
        call: Box::new(|machine, c| our_gemm(machine, n, a, b, c)),
        slack: ROUNDING,
    };
    let solve = |nrhs: usize| Case {
        routine: "trsm",
        size: format!("n={n} nrhs={nrhs}"),
        flops: cube * nrhs as f64 / n as f64,
        input: b[..n * nrhs].to_vec(),
        call: Box::new(move |machine: &Machine, x: &mut [T]| {
            let x = MatMut::col_major(x, n, nrhs).expect("n·nrhs elements");
            machine.trsm(Trsm::new(square(lower), x)).expect("the solve works");
        }),
        slack: ROUNDING,
    };
    let factors = Case {
        routine: "getrf",
        size: format!("n={n}"),
        flops: 2.0 / 3.0 * cube,
        input: a.clone(),
        call: Box::new(|machine, lu| {
            let lu = MatMut::col_major(lu, n, n).expect("n² elements");
            let _ = machine.getrf_into(Getrf::new(lu, &mut vec![0; n])).expect("LU works");
        }),
        slack: MAGNIFIED,
    };
    let system = Case {
        routine: "gesv",
        size: format!("n={n}"),
        flops: 2.0 / 3.0 * cube,
        input: [a, &b[..n]].concat(),
        call: Box::new(|machine, system| {
            let (a, x) = system.split_at_mut(n * n);
            let (a, x) = (MatMut::col_major(a, n, n).expect("n² elements"), MatMut::col_major(x, n, 1).expect("n elements"));
            let _ = machine.gesv(a, x).expect("A is not singular");
        }),
        slack: MAGNIFIED,
    };
    for case in [product, solve(n), solve(NRHS.min(n)), factors, system] {
        time(&case, n, settings, machines, report);
    }
}

fn time<T: Scalar>(case: &Case<'_, T>, n: usize, settings: &Settings, machines: &Machines, report: &mut Report) {
    if settings.routines.as_ref().is_some_and(|routines| !routines.iter().any(|name| name == case.routine)) {
        return;
    }
    let seconds = &|machine: &Machine, result: &mut Vec<T>| {
        result.copy_from_slice(&case.input);
        timed(|| (case.call)(machine, result))
    };
    let [mut expected, mut result] = [0, 1].map(|_| case.input.clone());
    let mut learning = 0.0;
    for call in 0..LEARNING {
        if settings.before == 0 {
            let _ = rest();
        }
        let seconds = seconds(&machines.all, &mut expected);
        learning += if call < FEWEST_LEARNING { 0.0 } else { seconds };
        if learning > LONGEST_LEARNING {
            break;
        }
    }
    machines.chosen.take();
    let is_able = |machine: &Machine| machine.devices().all(|device| device.computes(T::DTYPE));
    let mut alone = Vec::new();
    for (name, machine) in machines.alone.iter().filter(|(_, machine)| is_able(machine)) {
        seconds(machine, &mut result); // compiles, and allocates
        alone.push((name.as_str(), machine, seconds(machine, &mut result)));
        assert_alike(case.routine, n, case.slack, &[expected.clone(), result.clone()]);
    }
    let fastest = alone.iter().map(|(.., seconds)| *seconds).fold(f64::INFINITY, f64::min);
    alone.retain(|(.., seconds)| *seconds <= TOO_SLOW * fastest);
    let result = &RefCell::new(result);
    let side = |name: &str, machine| Side::new(name, move || seconds(machine, &mut result.borrow_mut()));
    let mut sides = vec![side("default", &machines.all)];
    sides.extend(alone.iter().map(|&(name, machine, _)| side(name, machine)));
    let times = in_turn(settings, sides);
    let name = format!("{}{}", if T::DTYPE == DType::F64 { 'd' } else { 's' }, case.routine);
    report.add(&name, &case.size, Unit::Gflops(case.flops), &times);
    let best = times[1..].iter().map(Times::median).fold(f64::INFINITY, f64::min);
    report.remark(&name, &case.size, "speed, of the best device's", best / times[0].median());
    println!("{name:<8}{:<26}chose {}", case.size, machines.chosen.take());
}
