//! Tests of the reports of progress.

use std::sync::{Arc, Mutex};

use super::*;
use crate::engine::{ProgressListener, RunProgress};

#[test]
fn the_reports_rise_from_zero_to_the_operations_of_the_plan() {
    let square = |row| Region { row, col: 0, rows: 4, cols: 4 };
    let case =
        |row, scratch| TaskCase { result: (0, square(row)), inputs: vec![(1, square(row))], scratch, bar: false, again: false };
    // a product of 4×4 matrices has 128 operations, a triangular solve has 64, and the copies and scalings of the tasks have none
    let plan = plan(&[case(0, true), case(4, false), case(8, true)]);
    for devices in [1, 2] {
        let runtimes: Vec<_> = (0..devices).map(|_| runtime(NullDevice::new(Some(1 << 20)))).collect();
        let mut matrices = Matrices::new();
        let bindings = matrices.bindings(plan.matrices()[1].layout);
        let schedule = Schedule::new(plan.clone(), reaches(&runtimes, &bindings)).unwrap();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&reports);
        let listener = ProgressListener::new(move |report: RunProgress| told.lock().unwrap().push(report));
        let borrowed: Vec<_> = runtimes.iter().collect();
        let watch = Watch { trace: None, progress: Some(&listener) };
        // SAFETY: a null device accesses no memory.
        unsafe { run(&LanePool::default(), &borrowed, &schedule, &bindings, watch).unwrap() };
        let reports = reports.lock().unwrap();
        assert!(reports.iter().all(|report| (report.operation, report.plan_flops) == ("random", 320.0)), "{reports:?}");
        let done: Vec<f64> = reports.iter().map(|report| report.done_flops).collect();
        assert_eq!((done.len(), done[0], done[3]), (4, 0.0, 320.0), "{done:?}");
        assert!(done.is_sorted(), "{done:?}");
    }
}
