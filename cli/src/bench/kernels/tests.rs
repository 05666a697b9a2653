//! Tests of the sums, tables and pictures of times of kernels.

use lapidary::{Diag, Op, Select, Settings, Side, TrsmMode, Uplo};

use super::*;
use crate::residual::Triangle;

fn time(kernel: &'static str, operation: &'static str, queue: usize, [start, end]: [f64; 2]) -> KernelTime {
    let mut time = KernelTime::new(kernel, operation, start, end);
    time.queue = queue;
    time
}

/// A panel with its exchanges, then an update beside a solve in another queue, and after a pause of 4 s another update.
fn lu() -> Profile {
    let times = vec![
        time("getrf_held_rows", "getrf", 0, [1.0, 2.0]),
        time("gemm_mma", "gemm", 0, [2.0, 5.0]),
        time("gemm_mma", "trsm", 1, [3.0, 4.0]),
        time("gemm_mma", "gemm", 0, [9.0, 10.0]),
        time("laswp", "laswp", 0, [10.0, 11.0]),
    ];
    Profile { times, has_tasks: true }
}

#[test]
fn the_time_without_a_kernel_in_any_queue_is_idle() {
    let profile = lu();
    assert_eq!([profile.elapsed(), profile.idle(), profile.share(2.5)], [10.0, 4.0, 0.25]);
    // a long kernel in one queue covers a pause between kernels of the other queue, whatever ends last
    let times = vec![time("a", "gemm", 0, [0.0, 1.0]), time("b", "gemm", 1, [0.5, 8.0]), time("a", "gemm", 0, [2.0, 3.0])];
    let profile = Profile { times, has_tasks: false };
    assert_eq!([profile.elapsed(), profile.idle()], [8.0, 0.0]);
    let none = Profile { times: Vec::new(), has_tasks: false };
    assert_eq!([none.elapsed(), none.idle(), none.share(0.0)], [0.0; 3]);
}

#[test]
fn kernels_are_summed_by_kernel_and_by_task() {
    let row = |name, task, launches, seconds, median| Row { name, task, launches, seconds, median };
    let kernels = lu().by_kernel();
    assert_eq!(kernels[0], row("gemm_mma", "update", 2, 4.0, 2.0));
    assert!(kernels.len() == 4 && kernels.contains(&row("gemm_mma", "solve", 1, 1.0, 1.0)), "{kernels:?}");
    let tasks = [("panel, exchange", 1, 1.0, 1.0), ("exchange", 1, 1.0, 1.0), ("solve", 1, 1.0, 1.0), ("update", 2, 4.0, 2.0)];
    let tasks = tasks.map(|(name, launches, seconds, median)| row(name, "", launches, seconds, median));
    assert_eq!(lu().by_task(), tasks);
    let plain = Profile { has_tasks: false, ..lu() };
    assert_eq!((plain.by_task(), &plain.by_kernel()[0]), (vec![], &row("gemm_mma", "", 3, 5.0, 1.0)));
}

#[test]
fn the_table_and_the_document_have_the_same_numbers() {
    let words = |line: &String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    let table: Vec<String> = lu().table(8.0).iter().map(words).collect();
    let update = "4000.0000 2000000.00 40.0 %";
    let lines = [&format!("gemm_mma update 2 {update}"), &format!("update 2 {update}"), "no kernel 4000.0000 40.0 %"];
    assert!(lines.iter().all(|line| table.iter().any(|row| row == line)), "{table:#?}");
    assert_eq!(table[table.len() - 2..], ["first start to end 10000.0000 100.0 %", "without records 8000.0000 80.0 %"]);
    let document = lu().to_json();
    assert_eq!([&document["elapsed_seconds"], &document["idle_seconds"]], [10.0, 4.0]);
    let first = json!({
        "name": "gemm_mma", "task": "update", "launches": 2, "total_seconds": 4.0, "median_seconds": 2.0, "share": 0.4,
    });
    assert_eq!((&document["kernels"][0], &document["tasks"][3]["total_seconds"]), (&first, &json!(4.0)));
}

/// In the picture, the legend names the tasks that occur, and each kernel is a bar in the colour of its task.
#[test]
fn pictures_show_tasks_by_colour() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.svg");
    crate::trace::save_kernels(&path, "LU", "test:0", &lu()).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let has = |word: &str| text.lines().any(|line| line.trim() == word);
    assert!(["LU", "test:0 EXEC", "test:0 EXEC 1", "panel, exchange", "solve", "update"].iter().all(|word| has(word)), "{text}");
    assert!(!has("panel"), "{text}");
    // a bar for each kernel, and one in the legend
    let bars = |color: &str| text.lines().filter(|line| line.starts_with("<rect") && line.contains(color)).count();
    assert_eq!(["#C85000", "#3C8C3C", "#963C82", "#B49600"].map(bars), [2, 2, 2, 3], "{text}");
    let path = folder.path().join("t.json");
    crate::trace::save_kernels(&path, "LU", "test:0", &lu()).unwrap();
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|event| (&event["name"], &event["cat"]) == (&json!("gemm_mma"), &json!("solve"))), "{document}");
    let text = stacked("LU", &[(64, &lu()), (128, &lu())]).unwrap();
    assert!(["64", "128", "10.000 s", "update", "no kernel"].iter().all(|word| text.lines().any(|line| line.trim() == *word)));
}

#[test]
fn a_call_on_a_device_with_times_is_profiled() {
    let Some(device) = lapidary::opencl::list().devices.iter().position(|found| found.facts.computes(lapidary::DType::F64)) else {
        assert!(std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "no OpenCL device");
        return;
    };
    let settings = Settings::default().kernel_times(true).cache_dir("");
    let machine = Machine::with_settings(&format!("opencl:{device}").parse::<Select>().unwrap(), &settings).unwrap();
    let a = Triangle { side: Side::Left, uplo: Uplo::Lower, op: Op::NoTrans, diag: Diag::NonUnit };
    let n = 100;
    let shape = Shape { routine: Routine::Getrf, m: n, n, k: n, nrhs: 1, op_b: Op::NoTrans, a, mode: TrsmMode::default() };
    let once = profile::<f64>(shape, 1, &machine, Placement::Resident).unwrap();
    assert!(once.idle() < once.elapsed() && once.elapsed() > 0.0);
    assert_eq!(once.groups(), TASKS);
    assert!(["panel", "exchange", "solve", "update"].iter().all(|task| once.seconds(task) > 0.0), "{once:?}");
    // only the kernels of one run are counted
    let mut problem = Problem::<f64>::new(shape, 1, &machine, Placement::Resident).unwrap();
    machine.take_kernel_times().unwrap();
    problem.ours().unwrap();
    assert_eq!(machine.take_kernel_times().unwrap()[0].len(), once.times().len());
}
