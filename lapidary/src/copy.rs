//! Copies of the factors of host matrices that devices keep for later solves.

use std::ops::Range;

use lapidary_core::algorithms::Problem;
use lapidary_core::{
    CopyInUse, Diag, Error, Gemm, Getrs, Home, MatMut, MatRef, MatrixId, Op, Outputs, Resident, Result, Routine, Scalar, Trsm,
    TrsmMode, Uplo,
};

use crate::machine::Machine;
use crate::price::{HostCall, Listener, Reason};

/// Maximum number of right-hand sides for which a solve uses parts of factors on several devices. The devices read all factors from their memory
/// for each right-hand side, and would otherwise load them once over a link, which is taken to be sixteen times slower.
const MAX_COLUMNS: usize = 16;

/// A copy, on devices, of factors that an `Lu` holds in host memory. A solve that uses the copy does not transfer the factors. The
/// devices free the copy if they need the memory for something else.
#[derive(Debug)]
pub(crate) struct DeviceCopy {
    machine: Machine,
    /// The columns of the factors, from left to right.
    parts: Vec<Part>,
}

/// Some columns of the factors, with all rows, in the memory of a device.
#[derive(Clone, Debug)]
struct Part {
    cols: Range<usize>,
    resident: Resident,
}

impl DeviceCopy {
    /// Keeps the columns of a square matrix of order `n` that `devices` held during the last run. Returns `None` unless the devices held all
    /// columns.
    pub fn keep(machine: &Machine, devices: &[usize], matrix: MatrixId, n: usize) -> Option<Self> {
        let of_device = |&device: &usize| {
            let kept = machine.runtimes()[device].keep_copies(matrix);
            kept.into_iter().map(move |(cols, key)| Part { cols, resident: Resident { device, key } })
        };
        let mut parts: Vec<Part> = devices.iter().flat_map(of_device).collect();
        parts.sort_by_key(|part| part.cols.start);
        let ends: Vec<usize> = parts.iter().map(|part| part.cols.end).collect();
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let is_whole = ends.last() == Some(&n) && parts.iter().zip(starts).all(|(part, start)| part.cols.start == start);
        let copy = DeviceCopy { machine: machine.clone(), parts };
        is_whole.then_some(copy)
    }

    /// Solves a system as [`Machine::solve_with_pivots`] does, but reads the factors from this copy. Returns `None` in these cases: a device
    /// has freed its part of the copy; B lies on another device; the copy has several parts, and B lies on a device or has more than
    /// [`MAX_COLUMNS`] columns; a device runs out of memory or is lost while B is unchanged.
    pub fn solve<T: Scalar>(&self, problem: &Problem, args: &mut Getrs<'_, T>) -> Option<Result<()>> {
        let reaches_b = match (args.b.as_ref().raw().home, &self.parts[..]) {
            (Home::Host(_), parts) => parts.len() == 1 || args.b.cols() <= MAX_COLUMNS,
            (Home::Device(of_b), [part]) => of_b.device == part.resident.device,
            (Home::Device(_), _) => false,
        };
        let mut devices: Vec<usize> = self.parts.iter().map(|part| part.resident.device).collect();
        devices.sort_unstable();
        devices.dedup();
        // A planned call counts idle copies as free memory, so a solve must not begin to use a copy while such a call holds the
        // lock.
        let exclusive = self.machine.exclusive(&devices);
        let in_use = |part: &Part| self.machine.runtimes()[part.resident.device].use_copy(part.resident.key);
        let _in_use: Vec<CopyInUse<'_>> = self.parts.iter().map(in_use).collect::<Option<_>>().filter(|_| reaches_b)?;
        drop(exclusive);
        if let Some(Listener(tell)) = self.machine.listener() {
            let call = HostCall { machine: &self.machine, problem, memory: &[], capable: &devices };
            tell(&self.machine.explanation(&call, Reason::Resident, None));
        }
        // SAFETY: `_in_use` prevents the devices from freeing the copy until this function returns.
        let solved = unsafe {
            match &self.parts[..] {
                [part] => self.machine.solve_with_pivots(Getrs { lu: self.factors(part), b: args.b.reborrow(), ..*args }, None),
                _ => {
                    let solved = self.solve_by_parts(args);
                    solved.map_err(|error| error.with_outputs(Outputs::Unchanged).in_call(Routine::Getrs.name()))
                }
            }
        };
        let can_use_host_factors = |error: &Error| error.kind().is_recoverable_elsewhere() && error.is_untouched();
        if solved.as_ref().is_err_and(can_use_host_factors) { None } else { Some(solved) }
    }

    /// The columns of a part, in the memory of its device.
    ///
    /// # Safety
    /// The caller must keep a [`CopyInUse`] of the part as long as it uses the result, so that the device does not free the part. The factors
    /// must have elements of the type `T`.
    unsafe fn factors<T: Scalar>(&self, part: &Part) -> MatRef<'_, T> {
        let n = self.parts.last().map_or(0, |part| part.cols.end);
        // SAFETY: the part has all rows of the matrix, the caller prevents the device from freeing it, and no call writes a copy of factors.
        unsafe { MatRef::resident(part.resident, n, part.cols.len()) }
    }

    /// Solves for one column of B after the other. B changes at the end only.
    ///
    /// # Safety
    /// The caller must keep a [`CopyInUse`] of every part until the method returns, so that no device frees its part. The factors must have
    /// elements of the type `T`.
    unsafe fn solve_by_parts<T: Scalar>(&self, args: &mut Getrs<'_, T>) -> Result<()> {
        let (n, nrhs) = args.b.shape();
        let is_transposed = args.op.is_trans();
        // row i of P⁻¹·B is row `rows[i]` of B
        let mut rows: Vec<usize> = (0..n).collect();
        args.ipiv.iter().enumerate().for_each(|(i, &with)| rows.swap(i, usize::try_from(with).expect("checked pivots are rows")));
        let row_of = |i: usize, exchanges: bool| if exchanges { rows[i] } else { i };
        let mut columns = Vec::with_capacity(nrhs);
        for j in 0..nrhs {
            let mut x: Vec<T> = (0..n).map(|i| args.b.at(row_of(i, !is_transposed), j)).collect();
            // SAFETY: the caller fulfils the contract of this method, which is that of `solve_column`.
            unsafe { self.solve_column(args.op, args.mode, &mut x)? };
            columns.push(x);
        }
        for (j, x) in columns.into_iter().enumerate() {
            x.into_iter().enumerate().for_each(|(i, element)| args.b.set(row_of(i, is_transposed), j, element));
        }
        Ok(())
    }

    /// Solves op(L·U)·x = b for one column. The method goes through the parts of a triangle, and copies the column to the device of each part.
    ///
    /// For L·U, the device solves for the unknowns of its part with the diagonal block, and then eliminates them from the other equations. For
    /// (L·U)ᵀ, the device first eliminates the unknowns of the parts before it, since the columns of its part are rows of the transposed triangle.
    ///
    /// # Safety
    /// The caller must keep a [`CopyInUse`] of every part until the method returns, so that no device frees its part. The factors must have
    /// elements of the type `T`.
    unsafe fn solve_column<T: Scalar>(&self, op: Op, mode: TrsmMode, x: &mut [T]) -> Result<()> {
        let n = x.len();
        let [first, second] = if op.is_trans() { [Uplo::Upper, Uplo::Lower] } else { [Uplo::Lower, Uplo::Upper] };
        let forward = self.parts.iter().map(|part| (first, part));
        for (uplo, part) in forward.chain(self.parts.iter().rev().map(|part| (second, part))) {
            // SAFETY: the caller fulfils the contract of this method, which includes that of `factors`.
            let factors = unsafe { self.factors::<T>(part) };
            let (own, all) = (part.cols.clone(), 0..part.cols.len());
            // the unknowns of the part, and those that belong to the rows of the triangle beside its diagonal block
            let (unknowns, others, beside, diag) = match uplo {
                Uplo::Lower => {
                    let (upto, below) = x.split_at_mut(own.end);
                    (&mut upto[own.start..], below, own.end..n, Diag::Unit)
                }
                Uplo::Upper => {
                    let (above, from) = x.split_at_mut(own.start);
                    (&mut from[..all.len()], above, 0..own.start, Diag::NonUnit)
                }
            };
            let (beside, triangle) = (factors.sub(beside, all.clone()), factors.sub(own, all));
            let [mut unknowns, mut others] = [column(unknowns)?, column(others)?];
            if op.is_trans() {
                let known = Gemm::new(beside, others.as_ref(), unknowns.reborrow()).trans_a();
                self.machine.gemm(known.alpha(-T::ONE).beta(T::ONE))?;
            }
            let solve = Trsm::new(triangle, unknowns.reborrow()).uplo(uplo).diag(diag).op(op).mode(mode);
            self.machine.trsm(solve)?;
            if !op.is_trans() {
                let eliminated = Gemm::new(beside, unknowns.as_ref(), others.reborrow());
                self.machine.gemm(eliminated.alpha(-T::ONE).beta(T::ONE))?;
            }
        }
        Ok(())
    }
}

fn column<T: Scalar>(elements: &mut [T]) -> Result<MatMut<'_, T>> {
    let rows = elements.len();
    MatMut::col_major(elements, rows, 1)
}

#[cfg(test)]
impl DeviceCopy {
    /// Whether the devices still have the copy.
    pub fn is_kept(&self) -> bool {
        let is_there = |part: &Part| self.machine.runtimes()[part.resident.device].is_copy(part.resident.key);
        self.parts.iter().all(is_there)
    }
}

impl Drop for DeviceCopy {
    fn drop(&mut self) {
        let discard = |part: &Part| self.machine.runtimes()[part.resident.device].discard_copy(part.resident.key);
        self.parts.iter().for_each(discard);
    }
}

#[cfg(test)]
mod tests;
