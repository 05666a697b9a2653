//! Tests of transfers: their pieces, their order in the queue, and their staging memory.

use lapidary_core::copy_threads;

use super::*;
use crate::buffer::Buffer;
use crate::program::tests::queue;

/// Submits commands that keep the device busy for longer than the host takes to pack all pieces of a test.
fn keep_busy(queue: &Queue) {
    let long = Buffer::new(queue, 64 << 20).unwrap();
    let mut encoder = queue.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    (0..100).for_each(|_| encoder.clear_buffer(&long.raw, 0, None));
    queue.submit(encoder);
}

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
    keep_busy(&queue);
    // SAFETY: the rectangles are the vectors `from` and `to`, which nothing else accesses until the tokens are done.
    unsafe {
        load.begin(rect(&mut from), &register).wait().unwrap();
        store.begin(rect(&mut to), &register).wait().unwrap();
    }
    assert_eq!(from, to);
    let threads = copy_threads(rows * cols);
    let (loaded, stored) = (load.idle().len(), store.idle().len());
    assert!(
        loaded <= MAX_WRITES_IN_FLIGHT + MAX_WRITES_PER_SUBMISSION * threads
            && stored <= MAX_EARLY_READS + READS_IN_FLIGHT * threads,
        "{loaded} and {stored} buffers by {threads} threads"
    );
    load.trim();
    store.trim();
    assert_eq!([load.idle().len(), store.idle().len()], [0, 0]);
}

#[test]
fn a_thread_submits_several_pieces_of_a_long_load_together() {
    assert_eq!([1, 2, 3, 4, 7, 8, 1000].map(writes_together), [1, 1, 1, 2, 3, 4, 4]);
    let Some(queue) = queue().map(Arc::new) else { return };
    let load = Arc::new(Transfers::new(Arc::clone(&queue), wgpu::MapMode::Write).in_pieces(16));
    let mut from = vec![1.0; 14];
    let register = Rect { buffer: Buffer::new(&queue, size_of_val(&from[..])).unwrap(), offset: 0, ld: 2 };
    let rect = HostRect::packed(&mut from, 2);
    // SAFETY: the rectangle is the vector `from`, which nothing else accesses.
    unsafe { load.fill(&rect, &load.pieces(&rect), &register).unwrap() };
    let idle = load.idle();
    let ends: Vec<_> = idle.iter().map(|(_, last)| Arc::as_ptr(&last.as_ref().unwrap().end)).collect();
    assert_eq!(ends, [ends[0]; 7], "one submission for all pieces");
}

/// Tests that a transfer from the device submits copies when it begins, also while all threads are busy.
#[test]
fn copies_from_the_device_are_submitted_when_the_transfer_begins() {
    let Some(queue) = queue().map(Arc::new) else { return };
    let (rows, cols) = (16, 2 * MAX_EARLY_READS);
    let [load, store] = [wgpu::MapMode::Write, wgpu::MapMode::Read]
        .map(|mode| Arc::new(Transfers::new(Arc::clone(&queue), mode).in_pieces(8 * rows)));
    let mut from: Vec<f64> = (1..=rows * cols).map(|i| i as f64).collect();
    let mut to = vec![0.0; from.len()];
    let register = Rect { buffer: Buffer::new(&queue, size_of_val(&from[..])).unwrap(), offset: 0, ld: rows };
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let wait = |_| {
        let released = Arc::clone(&released);
        move || {
            let _ = released.lock().unwrap().recv();
            Ok(())
        }
    };
    // SAFETY: the rectangles are the vectors `from` and `to`, which nothing else accesses until the tokens are done.
    unsafe {
        load.run(HostRect::packed(&mut from, rows), &register).unwrap();
        // more jobs than a pool has threads
        let busy = store.threads.start((0..64).map(wait).collect());
        let token = store.begin(HostRect::packed(&mut to, rows), &register);
        let mut encoder = queue.device().create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.clear_buffer(&register.buffer.raw, 0, None);
        queue.submit(encoder);
        drop(release);
        busy.wait().and(token.wait()).unwrap();
    }
    let early = rows * MAX_EARLY_READS;
    assert_eq!(to[..early], from[..early]);
    assert!(to[early..].iter().all(|&element| element == 0.0), "the threads submit the rest");
    assert_eq!(store.early.load(Ordering::Relaxed), 0);
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
