//! Batches: shapes, strides, and operands in buffers whose every other element is a canary.

use std::fmt;

use lapidary_core::{Batch, BatchMut, BatchShape, Layout, Op, Scalar};

use super::fill::canary;
use super::{Case, Fill, Rng, below};
use crate::oracle::Dense;

/// A batch: sizes, how matrices are stored, what is in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchCase {
    /// Number of matrices.
    pub count: usize,
    /// Rows of a result.
    pub m: usize,
    /// Columns of a result, or of a matrix that is factored.
    pub n: usize,
    /// Terms of a product, or right-hand sides.
    pub k: usize,
    /// How A, or the factors, and B enter.
    pub ops: [Op; 2],
    /// How elements of a matrix follow one another.
    pub layout: Layout,
    /// Elements between lines, and between matrices.
    pub gaps: [usize; 2],
    /// What is in the matrices.
    pub fill: Fill,
    /// The seed of the numbers.
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

/// Orders around the tiles of kernels for small matrices.
pub const SIZES: [usize; 9] = [1, 2, 7, 16, 31, 32, 33, 64, 65];

impl BatchCase {
    /// `count` square problems of order n without gaps.
    #[must_use]
    pub fn square(n: usize, count: usize, seed: u64) -> Self {
        let (ops, layout) = ([Op::NoTrans; 2], Layout::ColMajor);
        BatchCase { count, m: n, n, k: n, ops, layout, gaps: [0; 2], fill: Fill::Uniform, seed }
    }

    /// A case of each size, with other extents beside it and every kind of storage in turn.
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

    /// `count` matrices of the case's numbers.
    #[must_use]
    pub fn matrices<T: Scalar>(&self, rows: usize, cols: usize, rng: &mut Rng) -> Vec<Dense> {
        (0..self.count).map(|_| self.fill.matrix::<T>(rows, cols, rng)).collect()
    }

    /// Such matrices as the case stores them.
    #[must_use]
    pub fn store<T: Scalar>(&self, matrices: &[Dense], (rows, cols): (usize, usize)) -> StoredBatch<T> {
        let BatchCase { count, layout, gaps: [line_gap, gap], .. } = *self;
        let (line, lines) = if layout == Layout::ColMajor { (rows, cols) } else { (cols, rows) };
        let ld = (line + line_gap).max(1);
        StoredBatch::new(matrices, BatchShape { rows, cols, layout, ld, stride: ld * lines + gap, count })
    }
}

/// A batch in a buffer whose every other element is a canary.
#[derive(Clone, Debug)]
pub struct StoredBatch<T> {
    data: Vec<T>,
    shape: BatchShape,
}

/// Canaries behind the last matrix.
const TAIL: usize = 5;

impl<T: Scalar> StoredBatch<T> {
    fn new(matrices: &[Dense], shape: BatchShape) -> Self {
        let mut stored = StoredBatch { data: vec![canary(); shape.stride * shape.count + TAIL], shape };
        for (dense, mut matrix) in matrices.iter().zip(stored.view_mut().into_matrices()) {
            dense.elements().for_each(|((i, j), x)| matrix.set(i, j, T::from_f64(x)));
        }
        stored
    }

    /// The matrices, for reading.
    ///
    /// # Panics
    /// Never: the buffer is large enough.
    #[must_use]
    pub fn view(&self) -> Batch<'_, T> {
        Batch::new(&self.data, self.shape).expect("the buffer holds all matrices")
    }

    /// The matrices, for writing.
    ///
    /// # Panics
    /// Never: the buffer is large enough, and matrices do not overlap.
    #[must_use]
    pub fn view_mut(&mut self) -> BatchMut<'_, T> {
        BatchMut::new(&mut self.data, self.shape).expect("the buffer holds all matrices")
    }

    /// The elements of matrix i.
    #[must_use]
    pub fn dense(&self, i: usize) -> Dense {
        Dense::from_view(self.view().get(i))
    }

    /// The first place outside the matrices that is not a canary any more.
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

    /// The first place where the bits of the buffer differ from `before`.
    #[must_use]
    pub fn changed(&self, before: &Self) -> Option<usize> {
        let mut pairs = self.data.iter().zip(&before.data);
        pairs.position(|(now, before)| now.to_f64().to_bits() != before.to_f64().to_bits())
    }
}
