//! A test device that runs its work late: only when the engine waits for a token, and at some of the engine's polls.

use std::collections::VecDeque;
use std::mem::transmute;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use super::digest::{DigestDevice, mix};
use crate::device::{Device, Operand, Work};
use crate::error::Result;
use crate::instruction::Instruction;
use crate::sync::lock;
use crate::token::{Pending, Token};

/// The queues of a device that runs its work only when a token is polled or waited for. The device has one queue for loads, one
/// queue for stores, and two kernel queues.
#[derive(Debug)]
pub(super) struct LateQueues(Arc<[Mutex<WorkQueue>; 4]>, Arc<Progress>);

/// The part of the device's state that threads access without locking a queue.
#[derive(Debug)]
struct Progress {
    chance: AtomicU64,
    /// Number of completed work items in each queue.
    done: [AtomicUsize; 4],
}

/// The queue of a work item, and the number of the item in this queue, counted from 1.
type Place = (usize, usize);

/// The work items of one queue, in order. The device and the memory that a work item uses stay valid as long as the item's token
/// is pending.
#[derive(Debug, Default)]
struct WorkQueue {
    /// The work items that have not run yet, each with the items of other queues for which it must wait.
    work: VecDeque<(&'static DigestDevice, Owned, Vec<Place>)>,
    /// The results of the completed work items, in the order of the queue.
    results: Vec<Result<()>>,
    /// Number of work items that were submitted to this queue.
    given: usize,
}

#[derive(Clone, Copy, Debug)]
enum Owned {
    Transfer(Work<'static>),
    Run(Instruction<Operand<'static>>),
}

/// The pending state of a token. The work item of the token is complete when its queue has completed as many items as the item's
/// number.
#[derive(Debug)]
struct PendingItem {
    queues: Arc<[Mutex<WorkQueue>; 4]>,
    place: Place,
    progress: Arc<Progress>,
}

impl LateQueues {
    pub fn new(seed: u64) -> Self {
        LateQueues(Arc::default(), Arc::new(Progress { chance: AtomicU64::new(seed), done: Default::default() }))
    }

    /// Adds work to a queue, which runs the work later, and returns the token of the work.
    ///
    /// # Safety
    /// The requirements of [`Device::submit`] must hold.
    pub unsafe fn take(&self, device: &DigestDevice, work: Work<'_>, after: &[&Token]) -> Token {
        // SAFETY: `transmute` changes only lifetimes. The engine keeps the device and the memory of the operands valid until the
        // token of the work reports completion.
        let (device, queue, owned) = unsafe {
            let device: &'static DigestDevice = transmute(device);
            match work {
                Work::Write { .. } => (device, 0, Owned::Transfer(transmute::<Work<'_>, Work<'static>>(work))),
                Work::Read { .. } => (device, 1, Owned::Transfer(transmute::<Work<'_>, Work<'static>>(work))),
                Work::Run { instruction, queue, .. } => {
                    let owned = transmute::<Instruction<Operand<'_>>, Instruction<Operand<'static>>>(*instruction);
                    (device, 2 + queue, Owned::Run(owned))
                }
            }
        };
        let after = after.iter().map(|token| token.get::<PendingItem>().expect("work of this device").place).collect();
        let mut waiting = lock(&self.0[queue]);
        waiting.work.push_back((device, owned, after));
        waiting.given += 1;
        Token::new(PendingItem { queues: Arc::clone(&self.0), place: (queue, waiting.given), progress: Arc::clone(&self.1) })
    }
}

/// Runs work on a test device and returns after its completion.
///
/// # Safety
/// The requirements of [`Device::submit`] must hold.
pub(super) unsafe fn now(device: &DigestDevice, work: Work<'_>) -> Result<()> {
    // SAFETY: the caller fulfils the safety contract of `submit`.
    unsafe {
        match work {
            Work::Write { from, to } => device.write(from, to),
            Work::Read { from, to } => device.read(from, to),
            Work::Run { instruction, .. } => device.launch(instruction),
        }
    }
}

impl PendingItem {
    /// Runs the first pending work item of a queue, after all items of other queues for which this item must wait.
    fn advance(&self, queue: usize, waiting: &mut WorkQueue) {
        let Some((device, owned, after)) = waiting.work.pop_front() else { return };
        for (other, number) in after {
            while self.progress.done[other].load(Ordering::Relaxed) < number {
                self.advance(other, &mut lock(&self.queues[other]));
            }
        }
        // SAFETY: the engine keeps the memory that the work item uses valid while the item's token is pending, and submits no
        // work that could run at the same time and conflict with the work item.
        let result = unsafe {
            match owned {
                Owned::Transfer(work) => now(device, work),
                Owned::Run(instruction) => device.launch(&instruction),
            }
        };
        waiting.results.push(result);
        self.progress.done[queue].store(waiting.results.len(), Ordering::Relaxed);
    }

    fn result(&self, waiting: &WorkQueue) -> Poll<Result<()>> {
        waiting.results.get(self.place.1 - 1).map_or(Poll::Pending, |result| Poll::Ready(result.clone()))
    }
}

impl Pending for PendingItem {
    fn poll(&self) -> Poll<Result<()>> {
        let mut waiting = lock(&self.queues[self.place.0]);
        let chance = self.progress.chance.fetch_add(1, Ordering::Relaxed);
        if mix(chance, 1) >> 62 == 0 {
            self.advance(self.place.0, &mut waiting);
        }
        self.result(&waiting)
    }

    fn wait(&self) -> Result<()> {
        let mut waiting = lock(&self.queues[self.place.0]);
        loop {
            if let Poll::Ready(result) = self.result(&waiting) {
                return result;
            }
            self.advance(self.place.0, &mut waiting);
        }
    }
}
