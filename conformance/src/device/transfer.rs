//! Tests of transfers: rectangles of host memory must reach the device and come back, and no other memory may be written.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use lapidary_core::{BufferRect, Device, HostRect, Scalar};
use proptest::strategy::Strategy;

use crate::cases::storage::storage;
use crate::cases::{Case, Fill, Rng, Storage, Stored, below, packed};
use crate::memory_check::for_elements;
use crate::oracle::Dense;
use crate::properties::memory::{completed, read_only, surroundings};
use crate::suite::search;
use crate::trial::Evidence;
use crate::{Failure, Scope, Trial};

/// A rectangle of host memory that is written to a device and read back to another place in host memory.
#[derive(Clone, Copy)]
struct TransferCase {
    rows: usize,
    cols: usize,
    /// The storage in host memory of the rectangle that is written, its storage in the buffer of the device, which is column-major in any
    /// case, and the storage in host memory of the rectangle that is read back.
    storage: [Storage; 3],
    fill: Fill,
    seed: u64,
}

impl std::fmt::Display for TransferCase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let TransferCase { rows, cols, storage: [from, there, to], fill, seed } = self;
        write!(f, "transfer rows={rows} cols={cols} from:{from} device:{there} to:{to} {fill} seed={seed:#x}")
    }
}

impl std::fmt::Debug for TransferCase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Case for TransferCase {
    fn flags(&self) -> String {
        let letter = |storage: &Storage| if storage.layout == lapidary_core::Layout::ColMajor { "N" } else { "T" };
        self.storage.iter().map(letter).collect()
    }

    fn size(&self) -> usize {
        self.rows.max(self.cols)
    }

    fn simpler(&self) -> Vec<Self> {
        let case = *self;
        let rows = below(case.rows).filter(|&rows| rows > 0).map(|rows| TransferCase { rows, ..case });
        let cols = below(case.cols).filter(|&cols| cols > 0).map(|cols| TransferCase { cols, ..case });
        rows.chain(cols).chain(packed(case.storage).map(|storage| TransferCase { storage, ..case })).collect()
    }
}

fn cases(scope: &Scope, fill: Fill) -> impl Strategy<Value = TransferCase> + use<> {
    let storage = proptest::array::uniform3(storage());
    (scope.extents(), storage, crate::cases::seed()).prop_map(move |([rows, cols, _], storage, seed)| {
        // a rectangle without elements is never transferred
        TransferCase { rows: rows.max(1), cols: cols.max(1), storage, fill, seed }
    })
}

/// Tests transfers of rectangles of every shape, packed and with gaps. The rectangle may be read back in another layout.
///
/// # Errors
/// An element changed on the way, or host memory around the rectangle changed.
pub fn round_trip<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    search(trial.scope, cases(trial.scope, Fill::Uniform), |case| moved::<T>(trial, case))?;
    // the next rectangle is so large that a device may transfer it in pieces, unless a buffer of the device is too small for the
    // rectangle
    let large = trial.scope.large.iter().copied().max().unwrap_or(trial.scope.max);
    for_elements((2 * large + 1) * large)?;
    let room = trial.subject.facts().limits.buffer / size_of::<T>();
    let rows = (2 * large + 1).min(room / large);
    let storage = [(0, 1), (2, 0), (3, 0)].map(|skip| Storage { gap: 3, skip, ..Storage::default() });
    let case = TransferCase { rows, cols: large, storage, fill: Fill::Uniform, seed: trial.scope.seed };
    moved::<T>(trial, &case)
}

/// Tests that transfers keep the bits of NaN with a payload, infinity, zeros of either sign and subnormal numbers.
///
/// # Errors
/// A transfer changed a bit of a number.
pub fn bits<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    for fill in [Fill::Rising, Fill::NonFinite, Fill::Zeros, Fill::Payloads] {
        let scope = &trial.scope.part(8);
        search(scope, cases(scope, fill), |case| moved::<T>(trial, case))?;
    }
    Ok(())
}

/// Transfers the rectangle of a case. If the rectangle does not fit into a buffer of the device, the function transfers only as
/// many rows as fit.
fn moved<T: Scalar>(trial: &Trial<'_, dyn Device>, case: &TransferCase) -> Result<(), Failure> {
    let room = trial.subject.facts().limits.buffer / size_of::<T>();
    let Storage { gap, skip, .. } = case.storage[1];
    let rows = (room / (case.cols + skip.1)).saturating_sub(gap + skip.0).max(1);
    let case = &TransferCase { rows: case.rows.min(rows), ..*case };
    carried::<T>(trial.subject, case, &trial.case(case)).map_err(|failure| failure.in_case(case))
}

/// The value of the elements of the buffer that lie beside the transferred rectangle.
const AROUND: f64 = -0.75;

fn carried<T: Scalar>(device: &dyn Device, case: &TransferCase, seen: &Evidence<'_>) -> Result<(), Failure> {
    let TransferCase { rows, cols, storage: [from, Storage { gap, skip, .. }, to], .. } = *case;
    let data = case.fill.matrix::<T>(rows, cols, &mut Rng::new(case.seed));
    let mut source = Stored::<T>::new(&data, from);
    let (before, expected) = (source.clone(), Stored::<T>::new(&data, to));
    let mut target = Stored::<T>::new(&data.map(|_| 0.0), to);
    let done = |result| completed("transfer: completes", result);
    let ld = skip.0 + rows + gap;
    let offset = skip.0 + skip.1 * ld;
    // all elements of the buffer, as a column
    let length = ld * (skip.1 + cols);
    let mut whole =
        Stored::<T>::new(&Dense::from_fn(length, 1, |_, _| AROUND), Storage { skip: (1, 0), gap: 1, ..Storage::default() });
    let buffer = completed("transfer: completes", device.alloc(length * size_of::<T>()))?;
    let (there, all) = (BufferRect { buffer: &buffer, offset, ld }, BufferRect::packed(&buffer, length));
    // SAFETY: this function owns the matrices `source`, `target` and `whole` and the buffer, which has as many elements as `whole` and contains
    // the rectangle `there`. No other command uses them.
    unsafe {
        done(device.write(rect(&mut whole), all))?;
        done(device.write(rect(&mut source), there))?;
        done(device.read(there, rect(&mut target)))?;
        done(device.read(all, rect(&mut whole)))?;
    }
    read_only("the source", &before, &source)?;
    surroundings("the target", &target)?;
    let is_inside = |at: &usize| *at >= offset && (at - offset) % ld < rows;
    let changed = |at: &usize| whole.view().at(*at, 0) != T::from_f64(AROUND);
    if let Some(at) = (0..length).filter(|at| !is_inside(at)).find(changed) {
        return Err(Failure::new("transfer: surroundings", format!("element {at} of the device's buffer changed")));
    }
    let differs = |at| Err(Failure::new("transfer: elements", format!("element {at} of the host's buffer differs")));
    seen.exact("transfer: elements", target.changed(&expected).map_or(Ok(()), differs))
}

/// The host rectangle of a stored matrix.
fn rect<T: Scalar>(stored: &mut Stored<T>) -> HostRect {
    HostRect::whole(&stored.view_mut().raw())
}

/// Tests transfers of row indices, which form a column of 32-bit integers.
///
/// # Errors
/// A transfer changed an index.
pub fn indices(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    for rows in [1, 2, 63, 64, 65, 2 * trial.scope.max] {
        let seen = trial.ledger.evidence("", rows);
        let sent: Vec<i32> = (0..rows).map(|i| i32::try_from(i).expect("few rows") * 65_537 - 7).collect();
        let (mut from, mut to) = (sent.clone(), vec![0; rows]);
        let column = |data: &mut Vec<i32>| HostRect::packed(data, rows);
        let buffer = completed("transfer: completes", trial.subject.alloc(size_of_val(&sent[..])))?;
        // SAFETY: this function owns the arrays `from` and `to` and the buffer, which have the same size, and no other command uses
        // them.
        unsafe {
            completed("transfer: completes", trial.subject.write(column(&mut from), BufferRect::packed(&buffer, rows)))?;
            completed("transfer: completes", trial.subject.read(BufferRect::packed(&buffer, rows), column(&mut to)))?;
        }
        let differs =
            |i: usize| Err(Failure::new("transfer: elements", format!("index {i} of {rows} is {}, was {}", to[i], sent[i])));
        seen.exact("transfer: elements", (0..rows).find(|&i| sent[i] != to[i]).map_or(Ok(()), differs))?;
    }
    Ok(())
}
