//! Instructions on operands that lie inside larger buffers.
#![allow(unsafe_code, reason = "a device's methods are unsafe")]

use lapidary_core::{Device, Element, HostRect, Instruction, Memory, Operand, Scalar, Side, Swaps};

use super::square::{Matrix, N};
use crate::bounds::Bound;
use crate::failure::{Worst, ratio};
use crate::properties::memory::completed;
use crate::trial::Evidence;
use crate::{Failure, Trial};

/// Elements before the first one, and between columns.
const OFFSET: usize = 3;
const LD: usize = N + 5;
/// What lies around the operands.
const AROUND: f64 = 77.0;
/// The row of its matrix at which a panel begins.
pub(super) const FIRST_ROW: usize = 5;

fn rect<E>(data: &mut [E], rows: usize) -> HostRect<E> {
    HostRect { origin: data.as_mut_ptr(), row_stride: 1, col_stride: rows, rows, cols: data.len() / rows }
}

/// A device, and where its figures go.
pub(super) struct Launches<'a, D> {
    device: &'a D,
    pub(super) seen: Evidence<'a>,
}

pub(super) fn done<R>(result: lapidary_core::Result<R>) -> Result<R, Failure> {
    completed("program: completes", result)
}

impl<'a, D: Device> Launches<'a, D> {
    pub(super) fn new(trial: &Trial<'a, D>, flags: &str) -> Self {
        Launches { device: trial.subject, seen: trial.ledger.evidence(flags, N) }
    }

    pub(super) fn upload<E: Element>(&self, data: &[E], rows: usize) -> Result<D::Buffer, Failure> {
        let buffer = done(self.device.alloc(size_of_val(data)))?;
        // SAFETY: the copy and the buffer are ours.
        done(unsafe { self.device.write(rect(&mut data.to_vec(), rows), &buffer) })?;
        Ok(buffer)
    }

    pub(super) fn download<E: Element>(&self, buffer: &D::Buffer, mut data: Vec<E>, rows: usize) -> Result<Vec<E>, Failure> {
        // SAFETY: the data and the buffer are ours.
        done(unsafe { self.device.read(buffer, rect(&mut data, rows)) })?;
        Ok(data)
    }

    pub(super) fn launch<T: Scalar>(&self, instruction: &Instruction<T, Operand<'_, D::Buffer>>) -> Result<(), Failure> {
        // SAFETY: the operands lie in buffers of ours.
        done(unsafe { self.device.launch(instruction) })
    }

    /// Runs an instruction on whole square matrices; the last one afterwards.
    pub(super) fn run<T: Scalar, const M: usize>(
        &self,
        inputs: [&Matrix<T>; M],
        instruction: impl for<'b> Fn([Operand<'b, D::Buffer>; M]) -> Instruction<T, Operand<'b, D::Buffer>>,
    ) -> Result<Matrix<T>, Failure> {
        let buffers = inputs.into_iter().map(|data| self.upload_inside(data)).collect::<Result<Vec<_>, _>>()?;
        self.launch(&instruction(std::array::from_fn(|i| inside(&buffers[i]))))?;
        self.download_inside(&buffers[M - 1])
    }

    /// A square matrix inside a larger buffer.
    pub(super) fn upload_inside<T: Scalar>(&self, data: &Matrix<T>) -> Result<D::Buffer, Failure> {
        let mut inside = vec![T::from_f64(AROUND); OFFSET + N * LD];
        (0..N * N).for_each(|e| inside[OFFSET + e % N + e / N * LD] = data[e]);
        self.upload(&inside, OFFSET + N * LD)
    }

    /// The matrix, when nothing around it was written.
    pub(super) fn download_inside<T: Scalar>(&self, buffer: &D::Buffer) -> Result<Matrix<T>, Failure> {
        let all = self.download(buffer, vec![T::ZERO; OFFSET + N * LD], OFFSET + N * LD)?;
        let is_element = |at: usize| at >= OFFSET && (at - OFFSET) % LD < N;
        let (elements, around): (Vec<_>, Vec<_>) = (0..all.len()).partition(|&at| is_element(at));
        match around.into_iter().find(|&at| all[at].to_f64() != AROUND) {
            None => Ok(elements.into_iter().map(|at| all[at]).collect()),
            Some(at) => Err(Failure::new("memory: canaries", format!("element {at} of a buffer, around the operand, was written"))),
        }
    }

    pub(super) fn laswp<T: Scalar>(
        &self,
        a: &Matrix<T>,
        pivots: &D::Buffer,
        side: Side,
        forward: bool,
    ) -> Result<Matrix<T>, Failure> {
        let swaps = Swaps { side, forward, first_row: FIRST_ROW };
        let moved = self.upload_inside(a)?;
        self.launch(&Instruction::<T, _>::Laswp { swaps, a: inside(&moved), ipiv: column(pivots, N) })?;
        self.download_inside(&moved)
    }

    /// Element by element within a bound, over the scale that comes with what is right.
    pub(super) fn close(
        &self,
        check: &'static str,
        bound: Bound,
        computed: &[f64],
        right: impl Iterator<Item = (f64, f64)>,
    ) -> Result<(), Failure> {
        let mut worst = Worst::default();
        for (e, (computed, (right, scale))) in computed.iter().zip(right).enumerate() {
            worst.see(ratio((computed - right).abs(), scale), (e % N, e / N));
        }
        self.seen.worst(check, bound, worst)
    }
}

/// A square operand inside its buffer.
pub(super) fn inside<B>(buffer: &B) -> Operand<'_, B> {
    Operand { memory: Memory::Buffer(buffer), offset: OFFSET, rows: N, cols: N, ld: LD }
}

pub(super) fn square<B>(buffer: &B) -> Operand<'_, B> {
    Operand { memory: Memory::Buffer(buffer), offset: 0, rows: N, cols: N, ld: N }
}

pub(super) fn column<B>(buffer: &B, rows: usize) -> Operand<'_, B> {
    Operand { memory: Memory::Buffer(buffer), offset: 0, rows, cols: 1, ld: rows }
}
