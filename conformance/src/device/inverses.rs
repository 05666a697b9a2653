//! Tests of triangular solves that may invert blocks on the diagonal, with blocks that have no accurate inverse.

use std::ops::Range;

use lapidary_core::{DType, Device, Diag, Instruction, Op, Scalar, Side, TrsmMode, Uplo, Value};

use super::launches::Launches;
use crate::bounds::{self, real};
use crate::cases::trsm::System;
use crate::failure::ratio;
use crate::oracle::Dense;
use crate::oracle::product::product;
use crate::oracle::residual::{linear, triangle};
use crate::{Failure, Trial};

/// What is wrong with a block on the diagonal of a triangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// The elements beside the diagonal are larger than the diagonal, so that the inverse grows exponentially with the order.
    Steep,
    /// The elements beside the diagonal are minus the diagonal, as in Wilkinson's matrix.
    Wilkinson,
    /// The rows have scales from 2^-20 to 2^20. With a unit diagonal the block has no flaw.
    Graded,
    /// The columns have scales from 2^-20 to 2^20. Such a block has an accurate inverse, and with a unit diagonal the columns have one scale.
    GradedColumns,
    /// A pivot is zero. With a unit diagonal the block has no flaw.
    Zero,
    /// A pivot is subnormal, and so is its right-hand side. In `f32`, where a device may flush, and with a unit diagonal the block has no
    /// flaw.
    Subnormal,
    /// An element beside the diagonal is NaN.
    Nan,
    /// An element beside the diagonal is infinite.
    Infinite,
    /// All elements of the triangle are near overflow. With a unit diagonal the block has no flaw.
    Huge,
}

impl Flaw {
    /// The kinds of blocks in tests of residuals.
    const ALL: [Flaw; 8] =
        [Flaw::Steep, Flaw::Wilkinson, Flaw::Graded, Flaw::Zero, Flaw::Subnormal, Flaw::Nan, Flaw::Infinite, Flaw::Huge];
}

/// Side, triangle, operation and diagonal.
type Flags = (Side, Uplo, Op, Diag);

fn all_flags() -> impl Iterator<Item = Flags> {
    (0..16).map(|bits| {
        let is_set = |bit: u32| bits >> bit & 1 == 1;
        let side = if is_set(0) { Side::Right } else { Side::Left };
        let uplo = if is_set(1) { Uplo::Upper } else { Uplo::Lower };
        let op = if is_set(2) { Op::Trans } else { Op::NoTrans };
        (side, uplo, op, if is_set(3) { Diag::Unit } else { Diag::NonUnit })
    })
}

/// Whether the triangle E of the system `E·X = F` that a call solves is the transpose of A.
fn transposes((side, _, op, _): Flags) -> bool {
    op.is_trans() != (side == Side::Right)
}

/// The triangle of E that has its elements.
fn triangle_of_system(flags: Flags) -> Uplo {
    if transposes(flags) { flags.1.flip() } else { flags.1 }
}

/// Tests solves in the mode [`TrsmMode::Inverted`] with blocks of 32 rows, some of which have no accurate inverse (bound 7).
///
/// # Errors
/// A result is wrong, or an element outside the operands was written.
pub fn ill_conditioned<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    with_blocks_of::<T>(trial, 77, 32, usize::MAX)
}

/// Tests solves with triangles of order `n`. In each triangle, one block of `order` rows on the diagonal has a flaw: the first, the second or
/// the last block. In some triangles all blocks have the flaw. The test computes at most `most` combinations of flags and flaws, each with
/// other flags than the one before.
pub(super) fn with_blocks_of<T: Scalar>(trial: &Trial<'_, dyn Device>, n: usize, order: usize, most: usize) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    let block = |first: usize| first * order..n.min((first + 1) * order);
    let places = [block(0), block(1), block((n - 1) / order), 0..n];
    // 16 cases have all flags, and 128 cases all combinations of flags and flaws
    let flaws = Flaw::ALL.iter().cycle();
    let cases = (0..Flaw::ALL.len()).flat_map(|turn| all_flags().zip(flaws.clone().skip(turn)));
    for (count, (flags, &flaw)) in cases.enumerate().take(most) {
        // 16 cases, or 4 of them, meet each place equally often
        let place = (count / 16 + count / 4 + count) % places.len();
        let nrhs = [1, 9][(count / 16 + count / 8) % 2];
        let e = flawed::<T>(&mut on, n, flags, (flaw, &places[place]));
        let mut system = with_solution::<T>(&mut on, e, nrhs);
        if let (Flaw::Subnormal, Diag::NonUnit, DType::F64) = (flaw, flags.3, T::DTYPE) {
            (0..nrhs).for_each(|j| system.f.set(middle(&places[place]), j, T::MIN_POSITIVE / 2.0));
        }
        let x = solve::<T>(&on, flags, &system)?;
        judge::<T>(&on, flags, &system, &x).map_err(|failure| {
            let (side, uplo, op, diag) = flags;
            let what = format!("{side}{uplo}{op}{diag} n={n} nrhs={nrhs} {flaw:?} in {:?}", places[place]);
            Failure { detail: format!("{what}: {}", failure.detail), ..failure }
        })?;
    }
    Ok(())
}

fn middle(place: &Range<usize>) -> usize {
    place.start.midpoint(place.end)
}

/// Draws a triangle E with a flaw in the rows and columns `place`.
fn flawed<T: Scalar>(on: &mut Launches<'_>, n: usize, flags: Flags, (flaw, place): (Flaw, &Range<usize>)) -> Dense {
    let (diag, uplo) = (flags.3, triangle_of_system(flags));
    let drawn = on.uniform::<T>(n, n);
    let scales = on.uniform::<T>(n, 1);
    let has_pivots = diag == Diag::NonUnit;
    let (last, first) = (place.end - 1, place.start);
    let odd = if uplo == Uplo::Lower { (last, first) } else { (first, last) };
    let has_odd = place.len() > 1;
    let element = |i: usize, j: usize| {
        let x = if i == j { 1.5 + drawn.at(i, j) / 2.0 } else { drawn.at(i, j) / real(n).sqrt() };
        if flaw == Flaw::Huge && has_pivots {
            return x * if T::DTYPE == DType::F64 { 1010.0_f64.exp2() } else { 120.0_f64.exp2() };
        }
        if !place.contains(&i) || !place.contains(&j) {
            return x;
        }
        match flaw {
            Flaw::Steep if i == j => 1.0,
            Flaw::Steep => 4.0 * drawn.at(i, j),
            Flaw::Wilkinson if i == j => 1.0,
            Flaw::Wilkinson => -1.0,
            Flaw::Graded if has_pivots => x * (20.0 * scales.at(i, 0)).round().exp2(),
            Flaw::GradedColumns if has_pivots => x * (20.0 * scales.at(j, 0)).round().exp2(),
            Flaw::Zero if i == j && i == middle(place) => 0.0,
            Flaw::Subnormal if has_pivots && T::DTYPE == DType::F64 && i == middle(place) => {
                if i == j {
                    T::MIN_POSITIVE / 8.0
                } else {
                    0.0
                }
            }
            Flaw::Nan if has_odd && (i, j) == odd => f64::NAN,
            Flaw::Infinite if has_odd && (i, j) == odd => f64::INFINITY,
            _ => x,
        }
    };
    let e = Dense::from_fn(n, n, element).map(|x| T::from_f64(x).to_f64());
    let mut e = triangle(&e, uplo, diag);
    // the equation of a subnormal pivot has no other terms, also outside of the block
    if flaw == Flaw::Subnormal && has_pivots && T::DTYPE == DType::F64 {
        (0..n).filter(|&j| j != middle(place)).for_each(|j| e.set(middle(place), j, 0.0));
    }
    e
}

/// Returns the system with E whose exact solution is a matrix of uniform random numbers, up to the rounding of F.
fn with_solution<T: Scalar>(on: &mut Launches<'_>, e: Dense, nrhs: usize) -> System {
    let x = on.uniform::<T>(e.rows(), nrhs);
    let finite = e.map(|x| if x.is_finite() { x } else { 1.0 });
    let zero = Dense::from_fn(e.rows(), nrhs, |_, _| 0.0);
    let f = product::<T>(1.0, &finite, &x, 0.0, &zero).rounded().map(|x| T::from_f64(x).to_f64());
    System { e, f }
}

/// Solves a system. The elements of A that the instruction must not read are NaN.
fn solve<T: Scalar>(on: &Launches<'_>, flags: Flags, System { e, f }: &System) -> Result<Dense, Failure> {
    let (side, uplo, op, diag) = flags;
    let a = if transposes(flags) { e.t() } else { e.clone() };
    let is_read = |i: usize, j: usize| match uplo {
        _ if i == j => diag == Diag::NonUnit,
        Uplo::Lower => i > j,
        Uplo::Upper => i < j,
    };
    let a = Dense::from_fn(a.rows(), a.cols(), |i, j| if is_read(i, j) { a.at(i, j) } else { f64::NAN });
    let to_side = |b: &Dense| if side == Side::Left { b.clone() } else { b.t() };
    let (mode, alpha) = (TrsmMode::Inverted, Value::new(T::DTYPE, 1.0));
    let x = on.run::<T, 2>([&a, &to_side(f)], |[a, b]| Instruction::Trsm { mode, side, uplo, op, diag, alpha, a, b })?;
    Ok(to_side(&x))
}

/// Checks that the solution meets bound 7 norm-wise, or if it is not finite, that a NaN stays in its right-hand side.
fn judge<T: Scalar>(on: &Launches<'_>, flags: Flags, system: &System, x: &Dense) -> Result<(), Failure> {
    let plain = system.solve::<T>(1.0, triangle_of_system(flags));
    let lost = plain.elements().find(|&((i, j), plain)| !plain.is_finite() && x.at(i, j).is_finite());
    if let Some((at, plain)) = lost {
        return Err(Failure::new("program: trsm spread", format!("{plain} has disappeared")).at(at));
    }
    let is_clean = |a: &Dense, j: usize| a.column(j).iter().all(|x| x.is_finite());
    if let Some(j) = (0..x.cols()).find(|&j| is_clean(&plain, j) && !is_clean(x, j)) {
        return Err(Failure::new("program: trsm spread", "NaN or ∞ in a right-hand side without any").at((0, j)));
    }
    if !plain.is_finite() {
        return Ok(());
    }
    let (side, uplo, op, diag) = flags;
    let n = system.e.rows();
    let residual = linear::<T>(&system.e, x, 1.0, &system.f).rounded().norm_one();
    let ratio = ratio(residual, system.e.norm_one() * x.norm_one());
    on.seen(format!("{side}{uplo}{op}{diag}"), n).within("program: trsm inverted", bounds::trsm_inverted::<T>(n), ratio)
}

/// Compares the solutions of single blocks with substitution, bit by bit: all elements beside the blocks are zero. Blocks with a flaw must
/// be substituted, and other blocks must not.
pub(super) fn choice(trial: &Trial<'_, dyn Device>, n: usize, order: usize) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    let flaws = [
        (Flaw::Steep, [false, true]),
        (Flaw::Graded, [false, true]),
        (Flaw::GradedColumns, [false, false]),
        (Flaw::Subnormal, [false, true]),
        (Flaw::Huge, [true, true]),
    ];
    for (flags, (flaw, expected)) in all_flags().flat_map(|flags| flaws.map(|flaw| (flags, flaw))) {
        if flaw != Flaw::Steep && flags.3 == Diag::Unit {
            continue;
        }
        let second = order..n.min(2 * order);
        let e = flawed::<f64>(&mut on, n, flags, (flaw, &second));
        let e = Dense::from_fn(n, n, |i, j| if i / order == j / order { e.at(i, j) } else { 0.0 });
        let mut system = System { f: on.uniform::<f64>(n, 5), e };
        if flaw == Flaw::Subnormal {
            // a pivot whose reciprocal is finite, and alone in its column
            (0..n).for_each(|i| system.e.set(i, middle(&second), 0.0));
            system.e.set(middle(&second), middle(&second), f64::MIN_POSITIVE / 2.0);
            (0..5).for_each(|j| system.f.set(middle(&second), j, f64::MIN_POSITIVE));
        }
        let x = solve::<f64>(&on, flags, &system)?;
        // the language of a device may leave open whether a sum of a product is rounded once
        let ways = [true, false].map(|is_fused| substitute(&system, triangle_of_system(flags), is_fused));
        #[allow(clippy::float_cmp, reason = "the bits are compared")]
        let is_substituted =
            |rows: Range<usize>| ways.iter().any(|way| rows.clone().all(|i| (0..5).all(|j| x.at(i, j) == way.at(i, j))));
        let found = [is_substituted(0..order), is_substituted(second)];
        if found != expected {
            let (side, uplo, op, diag) = flags;
            let what = format!("{side}{uplo}{op}{diag} n={n} {flaw:?}: substituted blocks: {found:?}, expected {expected:?}");
            return Err(Failure::new("program: trsm choice", what));
        }
    }
    Ok(())
}

/// Solves a system by substitution. `is_fused` states whether the sum of an element and a product is rounded once.
fn substitute(System { e, f }: &System, uplo: Uplo, is_fused: bool) -> Dense {
    let (n, mut x) = (e.rows(), f.clone());
    let sum = |a: f64, b: f64, c: f64| if is_fused { a.mul_add(b, c) } else { a * b + c };
    for (j, step) in (0..f.cols()).flat_map(|j| (0..n).map(move |step| (j, step))) {
        let (k, later) = if uplo == Uplo::Lower { (step, step + 1..n) } else { (n - 1 - step, 0..n - 1 - step) };
        x.set(k, j, x.at(k, j) / e.at(k, k));
        later.for_each(|i| x.set(i, j, sum(-e.at(i, k), x.at(k, j), x.at(i, j))));
    }
    x
}
