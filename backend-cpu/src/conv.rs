//! From the core's operands, whose element type is a value, to tiles of a concrete type.

use lapidary_core::{HostRect, Memory, Op, Operand};

use crate::buffer::Buffer;
use crate::tile::Tile;

/// The operand as a tile of elements `T`.
///
/// # Safety
/// The operand lies in its memory, which holds elements of type `T`.
#[inline]
pub(crate) unsafe fn tile<T: Copy>(operand: Operand<'_>) -> Tile<T> {
    let base: *mut T = match operand.memory {
        Memory::Host(base) => base.as_ptr().cast(),
        Memory::Buffer(buffer) => buffer.get::<Buffer>().start(),
    };
    // wrapping: an empty operand may lie anywhere
    let origin = base.wrapping_add(operand.offset);
    // SAFETY: as the caller promises.
    unsafe { Tile::new(origin, operand.rows, operand.cols, operand.ld) }
}

/// The transpose of a row-major rectangle.
///
/// # Safety
/// As [`host_tile`].
pub(crate) unsafe fn transpose_of<T: Copy>(HostRect { origin, row_stride, rows, cols, .. }: HostRect) -> Tile<T> {
    // SAFETY: as the caller promises.
    unsafe { Tile::new(origin.cast(), cols, rows, row_stride) }
}

/// A host rectangle as a tile, and how it stands in the rectangle: one of its
/// strides is 1.
///
/// # Safety
/// The rectangle lies in memory that may be accessed and holds elements of type `T`.
pub(crate) unsafe fn host_tile<T: Copy>(rect: HostRect) -> (Tile<T>, Op) {
    let HostRect { row_stride, col_stride, rows, cols, .. } = rect;
    let origin = rect.origin.cast();
    // SAFETY: as the caller promises.
    unsafe {
        if row_stride == 1 { (Tile::new(origin, rows, cols, col_stride), Op::NoTrans) } else { (transpose_of(rect), Op::Trans) }
    }
}
