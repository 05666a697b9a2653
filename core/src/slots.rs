//! Physical registers: regions of one device's memory. Several virtual registers use one physical register, one after another.

use crate::error::{Error, Result};

/// Index of a physical register of a device.
pub type SlotId = u32;

/// The index and the size of a physical register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Index of the physical register.
    pub id: SlotId,
    /// Size of the physical register in bytes. A physical register whose size changes gets new memory.
    pub bytes: usize,
}

/// The answer to a request for a physical register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Grants the request: the field is the index of a free physical register that has memory.
    Slot(SlotId),
    /// No memory is free now. The caller must repeat the request after a physical register has been given back.
    Wait,
    /// The caller must free the device memory of the physical register whose index the field states, and then repeat the request.
    Release(SlotId),
    /// The caller must allocate device memory for the physical register in the field, report the result by [`Slots::granted`] or
    /// [`Slots::refused`], and then repeat the request.
    Obtain(Slot),
}

/// The physical registers of a device, whose total size stays within the memory limit of the device. `Slots` is a state machine
/// that calls no device: the caller of its methods allocates and frees the device memory.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Maximum number of bytes of all physical registers together: the memory limit of the device, or less after the device
    /// refused an allocation.
    limit: usize,
    /// The error of the last allocation that the device refused, until [`Slots::shortage`] returns this error.
    shortage: Option<Error>,
    held: usize,
    sizes: Vec<usize>,
    /// Physical registers that have memory and that no virtual register uses.
    free: Vec<SlotId>,
    /// Physical registers without memory.
    vacant: Vec<SlotId>,
}

impl Slots {
    pub(crate) fn new(limit: usize) -> Self {
        Slots { limit, shortage: None, held: 0, sizes: Vec::new(), free: Vec::new(), vacant: Vec::new() }
    }

    pub(crate) fn get(&self, id: SlotId) -> Slot {
        Slot { id, bytes: self.sizes[id as usize] }
    }

    /// Whether the device has refused an allocation within its memory limit, and [`Slots::shortage`] has not returned the error
    /// yet.
    pub(crate) fn is_short(&self) -> bool {
        self.shortage.is_some()
    }

    /// Returns the error of the allocation that the device refused, if `bytes` exceeds the lowered maximum of all physical
    /// registers. The error of a refused allocation is returned only once.
    pub(crate) fn shortage(&mut self, bytes: usize) -> Option<Error> {
        if bytes > self.limit { self.shortage.take() } else { None }
    }

    /// Requests a physical register of `bytes` bytes. If a register of exactly `bytes` bytes is free, it is granted. If no free
    /// register has exactly `bytes` bytes, the answer asks the caller to release free registers of other sizes where necessary,
    /// and to allocate a new register.
    pub(crate) fn take(&mut self, bytes: usize) -> Grant {
        if let Some(at) = self.free.iter().position(|&id| self.sizes[id as usize] == bytes) {
            return Grant::Slot(self.free.swap_remove(at));
        }
        let free: usize = self.free.iter().map(|&id| self.sizes[id as usize]).sum();
        if self.held - free + bytes > self.limit {
            return Grant::Wait;
        }
        // free registers of other sizes are released until the free registers together hold less than `bytes` bytes
        match self.held + bytes > self.limit || (free >= bytes && free > 0) {
            true => Grant::Release(self.release().expect("free slots make up the excess")),
            false => Grant::Obtain(self.assign(bytes)),
        }
    }

    /// Records that the caller has allocated the memory of `slot`.
    pub(crate) fn granted(&mut self, slot: Slot) {
        self.held += slot.bytes;
        self.free.push(slot.id);
    }

    /// Records that the memory of `slot` could not be allocated, and lowers the maximum size of all physical registers.
    ///
    /// # Errors
    /// Returns `error` if its kind is neither a lack of memory nor the loss of the device, or if the size of `slot` is 0 bytes.
    pub(crate) fn refused(&mut self, slot: Slot, error: Error) -> Result<()> {
        self.vacant.push(slot.id);
        if !error.kind().is_recoverable_elsewhere() || slot.bytes == 0 {
            return Err(error);
        }
        // the device has no memory for `slot` in addition to the `held` bytes, so the new limit is one byte less than the sum of
        // the two
        self.limit = self.held + slot.bytes - 1;
        self.shortage = Some(error);
        Ok(())
    }

    /// Removes the largest free register and returns its index. The caller must then free the memory of this register. Returns
    /// `None` if no register is free.
    pub(crate) fn release(&mut self) -> Option<SlotId> {
        let sizes = &self.sizes;
        let largest = (0..self.free.len()).max_by_key(|&at| sizes[self.free[at] as usize])?;
        let id = self.free.swap_remove(largest);
        self.held -= self.sizes[id as usize];
        self.vacant.push(id);
        Some(id)
    }

    /// Takes a physical register without memory, or a new one, sets its size to `bytes`, and returns the register.
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

    /// A device with `left` bytes of free memory. The memory limit in its `Slots` may be larger or smaller.
    struct Budget {
        left: usize,
        held: Vec<Slot>,
    }

    impl Budget {
        fn new(left: usize) -> Self {
            Budget { left, held: Vec::new() }
        }

        /// Requests a physical register of `bytes` bytes, and allocates and frees memory of the device as `slots` demands.
        /// Returns `None` if the request must wait.
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
        // `slots` releases the free register of 60 bytes first, although a register of 40 bytes beside it is within the limit
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
        // an allocation of 0 bytes cannot be tried again with less memory
        assert_eq!(refused(0, ErrorKind::OutOfMemory), ErrorKind::OutOfMemory);
    }
}
