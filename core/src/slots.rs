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

/// The answer to a request for a physical register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// This register, which has memory.
    Slot(SlotId),
    /// No memory is free now. Ask again after a register is given back.
    Wait,
    /// The caller must first free the device memory of this register, then ask again.
    Release(SlotId),
    /// The caller must first allocate device memory for this register, report the result by [`Slots::granted`] or
    /// [`Slots::refused`], then ask again.
    Obtain(Slot),
}

/// The physical registers of a device under its memory limit. This is a state machine that calls no device: its caller
/// allocates and frees.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Bytes that may be held: the memory limit, or less after an allocation was refused.
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

    /// Requests a register of `bytes`: a free one of that size; else a new one within the limit; else one that replaces free
    /// ones of other sizes.
    pub(crate) fn take(&mut self, bytes: usize) -> Grant {
        if let Some(at) = self.free.iter().position(|&id| self.sizes[id as usize] == bytes) {
            return Grant::Slot(self.free.swap_remove(at));
        }
        let free: usize = self.free.iter().map(|&id| self.sizes[id as usize]).sum();
        if self.held - free + bytes > self.limit {
            return Grant::Wait;
        }
        // free registers of other sizes are released until they hold less than `bytes`
        match self.held + bytes > self.limit || (free >= bytes && free > 0) {
            true => Grant::Release(self.release().expect("free slots make up the excess")),
            false => Grant::Obtain(self.assign(bytes)),
        }
    }

    /// Reports that the memory of `slot` was allocated.
    pub(crate) fn granted(&mut self, slot: Slot) {
        self.held += slot.bytes;
        self.free.push(slot.id);
    }

    /// Reports that the memory of `slot` could not be allocated.
    ///
    /// # Errors
    /// `error`, unless it is a lack of memory with which the device can go on.
    pub(crate) fn refused(&mut self, slot: Slot, error: Error) -> Result<()> {
        self.vacant.push(slot.id);
        if !error.kind().is_recoverable_elsewhere() || slot.bytes == 0 {
            return Err(error);
        }
        // this much was more than the device can hold
        self.limit = self.held + slot.bytes - 1;
        self.shortage = Some(error);
        Ok(())
    }

    /// Takes the memory of the largest free register out of the count, for the caller to free; `None` if none is free.
    pub(crate) fn release(&mut self) -> Option<SlotId> {
        let sizes = &self.sizes;
        let largest = (0..self.free.len()).max_by_key(|&at| sizes[self.free[at] as usize])?;
        let id = self.free.swap_remove(largest);
        self.held -= self.sizes[id as usize];
        self.vacant.push(id);
        Some(id)
    }

    /// Assigns `bytes` to a register without memory, or to a new one.
    fn assign(&mut self, bytes: usize) -> Slot {
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.sizes.push(0);
            SlotId::try_from(self.sizes.len() - 1).expect("fewer slots than registers")
        });
        self.sizes[id as usize] = bytes;
        Slot { id, bytes }
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

    impl Budget {
        fn new(left: usize) -> Self {
            Budget { left, held: Vec::new() }
        }

        /// What `slots` give for a request, with the device behind them.
        fn take(&mut self, slots: &mut Slots, bytes: usize) -> Option<SlotId> {
            loop {
                match slots.take(bytes) {
                    Grant::Slot(id) => return Some(id),
                    Grant::Wait => return None,
                    Grant::Release(id) => {
                        let at = self.held.iter().position(|slot| slot.id == id).expect("only what is held is released");
                        self.left += self.held.swap_remove(at).bytes;
                    }
                    Grant::Obtain(slot) if slot.bytes <= self.left => {
                        self.left -= slot.bytes;
                        self.held.push(slot);
                        slots.granted(slot);
                    }
                    Grant::Obtain(slot) => slots.refused(slot, Error::new(ErrorKind::OutOfMemory, "alloc", "full")).unwrap(),
                }
            }
        }
    }

    #[test]
    fn memory_is_reused_and_never_exceeds_the_limit() {
        let (mut slots, mut device) = (Slots::new(100), Budget::new(usize::MAX));
        let a = device.take(&mut slots, 60).unwrap();
        let b = device.take(&mut slots, 40).unwrap();
        assert_eq!(device.take(&mut slots, 1), None);
        slots.give_back(b);
        assert_eq!(device.take(&mut slots, 40), Some(b));
        slots.give_back(a);
        let c = device.take(&mut slots, 50).unwrap();
        assert_eq!((slots.held, slots.get(c).bytes), (90, 50));
        assert_eq!(device.take(&mut slots, 20), None);
    }

    #[test]
    fn a_slot_that_changes_its_size_is_released_first() {
        let (mut slots, mut device) = (Slots::new(100), Budget::new(100));
        let empty = device.take(&mut slots, 0).unwrap();
        slots.give_back(empty);
        let a = device.take(&mut slots, 60).unwrap();
        assert_ne!(a, empty, "an empty slot keeps its size");
        slots.give_back(a);
        assert_eq!(device.take(&mut slots, 80), Some(a));
        assert_eq!(device.left, 20);
    }

    #[test]
    fn idle_memory_of_other_sizes_is_less_than_what_is_asked_for() {
        let (mut slots, mut device) = (Slots::new(100), Budget::new(100));
        let idle = [30, 40].map(|bytes| device.take(&mut slots, bytes).unwrap());
        idle.into_iter().for_each(|id| slots.give_back(id));
        device.take(&mut slots, 20).unwrap();
        assert_eq!(device.left, 80);
    }

    #[test]
    fn a_device_with_less_than_its_limit_goes_on_with_what_it_has() {
        let (mut slots, mut device) = (Slots::new(1000), Budget::new(100));
        let a = device.take(&mut slots, 60).unwrap();
        assert_eq!(device.take(&mut slots, 60), None, "the device is full");
        slots.give_back(a);
        // in place of the free one, though the limit once said that both fit
        assert!(device.take(&mut slots, 40).is_some());
        assert!(slots.shortage(119).is_none());
        assert_eq!(slots.shortage(120).unwrap().kind(), ErrorKind::OutOfMemory);
    }

    #[test]
    fn an_error_that_is_no_shortage_is_passed_on() {
        let refused = |bytes, kind| {
            let mut slots = Slots::new(10);
            let Grant::Obtain(slot) = slots.take(bytes) else { panic!("there is room") };
            slots.refused(slot, Error::new(kind, "alloc", "refused")).unwrap_err().kind()
        };
        assert_eq!(refused(1, ErrorKind::DeviceFailed), ErrorKind::DeviceFailed);
        // with no memory less than none could be tried
        assert_eq!(refused(0, ErrorKind::OutOfMemory), ErrorKind::OutOfMemory);
    }
}
