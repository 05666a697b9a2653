//! Physical registers: pieces of one device's memory that virtual registers use in turn.

use crate::error::{Error, Result};

/// Index of a physical register of a device.
pub type SlotId = u32;

/// A physical register as a command sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Which one.
    pub id: SlotId,
    /// Its size. A slot that changes its size has new memory.
    pub bytes: usize,
}

/// Where the physical registers of a device get their memory.
pub trait Supply {
    /// Memory for a physical register that has none.
    ///
    /// # Errors
    /// [`OutOfMemory`](crate::ErrorKind::OutOfMemory) or [`OutOfHostMemory`](crate::ErrorKind::OutOfHostMemory) if the device
    /// has less than its limit says: it goes on with what it has. [`DeviceLost`](crate::ErrorKind::DeviceLost) counts as no memory at all. Any other error ends the run.
    fn obtain(&mut self, slot: Slot) -> Result<()>;
    /// The memory of a physical register goes back to the device.
    fn release(&mut self, slot: SlotId);
}

/// Memory without end, for runs on paper.
#[derive(Clone, Copy, Debug)]
pub struct Endless;

impl Supply for Endless {
    fn obtain(&mut self, _: Slot) -> Result<()> {
        Ok(())
    }
    fn release(&mut self, _: SlotId) {}
}

/// The physical registers of a device under its memory limit.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Bytes that may be held: what was promised, or less once that was refused.
    limit: usize,
    /// Why the device has less than its limit said.
    shortage: Option<Error>,
    held: usize,
    sizes: Vec<usize>,
    /// Slots with memory that no register uses.
    free: Vec<SlotId>,
    /// Slots without memory.
    vacant: Vec<SlotId>,
}

impl Slots {
    pub(crate) fn new(limit: usize) -> Self {
        Slots { limit, shortage: None, held: 0, sizes: Vec::new(), free: Vec::new(), vacant: Vec::new() }
    }

    pub(crate) fn get(&self, id: SlotId) -> Slot {
        Slot { id, bytes: self.sizes[id as usize] }
    }

    /// Whether the device turned out to have less than its limit said.
    pub(crate) fn is_short(&self) -> bool {
        self.shortage.is_some()
    }

    /// Why the device cannot hold `bytes` at once, if it turned out to have too little.
    pub(crate) fn shortage(&mut self, bytes: usize) -> Option<Error> {
        if bytes > self.limit { self.shortage.take() } else { None }
    }

    /// Memory of `bytes`: a free slot of that size; else a new one within the
    /// limit; else in place of free ones of other sizes.
    pub(crate) fn take(&mut self, bytes: usize, supply: &mut impl Supply) -> Result<Option<SlotId>> {
        if let Some(at) = self.free.iter().position(|&id| self.sizes[id as usize] == bytes) {
            return Ok(Some(self.free.swap_remove(at)));
        }
        loop {
            let free: usize = self.free.iter().map(|&id| self.sizes[id as usize]).sum();
            if self.held - free + bytes > self.limit {
                return Ok(None);
            }
            // idle memory of other sizes is never more than what is asked for
            let mut idle = free;
            while self.held + bytes > self.limit || (idle >= bytes && idle > 0) {
                idle -= self.release(supply);
            }
            let id = self.assign(bytes);
            match supply.obtain(self.get(id)) {
                Ok(()) => {
                    self.held += bytes;
                    return Ok(Some(id));
                }
                Err(error) if error.kind().leaves_it_to_others() && bytes > 0 => {
                    // so much it cannot hold
                    self.vacant.push(id);
                    self.limit = self.held + bytes - 1;
                    self.shortage = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the memory of the largest free slot back to the device.
    fn release(&mut self, supply: &mut impl Supply) -> usize {
        let sizes = &self.sizes;
        let largest = (0..self.free.len()).max_by_key(|&at| sizes[self.free[at] as usize]);
        let id = self.free.swap_remove(largest.expect("free slots make up the excess"));
        let bytes = self.sizes[id as usize];
        self.held -= bytes;
        self.vacant.push(id);
        supply.release(id);
        bytes
    }

    /// A slot without memory, or a new one, gets the size.
    fn assign(&mut self, bytes: usize) -> SlotId {
        if let Some(id) = self.vacant.pop() {
            self.sizes[id as usize] = bytes;
            return id;
        }
        self.sizes.push(bytes);
        SlotId::try_from(self.sizes.len() - 1).expect("fewer slots than registers")
    }

    /// Gives all memory that no register uses back to the device.
    pub(crate) fn release_all(&mut self, supply: &mut impl Supply) {
        while !self.free.is_empty() {
            self.release(supply);
        }
    }

    pub(crate) fn give_back(&mut self, id: SlotId) {
        self.free.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// A device of so many bytes, whatever its limit says.
    struct Budget {
        left: usize,
        held: Vec<Slot>,
    }

    impl Supply for Budget {
        fn obtain(&mut self, slot: Slot) -> Result<()> {
            self.left = self.left.checked_sub(slot.bytes).ok_or_else(|| Error::new(ErrorKind::OutOfMemory, "alloc", "full"))?;
            self.held.push(slot);
            Ok(())
        }
        fn release(&mut self, id: SlotId) {
            let at = self.held.iter().position(|slot| slot.id == id).expect("only what is held is released");
            self.left += self.held.swap_remove(at).bytes;
        }
    }

    fn budget(left: usize) -> Budget {
        Budget { left, held: Vec::new() }
    }

    #[test]
    fn memory_is_reused_and_never_exceeds_the_limit() {
        let mut slots = Slots::new(100);
        let take = |slots: &mut Slots, bytes| slots.take(bytes, &mut Endless).unwrap();
        let a = take(&mut slots, 60).unwrap();
        let b = take(&mut slots, 40).unwrap();
        assert_eq!(take(&mut slots, 1), None);
        slots.give_back(b);
        assert_eq!(take(&mut slots, 40), Some(b));
        slots.give_back(a);
        let c = take(&mut slots, 50).unwrap();
        assert_eq!((slots.held, slots.get(c).bytes), (90, 50));
        assert_eq!(take(&mut slots, 20), None);
    }

    #[test]
    fn a_slot_that_changes_its_size_is_released_first() {
        let (mut slots, mut device) = (Slots::new(100), budget(100));
        let empty = slots.take(0, &mut device).unwrap().unwrap();
        slots.give_back(empty);
        let a = slots.take(60, &mut device).unwrap().unwrap();
        assert_ne!(a, empty, "an empty slot keeps its size");
        slots.give_back(a);
        assert_eq!(slots.take(80, &mut device).unwrap(), Some(a));
        assert_eq!(device.left, 20);
    }

    #[test]
    fn idle_memory_of_other_sizes_is_less_than_what_is_asked_for() {
        let (mut slots, mut device) = (Slots::new(100), budget(100));
        let idle = [30, 40].map(|bytes| slots.take(bytes, &mut device).unwrap().unwrap());
        idle.into_iter().for_each(|id| slots.give_back(id));
        slots.take(20, &mut device).unwrap().unwrap();
        assert_eq!(device.left, 80);
    }

    #[test]
    fn a_device_with_less_than_its_limit_goes_on_with_what_it_has() {
        let (mut slots, mut device) = (Slots::new(1000), budget(100));
        let a = slots.take(60, &mut device).unwrap().unwrap();
        assert_eq!(slots.take(60, &mut device).unwrap(), None, "the device is full");
        slots.give_back(a);
        // in place of the free one, though the limit once said that both fit
        assert!(slots.take(40, &mut device).unwrap().is_some());
        assert!(slots.shortage(119).is_none());
        assert_eq!(slots.shortage(120).unwrap().kind(), ErrorKind::OutOfMemory);
    }

    #[test]
    fn an_error_that_is_no_shortage_is_passed_on() {
        struct Broken(ErrorKind);
        impl Supply for Broken {
            fn obtain(&mut self, _: Slot) -> Result<()> {
                Err(Error::new(self.0, "alloc", "refused"))
            }
            fn release(&mut self, _: SlotId) {}
        }
        let refused = |bytes, kind| Slots::new(10).take(bytes, &mut Broken(kind)).unwrap_err().kind();
        assert_eq!(refused(1, ErrorKind::DeviceFailed), ErrorKind::DeviceFailed);
        // with no memory less than none could be tried
        assert_eq!(refused(0, ErrorKind::OutOfMemory), ErrorKind::OutOfMemory);
    }
}
