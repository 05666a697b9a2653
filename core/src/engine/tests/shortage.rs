//! Tests with devices that have less memory than they report. The tests check that the result of each run is right, or that the
//! error of the run states correctly whether the outputs were written.

use super::*;

proptest! {
    #[test]
    fn less_memory_than_a_device_says_is_enough_if_one_holds_every_task(
        tasks in prop::collection::vec(task(), 1..12),
        others in prop::collection::vec(0..TIGHT, 0..3),
        spare in 0..TIGHT,
        in_place in any::<bool>(),
    ) {
        let reach = Reach { memory: usize::MAX, in_place: vec![false; 2], flops: 1.0, queues: 1 };
        let least = Schedule::new(plan(&tasks), vec![reach]).unwrap().footprint(0);
        let short = others.iter().copied().chain([least + spare]).map(DigestDevice::with_only);
        let devices = short.chain(in_place.then(|| DigestDevice::new(None))).collect();
        let (result, bits) = dispatch_all(plan(&tasks), devices, with_threads);
        prop_assert!(result.is_ok(), "{:?}", result);
        prop_assert_eq!(bits, in_plan_order(plan(&tasks)));
    }

    #[test]
    fn outputs_are_as_they_were_where_an_error_says_so(
        tasks in prop::collection::vec(task(), 1..12),
        left in prop::collection::vec(0..TIGHT, 1..3),
    ) {
        let devices = left.into_iter().map(DigestDevice::with_only).collect();
        let (result, bits) = dispatch_all(plan(&tasks), devices, with_threads);
        match result {
            Ok(()) => prop_assert_eq!(bits, in_plan_order(plan(&tasks))),
            Err(error) => assert_honest(&error, bits),
        }
    }
}

/// Asserts that the error states whether the outputs were written, and that this statement is true.
fn assert_honest(RunError { error, touched }: &RunError, bits: u64) {
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    let said = error.context().any(|pair| pair == ("outputs", if *touched { "partly written" } else { "as they were" }));
    assert!(said && (*touched || bits == Matrices::new().bits()), "{error}");
    assert_eq!(error.context().filter(|(key, _)| *key == "device").count(), 1, "{error}");
}

/// Whether a command that fails for lack of memory may end the run although the run has another device. The failed command may
/// end the run if it is a store, or if its task had written outputs before. On a device that works in place, every kernel writes
/// outputs.
fn leaves_a_half(error: &Error, tasks: &[TaskCase], memory: Option<usize>) -> bool {
    let (_, command) = error.context().find(|(key, _)| *key == "command").expect("a command failed");
    command.starts_with("ST") || memory.is_none() || tasks.iter().any(|task| task.again)
}

/// Memory limits of the other devices in a run: no other device, one device that copies, or one device that works in place.
const COMPANY: [&[Option<usize>]; 3] = [&[], &[Some(TIGHT)], &[None]];

/// Runs `tasks` on a device whose commands with the indices `short` lack memory, together with each entry of [`COMPANY`].
fn shortage_of(
    (tasks, expected): (&[TaskCase], u64),
    (memory, short): (Option<usize>, Range<usize>),
    how: impl Fn(&Schedule, &Runtimes, &[RawMat]) -> Result<(), RunError>,
) {
    for (company, late) in COMPANY.into_iter().flat_map(|company| [None, Some(3)].map(|late| (company, late))) {
        let device = DigestDevice { short: short.clone(), late: late.map(LateQueues::new), ..DigestDevice::new(memory) };
        let devices = [device].into_iter().chain(company.iter().map(|&memory| DigestDevice::new(memory))).collect();
        match dispatch_all(plan(tasks), devices, &how) {
            (Ok(()), bits) => assert_eq!(bits, expected),
            (Err(error), bits) => {
                assert_honest(&error, bits);
                assert!(company.is_empty() || leaves_a_half(&error.error, tasks, memory), "{error:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn whichever_command_finds_no_memory_tasks_are_done_or_untouched(
        tasks in prop::collection::vec(task(), 1..6),
        copies in any::<bool>(),
        choices in prop::collection::vec(any::<u8>(), 1..64),
    ) {
        let (expected, memory) = (in_plan_order(plan(&tasks)), copies.then_some(3 * TIGHT));
        for command in 0..plan(&tasks).commands().len() {
            for short in [command..command + 1, command..usize::MAX] {
                let one_by_one = |s: &Schedule, d: &Runtimes, b: &[RawMat]| step_by_step(s, d, b, &choices);
                shortage_of((&tasks, expected), (memory, short.clone()), one_by_one);
                shortage_of((&tasks, expected), (memory, short), with_threads);
            }
        }
    }
}

#[test]
fn what_a_device_leaves_is_there_for_another_that_shares_its_memory() {
    let tile = Region { row: 0, col: 0, rows: 3, cols: 3 };
    let tasks = [TaskCase { result: (0, tile), inputs: Vec::new(), scratch: false, bar: false, again: false }];
    let first = DigestDevice { short: 0..1, ..DigestDevice::with_only(8 * 9) };
    let second = DigestDevice { left: Arc::clone(&first.left), ..DigestDevice::new(Some(TIGHT)) };
    let (result, bits) = dispatch_all(plan(&tasks), vec![first, second], |s, d, b| step_by_step(s, d, b, &[0]));
    result.unwrap();
    assert_eq!(bits, in_plan_order(plan(&tasks)));
}

#[test]
fn a_device_without_room_leaves_its_tasks_to_the_others() {
    for left in [[0, 128], [127, 1000], [300, 0]] {
        let runtimes = left.map(|bytes| runtime(DigestDevice::with_only(bytes)));
        let mut a = vec![1.0; 160];
        let bindings = [MatMut::col_major(&mut a, 4, 40).unwrap().raw()];
        let reaches = (0..2).map(|d| reach(d, runtimes[d].facts(), &bindings)).collect();
        let schedule = Schedule::new(ten_tiles(), reaches).unwrap();
        // SAFETY: the matrix is as the plan declares, and only this test accesses it.
        unsafe { run(&LanePool::default(), &[&runtimes[0], &runtimes[1]], &schedule, &bindings, Watch::default()).unwrap() };
        runtimes.iter().for_each(DeviceRuntime::trim);
        let left_of = |runtime: &DeviceRuntime| runtime.device().downcast::<DigestDevice>().unwrap().left.load(Ordering::Relaxed);
        let given_back = runtimes.iter().map(left_of);
        assert!(given_back.eq(left) && a.iter().all(|&x| x != 1.0));
    }
}
