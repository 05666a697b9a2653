//! Tests transfers and instructions on a buffer with so many elements that 32-bit indices overflow.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use lapidary_core::{
    BufferRect, DType, Device, DeviceBuffer, Diag, Element, HostRect, Instruction, Op, Operand, Scalar, Side, Swaps, TrsmMode,
    Uplo, Value,
};

use crate::properties::large::{Large, ROWS, TERMS, bytes};
use crate::properties::memory::completed;
use crate::{Failure, Trial};

/// Tests a product, row exchanges and a triangular solve on a matrix of more than
/// [`Scope::elements`](crate::Scope::elements) elements in one buffer.
///
/// # Errors
/// An element of the result differs, or a command fails.
pub fn one_buffer<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let (device, bytes) = (trial.subject, bytes::<T>(trial.scope.elements));
    let facts = device.facts();
    let limit = facts.memory.map_or(facts.limits.buffer, |memory| memory.min(facts.limits.buffer));
    if limit < bytes {
        return trial.skip(format!("it takes a buffer of {bytes} bytes, and {} gives at most {limit}", facts.name));
    }
    let mut large = match Large::<T>::new(trial.scope.elements) {
        Ok(large) => large,
        Err(why) => return trial.skip(why),
    };
    let seen = trial.ledger.evidence("NN", large.cols);
    let Large { c, a, b, triangle, swaps, cols } = &mut large;
    let (there, a, b) = (upload(device, c)?, upload(device, a)?, upload(device, b)?);
    let (triangle, ipiv) = (upload(device, triangle)?, upload(device, swaps)?);
    let launch = |instruction: &Instruction<Operand<'_>>| {
        // SAFETY: the operands lie in buffers that this function allocated, and it runs one command at a time.
        done(unsafe { device.launch(instruction) })
    };
    let whole = |buffer, rows, cols| Operand::packed(buffer, rows, cols, T::DTYPE);
    let (factor, c_there) = (Value::new(T::DTYPE, 1.0), whole(&there, ROWS, *cols));
    let (left, right) = (whole(&a, ROWS, TERMS), whole(&b, TERMS, *cols));
    let (op_a, op_b) = (Op::NoTrans, Op::NoTrans);
    launch(&Instruction::Gemm { alpha: factor, op_a, a: left, op_b, b: right, beta: factor, c: c_there })?;
    let in_order = Swaps { side: Side::Left, forward: true, first_row: 0 };
    launch(&Instruction::Laswp { swaps: in_order, a: c_there, ipiv: Operand::packed(&ipiv, ROWS, 1, DType::I32) })?;
    let (mode, side, uplo, op, diag) = (TrsmMode::Substitution, Side::Left, Uplo::Lower, Op::NoTrans, Diag::NonUnit);
    launch(&Instruction::Trsm { mode, side, uplo, op, diag, alpha: factor, a: whole(&triangle, ROWS, ROWS), b: c_there })?;
    // an element that `read` leaves unwritten stays zero, so that the check of C fails
    c.fill(T::ZERO);
    // SAFETY: this function owns `c` and the buffer, both have the same size, and all launched instructions have ended.
    done(unsafe { device.read(BufferRect::packed(&there, ROWS), rect(c)) })?;
    seen.exact("large: exact integers", large.verify())
}

fn done<R>(result: lapidary_core::Result<R>) -> Result<R, Failure> {
    completed("large: completes", result)
}

fn upload<E: Element>(device: &dyn Device, data: &mut [E]) -> Result<DeviceBuffer, Failure> {
    let buffer = done(device.alloc(size_of_val(data)))?;
    // SAFETY: the caller lends `data` exclusively. The buffer is new, has the size of `data`, and no other command uses it.
    done(unsafe { device.write(rect(data), BufferRect::packed(&buffer, rect(data).rows)) })?;
    Ok(buffer)
}

/// The elements of `data` as a host rectangle. If their number is a multiple of [`ROWS`], the rectangle has [`ROWS`] rows, so that
/// no extent needs more than 32 bits.
fn rect<E: Element>(data: &mut [E]) -> HostRect {
    let rows = if data.len().is_multiple_of(ROWS) { ROWS } else { data.len() };
    HostRect::packed(data, rows)
}
