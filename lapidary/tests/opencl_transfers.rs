//! Tests of transfers in pieces, and of devices that are opened again, with OpenCL devices in double precision.
//!
//! If there is no such device, a test prints a message and passes, unless `LAPIDARY_REQUIRE_OPENCL` is set.
#![cfg(feature = "opencl")]

use std::path::PathBuf;
use std::sync::Arc;

use lapidary::opencl::{Found, OpenClDevice, list};
use lapidary::{DType, Gemm, Layout, Machine, MatMut, MatRef, Settings};

/// The first device in double precision, whose transfers are cut into pieces of `bytes` bytes.
fn in_pieces(bytes: usize) -> Option<Machine> {
    let listing = list();
    let Some(first) = listing.devices.iter().position(|found| found.facts.computes(DType::F64)) else {
        assert!(std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "no OpenCL device: {:?}", listing.notes);
        eprintln!("not run: {:?}", listing.notes);
        return None;
    };
    let settings = Settings::default().cache_dir(PathBuf::new());
    let device = OpenClDevice::open(first, None, Arc::new(settings.program_cache())).unwrap().in_pieces(bytes);
    Some(Machine::from_opencl(vec![device], &settings).unwrap())
}

/// A piece size below the size of an element is raised to one element.
#[test]
fn pieces_of_one_element() {
    let Some(machine) = in_pieces(4) else { return };
    let (a, mut back) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [0.0; 6]);
    let there = machine.upload(MatRef::row_major(&a, 3, 2).unwrap()).unwrap();
    there.download(MatMut::row_major(&mut back, 3, 2).unwrap()).unwrap();
    assert_eq!(back, a);
}

/// A machine of all OpenCL devices multiplies with pinned and with pageable memory, and is closed and opened again. On two NVIDIA devices, the second
/// context could not be created while memory of the first was still to be unmapped.
#[test]
fn devices_that_have_computed_are_opened_again() {
    const N: usize = 300;
    let in_double = |found: &Found| found.facts.computes(DType::F64);
    let indices: Vec<usize> = list().devices.iter().enumerate().filter_map(|(at, found)| in_double(found).then_some(at)).collect();
    let settings = Settings::default().cache_dir(PathBuf::new());
    for _ in 0..3 {
        let opened = OpenClDevice::open_all(&indices, None, &Arc::new(settings.program_cache()));
        let devices: Vec<_> = opened.into_iter().map(|device| device.unwrap().in_pieces(1 << 16)).collect();
        if devices.is_empty() {
            assert!(std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "no OpenCL device");
            return;
        }
        let machine = Machine::from_opencl(devices, &settings).unwrap();
        let [mut pinned, mut pageable] = [machine.alloc_host::<f64>(N * N).unwrap(), vec![0.0; N * N].into()];
        for memory in [&mut pinned, &mut pageable] {
            let ones = vec![1.0; N * N];
            let a = MatRef::col_major(&ones, N, N).unwrap();
            machine.gemm(Gemm::new(a, a, MatMut::col_major(memory, N, N).unwrap())).unwrap();
            assert!(memory.iter().all(|&element| element == N as f64));
        }
    }
}

/// Rectangles of pinned memory with gaps between their columns, in pieces of several columns and in pieces of a part of a column.
#[test]
fn pinned_memory_is_transferred_in_pieces() {
    for (rows, cols) in [(3, 20), (30, 4), (8, 1)] {
        let Some(machine) = in_pieces(64) else { return };
        let ld = rows + 2;
        let [mut from, mut to] = [(); 2].map(|()| machine.alloc_host::<f64>(ld * cols).unwrap());
        from.iter_mut().zip(0_u32..).for_each(|(element, at)| *element = at.into());
        let there = machine.upload(MatRef::new(&from, rows, cols, ld, Layout::ColMajor).unwrap()).unwrap();
        there.download(MatMut::new(&mut to, rows, cols, ld, Layout::ColMajor).unwrap()).unwrap();
        let expected = |at: usize| if at % ld < rows { from[at] } else { 0.0 };
        assert!((0..ld * cols).all(|at| to[at] == expected(at)), "{rows}×{cols}: {:?}", &to[..]);
    }
}
