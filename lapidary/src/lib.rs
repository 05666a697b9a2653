//! Dense linear algebra on the CPU and on all OpenCL and wgpu devices of a computer.
//!
//! A [`Machine`] is a set of devices that work on one call together. The routines of a machine take views of matrices
//! ([`MatRef`], [`MatMut`]). A view describes a row- or column-major matrix of any size in host memory, or a matrix that was
//! [uploaded](Machine::upload) to a device.
//!
//! ```
//! use lapidary::{Gemm, Machine, MatMut, MatRef, Select};
//!
//! let machine = Machine::open(&Select::all())?;
//!
//! // C ← 2·A·Bᵀ, column-major
//! let (a, b) = ([1.0, 2.0, 3.0, 4.0], [1.0, 0.0, 1.0, 1.0]);
//! let mut c = [0.0; 4];
//! machine.gemm(
//!     Gemm::new(MatRef::col_major(&a, 2, 2)?, MatRef::col_major(&b, 2, 2)?, MatMut::col_major(&mut c, 2, 2)?)
//!         .alpha(2.0)
//!         .trans_b(),
//! )?;
//! assert_eq!(c, [8.0, 12.0, 6.0, 8.0]);
//!
//! // A·x = b, row-major: the matrix is replaced by its factors
//! let mut a = [0.0, 2.0, 4.0, 1.0];
//! let mut x = [2.0, 9.0];
//! let lu = machine.getrf(MatMut::row_major(&mut a, 2, 2)?)?;
//! assert_eq!(lu.info(), 0);
//! lu.solve(MatMut::col_major(&mut x, 2, 1)?)?;
//! assert_eq!(x, [2.0, 1.0]);
//! # Ok::<(), lapidary::Error>(())
//! ```
//!
//! One call can compute many small problems. [`Machine::gemm_batched`], [`Machine::getrf_batched`] and [`Machine::getrs_batched`]
//! take matrices of one shape at equal distances in memory ([`Batch`], [`BatchMut`]). [`Machine::gemm_list`],
//! [`Machine::getrf_list`] and [`Machine::getrs_list`] take matrices of different shapes.
//!
//! A [`Stream`] ([`Machine::stream`]) takes calls on matrices of one device and returns at once; its futures work with any executor. An
//! [`OwnedLu`] ([`Machine::getrf_owned`]) owns its factors and has no lifetime, so that a struct can hold it. The page
//! `docs/embedding.md` of the repository shows programs that keep a machine, matrices and factors for a long time, and lists the kinds of
//! errors that such a program can react to.
//!
//! A [`Select`] names devices, in code (`Select::cpu(..).and(Select::opencl(0))`) or as text (`"cpu"`, `"cpu:0,1"`, `"cpu+opencl:0"`,
//! `"wgpu:0"`). [`Settings`] limit the memory of each device.
//! [`Machine::from_env`] reads the selection and the settings from environment variables.
//!
//! # Features
//! | Feature | Adds | |
//! |---|---|---|
//! | `opencl` | OpenCL devices, whose drivers are loaded at run time ([`Machine::from_opencl`], the module `opencl`) | default |
//! | `wgpu` | devices of Vulkan, Metal and DX12 ([`Machine::from_wgpu`], the module `wgpu`) | default |
//! | `program-cache` | a cache of compiled programs on disk ([`ProgramCache`]) | enabled by `opencl` and `wgpu` |
//! | `ndarray`, `nalgebra`, `faer` | views of matrices of these crates ([`bridges`]), and the crate itself in the version used | |
//!
//! Without default features, a machine uses only the CPU, and the build needs neither drivers nor a C compiler.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod batched;
pub mod bridges;
mod call;
mod condition;
mod copy;
mod equilibrate;
mod host;
mod kernel_times;
mod lu;
mod machine;
mod mixed;
mod open;
mod owned;
mod prepare;
mod price;
#[cfg(any(feature = "opencl", feature = "wgpu"))]
pub mod probe;
mod profile;
mod refine;
mod resident;
mod routines;
mod run;
mod schedules;
mod select;
mod settings;
mod singular;
mod stream;
#[cfg(any(feature = "opencl", feature = "wgpu"))]
mod tuned;

/// The items that a crate needs to implement a device ([`Machine::with_devices`]). The trait [`Device`](backend::Device) states what a
/// device has to do.
pub mod backend {
    pub use lapidary_core::{
        Access, BufferRect, Conditions, Device, DeviceBuffer, DeviceFacts, DeviceKind, Extent, Feature, HostElements, HostRect,
        Identity, Instruction, KernelTime, Limits, Lookahead, Memory, Operand, PanelShape, Pending, PinnedMemory, Rates, Reg,
        Region, StreamQueue, StreamWork, Swaps, Tile, Token, Value, Work,
    };
}

/// The plans of calls, for programs that print or simulate plans. An application that computes needs none of these items.
pub mod planning {
    pub use lapidary_core::{
        Blocking, Command, CommandId, Cost, CostModel, MatrixId, MemoryShortfall, Place, Plan, Reach, Resources, Schedule,
        TimedKernel, Timeline, algorithms,
    };

    pub use crate::profile::{DeviceProfile, ProfileCosts, TypeProfile};
}

pub use call::Call;
pub use equilibrate::{Equilibration, Rounding, ScaledRhs};
#[cfg(feature = "faer")]
pub use faer;
pub use host::HostVec;
#[cfg(feature = "opencl")]
pub use lapidary_backend_opencl as opencl;
#[cfg(feature = "wgpu")]
pub use lapidary_backend_wgpu as wgpu;
pub use lapidary_core::{
    Accuracy, Batch, BatchMut, BatchShape, Checked, DType, DeviceFacts, Diag, Element, Error, ErrorKind, Gemm, GemmBatched, Getrf,
    GetrfBatched, Getrs, GetrsBatched, Info, KernelTime, Lane, Laswp, Layout, MatMut, MatRef, Op, Origin, Outputs, Queue, Result,
    Routine, RunProgress, Scalar, Side, TraceEvent, Trsm, TrsmMode, Uplo, flops,
};
#[cfg(feature = "program-cache")]
pub use lapidary_core::{CacheCounts, CacheEntry, ProgramCache};
#[cfg(any(feature = "opencl", feature = "wgpu"))]
pub use lapidary_kernels as kernels;
pub use lu::Lu;
pub use machine::Machine;
pub use mixed::{FallbackReason, Precision};
#[cfg(feature = "nalgebra")]
pub use nalgebra;
#[cfg(feature = "ndarray")]
pub use ndarray;
pub use owned::OwnedLu;
pub use price::{Explanation, PricedSet, Reason};
pub use refine::Refinement;
pub use resident::DeviceMatrix;
pub use select::{Backend, Numbers, Select};
pub use settings::Settings;
pub use stream::{DevicePivots, Done, Reading, ReadingPivots, Stream};

/// The examples of docs/embedding.md, as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
struct Embedding;
