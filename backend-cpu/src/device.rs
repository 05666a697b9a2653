//! The CPU as a device: all its cores, or one thread.

use std::env::consts::ARCH;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
#[cfg(feature = "database")]
use std::sync::{
    PoisonError, RwLock,
    atomic::{AtomicBool, Ordering},
};

use lapidary_core::{
    BufferRect, DType, Device, DeviceBuffer, DeviceFacts, DeviceKind, Error, ErrorKind, HostRect, Identity, Instruction, Op,
    Operand, Result, Scalar,
};
#[cfg(feature = "database")]
use lapidary_kernels::{Database, database::CPU_BLOCKS};

use crate::buffer::Buffer;
#[cfg(feature = "database")]
use crate::conv::blocking;
use crate::conv::{host_tile, tile, transpose_of};
use crate::fast::{self, Lanes, NoMemory};
use crate::reference;
use crate::team::{Team, cores};
use crate::tile::Tile;

/// The code path that runs the instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Path {
    /// Kernels with vector instructions.
    #[default]
    Fast,
    /// Plain loops, which define the result of every instruction.
    Reference,
}

/// The CPU with all its cores as one device, or one thread of the CPU as a logical device.
///
/// Without a memory limit, the device works on the caller's matrices in place. With a memory limit, the device copies the matrices
/// into buffers whose total size stays within the limit, as a device with memory of its own does. One team of threads does both the
/// copies and the computation.
#[derive(Debug)]
pub struct CpuDevice {
    facts: DeviceFacts,
    path: Path,
    team: Team,
    #[cfg(feature = "database")]
    preferred: Preferred,
}

/// The team with the cache blocks that [`Device::prefer_kernels`] has chosen.
#[cfg(feature = "database")]
#[derive(Debug, Default)]
struct Preferred {
    team: RwLock<Option<Team>>,
    /// Whether there is such a team. Calls of a device without one take no lock.
    is_set: AtomicBool,
}

impl CpuDevice {
    /// The device `cpu`, with at most one thread for each core that the process may use. `memory` is the memory limit in bytes;
    /// `None` means no limit. All `cpu` devices of a process share one team of threads.
    #[must_use]
    pub fn whole(memory: Option<usize>) -> Self {
        static TEAM: OnceLock<Team> = OnceLock::new();
        let team = TEAM.get_or_init(|| Team::new(cores()));
        Self::of_team("cpu".to_owned(), memory, team.clone())
    }

    /// The logical device `cpu:index`, which runs on the calling thread only. `memory` is the memory limit in bytes; `None` means
    /// no limit.
    #[must_use]
    pub fn new(index: usize, memory: Option<usize>) -> Self {
        Self::of_team(format!("cpu:{index}"), memory, Team::alone())
    }

    /// A device whose instructions are run by `team`.
    #[must_use]
    pub fn of_team(name: String, memory: Option<usize>, team: Team) -> Self {
        let (isa, vector_bits, flops) = instruction_set();
        let identity = identity();
        let mut facts = DeviceFacts::new(name);
        facts.description = format!("{} ({isa})", identity.model);
        facts.identity = identity.clone();
        facts.dtypes = vec![DType::F32, DType::F64];
        facts.compute_units = Some(team.size());
        facts.vector_bits = vector_bits;
        facts.memory = memory;
        facts.host_memory = memory.is_none();
        // the estimate of `flops` assumes that each core runs at 2.5 GHz
        facts.rates.flops = 2.5e9 * flops * team.size() as f64;
        facts.rates.bandwidth = 6e9;
        CpuDevice {
            facts,
            path: Path::Fast,
            team,
            #[cfg(feature = "database")]
            preferred: Preferred::default(),
        }
    }

    /// Selects the code path that runs the instructions of this device.
    #[must_use]
    pub fn with_path(self, path: Path) -> Self {
        CpuDevice { path, ..self }
    }

    /// Looks up the cache blocks of products in `database` instead of the database of the crate `kernels`.
    #[cfg(feature = "database")]
    #[must_use]
    pub fn with_database(mut self, database: &Database) -> Self {
        let blocking = blocking(database, &self.facts, self.team.blocking());
        self.team = self.team.with_blocking(blocking);
        self
    }

    /// Calls `work` with the team and the cache blocks that the device uses.
    #[cfg(feature = "database")]
    #[inline]
    fn with_team<R>(&self, work: impl FnOnce(&Team) -> R) -> R {
        if !self.preferred.is_set.load(Ordering::Acquire) {
            return work(&self.team);
        }
        let preferred = self.preferred.team.read().unwrap_or_else(PoisonError::into_inner).clone();
        work(preferred.as_ref().unwrap_or(&self.team))
    }

    /// Calls `work` with the team that the device uses.
    #[cfg(not(feature = "database"))]
    #[inline]
    fn with_team<R>(&self, work: impl FnOnce(&Team) -> R) -> R {
        work(&self.team)
    }
}

/// Returns the name of the vector instructions that the fast path uses, the width of a vector in bits, and the number of f64
/// operations of one core per cycle. The number of operations assumes two fused multiply-adds per cycle on each element of a
/// vector, and one on the portable path.
fn instruction_set() -> (&'static str, usize, f64) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") {
        return ("AVX-512", 512, 32.0);
    } else if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        return ("AVX2", 256, 16.0);
    }
    if cfg!(target_arch = "aarch64") { ("NEON", 128, 8.0) } else { ("portable", 128, 4.0) }
}

/// The identity of the CPU as the operating system reports it. The identity is read once for all CPU devices.
fn identity() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let told = |key: &str, instead: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':'));
            value.map_or(instead, str::trim).to_owned()
        };
        let mut identity = Identity::default();
        identity.kind = DeviceKind::Cpu;
        identity.vendor = told("vendor_id", "");
        identity.architecture = format!("{ARCH} {}", instruction_set().0);
        identity.model = told("model name", ARCH);
        concat!("lapidary ", env!("CARGO_PKG_VERSION")).clone_into(&mut identity.driver);
        identity
    })
}

impl Device for CpuDevice {
    #[inline]
    fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        Buffer::new(bytes).map(DeviceBuffer::new).map_err(|source| {
            Error::new(ErrorKind::OutOfHostMemory, "alloc", format!("the system gives no {bytes} bytes")).caused_by(source)
        })
    }

    unsafe fn write(&self, from: HostRect, to: BufferRect<'_>) -> Result<()> {
        // SAFETY: the caller guarantees that the buffer contains its rectangle, and that no other code accesses the buffer or the
        // rectangle until the method returns.
        unsafe { transfer(&self.team, from, to, Direction::Write) }
        Ok(())
    }

    unsafe fn read(&self, from: BufferRect<'_>, to: HostRect) -> Result<()> {
        // SAFETY: the caller guarantees that the buffer contains its rectangle, and that no other code accesses the buffer or the
        // rectangle until the method returns.
        unsafe { transfer(&self.team, to, from, Direction::Read) }
        Ok(())
    }

    #[inline]
    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        // SAFETY: the contract of `Device::launch` includes the contract of tiles.
        self.with_team(|team| with_memory("launch", || unsafe { carry_out_by(self.path, team, instruction) }))
    }

    /// Members of the team claim sequences of instructions, and one member runs each claimed sequence. The whole team runs each
    /// sequence of more than `FLOPS_OF_TEAM` operations, because a single member would finish it long after the other members.
    unsafe fn launch_sequences(&self, instructions: &[Instruction<Operand<'_>>], length: usize) -> Result<()> {
        let is_large =
            |sequence: &&[Instruction<Operand<'_>>]| sequence.iter().map(Instruction::flops).sum::<f64>() > fast::FLOPS_OF_TEAM;
        let (large, small): (Vec<_>, Vec<_>) = instructions.chunks_exact(length).partition(is_large);
        let run = |team: &Team, sequence: &[Instruction<Operand<'_>>]| {
            // SAFETY: the contract of `Device::launch` includes the contract of tiles.
            sequence.iter().for_each(|instruction| unsafe { carry_out_by(self.path, team, instruction) });
        };
        let work = small.iter().flat_map(|sequence| sequence.iter()).map(Instruction::flops).sum::<f64>()
            + small.len() as f64 * FLOPS_OF_CALL;
        self.with_team(|team| {
            with_memory("launch", || {
                large.iter().for_each(|sequence| run(team, sequence));
                fast::in_groups(team, small.len(), work, |group| {
                    let alone = team.one_member();
                    small[group].iter().for_each(|sequence| run(&alone, sequence));
                });
            })
        })
    }

    unsafe fn getrf_by_rows(&self, pivoting: bool, a: HostRect, ipiv: HostRect, info: HostRect) -> Option<Result<()>> {
        if self.path == Path::Reference {
            return None;
        }
        // SAFETY: the caller guarantees that no other code accesses the rectangles until the method returns.
        let factor = |team: &Team| unsafe {
            let ((ipiv, _), info) = (host_tile(ipiv), &mut *info.origin.cast());
            match a.dtype {
                DType::F32 => fast::getrf_by_rows::<f32>(team, pivoting, transpose_of(a), ipiv, info),
                DType::F64 => fast::getrf_by_rows::<f64>(team, pivoting, transpose_of(a), ipiv, info),
                DType::I32 => unreachable!("instructions compute with no integers"),
            }
        };
        Some(self.with_team(|team| with_memory("getrf", || factor(team))))
    }

    /// A text that names no cache blocks is for other devices, so that the method returns `None`.
    #[cfg(feature = "database")]
    fn prefer_kernels(&self, entries: &str) -> Option<Result<()>> {
        let mut text = Database::default();
        let problem = text.add("text", entries).into_iter().next();
        let is_for_cpu = [DType::F32, DType::F64].map(|dtype| text.cpu_blocks(&self.facts, dtype).is_some()).contains(&true);
        match problem {
            Some(reason) if entries.contains(CPU_BLOCKS) => return Some(Err(Error::invalid("prefer_kernels", reason))),
            None if is_for_cpu || entries.is_empty() => {}
            Some(_) | None => return None,
        }
        let blocking = blocking(&text, &self.facts, self.team.blocking());
        let team = is_for_cpu.then(|| self.team.clone().with_blocking(blocking));
        self.preferred.is_set.store(is_for_cpu, Ordering::Release);
        *self.preferred.team.write().unwrap_or_else(PoisonError::into_inner) = team;
        Some(Ok(()))
    }
}

/// Runs `compute`. Returns an error if the system refuses memory for packed blocks.
fn with_memory(operation: &'static str, compute: impl FnOnce()) -> Result<()> {
    catch_unwind(AssertUnwindSafe(compute)).map_err(|panic| match panic.downcast::<NoMemory>() {
        Ok(refused) => {
            let message = format!("the system gives no {} bytes for packed blocks", refused.bytes);
            Error::new(ErrorKind::OutOfHostMemory, operation, message).caused_by(refused.source)
        }
        Err(panic) => resume_unwind(panic),
    })
}

/// The overhead of one sequence of instructions, expressed as the number of floating-point operations that take the same time.
const FLOPS_OF_CALL: f64 = 1e3;

/// # Safety
/// The [contract of tiles](crate::tile) holds.
#[inline]
unsafe fn carry_out_by(path: Path, team: &Team, instruction: &Instruction<Operand<'_>>) {
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe {
        match (path, instruction.dtype()) {
            (Path::Reference, DType::F32) => by_definition::<f32>(instruction),
            (Path::Reference, DType::F64) => by_definition::<f64>(instruction),
            (Path::Fast, DType::F32) => at_speed::<f32>(team, instruction),
            (Path::Fast, DType::F64) => at_speed::<f64>(team, instruction),
            (_, DType::I32) => unreachable!("instructions compute with no integers"),
        }
    }
}

/// Direction of a transfer: `Write` copies to the buffer of the device, and `Read` copies from the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Write,
    Read,
}

/// Copies elements between a host rectangle and a rectangle of a buffer.
///
/// # Safety
/// The contract of [`Device::write`] or [`Device::read`] holds.
unsafe fn transfer(team: &Team, rect: HostRect, own: BufferRect<'_>, direction: Direction) {
    // SAFETY: the caller guarantees the contract of `Device::write` or `Device::read`; `rect.dtype` is the type of the rectangle's
    // elements.
    unsafe {
        match rect.dtype {
            DType::F32 => copy_rect(rect, own, direction, |op, a, b| fast::copy::<f32>(team, op, a, b)),
            DType::F64 => copy_rect(rect, own, direction, |op, a, b| fast::copy::<f64>(team, op, a, b)),
            // only pivot vectors have integer elements; a pivot vector is one column, or one row if it is transposed
            DType::I32 => copy_rect(rect, own, direction, |op, a: Tile<i32>, b| {
                for i in 0..b.rows() * b.cols() {
                    let (row, col) = (i % b.rows(), i / b.rows());
                    b.set(row, col, if op.is_trans() { a.get(col, row) } else { a.get(row, col) });
                }
            }),
        }
    }
}

/// # Safety
/// The [contract of tiles](crate::tile) holds, and the rectangle holds elements of type `T`.
unsafe fn copy_rect<T: Copy>(rect: HostRect, own: BufferRect<'_>, direction: Direction, copy: impl Fn(Op, Tile<T>, Tile<T>)) {
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe {
        let start = own.buffer.get::<Buffer>().start::<T>().wrapping_add(own.offset);
        let own = Tile::new(start, rect.rows, rect.cols, own.ld);
        let (host, op) = host_tile(rect);
        match direction {
            Direction::Write => copy(op, host, own),
            Direction::Read => copy(op, own, host),
        }
    }
}

/// Calls the function of `$module` that implements an instruction. `$first`, if given, is passed as the first argument.
macro_rules! carry_out {
    ($module:ident, [$($first:expr)?], $instruction:expr) => {
        match *$instruction {
            Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c } => {
                $module::gemm($($first,)? op_a, op_b, alpha.get::<T>(), tile(a), tile(b), beta.get(), tile(c));
            }
            Instruction::Trsm { side, uplo, op, diag, alpha, a, b, .. } => {
                $module::trsm($($first,)? side, uplo, op, diag, alpha.get::<T>(), tile(a), tile(b));
            }
            Instruction::Getrf { pivoting, first_row, a, ipiv, info } => {
                $module::getrf($($first,)? pivoting, first_row, tile::<T>(a), tile(ipiv), &mut *tile(info).ptr());
            }
            Instruction::Laswp { swaps, a, ipiv } => $module::laswp($($first,)? swaps, tile::<T>(a), tile(ipiv)),
            Instruction::Copy { a, b } => $module::copy($($first,)? Op::NoTrans, tile::<T>(a), tile(b)),
            Instruction::Narrow { alpha, a, b } => $module::narrow($($first,)? alpha.get(), tile(a), tile(b)),
            Instruction::Scale { beta, c } => $module::scale($($first,)? beta.get::<T>(), tile(c)),
            Instruction::GemmBatched { count, alpha, op_a, a, op_b, b, beta, c } => {
                $module::gemm_batched($($first,)? count, op_a, op_b, alpha.get::<T>(), tile(a), tile(b), beta.get(), tile(c));
            }
            Instruction::GetrfBatched { count, pivoting, a, ipiv, info } => {
                $module::getrf_batched($($first,)? count, pivoting, tile::<T>(a), tile(ipiv), tile(info));
            }
            Instruction::GetrsBatched { count, op, lu, ipiv, b } => {
                $module::getrs_batched($($first,)? count, op, tile::<T>(lu), tile(ipiv), tile(b));
            }
            Instruction::ZeroPivots { count, lu, info } => {
                $module::zero_pivots($($first,)? count, tile::<T>(lu), tile(info));
            }
        }
    };
}

/// # Safety
/// The [contract of tiles](crate::tile) holds.
unsafe fn by_definition<T: Scalar>(instruction: &Instruction<Operand<'_>>) {
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe { carry_out!(reference, [], instruction) }
}

/// # Safety
/// The [contract of tiles](crate::tile) holds.
#[inline]
unsafe fn at_speed<T: Lanes>(team: &Team, instruction: &Instruction<Operand<'_>>) {
    // SAFETY: the caller guarantees the contract of tiles.
    unsafe { carry_out!(fast, [team], instruction) }
}

#[cfg(test)]
mod tests {
    use lapidary_core::{Diag, Side, Uplo};

    use super::*;
    use crate::fast::REFUSES;
    #[cfg(feature = "database")]
    use crate::fast::{Blocking, Blocks};

    const N: usize = 300;

    type Routine = unsafe fn(&Team, [Tile<f64>; 3], Tile<i32>);

    unsafe fn multiply(team: &Team, [a, b, c]: [Tile<f64>; 3], _: Tile<i32>) {
        // SAFETY: the caller guarantees the contract of tiles.
        unsafe { fast::gemm(team, Op::NoTrans, Op::NoTrans, 1.0, a, b, 0.0, c) }
    }

    unsafe fn solve(team: &Team, [a, b, _]: [Tile<f64>; 3], _: Tile<i32>) {
        // SAFETY: the caller guarantees the contract of tiles.
        unsafe { fast::trsm(team, Side::Left, Uplo::Lower, Op::NoTrans, Diag::Unit, 1.0, a, b) }
    }

    unsafe fn factor(team: &Team, [a, ..]: [Tile<f64>; 3], ipiv: Tile<i32>) {
        // SAFETY: the caller guarantees the contract of tiles.
        unsafe { fast::getrf(team, true, 0, a, ipiv, &mut 0) }
    }

    /// Runs a routine twice on a new thread, which holds no workspace from earlier calls. Only in the first run does the simulated
    /// system refuse memory to the thread.
    fn refused_and_again(team: &Team, routine: Routine) -> [Result<()>; 2] {
        let run = || {
            let (mut data, mut ipiv) = ([1, 2, 3].map(|_| vec![1.0; N * N]), vec![0; N]);
            // SAFETY: each vector has as many elements as its tile.
            let (tiles, ipiv) = unsafe {
                (data.each_mut().map(|data| Tile::new(data.as_mut_ptr(), N, N, N)), Tile::new(ipiv.as_mut_ptr(), N, 1, N))
            };
            [true, false].map(|refuses| {
                REFUSES.set(refuses);
                // SAFETY: each tile is a whole matrix in memory of its own, which only `routine` accesses.
                with_memory("launch", || unsafe { routine(team, tiles, ipiv) })
            })
        };
        std::thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    #[test]
    fn refused_memory_is_an_error_and_the_next_call_works() {
        for team in [Team::alone(), Team::eager(3)] {
            // only the calling thread is refused memory; in a solve, the other members may claim all strips before the caller
            // claims one, and the solve then succeeds
            for (routine, always) in [(multiply as Routine, true), (solve, false), (factor, true)] {
                let [refused, again] = refused_and_again(&team, routine);
                match refused {
                    Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfHostMemory),
                    Ok(()) => assert!(team.size() > 1 && !always),
                }
                again.unwrap();
            }
        }
    }

    #[test]
    fn memory_that_a_member_lacks_is_an_error_while_others_wait() {
        let team = Team::eager(4);
        for round in 0..20 {
            let refused = with_memory("launch", || {
                team.run(4, &|member| {
                    if member.index == round % 4 {
                        resume_unwind(Box::new(NoMemory { bytes: 1, source: std::io::ErrorKind::OutOfMemory.into() }));
                    }
                    member.wait_for_all(|| ());
                });
            });
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::OutOfHostMemory);
        }
    }

    /// The shipped entries are the blocks of a build without the database.
    #[cfg(feature = "database")]
    #[test]
    fn the_shipped_database_names_the_default_blocks() {
        let device = CpuDevice::new(0, None);
        let other = Blocks { kc: 1, mc: 1, nc: 1, team_mc: 1, team_nc: 1 };
        let instead = Blocking { f32: other, f64: other };
        assert_eq!(blocking(Database::shipped(), device.facts(), instead), Blocking::DEFAULT);
        let tuned = CpuDevice::new(0, None).with_database(&mine("[kind cpu]", 96));
        assert_eq!([tuned.team.blocking().f32.kc, tuned.team.blocking().f64.kc], [1024, 96]);
    }

    /// A database with blocks of `kc` terms in double precision.
    #[cfg(feature = "database")]
    fn mine(scope: &str, kc: usize) -> Database {
        let mut mine = Database::default();
        let text = format!("{scope}\ncpu_blocks f64 kc={kc} mc=24 nc=64 team_mc=48 team_nc=64");
        assert_eq!(mine.add("mine", &text), Vec::<String>::new());
        mine
    }

    #[cfg(feature = "database")]
    #[test]
    fn preferred_blocks_are_used_until_an_empty_text_follows() {
        let device = CpuDevice::new(0, None);
        let used = || device.with_team(|team| team.blocking().f64.kc);
        let prefer = |text: &str| device.prefer_kernels(text).map(|done| done.map_err(|error| error.to_string()));
        assert_eq!((prefer("cpu_blocks f64 kc=96 mc=24 nc=64 team_mc=48 team_nc=64"), used()), (Some(Ok(())), 96));
        // a text for other devices changes nothing
        assert_eq!((prefer("solve items=4"), prefer("solver items=4"), used()), (None, None, 96));
        let reason = prefer("cpu_blocks f64 kc=96").unwrap().unwrap_err();
        assert!(reason.contains("mc is not given"), "{reason}");
        assert_eq!((prefer(""), used()), (Some(Ok(())), 512));
    }
}
