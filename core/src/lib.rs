//! The core of Lapidary: the code that all backends share. The core contains nothing that is specific to one backend.
//!
//! A call passes through the following steps in order. Each step passes a printable value to the next step.
//!
//! 1. The argument structs check their arguments once: [`Gemm::check`] returns [`Checked`].
//! 2. The module of an [algorithm](algorithms) converts the checked call to its normal form, and writes a [`Plan`]: commands on
//!    virtual registers, grouped into tasks. A [`Blocking`] gives the algorithm its block sizes.
//! 3. [`Schedule::new`] finds the dependencies between the commands and checks that each task fits in the memory of each device.
//! 4. The [engine](run) submits the commands to the queues of the devices. The [`Dispatcher`] decides which device takes which
//!    task. Only the engine calls a [`Device`].
//!
//! # Guarantees
//! - **Validation**: the methods in [`args`] check the arguments. No code below them checks arguments again.
//! - **Ordering**: if two commands access the same memory and at least one of them writes, they run in the order of the plan
//!   ([`graph`]) and never at the same time.
//! - **Visibility**: when a device's [`Token`] reports that a command has completed, every thread and every device sees the
//!   effects of that command.
//! - **Memory**: the tasks of an accepted schedule fit in the memory limits of their devices. If a device has less memory than
//!   its limit, other devices [run](dispatch) its tasks.
//! - **Failure**: the run ends with an error if no other device can do the work of a failed command. The error names the command
//!   and the device, and it states whether the outputs were written.
//!
//! # Terms
//! A *register* is a linear region of one device's memory. An *instruction* is a kernel that runs on registers. The *commands* of
//! a plan are `Ld`, `St`, `Exec`, `Mark` and `Bar`. A *window* is the rectangle of a matrix for which a register stands. A device
//! that can access the matrix directly works on the window *in place*, without a copy. A *task* is a group of commands that one
//! device executes from beginning to end.

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
