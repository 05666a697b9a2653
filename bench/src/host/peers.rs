//! The peers of group `host`: products of cuBLASXt, and factorisations and systems of cuSOLVER.

use std::rc::Rc;

use super::sides::{Call, Input, Output, PAGEABLE, PINNED, borrow};
use crate::cublas::{Cublas, Real};
use crate::cublasxt::{CublasXt, Pinned};
use crate::cusolver::Cusolver;
use crate::gpu::problem::{Operands, Problem, Product};
use crate::measure::try_timed;
use crate::report::Report;

/// Orders of the blocks of cuBLASXt. The program times a product with each order and keeps the fastest.
const BLOCKS: [usize; 3] = [2048, 4096, 8192];

const CUBLASXT: &str = "cublasxt";

/// The kind of host memory, the name of the library, and the memory of the result with the call, or the reason why there is none.
pub type Attempt<'o, T> = (&'static str, &'static str, Result<(Output<'o, T>, Call<'o, T>), String>);

/// The two sides on which cuBLASXt multiplies matrices in pinned and in pageable host memory.
pub fn cublasxt<'o, T: Real>(cuda: &'o Cublas, operands: &'o Operands<T>, report: &mut Report) -> Vec<Attempt<'o, T>> {
    let pin = |data: &[T]| Pinned::new(cuda, data);
    let inputs = || operands.inputs().map(|data| Ok(Box::new(pin(data)?) as Input<'o, T>)).collect::<Result<Vec<_>, String>>();
    let pinned = inputs().and_then(|inputs| Ok((inputs, Box::new(pin(&operands.unwritten())?) as Output<'o, T>)));
    let in_pinned = pinned.and_then(|(inputs, result)| fastest(cuda, (PINNED, &[false]), operands, inputs, result, report));
    let (inputs, result) = (borrow(operands), Box::new(operands.unwritten()));
    let in_pageable = fastest(cuda, (PAGEABLE, &[false, true]), operands, inputs, result, report);
    vec![(PINNED, CUBLASXT, in_pinned), (PAGEABLE, CUBLASXT, in_pageable)]
}

/// Products of cuBLASXt with the fastest order of blocks and the fastest of the given pinning modes.
fn fastest<'o, T: Real>(
    cuda: &'o Cublas,
    (memory, modes): (&'static str, &[bool]),
    operands: &Operands<T>,
    inputs: Vec<Input<'o, T>>,
    mut result: Output<'o, T>,
    report: &mut Report,
) -> Result<(Output<'o, T>, Call<'o, T>), String> {
    let Problem::Product(Product { n, .. }) = operands.problem else { unreachable!("cuBLASXt computes products here") };
    let (name, size) = (operands.name(), format!("{} {memory}", operands.problem.size()));
    let xt = CublasXt::open(cuda)?;
    let mut best: Option<(f64, usize, bool)> = None;
    for (pins, block) in modes.iter().flat_map(|&pins| blocks(n).into_iter().map(move |block| (pins, block))) {
        // The first call with a block allocates memory.
        let mut call = || try_timed(|| xt.gemm(n, [&inputs[0], &inputs[1]], T::ZERO, &mut result));
        match xt.configure(block, pins).and_then(|()| call()).and_then(|_| call()) {
            Ok(seconds) => {
                let key = format!("{CUBLASXT}: ms with block {block}{}", if pins { ", pinned in each call" } else { "" });
                report.remark(&name, &size, &key, seconds * 1e3);
                best = best.filter(|best| best.0 <= seconds).or(Some((seconds, block, pins)));
            }
            Err(error) => println!("{name} {size}: {CUBLASXT} with block {block} is left out: {error}"),
        }
    }
    let (_, block, pins) = best.ok_or("no call succeeded")?;
    xt.configure(block, pins)?;
    report.remark(&name, &size, &format!("{CUBLASXT}: fastest block"), block as f64);
    report.remark(&name, &size, &format!("{CUBLASXT}: pinned in each call"), f64::from(u8::from(pins)));
    let call = move |beta, result: &mut [T]| {
        let seconds = try_timed(|| xt.gemm(n, [&inputs[0], &inputs[1]], beta, result))?;
        Ok((seconds, Vec::new()))
    };
    Ok((result, Box::new(call)))
}

/// The orders of the blocks that are tried for matrices of order n: those of [`BLOCKS`] that are at most n, or n itself.
fn blocks(n: usize) -> Vec<usize> {
    let fitting: Vec<usize> = BLOCKS.into_iter().filter(|&block| block <= n).collect();
    if fitting.is_empty() { vec![n] } else { fitting }
}

/// The side on which cuSOLVER factors a matrix in device memory, without transfers. Its times stand in the table of pinned memory.
pub fn getrf<'o, T: Real>(cusolver: &'o Cusolver<'o>, n: usize, operands: &'o Operands<T>) -> Vec<Attempt<'o, T>> {
    let side = || {
        let matrix = cusolver.prepare(n, &operands.a)?;
        let call = move |_, result: &mut [T]| {
            cusolver.restore(&matrix)?;
            let seconds = try_timed(|| cusolver.factor(&matrix))?;
            Ok((seconds, cusolver.read(&matrix, result)?))
        };
        Ok((Box::new(operands.unwritten()) as Output<'o, T>, Box::new(call) as Call<'o, T>))
    };
    vec![(PINNED, "cusolver resident", side())]
}

/// The two sides on which cuSOLVER solves systems: one with matrices in pinned host memory, one with matrices in pageable host memory. The time
/// of a call includes all transfers. The two sides use the same arrays in device memory, one after the other.
pub fn gesv<'o, T: Real>(cusolver: &'o Cusolver<'o>, n: usize, operands: &'o Operands<T>) -> Vec<Attempt<'o, T>> {
    let system = cusolver.prepare_system(n, &operands.a, &operands.b).map(Rc::new);
    let side = |result: Result<Output<'o, T>, String>| {
        let (result, system) = (result?, system.clone()?);
        let call = move |_, result: &mut [T]| {
            let mut pivots = Vec::new();
            let seconds = try_timed(|| cusolver.gesv(&system, result).map(|found| pivots = found))?;
            Ok((seconds, pivots))
        };
        Ok((result, Box::new(call) as Call<'o, T>))
    };
    let pinned = Pinned::new(cusolver.cuda(), &operands.unwritten()).map(|result| Box::new(result) as Output<'o, T>);
    vec![(PINNED, "cusolver", side(pinned)), (PAGEABLE, "cusolver", side(Ok(Box::new(operands.unwritten()))))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_fit_into_the_matrices() {
        assert_eq!([300, 4096, 16384].map(blocks), [vec![300], vec![2048, 4096], vec![2048, 4096, 8192]]);
    }
}
