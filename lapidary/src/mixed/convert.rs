//! Conversion of a matrix to another element type, and the norms of the matrix, on several threads.

use std::mem::MaybeUninit;
use std::thread;

use lapidary_core::{Error, ErrorKind, Layout, MatMut, MatRef, Result, Scalar};

use super::{FallbackReason, OPERATION};
use crate::equilibrate::{exponent, times_power};

/// Number of elements from which a second thread takes part. One thread converts this number of elements in about the time that
/// the start of a thread takes.
const ELEMENTS_PER_THREAD: usize = 1 << 17;
/// Number of elements of a line that are added to sums of their own, so that the compiler can use vector instructions.
const ACCUMULATORS: usize = 8;

/// Maximum number of columns, or of rows of a row-major matrix, in which [`power_for_f32`] searches the largest magnitude.
const SAMPLED_LINES: usize = 64;
/// Exponent of the largest magnitude of a scaled copy. Half precision, in which a device may multiply, has a range up to 2^16, and elements of U
/// may be larger than those of A.
const COPY_EXPONENT: i32 = 3;
/// Exponents of the powers of two that scale matrices and right-hand sides lie in this range, so that each power is a normal number.
pub(super) const MAX_EXPONENT: i32 = 1000;

/// Norms of a matrix, and the scale of its copy. The norms are infinite or NaN if an element is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Norms {
    pub order: usize,
    /// ‖A‖₁.
    pub one: f64,
    /// ‖A‖_∞.
    pub inf: f64,
    /// The largest magnitude of an element. NaN does not count.
    largest: f64,
    /// The copy is 2^power·A.
    pub power: i32,
}

impl Norms {
    /// Computes the norms of a square host matrix A. The copy is 2^power·A.
    pub fn new(a: MatRef<'_, f64>, power: i32) -> Self {
        let (n, lines) = (a.rows(), columns_in_memory(a));
        let part = lines_per_part(n);
        let sums = in_parallel((0..n).step_by(part).collect(), |first| {
            let (mut sums, mut line) = (Sums::new(n, power), vec![MaybeUninit::<f32>::uninit(); n]);
            (first..n.min(first + part)).for_each(|index| sums.convert(lines, index, &mut line));
            sums
        });
        Norms::of(n, power, &sums).of_layout(a.layout())
    }

    /// Returns the norms of a matrix with the layout `layout`, if `self` are those of [`columns_in_memory`] of this matrix.
    fn of_layout(self, layout: Layout) -> Self {
        if layout == Layout::RowMajor { Norms { one: self.inf, inf: self.one, ..self } } else { self }
    }

    /// Returns the norms of a matrix of order `order`, whose copy is 2^power·A. Each element of `sums` holds the sums of some columns, and
    /// together they hold all columns.
    fn of(order: usize, power: i32, sums: &[Sums]) -> Self {
        let across = |row: usize| sums.iter().map(|sums| sums.rows[row]).sum();
        Norms {
            order,
            one: sums.iter().flat_map(|sums| &sums.cols).fold(0.0, larger),
            inf: (0..order).map(across).fold(0.0, |most, sum: f64| larger(most, &sum)),
            largest: sums.iter().map(|sums| &sums.largest).fold(0.0, larger),
            power,
        }
    }

    /// Returns the reason why the matrix has no copy with finite elements of type `T`, if there is such a reason.
    pub fn misfit<T: Scalar>(&self) -> Option<FallbackReason> {
        // a sum of finite numbers may overflow, so a sum that is not finite is no proof
        if !self.largest.is_finite() || self.inf.is_nan() {
            Some(FallbackReason::NotFinite)
        } else {
            (!T::from_f64(times_power(self.largest, self.power)).is_finite()).then_some(FallbackReason::Overflow)
        }
    }
}

/// A packed copy of a matrix in another element type, and the norms of the matrix.
pub(super) struct Converted<T> {
    elements: Vec<T>,
    layout: Layout,
    /// Norms of the original matrix.
    pub norms: Norms,
}

impl<T: Scalar> Converted<T> {
    /// Converts 2^power·A for a square host matrix A. The copy has the layout of A.
    ///
    /// # Errors
    /// The operating system has too little memory for the copy.
    pub fn new(a: MatRef<'_, f64>, power: i32) -> Result<Self> {
        let (n, layout, mut elements) = (a.rows(), a.layout(), Vec::<T>::new());
        elements.try_reserve_exact(n * n).map_err(|source| {
            let message = format!("no memory for a copy of A in {}, of {n}×{n} elements", T::DTYPE);
            Error::new(ErrorKind::OutOfHostMemory, OPERATION, message).caused_by(source)
        })?;
        let lines = columns_in_memory(a);
        let lines_per_part = lines_per_part(n);
        let parts = elements.spare_capacity_mut()[..n * n].chunks_mut(lines_per_part * n.max(1)).enumerate();
        let sums = in_parallel(parts.collect(), |(part, to): (usize, &mut [MaybeUninit<T>])| {
            let mut sums = Sums::new(n, power);
            sums.convert(lines, part * lines_per_part, to);
            sums
        });
        // SAFETY: the parts cover the first n·n elements of the capacity, and `convert` has written each element of each part.
        unsafe { elements.set_len(n * n) };
        Ok(Converted { elements, layout, norms: Norms::of(n, power, &sums).of_layout(layout) })
    }

    /// Returns a view of the copy for reading and writing.
    pub fn view_mut(&mut self) -> Result<MatMut<'_, T>> {
        let n = self.norms.order;
        MatMut::new(&mut self.elements, n, n, n.max(1), self.layout)
    }
}

/// Returns the power with which the largest magnitude of 2^power·A has the exponent [`COPY_EXPONENT`], for a copy of A in `f32`. The function
/// searches some columns or rows only. If another element is much larger, the device computes its products more slowly, or the system is
/// solved in `f64`. The solution is accurate in both cases.
pub(super) fn power_for_f32(a: MatRef<'_, f64>) -> i32 {
    let (lines, step) = (columns_in_memory(a), a.rows().div_ceil(SAMPLED_LINES).max(1));
    let sampled = (0..a.rows()).step_by(step).flat_map(|index| column(lines, index));
    let largest = sampled.map(|value| value.abs()).filter(|size| size.is_finite()).fold(0.0, f64::max);
    exponent(largest).map_or(0, |largest| (COPY_EXPONENT - largest).clamp(-MAX_EXPONENT, MAX_EXPONENT))
}

/// Returns a matrix whose columns are contiguous: A, or its transpose if A is row-major.
fn columns_in_memory(a: MatRef<'_, f64>) -> MatRef<'_, f64> {
    if a.layout() == Layout::RowMajor { a.t() } else { a }
}

/// Returns the larger number, or NaN if either number is NaN.
pub(super) fn larger(most: f64, value: &f64) -> f64 {
    if most.is_nan() || *value <= most { most } else { *value }
}

/// Sums of magnitudes over some columns of a matrix.
struct Sums {
    /// For each of the columns, the sum of its magnitudes.
    cols: Vec<f64>,
    /// For each row, the sum of the magnitudes of its elements in these columns.
    rows: Vec<f64>,
    /// The largest magnitude. NaN does not count.
    largest: f64,
    /// The power of two that scales the copy.
    scale: f64,
}

impl Sums {
    fn new(rows: usize, power: i32) -> Self {
        Sums { cols: Vec::new(), rows: vec![0.0; rows], largest: 0.0, scale: times_power(1.0, power) }
    }

    /// Converts columns of a column-major matrix, from column `first` on, to columns without gaps that fill `to`. Adds their magnitudes.
    fn convert<T: Scalar>(&mut self, a: MatRef<'_, f64>, first: usize, to: &mut [MaybeUninit<T>]) {
        to.chunks_exact_mut(a.rows()).enumerate().for_each(|(j, to)| self.convert_col(column(a, first + j), to));
    }

    /// Converts a column and adds its magnitudes.
    fn convert_col<T: Scalar>(&mut self, from: &[f64], to: &mut [MaybeUninit<T>]) {
        let mut lanes = Lanes { sums: [0.0; ACCUMULATORS], most: [0.0; ACCUMULATORS] };
        let ((from, last_from), (to, last_to)) = (from.as_chunks::<ACCUMULATORS>(), to.as_chunks_mut::<ACCUMULATORS>());
        let scale = self.scale;
        let (rows, last_rows) = self.rows.as_chunks_mut::<ACCUMULATORS>();
        from.iter().zip(to).zip(rows).for_each(|((from, to), rows)| lanes.convert(scale, from, to, rows));
        lanes.convert(scale, last_from, last_to, last_rows);
        self.cols.push(lanes.sums.iter().sum());
        self.largest = lanes.most.into_iter().fold(self.largest, f64::max);
    }
}

/// Sums and largest magnitudes of the elements of a column. Elements at distances of [`ACCUMULATORS`] belong to the same lane.
struct Lanes {
    sums: [f64; ACCUMULATORS],
    most: [f64; ACCUMULATORS],
}

impl Lanes {
    /// Converts at most [`ACCUMULATORS`] elements of a column, and adds their magnitudes to the lanes and to the sums of their rows.
    #[inline(always)]
    fn convert<T: Scalar>(&mut self, scale: f64, from: &[f64], to: &mut [MaybeUninit<T>], rows: &mut [f64]) {
        let lanes = self.sums.iter_mut().zip(&mut self.most);
        for (((&value, to), row), (sum, most)) in from.iter().zip(to).zip(rows).zip(lanes) {
            let size = value.abs();
            to.write(T::from_f64(value * scale));
            *row += size;
            *sum += size;
            *most = if size > *most { size } else { *most };
        }
    }
}

/// Returns a column of a column-major host matrix.
fn column<'a>(a: MatRef<'a, f64>, index: usize) -> &'a [f64] {
    debug_assert_eq!(a.layout(), Layout::ColMajor);
    let first = a.sub(0..a.rows(), index..index + 1).host_ptr().expect("A lies in host memory");
    // SAFETY: the elements of a column lie side by side in the view `a`, which borrows them for 'a.
    unsafe { std::slice::from_raw_parts(first, a.rows()) }
}

/// Returns the number of columns or rows of a matrix of order `n` that each thread converts.
fn lines_per_part(n: usize) -> usize {
    n.div_ceil(threads(n * n)).max(1)
}

/// Returns the number of threads for work on `elements` elements.
pub(super) fn threads(elements: usize) -> usize {
    let most = elements / ELEMENTS_PER_THREAD;
    // the operating system is not asked about small matrices
    if most < 2 { 1 } else { thread::available_parallelism().map_or(1, |processors| most.min(processors.get())) }
}

/// Calls `f` for each part, each call on a thread of its own, and returns the results in the order of the parts. The calling
/// thread takes the first part.
pub(super) fn in_parallel<I: Send, R: Send>(parts: Vec<I>, f: impl Fn(I) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let mut parts = parts.into_iter();
        let first = parts.next();
        let others: Vec<_> = parts.map(|part| scope.spawn(|| f(part))).collect();
        let first = first.map(&f);
        let join = |thread: thread::ScopedJoinHandle<'_, R>| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        first.into_iter().chain(others.into_iter().map(join)).collect()
    })
}
