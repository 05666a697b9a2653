//! The core of Lapidary: the code that all backends share. The core contains no code for a particular backend.
//!
//! A call of a routine passes through the steps below, from 1 to 4. Each of the steps passes a printable value to the next one.
//!
//! 1. The methods `check` of the argument structs validate the arguments of a call once, for example [`Gemm::check`], which
//!    returns [`Checked`] arguments.
//! 2. The module of an [algorithm](algorithms) converts the checked call to its normal form, and makes a [`Plan`]: commands on
//!    virtual registers, grouped into tasks. A [`Blocking`] gives the algorithm its block sizes.
//! 3. [`Schedule::new`] finds the dependencies between the commands and checks that each task fits in the memory of each device.
//! 4. The [engine](run) submits the commands of a plan to the queues of the devices. The [`Dispatcher`] decides which device
//!    takes which task. Only the engine calls a [`Device`].
//!
//! # Guarantees
//! - **Validation**: the methods `check` in [`args`] validate the arguments of a call. No other code of the core or of a backend
//!   validates the arguments of a call again.
//! - **Ordering**: if two commands access the same memory and at least one of the commands writes, the two commands run in the
//!   order of the plan ([`graph`]) and never at the same time.
//! - **Visibility**: when a device's [`Token`] reports that a command has completed, every thread and every device sees the
//!   effects of that command.
//! - **Memory**: the tasks of an accepted schedule fit in the memory limits of the devices. If a device has less free memory than
//!   its memory limit, other devices [run](dispatch) the tasks of that device.
//! - **Failure**: the run of a schedule ends with an error if a command fails and no other device can do the work of that
//!   command. The error of a failed run names the command and the device, and states whether the output matrices were written.
//!
//! # Terms
//! A *register* is a linear region of one device's memory. An *instruction* is a kernel that runs on registers. The *commands* of
//! a plan are `Ld`, `St`, `Exec`, `Mark` and `Bar`. A *window* is the rectangle of a matrix for which a register stands. A device
//! that can access a matrix directly works *in place* on the windows of that matrix, without a copy. A *task* is a group of
//! commands that one device executes from beginning to end.

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod algorithms;
pub mod args;
mod background;
pub mod batch;
pub mod blocking;
mod clock;
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
mod kernel_time;
mod lane_pool;
pub mod matrix;
#[cfg(feature = "test-hooks")]
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
mod stream_queue;
mod sync;
pub mod token;
pub mod value;

pub use args::{Checked, Gemm, GemmBatched, Getrf, GetrfBatched, Getrs, GetrsBatched, Laswp, Trsm};
pub use background::{CopyPool, copy_threads};
pub use batch::{Batch, BatchMut, BatchShape, RawBatch};
pub use blocking::{Blocking, Lookahead, Part, Place, Resources};
pub use clock::Instant;
pub use command::{Command, CommandId, Conditions, PanelShape, Queue};
pub use device::{BufferRect, Device, DeviceBuffer, HostRect, Memory, Operand, PinnedMemory, SharedRect, Work};
pub use dispatch::{Dispatcher, Issue, KERNEL_QUEUES, Lane, Reach, Step};
pub use driver_file::DriverFile;
#[cfg(feature = "test-hooks")]
pub use engine::Run;
pub use engine::{
    CopyInUse, DeviceRuntime, InPlace, ProgressListener, RunError, RunProgress, Startup, StreamCall, StreamEnd, StreamState,
    TimedKernel, Times, Trace, TraceEvent, Watch, prepare, prepare_in_place, reach, resident_device, run,
};
pub use enums::{Accuracy, Diag, Layout, Op, Side, TrsmMode, Uplo};
pub use error::{Error, ErrorKind, Outputs, Result};
pub use facts::{DeviceFacts, DeviceKind, Feature, Identity, Limits, Rates, check_wait};
pub use graph::Graph;
pub use info::Info;
pub use instruction::{Access, Extent, Instruction, Reg, Region, Swaps, Tile};
pub use kernel_time::KernelTime;
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
pub use stream_queue::{HostElements, StreamQueue, StreamWork};
pub use token::{Pending, Token};
pub use value::Value;
