//! A device that does its work later: when somebody asks whether it is done, and not always then.

use std::collections::VecDeque;
use std::mem::transmute;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use super::{DigestDevice, mix};
use crate::device::{Device, Operand, Work};
use crate::error::Result;
use crate::instruction::Instruction;
use crate::sync::lock;
use crate::token::{Pending, Token};

/// The queues of a device that is late: for loads, kernels, stores.
#[derive(Debug)]
pub(super) struct Late(Arc<[Mutex<Waiting>; 3]>, Arc<AtomicU64>);

/// Work in the order of its queue. What it touches, the device too, stays for as long as its token is pending.
#[derive(Debug, Default)]
struct Waiting {
    /// Work that is not done.
    work: VecDeque<(&'static DigestDevice, Owned)>,
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

// SAFETY: a test's memory, which the engine lends.
unsafe impl Send for Owned {}

/// Work that is done when so much of a queue is.
#[derive(Debug)]
struct Asked {
    queues: Arc<[Mutex<Waiting>; 3]>,
    queue: usize,
    number: usize,
    chance: Arc<AtomicU64>,
}

impl Late {
    pub fn new(seed: u64) -> Self {
        Late(Arc::default(), Arc::new(AtomicU64::new(seed)))
    }

    /// Work for later.
    ///
    /// # Safety
    /// As [`Device::submit`].
    pub unsafe fn take(&self, device: &DigestDevice, work: Work<'_>) -> Token {
        // SAFETY: only lifetimes change: the engine keeps device and buffers until the token tells the end.
        let (device, queue, owned) = unsafe {
            let device: &'static DigestDevice = transmute(device);
            match work {
                Work::Write { .. } => (device, 0, Owned::Transfer(transmute::<Work<'_>, Work<'static>>(work))),
                Work::Read { .. } => (device, 2, Owned::Transfer(transmute::<Work<'_>, Work<'static>>(work))),
                Work::Run { instruction, .. } => {
                    (device, 1, Owned::Run(transmute::<Instruction<Operand<'_>>, Instruction<Operand<'static>>>(*instruction)))
                }
            }
        };
        let mut waiting = lock(&self.0[queue]);
        waiting.work.push_back((device, owned));
        waiting.given += 1;
        Token::new(Asked { queues: Arc::clone(&self.0), queue, number: waiting.given, chance: Arc::clone(&self.1) })
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
    /// Does the first work of the queue that is not done.
    fn advance(&self, waiting: &mut Waiting) {
        let Some((device, owned)) = waiting.work.pop_front() else { return };
        // SAFETY: the engine lends what the work touches while its token is pending.
        let result = unsafe {
            match owned {
                Owned::Transfer(work) => now(device, work),
                Owned::Run(instruction) => now(device, Work::Run { instruction: &instruction, queue: 0 }),
            }
        };
        waiting.results.push(result);
    }

    fn result(&self, waiting: &Waiting) -> Poll<Result<()>> {
        waiting.results.get(self.number - 1).map_or(Poll::Pending, |result| Poll::Ready(result.clone()))
    }
}

impl Pending for Asked {
    fn poll(&self) -> Poll<Result<()>> {
        let mut waiting = lock(&self.queues[self.queue]);
        let chance = self.chance.fetch_add(1, Ordering::Relaxed);
        if mix(chance, 1) >> 62 == 0 {
            self.advance(&mut waiting);
        }
        self.result(&waiting)
    }

    fn wait(&self) -> Result<()> {
        let mut waiting = lock(&self.queues[self.queue]);
        loop {
            if let Poll::Ready(result) = self.result(&waiting) {
                return result;
            }
            self.advance(&mut waiting);
        }
    }
}
