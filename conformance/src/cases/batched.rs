//! Cases of batched routines: shapes, strides, and matrices in a buffer with canaries around each matrix.

use std::fmt;

use lapidary_core::{Batch, BatchMut, BatchShape, Layout, Op, Scalar};

use super::fill::canary;
use super::{Case, Fill, Rng, below};
use crate::oracle::Dense;

/// The description of one batch: sizes, storage and numbers of its matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchCase {
    /// Number of matrices in the batch.
    pub count: usize,
    /// Number of rows of each result, or of each matrix that is factored.
    pub m: usize,
    /// Number of columns of each result, or of each matrix that is factored.
    pub n: usize,
    /// Number of terms of each product, or number of right-hand sides of each system.
    pub k: usize,
    /// The operations on A (or on the factored matrix) and on B.
    pub ops: [Op; 2],
    /// Storage order of the elements of each matrix.
    pub layout: Layout,
    /// Number of unused elements between two columns (of a row-major matrix: rows), and between two matrices.
    pub gaps: [usize; 2],
    /// The kind of numbers in the matrices.
    pub fill: Fill,
    /// Seed of the numbers.
    pub seed: u64,
}

impl Case for BatchCase {
    fn flags(&self) -> String {
        format!("{}{}", self.ops[0], self.ops[1])
    }
    fn size(&self) -> usize {
        self.k.max(self.m).max(self.n)
    }
    fn simpler(&self) -> Vec<Self> {
        let fewer = below(self.count).map(|count| BatchCase { count, ..*self });
        let smaller = below(self.m).map(|m| BatchCase { m, n: self.n.min(m), k: self.k.min(m), ..*self });
        fewer.chain(smaller).collect()
    }
}

impl fmt::Display for BatchCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BatchCase { count, m, n, k, ops: [op_a, op_b], layout, gaps: [line, matrix], fill, seed } = self;
        write!(f, "batch count={count} m={m} n={n} k={k} ops={op_a}{op_b} {layout} gaps={line},{matrix} {fill} seed={seed}")
    }
}

/// Extents of small matrices: just below, at and just above the tiles of the kernels for small matrices.
pub const SIZES: [usize; 9] = [1, 2, 7, 16, 31, 32, 33, 64, 65];

impl BatchCase {
    /// The case of `count` square matrices of order n without gaps.
    #[must_use]
    pub fn square(n: usize, count: usize, seed: u64) -> Self {
        let (ops, layout) = ([Op::NoTrans; 2], Layout::ColMajor);
        BatchCase { count, m: n, n, k: n, ops, layout, gaps: [0; 2], fill: Fill::Uniform, seed }
    }

    /// One case for each size of [`SIZES`], whose other extents are drawn from [`SIZES`] too. Layouts and gaps alternate from case
    /// to case.
    #[must_use]
    pub fn of_sizes(seed: u64) -> Vec<Self> {
        let rng = &mut Rng::new(seed);
        let mut case = |(at, &m): (usize, &usize)| {
            let [n, k] = [0, 1].map(|_| SIZES[rng.below(SIZES.len())]);
            let op = |is_trans| if is_trans { Op::Trans } else { Op::NoTrans };
            let layout = if at % 3 == 2 { Layout::RowMajor } else { Layout::ColMajor };
            let gaps = [[0, 0], [3, 0], [0, 5], [2, 7]][at % 4];
            let ops = [op(rng.once_in(2)), op(rng.once_in(2))];
            BatchCase { m, n, k, ops, layout, gaps, ..BatchCase::square(m, 1 + rng.below(5), rng.bits()) }
        };
        SIZES.iter().enumerate().map(&mut case).collect()
    }

    /// Draws `count` matrices of the kind `self.fill`.
    #[must_use]
    pub fn matrices<T: Scalar>(&self, rows: usize, cols: usize, rng: &mut Rng) -> Vec<Dense> {
        (0..self.count).map(|_| self.fill.matrix::<T>(rows, cols, rng)).collect()
    }

    /// Stores the matrices in the layout and with the gaps of this case, in a new buffer.
    #[must_use]
    pub fn store<T: Scalar>(&self, matrices: &[Dense], (rows, cols): (usize, usize)) -> StoredBatch<T> {
        let BatchCase { count, layout, gaps: [line_gap, gap], .. } = *self;
        let (line, lines) = if layout == Layout::ColMajor { (rows, cols) } else { (cols, rows) };
        let ld = (line + line_gap).max(1);
        StoredBatch::new(matrices, BatchShape { rows, cols, layout, ld, stride: ld * lines + gap, count })
    }
}

/// A batch of matrices in one buffer. Every element of the buffer outside the matrices is a canary.
#[derive(Clone, Debug)]
pub struct StoredBatch<T> {
    data: Vec<T>,
    shape: BatchShape,
}

/// Number of canaries after the last matrix of a batch.
const TAIL: usize = 5;

impl<T: Scalar> StoredBatch<T> {
    fn new(matrices: &[Dense], shape: BatchShape) -> Self {
        let mut stored = StoredBatch { data: vec![canary(); shape.stride * shape.count + TAIL], shape };
        for (dense, mut matrix) in matrices.iter().zip(stored.view_mut().into_matrices()) {
            dense.elements().for_each(|((i, j), x)| matrix.set(i, j, T::from_f64(x)));
        }
        stored
    }

    /// The batch, for reading.
    ///
    /// # Panics
    /// `view` never panics, since the buffer holds all matrices.
    #[must_use]
    pub fn view(&self) -> Batch<'_, T> {
        Batch::new(&self.data, self.shape).expect("the buffer holds all matrices")
    }

    /// The batch, for writing.
    ///
    /// # Panics
    /// `view_mut` never panics, since the buffer holds all matrices and the matrices do not overlap.
    #[must_use]
    pub fn view_mut(&mut self) -> BatchMut<'_, T> {
        BatchMut::new(&mut self.data, self.shape).expect("the buffer holds all matrices")
    }

    /// A copy of matrix `i` in the form of the oracle.
    #[must_use]
    pub fn dense(&self, i: usize) -> Dense {
        Dense::from_view(self.view().get(i))
    }

    /// Index of the first canary that was overwritten. `None` if no canary was overwritten.
    #[must_use]
    pub fn damaged(&self) -> Option<usize> {
        let mut restored = self.clone();
        for mut matrix in restored.view_mut().into_matrices() {
            let (rows, cols) = matrix.shape();
            (0..cols).for_each(|j| (0..rows).for_each(|i| matrix.set(i, j, canary())));
        }
        let canary = canary::<T>().to_f64().to_bits();
        restored.data.iter().position(|x| x.to_f64().to_bits() != canary)
    }

    /// The first index at which the bits of this buffer differ from those of the buffer of `before`. `None` if all bits are equal.
    #[must_use]
    pub fn changed(&self, before: &Self) -> Option<usize> {
        let mut pairs = self.data.iter().zip(&before.data);
        pairs.position(|(now, before)| now.to_f64().to_bits() != before.to_f64().to_bits())
    }
}
