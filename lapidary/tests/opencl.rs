//! Tests of the OpenCL devices in configurations that `suite.rs` does not cover: several devices, devices beside the CPU, products
//! through local memory, memory limits, and devices shared with an application.
//!
//! If there is no OpenCL driver, a test prints a message and passes, unless `LAPIDARY_REQUIRE_OPENCL` is set. `cargo xtask test`
//! sets `LAPIDARY_REQUIRE_OPENCL`.
#![cfg(feature = "opencl")]

#[path = "support/agree.rs"]
mod agree;
#[path = "support/exchanges.rs"]
mod exchanges;
#[path = "support/factors.rs"]
mod factors;
#[path = "support/grade.rs"]
mod grade;
#[path = "support/graded.rs"]
mod graded;
#[path = "support/lookahead.rs"]
mod lookahead;
#[path = "support/resident.rs"]
mod resident;
#[path = "support/tall.rs"]
mod tall;

use std::path::PathBuf;

use agree::{agree, agree_in};
use exchanges::{endless_exchanges, many_exchanges};
use factors::solves_with_kept_factors;
use grade::{grade, grade_some};
use graded::Graded;
use lapidary::opencl::{Found, OpenClDevice, cl3, list};
use lapidary::planning::{Place, Resources};
use lapidary::{DType, ErrorKind, Gemm, Layout, Machine, MatMut, MatRef, Queue, Settings, backend::Device};
use lapidary_conformance::Scope;
use lapidary_conformance::properties::agreement::Closeness;
use lookahead::panels_by_entries;
use resident::Resident;
use tall::{nan_pivot, panel, panels, subnormal_pivot, ties};

/// Settings without a program cache, since PoCL would compile each kernel a second time to return its binary.
fn settings() -> Settings {
    Settings::default().cache_dir(PathBuf::new())
}

/// Settings with a memory limit. A few tiles or a narrow panel of a test matrix fit into the memory limit, but a whole matrix does
/// not.
fn limited(bytes: usize) -> Settings {
    settings().memory_limit(bytes)
}

/// Returns the indices of the first N devices that meet a condition. Returns `None` if fewer than N devices meet the condition.
fn devices<const N: usize>(what: &str, condition: impl Fn(&Found) -> bool) -> Option<[usize; N]> {
    let listing = list();
    let found: Vec<usize> = (0..listing.devices.len()).filter(|&index| condition(&listing.devices[index])).collect();
    let first = found.first_chunk().copied();
    if first.is_none() {
        let missing = format!("{N} OpenCL devices {what} are needed, there are {}: {:?}", found.len(), listing.notes);
        assert!(std::env::var_os("LAPIDARY_REQUIRE_OPENCL").is_none(), "{missing}");
        eprintln!("not run: {missing}");
    }
    first
}

fn with_f64<const N: usize>() -> Option<[usize; N]> {
    devices("with double precision", |found| found.facts.computes(DType::F64))
}

/// A scope with very few cases, for kernels that run slowly on a CPU.
fn few() -> Scope {
    Scope { blocks: vec![16, 32], min: 0, max: 70, cases: 10, large: vec![130], elements: 1 << 16, seed: 12 }
}

/// Opens one machine of the devices `opencl:i` with these indices.
fn open(indices: &[usize], settings: &Settings) -> Graded {
    let indices: Vec<String> = indices.iter().map(ToString::to_string).collect();
    Graded::open(&format!("opencl:{}", indices.join(",")), settings)
}

#[test]
fn tall_and_wide_panels() {
    if let Some(one) = with_f64::<1>() {
        panels::<f32>(&open(&one, &settings()));
    }
}

#[test]
fn two_devices() {
    if let Some(two) = with_f64::<2>() {
        grade::<f64>(&open(&two, &settings()), &few());
        grade::<f32>(&open(&two, &limited(96 << 10)), &few());
    }
}

#[test]
fn out_of_core() {
    if let Some(one) = with_f64::<1>() {
        grade::<f64>(&open(&one, &limited(128 << 10)), &few());
    }
}

#[test]
fn beside_the_cpu() {
    if let Some([first]) = with_f64() {
        grade::<f64>(&Graded::open(&format!("cpu+opencl:{first}"), &settings()), &few());
    }
}

#[test]
fn transfers_in_many_pieces() {
    if let Some([first]) = with_f64() {
        let pieces = |settings: &Settings, bytes: usize| {
            let cache = std::sync::Arc::new(settings.program_cache());
            let device = OpenClDevice::open(first, settings.memory_limit, cache).unwrap().in_pieces(bytes);
            Graded("pieces".to_owned(), Machine::from_opencl(vec![device], settings).unwrap())
        };
        let limited = pieces(&limited(128 << 10), 1 << 10);
        grade::<f64>(&limited, &few());
        grade::<f32>(&limited, &few());
        grade::<f32>(&Resident::new(pieces(&settings(), 1 << 10)), &few());
        // pieces of 128 bytes: pivots are transferred in several pieces
        grade::<f32>(&Resident::new(pieces(&settings(), 128)), &few());
    }
}

/// If the size of a piece exceeds the largest buffer of the device, no memory can be pinned, and ordinary host memory is used as
/// staging memory.
#[test]
fn transfers_without_pinned_memory() {
    if let Some([first]) = with_f64() {
        let (settings, most) = (limited(128 << 10), list().devices[first].facts.limits.buffer);
        let cache = std::sync::Arc::new(settings.program_cache());
        let device = OpenClDevice::open(first, settings.memory_limit, cache).unwrap().in_pieces(most + (1 << 20));
        let plain = Graded("plain".to_owned(), Machine::from_opencl(vec![device], &settings).unwrap());
        grade::<f64>(&plain, &few());
    }
}

/// The OpenCL driver refuses memory at one of the first requests. All calls complete with the right results although the driver
/// refuses memory.
#[test]
fn a_driver_that_refuses_memory() {
    const N: usize = 150;
    let Some([first]) = with_f64() else { return };
    let settings = limited(256 << 10);
    let integers = |seed: usize| (0..N * N).map(move |i| ((i * 7 + seed) % 11) as f64 - 5.0).collect::<Vec<_>>();
    let (a, b) = (integers(1), integers(2));
    let view = |data| MatRef::col_major(data, N, N).unwrap();
    let compute = |machine: &Machine| {
        let (mut c, mut lu) = (vec![7.0; N * N], a.clone());
        (0..N).for_each(|i| lu[i + i * N] += 100.0);
        machine.gemm(Gemm::new(view(&a), view(&b), MatMut::col_major(&mut c, N, N).unwrap())).unwrap();
        let _ = machine.getrf(MatMut::col_major(&mut lu, N, N).unwrap()).unwrap();
        (c, lu)
    };
    let (c, lu) = compute(&Machine::open(&"cpu".parse().unwrap()).unwrap());
    for request in 0..20 {
        let cache = std::sync::Arc::new(settings.program_cache());
        let device = OpenClDevice::open(first, settings.memory_limit, cache).unwrap().out_of_memory_at(request);
        let machine = Machine::from_opencl(vec![device], &settings).unwrap();
        let (computed, factors) = compute(&machine);
        assert!(computed == c, "request {request}");
        // rows of a diagonally dominant matrix are not exchanged, so the factors differ only by rounding
        assert!(factors.iter().zip(&lu).all(|(x, y)| (x - y).abs() < 1e-9), "request {request}");
    }
    let cache = std::sync::Arc::new(settings.program_cache());
    let device = OpenClDevice::open(first, settings.memory_limit, cache).unwrap().out_of_memory_at(0);
    let machine = Machine::from_opencl(vec![device], &settings).unwrap();
    assert_eq!(*machine.alloc_host::<f64>(3).unwrap(), [0.0; 3], "plain memory serves where none is pinned");
}

/// Opens the device `opencl:index` with kernels that use local memory. `entries` precede the entries of the database.
fn preferring(index: usize, entries: &str) -> Graded {
    let (settings, cache) = (settings(), std::sync::Arc::new(settings().program_cache()));
    let device = OpenClDevice::open(index, None, cache).unwrap().with_tiles().unwrap();
    device.prefer_kernels(entries).unwrap().unwrap();
    Graded(entries.to_owned(), Machine::from_opencl(vec![device], &settings).unwrap())
}

#[test]
fn products_through_local_memory() {
    if let Some([first]) = with_f64() {
        let tiled = preferring(first, "solve items=16");
        grade::<f64>(&tiled, &few());
        grade::<f32>(&tiled, &few());
        many_exchanges::<f32>(&tiled);
        ["exchange items=512", "exchange items=1024"].iter().for_each(|large| many_exchanges::<f64>(&preferring(first, large)));
        let resident = Resident::new(tiled);
        grade::<f64>(&resident, &few());
        panels::<f64>(&resident);
        panels::<f32>(&resident);
        // the test matrices are so narrow that many of them have a single column
        let narrow = Scope { blocks: vec![1, 2], min: 0, max: 5, cases: 40, large: vec![9], ..few() };
        grade::<f64>(&resident.with_columns_on_host(), &narrow);
    }
}

#[test]
fn panels_column_by_column_by_strips_and_by_held_rows() {
    let Some([first]) = with_f64() else { return };
    for strips in ["stop strips", "strips items=4", "held_rows items=32", "held_rows items=64", "held_rows rows>=20 items=64"] {
        let resident = Resident::new(preferring(first, strips));
        grade_some::<f64>(&resident, &few(), "::getrf::");
        grade_some::<f32>(&resident, &few(), "::program::panels");
        // work-groups of 32 work-items hold one, two or four rows each: in one work-group, and on a GPU in eight that wait for one another
        for (m, n) in [(50, 40), (100, 40), (500, 70), (1000, 70)] {
            panel::<f64>(&resident, m, n);
            ties::<f64>(&resident, m, n);
            panel::<f32>(&resident, m, n);
        }
        nan_pivot::<f32>(&resident);
        subnormal_pivot(&resident);
    }
}

/// A repeated call of the same shape compiles no kernel and looks up no program on disk.
#[test]
fn a_repeated_call_asks_for_no_program() {
    let Some(one) = with_f64::<1>() else { return };
    let folder = std::env::temp_dir().join(format!("lapidary-repeated-{}", std::process::id()));
    let Graded(_, machine) = open(&one, &settings().cache_dir(folder.clone()));
    let (a, mut counts) = (vec![1.0; 150 * 150], Vec::new());
    for _ in 0..3 {
        let mut c = a.clone();
        let view = MatRef::col_major(&a, 150, 150).unwrap();
        machine.gemm(Gemm::new(view, view, MatMut::col_major(&mut c, 150, 150).unwrap())).unwrap();
        let _ = machine.getrf(MatMut::col_major(&mut c, 150, 150).unwrap()).unwrap();
        counts.push(machine.cache_counts());
    }
    let _ = std::fs::remove_dir_all(folder);
    assert!(counts[0].misses > 0 && counts[1..] == [counts[0]; 2], "{counts:?}");
}

/// LU of a resident matrix on a device with two queues of kernels: one queue factors panels while the other queue updates the
/// rest of the matrix.
#[test]
fn panels_are_factored_beside_updates() {
    let Some(one) = with_f64::<1>() else { return };
    let by_panels = settings().nb(24);
    let Graded(name, machine) = open(&one, &by_panels);
    let resident = Resident::new(Graded(name, machine.clone().traced()));
    grade_some::<f64>(&resident, &few(), "::getrf::");
    let events = machine.take_trace();
    let in_queue = |number| events.iter().filter(|event| event.lane.number == number).count();
    assert!(in_queue(0) > 0 && in_queue(1) > 0, "{} and {} kernels in the two queues", in_queue(0), in_queue(1));
    assert!(events.iter().all(|event| event.lane.queue == Queue::Exec), "panels are transferred");
}

#[test]
fn entries_of_a_user_choose_panels_beside_updates() {
    if let Some(one) = with_f64::<1>() {
        panels_by_entries(|folder| open(&one, &settings().kernels_dir(folder)), &few());
    }
}

/// Asserts that one device and a machine of several devices compute the same results, and that every backend of the machine took
/// part.
fn agree_and_share(one: &Graded, several: Graded, scope: &Scope) {
    let several = Graded(several.0, several.1.traced());
    agree::<f64>(one, &several, Closeness::Bounds, scope);
    agree::<f32>(one, &several, Closeness::Bounds, scope);
    let events = several.1.take_trace();
    // On a computer with many cores there may be more devices than a call of the scope has tiles, so not every device takes part.
    let kind = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
    let idle: Vec<String> =
        several.1.devices().map(|d| kind(&d.name)).filter(|name| events.iter().all(|e| kind(&e.device) != *name)).collect();
    let devices_used = several.1.devices().filter(|d| events.iter().any(|e| e.device == d.name)).count();
    assert!(idle.is_empty() && devices_used > 1, "{idle:?} did nothing, {devices_used} devices did something");
}

#[test]
fn one_device_and_several_agree() {
    if let Some(two) = with_f64::<2>() {
        agree_and_share(&open(&two[..1], &settings()), open(&two, &limited(96 << 10)), &few());
    }
}

#[test]
fn one_device_and_the_cpu_beside_it_agree() {
    let Some(one @ [first]) = with_f64() else { return };
    let one = open(&one, &settings());
    agree_and_share(&one, Graded::open(&format!("opencl:{first}+cpu"), &limited(96 << 10)), &few());
    let planned = Scope { min: 210, max: 230, cases: 3, ..few() };
    agree_and_share(&one, Graded::open(&format!("cpu+opencl:{first}"), &limited(512 << 10)), &planned);
}

/// One device and two devices of the same model compute the same bits, if both machines use the same tiles, and in LU the same panels.
#[test]
fn the_same_tiles_on_devices_that_are_alike_give_the_same_bits() {
    const LIMIT: usize = 24 << 10;
    const LIMIT_OF_LU: usize = 1 << 20;
    let Some(two) = with_f64::<2>() else { return };
    let found = list().devices;
    let [one, other] = two.map(|index| &found[index].facts.identity.model);
    if one != other {
        return eprintln!("not run: {one} and {other} are not alike");
    }
    let scope = Scope { min: 64, ..few() };
    for (element, n) in [(4, scope.min), (8, scope.min), (4, 2 * scope.max), (8, 2 * scope.max)] {
        let tiles = |devices| {
            let resources = Resources::alike(devices, Some(LIMIT), element);
            (resources.gemm(n, n, n), resources.trsm(n, n))
        };
        assert_eq!(tiles(1), tiles(2), "the tiles are not the same");
        let place = |devices| Resources::alike(devices, Some(LIMIT_OF_LU), element).getrf(n, n).place;
        assert_eq!([place(1), place(2)], [Place::Held { loads: true }, Place::Distributed { shares: vec![1, 1], group_length: 1 }]);
    }
    let is_lu = |name: &str| name.starts_with("getrf") || name == "solve";
    let machines = |settings: Settings| [&two[..1], &two].map(|indices| open(indices, &settings));
    let [one, two_devices] = machines(limited(LIMIT));
    agree_in::<f64>(&one, &two_devices, Closeness::Bits, &scope, |name| !is_lu(name));
    agree_in::<f32>(&one, &two_devices, Closeness::Bits, &scope, |name| !is_lu(name));
    let [one, two_devices] = machines(limited(LIMIT_OF_LU).nb(16));
    agree_in::<f64>(&one, &two_devices, Closeness::Bits, &scope, |name| name.starts_with("getrf"));
    agree_in::<f32>(&one, &two_devices, Closeness::Bits, &scope, |name| name.starts_with("getrf"));
}

#[test]
fn a_device_without_double_precision_refuses_it_and_computes_in_single() {
    if let Some([first]) = devices("without double precision", |found| !found.facts.computes(DType::F64)) {
        let graded = open(&[first], &settings());
        let (a, mut c) = ([1.0; 4], [7.0; 4]);
        let view = || MatRef::col_major(&a, 2, 2).unwrap();
        let error = graded.1.gemm(Gemm::new(view(), view(), MatMut::col_major(&mut c, 2, 2).unwrap())).unwrap_err();
        assert_eq!((error.kind(), c), (ErrorKind::Unsupported, [7.0; 4]));
        assert!(error.to_string().contains("f32") && error.to_string().contains("cpu"), "{error}");
        panels::<f32>(&graded);
        endless_exchanges::<f32>(&graded);
    }
}

/// The driver transfers rectangles of pinned memory and does not change the elements between the columns of a rectangle.
#[test]
fn pinned_memory_gives_the_same_result_and_its_gaps_stay() {
    const N: usize = 150;
    const LD: usize = 163;
    let Some(one) = with_f64::<1>() else { return };
    // tiles are smaller than the matrices, so some rectangles begin inside a matrix
    let settings = limited(512 << 10);
    let cache = std::sync::Arc::new(settings.program_cache());
    let device = OpenClDevice::open(one[0], settings.memory_limit, cache).unwrap().in_pieces(1 << 10);
    let machine = Machine::from_opencl(vec![device], &settings).unwrap();
    let integers = |seed: usize| (0..N * LD).map(move |i| ((i * 7 + seed) % 11) as f64 - 5.0);
    let pinned = |seed| {
        let mut memory = machine.alloc_host::<f64>(N * LD).unwrap();
        assert!(memory.iter().all(|&x| x == 0.0));
        memory.iter_mut().zip(integers(seed)).for_each(|(to, x)| *to = x);
        memory
    };
    fn view(data: &[f64]) -> MatRef<'_, f64> {
        MatRef::new(data, N, N, LD, Layout::ColMajor).unwrap()
    }
    let (a, b, mut c) = (pinned(1), pinned(2), pinned(3));
    machine.gemm(Gemm::new(view(&a), view(&b), MatMut::new(&mut c, N, N, LD, Layout::ColMajor).unwrap())).unwrap();
    let [a, b, mut expected] = [1, 2, 3].map(|seed| integers(seed).collect::<Vec<_>>());
    let c_host = MatMut::new(&mut expected, N, N, LD, Layout::ColMajor).unwrap();
    Machine::open(&"cpu".parse().unwrap()).unwrap().gemm(Gemm::new(view(&a), view(&b), c_host)).unwrap();
    assert!(*c == *expected);
    // a row-major rectangle is staged in memory that Lapidary allocates
    let (mut plain, mut lu) = (a.clone(), pinned(1));
    for data in [&mut plain, &mut *lu] {
        (0..N).for_each(|i| data[i + i * LD] += 100.0);
        let _ = machine.getrf(MatMut::new(data, N, N, LD, Layout::RowMajor).unwrap()).unwrap();
    }
    assert!(*lu == *plain && plain != a);
}

/// Copies a matrix between two devices in contexts of their own, and between two devices in one context of the application.
#[test]
fn matrices_go_from_device_to_device() {
    const N: usize = 70;
    let Some([first, second]) = with_f64() else { return };
    let found = list().devices;
    let each = |index| OpenClDevice::open(index, None, std::sync::Arc::new(settings().program_cache())).unwrap();
    let apart = Machine::from_opencl(vec![each(first), each(second)], &settings()).unwrap();
    let mut machines = vec![(false, apart), (found[first].facts.is_cpu(), open(&[first, second], &settings()).1)];
    if found[first].platform_name == found[second].platform_name {
        let handles = [first, second].map(|index| found[index].handle());
        let context = cl3::context::create_context(&handles, std::ptr::null(), None, std::ptr::null_mut()).unwrap();
        let (settings, cache) = (settings(), std::sync::Arc::new(settings().program_cache()));
        let devices = [first, second].map(|index| {
            // SAFETY: the context contains the device; `OpenClDevice` retains the context and the queue.
            unsafe {
                let queue = cl3::command_queue::create_command_queue(context, found[index].handle(), 0).unwrap();
                let device = OpenClDevice::from_parts(context, index, queue, None, cache.clone()).unwrap();
                cl3::command_queue::release_command_queue(queue).unwrap();
                device
            }
        });
        // SAFETY: the context was created above, and the devices retain it.
        unsafe { cl3::context::release_context(context).unwrap() };
        let [to, from] = [0, 1].map(|i: usize| devices[i].alloc(8).unwrap());
        let peers = devices[0].copy_from(&devices[1], &from, &to, 8).is_some();
        machines.push((peers, Machine::from_opencl(devices.into(), &settings).unwrap()));
        assert!(peers || !found[first].facts.is_cpu());
    }
    let a: Vec<f64> = (0..N * N).map(|i| (i % 19) as f64 - 9.0).collect();
    let (host, zeros) = (MatRef::col_major(&a, N, N).unwrap(), vec![0.0; N * N]);
    for (peers, machine) in &machines {
        let there = machine.upload_to(1, host).unwrap();
        let mut square = machine.upload_to(1, MatRef::col_major(&zeros, N, N).unwrap()).unwrap();
        machine.gemm(Gemm::new(there.view(), there.view(), square.view_mut())).unwrap();
        let mut here = machine.upload(MatRef::col_major(&zeros, N, N).unwrap()).unwrap();
        here.copy_from(&square).unwrap();
        let (mut copied, mut expected) = (zeros.clone(), zeros.clone());
        here.download(MatMut::col_major(&mut copied, N, N).unwrap()).unwrap();
        square.download(MatMut::col_major(&mut expected, N, N).unwrap()).unwrap();
        assert!(copied == expected && copied != zeros, "peers: {peers}");
        let mut small = machine.upload(MatRef::col_major(&zeros, 1, N).unwrap()).unwrap();
        assert_eq!(small.copy_from(&there).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert_eq!(machine.upload_to(2, host).unwrap_err().kind(), ErrorKind::NoSuchDevice);
    }
}

#[test]
fn devices_keep_the_factors_they_have_computed() {
    let Some(two) = with_f64::<2>() else { return };
    solves_with_kept_factors::<f32>(open(&two[..1], &settings()).1);
    solves_with_kept_factors::<f64>(open(&two, &settings().nb(64)).1);
}

/// A copy into a buffer of the application waits for the commands that the application has enqueued for this buffer. The elements
/// come from another matrix on the same device, or through host memory from a device in another context.
#[test]
fn copies_into_a_wrapped_matrix_wait_for_the_application() {
    const COUNT: usize = 64;
    let Some([first, second]) = with_f64() else { return };
    let handle = list().devices[first].handle();
    let (settings, cache) = (settings(), std::sync::Arc::new(settings().program_cache()));
    // SAFETY: each handle is valid and is released once, and `application` lives until the command that reads it has completed.
    unsafe {
        let context = cl3::context::create_context(&[handle], std::ptr::null(), None, std::ptr::null_mut()).unwrap();
        let queue = cl3::command_queue::create_command_queue(context, handle, 0).unwrap();
        let shared = OpenClDevice::from_parts(context, first, queue, None, cache.clone()).unwrap();
        let apart = OpenClDevice::open(second, None, cache).unwrap();
        let machine = Machine::from_opencl(vec![shared, apart], &settings).unwrap();
        let (bytes, flags) = (COUNT * size_of::<f64>(), cl3::memory::CL_MEM_READ_WRITE);
        let buffer = cl3::memory::create_buffer(context, flags, bytes, std::ptr::null_mut()).unwrap();
        let mut wrapped = machine.wrap_opencl::<f64>(buffer, COUNT, 1).unwrap();
        for source in [0, 1] {
            let (application, ours, mut result) = ([7.0_f64; COUNT], [1.5 + source as f64; COUNT], [0.0; COUNT]);
            let ours = machine.upload_to(source, MatRef::col_major(&ours, COUNT, 1).unwrap()).unwrap();
            let held = cl3::event::create_user_event(context).unwrap();
            let from = application.as_ptr().cast();
            let event = cl3::command_queue::enqueue_write_buffer(queue, buffer, 0, 0, bytes, from, 1, &held).unwrap();
            cl3::command_queue::flush(queue).unwrap();
            let held = held.expose_provenance();
            let release = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_millis(300));
                cl3::event::set_user_event_status(std::ptr::with_exposed_provenance_mut(held), 0).unwrap();
            });
            wrapped.copy_from(&ours).unwrap();
            release.join().unwrap();
            wrapped.download(MatMut::col_major(&mut result, COUNT, 1).unwrap()).unwrap();
            assert_eq!(result, [1.5 + source as f64; COUNT], "from device {source}");
            cl3::event::release_event(event).unwrap();
            cl3::event::release_event(std::ptr::with_exposed_provenance_mut(held)).unwrap();
        }
        drop(wrapped);
        drop(machine);
        cl3::memory::release_mem_object(buffer).unwrap();
        cl3::command_queue::release_command_queue(queue).unwrap();
        cl3::context::release_context(context).unwrap();
    }
}

#[test]
fn a_queue_that_changes_the_order_is_refused() {
    let Some([first]) = with_f64() else { return };
    let (handle, cache) = (list().devices[first].handle(), std::sync::Arc::new(settings().program_cache()));
    let context = cl3::context::create_context(&[handle], std::ptr::null(), None, std::ptr::null_mut()).unwrap();
    // SAFETY: the handles are valid and are released once.
    unsafe {
        let out_of_order = cl3::command_queue::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE;
        let queue = cl3::command_queue::create_command_queue(context, handle, out_of_order).unwrap();
        let error = OpenClDevice::from_parts(context, first, queue, None, cache).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("in-order"), "{error}");
        cl3::command_queue::release_command_queue(queue).unwrap();
        // a queue of the application is not replaced by one that records times
        let queue = cl3::command_queue::create_command_queue(context, handle, 0).unwrap();
        let cache = std::sync::Arc::new(settings().program_cache());
        let error = OpenClDevice::from_parts(context, first, queue, None, cache).unwrap().with_kernel_times().unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("queue of the application"), "{error}");
        cl3::command_queue::release_command_queue(queue).unwrap();
        cl3::context::release_context(context).unwrap();
    }
}

#[test]
fn a_matrix_of_another_machine_is_refused_before_anything_runs() {
    let Some([first]) = with_f64() else { return };
    let (one, other) = (open(&[first], &settings()).1, open(&[first], &settings()).1);
    let a = [1.0; 4];
    let there = one.upload(MatRef::col_major(&a, 2, 2).unwrap()).unwrap();
    let mut here = other.upload(MatRef::col_major(&a, 2, 2).unwrap()).unwrap();
    let error = other.gemm(Gemm::new(there.view(), there.view(), here.view_mut())).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("another machine"), "{error}");
    assert!(!error.to_string().contains("partly written"), "{error}");
    assert!(here.copy_from(&there).unwrap_err().to_string().contains("another machine"));
}
