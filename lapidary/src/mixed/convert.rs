//! Conversion of a matrix to another element type, and the norms of the matrix, on several threads.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::thread;

use lapidary_core::{Error, ErrorKind, Layout, MatMut, MatRef, Result, Scalar};

use super::{FallbackReason, OPERATION};
use crate::resident::DeviceMatrix;

/// Number of elements from which a second thread takes part. One thread converts this number of elements in about the time that
/// the start of a thread takes.
const ELEMENTS_PER_THREAD: usize = 1 << 17;
/// Number of elements of a line that are added to sums of their own, so that the compiler can use vector instructions.
const ACCUMULATORS: usize = 8;

/// Size in bytes of a strip of columns that a thread converts and then copies to a device. A strip of this size stays in the cache
/// between the two, and the device keeps pinned memory of this size for later calls.
pub(super) const STRIP_BYTES: usize = 1 << 20;

/// Norms of a matrix. They are infinite or NaN if an element is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Norms {
    pub order: usize,
    /// ‖A‖₁.
    pub one: f64,
    /// ‖A‖_∞.
    pub inf: f64,
    /// The largest magnitude of an element. NaN does not count.
    largest: f64,
}

impl Norms {
    /// Returns the norms of a matrix of order `order`. Each element of `sums` holds the sums of some columns, and together they hold all columns.
    fn of(order: usize, sums: &[Sums]) -> Self {
        let across = |row: usize| sums.iter().map(|sums| sums.rows[row]).sum();
        Norms {
            order,
            one: sums.iter().flat_map(|sums| &sums.cols).fold(0.0, larger),
            inf: (0..order).map(across).fold(0.0, |most, sum: f64| larger(most, &sum)),
            largest: sums.iter().map(|sums| &sums.largest).fold(0.0, larger),
        }
    }

    /// Returns the reason why the matrix has no copy with finite elements of type `T`, if there is such a reason.
    pub fn misfit<T: Scalar>(&self) -> Option<FallbackReason> {
        // a sum of finite numbers may overflow, so a sum that is not finite is no proof
        if !self.largest.is_finite() || self.inf.is_nan() {
            Some(FallbackReason::NotFinite)
        } else {
            (!T::from_f64(self.largest).is_finite()).then_some(FallbackReason::Overflow)
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
    /// Converts a square host matrix. The copy has the layout of the matrix.
    ///
    /// # Errors
    /// The operating system has too little memory for the copy.
    pub fn new(a: MatRef<'_, f64>) -> Result<Self> {
        let (n, layout, mut elements) = (a.rows(), a.layout(), Vec::<T>::new());
        elements.try_reserve_exact(n * n).map_err(|source| {
            let message = format!("no memory for a copy of A in {}, of {n}×{n} elements", T::DTYPE);
            Error::new(ErrorKind::OutOfHostMemory, OPERATION, message).caused_by(source)
        })?;
        // the rows of a row-major matrix are the columns of its transpose
        let lines = if layout == Layout::RowMajor { a.t() } else { a };
        let lines_per_part = lines_per_part(n);
        let parts = elements.spare_capacity_mut()[..n * n].chunks_mut(lines_per_part * n.max(1)).enumerate();
        let sums = in_parallel(parts.collect(), |(part, to): (usize, &mut [MaybeUninit<T>])| {
            let mut sums = Sums::new(n);
            sums.convert(lines, part * lines_per_part, to);
            sums
        });
        // SAFETY: the parts cover the first n·n elements of the capacity, and `convert` has written each element of each part.
        unsafe { elements.set_len(n * n) };
        let norms = Norms::of(n, &sums);
        let norms = if layout == Layout::RowMajor { Norms { one: norms.inf, inf: norms.one, ..norms } } else { norms };
        Ok(Converted { elements, layout, norms })
    }

    /// Returns a view of the copy for reading and writing.
    pub fn view_mut(&mut self) -> Result<MatMut<'_, T>> {
        let n = self.norms.order;
        MatMut::new(&mut self.elements, n, n, n.max(1), self.layout)
    }
}

/// Converts a square host matrix and copies it to the matrix `to` of a device. Each thread converts strips of columns of at most
/// `strip_bytes` bytes. While the copy of one thread's strip is under way, other threads convert theirs.
///
/// # Errors
/// The host has too little memory for a strip of each thread, or a copy failed.
pub(super) fn convert_to_device<T: Scalar>(a: MatRef<'_, f64>, to: &mut DeviceMatrix<T>, strip_bytes: usize) -> Result<Norms> {
    let (n, to) = (a.rows(), &*to);
    let cols_per_part = lines_per_part(n);
    let cols_per_strip = (strip_bytes / (n * size_of::<T>())).clamp(1, cols_per_part);
    let parts = (0..n).step_by(cols_per_part).map(|first| first..n.min(first + cols_per_part));
    let sums = in_parallel(parts.collect(), |cols: Range<usize>| -> Result<Sums> {
        let (mut sums, mut strip) = (Sums::new(n), to.transfer_memory(OPERATION, cols_per_strip * n)?);
        for first in cols.clone().step_by(cols_per_strip) {
            let count = cols_per_strip.min(cols.end - first);
            let strip = &mut strip[..count * n];
            sums.convert(a, first, as_uninit(strip));
            // SAFETY: `to` was borrowed mutably, and no other thread has these columns.
            unsafe { to.write_cols(first, MatRef::col_major(strip, n, count)?)? };
        }
        Ok(sums)
    });
    Ok(Norms::of(n, &sums.into_iter().collect::<Result<Vec<Sums>>>()?))
}

/// Returns elements as memory that may be written.
fn as_uninit<T: Scalar>(elements: &mut [T]) -> &mut [MaybeUninit<T>] {
    let (first, len) = (elements.as_mut_ptr().cast(), elements.len());
    // SAFETY: `MaybeUninit<T>` has the layout of `T`, and the slice borrows the elements mutably. Nothing but `Sums::convert` gets the
    // slice, which writes numbers only.
    unsafe { std::slice::from_raw_parts_mut(first, len) }
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
}

impl Sums {
    fn new(rows: usize) -> Self {
        Sums { cols: Vec::new(), rows: vec![0.0; rows], largest: 0.0 }
    }

    /// Converts columns of a matrix, from column `first` on, to columns without gaps that fill `to`. Adds their magnitudes.
    fn convert<T: Scalar>(&mut self, a: MatRef<'_, f64>, first: usize, to: &mut [MaybeUninit<T>]) {
        let n = a.rows();
        match a.layout() {
            Layout::ColMajor => to.chunks_exact_mut(n).enumerate().for_each(|(j, to)| self.convert_col(line(a, first + j), to)),
            Layout::RowMajor => self.convert_rows(a.sub(0..n, first..first + to.len() / n), to),
        }
    }

    /// Converts a column and adds its magnitudes.
    fn convert_col<T: Scalar>(&mut self, from: &[f64], to: &mut [MaybeUninit<T>]) {
        let mut lanes = Lanes { sums: [0.0; ACCUMULATORS], most: [0.0; ACCUMULATORS] };
        let ((from, last_from), (to, last_to)) = (from.as_chunks::<ACCUMULATORS>(), to.as_chunks_mut::<ACCUMULATORS>());
        let (rows, last_rows) = self.rows.as_chunks_mut::<ACCUMULATORS>();
        from.iter().zip(to).zip(rows).for_each(|((from, to), rows)| lanes.convert(from, to, rows));
        lanes.convert(last_from, last_to, last_rows);
        self.cols.push(lanes.sums.iter().sum());
        self.largest = lanes.most.into_iter().fold(self.largest, f64::max);
    }

    /// Converts a row-major matrix to columns without gaps, and adds its magnitudes.
    fn convert_rows<T: Scalar>(&mut self, a: MatRef<'_, f64>, to: &mut [MaybeUninit<T>]) {
        let (n, before) = (a.rows(), self.cols.len());
        self.cols.resize(before + a.cols(), 0.0);
        for (i, row) in self.rows.iter_mut().enumerate() {
            for (j, (&value, col)) in line(a, i).iter().zip(&mut self.cols[before..]).enumerate() {
                let size = value.abs();
                to[i + j * n].write(T::from_f64(value));
                *row += size;
                *col += size;
                self.largest = self.largest.max(size);
            }
        }
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
    fn convert<T: Scalar>(&mut self, from: &[f64], to: &mut [MaybeUninit<T>], rows: &mut [f64]) {
        let lanes = self.sums.iter_mut().zip(&mut self.most);
        for (((&value, to), row), (sum, most)) in from.iter().zip(to).zip(rows).zip(lanes) {
            let size = value.abs();
            to.write(T::from_f64(value));
            *row += size;
            *sum += size;
            *most = if size > *most { size } else { *most };
        }
    }
}

/// Returns a column of a column-major host matrix, or a row of a row-major one.
fn line<'a>(a: MatRef<'a, f64>, index: usize) -> &'a [f64] {
    let (part, len) = match a.layout() {
        Layout::ColMajor => (a.sub(0..a.rows(), index..index + 1), a.rows()),
        Layout::RowMajor => (a.sub(index..index + 1, 0..a.cols()), a.cols()),
    };
    let first = part.host_ptr().expect("A lies in host memory");
    // SAFETY: the `len` elements of a line lie side by side in the view `a`, which borrows them for 'a.
    unsafe { std::slice::from_raw_parts(first, len) }
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
