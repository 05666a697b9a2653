//! Scratch memory: what kernels need beside their operands.

use std::sync::Arc;

use lapidary_core::Result;

/// What scratch memory is for: one for each use that may be under way inside another.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Packed operands of a product.
    Panels,
    /// A product that is a factor of the next one.
    Product,
    /// What the groups that factor a panel tell one another.
    Notes,
    /// A panel while it is factored by strips.
    Strips,
    /// How many strips are taken and done, where [`Choices::waits`](crate::Choices::waits): zero whenever no kernel runs, since
    /// kernels reach strips by these numbers.
    Turns,
}

impl Purpose {
    const COUNT: usize = Purpose::Turns as usize + 1;

    /// Bytes that scratch memory for one purpose may take on a device whose memory is limited to `limit` bytes.
    pub(crate) fn share(limit: usize) -> usize {
        reserve(limit) / Purpose::COUNT
    }
}

/// Bytes of a memory limit that are reserved for scratch memory.
fn reserve(limit: usize) -> usize {
    limit / 8
}

/// Least size of a buffer in bytes where nothing limits memory: a series of small calls
/// takes memory once. It also keeps a false report out of oclgrind, which can take a
/// written value for unwritten where a larger buffer reuses the place of a smaller one.
const LEAST: usize = 64 << 10;

/// Scratch memory by its [`Purpose`], kept for the next call; kernels that still use
/// smaller memory hold it until they are done.
#[derive(Debug)]
pub struct Scratch<B> {
    kept: [Option<(Arc<B>, usize)>; Purpose::COUNT],
    /// The device's memory limit in bytes.
    limit: Option<usize>,
}

impl<B> Default for Scratch<B> {
    fn default() -> Self {
        Scratch { kept: [const { None }; Purpose::COUNT], limit: None }
    }
}

impl<B> Scratch<B> {
    /// Counts against a memory limit of so many bytes, of which an eighth is reserved for scratch memory. The device's
    /// [`Choices`](crate::Choices::within_memory) must be made for the same limit.
    pub fn limit_memory(&mut self, limit: usize) {
        self.limit = Some(limit);
    }

    /// Bytes of a memory limit that the device's buffers may not take: the reserve, or more if more is held. 0 without a
    /// limit: scratch memory is then not counted.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.limit.map_or(0, |limit| self.held().max(reserve(limit)))
    }

    /// Bytes that are held.
    fn held(&self) -> usize {
        self.kept.iter().flatten().map(|(_, bytes)| bytes).sum()
    }

    /// Whether the device must have finished its kernels before [`Scratch::get`] is called: these may hold smaller memory
    /// for the same purpose, and both together may exceed the memory limit.
    #[must_use]
    pub fn must_finish(&self, purpose: Purpose, bytes: usize) -> bool {
        self.limit.is_some() && self.kept[purpose as usize].as_ref().is_some_and(|&(_, held)| held < bytes)
    }

    /// Memory of at least `bytes`: what is kept, or new memory in its place.
    ///
    /// # Errors
    /// As `alloc`.
    pub fn get(&mut self, purpose: Purpose, bytes: usize, alloc: impl FnOnce(usize) -> Result<B>) -> Result<Arc<B>> {
        let kept = &mut self.kept[purpose as usize];
        if let Some((buffer, held)) = kept
            && *held >= bytes
        {
            return Ok(Arc::clone(buffer));
        }
        let bytes = if self.limit.is_none() { bytes.max(LEAST) } else { bytes };
        // given back before there is more
        *kept = None;
        let buffer = Arc::new(alloc(bytes)?);
        *kept = Some((Arc::clone(&buffer), bytes));
        Ok(buffer)
    }

    /// Gives up the memory that is kept.
    pub fn clear(&mut self) {
        self.kept.fill_with(|| None);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use lapidary_core::{Error, ErrorKind};

    use super::*;

    /// Memory that counts itself.
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
        // a small one takes the least
        for (purpose, kibibytes, total) in
            [(Purpose::Panels, 100, 100), (Purpose::Turns, 1, 164), (Purpose::Panels, 50, 164), (Purpose::Panels, 200, 264)]
        {
            // smaller memory is given back before there is more
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
        // what kernels cannot do without is counted even beyond the reserve
        get(&mut scratch, 120).unwrap();
        assert_eq!(scratch.bytes(), 120);
        let refused = scratch.get(Purpose::Strips, 130, |_| Err(Error::new(ErrorKind::OutOfMemory, "alloc", "no memory")));
        assert_eq!((refused.unwrap_err().kind(), scratch.bytes()), (ErrorKind::OutOfMemory, 100));
    }
}
