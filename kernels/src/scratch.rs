//! Scratch memory: what kernels need besides their operands.

use std::sync::Arc;

use lapidary_core::Result;

/// Use of scratch memory. Uses that nest in one another have different purposes.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Packed operands of a product.
    Panels,
    /// A product that is a factor of the next one.
    Product,
    /// Values that the groups factoring a panel exchange.
    PivotExchange,
    /// The panel being factored by strips.
    Strips,
    /// Counters of strips taken and strips done, if [`Choices::waits`](crate::Choices::waits). Kernels index strips by them, so
    /// they must be zero whenever no kernel runs.
    StripCounters,
}

impl Purpose {
    const COUNT: usize = Purpose::StripCounters as usize + 1;

    /// Maximum scratch memory for one purpose, in bytes, on a device whose memory is limited to `limit` bytes.
    pub(crate) fn share(limit: usize) -> usize {
        reserve(limit) / Purpose::COUNT
    }
}

/// Bytes reserved for scratch memory on a device whose memory is limited to `limit` bytes.
fn reserve(limit: usize) -> usize {
    limit / 8
}

/// Least bytes of a buffer if there is no memory limit, so that a series of small calls of
/// growing size allocates once. It also avoids a false report of oclgrind, which may take written
/// values for unwritten after a larger buffer has replaced a smaller one. (It reports
/// nothing if every call gets new memory.)
const LEAST: usize = 64 << 10;

/// Scratch memory for each [`Purpose`], kept for the next call. When it is replaced by larger memory, kernels that still use
/// the smaller one keep it alive until they are done.
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
    /// Counts scratch memory against a memory limit of `limit` bytes, of which an eighth is reserved for it. The device's
    /// [`Choices`](crate::Choices::within_memory) must be made for the same limit.
    pub fn limit_memory(&mut self, limit: usize) {
        self.limit = Some(limit);
    }

    /// How many bytes of the memory limit are set aside for scratch memory, so that other buffers may not use them: the
    /// reserve, or what scratch memory holds if that is more. 0 if there is no limit.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.limit.map_or(0, |limit| self.held().max(reserve(limit)))
    }

    /// Bytes of scratch memory held.
    fn held(&self) -> usize {
        self.kept.iter().flatten().map(|(_, bytes)| bytes).sum()
    }

    /// Whether all kernels must end before [`Scratch::get`] is called: they may still use smaller memory for the same purpose,
    /// which together with the new memory may exceed the limit.
    #[must_use]
    pub fn must_finish(&self, purpose: Purpose, bytes: usize) -> bool {
        self.limit.is_some() && self.kept[purpose as usize].as_ref().is_some_and(|&(_, held)| held < bytes)
    }

    /// Memory of at least `bytes`: the kept memory, or new memory that replaces it.
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
        // the smaller memory is freed first
        *kept = None;
        let buffer = Arc::new(alloc(bytes)?);
        *kept = Some((Arc::clone(&buffer), bytes));
        Ok(buffer)
    }

    /// Frees the kept memory.
    pub fn clear(&mut self) {
        self.kept.fill_with(|| None);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use lapidary_core::{Error, ErrorKind};

    use super::*;

    /// Memory that is counted while it lives.
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
        // a small request takes the least size
        for (purpose, kibibytes, total) in
            [(Purpose::Panels, 100, 100), (Purpose::StripCounters, 1, 164), (Purpose::Panels, 50, 164), (Purpose::Panels, 200, 264)]
        {
            // smaller memory is freed before larger memory is allocated
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
        // memory beyond the reserve, which kernels cannot do without, is counted too
        get(&mut scratch, 120).unwrap();
        assert_eq!(scratch.bytes(), 120);
        let refused = scratch.get(Purpose::Strips, 130, |_| Err(Error::new(ErrorKind::OutOfMemory, "alloc", "no memory")));
        assert_eq!((refused.unwrap_err().kind(), scratch.bytes()), (ErrorKind::OutOfMemory, 100));
    }
}
