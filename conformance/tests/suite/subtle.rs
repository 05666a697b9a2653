//! Subjects whose products are right in most cases. Each subject has one fault.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::{Duration, Instant};

use lapidary_conformance::Subject;
use lapidary_core::{Gemm, Getrf, Getrs, Laswp, Result, Scalar, Trsm};

use crate::naive::{Naive, under};

/// The fault of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Products are computed by Strassen's algorithm, with seven products of blocks in place of eight. The error matrix has a small
    /// norm, but single elements have large errors.
    StrassenLike,
    /// If k exceeds 512, an index wraps and the last term is left out.
    RightBelow512,
    /// One element has an error that grows as k². Bound 1 allows this error up to k = 1024.
    GrowsAsSquare,
    /// If k exceeds 256, the last term is left out of the last column.
    StaleColumnBeyond256,
    /// Each term is rounded to f32. The rounded terms are summed in f64.
    SumsInSinglePrecision,
    /// If the columns of A lie more than 2^31 elements apart, the first column is read in place of all other columns.
    WrapsOffsets,
    /// The first element of C is too large by one if another call is running at the same time.
    Crowded,
    /// If C has more than 2^16 elements in memory, the columns after the 2^16th element are written over the first columns.
    WrapsIndices,
    /// If the result of the previous call contained a NaN, and k is no multiple of eight, the result of this call is NaN.
    KeepsNan,
}

/// A subject of plain loops, with a fault in products. The flag states whether the previous result contained a NaN. The numbers
/// count the calls that are running and all calls.
pub struct Subtle(pub Way, pub AtomicBool, AtomicUsize, AtomicUsize);

impl Subtle {
    /// Creates a subject with the fault `way`.
    pub fn new(way: Way) -> Self {
        Subtle(way, false.into(), 0.into(), 0.into())
    }

    /// Whether another call runs at the same time. The first call on this subject waits until a second call begins, so that calls
    /// overlap even on a busy computer. No later call waits.
    fn is_crowded(&self) -> bool {
        if self.0 != Way::Crowded {
            return false;
        }
        let (others, before) = (self.2.fetch_add(1, SeqCst), self.3.fetch_add(1, SeqCst));
        // in a program with a single thread no second call begins, so that the wait ends after 30 seconds
        let until = Instant::now() + Duration::from_secs(30);
        while before == 0 && self.3.load(SeqCst) < 2 && Instant::now() < until {
            std::thread::yield_now();
        }
        others > 0 || (before == 0 && self.3.load(SeqCst) > 1)
    }

    fn product<T: Scalar>(&self, x: &Square<T>, y: &Square<T>, k: usize) -> Square<T> {
        match self.0 {
            Way::StrassenLike if (k | x.rows | y.cols).is_multiple_of(2) => strassen(x, y),
            Way::RightBelow512 if k > 512 => x.times_first(y, k - 1),
            Way::SumsInSinglePrecision => x.times_in_single(y),
            Way::StaleColumnBeyond256 if k > 256 => {
                let (whole, short) = (x.times_first(y, k), x.times_first(y, k - 1));
                Square::new(x.rows, y.cols, |i, j| if j + 1 == y.cols { short.at(i, j) } else { whole.at(i, j) })
            }
            _ => x.times_first(y, k),
        }
    }
}

impl Subject for Subtle {
    fn name(&self) -> String {
        format!("{:?}", self.0)
    }
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        let crowded = self.is_crowded();
        let Gemm { alpha, op_a, a, op_b, b, beta, mut c } = args.check()?.into_inner();
        let (m, n, k) = (c.rows(), c.cols(), op_a.shape(a.shape()).1);
        let wraps = self.0 == Way::WrapsOffsets && a.ld() > 1 << 31;
        let x = Square::new(m, k, |i, p| under(&a, op_a, i, if wraps { 0 } else { p }));
        let y = Square::new(k, n, |p, j| under(&b, op_b, p, j));
        let product = if alpha == T::ZERO { Square::new(m, n, |_, _| T::ZERO) } else { self.product(&x, &y, k) };
        let mut seen = false;
        let (grows, square) = (self.0 == Way::GrowsAsSquare, (k * k) as f64 / 1024.0);
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let scaled = if alpha == T::ZERO { T::ZERO } else { alpha * product.at(i, j) };
            let value = scaled + if beta == T::ZERO { T::ZERO } else { beta * c.at(i, j) };
            let leaks = self.0 == Way::KeepsNan && self.1.load(Relaxed) && k % 8 != 0;
            let value = if grows && i + j == 0 { value * T::from_f64(1.0 + square * T::UNIT_ROUNDOFF) } else { value };
            seen |= value.to_f64().is_nan();
            let j = if self.0 == Way::WrapsIndices && j * m >= 1 << 16 { j - (1 << 16) / m } else { j };
            c.set(i, j, if leaks { T::from_f64(f64::NAN) } else { value });
        }
        if crowded && m * n > 0 {
            c.set(0, 0, c.at(0, 0) + T::ONE);
        }
        if self.0 == Way::Crowded {
            self.2.fetch_sub(1, SeqCst);
        }
        self.1.store(seen, Relaxed);
        Ok(())
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        Naive.trsm(args)
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        Naive.getrf(args)
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        Naive.getrs(args)
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        Naive.laswp(args)
    }
}

/// A matrix in column-major order.
struct Square<T> {
    rows: usize,
    cols: usize,
    data: Vec<T>,
}

impl<T: Scalar> Square<T> {
    fn new(rows: usize, cols: usize, f: impl Fn(usize, usize) -> T) -> Self {
        Square { rows, cols, data: (0..rows * cols).map(|e| f(e % rows, e / rows)).collect() }
    }

    fn at(&self, i: usize, j: usize) -> T {
        self.data[i + j * self.rows]
    }

    fn times_first(&self, other: &Self, k: usize) -> Self {
        Square::new(self.rows, other.cols, |i, j| (0..k).map(|p| self.at(i, p) * other.at(p, j)).sum())
    }

    fn times_in_single(&self, other: &Self) -> Self {
        let term = |i: usize, p: usize, j: usize| (self.at(i, p) * other.at(p, j)).to_f64() as f32;
        Square::new(self.rows, other.cols, |i, j| T::from_f64((0..self.cols).map(|p| f64::from(term(i, p, j))).sum()))
    }

    fn quarter(&self, (row, col): (usize, usize)) -> Self {
        let (rows, cols) = (self.rows / 2, self.cols / 2);
        Square::new(rows, cols, |i, j| self.at(i + row * rows, j + col * cols))
    }

    fn plus(&self, sign: T, other: &Self) -> Self {
        Square::new(self.rows, self.cols, |i, j| self.at(i, j) + sign * other.at(i, j))
    }
}

/// One level of Strassen's algorithm (1969), with plain products of the blocks.
fn strassen<T: Scalar>(x: &Square<T>, y: &Square<T>) -> Square<T> {
    let quarters = |a: &Square<T>| [(0, 0), (0, 1), (1, 0), (1, 1)].map(|at| a.quarter(at));
    let ([a11, a12, a21, a22], [b11, b12, b21, b22]) = (quarters(x), quarters(y));
    let times = |a: &Square<T>, b: &Square<T>| a.times_first(b, a.cols);
    let (one, minus) = (T::ONE, -T::ONE);
    let m1 = times(&a11.plus(one, &a22), &b11.plus(one, &b22));
    let m2 = times(&a21.plus(one, &a22), &b11);
    let m3 = times(&a11, &b12.plus(minus, &b22));
    let m4 = times(&a22, &b21.plus(minus, &b11));
    let m5 = times(&a11.plus(one, &a12), &b22);
    let m6 = times(&a21.plus(minus, &a11), &b11.plus(one, &b12));
    let m7 = times(&a12.plus(minus, &a22), &b21.plus(one, &b22));
    let c11 = m1.plus(one, &m4).plus(minus, &m5).plus(one, &m7);
    let c12 = m3.plus(one, &m5);
    let c21 = m2.plus(one, &m4);
    let c22 = m1.plus(minus, &m2).plus(one, &m3).plus(one, &m6);
    let (rows, cols) = (c11.rows, c11.cols);
    Square::new(x.rows, y.cols, |i, j| {
        let quarter = match (i < rows, j < cols) {
            (true, true) => &c11,
            (true, false) => &c12,
            (false, true) => &c21,
            (false, false) => &c22,
        };
        quarter.at(i % rows, j % cols)
    })
}
