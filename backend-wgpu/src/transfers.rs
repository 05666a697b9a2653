//! Transfers: copies between rectangles in the caller's memory and buffers of the device. A rectangle is copied in pieces, which
//! pass through mapped staging buffers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lapidary_core::{BufferRect, CopyPool, DeviceBuffer, ErrorKind, HostRect, Piece, Result, Token, copy_threads};

use crate::buffer::Rect;
use crate::queue::{Queue, Submission};
use crate::strided::{Columns, Strided};

/// Maximum size of a piece in bytes, and size of a staging buffer.
pub(crate) const PIECE: usize = 4 << 20;
/// Maximum number of pieces whose copies from the device to staging memory are under way at the same time, for each thread.
const READS_IN_FLIGHT: usize = 2;
/// Maximum number of packed pieces that wait for their copy from staging memory to the device. `MAX_WRITES_IN_FLIGHT` is large,
/// so that threads can continue to pack further pieces while a kernel delays the copies in the device's only queue.
const MAX_WRITES_IN_FLIGHT: usize = 32;
/// Maximum number of copy commands for a piece. A kernel copies a piece whose columns would take more copy commands. With the barrier
/// between two copy commands, a column of 16 KiB took 1.9 µs on an H200 by Vulkan, and a whole piece of 4 MiB without gaps 0.1 ms.
const MAX_COPIES: usize = 8;

/// The staging buffers for transfers in one direction, and the methods that transfer rectangles in this direction.
#[derive(Debug)]
pub(crate) struct Transfers {
    queue: Arc<Queue>,
    mode: wgpu::MapMode,
    /// Staging buffers that no thread uses, each with the last submission that uses the buffer.
    idle: Mutex<VecDeque<(wgpu::Buffer, Option<Submission>)>>,
    piece: usize,
    /// The kernel for rectangles with gaps, compiled for the first such rectangle. `None` if the device cannot run the kernel, so
    /// that each column of a rectangle takes a copy command.
    strided: OnceLock<Option<Strided>>,
    threads: CopyPool,
}

/// A piece whose copy from the device to a staging buffer has been submitted.
struct UnderWay {
    piece: Piece,
    rect: HostRect,
    staging: wgpu::Buffer,
    submission: Submission,
}

/// How the device copies a piece between a buffer and staging memory.
enum Way<'a> {
    /// By one copy command for each contiguous part of the piece, as [`runs`] describes them.
    Copies(Vec<[u64; 3]>),
    /// By a kernel, and one copy command.
    Kernel(&'a Strided, Columns),
}

impl Transfers {
    pub fn new(queue: Arc<Queue>, mode: wgpu::MapMode) -> Self {
        Transfers { queue, mode, idle: Mutex::default(), piece: PIECE, strided: OnceLock::new(), threads: CopyPool::default() }
    }

    /// Returns a copy of `self` that transfers pieces of at most `bytes` bytes, or of at most 16 bytes if `bytes` is smaller.
    #[cfg(feature = "test-hooks")]
    pub fn in_pieces(self, bytes: usize) -> Self {
        Transfers { piece: bytes.max(lapidary_core::DType::LARGEST), idle: Mutex::default(), strided: OnceLock::new(), ..self }
    }

    /// Begins a transfer between the host rectangle `rect` and the rectangle `own` of a buffer, in the direction of this value. After the token
    /// of a transfer to the device has reported completion, kernels and copies that are submitted later read the new elements.
    ///
    /// # Safety
    /// Until the token is done, the caller keeps the rectangle valid for the transfer (for reading if the transfer is to the
    /// device, for writing otherwise), and nothing else accesses the rectangle or the buffer.
    pub unsafe fn begin(self: &Arc<Self>, rect: HostRect, own: &Rect) -> Token {
        let part = |pieces: Vec<Piece>| {
            let (transfers, own) = (Arc::clone(self), own.clone());
            // SAFETY: the caller of `begin` keeps the rectangle and the buffer free of other accesses until the token is done,
            // and no two threads access the same piece.
            move || unsafe { transfers.part(&rect, &own, pieces) }
        };
        self.threads.start(self.pieces_of_threads(&rect).into_iter().map(part).collect())
    }

    /// Transfers a rectangle as [`Transfers::begin`] does, and returns when the transfer is complete.
    ///
    /// # Safety
    /// The caller upholds the contract of [`Transfers::begin`] until this method returns.
    pub unsafe fn run(self: &Arc<Self>, rect: HostRect, own: &Rect) -> Result<()> {
        let parts = self.pieces_of_threads(&rect);
        // SAFETY: the caller of this function upholds the contract of `Transfers::begin` for each rectangle and its buffer.
        unsafe {
            // the calling thread itself transfers a single part, because a thread of the pool would first have to wake up
            if parts.len() == 1 { self.part(&rect, own, parts.concat()) } else { self.begin(rect, own).wait() }
        }
    }

    /// Transfers the pieces `pieces` of a rectangle in the calling thread.
    unsafe fn part(&self, rect: &HostRect, own: &Rect, pieces: Vec<Piece>) -> Result<()> {
        // SAFETY: the caller upholds the contract of `Transfers::begin` for `rect` and `buffer`, and no other thread accesses the
        // pieces `pieces`.
        unsafe {
            match self.mode {
                wgpu::MapMode::Write => pieces.into_iter().try_for_each(|piece| self.fill(rect, piece, own)),
                wgpu::MapMode::Read => self.read_pieces(rect, own, pieces),
            }
        }
    }

    /// Transfers the pieces `pieces` of a rectangle from the device, in the calling thread.
    unsafe fn read_pieces(&self, rect: &HostRect, own: &Rect, pieces: Vec<Piece>) -> Result<()> {
        let mut under_way = VecDeque::new();
        for piece in pieces {
            if under_way.len() == READS_IN_FLIGHT {
                let first = under_way.pop_front().expect("the ring is full");
                // SAFETY: the caller upholds the contract of `Transfers::begin`, so the rectangle may be written, and no other
                // thread writes this piece of the rectangle.
                unsafe { self.empty(first)? };
            }
            let fetch = || self.submit_copies(&[(own, piece, *rect)]);
            let fetched = fetch().or_else(|error| match under_way.pop_front() {
                Some(first) if error.kind() == ErrorKind::OutOfMemory => {
                    // SAFETY: the caller upholds the contract of `Transfers::begin`, so the rectangle may be written, and no
                    // other thread writes this piece of the rectangle.
                    unsafe { self.empty(first)? };
                    fetch()
                }
                _ => Err(error),
            });
            under_way.extend(fetched?);
        }
        // SAFETY: the caller upholds the contract of `Transfers::begin`, so the rectangle may be written, and no other thread
        // writes this piece of the rectangle.
        under_way.into_iter().try_for_each(|done| unsafe { self.empty(done) })
    }

    /// Copies the contents of buffers to rectangles in host memory. The copies to all rectangles that consist of one piece share
    /// one submission.
    ///
    /// # Safety
    /// The caller upholds the contract of [`Transfers::run`] for each rectangle and its buffer, and the rectangles do not
    /// overlap.
    pub unsafe fn read_each(self: &Arc<Self>, reads: &[(&DeviceBuffer, HostRect)]) -> Result<()> {
        let mut single = Vec::new();
        for &(buffer, rect) in reads {
            match Piece::cut(rect.rows, rect.cols, self.piece / rect.dtype.size())[..] {
                [piece] => single.push((Rect::of(BufferRect::packed(buffer, rect.rows)), piece, rect)),
                // SAFETY: the caller of this function upholds the contract of `Transfers::begin` for each rectangle and its
                // buffer.
                _ => unsafe { self.run(rect, &Rect::of(BufferRect::packed(buffer, rect.rows)))? },
            }
        }
        let copies: Vec<_> = single.iter().map(|(own, piece, rect)| (own, *piece, *rect)).collect();
        match self.submit_copies(&copies) {
            // SAFETY: the caller of `read_each` guarantees that the rectangles may be written and do not overlap.
            Ok(under_way) => under_way.into_iter().try_for_each(|piece| unsafe { self.empty(piece) }),
            // if there is not enough staging memory for all pieces at once, the rectangles are copied one after another
            Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                // SAFETY: the caller of this function upholds the contract of `Transfers::begin` for each rectangle and its
                // buffer.
                single.iter().try_for_each(|(own, _, rect)| unsafe { self.run(*rect, own) })
            }
            Err(error) => Err(error),
        }
    }

    /// Cuts a rectangle into pieces and distributes the pieces in turn among several threads. Returns the pieces of each thread.
    fn pieces_of_threads(&self, rect: &HostRect) -> Vec<Vec<Piece>> {
        let pieces = Piece::cut(rect.rows, rect.cols, self.piece / rect.dtype.size());
        let threads = copy_threads(pieces.len());
        (0..threads).map(|thread| pieces.iter().skip(thread).step_by(threads).copied().collect()).collect()
    }

    /// Packs a piece into staging memory, and submits the copy of the piece from staging memory to the device.
    unsafe fn fill(&self, rect: &HostRect, piece: Piece, own: &Rect) -> Result<()> {
        let (staging, way) = (self.take()?, self.way(&piece, own, rect.dtype.size()));
        let bytes = bytes(&piece, rect);
        let submission = self.queue.guarded("write", |device| {
            let mut mapped = staging.get_mapped_range_mut(..bytes).map_err(|error| self.queue.unmapped(&error))?;
            // SAFETY: the staging buffer is mapped, has room for the piece, and is used by this thread alone. The caller
            // guarantees that the rectangle may be read.
            unsafe { piece.pack(rect, mapped.slice(..).as_raw_element_ptr().as_ptr().cast()) };
            drop(mapped);
            staging.unmap();
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("LD") });
            self.record(device, &mut encoder, (&own.buffer.raw, way), &staging);
            Ok(self.queue.submit(encoder))
        })??;
        self.give_back(staging, Some(submission));
        Ok(())
    }

    /// Chooses how the device copies a piece between a buffer and staging memory.
    fn way(&self, piece: &Piece, own: &Rect, size: usize) -> Way<'_> {
        let mut runs = runs(piece, own, size);
        let cols = runs.len();
        let make = || Strided::new(&self.queue, self.mode, self.staging_bytes()).ok().flatten();
        if cols > MAX_COPIES
            && let Some(strided) = self.strided.get_or_init(make)
            && let Some([start, _, rows]) = runs.next()
        {
            return Way::Kernel(strided, Columns { start, ld: (own.ld * size) as u64, rows, cols: cols as u64 });
        }
        Way::Copies(runs.collect())
    }

    /// Records the commands that copy a piece of `buffer` to or from `staging`.
    fn record(
        &self,
        device: &wgpu::Device,
        encoder: &mut wgpu::CommandEncoder,
        (buffer, way): (&wgpu::Buffer, Way<'_>),
        staging: &wgpu::Buffer,
    ) {
        match way {
            Way::Kernel(strided, columns) => strided.record(device, encoder, (buffer, columns), staging),
            Way::Copies(runs) => runs.into_iter().for_each(|[at, staged, bytes]| match self.mode {
                wgpu::MapMode::Write => encoder.copy_buffer_to_buffer(staging, staged, buffer, at, bytes),
                wgpu::MapMode::Read => encoder.copy_buffer_to_buffer(buffer, at, staging, staged, bytes),
            }),
        }
    }

    /// Submits one command buffer that copies all pieces in `pieces` from buffers of the device to staging memory.
    fn submit_copies(&self, pieces: &[(&Rect, Piece, HostRect)]) -> Result<Vec<UnderWay>> {
        if pieces.is_empty() {
            return Ok(Vec::new());
        }
        let staging: Vec<wgpu::Buffer> = pieces.iter().map(|_| self.take()).collect::<Result<_>>()?;
        let ways: Vec<_> = pieces.iter().map(|(own, piece, rect)| self.way(piece, own, rect.dtype.size())).collect();
        let submission = self.queue.guarded("read", |device| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("ST") });
            for (((own, ..), way), staging) in pieces.iter().zip(ways).zip(&staging) {
                self.record(device, &mut encoder, (&own.buffer.raw, way), staging);
            }
            self.queue.submit(encoder)
        })?;
        let under_way = |(&(_, piece, rect), staging)| UnderWay { piece, rect, staging, submission: submission.clone() };
        Ok(pieces.iter().zip(staging).map(under_way).collect())
    }

    /// Waits until a piece has been copied from the device to staging memory, and unpacks the piece into its rectangle.
    unsafe fn empty(&self, UnderWay { piece, rect, staging, submission }: UnderWay) -> Result<()> {
        let bytes = bytes(&piece, &rect);
        self.queue.map(&staging, self.mode, bytes, &submission)?;
        self.queue.guarded("read", |_| {
            let mapped = staging.get_mapped_range(..bytes).map_err(|error| self.queue.unmapped(&error))?;
            // SAFETY: the mapped staging buffer holds the piece. The caller guarantees that the rectangle may be written, and
            // that no other thread writes this piece of the rectangle.
            unsafe { piece.unpack(mapped.as_ptr().cast(), &rect) };
            drop(mapped);
            staging.unmap();
            Ok(())
        })??;
        self.give_back(staging, None);
        Ok(())
    }

    /// Size of a staging buffer in bytes.
    fn staging_bytes(&self) -> u64 {
        (self.piece as u64).next_multiple_of(8)
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<(wgpu::Buffer, Option<Submission>)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, staging: wgpu::Buffer, last: Option<Submission>) {
        self.idle().push_back((staging, last));
    }

    /// Takes the oldest idle staging buffer if the device no longer uses this buffer, or if the number of idle staging buffers
    /// has reached `MAX_WRITES_IN_FLIGHT`.
    fn oldest(&self) -> Option<(wgpu::Buffer, Option<Submission>)> {
        let last = self.idle().front()?.1.clone();
        // the device is polled without the lock of `idle`, because a poll may run callbacks of the application
        let is_free = last.is_none_or(|last| self.queue.is_done(&last));
        let mut idle = self.idle();
        if is_free || idle.len() >= MAX_WRITES_IN_FLIGHT { idle.pop_front() } else { None }
    }

    /// Prepares a used staging buffer for another piece. The function waits until the device no longer uses the staging buffer.
    fn again(&self, (staging, last): (wgpu::Buffer, Option<Submission>)) -> Result<wgpu::Buffer> {
        // a staging buffer with a last submission was unmapped for a copy to the device, and must be mapped again
        last.map_or(Ok(()), |last| self.queue.map(&staging, self.mode, staging.size(), &last))?;
        Ok(staging)
    }

    /// Returns a staging buffer for a piece. The staging buffer is mapped if the transfer is to the device, and unmapped if the
    /// transfer is from the device.
    fn take(&self) -> Result<wgpu::Buffer> {
        if let Some(oldest) = self.oldest() {
            return self.again(oldest);
        }
        let (usage, mapped_at_creation) = match self.mode {
            wgpu::MapMode::Write => (wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC, true),
            wgpu::MapMode::Read => (wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST, false),
        };
        let size = self.staging_bytes();
        let descriptor = wgpu::BufferDescriptor { label: Some("staging"), size, usage, mapped_at_creation };
        let made = self.queue.guarded("stage", |device| device.create_buffer(&descriptor));
        made.or_else(|error| {
            // if there is no memory for another staging buffer, an existing staging buffer is used again
            let kept = if error.kind() == ErrorKind::OutOfMemory { self.idle().pop_front() } else { None };
            kept.map_or(Err(error), |kept| self.again(kept))
        })
    }
}

/// Size of a piece of a rectangle in bytes.
fn bytes(piece: &Piece, rect: &HostRect) -> u64 {
    (piece.count() * rect.dtype.size()) as u64
}

/// The parts of a piece as [`Piece::runs_at`] returns them, in bytes.
fn runs(piece: &Piece, own: &Rect, size: usize) -> impl ExactSizeIterator<Item = [u64; 3]> + use<> {
    piece.runs_at(own.offset, own.ld).map(move |run| run.map(|elements| (elements * size) as u64))
}

#[cfg(test)]
mod tests {
    use lapidary_core::copy_threads;

    use super::*;
    use crate::buffer::Buffer;
    use crate::program::tests::queue;

    #[test]
    fn hundreds_of_pieces_pass_through_few_buffers() {
        let Some(queue) = queue().map(Arc::new) else { return };
        let (rows, cols) = (40, 50);
        let mut from: Vec<f64> = (0..rows * cols).map(|i| i as f64).collect();
        let mut to = vec![0.0; from.len()];
        let register = Rect { buffer: Buffer::new(&queue, size_of_val(&from[..])).unwrap(), offset: 0, ld: rows };
        let rect = |data: &mut [f64]| HostRect::packed(data, rows);
        let [load, store] =
            [wgpu::MapMode::Write, wgpu::MapMode::Read].map(|mode| Arc::new(Transfers::new(Arc::clone(&queue), mode).in_pieces(8)));
        // commands that keep the device busy for longer than the host takes to pack all pieces
        let long = Buffer::new(&queue, 64 << 20).unwrap();
        let mut encoder = queue.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        (0..100).for_each(|_| encoder.clear_buffer(&long.raw, 0, None));
        queue.submit(encoder);
        // SAFETY: the rectangles are the vectors `from` and `to`, which nothing else accesses until the tokens are done.
        unsafe {
            load.begin(rect(&mut from), &register).wait().unwrap();
            store.begin(rect(&mut to), &register).wait().unwrap();
        }
        assert_eq!(from, to);
        let threads = copy_threads(rows * cols);
        let (loaded, stored) = (load.idle().len(), store.idle().len());
        assert!(
            loaded <= MAX_WRITES_IN_FLIGHT + threads && stored <= READS_IN_FLIGHT * threads,
            "{loaded} and {stored} buffers by {threads} threads"
        );
    }

    /// Tests that a kernel copies pieces with many columns and gaps between them, and that it leaves the gaps unchanged.
    #[test]
    fn columns_with_gaps_take_few_copies() {
        gaps::<f32>(f32::from);
        gaps::<f64>(f64::from);
    }

    fn gaps<T: lapidary_core::Element + Default + PartialEq>(number: impl Fn(u16) -> T) {
        let Some(queue) = queue().map(Arc::new) else { return };
        let (rows, cols, ld, offset) = (37, 64, 41, 5);
        let transfers = |mode| Arc::new(Transfers::new(Arc::clone(&queue), mode).in_pieces(3000));
        let [load, store] = [wgpu::MapMode::Write, wgpu::MapMode::Read].map(transfers);
        let mut whole: Vec<T> = (0..3000).map(&number).collect();
        let mut part: Vec<T> = (10_000..12_368).map(&number).collect();
        let (mut read, mut read_part) = (vec![T::default(); whole.len()], vec![T::default(); part.len()]);
        let buffer = Buffer::new(&queue, size_of_val(&whole[..])).unwrap();
        let contiguous = Rect { buffer: buffer.clone(), offset: 0, ld: whole.len() };
        let with_gaps = Rect { buffer, offset, ld };
        // SAFETY: the rectangles are vectors, which nothing else accesses.
        unsafe {
            load.run(HostRect::packed(&mut whole, 3000), &contiguous).unwrap();
            load.run(HostRect::packed(&mut part, rows), &with_gaps).unwrap();
            store.run(HostRect::packed(&mut read_part, rows), &with_gaps).unwrap();
            store.run(HostRect::packed(&mut read, 3000), &contiguous).unwrap();
        }
        assert_eq!(read_part.len(), rows * cols);
        assert!(read_part == part, "the kernel that stores");
        for j in 0..cols {
            whole[offset + j * ld..][..rows].copy_from_slice(&part[j * rows..][..rows]);
        }
        assert!(read == whole, "the gaps");
        for transfers in [&load, &store] {
            let piece = Piece::cut(rows, cols, 3000 / size_of::<T>())[0];
            assert!(matches!(transfers.way(&piece, &with_gaps, size_of::<T>()), Way::Kernel(..)));
            let one_column = Piece::cut(rows, 1, rows)[0];
            assert!(matches!(transfers.way(&one_column, &with_gaps, size_of::<T>()), Way::Copies(runs) if runs.len() == 1));
        }
    }
}
