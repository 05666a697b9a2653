//! Tests of transfers in pieces, with the first OpenCL device in double precision.
//!
//! If there is no such device, a test prints a message and passes, unless `LAPIDARY_REQUIRE_OPENCL` is set.
#![cfg(feature = "opencl")]

use std::path::PathBuf;
use std::sync::Arc;

use lapidary::opencl::{OpenClDevice, list};
use lapidary::{DType, Layout, Machine, MatMut, MatRef, Settings};

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
