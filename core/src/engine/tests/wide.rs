//! Tests that elements of 16 bytes, the size of complex numbers in double precision, pass through plans, transfers, registers and
//! copies. No code of the engine may assume that an element has 4 or 8 bytes.

use super::*;
use crate::device::BufferRect;
use crate::enums::Layout::{ColMajor, RowMajor};
use crate::matrix::Home;

/// A test device that copies elements of any type and supports no other instruction.
#[derive(Debug)]
struct Copier(DeviceFacts);

/// The memory of a buffer, in words of 8 bytes.
#[derive(Debug)]
struct Memories(Box<[UnsafeCell<u64>]>);

// SAFETY: only commands of the engine access the words, and the engine never runs two conflicting commands at the same time.
unsafe impl Sync for Memories {}

impl Copier {
    fn new(memory: Option<usize>) -> Self {
        Copier(DeviceFacts { host_memory: memory.is_none(), memory, ..DeviceFacts::new("copier:0") })
    }
}

fn start(buffer: &DeviceBuffer) -> *mut u8 {
    buffer.get::<Memories>().0.as_ptr().cast::<u8>().cast_mut()
}

/// Calls `visit` for each element of a rectangle, with the element's address in host memory, the element's address in the
/// buffer, and the element's size.
fn each(rect: HostRect, own: BufferRect<'_>, visit: impl Fn(*mut u8, *mut u8, usize)) {
    let size = rect.dtype.size();
    for (i, j) in (0..rect.cols).flat_map(|j| (0..rect.rows).map(move |i| (i, j))) {
        let host = rect.origin.wrapping_add((i * rect.row_stride + j * rect.col_stride) * size);
        visit(host, start(own.buffer).wrapping_add((own.offset + i + j * own.ld) * size), size);
    }
}

impl Device for Copier {
    fn facts(&self) -> &DeviceFacts {
        &self.0
    }
    fn alloc(&self, bytes: usize) -> Result<DeviceBuffer> {
        Ok(DeviceBuffer::new(Memories((0..bytes.div_ceil(8)).map(|_| UnsafeCell::new(0)).collect())))
    }
    unsafe fn write(&self, from: HostRect, to: BufferRect<'_>) -> Result<()> {
        // SAFETY: the engine passes a readable host rectangle and a buffer that has room for all elements of the rectangle.
        each(from, to, |host, own, size| unsafe { own.copy_from_nonoverlapping(host, size) });
        Ok(())
    }
    unsafe fn read(&self, from: BufferRect<'_>, to: HostRect) -> Result<()> {
        // SAFETY: the engine passes a writable host rectangle and a buffer that holds all elements of the rectangle.
        each(to, from, |host, own, size| unsafe { host.copy_from_nonoverlapping(own, size) });
        Ok(())
    }
    unsafe fn launch(&self, instruction: &Instruction<Operand<'_>>) -> Result<()> {
        let Instruction::Copy { a, b } = *instruction else { unreachable!("the plan copies") };
        assert_eq!(instruction.dtype(), DType::Wide);
        let at = |o: &Operand<'_>, i: usize, j: usize| {
            let base = match o.memory {
                Memory::Host(base) => base.as_ptr(),
                Memory::Buffer(buffer) => start(buffer),
            };
            base.wrapping_add((o.offset + i + j * o.ld) * o.dtype.size())
        };
        for (i, j) in (0..b.cols).flat_map(|j| (0..b.rows).map(move |i| (i, j))) {
            // SAFETY: every element of an operand lies in the operand's buffer or host matrix, and no conflicting command runs at
            // the same time.
            unsafe { at(&b, i, j).copy_from_nonoverlapping(at(&a, i, j), a.dtype.size()) };
        }
        Ok(())
    }
}

const M: usize = 9;
const N: usize = 10;

/// A plan that copies `C ← A` in tiles, each of which passes through scratch memory.
fn copies(layout: Layout) -> Plan {
    let mut plan = Plan::new("copy", DType::Wide);
    let (a, c) = (plan.input("A", (M, N), ColMajor), plan.output("C", (M, N), layout));
    for (rows, cols) in [(0..4, 0..10), (4..9, 0..3), (4..9, 3..10)] {
        plan.task("C", Region { row: rows.start, col: cols.start, rows: rows.len(), cols: cols.len() });
        let (from, pad, to) = (plan.ld(a, &rows, &cols), plan.scratch(rows.len(), cols.len()), plan.window(c, &rows, &cols));
        plan.exec(Instruction::Copy { a: from, b: pad });
        plan.exec(Instruction::Copy { a: pad, b: to });
        plan.st(to);
    }
    plan
}

#[test]
fn elements_of_sixteen_bytes_are_moved_whole() {
    let raw = |data: &mut [[u64; 2]], layout| {
        let home = Home::Host(std::ptr::NonNull::new(data.as_mut_ptr().cast()).unwrap());
        RawMat { home, offset: 3, rows: M, cols: N, ld: 12, layout, dtype: DType::Wide }
    };
    for (memory, layout) in [(Some(1 << 20), ColMajor), (Some(1 << 12), RowMajor), (None, ColMajor), (None, RowMajor)] {
        let mut a: Vec<[u64; 2]> = (0..150).map(|e| [e, !e]).collect();
        let mut c = vec![[7; 2]; 150];
        let bindings = [raw(&mut a, ColMajor), raw(&mut c, layout)];
        let runtime = runtime(Copier::new(memory));
        let schedule = Schedule::new(copies(layout), vec![reach(0, runtime.facts(), &bindings)]).unwrap();
        // SAFETY: the matrices are as the plan declares, and only this test accesses them.
        unsafe { run(&LanePool::default(), &[&runtime], &schedule, &bindings, Watch::default()).unwrap() };
        let mut expected = vec![[7; 2]; 150];
        for (i, j) in (0..M).flat_map(|i| (0..N).map(move |j| (i, j))) {
            expected[bindings[1].offset + bindings[1].index(i, j)] = a[3 + i + 12 * j];
        }
        assert_eq!(c, expected, "{memory:?} {layout}");
    }
}

#[test]
fn registers_are_as_large_as_their_elements() {
    let runtime = runtime(NullDevice::new(Some(1 << 20)));
    let (mut a, mut c) = (vec![[0_u64; 2]; 150], vec![[0_u64; 2]; 150]);
    let raw = |data: &mut Vec<[u64; 2]>| {
        let home = Home::Host(std::ptr::NonNull::new(data.as_mut_ptr().cast()).unwrap());
        RawMat { home, offset: 0, rows: M, cols: N, ld: 12, layout: ColMajor, dtype: DType::Wide }
    };
    let bindings = [raw(&mut a), raw(&mut c)];
    // SAFETY: a null device accesses no memory.
    unsafe { runtime.upload(1, &bindings[0]).unwrap() };
    assert_eq!(runtime.device().downcast::<NullDevice>().unwrap().record().held, M * N * 16);
    runtime.discard(1);
    let schedule = Schedule::new(copies(ColMajor), vec![reach(0, runtime.facts(), &bindings)]).unwrap();
    // two registers are in use at the same time, each as large as the largest tile
    assert_eq!(schedule.footprint(0), 2 * 4 * 10 * 16);
}
