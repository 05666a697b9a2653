//! Benchmark group `default`: times the default selection of devices and each device alone in turn, with matrices in host memory.

use std::cell::RefCell;
use std::error::Error;

use lapidary::{
    DType, DeviceFacts, Explanation, Gemm, Getrf, Machine, MatMut, MatRef, Routine, Scalar, Select, Settings as Limits, Trsm, flops,
};
use lapidary_host::rest;

use crate::cases::{MAGNIFIED, ROUNDING, assert_alike, name, random, triangle};
use crate::measure::{Side, Times, in_turn, timed};
use crate::report::{Report, Unit};
use crate::settings::Settings;

/// Number of calls on the default selection before the first timed call. From these calls the machine learns how long each set of
/// devices takes. If the timed calls follow a pause, the learning calls follow a pause too.
const LEARNING: usize = 32;
/// Number of calls that a machine needs to try three devices: for each device one call, which may compile kernels, and three
/// further calls, whose times count.
const FEWEST_LEARNING: usize = 12;
/// Seconds after which the learning calls end early. The time of the first [`FEWEST_LEARNING`] calls does not count.
const LONGEST_LEARNING: f64 = 4.0;
/// Duration in seconds from which one call is enough to time a device, since compilation and allocation take a negligible part of
/// so long a call.
const LONG: f64 = 1.0;
/// Largest accepted ratio of a device's time to the time of the fastest device. Slower devices are not timed.
const TOO_SLOW: f64 = 4.0;
/// Number of right-hand sides in the triangular solves with few right-hand sides.
const NRHS: usize = 128;

type Call<'a, T, R = ()> = Box<dyn Fn(&Machine, &mut [T]) -> R + 'a>;

/// A call that overwrites one of its operands with the result, and the data for its check.
struct Case<'a, T> {
    routine: Routine,
    size: String,
    flops: f64,
    /// The elements of the overwritten operand as they are before the call.
    input: Vec<T>,
    call: Call<'a, T>,
    /// Explains which devices the machine would choose for the next call. For `gesv`, it explains the choice for the LU
    /// factorisation.
    explain: Call<'a, T, lapidary::Result<Explanation>>,
    /// Largest accepted difference between the results of two machines, in units of `n·u`.
    slack: f64,
}

/// The machines that are compared: one with all devices, and one for each device alone.
struct Machines {
    all: Machine,
    /// For each device of `all`: its name, and a machine of this device alone.
    alone: Vec<(String, Machine)>,
}

impl Machines {
    fn open() -> Result<Self, Box<dyn Error>> {
        let limits = Limits::from_env()?;
        let open = |select: &Select| Machine::with_settings(select, &limits);
        let all = open(&Select::all())?;
        let open = |device: &DeviceFacts| Ok::<_, lapidary::Error>((device.name.clone(), open(&device.name.parse()?)?));
        let alone = all.devices().map(open).collect::<Result<_, _>>()?;
        Ok(Machines { all, alone })
    }
}

/// Times GEMM, TRSM, LU and GESV for each size and element type, on the default selection and on each device alone.
pub fn run(settings: &Settings, report: &mut Report) -> Result<(), Box<dyn Error>> {
    let machines = Machines::open()?;
    report.add_participants(machines.all.devices(), std::iter::empty());
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
    let square = |data| MatRef::col_major(data, n, n).expect("n² elements");
    let product = Case {
        routine: Routine::Gemm,
        size: format!("n={n}"),
        flops: flops::gemm(n, n, n),
        input: vec![T::from_f64(f64::NAN); n * n],
        call: Box::new(|machine, c| machine.gemm(Gemm::new(square(a), square(b), columns(c, n))).expect("the product works")),
        explain: Box::new(|machine, c| machine.explain(Gemm::new(square(a), square(b), columns(c, n)))),
        slack: ROUNDING,
    };
    let solve = |nrhs: usize| Case {
        routine: Routine::Trsm,
        size: format!("n={n} nrhs={nrhs}"),
        flops: flops::trsm(n, nrhs),
        input: b[..n * nrhs].to_vec(),
        call: Box::new(move |machine, x| machine.trsm(Trsm::new(square(lower), columns(x, nrhs))).expect("the solve works")),
        explain: Box::new(move |machine, x| machine.explain(Trsm::new(square(lower), columns(x, nrhs)))),
        slack: ROUNDING,
    };
    let factors = Case {
        routine: Routine::Getrf,
        size: format!("n={n}"),
        flops: flops::getrf(n, n),
        input: a.clone(),
        call: Box::new(|machine, lu| {
            let _ = machine.getrf_into(Getrf::new(columns(lu, n), &mut vec![0; n])).expect("LU works");
        }),
        explain: Box::new(|machine, lu| machine.explain(Getrf::new(columns(lu, n), &mut vec![0; n]))),
        slack: MAGNIFIED,
    };
    let system = Case {
        routine: Routine::Gesv,
        size: format!("n={n}"),
        flops: flops::getrf(n, n) + flops::getrs(n, 1),
        input: [a, &b[..n]].concat(),
        call: Box::new(|machine, system| {
            let (a, x) = system.split_at_mut(n * n);
            let _ = machine.gesv(columns(a, n), columns(x, 1)).expect("A is not singular");
        }),
        explain: Box::new(|machine, system| machine.explain(Getrf::new(columns(&mut system[..n * n], n), &mut vec![0; n]))),
        slack: MAGNIFIED,
    };
    for case in [product, solve(n), solve(NRHS.min(n)), factors, system] {
        time(&case, n, settings, machines, report);
    }
}

fn time<T: Scalar>(case: &Case<'_, T>, n: usize, settings: &Settings, machines: &Machines, report: &mut Report) {
    if !settings.times(case.routine) {
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
    let is_able = |machine: &Machine| machine.devices().all(|device| device.computes(T::DTYPE));
    let mut alone = Vec::new();
    for (name, machine) in machines.alone.iter().filter(|(_, machine)| is_able(machine)) {
        let first = seconds(machine, &mut result); // compiles kernels and allocates memory
        let again = if first < LONG { seconds(machine, &mut result) } else { first };
        alone.push((name.as_str(), machine, again));
        assert_alike(case.routine.name(), n, case.slack, &[expected.clone(), result.clone()]);
    }
    let fastest = alone.iter().map(|(.., seconds)| *seconds).fold(f64::INFINITY, f64::min);
    alone.retain(|(.., seconds)| *seconds <= TOO_SLOW * fastest);
    let explain = |result: &mut Vec<T>| (case.explain)(&machines.all, result).expect("the call is explained");
    let explanations = RefCell::new(vec![explain(&mut result)]);
    let result = &RefCell::new(result);
    let side = |name: &str, machine| Side::new(name, move || seconds(machine, &mut result.borrow_mut()));
    let mut sides = vec![Side::new("default", || {
        let result = &mut result.borrow_mut();
        let seconds = seconds(&machines.all, result);
        // The program asks the machine after the call, since a listener would run within the call and lengthen it.
        explanations.borrow_mut().push(explain(result));
        seconds
    })];
    sides.extend(alone.iter().map(|&(name, machine, _)| side(name, machine)));
    let times = in_turn(settings, sides);
    let name = name::<T>(case.routine.name());
    report.add(&name, &case.size, Unit::Gflops(case.flops), &times);
    let best = times[1..].iter().map(Times::median).fold(f64::INFINITY, f64::min);
    report.remark(&name, &case.size, "speed, of the best device's", best / times[0].median());
    println!("{name:<8}{:<28}chose {}", case.size, chosen(&explanations.take()));
}

fn columns<T: Scalar>(data: &mut [T], count: usize) -> MatMut<'_, T> {
    let rows = data.len() / count;
    MatMut::col_major(data, rows, count).expect("as many elements")
}

/// The chosen devices of the timed calls as text such as `cpu ×4, wgpu:0`, then the price of each set of devices. The last
/// explanation belongs to a call that would follow but is not run.
fn chosen(explanations: &[Explanation]) -> String {
    let [calls @ .., next] = explanations else { return String::new() };
    let counted = calls.chunk_by(|a, b| a.devices == b.devices).map(|same| match (same[0].devices.join("+"), same.len()) {
        (devices, 1) => devices,
        (devices, count) => format!("{devices} ×{count}"),
    });
    let chosen = counted.collect::<Vec<_>>().join(", ");
    next.considered.iter().fold(chosen, |text, set| format!("{text}; {} {:.3} ms", set.devices.join("+"), 1e3 * set.seconds))
}
