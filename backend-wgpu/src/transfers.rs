//! Transfers: copies between rectangles in the caller's memory and buffers of the device. A rectangle is copied in pieces, which
//! pass through mapped staging buffers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use lapidary_core::{BufferRect, CopyPool, DeviceBuffer, ErrorKind, HostRect, Piece, Result, Token, copy_threads};

use crate::buffer::Rect;
use crate::queue::{Queue, Submission};
use crate::strided::{Columns, Strided};

/// Maximum size of a piece in bytes, and size of a staging buffer.
pub(crate) const PIECE: usize = 4 << 20;
/// Maximum number of pieces whose copies from the device to staging memory a thread submits before it unpacks the first of them.
const READS_IN_FLIGHT: usize = 2;
/// Maximum number of pieces whose copies from the device are submitted when their transfers begin. A copy that is submitted later,
/// when a thread has unpacked earlier pieces, waits in the device's only queue behind the kernels that were submitted meanwhile. A
/// product has at most two stores under way, which together have 128 pieces if each stores 256 MiB.
const MAX_EARLY_READS: usize = 128;
/// Number of pieces in one of these submissions.
const READS_PER_SUBMISSION: usize = 8;
/// Maximum number of pieces whose copies to the device a thread submits together. If a thread has few pieces of a transfer, it
/// submits fewer together, so that the device copies one piece while the thread packs another.
const MAX_WRITES_PER_SUBMISSION: usize = 4;
/// Maximum number of packed pieces that wait for their copy from staging memory to the device. `MAX_WRITES_IN_FLIGHT` is large,
/// so that threads can continue to pack further pieces while kernels delay the copies in the device's only queue. With 32 pieces, an
/// H200 waited 48 of 514 ms for the loads of a product of order 16000 in `f64`.
const MAX_WRITES_IN_FLIGHT: usize = 80;
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
    /// Number of pieces whose copies were submitted when their transfers began, and that are not unpacked yet.
    early: Arc<AtomicUsize>,
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
    /// Counts the piece in [`Transfers::early`]. `None` if a thread of the transfer submitted the copy.
    early: Option<Early>,
}

/// Counts a piece in [`Transfers::early`] until this value is dropped.
struct Early(Arc<AtomicUsize>);

impl Early {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Early(Arc::clone(count))
    }
}

impl Drop for Early {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
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
        let (idle, early, strided, threads) = (Mutex::default(), Arc::default(), OnceLock::new(), CopyPool::default());
        Transfers { queue, mode, idle, piece: PIECE, early, strided, threads }
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
        let pieces = self.pieces(&rect);
        let threads = copy_threads(pieces.len());
        let under_way = self.submit_early(&rect, own, &pieces);
        let rest = deal(pieces.into_iter().skip(under_way.len()), threads);
        let part = |(under_way, rest): (Vec<UnderWay>, Vec<Piece>)| {
            let (transfers, own) = (Arc::clone(self), own.clone());
            // SAFETY: the caller of `begin` keeps the rectangle and the buffer free of other accesses until the token is done,
            // and no two threads access the same piece.
            move || unsafe { transfers.part(&rect, &own, under_way, rest) }
        };
        self.threads.start(deal(under_way, threads).into_iter().zip(rest).map(part).collect())
    }

    /// Transfers a rectangle as [`Transfers::begin`] does, and returns when the transfer is complete.
    ///
    /// # Safety
    /// The caller upholds the contract of [`Transfers::begin`] until this method returns.
    pub unsafe fn run(self: &Arc<Self>, rect: HostRect, own: &Rect) -> Result<()> {
        let pieces = self.pieces(&rect);
        // SAFETY: the caller of this function upholds the contract of `Transfers::begin` for each rectangle and its buffer.
        unsafe {
            // the calling thread itself transfers a single part, because a thread of the pool would first have to wake up
            if copy_threads(pieces.len()) == 1 { self.part(&rect, own, Vec::new(), pieces) } else { self.begin(rect, own).wait() }
        }
    }

    /// Submits the copies of the first of the pieces `pieces` from the device, if the transfer is from the device, and returns these
    /// pieces. If a submission fails, the threads of the transfer submit the remaining copies, and report the error if it remains.
    fn submit_early(&self, rect: &HostRect, own: &Rect, pieces: &[Piece]) -> Vec<UnderWay> {
        let mut under_way = Vec::new();
        let room = match self.mode {
            wgpu::MapMode::Write => 0,
            wgpu::MapMode::Read => MAX_EARLY_READS.saturating_sub(self.early.load(Ordering::Relaxed)).min(pieces.len()),
        };
        for group in pieces[..room].chunks(READS_PER_SUBMISSION) {
            let copies: Vec<_> = group.iter().map(|&piece| (own, piece, *rect)).collect();
            let Ok(submitted) = self.submit_copies(&copies) else { break };
            let early = |piece| UnderWay { early: Some(Early::new(&self.early)), ..piece };
            under_way.extend(submitted.into_iter().map(early));
        }
        under_way
    }

    /// Transfers pieces of a rectangle in the calling thread: the pieces `under_way`, whose copies from the device have been submitted, and
    /// then the pieces `rest`.
    unsafe fn part(&self, rect: &HostRect, own: &Rect, under_way: Vec<UnderWay>, rest: Vec<Piece>) -> Result<()> {
        // SAFETY: the caller upholds the contract of `Transfers::begin` for `rect` and `buffer`, and no other thread accesses the
        // pieces.
        unsafe {
            match self.mode {
                wgpu::MapMode::Write => {
                    rest.chunks(writes_together(rest.len())).try_for_each(|pieces| self.fill(rect, pieces, own))
                }
                wgpu::MapMode::Read => self.read_pieces(rect, own, under_way.into(), rest),
            }
        }
    }

    /// Transfers pieces of a rectangle from the device, in the calling thread, as [`Self::part`] does.
    unsafe fn read_pieces(&self, rect: &HostRect, own: &Rect, mut under_way: VecDeque<UnderWay>, rest: Vec<Piece>) -> Result<()> {
        for piece in rest {
            while under_way.len() >= READS_IN_FLIGHT {
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
            match self.pieces(&rect)[..] {
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

    /// Cuts a rectangle into pieces.
    fn pieces(&self, rect: &HostRect) -> Vec<Piece> {
        Piece::cut(rect.rows, rect.cols, self.piece / rect.dtype.size())
    }

    /// Packs pieces into staging memory, and submits the copies of the pieces from staging memory to the device together.
    unsafe fn fill(&self, rect: &HostRect, pieces: &[Piece], own: &Rect) -> Result<()> {
        let mut packed = Vec::new();
        for &piece in pieces {
            let staging = match self.take() {
                // the copies of the packed pieces are submitted first, so that their staging memory becomes free
                Err(error) if error.kind() == ErrorKind::OutOfMemory && !packed.is_empty() => {
                    self.submit_packed(rect, own, std::mem::take(&mut packed))?;
                    self.take()?
                }
                taken => taken?,
            };
            self.queue.guarded("write", |_| {
                let mapped = staging.get_mapped_range_mut(..bytes(&piece, rect));
                let mut mapped = mapped.map_err(|error| self.queue.unmapped(&error))?;
                // SAFETY: the staging buffer is mapped, has room for the piece, and is used by this thread alone. The caller
                // guarantees that the rectangle may be read.
                unsafe { piece.pack(rect, mapped.slice(..).as_raw_element_ptr().as_ptr().cast()) };
                drop(mapped);
                staging.unmap();
                Ok(())
            })??;
            packed.push((piece, staging));
        }
        self.submit_packed(rect, own, packed)
    }

    /// Submits the copies of packed pieces from staging memory to the device.
    fn submit_packed(&self, rect: &HostRect, own: &Rect, packed: Vec<(Piece, wgpu::Buffer)>) -> Result<()> {
        let ways: Vec<_> = packed.iter().map(|(piece, _)| self.way(piece, own, rect.dtype.size())).collect();
        let submission = self.queue.guarded("write", |device| {
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("LD") });
            for ((_, staging), way) in packed.iter().zip(ways) {
                self.record(device, &mut encoder, (&own.buffer.raw, way), staging);
            }
            self.queue.submit(encoder)
        })?;
        packed.into_iter().for_each(|(_, staging)| self.give_back(staging, Some(submission.clone())));
        Ok(())
    }

    /// Chooses how the device copies a piece between a buffer and staging memory.
    fn way(&self, piece: &Piece, own: &Rect, size: usize) -> Way<'_> {
        let mut runs = runs(piece, own, size);
        let cols = runs.len();
        if cols > MAX_COPIES
            && let Some(strided) = self.strided()
            && let Some([start, _, rows]) = runs.next()
        {
            return Way::Kernel(strided, Columns { start, ld: (own.ld * size) as u64, rows, cols: cols as u64 });
        }
        Way::Copies(runs.collect())
    }

    /// Returns the kernel for rectangles with gaps. Returns `None` if the device cannot run the kernel, or has no memory for it now.
    fn strided(&self) -> Option<&Strided> {
        if self.strided.get().is_none() {
            // a lack of memory may end, so that the next rectangle tries again
            let made = Strided::new(&self.queue, self.mode, self.staging_bytes()).ok()?;
            let _ = self.strided.set(made);
        }
        self.strided.get()?.as_ref()
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
        let under_way =
            |(&(_, piece, rect), staging)| UnderWay { piece, rect, staging, submission: submission.clone(), early: None };
        Ok(pieces.iter().zip(staging).map(under_way).collect())
    }

    /// Waits until a piece has been copied from the device to staging memory, and unpacks the piece into its rectangle.
    unsafe fn empty(&self, UnderWay { piece, rect, staging, submission, early }: UnderWay) -> Result<()> {
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
        drop(early);
        Ok(())
    }

    /// Size of a staging buffer in bytes.
    fn staging_bytes(&self) -> u64 {
        (self.piece as u64).next_multiple_of(8)
    }

    fn idle(&self) -> MutexGuard<'_, VecDeque<(wgpu::Buffer, Option<Submission>)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the staging buffers that no transfer uses.
    pub fn trim(&self) {
        self.idle().clear();
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

/// Number of pieces whose copies to the device a thread with `pieces` pieces of a transfer submits together.
fn writes_together(pieces: usize) -> usize {
    (pieces / 2).clamp(1, MAX_WRITES_PER_SUBMISSION)
}

/// Distributes items in turn among several threads. Returns the items of each thread.
fn deal<T>(items: impl IntoIterator<Item = T>, threads: usize) -> Vec<Vec<T>> {
    let mut of_threads: Vec<Vec<T>> = (0..threads).map(|_| Vec::new()).collect();
    items.into_iter().enumerate().for_each(|(number, item)| of_threads[number % threads].push(item));
    of_threads
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
mod tests;
