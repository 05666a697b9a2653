//! A worker process: a process of this program that works for another one, which watches it. If a driver ends or hangs the worker
//! process, the watching process learns how and goes on.

mod message;
mod process;
mod stderr_tail;

pub use message::{Inbox, Message, send};
pub use process::{Ended, Event, Worker};
