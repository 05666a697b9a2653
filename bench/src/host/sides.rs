//! The sides of group `host`: Lapidary with matrices in host memory and in device memory.

use std::ops::{Deref, DerefMut};

use lapidary::{Machine, MatMut, MatRef};

use crate::cases::copy;
use crate::cublas::Real;
use crate::gpu::Prepared;
use crate::gpu::check::{check, check_product};
use crate::gpu::ours::{Ours, call, pivots};
use crate::gpu::problem::{Operands, Problem};
use crate::measure::try_timed;

/// The kinds of host memory.
pub const PINNED: &str = "pinned";
pub const PAGEABLE: &str = "pageable";
/// Name, in the table, of the side on which Lapidary computes with matrices in host memory.
pub const OURS: &str = "ours";
/// Name, in the table, of the side on which Lapidary computes with matrices in device memory.
pub const RESIDENT: &str = "resident";

/// Name, in the table, of the side on which Lapidary computes with matrices in host memory on the first of several devices alone.
pub const FIRST: &str = "first device";

/// A matrix in host memory that is read.
pub type Input<'a, T> = Box<dyn Deref<Target = [T]> + 'a>;
/// A matrix in host memory that is written.
pub type Output<'a, T> = Box<dyn DerefMut<Target = [T]> + 'a>;
/// A call, which takes the factor β of the result before the call and the memory of the result. It returns its seconds and the pivots of
/// a factorisation, counted from 0.
pub type Call<'a, T> = Box<dyn FnMut(T, &mut [T]) -> Result<(f64, Vec<usize>), String> + 'a>;

/// A library that makes a call with matrices in one kind of memory, with the memory of the result.
pub struct Entrant<'a, T> {
    /// The kind of host memory in which the matrices lie, [`PINNED`] or [`PAGEABLE`]. It decides in which table the times stand. The times of
    /// matrices that lie on the device stand in the table of pinned memory.
    pub memory: &'static str,
    /// Name of the library in the table.
    pub name: &'static str,
    result: Output<'a, T>,
    pivots: Vec<usize>,
    call: Call<'a, T>,
}

impl<'a, T: Real> Entrant<'a, T> {
    pub fn new(memory: &'static str, name: &'static str, (result, call): (Output<'a, T>, Call<'a, T>)) -> Self {
        Entrant { memory, name, result, pivots: Vec::new(), call }
    }

    /// The same calls under another name.
    pub fn named(self, name: &'static str) -> Self {
        Entrant { name, ..self }
    }

    /// Restores the operands that the call overwrites and makes the call. If `before` holds C₀, the call is the product C ← A·B + C₀.
    /// Returns the seconds of the call alone.
    pub fn run(&mut self, operands: &Operands<T>, before: Option<&[T]>) -> Result<f64, String> {
        match before {
            Some(before) => copy(&mut self.result, before),
            None => operands.restore(&mut self.result),
        }
        let (seconds, pivots) = (self.call)(before.map_or(T::ZERO, |_| T::ONE), &mut self.result)?;
        self.pivots = pivots;
        Ok(seconds)
    }

    /// Checks the result of the last call.
    pub fn check(&self, operands: &Operands<T>, before: Option<&[T]>) -> Result<(), String> {
        match operands.problem {
            Problem::Product(product) => check_product(product, [&operands.a, &operands.b, &self.result], before),
            Problem::Solve { .. } | Problem::Factors { .. } | Problem::System { .. } => check(operands, &self.result, &self.pivots),
        }
    }

    /// Prints that a peer is left out, and why. If the library is Lapidary, returns the reason as an error instead.
    pub fn leave_out(&self, operands: &Operands<T>, error: &str) -> Result<(), String> {
        let Entrant { memory, name, .. } = self;
        if [OURS, RESIDENT, FIRST].contains(name) {
            return Err(format!("{name} {memory}: {error}"));
        }
        println!("{} {} {memory}: {name} is left out: {error}", operands.name(), operands.problem.size());
        Ok(())
    }
}

/// The operands that a call reads, in pageable memory.
pub fn borrow<T: Real>(operands: &Operands<T>) -> Vec<Input<'_, T>> {
    operands.inputs().map(|data| Box::new(data) as Input<'_, T>).collect()
}

/// Calls of Lapidary with matrices in host memory.
pub fn from_host<'o, T: Real>(
    machine: &'o Machine,
    memory: &'static str,
    problem: Problem,
    inputs: Vec<Input<'o, T>>,
    result: Output<'o, T>,
) -> Entrant<'o, T> {
    let [.., (rows, cols)] = problem.shapes();
    let once = move |beta, result: &mut [T]| {
        let views = inputs.iter().zip(problem.shapes()).map(|(data, (rows, cols))| MatRef::col_major(data, rows, cols));
        let views = views.collect::<lapidary::Result<Vec<_>>>()?;
        let lu = call(machine, problem, &views, beta, MatMut::col_major(result, rows, cols)?)?;
        Ok::<_, lapidary::Error>(pivots(lu.as_ref()))
    };
    let call = move |beta, result: &mut [T]| {
        let mut pivots = Vec::new();
        let seconds = try_timed(|| once(beta, result).map(|found| pivots = found)).map_err(|error| error.to_string())?;
        Ok((seconds, pivots))
    };
    Entrant::new(memory, OURS, (result, Box::new(call)))
}

/// Calls of Lapidary with matrices in device memory. The copy of the result to host memory is not timed.
pub fn stay<'o, T: Real>(mut resident: Ours<'o, T>, result: Output<'o, T>) -> Entrant<'o, T> {
    let call = move |_, result: &mut [T]| {
        let seconds = resident.timed_call()?;
        Ok((seconds, resident.read(result)?))
    };
    Entrant::new(PINNED, RESIDENT, (result, Box::new(call)))
}

#[cfg(test)]
mod tests {
    use lapidary::Select;

    use super::*;
    use crate::gpu::ours::prepare;
    use crate::gpu::problem::Product;

    const N: usize = 20;
    const PROBLEMS: [Problem; 4] = [
        Problem::Product(Product { m: N, n: N, k: N, trans: [false; 2] }),
        Problem::Solve { n: N, nrhs: N },
        Problem::Factors { n: N },
        Problem::System { n: N },
    ];

    /// Makes two calls and checks the result. Then damages each part of the result in turn, and replaces the call by one that computes
    /// nothing.
    fn verify(mut side: Entrant<'_, f64>, operands: &Operands<f64>, before: Option<&[f64]>) {
        let what = (side.name, operands.problem);
        side.run(operands, before).unwrap();
        side.run(operands, before).unwrap();
        assert_eq!(side.check(operands, before), Ok(()), "{what:?}");
        let last = side.result.len() - 1;
        for element in [3, last] {
            let right = side.result[element];
            side.result[element] += 1e-9;
            assert!(side.check(operands, before).is_err(), "{what:?}");
            side.result[element] = right;
        }
        side.call = Box::new(|_, _| Ok((1.0, (0..N).collect())));
        side.run(operands, before).unwrap();
        assert!(side.check(operands, before).is_err(), "{what:?}");
    }

    #[test]
    fn each_call_starts_anew_and_a_wrong_result_is_found() {
        let machine = Machine::open(&Select::cpu(..)).unwrap();
        for problem in PROBLEMS {
            let operands = Operands::random(problem).unwrap();
            let ours = || from_host(&machine, PAGEABLE, problem, borrow(&operands), Box::new(operands.unwritten()));
            verify(ours(), &operands, None);
            verify(stay(prepare(&machine, &operands).unwrap(), Box::new(operands.unwritten())), &operands, None);
            if problem.inputs() == 2 {
                verify(ours(), &operands, Some(&operands.a));
            }
        }
    }

    #[test]
    fn only_a_peer_is_left_out() {
        let operands = Operands::<f64>::random(PROBLEMS[2]).unwrap();
        let side = |name| Entrant::<f64>::new(PINNED, name, (Box::new(Vec::new()), Box::new(|_, _| Ok((1.0, Vec::new())))));
        assert_eq!(side("peer").leave_out(&operands, "wrong"), Ok(()));
        assert_eq!([OURS, RESIDENT].map(|name| side(name).leave_out(&operands, "wrong").is_err()), [true, true]);
    }
}
