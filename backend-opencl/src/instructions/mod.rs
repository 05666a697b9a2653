//! Instructions as sequences of kernels in one in-order queue.
//!
//! All functions are `unsafe` under one contract: the views lie in their
//! buffers and may be read and written as the instruction says.

mod gemm;
mod getrf;
mod triangle;

use std::sync::Arc;

use lapidary_core::{DType, Error, ErrorKind, Instruction, ProgramCache, Result, Scalar, Side, Swaps};
use lapidary_kernels::{Limits, PanelParams, TileParams, opencl};

use crate::buffer::{Buffer, Context, Event};
use crate::conv::View;
use crate::platform::Found;
use crate::program::Programs;
use crate::queue::{Arg, Queue, wait};

/// Work-items of a group for kernels without local memory.
const GROUP: usize = 64;

/// The kernels of one device, and the queue that runs them.
#[derive(Debug)]
pub(crate) struct Kernels {
    context: Arc<Context>,
    found: Found,
    queue: Queue,
    programs: Programs,
    /// How products are computed, in f32 and in f64.
    products: [Products; 2],
    /// Most work-items of a group that searches a column for a pivot.
    searchers: usize,
    /// Kernels of the instruction that is under way.
    pending: Vec<Event>,
    /// By [`Purpose`], with the size.
    scratch: [Option<(Arc<Buffer>, usize)>; 2],
}

impl Kernels {
    pub fn new(context: Arc<Context>, found: Found, queue: Queue, cache: Arc<ProgramCache>) -> Result<Self> {
        let products = [Products::choose(DType::F32, &found)?, Products::choose(DType::F64, &found)?];
        // a work-item of a processor is a thread: one alone needs no barriers
        let searchers = if found.is_cpu { 1 } else { most_searchers(&found) };
        let (programs, pending) = (Programs::new(cache), Vec::new());
        Ok(Kernels { context, found, queue, programs, products, searchers, pending, scratch: [const { None }; 2] })
    }

    /// Waits for everything in the queue, the application's work too.
    pub fn finish(&self) -> Result<()> {
        self.queue.finish()
    }

    /// Gives up the memory of earlier calls.
    pub fn forget_arguments(&mut self) {
        self.programs.forget_kernels();
        self.scratch = [const { None }; 2];
    }

    /// Computes with local memory and barriers, whatever the device is.
    pub fn use_tiles(&mut self) -> Result<()> {
        self.searchers = most_searchers(&self.found);
        self.products = [Products::tile(DType::F32, &self.found)?, Products::tile(DType::F64, &self.found)?];
        Ok(())
    }

    /// Makes the kernel of a product in single precision ready.
    pub fn prepare_product(&mut self) -> Result<()> {
        let (source, name) = match self.products[0] {
            Products::Tile(params) => (opencl::gemm_tile(DType::F32, &params, false, false), "gemm_tile"),
            Products::Panel(params) => (opencl::gemm_panel(DType::F32, &params), "gemm_panel"),
        };
        self.programs.kernel(&self.context, &self.found, &source, name).map(drop)
    }

    fn products<T: Scalar>(&self) -> Products {
        self.products[usize::from(T::DTYPE == DType::F64)]
    }

    /// Runs an instruction to its end.
    pub unsafe fn run<T: Scalar>(&mut self, instruction: &Instruction<T, View<'_>>) -> Result<()> {
        // SAFETY: the module's contract. The queue is drained after a failure too:
        // what was enqueued must not touch memory that the caller takes back.
        let result = unsafe { self.enqueue(instruction) };
        let drained = self.queue.finish();
        // what failed while it ran is known to its event alone
        let ran = std::mem::take(&mut self.pending).iter().try_for_each(wait);
        result.and(drained).and(ran).map_err(|error| error.with("instruction", instruction.name()))
    }

    unsafe fn enqueue<T: Scalar>(&mut self, instruction: &Instruction<T, View<'_>>) -> Result<()> {
        // SAFETY: the module's contract.
        unsafe {
            match *instruction {
                Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c } => {
                    self.gemm(alpha, (op_a.is_trans(), a), (op_b.is_trans(), b), beta, c)
                }
                Instruction::Trsm { side, uplo, op, diag, alpha, a, b } => {
                    self.scale(alpha, b)?;
                    if alpha == T::ZERO { Ok(()) } else { self.trsm::<T>((side, uplo, op, diag), a, b) }
                }
                Instruction::Trtri { uplo, diag, a, inverse } => self.trtri::<T>(uplo, diag, a, inverse),
                Instruction::Getrf { pivoting, first_row, a, ipiv, info } => self.getrf::<T>(pivoting, first_row, a, (ipiv, info)),
                Instruction::Laswp { swaps, a, ipiv } => self.laswp::<T>(swaps, a, ipiv),
                Instruction::Copy { a, b } => self.copy::<T>(a, b),
                Instruction::Scale { beta, c } => self.scale(beta, c),
            }
        }
    }

    /// C ← β·C.
    unsafe fn scale<T: Scalar>(&mut self, beta: T, c: View<'_>) -> Result<()> {
        if beta == T::ONE {
            return Ok(());
        }
        let args = [&[size(c.rows), size(c.cols), real(beta)][..], &Arg::matrix(c)].concat();
        // SAFETY: the module's contract; arguments as the kernel lists them.
        unsafe { self.elements::<T>("scale", [c.rows, c.cols], &args) }
    }

    /// B ← A.
    unsafe fn copy<T: Scalar>(&mut self, a: View<'_>, b: View<'_>) -> Result<()> {
        let args = [&[size(b.rows), size(b.cols)][..], &Arg::matrix(a), &Arg::matrix(b)].concat();
        // SAFETY: the module's contract; arguments as the kernel lists them.
        unsafe { self.elements::<T>("copy", [b.rows, b.cols], &args) }
    }

    /// Exchanges of rows or columns.
    unsafe fn laswp<T: Scalar>(&mut self, swaps: Swaps, a: View<'_>, ipiv: View<'_>) -> Result<()> {
        let (places, by_line, by_place) = match swaps.side {
            Side::Left => (a.cols, 1, a.ld),
            Side::Right => (a.rows, a.ld, 1),
        };
        let args = [
            size(ipiv.rows),
            size(places),
            Arg::I32(i32::from(swaps.forward)),
            size(swaps.first_row),
            Arg::Mem(a.buffer.handle()),
            Arg::U64(a.at),
            size(by_line),
            size(by_place),
            Arg::Mem(ipiv.buffer.handle()),
            Arg::U64(ipiv.at),
        ];
        // SAFETY: the module's contract; arguments as the kernel lists them.
        unsafe { self.elements::<T>("laswp", [places, 1], &args) }
    }

    unsafe fn elements<T: Scalar>(&mut self, kernel: &'static str, global: [usize; 2], args: &[Arg]) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { self.launch(&opencl::elements(T::DTYPE), kernel, global, [self.group(), 1], args) }
    }

    /// Work-items of a group for kernels without local memory.
    fn group(&self) -> usize {
        GROUP.min(self.found.limits.work_group)
    }

    /// Enqueues a kernel; one without work-items does nothing.
    ///
    /// # Safety
    /// The arguments are those of the kernel and reach only memory that it may touch.
    unsafe fn launch(
        &mut self,
        source: &lapidary_kernels::Source,
        name: &'static str,
        global: [usize; 2],
        local: [usize; 2],
        args: &[Arg],
    ) -> Result<()> {
        if global.contains(&0) {
            return Ok(());
        }
        let kernel = self.programs.kernel(&self.context, &self.found, source, name)?;
        // SAFETY: as the caller promises.
        let event = unsafe { self.queue.launch(kernel, global, local, args) }.map_err(|error| error.with("kernel", name))?;
        self.pending.push(event);
        Ok(())
    }

    /// Scratch memory of at least `bytes`, kept for the next call. Kernels that
    /// still use smaller memory run on: the driver keeps it until they are done.
    fn scratch(&mut self, purpose: Purpose, bytes: usize) -> Result<Arc<Buffer>> {
        let kept = &mut self.scratch[purpose as usize];
        if let Some((buffer, held)) = kept
            && *held >= bytes
        {
            return Ok(Arc::clone(buffer));
        }
        let buffer = Arc::new(Buffer::new(&self.context, bytes)?);
        *kept = Some((Arc::clone(&buffer), bytes));
        Ok(buffer)
    }
}

/// Most work-items that search one column.
const SEARCHERS: usize = 512;

/// The largest power of two that a work-group of the device holds. Compilers for
/// processors take minutes over barriers in large groups.
fn most_searchers(found: &Found) -> usize {
    let most = if found.is_cpu { 8 } else { SEARCHERS };
    1 << most.min(found.limits.work_group).ilog2()
}

/// What scratch memory is for: one for each use that may be under way inside another.
#[derive(Clone, Copy)]
enum Purpose {
    /// Packed operands of a product.
    Panels,
    /// A product that is a factor of the next one.
    Product,
}

/// How products are computed.
#[derive(Clone, Copy, Debug)]
enum Products {
    /// Through local memory.
    Tile(TileParams),
    /// From packed panels, without barriers.
    Panel(PanelParams),
}

impl Products {
    fn choose(dtype: DType, found: &Found) -> Result<Self> {
        if found.is_cpu {
            return Ok(Products::Panel(PanelParams::choose(dtype, found.vector_bits)));
        }
        Self::tile(dtype, found)
    }

    fn tile(dtype: DType, found: &Found) -> Result<Self> {
        let refuse = |reason| Error::new(ErrorKind::Unsupported, "open", format!("{}: {reason}", found.name));
        // a processor splits its loops at each barrier: small groups, quickly compiled
        let most = if found.is_cpu { GROUP } else { usize::MAX };
        let limits = Limits { work_group: found.limits.work_group.min(most), ..found.limits };
        TileParams::choose(dtype, &limits).map(Products::Tile).map_err(refuse)
    }
}

/// A size as an argument.
fn size(value: usize) -> Arg {
    Arg::U64(value as u64)
}

/// A factor as an argument.
#[allow(clippy::cast_possible_truncation, reason = "an f32 comes back unchanged")]
fn real<T: Scalar>(value: T) -> Arg {
    match T::DTYPE {
        DType::F64 => Arg::F64(value.to_f64()),
        DType::F32 => Arg::F32(value.to_f64() as f32),
        DType::I32 => unreachable!("no scalar is an integer"),
    }
}
