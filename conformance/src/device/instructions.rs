//! Every instruction on one device at a size that an interpreter bears, on one
//! thread: below the routines, and for a backend's own tests.

use lapidary_core::{Device, Diag, Instruction, Op, Scalar, Side, Uplo, Value};

use super::launches::{FIRST_ROW, Launches, Placed};
use crate::bounds::{self, real};
use crate::failure::ratio;
use crate::oracle::product::product;
use crate::oracle::residual::{factors, linear, triangle};
use crate::oracle::{Dense, loops};
use crate::{Failure, Ledger, Scope, Trial};

/// The instructions of a device under test, for a backend's own tests. Each method panics
/// at the first wrong result.
#[derive(Debug)]
pub struct Instructions<'d>(pub &'d dyn Device);

impl Instructions<'_> {
    /// Every instruction.
    pub fn all<T: Scalar>(&self) {
        self.products::<T>();
        // not among the products, which tests repeat on one device: an interpreter that watches
        // memory still takes it for unwritten when it is given to somebody else
        self.must(new_memory::<T>);
        self.must(moves::<T>);
        self.must(triangles::<T>);
        self.panels::<T>();
        self.batches::<T>();
    }

    /// `gemm` in all its forms.
    pub fn products<T: Scalar>(&self) {
        self.must(products::<T>);
    }

    /// `gemm` of so many rows, columns and terms that kernels may move its factors first.
    pub fn wide_products<T: Scalar>(&self) {
        self.must(|trial| products_beyond::<T>(trial, 112));
    }

    /// The batched instructions.
    pub fn batches<T: Scalar>(&self) {
        self.must(super::batches::products::<T>);
        self.must(super::batches::systems::<T>);
    }

    /// `getrf` and `laswp`.
    pub fn panels<T: Scalar>(&self) {
        self.must(panels::<T>);
        self.must(without_pivoting::<T>);
        self.must(zero_pivot::<T>);
    }

    fn must(&self, check: impl Fn(&Trial<'_, dyn Device>) -> Result<(), Failure>) {
        let (scope, ledger) = (Scope::quick(1), Ledger::default());
        let trial = Trial { subject: self.0, scope: &scope, ledger: &ledger };
        check(&trial).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Products in all their forms, on operands inside larger buffers (bound 1).
///
/// # Errors
/// A result is wrong, or something beside it was written.
pub fn products<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    products_beyond::<T>(trial, 0)
}

/// The same with so many rows, columns and terms more.
fn products_beyond<T: Scalar>(trial: &Trial<'_, dyn Device>, least: usize) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    for (op_a, op_b) in [(Op::NoTrans, Op::NoTrans), (Op::Trans, Op::NoTrans), (Op::NoTrans, Op::Trans), (Op::Trans, Op::Trans)] {
        let [m, n, k] = [on.extent(), on.extent(), on.extent()].map(|extent| least + extent);
        let ((rows_a, cols_a), (rows_b, cols_b)) = (op_a.shape((m, k)), op_b.shape((k, n)));
        let (a, b, c) = (on.uniform::<T>(rows_a, cols_a), on.uniform::<T>(rows_b, cols_b), on.uniform::<T>(m, n));
        let (alpha, beta) = (Value::new(T::DTYPE, 0.5), Value::new(T::DTYPE, -2.0));
        let computed = on.run::<T, 3>([&a, &b, &c], |[a, b, c]| Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c })?;
        let exact = product::<T>(0.5, &a.under(op_a), &b.under(op_b), -2.0, &c);
        let seen = on.seen(format!("{op_a}{op_b}"), k);
        seen.worst("program: gemm", bounds::gemm_componentwise::<T>(k), exact.worst(&computed, 0.0))?;
    }
    Ok(())
}

/// A product into memory that was never written, and into NaN: with `β = 0` neither is
/// read (bound 1). New memory may happen to hold numbers that do no harm.
///
/// # Errors
/// A result is wrong.
pub fn new_memory<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    let [m, n, k] = [on.extent(), on.extent(), on.extent()];
    let (a, b, poison) = (on.uniform::<T>(m, k), on.uniform::<T>(k, n), Dense::from_fn(m, n, |_, _| f64::NAN));
    let exact = product::<T>(1.0, &a, &b, 0.0, &poison);
    let [a_there, b_there] = [on.place::<T>(&a)?, on.place::<T>(&b)?];
    for c_there in [on.unwritten::<T>(m, n)?, on.place::<T>(&poison)?] {
        let [a, b, c] = [&a_there, &b_there, &c_there].map(Placed::operand);
        let (op_a, op_b, alpha, beta) = (Op::NoTrans, Op::NoTrans, Value::new(T::DTYPE, 1.0), Value::new(T::DTYPE, 0.0));
        on.launch(&Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c })?;
        let worst = exact.worst(&on.fetch::<T>(&c_there)?, 0.0);
        on.seen("NN", k).worst("program: gemm", bounds::gemm_componentwise::<T>(k), worst)?;
    }
    Ok(())
}

/// Scaling by a power of two and copying, which do not round.
///
/// # Errors
/// An element differs.
pub fn moves<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    let [m, n] = [on.extent(), on.extent()];
    let (a, c, beta) = (on.uniform::<T>(m, n), on.uniform::<T>(m, n), Value::new(T::DTYPE, -2.0));
    let scaled = on.run::<T, 1>([&c], |[c]| Instruction::Scale { beta, c })?;
    on.seen("", m).exact("program: scale", equal("program: scale", &scaled, &c.map(|c| -2.0 * c)))?;
    let copied = on.run::<T, 2>([&a, &c], |[a, b]| Instruction::Copy { a, b })?;
    on.seen("", m).exact("program: copy", equal("program: copy", &copied, &a))
}

/// Substitution from either side (bound 7), and the inverses of triangles.
///
/// # Errors
/// A result is wrong, or something beside it was written.
pub fn triangles<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    for (uplo, diag) in
        [(Uplo::Lower, Diag::NonUnit), (Uplo::Upper, Diag::NonUnit), (Uplo::Lower, Diag::Unit), (Uplo::Upper, Diag::Unit)]
    {
        let [n, nrhs] = [on.extent(), on.extent()];
        let a = well_scaled::<T>(&on.uniform::<T>(n, n));
        let t = triangle(&a, uplo, diag);
        for (side, op) in [(Side::Left, Op::NoTrans), (Side::Left, Op::Trans), (Side::Right, Op::NoTrans), (Side::Right, Op::Trans)]
        {
            // from the right, X·op(T) = B, it is op(T)ᵀ·Xᵀ = Bᵀ
            let to_side = |b: &Dense| if side == Side::Left { b.clone() } else { b.t() };
            let (alpha, right) = (Value::new(T::DTYPE, 1.0), on.uniform::<T>(n, nrhs));
            let x = on.run::<T, 2>([&a, &to_side(&right)], |[a, b]| Instruction::Trsm { side, uplo, op, diag, alpha, a, b })?;
            let residual = linear::<T>(&to_side(&t.under(op)), &to_side(&x), 1.0, &right);
            let worst = residual.worst(&right.map(|_| 0.0), 0.0);
            on.seen(format!("{side}{uplo}{op}{diag}"), n).worst("program: trsm", bounds::trsm_substitution::<T>(n), worst)?;
        }
        let inverse = on.run::<T, 2>([&a, &a], |[a, inverse]| Instruction::Trtri { uplo, diag, a, inverse })?;
        let unit = Dense::from_fn(n, n, |i, j| if i == j { 1.0 } else { 0.0 });
        let ratio = ratio(linear::<T>(&t, &inverse, 1.0, &unit).rounded().norm_one(), t.norm_one() * inverse.norm_one());
        on.seen(format!("{uplo}{diag}"), n).within("program: trtri", bounds::trsm_inverted::<T>(n), ratio)?;
    }
    Ok(())
}

/// P·L·U from the factors (bound 8), and the exchanges by themselves.
///
/// # Errors
/// A result is wrong, or something beside it was written.
pub fn panels<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    let n = on.extent();
    let m = n + on.extent();
    let (a, seen) = (on.uniform::<T>(m, n), on.seen("", n));
    let (lu, pivots, info) = on.factored::<T>(&a, true)?;
    let named = on.rows_of("ipiv", &pivots)?;
    let row = |i: usize| usize::try_from(named[i]).ok().filter(|p| (i + FIRST_ROW..m + FIRST_ROW).contains(p));
    let Some(rows) = (0..n).map(|i| row(i).map(|p| p - FIRST_ROW)).collect::<Option<Vec<usize>>>() else {
        return Err(Failure::new("program: getrf pivots", format!("{named:?} for rows {FIRST_ROW}..{}", m + FIRST_ROW)));
    };
    expect_info(info, 0)?;
    seen.within("program: getrf", bounds::getrf_residual(), factors::<T>(&lu, &rows, &a))?;
    let mut exchanged = a.clone();
    loops::exchange(&mut exchanged, &rows, true);
    let moves = [
        (on.laswp::<T>(&a, &pivots, Side::Left, true)?, &exchanged),
        (on.laswp::<T>(&exchanged, &pivots, Side::Left, false)?, &a),
        (on.laswp::<T>(&a.t(), &pivots, Side::Right, true)?.t(), &exchanged),
    ];
    moves.iter().try_for_each(|(got, right)| seen.exact("program: laswp", equal("program: laswp", got, right)))
}

/// P·L·U from the factors without row exchanges (bound 8), of a matrix whose rows are dominated by
/// their diagonals, but not its columns: who looks for pivots finds others.
///
/// # Errors
/// Rows were exchanged, the factors are wrong, or something beside them was written.
pub fn without_pivoting<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    let n = on.extent();
    let m = n + on.extent();
    let uniform = on.uniform::<T>(m, n);
    // powers of two scale rows without rounding, and their errors with them
    let scaled = |i: usize, j: usize| real(1 << (i % 9)) * if i == j { real(n) } else { uniform.at(i, j) };
    let a = Dense::from_fn(m, n, scaled);
    let (lu, pivots, info) = on.factored::<T>(&a, false)?;
    let named = on.rows_of("ipiv", &pivots)?;
    if (0..n).any(|i| usize::try_from(named[i]) != Ok(i + FIRST_ROW)) {
        return Err(Failure::new("program: getrf pivots", format!("{named:?} without pivoting")));
    }
    expect_info(info, 0)?;
    let rows: Vec<usize> = (0..n).collect();
    on.seen("no pivoting", n).within("program: getrf", bounds::getrf_residual(), factors::<T>(&lu, &rows, &a))
}

/// A panel with a column of zeros: `info` is its row in the whole matrix, counted from one.
///
/// # Errors
/// `info` is something else.
pub fn zero_pivot<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    let n = on.extent();
    let (zero, mut a) = (on.rng.below(n), on.uniform::<T>(n, n));
    (0..n).for_each(|i| a.set(i, zero, 0.0));
    let (.., info) = on.factored::<T>(&a, true)?;
    on.seen("", n).exact("program: getrf info", expect_info(info, FIRST_ROW + zero + 1))
}

fn expect_info(info: i32, expected: usize) -> Result<(), Failure> {
    let is_right = usize::try_from(info) == Ok(expected);
    if is_right { Ok(()) } else { Err(Failure::new("program: getrf info", format!("{info}, expected {expected}"))) }
}

/// A with its elements scaled, so that each of its triangles and the inverse of that triangle are about equally large.
fn well_scaled<T: Scalar>(a: &Dense) -> Dense {
    let scale = real(a.rows()).sqrt();
    let scaled = |i, j| if i == j { 1.5 + a.at(i, j) / 2.0 } else { a.at(i, j) / scale };
    Dense::from_fn(a.rows(), a.cols(), scaled).map(|x| T::from_f64(x).to_f64())
}

/// Fails unless `computed` equals `right`, for results without rounding errors.
fn equal(check: &'static str, computed: &Dense, right: &Dense) -> Result<(), Failure> {
    #[allow(clippy::float_cmp, reason = "exact equality is the property")]
    match computed.elements().find(|&((i, j), x)| x != right.at(i, j)) {
        None => Ok(()),
        Some((at, x)) => Err(Failure::new(check, format!("{x}, expected {}", right.at(at.0, at.1))).at(at)),
    }
}
