//! Runs instructions on operands that lie inside larger buffers, and checks the elements around the operands.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use lapidary_core::{
    BufferRect, Conditions, DType, Device, DeviceBuffer, Element, HostRect, Instruction, Memory, Operand, Scalar, Side, Swaps, Work,
};

use crate::cases::{Fill, Rng};
use crate::oracle::Dense;
use crate::properties::memory::{canaries, completed};
use crate::trial::Evidence;
use crate::{Failure, Trial};

/// Number of elements before the first element of an operand in its buffer. `GAP` is the number of elements between two of its
/// columns.
pub(super) const OFFSET: usize = 3;
pub(super) const GAP: usize = 5;
/// Value of the elements around an operand.
const AROUND: f64 = 77.0;
/// Number of integers before the row exchanges of a panel (or before `info`) and after them. An instruction must not write these
/// integers.
const AROUND_INDICES: usize = 3;
const UNTOUCHED: i32 = -77;
/// The row of a larger matrix at which the panel begins.
pub(super) const FIRST_ROW: usize = 5;

/// A device, a random number generator, and the trial that records the figures.
pub(super) struct Launches<'a> {
    device: &'a dyn Device,
    trial: Trial<'a, dyn Device>,
    pub(super) rng: Rng,
}

/// A matrix that lies inside a larger buffer of a device.
pub(super) struct Placed {
    buffer: DeviceBuffer,
    offset: usize,
    rows: usize,
    cols: usize,
    ld: usize,
    dtype: DType,
}

impl Placed {
    pub(super) fn operand(&self) -> Operand<'_> {
        let Placed { buffer, offset, rows, cols, ld, dtype } = self;
        Operand { memory: Memory::Buffer(buffer), offset: *offset, rows: *rows, cols: *cols, ld: *ld, dtype: *dtype }
    }
}

pub(super) fn done<R>(result: lapidary_core::Result<R>) -> Result<R, Failure> {
    completed("program: completes", result)
}

impl<'a> Launches<'a> {
    pub(super) fn new(trial: &Trial<'a, dyn Device>) -> Self {
        Launches { device: trial.subject, trial: *trial, rng: Rng::new(trial.scope.seed) }
    }

    pub(super) fn seen(&self, flags: impl Into<String>, size: usize) -> Evidence<'a> {
        self.trial.ledger.evidence(flags, size)
    }

    /// Draws an extent from 17 to 40: near the width of a narrow panel, the order of a diagonal block and the tile of a work-item.
    /// An extent of at most 40 is small enough for an interpreter of kernels.
    pub(super) fn extent(&mut self) -> usize {
        17 + self.rng.below(24)
    }

    pub(super) fn uniform<T: Scalar>(&mut self, rows: usize, cols: usize) -> Dense {
        Fill::Uniform.matrix::<T>(rows, cols, &mut self.rng)
    }

    fn upload<E: Element>(&self, data: &mut [E]) -> Result<DeviceBuffer, Failure> {
        let buffer = done(self.device.alloc(size_of_val(data)))?;
        // SAFETY: the caller lends `data` exclusively. The buffer is new, has the size of `data`, and no other command uses it.
        done(unsafe { self.device.write(HostRect::packed(data, data.len()), BufferRect::packed(&buffer, data.len())) })?;
        Ok(buffer)
    }

    fn download<E: Element>(&self, buffer: &DeviceBuffer, mut data: Vec<E>) -> Result<Vec<E>, Failure> {
        let rows = data.len();
        // SAFETY: this function owns `data`, which has at most as many elements as the buffer. All earlier launches have ended.
        done(unsafe { self.device.read(BufferRect::packed(buffer, rows), HostRect::packed(&mut data, rows)) })?;
        Ok(data)
    }

    pub(super) fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<(), Failure> {
        // SAFETY: the operands lie in buffers that this struct allocated, and it runs one command at a time.
        done(unsafe { self.device.launch(instruction) })
    }

    /// Runs an instruction under `conditions`.
    pub(super) fn launch_under(&self, conditions: Conditions, instruction: &Instruction<Operand<'_>>) -> Result<(), Failure> {
        let work = Work::Run { instruction, queue: 0, conditions };
        // SAFETY: the operands lie in buffers that this struct allocated, and it runs one command at a time.
        done(unsafe { self.device.submit(work, &[]) }.and_then(|token| token.wait()))
    }

    /// Runs an instruction on the matrices `inputs`. Returns the last matrix, which the instruction may have changed.
    pub(super) fn run<T: Scalar, const M: usize>(
        &self,
        inputs: [&Dense; M],
        instruction: impl for<'b> Fn([Operand<'b>; M]) -> Instruction<Operand<'b>>,
    ) -> Result<Dense, Failure> {
        self.run_on::<T, M>([OFFSET, GAP], inputs, instruction)
    }

    /// Runs an instruction on matrices that begin `offset` elements after the beginning of a buffer, with gaps of `gap` elements
    /// between columns. Returns the last matrix as the instruction left it.
    pub(super) fn run_on<T: Scalar, const M: usize>(
        &self,
        [offset, gap]: [usize; 2],
        inputs: [&Dense; M],
        instruction: impl for<'b> Fn([Operand<'b>; M]) -> Instruction<Operand<'b>>,
    ) -> Result<Dense, Failure> {
        let placed =
            inputs.into_iter().map(|data| self.place_at::<T>([offset, gap], AROUND, data)).collect::<Result<Vec<_>, _>>()?;
        self.launch(&instruction(std::array::from_fn(|i| placed[i].operand())))?;
        self.fetch::<T>(&placed[M - 1])
    }

    /// Uploads a matrix into the middle of a larger buffer.
    pub(super) fn place<T: Scalar>(&self, data: &Dense) -> Result<Placed, Failure> {
        self.place_at::<T>([OFFSET, GAP], AROUND, data)
    }

    /// Uploads a matrix into the middle of a larger buffer whose other elements are NaN.
    pub(super) fn place_beside_nan<T: Scalar>(&self, data: &Dense) -> Result<Placed, Failure> {
        self.place_at::<T>([OFFSET, GAP], f64::NAN, data)
    }

    /// Uploads a matrix that begins `offset` elements after the beginning of a buffer, with gaps of `gap` elements between columns. The other
    /// elements of the buffer are `around`.
    pub(super) fn place_at<T: Scalar>(&self, [offset, gap]: [usize; 2], around: f64, data: &Dense) -> Result<Placed, Failure> {
        let (rows, cols, ld) = (data.rows(), data.cols(), data.rows() + gap);
        let mut inside = vec![T::from_f64(around); offset + (cols + gap) * ld];
        data.elements().for_each(|((i, j), x)| inside[offset + i + j * ld] = T::from_f64(x));
        Ok(Placed { buffer: self.upload(&mut inside)?, offset, rows, cols, ld, dtype: T::DTYPE })
    }

    /// Allocates a matrix whose memory was never written.
    pub(super) fn unwritten<T: Scalar>(&self, rows: usize, cols: usize) -> Result<Placed, Failure> {
        let buffer = done(self.device.alloc(rows * cols * size_of::<T>()))?;
        Ok(Placed { buffer, offset: 0, rows, cols, ld: rows, dtype: T::DTYPE })
    }

    /// Downloads a matrix. Fails if the instruction wrote an element around the matrix.
    pub(super) fn fetch<T: Scalar>(&self, placed: &Placed) -> Result<Dense, Failure> {
        self.fetch_beside::<T>(placed, AROUND)
    }

    /// Downloads a matrix as [`fetch`](Self::fetch) does, if the other elements of its buffer are `around`.
    pub(super) fn fetch_beside<T: Scalar>(&self, placed: &Placed, around: f64) -> Result<Dense, Failure> {
        let Placed { buffer, offset, rows, cols, ld, .. } = placed;
        let all = self.download(buffer, vec![T::ZERO; offset + cols * ld])?;
        let is_element = |at: usize| at >= *offset && (at - offset) % ld < *rows;
        canaries("an operand", (0..all.len()).find(|&at| !is_element(at) && all[at].to_f64() != around))?;
        Ok(Dense::from_fn(*rows, *cols, |i, j| all[offset + i + j * ld].to_f64()))
    }

    /// Allocates an array for the row exchanges of a panel.
    pub(super) fn pivots(&self, count: usize) -> Result<Placed, Failure> {
        self.integers(&vec![UNTOUCHED; count])
    }

    /// Uploads integers into the middle of a larger buffer.
    fn integers(&self, data: &[i32]) -> Result<Placed, Failure> {
        let around = [UNTOUCHED; AROUND_INDICES];
        let buffer = self.upload(&mut [&around, data, &around].concat())?;
        Ok(Placed { buffer, offset: AROUND_INDICES, rows: data.len(), cols: 1, ld: data.len() + AROUND_INDICES, dtype: DType::I32 })
    }

    /// Downloads the integers of `placed`. Fails if the instruction wrote an integer before or after them.
    pub(super) fn rows_of(&self, name: &str, placed: &Placed) -> Result<Vec<i32>, Failure> {
        let all = self.download(&placed.buffer, vec![0; placed.offset + placed.ld])?;
        let inside = placed.offset..placed.offset + placed.rows;
        canaries(name, (0..all.len()).find(|at| !inside.contains(at) && all[*at] != UNTOUCHED))?;
        Ok(all[inside].to_vec())
    }

    /// Factors a panel that begins at row [`FIRST_ROW`] of a larger matrix. Returns the factors, the pivots and `info`.
    pub(super) fn factored<T: Scalar>(&self, a: &Dense, pivoting: bool) -> Result<(Dense, Placed, i32), Failure> {
        let (factors, pivots) = (self.place::<T>(a)?, self.pivots(a.rows().min(a.cols()))?);
        let told = self.integers(&[0])?;
        let (a, ipiv, info) = (factors.operand(), pivots.operand(), told.operand());
        self.launch(&Instruction::Getrf { pivoting, first_row: FIRST_ROW, a, ipiv, info })?;
        Ok((self.fetch::<T>(&factors)?, pivots, self.rows_of("info", &told)?[0]))
    }

    pub(super) fn laswp<T: Scalar>(&self, a: &Dense, pivots: &Placed, side: Side, forward: bool) -> Result<Dense, Failure> {
        let swaps = Swaps { side, forward, first_row: FIRST_ROW };
        let moved = self.place::<T>(a)?;
        self.launch(&Instruction::Laswp { swaps, a: moved.operand(), ipiv: pivots.operand() })?;
        self.fetch::<T>(&moved)
    }
}
