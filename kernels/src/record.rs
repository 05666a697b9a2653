//! Records the kernels that an instruction would launch, without a device.

use std::sync::Arc;

use lapidary_core::{Conditions, DType, DeviceFacts, Error, ErrorKind, Instruction, Result};

use crate::block::BlockParams;
use crate::call::{Call, Target, View};
use crate::database::{Family, Kernel};
use crate::instructions::enqueue;
use crate::mma::MmaParams;
use crate::product::Product;
use crate::program::Program;
use crate::scratch::Purpose;
use crate::tuning::Tuning;

/// A kernel launch of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Program that contains the kernel.
    pub program: Program,
    /// Name of the kernel in the program.
    pub kernel: &'static str,
    /// Number of work-groups in each dimension.
    pub groups: [usize; 2],
}

impl Launch {
    /// Returns whether the launch runs a kernel of the database with its parameters. The text of a product may
    /// have fewer parts than the parameters name, or single elements in place of vectors, because of the sizes of the product.
    #[must_use]
    pub fn is_of(&self, kernel: Kernel) -> bool {
        let program = self.program;
        match kernel {
            Kernel::Product(Product::Tile(named)) => matches!(program, Program::GemmTile { params, .. } if params == named),
            Kernel::Product(Product::Vector(named)) => matches!(program, Program::GemmVector { params, .. } if params == named),
            Kernel::Product(Product::Panel(named, _)) => matches!(program, Program::GemmPanel { params, .. } if params == named),
            Kernel::Product(Product::Block(named)) => {
                let same = |params| BlockParams { split: named.split, vw: named.vw, ..params } == named;
                matches!(program, Program::GemmBlock { params, .. } if same(params))
            }
            Kernel::Product(Product::Mma(named)) => {
                let same = |params| MmaParams { split: named.split, ..params } == named;
                matches!(program, Program::GemmMma { params, .. } if same(params))
            }
            Kernel::Group(family, named) => match family {
                Family::Elements => matches!(program, Program::Elements { group, .. } if group == named),
                Family::Triangle => matches!(program, Program::Triangle { group, .. } if group == named),
                Family::Exchange => matches!(program, Program::Exchange { items, .. } if items == named),
                Family::Solve => matches!(program, Program::Solve { items, .. } if items == named),
                Family::Panel => matches!(program, Program::Panel { items, .. } if items == named),
                Family::HeldRows => matches!(program, Program::HeldRows { shape, .. } if shape.items == named),
                Family::Trsv => matches!(program, Program::Trsv { items, .. } if items == named),
                Family::Columns => matches!(program, Program::Columns { items, .. } if items == named),
                Family::Strips => matches!(program, Program::Strips { params, .. } if params.items == named),
                // the size of a matrix decides how many work-items of the entry have work
                Family::Batched => {
                    matches!(program, Program::GemmBatched { .. } | Program::LuBatched { .. } | Program::LuRows { .. })
                }
            },
            Kernel::Cpu(_) | Kernel::Threshold(..) | Kernel::Stop(_) => false,
        }
    }
}

/// Returns the kernel launches of an instruction on matrices of `dtype`, in order, on a device that accepts all kernels of `tuning`.
/// The instruction runs under `conditions`.
///
/// # Errors
/// `tuning` has no kernel for the instruction, or the instruction takes more than 100,000 launches.
pub fn launches(
    facts: &DeviceFacts,
    tuning: &Tuning,
    dtype: DType,
    instruction: &Instruction<View<'_, ()>>,
    conditions: Conditions,
) -> Result<Vec<Launch>> {
    let mut recorder = Recorder { facts, tuning, conditions, launches: Vec::new() };
    // SAFETY: the recorder runs no kernel, so that no memory is accessed.
    unsafe { enqueue(&mut recorder, dtype, instruction)? };
    Ok(recorder.launches)
}

/// Maximum number of launches that are recorded.
const MAX_LAUNCHES: usize = 100_000;

/// A device that runs no kernel.
struct Recorder<'a> {
    facts: &'a DeviceFacts,
    tuning: &'a Tuning,
    conditions: Conditions,
    launches: Vec<Launch>,
}

impl Target for Recorder<'_> {
    type Buffer = ();

    fn facts(&self) -> &DeviceFacts {
        self.facts
    }

    fn tuning(&self) -> &Tuning {
        self.tuning
    }

    fn conditions(&self) -> Conditions {
        self.conditions
    }

    unsafe fn launch(&mut self, call: &Call<'_, '_, ()>) -> Result<()> {
        if self.launches.len() == MAX_LAUNCHES {
            let message = format!("the call takes more than {MAX_LAUNCHES} launches");
            return Err(Error::new(ErrorKind::Unsupported, "launches", message));
        }
        let local = call.program.local();
        let groups = [0, 1].map(|dimension: usize| call.global[dimension].div_ceil(local[dimension]));
        self.launches.push(Launch { program: call.program, kernel: call.kernel, groups });
        Ok(())
    }

    fn scratch(&mut self, _purpose: Purpose, _bytes: usize) -> Result<Arc<()>> {
        Ok(Arc::new(()))
    }
}
