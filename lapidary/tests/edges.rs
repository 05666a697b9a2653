//! Tests of extreme arguments: singular systems, the largest strides and sizes, and settings of zero. The tests in this file run on
//! the CPU and on the first device of each other backend.

use lapidary::{
    Backend, DType, ErrorKind, Gemm, Getrf, Getrs, Laswp, Layout, Machine, MatMut, MatRef, Outputs, Select, Settings, Trsm, Uplo,
};

/// Opens the CPU without a memory limit (in place), the CPU with a memory limit (on copies), and the first device of every other
/// backend.
fn machines() -> Vec<Machine> {
    let limited = Settings::default().memory_limit(4 << 20);
    let cpu: Select = "cpu:0".parse().unwrap();
    let mut all = vec![Machine::open(&cpu).unwrap(), Machine::with_settings(&cpu, &limited).unwrap()];
    let others = Backend::of_this_build().filter(|&kind| kind != Backend::Cpu).map(|kind| Select::of(kind, 0));
    for select in others {
        match Machine::open(&select) {
            Ok(machine) if machine.devices().all(|device| device.computes(DType::F64)) => all.push(machine),
            Ok(_) => eprintln!("not run on {select}: it has no double precision"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSuchDevice, "{error}");
                let required = ["LAPIDARY_REQUIRE_OPENCL", "LAPIDARY_REQUIRE_WGPU"].map(std::env::var_os);
                assert!(required == [None, None], "{error}");
                eprintln!("not run on {select}: {error}");
            }
        }
    }
    all
}

fn name(machine: &Machine) -> &str {
    &machine.devices().next().unwrap().name
}

/// The third column is the sum of the first two columns, so the third pivot is exactly zero.
const SINGULAR: [f64; 9] = [1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 1.0, 2.0, 0.0];

fn square(data: &[f64]) -> MatRef<'_, f64> {
    MatRef::col_major(data, 3, 3).unwrap()
}

#[test]
fn a_singular_system_is_an_error_that_names_the_pivot_and_leaves_b() {
    for machine in machines() {
        let (mut a, mut b) = (SINGULAR, [1.0, 2.0, 3.0]);
        let error = machine.gesv(MatMut::col_major(&mut a, 3, 3).unwrap(), MatMut::col_major(&mut b, 3, 1).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Singular { pivot: 3 }, "{}: {error}", name(&machine));
        assert_eq!(error.outputs(), Some(Outputs::FactorsInA));
        assert_eq!((a, b), (SINGULAR, [1.0, 2.0, 3.0]), "the factors of this matrix are the matrix");

        let lu = machine.getrf(MatMut::col_major(&mut a, 3, 3).unwrap()).unwrap();
        let error = lu.solve(MatMut::col_major(&mut b, 3, 1).unwrap()).unwrap_err();
        assert_eq!((lu.info(), error.kind(), error.outputs()), (3, ErrorKind::Singular { pivot: 3 }, Some(Outputs::Unchanged)));
    }
}

#[test]
fn factors_with_a_zero_pivot_solve_nothing_wherever_they_lie() {
    for machine in machines() {
        let (mut a, mut ipiv, mut b) = (SINGULAR, [0; 3], [1.0, 2.0, 3.0]);
        let info = machine.getrf_into(Getrf::new(MatMut::col_major(&mut a, 3, 3).unwrap(), &mut ipiv)).unwrap();
        assert_eq!((info.pivot(), info.check().unwrap_err().kind()), (Some(3), ErrorKind::Singular { pivot: 3 }));
        let there = machine.upload(square(&a)).unwrap();
        for lu in [square(&a), there.view()] {
            let error = machine.getrs(Getrs::new(lu, &ipiv, MatMut::col_major(&mut b, 3, 1).unwrap())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Singular { pivot: 3 }, "{}: {error}", name(&machine));
            assert_eq!((error.operation(), error.outputs(), b), ("getrs", Some(Outputs::Unchanged), [1.0, 2.0, 3.0]));
        }
        // with a third pivot that is not zero, the factors solve the system
        a[8] = 4.0;
        let there = machine.upload(square(&a)).unwrap();
        for lu in [square(&a), there.view()] {
            let mut b = [3.0, 4.0, 4.0];
            machine.getrs(Getrs::new(lu, &ipiv, MatMut::col_major(&mut b, 3, 1).unwrap())).unwrap();
            assert_eq!(b, [2.0, 1.0, 1.0], "{}", name(&machine));
        }
    }
}

#[test]
fn the_condition_of_factors_with_an_infinite_pivot_is_beyond_the_precision_wherever_they_lie() {
    for machine in machines() {
        let a = [1.0, 0.0, 0.0, 0.0, f64::INFINITY, 0.0, 0.0, 0.0, 1.0];
        let mut there = machine.upload(square(&a)).unwrap();
        assert_eq!(machine.getrf(there.view_mut()).unwrap().rcond(1.0).unwrap(), 0.0, "{}", name(&machine));
    }
}

/// The leading dimension of a matrix with a single column may be any number.
#[test]
fn a_single_column_takes_the_largest_stride() {
    const N: usize = 600;
    fn view(data: &[f64]) -> MatRef<'_, f64> {
        MatRef::new(data, N, 1, usize::MAX, Layout::ColMajor).unwrap()
    }
    fn view_mut(data: &mut [f64]) -> MatMut<'_, f64> {
        MatMut::new(data, N, 1, usize::MAX, Layout::ColMajor).unwrap()
    }
    let mut a = vec![0.0; N * N];
    (0..N).for_each(|i| a[i + i * N] = 2.0);
    let a = MatRef::col_major(&a, N, N).unwrap();
    for machine in machines() {
        let (x, mut y) = (vec![1.0; N], vec![7.0; N]);
        machine.gemm(Gemm::new(a, view(&x), view_mut(&mut y))).unwrap();
        assert!(y.iter().all(|&y| y == 2.0), "gemm on {}: {y:?}", name(&machine));
        machine.gemm(Gemm::new(a, view(&x).t(), view_mut(&mut y)).trans_b().beta(1.0)).unwrap();
        assert!(y.iter().all(|&y| y == 4.0), "gemm on {}: {y:?}", name(&machine));
        machine.trsm(Trsm::new(a, view_mut(&mut y)).uplo(Uplo::Upper)).unwrap();
        assert!(y.iter().all(|&y| y == 2.0), "trsm on {}: {y:?}", name(&machine));
        let identity: Vec<i32> = (0..N as i32).collect();
        machine.getrs(Getrs::new(a, &identity, view_mut(&mut y))).unwrap();
        machine.laswp(Laswp::new(view_mut(&mut y), &identity)).unwrap();
        assert!(y.iter().all(|&y| y == 1.0), "getrs on {}: {y:?}", name(&machine));
        y[N - 1] = 4.0;
        assert_eq!(machine.getrf(view_mut(&mut y)).unwrap().ipiv(), [N as i32 - 1]);
        assert!(y[0] == 4.0 && y[1..].iter().all(|&y| y == 0.25), "getrf on {}: {y:?}", name(&machine));
        let there = machine.upload(view(&x)).unwrap();
        there.download(view_mut(&mut y)).unwrap();
        assert_eq!(x, y);
    }
}

#[test]
fn of_no_rows_there_may_be_any_number_of_columns() {
    const MANY: usize = usize::MAX;
    let empty = || MatRef::<f64>::col_major(&[], 0, MANY).unwrap();
    for machine in machines() {
        let mut there = machine.upload(empty()).unwrap();
        let other = machine.upload(empty()).unwrap();
        there.copy_from(&other).unwrap();
        there.download(MatMut::col_major(&mut [], 0, MANY).unwrap()).unwrap();
        machine.gemm(Gemm::new(MatRef::col_major(&[], 0, 0).unwrap(), empty(), there.view_mut())).unwrap();
        assert_eq!(machine.getrf(there.view_mut()).unwrap().info(), 0);
        machine.laswp(Laswp::new(there.view_mut(), &[])).unwrap();
        machine.trsm(Trsm::new(MatRef::col_major(&[], 0, 0).unwrap(), there.view_mut())).unwrap();
        machine.getrs(Getrs::new(MatRef::col_major(&[], 0, 0).unwrap(), &[], there.view_mut())).unwrap();
    }
}

#[test]
fn errors_before_a_run_say_that_outputs_are_as_they_were() {
    let limited =
        |memory_limit| Machine::with_settings(&"cpu:0".parse().unwrap(), &Settings::default().memory_limit(memory_limit)).unwrap();
    let (machine, tight) = (limited(None), limited(Some(16)));
    let a = [1.0; 9];
    let mut c = [7.0; 9];
    let errors = [
        machine.gemm(Gemm::new(square(&a), square(&a), MatMut::col_major(&mut c, 3, 2).unwrap())).unwrap_err(),
        machine.trsm(Trsm::new(square(&a), MatMut::col_major(&mut c, 2, 3).unwrap())).unwrap_err(),
        machine.getrf_into(Getrf::new(MatMut::col_major(&mut c, 3, 3).unwrap(), &mut [0; 2])).unwrap_err(),
        machine.getrs(Getrs::new(square(&a), &[0; 2], MatMut::col_major(&mut c, 3, 3).unwrap())).unwrap_err(),
        machine.laswp(Laswp::new(MatMut::col_major(&mut c, 3, 3).unwrap(), &[9])).unwrap_err(),
        machine.laswp(Laswp::new(MatMut::col_major(&mut c, 3, 3).unwrap(), &[0; 4])).unwrap_err(),
        tight.gemm(Gemm::new(square(&a), square(&a), MatMut::col_major(&mut c, 3, 3).unwrap())).unwrap_err(),
    ];
    for error in &errors {
        assert_eq!(error.outputs(), Some(Outputs::Unchanged), "{error}");
        assert_eq!(error.to_string().matches("outputs").count(), 1, "{error}");
    }
    assert_eq!(c, [7.0; 9]);
    let mut two = [1.0; 6];
    let error = machine.gesv(MatMut::col_major(&mut two, 3, 2).unwrap(), MatMut::col_major(&mut c, 3, 1).unwrap()).unwrap_err();
    assert_eq!(error.outputs(), Some(Outputs::Unchanged), "{error}");
}

#[test]
fn lack_of_host_memory_is_called_the_hosts() {
    let machine = Machine::open(&"cpu:0".parse().unwrap()).unwrap();
    let rows = 1 << 58;
    // SAFETY: no element behind the null pointer is read, since `upload` fails for lack of host memory before it reads an element.
    let endless = unsafe { MatRef::<f64>::from_raw(std::ptr::null(), rows, 1, rows, Layout::ColMajor) }.unwrap();
    for error in [machine.alloc_host::<f64>(rows).unwrap_err(), machine.upload(endless).unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::OutOfHostMemory, "{error}");
        assert!(error.to_string().contains("out of host memory"), "{error}");
    }
}

#[test]
fn settings_of_nothing_are_refused() {
    let no_columns = Settings::default().nb(0);
    let no_memory = Settings::default().memory_limit(0);
    for (nothing, word) in [(no_columns, "nb = 0"), (no_memory, "memory_limit = 0")] {
        for refused in [Machine::with_settings(&"cpu:0".parse().unwrap(), &nothing), Machine::by_definition(&nothing)] {
            let error = refused.unwrap_err();
            assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(word), "{error}");
        }
    }
}

#[test]
fn a_selection_of_no_device_is_read_as_it_is_printed() {
    for none in [Select::cpu([]), Select::cpu(0..0), Select::cpu([0, 1]).repeated(0)] {
        assert_eq!(none.to_string(), "none");
        assert_eq!(none.to_string().parse::<Select>().unwrap(), none);
        let error = Machine::open(&none).unwrap_err();
        assert!(error.kind() == ErrorKind::NoSuchDevice && error.to_string().contains("`none` names no device"), "{error}");
    }
}

#[test]
fn a_selection_made_in_code_is_the_selection_that_its_text_names() {
    let selections = [
        (Select::cpu(..), "cpu"),
        (Select::cpu(0..2), "cpu:0,1"),
        (Select::cpu(vec![3]).and(Select::cpu(&[1_usize, 3][..])), "cpu:3,1"),
        (Select::cpu(1).and(Select::cpu(..)), "cpu"),
        (Select::cpu([]).and(Select::cpu(2)), "cpu:2"),
        (Select::cpu(2).and(Select::all()), "all"),
    ];
    for (select, text) in selections {
        assert_eq!(select.to_string(), text);
        assert_eq!(text.parse::<Select>().unwrap(), select);
    }
}

/// Every build can name every backend. A backend that the build lacks is no such device, whether it is named in code or as text.
#[test]
fn a_backend_that_the_build_lacks_is_no_such_device() {
    let both = Select::opencl(0).and(Select::wgpu([0, 1]));
    assert_eq!(both.to_string(), "opencl:0+wgpu:0,1");
    let here: Vec<Backend> = Backend::of_this_build().collect();
    for kind in [Backend::OpenCl, Backend::Wgpu] {
        if here.contains(&kind) {
            continue;
        }
        for error in [Machine::open(&Select::of(kind, ..)).unwrap_err(), kind.to_string().parse::<Select>().unwrap_err()] {
            let message = format!("no device kind `{kind}` in this build; there is: cpu");
            assert!(error.kind() == ErrorKind::NoSuchDevice && error.to_string().contains(&message), "{error}");
        }
    }
}
