//! LU of resident matrices in panels, which entries of a user choose.

use std::path::PathBuf;

use lapidary::{Getrf, MatMut, MatRef};
use lapidary_conformance::Scope;

use crate::grade::grade_some;
use crate::graded::Graded;
use crate::resident::Resident;

const N: usize = 130;

/// Factors a resident matrix of order [`N`]. Returns the factors, and the numbers of the kernel queues that ran kernels.
fn factors(Graded(_, machine): &Graded) -> (Vec<f64>, Vec<usize>) {
    let a: Vec<f64> = (0..N * N).map(|i| ((i * i + 3 * i) % 1009) as f64).collect();
    let mut lu = machine.upload(MatRef::col_major(&a, N, N).unwrap()).unwrap();
    let _ = machine.getrf_into(Getrf::new(lu.view_mut(), &mut [0; N])).unwrap();
    let mut result = vec![0.0; N * N];
    lu.download(MatMut::col_major(&mut result, N, N).unwrap()).unwrap();
    let mut queues: Vec<usize> = machine.take_trace().iter().map(|event| event.lane.number).collect();
    queues.sort_unstable();
    queues.dedup();
    (result, queues)
}

/// Tests that entries of a user make LU of a resident matrix work in panels in two queues of kernels. In products beside
/// a panel, few work-groups compute several tiles each, which leaves the bits of the factors as they are. `open` opens a machine of one
/// device with a folder of entries.
pub fn panels_by_entries(open: impl Fn(PathBuf) -> Graded, scope: &Scope) {
    let folder = std::env::temp_dir().join(format!("lapidary-lookahead-{}", std::process::id()));
    let product = "gemm_mma mwg=32 nwg=32 kwg=16 mw=32 nw=16 stages=2 raster=2 split=1 unit=8 guarded=1 ptx=0\nstop gemm";
    let machine = |entries: &str| {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("mine.txt"), format!("[any]\n{product}\n{entries}")).unwrap();
        let Graded(name, machine) = open(folder.clone());
        Graded(name, machine.traced())
    };
    let panels = "lookahead rows=40\nlookahead_panel columns=24\nbeside_panel tiles=";
    let (whole, queues) = factors(&machine(&format!("{panels}0")));
    assert_eq!(queues, [0, 1]);
    let beside = machine(&format!("{panels}1"));
    assert!(factors(&beside) == (whole, queues), "products beside a panel have other bits");
    grade_some::<f64>(&Resident::new(beside), scope, "::getrf::");
    assert_eq!(factors(&machine(&format!("lookahead rows={}", N + 1))).1, [0]);
    let _ = std::fs::remove_dir_all(folder);
}
