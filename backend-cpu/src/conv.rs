//! From the core's operands to tiles, and from its element type to a concrete one.

use lapidary_core::{HostRect, Instruction, Memory, Op, Operand, Scalar};

use crate::buffer::Buffer;
use crate::tile::Tile;

/// The operand as a tile of elements `T`.
///
/// # Safety
/// The operand lies in its memory, which holds elements of type `T`.
#[inline]
pub(crate) unsafe fn tile<T: Copy>(operand: Operand<'_, Buffer>) -> Tile<T> {
    let base: *mut T = match operand.memory {
        Memory::Host(base) => base.as_ptr().cast(),
        Memory::Buffer(buffer) => buffer.start(),
    };
    // wrapping: an empty operand may lie anywhere
    let origin = base.wrapping_add(operand.offset);
    // SAFETY: as the caller promises.
    unsafe { Tile::new(origin, operand.rows, operand.cols, operand.ld) }
}

/// The same instruction for the concrete type `U`, which `T` is.
#[inline]
pub(crate) fn concrete<'a, T: Scalar, U: Scalar>(
    instruction: &Instruction<T, Operand<'a, Buffer>>,
) -> Instruction<U, Operand<'a, Buffer>> {
    assert_eq!(T::DTYPE, U::DTYPE, "both are the same type");
    // SAFETY: equal `DTYPE`s describe the same plain representation.
    instruction.map_scalars(|value| unsafe { std::mem::transmute_copy(&value) })
}

/// A host rectangle as a tile, and how it stands in the rectangle: one of its
/// strides is 1.
///
/// # Safety
/// The rectangle lies in memory that may be accessed.
pub(crate) unsafe fn host_tile<T: Copy>(rect: HostRect<T>) -> (Tile<T>, Op) {
    let HostRect { origin, row_stride, col_stride, rows, cols } = rect;
    // SAFETY: as the caller promises.
    unsafe {
        if row_stride == 1 {
            (Tile::new(origin, rows, cols, col_stride), Op::NoTrans)
        } else {
            (Tile::new(origin, cols, rows, row_stride), Op::Trans)
        }
    }
}
