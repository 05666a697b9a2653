//! The core of Lapidary: what every backend shares, and none of what one backend is.
//!
//! A call passes through these steps in order. Each step hands a printable value to the next.
//!
//! 1. Arguments are checked once: [`Gemm::check`] gives [`Checked`].
//! 2. A checked call is brought to its normal form, and an [algorithm](algorithms)
//!    writes a [`Plan`]: commands over virtual registers, grouped into tasks,
//!    cut as a [`Blocking`] says.
//! 3. [`Schedule::new`] finds the dependencies and checks the memory.
//! 4. The [engine](run) lets devices take tasks and drives their queues, as the
//!    [`Dispatcher`] decides; it alone calls a [`Device`].
//!
//! # Who promises what
//! - **Validation**: [`args`]. Nothing below checks again.
//! - **Ordering**: commands that touch the same memory, one of them writing, run
//!   in the order of the plan ([`graph`]). A device never sees two of them at once.
//! - **Visibility**: when a device's [`Token`] says that work is done, its effect is visible to all.
//! - **Memory**: a schedule that was accepted fits its devices' limits. A device that
//!   has less [leaves](dispatch) its tasks to others.
//! - **Failure**: any other error, or a lack of memory on all devices, stops the run and reaches the caller with the
//!   command, the device and what became of the outputs.
//!
//! # Words
//! A *register* is a linear region of one device's memory, an *instruction* a
//! kernel run on registers; `Ld`, `St`, `Exec`, `Mark` and `Bar` are the
//! *commands*. A *window* is the rectangle that a register stands for; a device
//! that reaches the matrix works on it *in place*. A *task* is what one device
//! carries out from beginning to end.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod algorithms;
pub mod args;
mod background;
pub mod batch;
pub mod blocking;
pub mod command;
pub mod device;
pub mod dispatch;
mod dot;
mod driver_file;
mod engine;
pub mod enums;
mod error;
pub mod facts;
pub mod graph;
mod info;
pub mod instruction;
mod lane_pool;
pub mod matrix;
pub mod null;
pub mod plan;
#[cfg(feature = "program-cache")]
pub mod program_cache;
mod ranges;
pub mod routine;
pub mod scalar;
pub mod schedule;
pub mod simulate;
mod slots;
mod staging;
mod sync;
pub mod token;
pub mod value;

pub use args::{Checked, Gemm, GemmBatched, Getrf, GetrfBatched, Getrs, GetrsBatched, Laswp, Trsm};
pub use background::{CopyPool, copy_threads, in_background};
pub use batch::{Batch, BatchMut, BatchShape, RawBatch};
pub use blocking::{Blocking, Resources};
pub use command::{Command, CommandId, Queue};
pub use device::{Device, DeviceBuffer, HostRect, Memory, Operand, PinnedMemory, Work};
pub use dispatch::{Dispatcher, Issue, KERNEL_QUEUES, Lane, Reach, Step};
pub use driver_file::DriverFile;
pub use engine::{
    CopyInUse, DeviceRuntime, InPlace, Run, RunError, Startup, TimedKernel, Trace, TraceEvent, reach, resident_device, run,
};
pub use enums::{Diag, Layout, Op, Side, TrsmMode, Uplo};
pub use error::{Error, ErrorKind, Result};
pub use facts::{DeviceFacts, DeviceKind, Feature, Identity, Limits, Rates};
pub use graph::Graph;
pub use info::Info;
pub use instruction::{Access, Extent, Instruction, Reg, Region, Swaps, Tile};
pub use lane_pool::LanePool;
pub use matrix::{Home, MatMut, MatRef, RawMat, Resident};
pub use plan::{MatrixId, Plan};
#[cfg(feature = "program-cache")]
pub use program_cache::{CacheCounts, CacheEntry, ProgramCache};
pub use routine::{Origin, Routine, flops};
pub use scalar::{DType, Element, Scalar};
pub use schedule::{MemoryShortfall, Schedule};
pub use simulate::{Cost, CostModel, Timeline};
pub use slots::{Slot, SlotId};
pub use staging::Piece;
pub use token::{Pending, Token};
pub use value::Value;
