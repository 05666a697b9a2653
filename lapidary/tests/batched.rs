//! Tests that compare batches in every storage format with single calls. The machines compute the batches in place, by a plan, or
//! by the definitions of the instructions.

use lapidary::{
    Batch, BatchMut, BatchShape, ErrorKind, Gemm, GemmBatched, Getrf, GetrfBatched, Getrs, GetrsBatched, Layout, Machine, MatMut,
    MatRef, Op, Outputs, Select, Settings,
};

const COUNT: usize = 5;
const SENTINEL: f64 = -77.0;

/// Opens the CPU as one device, two CPU devices, two CPU devices with a memory limit that requires several tasks, and a machine
/// that computes by the definitions of the instructions.
fn machines() -> Vec<(&'static str, Machine)> {
    let within = |memory_limit: Option<usize>| Settings::default().memory_limit(memory_limit);
    let open = |select: &str, limit| Machine::with_settings(&select.parse().unwrap(), &within(limit)).unwrap();
    vec![
        ("cpu", open("cpu", None)),
        ("cpu:0,1", open("cpu:0,1", None)),
        ("cpu:0,1 within 32 KiB", open("cpu:0,1", Some(32 << 10))),
        ("by definition", Machine::by_definition(&within(None)).unwrap()),
    ]
}

/// Returns batch shapes in both layouts: without gaps, with gaps between columns (or rows), with gaps between matrices, with both
/// kinds of gaps, and with interleaved matrices.
fn shapes(rows: usize, cols: usize) -> Vec<BatchShape> {
    let mut shapes = Vec::new();
    for layout in [Layout::ColMajor, Layout::RowMajor] {
        let (line, lines) = if layout == Layout::ColMajor { (rows, cols) } else { (cols, rows) };
        let of = |ld: usize, stride| BatchShape { rows, cols, layout, ld: ld.max(1), stride, count: COUNT };
        shapes.extend([of(line, line * lines), of(line + 2, (line + 2) * lines), of(line, line * lines + 3)]);
        shapes.extend([of(line + 1, (line + 1) * lines + 4), of(line * COUNT, line)]);
    }
    shapes
}

/// Returns memory for a batch and a few elements more, filled with a sentinel.
fn room(shape: &BatchShape) -> Vec<f64> {
    vec![SENTINEL; shape.stride * shape.count + shape.ld * shape.rows.max(shape.cols) + 3]
}

/// Returns a batch filled with small integers, whose products are exact. If `system` is set, each row has one large element, so
/// that the matrices are well-conditioned.
fn filled(shape: &BatchShape, seed: usize, system: bool) -> Vec<f64> {
    let mut data = room(shape);
    let mut next = seed;
    for (number, mut matrix) in BatchMut::new(&mut data, *shape).unwrap().into_matrices().enumerate() {
        for at in 0..shape.rows * shape.cols {
            next = (next * 37 + 11) % 101;
            let (i, j) = (at % shape.rows, at / shape.rows);
            let dominant = if system && i == (j + number) % shape.rows { 300.0 } else { 0.0 };
            matrix.set(i, j, next as f64 % 9.0 - 4.0 + dominant);
        }
    }
    data
}

fn elements(data: &[f64], shape: &BatchShape) -> Vec<f64> {
    let batch = Batch::new(data, *shape).unwrap();
    let of_matrix = |i: usize| {
        let matrix = batch.get(i);
        (0..shape.rows * shape.cols).map(move |at| matrix.at(at % shape.rows, at / shape.rows))
    };
    (0..batch.count()).flat_map(of_matrix).collect()
}

/// Asserts that elements between and behind the matrices are unchanged.
#[track_caller]
fn gaps_are_untouched(data: &[f64], shape: &BatchShape) {
    let mut inside = room(shape);
    for mut matrix in BatchMut::new(&mut inside, *shape).unwrap().into_matrices() {
        (0..shape.rows * shape.cols).for_each(|at| matrix.set(at % shape.rows, at / shape.rows, 0.0));
    }
    let gaps = inside.iter().zip(data).filter(|(inside, _)| **inside == SENTINEL);
    assert!(gaps.clone().count() > 0 && gaps.into_iter().all(|(_, &x)| x == SENTINEL), "{shape:?}");
}

#[test]
fn products_in_every_storage_are_those_of_single_calls() {
    let (m, n, k) = (7, 4, 3);
    for (name, machine) in machines() {
        for (of_a, of_b, of_c) in (0..10).map(|i| (shapes(k, m)[i], shapes(k, n)[i * 3 % 10], shapes(m, n)[i * 7 % 10])) {
            let (a, b, c) = (filled(&of_a, 1, false), filled(&of_b, 2, false), filled(&of_c, 3, false));
            let [a_batch, b_batch] = [Batch::new(&a, of_a).unwrap(), Batch::new(&b, of_b).unwrap()];
            let (mut batched, mut single, mut listed) = (c.clone(), c.clone(), c.clone());
            let args = GemmBatched::new(a_batch, b_batch, BatchMut::new(&mut batched, of_c).unwrap());
            machine.gemm_batched(args.alpha(2.0).beta(-1.0).trans_a()).unwrap();
            let each = |data: &mut [f64], run: &dyn Fn(Vec<Gemm<'_, f64>>)| {
                let all = BatchMut::new(data, of_c).unwrap().into_matrices().enumerate();
                run(all.map(|(i, c)| Gemm::new(a_batch.get(i), b_batch.get(i), c).alpha(2.0).beta(-1.0).trans_a()).collect());
            };
            each(&mut single, &|calls| calls.into_iter().for_each(|args| machine.gemm(args).unwrap()));
            each(&mut listed, &|calls| machine.gemm_list(calls).unwrap());
            assert!(batched == single && listed == single, "{name}: {of_a:?} {of_b:?} {of_c:?}");
            gaps_are_untouched(&batched, &of_c);
        }
    }
}

/// All products use the same A, so the matrices A_i do not lie side by side.
#[test]
fn a_factor_that_is_only_read_may_be_one_matrix() {
    let (a, b) = ([2.0, 0.0, 0.0, 3.0], [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
    for (_, machine) in machines() {
        let mut c = [f64::NAN; 6];
        let one = Batch::new(&a, BatchShape::col_major(2, 2, 3).stride(0)).unwrap();
        let (b, result) = (Batch::col_major(&b, 2, 1, 3).unwrap(), BatchMut::col_major(&mut c, 2, 1, 3).unwrap());
        machine.gemm_batched(GemmBatched::new(one, b, result)).unwrap();
        assert_eq!(c, [2.0, 3.0, 4.0, 6.0, 6.0, 9.0]);
    }
}

/// If α = 0, neither A nor B is read. If β = 0, C is not read.
#[test]
fn zero_factors_read_nothing() {
    let (nan, numbers) = ([f64::NAN; 12], [3.0; 12]);
    for (name, machine) in machines() {
        for (beta, old, expected) in [(0.0, nan, 0.0), (2.0, numbers, 6.0)] {
            let (a, mut c) = (Batch::col_major(&nan, 2, 2, 3).unwrap(), old);
            let args = GemmBatched::new(a, a, BatchMut::col_major(&mut c, 2, 2, 3).unwrap());
            machine.gemm_batched(args.alpha(0.0).beta(beta)).unwrap();
            assert_eq!(c, [expected; 12], "{name}");
        }
        let (ones, mut c) = ([1.0; 12], nan);
        let a = Batch::col_major(&ones, 2, 2, 3).unwrap();
        machine.gemm_batched(GemmBatched::new(a, a, BatchMut::col_major(&mut c, 2, 2, 3).unwrap())).unwrap();
        assert_eq!(c, [2.0; 12], "{name}");
    }
}

#[test]
fn systems_in_every_storage_are_solved() {
    let (n, nrhs) = (6, 2);
    for (name, machine) in machines() {
        for (of_a, of_b) in (0..10).map(|i| (shapes(n, n)[i], shapes(n, nrhs)[i * 3 % 10])) {
            let (a, x) = (filled(&of_a, 4, true), filled(&of_b, 5, false));
            let b = |op| {
                let (a, x, mut b) = (Batch::new(&a, of_a).unwrap(), Batch::new(&x, of_b).unwrap(), room(&of_b));
                for (i, c) in BatchMut::new(&mut b, of_b).unwrap().into_matrices().enumerate() {
                    machine.gemm(Gemm::new(a.get(i), x.get(i), c).op_a(op)).unwrap();
                }
                b
            };
            let (mut lu, mut ipiv, mut info) = (a.clone(), vec![-1; n * COUNT], vec![-7; COUNT]);
            machine.getrf_batched(GetrfBatched::new(BatchMut::new(&mut lu, of_a).unwrap(), &mut ipiv, &mut info)).unwrap();
            assert_eq!(info, [0; COUNT], "{name}");
            gaps_are_untouched(&lu, &of_a);
            let (mut listed, mut ipiv_listed) = (a.clone(), vec![-1; n * COUNT]);
            let all = BatchMut::new(&mut listed, of_a).unwrap().into_matrices().zip(ipiv_listed.chunks_exact_mut(n));
            let info = machine.getrf_list(all.map(|(a, ipiv)| Getrf::new(a, ipiv))).unwrap();
            assert!(info.iter().all(|info| info.get() == 0) && ipiv_listed == ipiv, "{name}: {of_a:?}");
            for op in [Op::NoTrans, Op::Trans] {
                let factors = Batch::new(&lu, of_a).unwrap();
                let (mut solved, mut solved_listed) = (b(op), b(op));
                machine.getrs_batched(GetrsBatched::new(factors, &ipiv, BatchMut::new(&mut solved, of_b).unwrap()).op(op)).unwrap();
                let all = BatchMut::new(&mut solved_listed, of_b).unwrap().into_matrices().enumerate();
                machine.getrs_list(all.map(|(i, b)| Getrs::new(factors.get(i), &ipiv[i * n..][..n], b).op(op))).unwrap();
                for solved in [&solved, &solved_listed] {
                    gaps_are_untouched(solved, &of_b);
                    let pairs = elements(solved, &of_b).into_iter().zip(elements(&x, &of_b));
                    // 1e-12 is above bound 8 of docs/numerics.md for a condition number below 2
                    assert!(pairs.into_iter().all(|(got, x)| (got - x).abs() < 1e-12), "{name} {op}: {of_a:?} {of_b:?}");
                }
            }
        }
    }
}

#[test]
fn a_singular_matrix_is_named_and_no_right_hand_side_changes() {
    for (name, machine) in machines() {
        // the third of five matrices is singular: its second pivot is zero
        let mut a: Vec<f64> = (0..COUNT).flat_map(|i| [1.0, 1.0, 1.0, if i == 2 { 1.0 } else { 2.0 }]).collect();
        let (mut ipiv, mut info) = (vec![0; 2 * COUNT], vec![-7; COUNT]);
        machine.getrf_batched(GetrfBatched::new(BatchMut::col_major(&mut a, 2, 2, COUNT).unwrap(), &mut ipiv, &mut info)).unwrap();
        assert_eq!(info, [0, 0, 2, 0, 0], "{name}");
        let (lu, mut b) = (Batch::col_major(&a, 2, 2, COUNT).unwrap(), vec![3.0; 2 * COUNT]);
        let args = GetrsBatched::new(lu, &ipiv, BatchMut::col_major(&mut b, 2, 1, COUNT).unwrap());
        let error = machine.getrs_batched(args).unwrap_err();
        assert_eq!((error.kind(), error.outputs()), (ErrorKind::Singular { pivot: 2 }, Some(Outputs::Unchanged)), "{name}");
        assert!(error.context().any(|context| context == ("matrix", "2")), "{error}");
        let columns = b.chunks_exact_mut(2).enumerate();
        let list = columns.map(|(i, b)| Getrs::new(lu.get(i), &ipiv[2 * i..][..2], MatMut::col_major(b, 2, 1).unwrap()));
        let error = machine.getrs_list(list).unwrap_err();
        assert!(error.context().any(|context| context == ("number", "2")), "{error}");
        assert_eq!(b, [3.0; 2 * COUNT]);
        // a solve with a singular matrix is also an error if there are no right-hand sides, as for a single solve
        let none = BatchMut::col_major(&mut b, 2, 0, COUNT).unwrap();
        let error = machine.getrs_batched(GetrsBatched::new(lu, &ipiv, none)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Singular { pivot: 2 }, "{name}");
    }
}

#[test]
fn matrices_of_an_upload_are_a_batch() {
    for (name, machine) in machines() {
        let a: Vec<f64> = filled(&BatchShape::col_major(4, 4, COUNT), 6, true)[..16 * COUNT].to_vec();
        let wide = |data| MatRef::col_major(data, 4, 4 * COUNT).unwrap();
        let (mut lu, mut p) = (machine.upload(wide(&a)).unwrap(), machine.upload(wide(&a)).unwrap());
        let (mut ipiv, mut info) = (vec![0; 4 * COUNT], vec![0; COUNT]);
        machine
            .getrf_batched(GetrfBatched::new(BatchMut::from_columns(lu.view_mut(), COUNT).unwrap(), &mut ipiv, &mut info))
            .unwrap();
        let factors = Batch::from_columns(lu.view(), COUNT).unwrap();
        machine.getrs_batched(GetrsBatched::new(factors, &ipiv, BatchMut::from_columns(p.view_mut(), COUNT).unwrap())).unwrap();
        let mut ones = vec![0.0; 16 * COUNT];
        p.download(MatMut::col_major(&mut ones, 4, 4 * COUNT).unwrap()).unwrap();
        let is_one = |(at, x): (usize, &f64)| (x - f64::from(u8::from(at % 16 % 5 == 0))).abs() < 1e-12;
        assert!(ones.iter().enumerate().all(is_one), "{name}: {ones:?}");
    }
}

#[test]
fn nothing_is_a_batch_and_wrong_arguments_name_the_argument() {
    let machine = Machine::open(&Select::all()).unwrap();
    let (mut none, mut info): ([f64; 0], [i32; 2]) = ([], [-7; 2]);
    let empty = Batch::col_major(&[], 3, 3, 0).unwrap();
    machine.gemm_batched(GemmBatched::new(empty, empty, BatchMut::col_major(&mut none, 3, 3, 0).unwrap())).unwrap();
    machine.getrf_batched(GetrfBatched::new(BatchMut::col_major(&mut none, 3, 3, 0).unwrap(), &mut [], &mut [])).unwrap();
    machine.getrs_batched(GetrsBatched::new(empty, &[], BatchMut::col_major(&mut none, 3, 2, 0).unwrap())).unwrap();
    machine.getrf_batched(GetrfBatched::new(BatchMut::col_major(&mut none, 0, 3, 2).unwrap(), &mut [], &mut info)).unwrap();
    assert_eq!(info, [0, 0]);
    assert!(machine.gemm_list(Vec::<Gemm<'_, f64>>::new()).is_ok());

    let (a, mut c) = ([1.0; 8], [5.0; 8]);
    let two = |data| Batch::col_major(data, 2, 2, 2).unwrap();
    let one = Batch::col_major(&a, 2, 2, 1).unwrap();
    let said = |args: GemmBatched<'_, f64>| machine.gemm_batched(args).unwrap_err().to_string();
    assert!(
        said(GemmBatched::new(one, two(&a), BatchMut::col_major(&mut c, 2, 2, 2).unwrap())).contains("A has 1 matrices, not 2")
    );
    let wide = Batch::col_major(&a, 1, 4, 2).unwrap();
    assert!(said(GemmBatched::new(wide, two(&a), BatchMut::col_major(&mut c, 2, 2, 2).unwrap())).contains("op(A) has 1 rows"));
    let said = |ipiv: &mut [i32], info: &mut [i32], c: &mut [f64]| {
        machine.getrf_batched(GetrfBatched::new(BatchMut::col_major(c, 2, 2, 2).unwrap(), ipiv, info)).unwrap_err().to_string()
    };
    assert!(said(&mut [0; 3], &mut [0; 2], &mut c).contains("ipiv holds 3 elements"));
    assert!(said(&mut [0; 4], &mut [0; 1], &mut c).contains("info holds 1 elements"));
    let mut solve = |ipiv: &[i32]| {
        let b = BatchMut::col_major(&mut c, 2, 2, 2).unwrap();
        machine.getrs_batched(GetrsBatched::new(two(&a), ipiv, b)).unwrap_err().to_string()
    };
    assert!(solve(&[0, 1, 0]).contains("ipiv holds 3 elements"));
    assert!(solve(&[0, 1, 0, 2]).contains("ipiv[3] = 2 is no row of 2 (matrix 1, pivot 1)"));
    assert_eq!(c, [5.0; 8]);
}

/// The second call of a list has wrong arguments, so the first call does not run either.
#[test]
fn a_list_is_checked_before_it_runs() {
    let machine = Machine::open(&Select::all()).unwrap();
    let (a, mut c, mut d) = ([1.0; 4], [5.0; 4], [5.0; 4]);
    let a = MatRef::col_major(&a, 2, 2).unwrap();
    let list =
        [Gemm::new(a, a, MatMut::col_major(&mut c, 2, 2).unwrap()), Gemm::new(a, a, MatMut::col_major(&mut d, 4, 1).unwrap())];
    let error = machine.gemm_list(list).unwrap_err();
    assert!(error.context().any(|context| context == ("number", "1")) && error.outputs() == Some(Outputs::Unchanged), "{error}");
    assert_eq!(c, [5.0; 4]);
}
