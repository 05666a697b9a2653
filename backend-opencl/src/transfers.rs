//! Transfers of rectangles between the caller's memory and the buffers of a device.

use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cl3::command_queue::{
    enqueue_copy_buffer, enqueue_read_buffer, enqueue_read_buffer_rect, enqueue_write_buffer, enqueue_write_buffer_rect,
};
use cl3::types::{CL_BLOCKING, CL_NON_BLOCKING};
use lapidary_core::{CopyPool, Error, ErrorKind, HostRect, Piece, Result, Token, copy_threads};

use crate::buffer::{Buffer, Context, Event, Rect};
use crate::conv::failed;
use crate::pages::Pages;
use crate::pinned::{Pinned, Staging};
use crate::platform::Found;
use crate::queue::{Queue, wait};
use crate::running::{Health, Running};

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    ToDevice,
    ToHost,
}

/// Default size of a piece of staging memory, in bytes. All pieces of a transfer that are in the queue at the same time should delay the report
/// of the end of a kernel little, as [`Transfers::direct`] explains.
const PIECE: usize = 2 << 20;

/// Default size of a piece of a direct transfer, in bytes. A copy of this size takes 150 µs on a link of 55 GB/s.
const DIRECT_PIECE: usize = 8 << 20;

/// Default minimum length of the columns of a rectangle in pinned memory that the device loads without staging memory, in bytes. In a product on an
/// H200, the driver loads columns of 4 KiB at 20 to 29 GB/s, of 8 and 16 KiB at 31, and of 32 KiB at 54
/// (bench/results/opencl/2026-11-29-h200-pinned-columns.txt).
const MIN_DIRECT_COLUMN: usize = 32 << 10;

/// Minimum number of threads that copy to staging memory faster than the driver loads short columns. Eight threads copy 39 to 49 GB/s (the same file).
const MIN_THREADS_TO_PACK: usize = 8;

/// A queue for transfers in one direction, with its staging memory.
#[derive(Debug)]
pub(crate) struct Transfers {
    context: Arc<Context>,
    queue: Arc<Queue>,
    health: Health,
    direction: Direction,
    /// Pieces of staging memory that no transfer uses at present.
    idle: Mutex<Vec<Staging>>,
    /// Whether transfers bypass staging memory. The driver of a CPU copies the caller's memory as fast as threads of Lapidary
    /// would.
    bypasses_staging: bool,
    /// Size of a piece of staging memory, in bytes.
    piece: usize,
    /// Size of a piece of a transfer without staging memory, in bytes.
    direct_piece: usize,
    /// Minimum length of the columns of a rectangle in pinned memory that is loaded without staging memory, in bytes.
    min_direct_column: usize,
    /// Size of the largest buffer in bytes.
    max_buffer: usize,
    /// The threads that copy to or from staging memory.
    threads: CopyPool,
    /// The thread that transfers rectangles without staging memory in pieces, one rectangle after the other. Kernels usually wait for the rectangle
    /// that was submitted first.
    direct_thread: CopyPool,
}

impl Transfers {
    pub fn new(context: &Arc<Context>, found: &Found, health: &Health, direction: Direction) -> Result<Self> {
        let queue = Arc::new(Queue::new(context, found)?);
        let (context, health, idle) = (Arc::clone(context), health.clone(), Mutex::default());
        Ok(Transfers {
            context,
            queue,
            health,
            direction,
            idle,
            bypasses_staging: found.facts.is_cpu(),
            piece: PIECE,
            direct_piece: DIRECT_PIECE,
            min_direct_column: MIN_DIRECT_COLUMN,
            max_buffer: found.facts.limits.buffer,
            threads: CopyPool::default(),
            direct_thread: CopyPool::in_order(),
        })
    }

    /// Sets the sizes of pieces to `bytes` bytes, but at least to the size of the largest element type. This method also makes a CPU device
    /// use staging memory for memory that is not pinned, and for no pinned memory.
    #[cfg(feature = "test-hooks")]
    pub fn in_pieces(self, bytes: usize) -> Self {
        let bytes = bytes.max(lapidary_core::DType::LARGEST);
        Transfers { piece: bytes, direct_piece: bytes, min_direct_column: 0, bypasses_staging: false, ..self }
    }

    /// Allocates pinned memory, which this queue maps, and fills it with zeros.
    pub fn pin(&self, bytes: usize) -> Result<Pinned> {
        self.check_size(bytes)?;
        Pinned::new(&self.context, &self.queue, Pages::zeros(bytes, self.piece)?)
    }

    /// Returns an error if `bytes` is more than a buffer can have. Callers check this before they allocate and fill memory.
    fn check_size(&self, bytes: usize) -> Result<()> {
        let refused =
            || Error::new(ErrorKind::OutOfHostMemory, "transfer", format!("a buffer has at most {} bytes", self.max_buffer));
        if bytes > self.max_buffer { Err(refused().with("bytes", bytes)) } else { Ok(()) }
    }

    /// Allocates pinned memory for a piece, or ordinary memory if the driver pins no more.
    fn new_staging(&self) -> Result<Staging> {
        let memory = self.check_size(self.piece).and_then(|()| Pages::zeros(self.piece, self.piece));
        let pinned = memory.and_then(|memory| Pinned::new(&self.context, &self.queue, memory));
        pinned.map(Staging::Pinned).or_else(|_| Pages::new(self.piece).map(Staging::Plain))
    }

    /// Begins the transfer of a rectangle of host memory, which lies in pinned memory if `is_pinned`, to or from the rectangle `own` of a
    /// buffer. If one thread is enough and the caller waits for the transfer (`waits`), the calling thread does the copy.
    ///
    /// # Safety
    /// Until the token reports completion, the rectangle may be read or written, and no other code accesses this rectangle or the rectangle `own`
    /// of the buffer.
    pub unsafe fn begin(self: &Arc<Self>, rect: HostRect, is_pinned: bool, own: &Rect, waits: bool) -> Result<Token> {
        if rect.rows == 0 || rect.cols == 0 {
            return Ok(Token::DONE);
        }
        // SAFETY: the caller guarantees that the rectangle and the buffer may be accessed.
        unsafe {
            let is_direct = self.bypasses_staging || is_pinned && !self.is_faster_packed(&rect);
            if is_direct && rect.row_stride == 1 { self.direct(rect, own) } else { self.staged(rect, own, waits) }
        }
    }

    /// Whether a rectangle in pinned memory is loaded faster through staging memory, in which its columns lie side by side.
    fn is_faster_packed(&self, rect: &HostRect) -> bool {
        let threads = copy_threads(self.pieces(rect).len());
        self.direction == Direction::ToDevice && has_gaps_below(self.min_direct_column, rect) && threads >= MIN_THREADS_TO_PACK
    }

    /// Cuts a rectangle into the pieces that pass through staging memory.
    fn pieces(&self, rect: &HostRect) -> Vec<Piece> {
        Piece::cut(rect.rows, rect.cols, self.piece / rect.dtype.size())
    }

    /// Allocates the staging memory that a transfer needs, so that no later transfer fails for lack of staging memory.
    pub fn reserve(&self) -> Result<()> {
        let ring = self.take_two()?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(ring);
        Ok(())
    }

    /// Copies the first `bytes` bytes of one buffer to another, and waits for the copy.
    pub fn copy(&self, from: &Buffer, to: &Buffer, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let (queue, from, to, no_events) = (self.queue.handle(), from.handle(), to.handle(), std::ptr::null());
        // SAFETY: the driver checks the sizes of both buffers, and this function waits for the copy.
        let event = unsafe { enqueue_copy_buffer(queue, from, to, 0, 0, bytes, 0, no_events) };
        wait(&Event(event.map_err(|code| failed("clEnqueueCopyBuffer", code))?))
    }

    /// Writes the first byte of a buffer, so that the driver allocates the memory of the buffer.
    pub fn touch(&self, buffer: &Buffer) -> Result<()> {
        let (byte, no_events) = ([0_u8], std::ptr::null());
        // SAFETY: a buffer has at least one byte, and the call returns only after this byte is written.
        let event = unsafe {
            enqueue_write_buffer(self.queue.handle(), buffer.handle(), CL_BLOCKING, 0, 1, byte.as_ptr().cast(), 0, no_events)
        };
        event.map(|event| drop(Event(event))).map_err(|code| failed("clEnqueueWriteBuffer", code))
    }

    /// Transfers a rectangle that the driver accesses directly. A large rectangle is transferred in pieces, of which the queue holds at most
    /// two. NVIDIA's driver reports the end of a kernel only after the end of all copies in other queues that were enqueued before the
    /// kernel, so that a single long copy would delay the report.
    unsafe fn direct(self: &Arc<Self>, rect: HostRect, own: &Rect) -> Result<Token> {
        let most = if self.bypasses_staging { usize::MAX } else { self.direct_piece / rect.dtype.size() };
        let pieces = Piece::cut(rect.rows, rect.cols, most);
        // SAFETY: the caller guarantees access to the rectangle and to the buffer until the token reports completion.
        unsafe {
            if let [piece] = &pieces[..] {
                let event = self.enqueue_direct(&rect, piece, own)?;
                return Ok(Token::new(Running {
                    queue: Arc::clone(&self.queue),
                    event,
                    instruction: None,
                    health: self.health.clone(),
                }));
            }
            let (transfers, own) = (Arc::clone(self), own.clone());
            let copy = move || {
                let enqueue = |_: &mut (), piece: &Piece| transfers.enqueue_direct(&rect, piece, &own);
                let copied = transfers.two_at_a_time(pieces.into_iter(), [(), ()], enqueue, |(), _| {});
                transfers.health.record_loss(copied)
            };
            Ok(self.direct_thread.start(vec![copy]))
        }
    }

    /// Enqueues the transfer of a piece of a rectangle as one command, for which the driver accesses the caller's memory directly.
    unsafe fn enqueue_direct(&self, rect: &HostRect, piece: &Piece, own: &Rect) -> Result<Event> {
        let part = piece.of(rect);
        // a matrix of one column may have any column stride, so this stride is not passed to the driver
        let host_ld = if part.cols == 1 { part.rows } else { part.col_stride };
        // SAFETY: the caller guarantees access to the rectangle and to the buffer until the copy has completed.
        let event = unsafe { self.enqueue((part.origin, host_ld), piece, own, rect.dtype.size())? };
        self.queue.flush().inspect_err(|_| {
            // the driver may still access the caller's memory, so wait for the copy before the error is returned
            let _ = wait(&event);
        })?;
        Ok(event)
    }

    /// Enqueues the copy of a piece between host memory and the rectangle `own`, whose elements have `size` bytes. The columns of the piece
    /// begin `host_ld` elements apart in host memory. The copy does not block, because a blocking call may hold the driver's lock while other
    /// queues have work.
    unsafe fn enqueue(&self, (host, host_ld): (*mut u8, usize), piece: &Piece, own: &Rect, size: usize) -> Result<Event> {
        let Rect { buffer, offset, ld } = own;
        let [rows, cols] = piece.extent();
        let (queue, mem, host, no_events) = (self.queue.handle(), buffer.handle(), host.cast(), std::ptr::null());
        let mut runs = piece.runs_at(*offset, *ld);
        let is_contiguous = runs.len() == 1 && (host_ld == rows || cols == 1);
        let (at, bytes) = (runs.next().map_or(0, |[at, ..]| at * size), rows * cols * size);
        let (zero, origin) = ([0_usize; 3], [at % (ld * size), at / (ld * size), 0]);
        let (region, pitch, host_pitch) = ([rows * size, cols, 1], ld * size, host_ld * size);
        let (z, o, r) = (zero.as_ptr(), origin.as_ptr(), region.as_ptr());
        // SAFETY: the caller guarantees access to the host memory and to the buffer, in which the piece lies, until the copy has completed.
        let (call, event) = unsafe {
            match (self.direction, is_contiguous) {
                (Direction::ToDevice, true) => {
                    ("clEnqueueWriteBuffer", enqueue_write_buffer(queue, mem, CL_NON_BLOCKING, at, bytes, host, 0, no_events))
                }
                (Direction::ToDevice, false) => (
                    "clEnqueueWriteBufferRect",
                    enqueue_write_buffer_rect(queue, mem, CL_NON_BLOCKING, o, z, r, pitch, 0, host_pitch, 0, host, 0, no_events),
                ),
                (Direction::ToHost, true) => {
                    ("clEnqueueReadBuffer", enqueue_read_buffer(queue, mem, CL_NON_BLOCKING, at, bytes, host, 0, no_events))
                }
                (Direction::ToHost, false) => (
                    "clEnqueueReadBufferRect",
                    enqueue_read_buffer_rect(queue, mem, CL_NON_BLOCKING, o, z, r, pitch, 0, host_pitch, 0, host, 0, no_events),
                ),
            }
        };
        event.map(Event).map_err(|code| failed(call, code))
    }

    /// Moves a rectangle through staging memory in pieces, with several threads. Each thread takes the next piece of the rectangle. It fills or
    /// empties one piece of staging memory while the driver copies from or to the thread's other piece.
    unsafe fn staged(self: &Arc<Self>, rect: HostRect, own: &Rect, waits: bool) -> Result<Token> {
        let pieces = self.pieces(&rect);
        let threads = copy_threads(pieces.len());
        // The first job gets its staging memory here. Each other job allocates staging memory when it runs. If the allocation fails, the job ends, and
        // the other jobs move its pieces.
        let first = self.take_two()?;
        let shared = Arc::new((pieces, AtomicUsize::new(0)));
        let part = |staging: Option<[Staging; 2]>| {
            let (transfers, own, shared) = (Arc::clone(self), own.clone(), Arc::clone(&shared));
            move || {
                let Some(staging) = staging.or_else(|| transfers.take_two().ok()) else { return Ok(()) };
                let (pieces, next) = &*shared;
                let pieces = iter::from_fn(|| pieces.get(next.fetch_add(1, Ordering::Relaxed)).copied());
                // SAFETY: the caller guarantees that the rectangle and the buffer may be accessed; no two pieces overlap.
                transfers.health.record_loss(unsafe { transfers.part(&rect, &own, pieces, staging) })
            }
        };
        let mut parts: Vec<_> = iter::once(Some(first)).chain((1..threads).map(|_| None)).map(part).collect();
        match parts.pop() {
            Some(part) if waits && parts.is_empty() => part().map(|()| Token::DONE),
            last => {
                parts.extend(last);
                Ok(self.threads.start(parts))
            }
        }
    }

    /// Moves pieces of a rectangle with one thread. After an error, the thread takes the remaining pieces and does not move them, so that the transfer
    /// ends early.
    unsafe fn part(
        &self,
        rect: &HostRect,
        own: &Rect,
        pieces: impl Iterator<Item = Piece>,
        mut staging: [Staging; 2],
    ) -> Result<()> {
        let size = rect.dtype.size();
        let begin = |staging: &mut &mut Staging, piece: &Piece| {
            // SAFETY: the caller guarantees access to the rectangle and to the buffer, in which the piece lies; only this thread uses the
            // staging memory, into which the piece fits.
            unsafe {
                if self.direction == Direction::ToDevice {
                    piece.pack(rect, staging.ptr().cast());
                }
                let event = self.enqueue((staging.ptr().cast(), piece.extent()[0]), piece, own, size)?;
                self.queue.flush().map(|()| event)
            }
        };
        let end = |staging: &mut &mut Staging, piece: &Piece| {
            if self.direction == Direction::ToHost {
                // SAFETY: the copy has completed, so the staging memory holds the piece; the caller guarantees that the rectangle may be
                // written.
                unsafe { piece.unpack(staging.ptr().cast_const().cast(), rect) };
            }
        };
        let moved = self.two_at_a_time(pieces, staging.each_mut(), begin, end);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(staging);
        moved
    }

    /// Calls `begin` with each piece, and with the two values of `slots` in turn. Calls `end` with the same arguments after the end of the copy
    /// that `begin` returned, before the next use of the slot. Returns after the end of all copies, also if a copy fails.
    fn two_at_a_time<S>(
        &self,
        pieces: impl Iterator<Item = Piece>,
        mut slots: [S; 2],
        mut begin: impl FnMut(&mut S, &Piece) -> Result<Event>,
        mut end: impl FnMut(&mut S, &Piece),
    ) -> Result<()> {
        let mut under_way: [Option<(Event, Piece)>; 2] = [None, None];
        // the last two turns only end the copies that are under way
        let turns = pieces.map(Some).chain([None, None]).enumerate();
        let mut copied = Ok(());
        for (turn, piece) in turns {
            let slot = turn % 2;
            if let Some((event, piece)) = under_way[slot].take() {
                copied = copied.and(wait(&event).map(|()| end(&mut slots[slot], &piece)));
            }
            if let (Ok(()), Some(piece)) = (&copied, piece) {
                match begin(&mut slots[slot], &piece) {
                    Ok(event) => under_way[slot] = Some((event, piece)),
                    Err(error) => copied = Err(error),
                }
            }
        }
        if copied.is_err() {
            // if the wait for a copy failed, the copy may still access the memory of the caller or the staging memory
            let _ = self.queue.finish();
        }
        copied
    }

    /// The whole rectangle as one piece; `None` if the rectangle needs several pieces, or if the device uses no staging memory.
    pub fn single_piece(&self, rect: &HostRect) -> Option<Piece> {
        let pieces = self.pieces(rect);
        if let ([piece], false) = (&pieces[..], self.bypasses_staging) { Some(*piece) } else { None }
    }

    /// Copies buffers into host rectangles, each of which fits into one piece of staging memory. The copies run in the kernel queue
    /// `queue`, after all commands that the queue already holds. All copies are enqueued before this function waits for the first
    /// copy.
    ///
    /// # Safety
    /// The conditions of [`Transfers::begin`] hold until this function returns.
    pub unsafe fn read_each(&self, queue: &Queue, reads: &[(&Buffer, HostRect, Piece)]) -> Result<()> {
        if reads.is_empty() {
            return Ok(());
        }
        let mut staged = self.take_all(reads.len())?;
        let mut under_way = Vec::new();
        let enqueued = reads.iter().zip(&mut staged).try_for_each(|((buffer, rect, piece), staging)| {
            let (bytes, at) = (piece.count() * rect.dtype.size(), piece.offset(rect.rows) * rect.dtype.size());
            let (to, no_events) = (staging.ptr().cast(), std::ptr::null());
            // SAFETY: the caller guarantees access to the buffer, in which the piece lies; the piece fits into the staging memory,
            // which lives until the copy has ended.
            let event =
                unsafe { enqueue_read_buffer(queue.handle(), buffer.handle(), CL_NON_BLOCKING, at, bytes, to, 0, no_events) };
            under_way.push(Event(event.map_err(|code| failed("clEnqueueReadBuffer", code))?));
            Ok(())
        });
        let moved = enqueued.and_then(|()| queue.flush()).and_then(|()| under_way.iter().try_for_each(wait));
        if moved.is_err() {
            // if the wait for a copy failed, the copy may still use the staging memory
            let _ = queue.finish();
        } else {
            for ((_, rect, piece), staging) in reads.iter().zip(&mut staged) {
                // SAFETY: the copy has completed, so the staging memory holds the piece; the caller guarantees that the rectangle
                // may be written.
                unsafe { piece.unpack(staging.ptr().cast_const().cast(), rect) };
            }
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(staged);
        moved
    }

    fn take_two(&self) -> Result<[Staging; 2]> {
        self.take_all(2).map(|two| two.try_into().unwrap_or_else(|_| unreachable!("two were asked for")))
    }

    /// Takes `count` pieces of staging memory. On an error, the pieces of staging memory taken before the error become idle again.
    fn take_all(&self, count: usize) -> Result<Vec<Staging>> {
        let mut taken = Vec::new();
        while taken.len() < count {
            match self.take() {
                Ok(staging) => taken.push(staging),
                Err(error) => {
                    self.idle.lock().unwrap_or_else(PoisonError::into_inner).extend(taken);
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    /// Takes an idle piece of staging memory, or allocates a new piece.
    fn take(&self) -> Result<Staging> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| self.new_staging(), Ok)
    }
}

/// Whether the columns of a rectangle are shorter than `bytes` bytes, and do not lie side by side.
fn has_gaps_below(bytes: usize, rect: &HostRect) -> bool {
    rect.rows * rect.dtype.size() < bytes && rect.col_stride != rect.rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_columns_have_gaps_unless_they_lie_side_by_side() {
        let mut memory = [0.0_f64];
        let mut has_gaps = |rows, col_stride| {
            let rect = HostRect { rows, cols: 1000, col_stride, ..HostRect::packed(&mut memory, 1) };
            has_gaps_below(MIN_DIRECT_COLUMN, &rect)
        };
        assert!(has_gaps(512, 16_384) && has_gaps(4095, 16_384));
        assert!(!has_gaps(4096, 16_384) && !has_gaps(512, 512));
    }
}
