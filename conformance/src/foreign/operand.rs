//! Converts operands to the form of the BLAS interfaces.

use lapidary_core::{Error, ErrorKind, Layout, MatMut, MatRef, Op, Result, Routine, Scalar};

use super::integer::{Integer, int};

/// A matrix in host memory: the address of its first element, and its leading dimension.
pub(super) struct Operand<P, I> {
    pub at: P,
    pub ld: I,
}

/// Returns address and leading dimension of a matrix that the routine reads.
pub(super) fn input<T: Scalar, I: Integer>(routine: Routine, ld: &str, a: &MatRef<'_, T>) -> Result<Operand<*const T, I>> {
    let at = a.host_ptr().ok_or_else(|| on_device(routine))?;
    Ok(Operand { at: at.cast_const(), ld: int(routine, ld, a.ld())? })
}

/// Returns address and leading dimension of a matrix that the routine writes.
pub(super) fn output<T: Scalar, I: Integer>(routine: Routine, ld: &str, a: &mut MatMut<'_, T>) -> Result<Operand<*mut T, I>> {
    let at = a.host_ptr().ok_or_else(|| on_device(routine))?;
    Ok(Operand { at, ld: int(routine, ld, a.ld())? })
}

fn on_device(routine: Routine) -> Error {
    Error::new(ErrorKind::Unsupported, routine.name(), "the library takes matrices in host memory only")
}

/// Expresses `op(A)` as an operation on a matrix of the given layout in the same memory.
pub(super) fn in_layout<T: Scalar>(layout: Layout, op: Op, a: MatRef<'_, T>) -> (Op, MatRef<'_, T>) {
    if a.layout() == layout { (op, a) } else { (op.flip(), a.t()) }
}

/// A copy of a matrix, with its columns side by side in memory.
struct Columns<T> {
    data: Vec<T>,
    shape: (usize, usize),
}

impl<T: Scalar> Columns<T> {
    fn new(a: &MatRef<'_, T>) -> Self {
        let (rows, cols) = a.shape();
        let data = (0..cols).flat_map(|j| (0..rows).map(move |i| a.at(i, j))).collect();
        Columns { data, shape: (rows, cols) }
    }
}

/// Calls `act` with a column-major matrix: with `a` itself if `a` is column-major, else with a copy of `a`.
pub(super) fn with_columns<T: Scalar, R>(a: MatRef<'_, T>, act: impl FnOnce(MatRef<'_, T>) -> Result<R>) -> Result<R> {
    if a.layout() == Layout::ColMajor {
        return act(a);
    }
    let Columns { data, shape: (rows, cols) } = Columns::new(&a);
    act(MatRef::col_major(&data, rows, cols)?)
}

/// Calls `act` as [`with_columns`] does. If `act` worked on a copy, the function stores the copy back into `a`.
pub(super) fn with_columns_mut<T: Scalar, R>(mut a: MatMut<'_, T>, act: impl FnOnce(MatMut<'_, T>) -> Result<R>) -> Result<R> {
    if a.layout() == Layout::ColMajor {
        return act(a);
    }
    let Columns { mut data, shape: (rows, cols) } = Columns::new(&a.as_ref());
    let result = act(MatMut::col_major(&mut data, rows, cols)?)?;
    let copy = MatRef::col_major(&data, rows, cols)?;
    for j in 0..cols {
        for i in 0..rows {
            a.set(i, j, copy.at(i, j));
        }
    }
    Ok(result)
}
