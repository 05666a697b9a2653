//! The kernels of one device, and the queue that runs them.

use std::sync::Arc;

use lapidary_core::{DType, Error, ErrorKind, Instruction, ProgramCache, Result, Scalar};
use lapidary_kernels::{Call, Choices, Products, Program, Purpose, Target, instructions};

use crate::buffer::{Buffer, Context, Event};
use crate::conv::View;
use crate::platform::Found;
use crate::program::Programs;
use crate::queue::{Queue, wait};

/// The kernels of one device, and the queue that runs them.
#[derive(Debug)]
pub(crate) struct Kernels {
    context: Arc<Context>,
    found: Found,
    queue: Queue,
    programs: Programs,
    choices: Choices,
    /// Kernels of the instruction that is under way, by name.
    pending: Vec<(&'static str, Event)>,
    /// By [`Purpose`], with the size.
    scratch: [Option<(Arc<Buffer>, usize)>; 2],
}

impl Kernels {
    pub fn new(context: Arc<Context>, found: Found, queue: Queue, cache: Arc<ProgramCache>) -> Result<Self> {
        let choices = if found.is_cpu { Choices::barrier_free(&found.limits, found.vector_bits) } else { Self::shared(&found)? };
        let (programs, pending) = (Programs::new(cache), Vec::new());
        Ok(Kernels { context, found, queue, programs, choices, pending, scratch: [const { None }; 2] })
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
        let found = &self.found;
        self.choices = if found.is_cpu { Choices::shared_on_processor(&found.limits) } else { Self::shared(found)? };
        Ok(())
    }

    fn shared(found: &Found) -> Result<Choices> {
        let too_small = |reason| Error::new(ErrorKind::Unsupported, "open", format!("{}: {reason}", found.name));
        Choices::shared(&found.limits).map_err(too_small)
    }

    /// Computes products in these ways.
    pub fn use_products(&mut self, products: [Products; 2]) {
        self.choices.products = products;
    }

    /// Compiles or loads the program of a product in single precision.
    pub fn prepare_program(&mut self) -> Result<()> {
        let (program, _) = self.product();
        self.programs.program(&self.context, &self.found, &program).map(drop)
    }

    /// Makes the kernel of a product in single precision.
    pub fn prepare_kernel(&mut self) -> Result<()> {
        let (program, kernel) = self.product();
        self.programs.kernel(&self.context, &self.found, &program, kernel).map(drop)
    }

    fn product(&self) -> (Program, &'static str) {
        self.choices.product(DType::F32).plain(DType::F32)
    }

    /// Runs an instruction to its end.
    ///
    /// # Safety
    /// As [`instructions::enqueue`].
    pub unsafe fn run<T: Scalar>(&mut self, instruction: &Instruction<T, View<'_>>) -> Result<()> {
        // SAFETY: as the caller promises. The queue is drained after a failure too:
        // what was enqueued must not touch memory that the caller takes back.
        let result = unsafe { instructions::enqueue(self, instruction) };
        let drained = self.queue.finish();
        // what failed while it ran is known to its event alone
        let ran = std::mem::take(&mut self.pending)
            .iter()
            .try_for_each(|(name, event)| wait(event).map_err(|error| error.with("kernel", name)));
        result.and(ran).and(drained).map_err(|error| error.with("instruction", instruction.name()))
    }
}

impl Target for Kernels {
    type Buffer = Buffer;

    fn choices(&self) -> &Choices {
        &self.choices
    }

    unsafe fn launch(&mut self, call: &Call<'_, '_, Buffer>) -> Result<()> {
        let kernel = self.programs.kernel(&self.context, &self.found, &call.program, call.kernel)?;
        // SAFETY: as the caller promises.
        let event = unsafe { self.queue.launch(kernel, call.global, call.program.local(), call.args) };
        self.pending.push((call.kernel, event.map_err(|error| error.with("kernel", call.kernel))?));
        Ok(())
    }

    fn scratch(&mut self, purpose: Purpose, bytes: usize) -> Result<Arc<Buffer>> {
        let kept = &mut self.scratch[purpose as usize];
        if let Some((buffer, held)) = kept
            && *held >= bytes
        {
            return Ok(Arc::clone(buffer));
        }
        // kernels that still use the smaller memory run on: the driver keeps it until they are done
        let buffer = Arc::new(Buffer::new(&self.context, bytes)?);
        *kept = Some((Arc::clone(&buffer), bytes));
        Ok(buffer)
    }
}
