//! Conversion of a matrix to another element type, and the norms of the matrix, on several threads.

use std::mem::MaybeUninit;
use std::thread;

use lapidary_core::{Error, ErrorKind, Layout, MatMut, MatRef, Result, Scalar, copy_threads};

use super::OPERATION;

/// Number of elements from which a second thread takes part. One thread converts this number of elements in about the time that
/// the start of a thread takes.
const ELEMENTS_PER_THREAD: usize = 1 << 17;
/// Number of elements of a line that are added to sums of their own, so that the compiler can use vector instructions.
const ACCUMULATORS: usize = 8;

/// A packed copy of a matrix in another element type, and the norms of the matrix.
pub(super) struct Converted<T> {
    elements: Vec<T>,
    pub order: usize,
    layout: Layout,
    /// ‖A‖₁ of the original matrix.
    pub norm_one: f64,
    /// ‖A‖_∞ of the original matrix.
    pub norm_inf: f64,
    /// The largest magnitude of an element of the original matrix.
    pub largest: f64,
}

impl<T: Scalar> Converted<T> {
    /// Converts a square host matrix. The copy has the layout of the matrix. The norms are infinite or NaN if an element is.
    ///
    /// # Errors
    /// The operating system has too little memory for the copy.
    pub fn new(a: MatRef<'_, f64>) -> Result<Self> {
        let (n, mut elements) = (a.rows(), Vec::<T>::new());
        elements.try_reserve_exact(n * n).map_err(|source| {
            let message = format!("no memory for a copy of A in {}, of {n}×{n} elements", T::DTYPE);
            Error::new(ErrorKind::OutOfHostMemory, OPERATION, message).caused_by(source)
        })?;
        let lines_per_part = n.div_ceil(threads(n * n)).max(1);
        let parts = elements.spare_capacity_mut()[..n * n].chunks_mut(lines_per_part * n.max(1)).enumerate();
        let parts = parts.map(|(part, to)| (part * lines_per_part, to)).collect();
        let sums = in_parallel(parts, |(first, to): (usize, &mut [MaybeUninit<T>])| {
            let mut sums = Sums { along: Vec::with_capacity(to.len() / n), across: vec![0.0; n], largest: 0.0 };
            to.chunks_exact_mut(n).enumerate().for_each(|(i, to)| sums.convert(line(a, first + i), to));
            sums
        });
        // SAFETY: the parts cover the first n·n elements of the capacity, and `convert` has written each element of each part.
        unsafe { elements.set_len(n * n) };
        let along = sums.iter().flat_map(|sums| &sums.along).fold(0.0, larger);
        let across = (0..n).map(|i| sums.iter().map(|sums| sums.across[i]).sum()).fold(0.0, |most, sum: f64| larger(most, &sum));
        let largest = sums.iter().map(|sums| &sums.largest).fold(0.0, larger);
        let (norm_one, norm_inf) = match a.layout() {
            Layout::ColMajor => (along, across),
            Layout::RowMajor => (across, along),
        };
        Ok(Converted { elements, order: n, layout: a.layout(), norm_one, norm_inf, largest })
    }

    /// Whether all elements of the original matrix are finite.
    pub fn is_finite(&self) -> bool {
        // a sum of finite numbers may overflow, so a sum that is not finite is no proof
        self.largest.is_finite() && !self.norm_inf.is_nan()
    }

    /// Whether an element of the original matrix exceeds the range of the copy.
    pub fn overflows(&self) -> bool {
        !T::from_f64(self.largest).is_finite()
    }

    /// Returns a view of the copy for reading.
    pub fn view(&self) -> Result<MatRef<'_, T>> {
        MatRef::new(&self.elements, self.order, self.order, self.order.max(1), self.layout)
    }

    /// Returns a view of the copy for reading and writing.
    pub fn view_mut(&mut self) -> Result<MatMut<'_, T>> {
        MatMut::new(&mut self.elements, self.order, self.order, self.order.max(1), self.layout)
    }
}

/// Returns the larger number, or NaN if either number is NaN.
pub(super) fn larger(most: f64, value: &f64) -> f64 {
    if most.is_nan() || *value <= most { most } else { *value }
}

/// Sums of magnitudes over some lines of a matrix. A line is a column of a column-major matrix, or a row of a row-major matrix.
struct Sums {
    /// For each line, the sum of its magnitudes.
    along: Vec<f64>,
    /// For each position in a line, the sum of the magnitudes at this position.
    across: Vec<f64>,
    /// The largest magnitude. NaN does not count.
    largest: f64,
}

impl Sums {
    /// Converts a line and adds its magnitudes.
    fn convert<T: Scalar>(&mut self, from: &[f64], to: &mut [MaybeUninit<T>]) {
        let (mut sums, mut most) = ([0.0; ACCUMULATORS], [0.0; ACCUMULATORS]);
        let lines = from.chunks(ACCUMULATORS).zip(to.chunks_mut(ACCUMULATORS)).zip(self.across.chunks_mut(ACCUMULATORS));
        for ((from, to), across) in lines {
            for (lane, ((&value, to), across)) in from.iter().zip(to).zip(across).enumerate() {
                let size = value.abs();
                to.write(T::from_f64(value));
                *across += size;
                sums[lane] += size;
                most[lane] = if size > most[lane] { size } else { most[lane] };
            }
        }
        self.along.push(sums.iter().sum());
        self.largest = most.into_iter().fold(self.largest, f64::max);
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

/// Returns the number of threads for work on `elements` elements.
pub(super) fn threads(elements: usize) -> usize {
    copy_threads(elements / ELEMENTS_PER_THREAD)
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
