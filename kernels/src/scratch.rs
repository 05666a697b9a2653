//! Scratch memory: device memory that kernels need in addition to their operands.

use std::sync::Arc;

use lapidary_core::Result;

/// Purpose for which a kernel uses scratch memory. Two pieces of scratch memory that are used at the same time have different
/// purposes.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Packed copies of the operands of a product, or the parts of a product whose terms are divided.
    Panels,
    /// Product that is a factor of the next product, or copy of right-hand sides.
    Product,
    /// Inverses of blocks on the diagonal of a triangle, and the sums and flags by which they are judged.
    Inverses,
    /// Values that work-groups exchange while they factor a panel together.
    PivotExchange,
    /// Copy of a panel that is factored by strips.
    Strips,
    /// Words through which work-groups wait for one another. New memory is filled with zeros. If
    /// [`Tuning::groups_may_wait`](crate::Tuning::groups_may_wait) is set, the words count the strips that work-groups have taken and the
    /// strips that they have factored; the counters are zero whenever no kernel runs. On other devices, the words are messages of
    /// `getrf_held_rows` and `trsv`, and each launch of these kernels clears the messages of the launch before it.
    Synchronisation,
}

impl Purpose {
    const COUNT: usize = Purpose::Synchronisation as usize + 1;

    /// Whether new memory is filled with zeros.
    #[must_use]
    pub fn begins_with_zeros(self) -> bool {
        matches!(self, Purpose::Synchronisation)
    }

    /// Maximum scratch memory for one purpose, in bytes, on a device whose memory is limited to `limit` bytes.
    pub(crate) fn share(limit: usize) -> usize {
        reserve(limit) / Purpose::COUNT
    }
}

/// Bytes reserved for scratch memory on a device whose memory is limited to `limit` bytes.
fn reserve(limit: usize) -> usize {
    limit / 8
}

/// Minimum size of a buffer in bytes if there is no memory limit. Because of the minimum, a series of small calls of growing size
/// allocates memory once. The minimum also avoids a false report of oclgrind, which may treat written values as unwritten after a
/// larger buffer has replaced a smaller one. (oclgrind reports nothing if every call gets new memory.)
const LEAST: usize = 64 << 10;

/// Scratch memory for each [`Purpose`], kept for later calls. If larger memory replaces a buffer, the smaller buffer stays alive
/// until the kernels that use it have completed.
#[derive(Debug)]
pub struct Scratch<B> {
    kept: [Option<(Arc<B>, usize)>; Purpose::COUNT],
    /// Memory limit of the device in bytes, or `None` if there is no limit.
    limit: Option<usize>,
}

impl<B> Default for Scratch<B> {
    fn default() -> Self {
        Scratch { kept: [const { None }; Purpose::COUNT], limit: None }
    }
}

impl<B> Scratch<B> {
    /// Counts scratch memory against a memory limit of `limit` bytes, an eighth of which is reserved for scratch memory. The
    /// caller must make the device's [`Tuning`](crate::Tuning::within_memory) for the same limit.
    pub fn limit_memory(&mut self, limit: usize) {
        self.limit = Some(limit);
    }

    /// Returns how many bytes of the memory limit other buffers may not use, because they are set aside for scratch memory. The
    /// value is the reserved eighth of the limit, or the size of the scratch memory if that is more. The value is 0 if there is
    /// no limit.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.limit.map_or(0, |limit| self.held().max(reserve(limit)))
    }

    /// Returns the bytes of scratch memory that are allocated.
    fn held(&self) -> usize {
        self.kept.iter().flatten().map(|(_, bytes)| bytes).sum()
    }

    /// Returns whether all kernels must complete before [`Scratch::get`] is called. Kernels that are still running may keep
    /// smaller memory for the same purpose alive, and the smaller and the new memory together may exceed the limit.
    #[must_use]
    pub fn must_finish(&self, purpose: Purpose, bytes: usize) -> bool {
        self.limit.is_some() && self.kept[purpose as usize].as_ref().is_some_and(|&(_, held)| held < bytes)
    }

    /// Returns memory of at least `bytes` bytes: the kept memory, or new memory that replaces it.
    ///
    /// # Errors
    /// The error that `alloc` returns.
    pub fn get(&mut self, purpose: Purpose, bytes: usize, alloc: impl FnOnce(usize) -> Result<B>) -> Result<Arc<B>> {
        let kept = &mut self.kept[purpose as usize];
        if let Some((buffer, held)) = kept
            && *held >= bytes
        {
            return Ok(Arc::clone(buffer));
        }
        let bytes = if self.limit.is_none() { bytes.max(LEAST) } else { bytes };
        // frees the smaller memory before the larger memory is allocated
        *kept = None;
        let buffer = Arc::new(alloc(bytes)?);
        *kept = Some((Arc::clone(&buffer), bytes));
        Ok(buffer)
    }

    /// Frees all kept memory.
    pub fn clear(&mut self) {
        self.kept.fill_with(|| None);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use lapidary_core::{Error, ErrorKind};

    use super::*;

    /// Memory whose bytes are counted while the value is alive.
    struct Counted<'a>(&'a Cell<usize>, usize);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - self.1);
        }
    }

    #[test]
    fn what_is_held_is_counted_and_given_up_when_asked() {
        let held = Cell::new(0);
        let alloc = |bytes| {
            held.set(held.get() + bytes);
            Ok(Counted(&held, bytes))
        };
        let mut scratch = Scratch::default();
        // the request for 1 KiB allocates the minimum of 64 KiB
        for (purpose, kibibytes, total) in [
            (Purpose::Panels, 100, 100),
            (Purpose::Synchronisation, 1, 164),
            (Purpose::Panels, 50, 164),
            (Purpose::Panels, 200, 264),
        ] {
            // the smaller memory must be free when the larger memory is allocated
            let alloc = |bytes| alloc(bytes).inspect(|_| assert!(held.get() <= 264 << 10));
            drop(scratch.get(purpose, kibibytes << 10, alloc).unwrap());
            assert_eq!((scratch.held(), held.get(), scratch.bytes()), (total << 10, total << 10, 0));
        }
        scratch.clear();
        assert_eq!((scratch.held(), held.get()), (0, 0));
    }

    #[test]
    fn a_limit_reserves_an_eighth_and_has_kernels_finish_before_memory_grows() {
        let mut scratch = Scratch::default();
        let get = |scratch: &mut Scratch<()>, bytes| scratch.get(Purpose::Strips, bytes, |_| Ok(())).map(drop);
        get(&mut scratch, 10).unwrap();
        assert!(!scratch.must_finish(Purpose::Strips, 1 << 20), "without a limit nothing waits");
        scratch.clear();
        scratch.limit_memory(800);
        get(&mut scratch, 10).unwrap();
        assert_eq!(scratch.bytes(), 100);
        let must_finish = [(Purpose::Strips, 10), (Purpose::Strips, 11), (Purpose::Panels, 11)];
        assert_eq!(must_finish.map(|(purpose, bytes)| scratch.must_finish(purpose, bytes)), [false, true, false]);
        // scratch memory beyond the reserve counts against the limit too
        get(&mut scratch, 120).unwrap();
        assert_eq!(scratch.bytes(), 120);
        let refused = scratch.get(Purpose::Strips, 130, |_| Err(Error::new(ErrorKind::OutOfMemory, "alloc", "no memory")));
        assert_eq!((refused.unwrap_err().kind(), scratch.bytes()), (ErrorKind::OutOfMemory, 100));
    }
}
