//! The sides of group `host`: products of Lapidary and of cuBLASXt.

use std::ops::{Deref, DerefMut};

use lapidary::{Gemm, Machine, MatMut, MatRef};

use crate::cases::poison;
use crate::cublas::{Cublas, Real};
use crate::cublasxt::CublasXt;
use crate::gpu::Prepared;
use crate::gpu::check::check_product;
use crate::gpu::problem::{Operands, Problem, Product};
use crate::measure::try_timed;
use crate::report::Report;

/// Orders of the blocks of cuBLASXt. The program times a product with each order and keeps the fastest.
const BLOCKS: [usize; 3] = [2048, 4096, 8192];

/// The kinds of host memory.
pub const PINNED: &str = "pinned";
pub const PAGEABLE: &str = "pageable";
/// Names of the sides in the table.
const OURS: &str = "ours";
pub const RESIDENT: &str = "resident";
pub const PEER: &str = "cublasxt";

/// A matrix in host memory that is read.
pub type Input<'a, T> = Box<dyn Deref<Target = [T]> + 'a>;
/// A matrix in host memory that is written.
pub type Output<'a, T> = Box<dyn DerefMut<Target = [T]> + 'a>;
/// A call that computes C ← A·B + β·C for the given β and C, and returns the seconds of the product.
type Call<'a, T> = Box<dyn FnMut(T, &mut [T]) -> Result<f64, String> + 'a>;

/// A library that multiplies matrices in one kind of memory, with the memory of the result.
pub struct Entrant<'a, T> {
    /// The kind of host memory in which the matrices lie, [`PINNED`] or [`PAGEABLE`]. It decides in which table the times stand. The times of
    /// matrices that lie on the device stand in the table of pinned memory.
    pub memory: &'static str,
    /// Name of the library in the table.
    pub name: &'static str,
    c: Output<'a, T>,
    call: Call<'a, T>,
}

impl<T: Real> Entrant<'_, T> {
    /// Computes C ← A·B, or C ← A·B + C₀ if `before` holds C₀. Returns the seconds of the product.
    pub fn run(&mut self, before: Option<&[T]>) -> Result<f64, String> {
        match before {
            Some(before) => self.c.copy_from_slice(before),
            None => poison(&mut self.c),
        }
        (self.call)(before.map_or(T::ZERO, |_| T::ONE), &mut self.c)
    }

    /// Checks the result of the last call.
    pub fn check(&self, operands: &Operands<T>, before: Option<&[T]>) -> Result<(), String> {
        let Problem::Product(product) = operands.problem else { unreachable!("the group times products") };
        check_product(product, [&operands.a, &operands.b, &self.c], before)
    }

    /// Prints that cuBLASXt is left out, and why. If the library is Lapidary, returns the reason as an error instead.
    pub fn leave_out(&self, operands: &Operands<T>, error: &str) -> Result<(), String> {
        let Entrant { memory, name, .. } = self;
        if *name != PEER {
            return Err(format!("{name} {memory}: {error}"));
        }
        println!("{} {} {memory}: {name} is left out: {error}", operands.name(), operands.problem.size());
        Ok(())
    }
}

/// A and B in pageable memory.
pub fn borrow<T>(operands: &Operands<T>) -> [Input<'_, T>; 2] {
    [Box::new(operands.a.as_slice()), Box::new(operands.b.as_slice())]
}

/// Products of Lapidary with matrices of order n in host memory.
pub fn multiply<'o, T: Real>(
    machine: &'o Machine,
    memory: &'static str,
    n: usize,
    [a, b]: [Input<'o, T>; 2],
    c: Output<'o, T>,
) -> Entrant<'o, T> {
    let product = move |beta, c: &mut [T]| {
        let (a, b) = (MatRef::col_major(&a, n, n)?, MatRef::col_major(&b, n, n)?);
        machine.gemm(Gemm::new(a, b, MatMut::col_major(c, n, n)?).beta(beta))
    };
    let call = move |beta, c: &mut [T]| try_timed(|| product(beta, c)).map_err(|error: lapidary::Error| error.to_string());
    Entrant { memory, name: OURS, c, call: Box::new(call) }
}

/// Products of Lapidary with matrices in device memory. The copy of the result to host memory is not timed.
pub fn stay<'o, T: Real>(mut resident: Box<dyn Prepared<T> + 'o>, c: Output<'o, T>) -> Entrant<'o, T> {
    let call = move |_, c: &mut [T]| {
        let seconds = try_timed(|| resident.run(1))?;
        resident.read(c).map(|_| seconds)
    };
    Entrant { memory: PINNED, name: RESIDENT, c, call: Box::new(call) }
}

/// Products of cuBLASXt with the fastest order of blocks and the fastest of the given pinning modes.
pub fn fastest<'o, T: Real>(
    cuda: &'o Cublas,
    (memory, modes): (&'static str, &[bool]),
    operands: &Operands<T>,
    [a, b]: [Input<'o, T>; 2],
    mut c: Output<'o, T>,
    report: &mut Report,
) -> Result<Entrant<'o, T>, String> {
    let Problem::Product(Product { n, .. }) = operands.problem else { unreachable!("the group times products") };
    let (name, size) = (operands.name(), format!("{} {memory}", operands.problem.size()));
    let xt = CublasXt::open(cuda)?;
    let mut best: Option<(f64, usize, bool)> = None;
    for (pins, block) in modes.iter().flat_map(|&pins| blocks(n).into_iter().map(move |block| (pins, block))) {
        // The first call with a block allocates memory.
        let mut call = || try_timed(|| xt.gemm(n, [&a, &b], T::ZERO, &mut c));
        match xt.configure(block, pins).and_then(|()| call()).and_then(|_| call()) {
            Ok(seconds) => {
                let key = format!("{PEER}: ms with block {block}{}", if pins { ", pinned in each call" } else { "" });
                report.remark(&name, &size, &key, seconds * 1e3);
                best = best.filter(|best| best.0 <= seconds).or(Some((seconds, block, pins)));
            }
            Err(error) => println!("{name} {size}: {PEER} with block {block} is left out: {error}"),
        }
    }
    let (_, block, pins) = best.ok_or("no call succeeded")?;
    xt.configure(block, pins)?;
    report.remark(&name, &size, &format!("{PEER}: fastest block"), block as f64);
    report.remark(&name, &size, &format!("{PEER}: pinned in each call"), f64::from(u8::from(pins)));
    let call = move |beta, c: &mut [T]| try_timed(|| xt.gemm(n, [&a, &b], beta, c));
    Ok(Entrant { memory, name: PEER, c, call: Box::new(call) })
}

/// The orders of the blocks that are tried for matrices of order n: those of [`BLOCKS`] that are at most n, or n itself.
fn blocks(n: usize) -> Vec<usize> {
    let fitting: Vec<usize> = BLOCKS.into_iter().filter(|&block| block <= n).collect();
    if fitting.is_empty() { vec![n] } else { fitting }
}

#[cfg(test)]
mod tests {
    use lapidary::Select;

    use super::*;

    #[test]
    fn each_call_starts_anew_and_a_wrong_result_is_found() {
        let machine = Machine::open(&Select::cpu(..)).unwrap();
        let operands = Operands::<f64>::random(Problem::Product(Product::square(20))).unwrap();
        for before in [None, Some(operands.a.as_slice())] {
            let mut side = multiply(&machine, PAGEABLE, 20, borrow(&operands), Box::new(operands.unwritten()));
            side.run(before).unwrap();
            side.run(before).unwrap();
            assert_eq!(side.check(&operands, before), Ok(()));
            side.c[3] += 1e-9;
            assert!(side.check(&operands, before).is_err());
            side.call = Box::new(|_, _| Ok(1.0)); // computes nothing
            side.run(before).unwrap();
            assert!(side.check(&operands, before).is_err());
        }
    }

    #[test]
    fn only_the_peer_is_left_out() {
        let operands = Operands::<f64>::random(Problem::Product(Product::square(1))).unwrap();
        let side = |name| Entrant::<f64> { memory: PINNED, name, c: Box::new(Vec::new()), call: Box::new(|_, _| Ok(1.0)) };
        assert_eq!(side(PEER).leave_out(&operands, "wrong"), Ok(()));
        assert_eq!([OURS, RESIDENT].map(|name| side(name).leave_out(&operands, "wrong").is_err()), [true, true]);
    }

    #[test]
    fn blocks_fit_into_the_matrices() {
        assert_eq!([300, 4096, 16384].map(blocks), [vec![300], vec![2048, 4096], vec![2048, 4096, 8192]]);
    }
}
