//! Conversion of the core's operands, whose element type is known at run time only, into tiles of a concrete type.

#[cfg(feature = "database")]
use lapidary_core::{DType, DeviceFacts};
use lapidary_core::{HostRect, Memory, Op, Operand};
#[cfg(feature = "database")]
use lapidary_kernels::{CpuBlocks, Database};

use crate::buffer::Buffer;
#[cfg(feature = "database")]
use crate::fast::{Blocking, Blocks};
use crate::tile::Tile;

/// Converts an operand into a tile with elements of type `T`.
///
/// # Safety
/// All elements of the operand lie in the memory that `operand.memory` names, and their type is `T`.
#[inline]
pub(crate) unsafe fn tile<T: Copy>(operand: Operand<'_>) -> Tile<T> {
    let base: *mut T = match operand.memory {
        Memory::Host(base) => base.as_ptr().cast(),
        Memory::Buffer(buffer) => buffer.get::<Buffer>().start(),
    };
    // `wrapping_add` is used, because the offset of an empty operand may lie outside the operand's memory
    let origin = base.wrapping_add(operand.offset);
    // SAFETY: the caller guarantees that all elements of the operand lie in the memory at `base`.
    unsafe { Tile::new(origin, operand.rows, operand.cols, operand.ld) }
}

/// The transpose of a row-major rectangle, as a column-major tile.
///
/// # Safety
/// The conditions of [`host_tile`] hold.
pub(crate) unsafe fn transpose_of<T: Copy>(HostRect { origin, row_stride, rows, cols, .. }: HostRect) -> Tile<T> {
    // SAFETY: the caller guarantees that the memory of the rectangle may be accessed.
    unsafe { Tile::new(origin.cast(), cols, rows, row_stride) }
}

/// Converts a host rectangle, one of whose strides is 1, into a tile. The second result is
/// `Trans` if the tile is the transpose of the rectangle, else `NoTrans`.
///
/// # Safety
/// The memory of the rectangle may be accessed, and it holds elements of type `T`.
pub(crate) unsafe fn host_tile<T: Copy>(rect: HostRect) -> (Tile<T>, Op) {
    let HostRect { row_stride, col_stride, rows, cols, .. } = rect;
    let origin = rect.origin.cast();
    // SAFETY: the caller guarantees that the memory of the rectangle may be accessed.
    unsafe {
        if row_stride == 1 { (Tile::new(origin, rows, cols, col_stride), Op::NoTrans) } else { (transpose_of(rect), Op::Trans) }
    }
}

/// Returns the cache blocks that a database names for a CPU, and those of `instead` for an element type for which it names none.
#[cfg(feature = "database")]
pub(crate) fn blocking(database: &Database, facts: &DeviceFacts, instead: Blocking) -> Blocking {
    let blocks = |dtype: DType, instead: Blocks| {
        let found = database.cpu_blocks(facts, dtype);
        found.map_or(instead, |CpuBlocks { kc, mc, nc, team_mc, team_nc }| Blocks { kc, mc, nc, team_mc, team_nc })
    };
    Blocking { f32: blocks(DType::F32, instead.f32), f64: blocks(DType::F64, instead.f64) }
}
