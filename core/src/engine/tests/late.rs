//! A device that does its work later: when somebody asks whether it is done, and not always then.

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

/// A device that does work only when asked for it. It has a queue for loads, one for stores, and two for kernels.
#[derive(Debug)]
pub(super) struct Late(Arc<[Mutex<Waiting>; 4]>, Arc<Progress>);

/// State that is read without the lock.
#[derive(Debug)]
struct Progress {
    chance: AtomicU64,
    /// Number of works done in each queue.
    done: [AtomicUsize; 4],
}

/// The queue and the number, counted from 1, of a work.
type Place = (usize, usize);

/// Work in the order of its queue. What it touches, the device too, stays for as long as its token is pending.
#[derive(Debug, Default)]
struct Waiting {
    /// Work not yet done, with the work that it waits for.
    work: VecDeque<(&'static DigestDevice, Owned, Vec<Place>)>,
    /// Results, in the order of the queue.
    results: Vec<Result<()>>,
    /// How much was given.
    given: usize,
}

#[derive(Clone, Copy, Debug)]
enum Owned {
    Transfer(Work<'static>),
    Run(Instruction<Operand<'static>>),
}

/// Work that is done when so much of a queue is.
#[derive(Debug)]
struct Asked {
    queues: Arc<[Mutex<Waiting>; 4]>,
    place: Place,
    progress: Arc<Progress>,
}

impl Late {
    pub fn new(seed: u64) -> Self {
        Late(Arc::default(), Arc::new(Progress { chance: AtomicU64::new(seed), done: Default::default() }))
    }

    /// Work for later.
    ///
    /// # Safety
    /// As [`Device::submit`].
    pub unsafe fn take(&self, device: &DigestDevice, work: Work<'_>, after: &[&Token]) -> Token {
        // SAFETY: only lifetimes change: the engine keeps device and buffers until the token tells the end.
        let (device, queue, owned) = unsafe {
            let device: &'static DigestDevice = transmute(device);
            match work {
                Work::Write { .. } => (device, 0, Owned::Transfer(transmute::<Work<'_>, Work<'static>>(work))),
                Work::Read { .. } => (device, 1, Owned::Transfer(transmute::<Work<'_>, Work<'static>>(work))),
                Work::Run { instruction, queue } => {
                    let owned = transmute::<Instruction<Operand<'_>>, Instruction<Operand<'static>>>(*instruction);
                    (device, 2 + queue, Owned::Run(owned))
                }
            }
        };
        let after = after.iter().map(|token| token.get::<Asked>().expect("work of this device").place).collect();
        let mut waiting = lock(&self.0[queue]);
        waiting.work.push_back((device, owned, after));
        waiting.given += 1;
        Token::new(Asked { queues: Arc::clone(&self.0), place: (queue, waiting.given), progress: Arc::clone(&self.1) })
    }
}

/// Does work of a test's device.
///
/// # Safety
/// As [`Device::submit`].
pub(super) unsafe fn now(device: &DigestDevice, work: Work<'_>) -> Result<()> {
    // SAFETY: as the caller promises.
    unsafe {
        match work {
            Work::Write { from, to } => device.write(from, to),
            Work::Read { from, to } => device.read(from, to),
            Work::Run { instruction, .. } => device.launch(instruction),
        }
    }
}

impl Asked {
    /// Does the first pending work of a queue, after the work of other queues that it waits for.
    fn advance(&self, queue: usize, waiting: &mut Waiting) {
        let Some((device, owned, after)) = waiting.work.pop_front() else { return };
        for (other, number) in after {
            while self.progress.done[other].load(Ordering::Relaxed) < number {
                self.advance(other, &mut lock(&self.queues[other]));
            }
        }
        // SAFETY: the engine lends what the work touches while its token is pending.
        let result = unsafe {
            match owned {
                Owned::Transfer(work) => now(device, work),
                Owned::Run(instruction) => now(device, Work::Run { instruction: &instruction, queue: 0 }),
            }
        };
        waiting.results.push(result);
        self.progress.done[queue].store(waiting.results.len(), Ordering::Relaxed);
    }

    fn result(&self, waiting: &Waiting) -> Poll<Result<()>> {
        waiting.results.get(self.place.1 - 1).map_or(Poll::Pending, |result| Poll::Ready(result.clone()))
    }
}

impl Pending for Asked {
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
