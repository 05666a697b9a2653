//! Pivots in the memory of a device.

use lapidary_core::algorithms::getrf;
use lapidary_core::{DType, Error, Home, Layout, MatMut, RawMat, Resident, Result, Routine, Scalar, StreamCall};

use crate::host::HostVec;
use crate::machine::Machine;
use crate::stream::places::Named;
use crate::stream::{ReadingPivots, Stream, elements, shared};

/// The pivots and the info of a factorisation in the memory of a device.
#[derive(Debug)]
pub struct DevicePivots {
    machine: Machine,
    /// A column of `i32`: info, then the pivots.
    resident: Resident,
    /// Size of the memory in bytes.
    size: usize,
    count: usize,
    /// Number of rows of the matrix that was factored; `None` before the first factorisation.
    rows: Option<usize>,
    /// Each pivot in the memory is less than `bound` or is zero, even if a call failed.
    bound: usize,
}

impl DevicePivots {
    /// Number of pivots.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of rows of the matrix that was factored.
    ///
    /// # Errors
    /// No call has written the pivots yet.
    pub(super) fn factored_rows(&self, operation: &'static str) -> Result<usize> {
        self.rows.ok_or_else(|| Error::invalid(operation, "`pivots` belong to no factorisation yet"))
    }

    fn part(&self, offset: usize, rows: usize) -> RawMat {
        RawMat {
            home: Home::Device(self.resident),
            offset,
            rows,
            cols: 1,
            ld: rows.max(1),
            layout: Layout::ColMajor,
            dtype: DType::I32,
        }
    }

    /// The pivots as the operand of a call.
    pub(super) fn named(&self) -> Named {
        ("`pivots`", self.ipiv())
    }

    fn info(&self) -> RawMat {
        self.part(0, 1)
    }

    pub(super) fn ipiv(&self) -> RawMat {
        self.part(1, self.count)
    }
}

impl Drop for DevicePivots {
    fn drop(&mut self) {
        self.machine.runtimes()[self.resident.device].discard_pivots(self.resident.key, self.size);
    }
}

impl Machine {
    /// Allocates memory for `count` pivots on the device with the index `device`. [`Stream::getrf_into`] and [`Stream::write_pivots`]
    /// write pivots.
    ///
    /// ```
    /// use lapidary::{Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (stream, mut a) = (machine.stream(0)?, machine.zeros_on::<f64>(0, 3, 2)?);
    /// let mut pivots = machine.pivots_on(0, 2)?; // min(m, n)
    /// for _ in 0..3 {
    ///     stream.write(vec![0.0, 4.0, 2.0, 1.0, 1.0, 1.0], &mut a)?;
    ///     stream.getrf_into(a.view_mut(), &mut pivots)?; // allocates nothing
    /// }
    /// assert_eq!(stream.read_pivots(&pivots)?.wait()?.0, [1, 1]);
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// There is no device with this index, or the device has no memory left.
    pub fn pivots_on(&self, device: usize, count: usize) -> Result<DevicePivots> {
        self.check_index("pivots_on", device)?;
        self.new_pivots("pivots_on", device, count)
    }

    /// Allocates pivots for the call `operation`.
    fn new_pivots(&self, operation: &'static str, device: usize, count: usize) -> Result<DevicePivots> {
        let resident = Resident::new(device);
        let bytes = count.checked_add(1).and_then(|length| length.checked_mul(DType::I32.size()));
        let bytes = bytes.ok_or_else(|| Error::invalid(operation, format!("{count} pivots overflow the address space")))?;
        let allocated = self.allocate_by(operation, device, bytes, || self.runtimes()[device].allocate_pivots(resident.key, bytes));
        let size = allocated.map_err(|error| error.with("memory", format!("{count} pivots")))?;
        let pivots = DevicePivots { machine: self.clone(), resident, size, count, rows: None, bound: 0 };
        // zeros are row indices of every matrix
        let column = HostVec::<i32>::zeros(std::slice::from_ref(&self.runtimes()[device]), operation, count + 1)?;
        let zeros = StreamCall::Write { from: elements(&shared(column)), to: resident.key };
        self.fill(device, operation, &zeros)?;
        Ok(pivots)
    }
}

#[allow(clippy::needless_pass_by_value, reason = "a call takes views, as the calls of `Machine` do")]
impl Stream {
    /// Enqueues the factorisation `A = P·L·U` in place, and returns its pivots and info, which stay on the device.
    ///
    /// ```
    /// use lapidary::{Machine, Select};
    /// let machine = Machine::open(&Select::all())?;
    /// let (stream, mut a) = (machine.stream(0)?, machine.zeros_on::<f64>(0, 2, 2)?);
    /// stream.write(vec![0.0, 4.0, 2.0, 1.0], &mut a)?; // column-major
    /// let pivots = stream.getrf(a.view_mut())?;
    /// let (lu, told) = (stream.read(&a)?, stream.read_pivots(&pivots)?);
    /// assert_eq!(*lu.wait()?, [4.0, 0.0, 1.0, 2.0]);
    /// let (ipiv, info) = told.wait()?;
    /// assert_eq!((&ipiv[..], info.get()), (&[1, 1][..], 0));
    /// # Ok::<(), lapidary::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Stream::gemm`], A is a transposed view, or the device has no memory left for the pivots.
    pub fn getrf<T: Scalar>(&self, a: MatMut<'_, T>) -> Result<DevicePivots> {
        let operation = Routine::Getrf.name();
        self.check_factored(&a)?;
        let mut pivots = self.machine.new_pivots(operation, self.device, a.rows().min(a.cols()))?;
        self.getrf_into(a, &mut pivots)?;
        Ok(pivots)
    }

    /// Enqueues the factorisation `A = P·L·U` in place, with `pivots` of min(m, n) elements. [`Machine::pivots_on`] has an example.
    ///
    /// # Errors
    /// The errors of [`Stream::getrf`], or `pivots` has another number of elements.
    pub fn getrf_into<T: Scalar>(&self, a: MatMut<'_, T>, pivots: &mut DevicePivots) -> Result<()> {
        let operation = Routine::Getrf.name();
        let (m, n) = a.shape();
        self.check_factored(&a)?;
        if pivots.count != m.min(n) {
            return Err(Error::invalid(operation, format!("`pivots` holds {} elements, min(m, n) is {}", pivots.count, m.min(n))));
        }
        if i32::try_from(m).is_err() {
            return Err(Error::invalid(operation, format!("m = {m} exceeds the range of pivots")));
        }
        self.check_places(operation, &[pivots.named()])?;
        self.prepare(operation, pivots, m)?;
        let memory = [a.raw(), pivots.ipiv(), pivots.info()];
        let problem = getrf::Problem::pivoted((m, n), a.layout(), T::DTYPE);
        let zero = StreamCall::Write { from: elements(&shared(vec![0_i32].into())), to: pivots.resident.key };
        let instruction = [problem.instruction([0, 1, 2])];
        let factor = StreamCall::Run { instructions: &instruction[..problem.order().min(1)], memory: &memory };
        // SAFETY: the matrix and the pivots lie on this device, have the sizes that the instruction needs, and are borrowed mutably. The
        // first element of the pivots' memory is info, an `i32`.
        unsafe { self.runtime().enqueue(&self.state, operation, &[zero, factor])? };
        pivots.rows = Some(m);
        Ok(())
    }

    /// Checks the matrix of a factorisation.
    fn check_factored<T: Scalar>(&self, a: &MatMut<'_, T>) -> Result<()> {
        let (operation, operands) = (Routine::Getrf.name(), [("A", a.raw())]);
        self.check_operands(operation, T::DTYPE, &operands)?;
        Self::check_untransposed(operation, &operands)
    }

    /// Prepares pivots for a matrix of `rows` rows, for the call `operation`. If their memory may hold larger row indices, they get new
    /// memory, because kernels do not check row indices and a failed call may leave old ones. The arguments of the call have been checked.
    pub(super) fn prepare(&self, operation: &'static str, pivots: &mut DevicePivots, rows: usize) -> Result<()> {
        // a call that the stream refuses leaves the pivots as they are
        self.state.failure()?;
        if rows < pivots.bound {
            *pivots = self.machine.new_pivots(operation, self.device, pivots.count)?;
        }
        (pivots.rows, pivots.bound) = (None, rows);
        Ok(())
    }

    /// Enqueues the copy of pivots from host memory, which a factorisation of a matrix of `rows` rows has computed. Info becomes 0.
    /// [`Stream::laswp`] has an example.
    ///
    /// # Errors
    /// `ipiv` has another length than `pivots`, an element of `ipiv` is no row index, `pivots` do not lie on the device of the stream,
    /// or an earlier call failed.
    pub fn write_pivots(&self, ipiv: &[i32], rows: usize, pivots: &mut DevicePivots) -> Result<()> {
        let operation = "write_pivots";
        if ipiv.len() != pivots.count {
            let message = format!("`ipiv` holds {} elements, `pivots` hold {}", ipiv.len(), pivots.count);
            return Err(Error::invalid(operation, message));
        }
        if let Some(i) = ipiv.iter().position(|&row| usize::try_from(row).map_or(true, |row| row >= rows)) {
            return Err(Error::invalid(operation, format!("ipiv[{i}] = {} is no row of {rows}", ipiv[i])));
        }
        self.check_places(operation, &[pivots.named()])?;
        self.prepare(operation, pivots, rows)?;
        let column: Vec<i32> = std::iter::once(0).chain(ipiv.iter().copied()).collect();
        let part = StreamCall::Write { from: self.source(column.into()), to: pivots.resident.key };
        // SAFETY: `pivots` lie on this device and have as many elements as the column, which only the device accesses.
        unsafe { self.runtime().enqueue(&self.state, operation, &[part])? };
        pivots.rows = Some(rows);
        Ok(())
    }

    /// Enqueues the copy of pivots and info to host memory, and returns a future of them. [`Stream::getrf`] has an example.
    ///
    /// # Errors
    /// The pivots belong to no factorisation yet or do not lie on the device of the stream, or an earlier call failed.
    pub fn read_pivots(&self, pivots: &DevicePivots) -> Result<ReadingPivots> {
        pivots.factored_rows("read_pivots")?;
        self.check_places("read_pivots", &[pivots.named()])?;
        let column = self.zeros("read_pivots", pivots.count + 1)?;
        self.enqueue_read("read_pivots", pivots.resident.key, column).map(ReadingPivots::new)
    }
}
