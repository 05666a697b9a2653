//! Tests of the batched instructions on operands that lie inside larger buffers.

use lapidary_core::{Device, Instruction, Op, Scalar, Value};

use super::launches::Launches;
use crate::bounds;
use crate::oracle::Dense;
use crate::oracle::product::product;
use crate::oracle::residual::{factors, solution};
use crate::{Failure, Trial};

/// Number of matrices in a batch.
const COUNT: usize = 3;
/// Orders of the matrices. A batch of matrices of each order fits into a buffer of 64 KiB, the smallest buffer limit of a device.
/// The tests of the batched routines cover larger orders.
const SIZES: [usize; 8] = [1, 2, 7, 16, 31, 32, 33, 40];

/// Matrix `i` of the [`COUNT`] matrices that lie side by side in `all`.
fn part(all: &Dense, i: usize) -> Dense {
    let cols = all.cols() / COUNT;
    Dense::from_fn(all.rows(), cols, |r, j| all.at(r, i * cols + j))
}

/// Tests the instruction `gemm_batched` with all operations (bound 1). The second of the matrices A contains a NaN, which may
/// appear only in the second result. With `β = 0` the instruction must not read C.
///
/// # Errors
/// A result is wrong, or an element outside the operands was written.
pub fn products<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    for (at, &m) in SIZES.iter().enumerate() {
        let [n, k] = [0, 1].map(|_| SIZES[on.rng.below(SIZES.len())]);
        let [op_a, op_b] = [at % 2, at / 2 % 2].map(|trans| if trans == 1 { Op::Trans } else { Op::NoTrans });
        let ((rows_a, cols_a), (rows_b, cols_b)) = (op_a.shape((m, k)), op_b.shape((k, n)));
        let (mut a, b) = (on.uniform::<T>(rows_a, COUNT * cols_a), on.uniform::<T>(rows_b, COUNT * cols_b));
        a.set(rows_a / 2, cols_a + cols_a / 2, f64::NAN);
        let factor = if at % 3 == 0 { 0.0 } else { -2.0 };
        let old = if factor == 0.0 { Dense::from_fn(m, COUNT * n, |_, _| f64::NAN) } else { on.uniform::<T>(m, COUNT * n) };
        let (alpha, beta) = (Value::new(T::DTYPE, 0.5), Value::new(T::DTYPE, factor));
        let all = on.run::<T, 3>([&a, &b, &old], |[a, b, c]| Instruction::GemmBatched {
            count: COUNT,
            alpha,
            op_a,
            a,
            op_b,
            b,
            beta,
            c,
        })?;
        for i in 0..COUNT {
            let (exact, got) =
                (product::<T>(0.5, &part(&a, i).under(op_a), &part(&b, i).under(op_b), factor, &part(&old, i)), part(&all, i));
            if let Some(at) = exact.other_class(&got) {
                return Err(Failure::new("program: gemm_batched", format!("matrix {i}: {}", got.at(at.0, at.1))).at(at));
            }
            let seen = on.seen(format!("{op_a}{op_b}"), k);
            seen.worst("program: gemm_batched", bounds::gemm_componentwise::<T>(k), exact.worst(&got, 0.0))?;
        }
    }
    Ok(())
}

/// Tests the instructions `getrf_batched`, `getrs_batched` and `zero_pivots` (bound 8). The second matrix of each batch has a
/// column of zeros.
///
/// # Errors
/// A result is wrong, or an element outside the operands was written.
pub fn systems<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    for (at, &n) in SIZES.iter().enumerate() {
        // matrices that have more rows than columns, or fewer
        let m = if at % 3 == 0 { n } else { SIZES[on.rng.below(SIZES.len())] };
        of_order::<T>(&mut on, m, n, true)?;
        of_order::<T>(&mut on, n, n, at % 2 == 0)?;
    }
    Ok(())
}

fn of_order<T: Scalar>(on: &mut Launches<'_>, m: usize, n: usize, pivoting: bool) -> Result<(), Failure> {
    let (order, mut a) = (m.min(n), on.uniform::<T>(m, COUNT * n));
    let zero = on.rng.below(order);
    for j in 0..COUNT * n {
        for i in 0..m {
            let dominant = if !pivoting && i == j % n { n as f64 } else { 0.0 };
            let is_zero = j == n + zero;
            a.set(i, j, T::from_f64(if is_zero { 0.0 } else { a.at(i, j) + dominant }).to_f64());
        }
    }
    let (placed, pivots, info) = (on.place::<T>(&a)?, on.pivots(COUNT * order)?, on.pivots(COUNT)?);
    let (factored, ipiv, told) = (placed.operand(), pivots.operand(), info.operand());
    on.launch(&Instruction::GetrfBatched { count: COUNT, pivoting, a: factored, ipiv, info: told })?;
    let (lu, rows) = (on.fetch::<T>(&placed)?, on.rows_of("ipiv", &pivots)?);
    let expected = [0, zero + 1, 0].map(|info| i32::try_from(info).expect("a small size"));
    let is = |name, got: &[i32]| {
        if got == expected {
            Ok(())
        } else {
            Err(Failure::new("program: getrf_batched info", format!("{name} = {got:?}, expected {expected:?}")))
        }
    };
    is("info", &on.rows_of("info", &info)?)?;
    for i in 0..COUNT {
        let named = |j: usize| usize::try_from(rows[i * order + j]).ok().filter(|p| (j..m).contains(p) && (pivoting || *p == j));
        let Some(rows) = (0..order).map(named).collect::<Option<Vec<usize>>>() else {
            return Err(Failure::new("program: getrf_batched pivots", format!("matrix {i}: {rows:?}")));
        };
        let residual = factors::<T>(&part(&lu, i), &rows, &part(&a, i));
        on.seen(if pivoting { "" } else { "no pivoting" }, order).within(
            "program: getrf_batched",
            bounds::getrf_residual(),
            residual,
        )?;
    }
    if m != n {
        return Ok(());
    }
    let again = on.pivots(COUNT)?;
    on.launch(&Instruction::ZeroPivots { count: COUNT, lu: placed.operand(), info: again.operand() })?;
    is("zero_pivots", &on.rows_of("info", &again)?)?;
    for (op, nrhs) in [(Op::NoTrans, 1), (Op::Trans, 2), (Op::NoTrans, 17), (Op::Trans, 1)] {
        let b = on.uniform::<T>(n, COUNT * nrhs);
        let right = on.place::<T>(&b)?;
        let (lu, ipiv, b_there) = (placed.operand(), pivots.operand(), right.operand());
        on.launch(&Instruction::GetrsBatched { count: COUNT, op, lu, ipiv, b: b_there })?;
        let x = on.fetch::<T>(&right)?;
        for i in [0, 2] {
            let residual = solution::<T>(&part(&a, i).under(op), &part(&x, i), &part(&b, i));
            on.seen(format!("{op}"), n).within("program: getrs_batched", bounds::solve_residual(), residual)?;
        }
    }
    Ok(())
}
