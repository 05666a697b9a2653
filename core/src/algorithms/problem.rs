//! Problems of all routines: chooses the block sizes of a problem for given devices, and makes its plan. If a memory limit would
//! divide a problem into too many commands, the functions of this module return an error.

use crate::algorithms::{batched, gemm, getrf, getrs, laswp, trsm};
use crate::blocking::{Blocking, Lookahead, Place, Resources};
use crate::error::{Error, ErrorKind};
use crate::instruction::Instruction;
use crate::plan::Plan;
use crate::routine::Routine;
use crate::scalar::DType;

/// Maximum number of commands into which a memory limit may divide a problem. A plan with `MAX_COMMANDS` commands takes a hundred
/// megabytes of host memory, and its run takes seconds, whatever the plan computes.
pub const MAX_COMMANDS: usize = 1 << 18;

/// A problem of any routine, in normal form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Problem {
    /// A matrix product.
    Gemm(gemm::Problem),
    /// A triangular solve.
    Trsm(trsm::Problem),
    /// An LU factorisation.
    Getrf {
        /// The factorisation, without the width of its panels.
        problem: getrf::Problem,
        /// Number of columns of a panel. If `nb` is `None`, the number is chosen from the sizes of the matrix and from the
        /// devices.
        nb: Option<usize>,
    },
    /// A solve with LU factors.
    Getrs(getrs::Problem),
    /// Exchanges of rows of a matrix.
    Laswp(laswp::Problem),
    /// A batch of small problems.
    Batched(batched::Problem),
}

/// The error of a memory limit that would divide a problem into too many commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitTooSmall {
    /// Name of the routine.
    pub operation: &'static str,
    /// The refused memory limit in bytes.
    pub limit: usize,
    /// Number of commands into which the refused limit would divide the problem, or a lower bound of this number.
    pub commands: usize,
    /// Maximum number of commands: [`MAX_COMMANDS`], or the number of commands of the problem without a memory limit if that
    /// number is larger.
    pub allowed: usize,
    /// A memory limit in bytes that would suffice for the problem.
    pub least: usize,
}

impl LimitTooSmall {
    /// Converts this value to the error that a user sees. `device` is the name of the device that has the memory limit.
    #[must_use]
    pub fn of(self, device: &str) -> Error {
        let LimitTooSmall { operation, limit, commands, allowed, least } = self;
        let message = format!(
            "the memory limit of {device} is {limit} B, which cuts the problem into {commands} or more commands; {allowed} are allowed: \
             the limit is too small, at least {least} B are needed"
        );
        Error::new(ErrorKind::OutOfMemory, operation, message)
    }
}

impl Problem {
    /// The name of a routine or of a routine for batches, as [`Problem::operation`] returns it. `None` if `name` is no such name.
    #[must_use]
    pub fn operation_named(name: &str) -> Option<&'static str> {
        let routine = Routine::named(name).map(Routine::name);
        routine.or_else(|| batched::OPERATIONS.into_iter().find(|operation| *operation == name))
    }

    /// Name of the routine.
    #[must_use]
    pub fn operation(&self) -> &'static str {
        match self {
            Problem::Gemm(_) => Routine::Gemm.name(),
            Problem::Trsm(_) => Routine::Trsm.name(),
            Problem::Getrf { .. } => Routine::Getrf.name(),
            Problem::Getrs(_) => Routine::Getrs.name(),
            Problem::Laswp(_) => Routine::Laswp.name(),
            Problem::Batched(p) => p.operation(),
        }
    }

    /// Element type of the matrices.
    #[must_use]
    pub fn dtype(&self) -> DType {
        match self {
            Problem::Gemm(p) => p.dtype(),
            Problem::Trsm(p) => p.dtype(),
            Problem::Getrf { problem, .. } => problem.dtype,
            Problem::Getrs(p) => p.dtype(),
            Problem::Laswp(p) => p.dtype,
            Problem::Batched(p) => p.dtype(),
        }
    }

    /// The sizes on which the run time of the problem depends, with their names.
    #[must_use]
    pub fn sizes(&self) -> Vec<(&'static str, usize)> {
        match self {
            Problem::Gemm(p) => vec![("m", p.m), ("n", p.n), ("k", p.k)],
            Problem::Trsm(p) => vec![("n", p.order()), ("nrhs", p.nrhs())],
            Problem::Getrf { problem, .. } => vec![("m", problem.m), ("n", problem.n)],
            Problem::Getrs(p) => vec![("n", p.size().0), ("nrhs", p.size().1)],
            Problem::Laswp(p) => vec![("m", p.m), ("n", p.n), ("pivots", p.pivots)],
            Problem::Batched(p) => p.sizes(),
        }
    }

    /// Computes the number of commands of the plan that [`Problem::plan`] would make for `devices`.
    #[must_use]
    pub fn commands(&self, devices: &Resources) -> usize {
        match self {
            Problem::Gemm(p) => gemm::commands(p, &gemm_blocking(p, devices)),
            Problem::Trsm(p) => trsm::commands(p, &trsm_blocking(p, devices)),
            Problem::Getrf { problem, nb } => getrf::commands(problem, &getrf_blocking(problem, *nb, devices)),
            Problem::Getrs(p) => {
                let [solve, exchanges] = getrs_blocking(p, devices);
                getrs::commands(p, &solve, &exchanges)
            }
            Problem::Laswp(p) => laswp::commands(p, &laswp_blocking(p, devices)),
            Problem::Batched(p) => p.commands(devices),
        }
    }

    /// The plan of this problem for the devices `devices`.
    ///
    /// # Errors
    /// Fails if the memory limit of the devices would divide the problem into too many commands.
    pub fn plan(&self, devices: &Resources) -> Result<Plan, LimitTooSmall> {
        self.check(devices)?;
        Ok(match self {
            Problem::Gemm(p) => gemm::plan(p, &gemm_blocking(p, devices)),
            Problem::Trsm(p) => trsm::plan(p, &trsm_blocking(p, devices)),
            Problem::Getrf { problem, nb } => getrf::plan(problem, &getrf_blocking(problem, *nb, devices)),
            Problem::Getrs(p) => {
                let [solve, exchanges] = getrs_blocking(p, devices);
                getrs::plan(p, &solve, &exchanges)
            }
            Problem::Laswp(p) => laswp::plan(p, &laswp_blocking(p, devices)),
            Problem::Batched(p) => p.plan(devices),
        })
    }

    /// The problem as a sequence of instructions on whole matrices. Each operand is the index of a matrix in the problem's plan.
    #[must_use]
    pub fn instructions(&self) -> Vec<Instruction<usize>> {
        match self {
            Problem::Gemm(p) => vec![p.instruction([0, 1, 2])],
            Problem::Trsm(p) => vec![p.instruction([0, 1])],
            Problem::Getrf { problem, .. } => problem.instructions([0, 1, 2]),
            Problem::Getrs(p) => p.instructions([0, 1, 2]).into(),
            Problem::Laswp(p) => vec![p.instruction([0, 1])],
            Problem::Batched(p) => vec![p.instruction(p.count, &[0, 1, 2][..p.operand_count()])],
        }
    }

    /// The LU factorisation with the width of its panels, if one device that holds all matrices should factor the matrix in
    /// panels. LU works in panels if the caller gave a width. Without a given width, LU works in panels if the device has a
    /// `lookahead` and the matrix is large enough for it. `None` for all other problems, which run as [`Self::instructions`].
    #[must_use]
    pub fn by_panels(self, lookahead: Option<Lookahead>) -> Option<Self> {
        match self {
            Problem::Getrf { nb: Some(_), .. } => Some(self),
            Problem::Getrf { problem, nb: None } => {
                let width = lookahead.and_then(|lookahead| lookahead.width(problem.order()));
                // no instruction continues a factorisation
                let nb = width.or((problem.factored > 0).then_some(problem.order()))?;
                Some(Problem::Getrf { problem, nb: Some(nb) })
            }
            Problem::Gemm(_) | Problem::Trsm(_) | Problem::Getrs(_) | Problem::Laswp(_) | Problem::Batched(_) => None,
        }
    }

    /// Returns an error if the memory limit of the devices is too small for this problem. A memory limit is not too small if the
    /// problem has as many commands without a memory limit.
    ///
    /// # Errors
    /// Fails if the memory limit of the devices would divide the problem into too many commands.
    pub fn check(&self, devices: &Resources) -> Result<(), LimitTooSmall> {
        let Some(limit) = devices.copy_limit() else { return Ok(()) };
        let commands = self.commands(devices);
        if commands <= MAX_COMMANDS {
            return Ok(());
        }
        let within = |limit| self.commands(&Resources { memory: limit, buffer: limit, ..devices.clone() });
        let allowed = MAX_COMMANDS.max(within(None)).max(within(Some(usize::MAX)));
        if commands <= allowed {
            return Ok(());
        }
        let least = least_limit(limit, |limit| within(Some(limit)) <= allowed).max(self.longest_column());
        Err(LimitTooSmall { operation: self.operation(), limit, commands, allowed, least })
    }

    /// Number of bytes of a column with its pivots, if each exchange of rows needs a whole column in the memory of a device. The other tiles of
    /// these problems may be smaller than a column. 0 for problems without such exchanges.
    fn longest_column(&self) -> usize {
        match self {
            Problem::Getrs(p) => p.size().0.saturating_mul(p.dtype().size() + DType::I32.size()),
            Problem::Gemm(_) | Problem::Trsm(_) | Problem::Getrf { .. } | Problem::Laswp(_) | Problem::Batched(_) => 0,
        }
    }
}

/// A memory limit above `small` that suffices, although one byte less does not suffice. The caller guarantees that `small` does
/// not suffice, and that `usize::MAX` suffices.
fn least_limit(mut small: usize, suffices: impl Fn(usize) -> bool) -> usize {
    let mut enough = small.max(1);
    while !suffices(enough) {
        (small, enough) = (enough, enough.saturating_mul(2));
    }
    while enough - small > 1 {
        let middle = small + (enough - small) / 2;
        *(if suffices(middle) { &mut enough } else { &mut small }) = middle;
    }
    enough
}

fn gemm_blocking(p: &gemm::Problem, devices: &Resources) -> Blocking {
    devices.gemm(p.m, p.n, p.k)
}

fn trsm_blocking(p: &trsm::Problem, devices: &Resources) -> Blocking {
    devices.trsm(p.order(), p.nrhs())
}

fn getrf_blocking(p: &getrf::Problem, nb: Option<usize>, devices: &Resources) -> Blocking {
    let chosen = devices.getrf(p.m, p.n);
    match (nb, &chosen.place) {
        (None, _) => chosen,
        // the memory of the device determines the width of the panels; the caller's width is that of the strips in which panels pass through
        (Some(nb), Place::Streamed) => Blocking { kc: nb.min(chosen.kc), ..chosen },
        // panels that do not fit into the memory of a device are not used
        (nb, Place::Distributed { .. }) => devices.distributed(p.m, p.n, nb).unwrap_or(chosen),
        (Some(nb), Place::Shared | Place::Divided { .. } | Place::Held { .. }) => Blocking { nb, ..chosen },
    }
}

/// Block sizes of the two triangular solves, and block sizes of the row exchanges.
fn getrs_blocking(p: &getrs::Problem, devices: &Resources) -> [Blocking; 2] {
    let (n, nrhs) = p.size();
    [devices.trsm(n, nrhs), laswp_blocking(p.exchanges(), devices)]
}

fn laswp_blocking(p: &laswp::Problem, devices: &Resources) -> Blocking {
    devices.laswp(p.m, p.n, p.side)
}
