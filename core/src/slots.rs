//! Physical registers: pieces of one device's memory that virtual registers use in turn.

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

/// The physical registers of a device under its memory limit.
#[derive(Debug)]
pub(crate) struct Slots {
    limit: usize,
    held: usize,
    sizes: Vec<usize>,
    /// Slots with memory that no register uses.
    free: Vec<SlotId>,
    /// Slots without memory.
    vacant: Vec<SlotId>,
    /// Slots whose memory went back to the device since last asked.
    released: Vec<SlotId>,
}

impl Slots {
    pub(crate) fn new(limit: usize) -> Self {
        Slots { limit, held: 0, sizes: Vec::new(), free: Vec::new(), vacant: Vec::new(), released: Vec::new() }
    }

    pub(crate) fn get(&self, id: SlotId) -> Slot {
        Slot { id, bytes: self.sizes[id as usize] }
    }

    /// Memory of `bytes`: a free slot of that size; else a new one within the
    /// limit; else in place of free ones of other sizes.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<SlotId> {
        if let Some(at) = self.free.iter().position(|&id| self.sizes[id as usize] == bytes) {
            return Some(self.free.swap_remove(at));
        }
        let free: usize = self.free.iter().map(|&id| self.sizes[id as usize]).sum();
        if self.held - free + bytes > self.limit {
            return None;
        }
        // idle memory of other sizes is never more than what is asked for
        let mut idle = free;
        while self.held + bytes > self.limit || (idle >= bytes && idle > 0) {
            idle -= self.release();
        }
        self.held += bytes;
        Some(self.assign(bytes))
    }

    /// Gives the memory of the largest free slot back to the device.
    fn release(&mut self) -> usize {
        let sizes = &self.sizes;
        let largest = (0..self.free.len()).max_by_key(|&at| sizes[self.free[at] as usize]);
        let id = self.free.swap_remove(largest.expect("free slots make up the excess"));
        let bytes = self.sizes[id as usize];
        self.held -= bytes;
        self.vacant.push(id);
        self.released.push(id);
        bytes
    }

    pub(crate) fn take_released(&mut self) -> Vec<SlotId> {
        std::mem::take(&mut self.released)
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

    pub(crate) fn give_back(&mut self, id: SlotId) {
        self.free.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused_and_never_exceeds_the_limit() {
        let mut slots = Slots::new(100);
        let a = slots.take(60).unwrap();
        let b = slots.take(40).unwrap();
        assert_eq!(slots.take(1), None);
        slots.give_back(b);
        assert_eq!(slots.take(40), Some(b));
        slots.give_back(a);
        let c = slots.take(50).unwrap();
        assert_eq!((slots.held, slots.get(c).bytes), (90, 50));
        assert_eq!(slots.take(20), None);
    }

    #[test]
    fn a_slot_that_changes_its_size_is_released_first() {
        let mut slots = Slots::new(100);
        let empty = slots.take(0).unwrap();
        slots.give_back(empty);
        let a = slots.take(60).unwrap();
        assert_ne!(a, empty, "an empty slot keeps its size");
        slots.give_back(a);
        assert!(slots.take_released().is_empty());
        assert_eq!(slots.take(80), Some(a));
        assert_eq!(slots.take_released(), [a]);
    }
}
