//! Tests of every instruction on one device and one thread. The sizes are small enough for an interpreter of kernels such as
//! oclgrind. Backends call these functions in their own tests too.

use lapidary_core::{Accuracy, Conditions, DType, Device, Diag, Instruction, Op, PanelShape, Scalar, Side, TrsmMode, Uplo, Value};

use super::launches::{FIRST_ROW, GAP, Launches, OFFSET, Placed};
use crate::bounds::{self, real};
use crate::failure::{Worst, ratio};
use crate::oracle::product::product;
use crate::oracle::residual::{factors, linear, triangle};
use crate::oracle::{Dense, loops};
use crate::{Failure, Ledger, Scope, Trial};

/// All tests of instructions, as methods that the tests of a backend call. Each method panics at the first wrong result.
#[derive(Debug)]
pub struct Instructions<'d>(pub &'d dyn Device);

impl Instructions<'_> {
    /// Tests every instruction of the device.
    pub fn all<T: Scalar>(&self) {
        // `triangles` comes first, because oclgrind counts scratch memory as unwritten that takes the place of freed matrices
        self.triangles::<T>();
        self.products::<T>();
        self.product_in_norm::<T>([Op::NoTrans; 2], [33, 21, 40], None);
        // `new_memory` is not part of `products`, because some tests repeat `products` on one device. An interpreter that checks
        // memory (oclgrind) still counts memory as unwritten when a later test allocates this memory again, so that it would report
        // the reads of the later test.
        self.expect_pass(new_memory::<T>);
        self.expect_pass(moves::<T>);
        self.panels::<T>();
        self.batches::<T>();
    }

    /// Tests `gemm` with all operations.
    pub fn products<T: Scalar>(&self) {
        self.expect_pass(products::<T>);
    }

    /// Tests `gemm` at sizes for which kernels may first copy the factors into another layout.
    pub fn wide_products<T: Scalar>(&self) {
        self.expect_pass(|trial| products_of::<T>(trial, [OFFSET, GAP], |drawn| 112 + drawn));
    }

    /// Tests `gemm` with the operations `ops` at the sizes m, n and k, on an old result that it must read and on one that it must not
    /// read.
    pub fn product<T: Scalar>(&self, ops: [Op; 2], sizes: [usize; 3]) {
        self.product_at::<T>([OFFSET, GAP], ops, sizes);
    }

    /// Tests `gemm` as [`product`](Self::product) does, on matrices whose positions and leading dimensions are multiples of the length of
    /// every vector if their extents are.
    pub fn product_in_vectors<T: Scalar>(&self, ops: [Op; 2], sizes: [usize; 3]) {
        self.product_at::<T>([VECTOR; 2], ops, sizes);
    }

    /// Tests `gemm` on factors with NaN and infinite elements. The elements around the factors are NaN. The sizes are at least 2.
    pub fn product_beside_nan<T: Scalar>(&self, ops: [Op; 2], sizes: [usize; 3]) {
        self.expect_pass(|trial| product_beside_nan::<T>(&mut Launches::new(trial), ops, sizes));
    }

    /// Tests `gemm` with the accuracy [`Accuracy::Normwise`] (bound 15), also while another queue would factor the panel `beside_panel`.
    /// The sizes are at least 3.
    pub fn product_in_norm<T: Scalar>(&self, ops: [Op; 2], sizes: [usize; 3], beside_panel: Option<PanelShape>) {
        self.expect_pass(|trial| product_in_norm::<T>(&mut Launches::new(trial), ops, sizes, beside_panel));
    }

    fn product_at<T: Scalar>(&self, place: [usize; 2], ops: [Op; 2], sizes: [usize; 3]) {
        for beta in [-2.0, 0.0] {
            self.expect_pass(|trial| product_of::<T>(&mut Launches::new(trial), place, ops, sizes, beta));
        }
    }

    /// Tests `gemm` on operands that consist of whole vectors, which kernels may use in place.
    pub fn products_in_vectors<T: Scalar>(&self) {
        self.expect_pass(products_in_vectors::<T>);
    }

    /// Tests the batched instructions.
    pub fn batches<T: Scalar>(&self) {
        self.expect_pass(super::batches::products::<T>);
        self.expect_pass(super::batches::systems::<T>);
    }

    /// Tests `trsm` in both modes.
    pub fn triangles<T: Scalar>(&self) {
        self.expect_pass(triangles::<T>);
    }

    /// Tests `trsm` in both modes for `n` unknowns of `sides` right-hand sides.
    pub fn triangles_of<T: Scalar>(&self, n: usize, sides: usize) {
        self.expect_pass(|trial| triangles_of::<T>(trial, |_| [n, sides]));
    }

    /// Tests `trsm` in the mode inverted on `count` triangles of order `n` that have blocks of `order` rows without an accurate inverse.
    pub fn ill_conditioned_triangles<T: Scalar>(&self, n: usize, order: usize, count: usize) {
        self.expect_pass(|trial| super::inverses::with_blocks_of::<T>(trial, n, order, count));
    }

    /// Tests on a device that inverts blocks of `order` rows of triangles of order `n` that the device multiplies by accurate inverses, and
    /// that it substitutes elsewhere.
    pub fn choice_of_inverses(&self, n: usize, order: usize) {
        self.expect_pass(|trial| super::inverses::choice(trial, n, order));
    }

    /// Tests `getrf` and `laswp`.
    pub fn panels<T: Scalar>(&self) {
        self.expect_pass(panels::<T>);
        self.expect_pass(without_pivoting::<T>);
        self.expect_pass(zero_pivot::<T>);
    }

    fn expect_pass(&self, check: impl Fn(&Trial<'_, dyn Device>) -> Result<(), Failure>) {
        let (scope, ledger) = (Scope::quick(1), Ledger::default());
        let trial = Trial { subject: self.0, scope: &scope, ledger: &ledger };
        check(&trial).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Tests products with all operations. The operands lie inside larger buffers (bound 1).
///
/// # Errors
/// A result is wrong, or an element outside the operands was written.
pub fn products<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    products_of::<T>(trial, [OFFSET, GAP], |drawn| drawn)
}

/// Tests products as [`products`] does, on matrices whose extents, positions and leading dimensions are multiples of `VECTOR`.
///
/// # Errors
/// A result is wrong, or an element outside the operands was written.
pub fn products_in_vectors<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    // more than a tile of the tests, and few enough elements for an interpreter of OpenCL
    products_of::<T>(trial, [VECTOR; 2], |_| 3 * VECTOR)
}

/// Number of elements of the longest vector: a multiple of the length of every vector.
const VECTOR: usize = 16;

/// Tests products with all operations. `extent` computes each extent from a drawn one. `place` holds the number of elements before an operand in its
/// buffer, and the number of elements between its columns.
fn products_of<T: Scalar>(
    trial: &Trial<'_, dyn Device>,
    place: [usize; 2],
    extent: impl Fn(usize) -> usize,
) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    for ops in [[Op::NoTrans, Op::NoTrans], [Op::Trans, Op::NoTrans], [Op::NoTrans, Op::Trans], [Op::Trans, Op::Trans]] {
        let sizes = std::array::from_fn(|_| extent(on.extent()));
        product_of::<T>(&mut on, place, ops, sizes, -2.0)?;
    }
    Ok(())
}

/// Tests a product with the sizes m, n and k. `place` has the meaning that it has in [`products_of`]. If `beta` is zero, the old result
/// holds NaN.
fn product_of<T: Scalar>(
    on: &mut Launches<'_>,
    place: [usize; 2],
    [op_a, op_b]: [Op; 2],
    [m, n, k]: [usize; 3],
    beta: f64,
) -> Result<(), Failure> {
    let ((rows_a, cols_a), (rows_b, cols_b)) = (op_a.shape((m, k)), op_b.shape((k, n)));
    let (a, b) = (on.uniform::<T>(rows_a, cols_a), on.uniform::<T>(rows_b, cols_b));
    let c = if beta == 0.0 { Dense::from_fn(m, n, |_, _| f64::NAN) } else { on.uniform::<T>(m, n) };
    let exact = product::<T>(0.5, &a.under(op_a), &b.under(op_b), beta, &c);
    let (alpha, beta) = (Value::new(T::DTYPE, 0.5), Value::new(T::DTYPE, beta));
    let inputs = [&a, &b, &c];
    let computed = on.run_on::<T, 3>(place, inputs, |[a, b, c]| Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c })?;
    let seen = on.seen(format!("{op_a}{op_b}"), k);
    seen.worst("program: gemm", bounds::gemm_componentwise::<T>(k), exact.worst(&computed, 0.0))
}

/// Tests products that need to be accurate in norm only (bound 15). Some kernels take large products only. Therefore the test multiplies large
/// matrices if a buffer of the device can hold them, and small matrices otherwise.
///
/// # Errors
/// An element of a result is wrong.
pub fn products_in_norm<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    let (n, t) = (Op::NoTrans, Op::Trans);
    let ops = [[n, n], [t, n], [n, t], [t, t]];
    let large @ [m, n, _] = [1040, 528, 80];
    let bytes = (VECTOR + (m + VECTOR) * (n + VECTOR)) * size_of::<T>();
    let sizes = if trial.subject.facts().limits.buffer < bytes { [72, 56, 40] } else { large };
    ops.into_iter().try_for_each(|ops| product_in_norm::<T>(&mut on, ops, sizes, None))
}

/// Tests a product that needs to be accurate in norm only. Row 0 of A has an element that half precision does not hold, row 1 has NaN and row 2
/// an infinity.
fn product_in_norm<T: Scalar>(
    on: &mut Launches<'_>,
    [op_a, op_b]: [Op; 2],
    [m, n, k]: [usize; 3],
    beside_panel: Option<PanelShape>,
) -> Result<(), Failure> {
    let (mut a, b, c) = (on.uniform::<T>(m, k), on.uniform::<T>(k, n), on.uniform::<T>(m, n));
    [1e6, f64::NAN, f64::INFINITY].into_iter().enumerate().for_each(|(row, value)| a.set(row, k - 1, value));
    let (alpha, beta) = (Value::new(T::DTYPE, -1.0), Value::new(T::DTYPE, 1.0));
    let conditions = Conditions { beside_panel, accuracy: Accuracy::Normwise };
    let place = |matrix: &Dense| on.place_at::<T>([VECTOR; 2], 0.0, matrix);
    let (a_there, b_there, c_there) = (place(&a.under(op_a))?, place(&b.under(op_b))?, place(&c)?);
    let (of_a, of_b, of_c) = (a_there.operand(), b_there.operand(), c_there.operand());
    on.launch_under(conditions, &Instruction::Gemm { alpha, op_a, a: of_a, op_b, b: of_b, beta, c: of_c })?;
    let computed = on.fetch_beside::<T>(&c_there, 0.0)?;
    // the rows of A lie one after the other
    let rows_of_a = a.t();
    let largest = |line: &[f64]| line.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let rows: Vec<f64> = (0..m).map(|i| largest(rows_of_a.column(i))).collect();
    let mut worst = Worst::default();
    for j in 0..n {
        let (column, largest) = (b.column(j), largest(b.column(j)));
        for (i, &row) in rows.iter().enumerate() {
            let terms = rows_of_a.column(i).iter().zip(column).map(|(x, y)| x * y);
            let (sum, magnitudes) = terms.fold((0.0, 0.0), |(sum, magnitudes), term| (sum + term, magnitudes + term.abs()));
            let (exact, found, scale) = (c.at(i, j) - sum, computed.at(i, j), c.at(i, j).abs() + magnitudes);
            let limit = bounds::gemm_componentwise::<T>(k).limit * scale + bounds::gemm_in_norm::<T>(k, [row, largest]);
            let is_alike = found == exact || (found.is_nan() && exact.is_nan());
            worst.record(if is_alike { 0.0 } else { (found - exact).abs() / limit }, (i, j));
        }
    }
    on.seen(format!("{op_a}{op_b} in norm"), k).worst("program: gemm", bounds::accurate_in_norm(), worst)
}

/// Tests that the elements of a product are finite, infinite and NaN as those of the plain loop are.
fn product_beside_nan<T: Scalar>(on: &mut Launches<'_>, [op_a, op_b]: [Op; 2], [m, n, k]: [usize; 3]) -> Result<(), Failure> {
    let (mut x, mut y) = (on.uniform::<T>(m, k), on.uniform::<T>(k, n));
    x.set(0, k - 1, f64::INFINITY);
    x.set(1, 0, f64::NAN);
    // 0·∞ is NaN in one column of row 0
    y.set(k - 1, 0, 0.0);
    // op(op(A)) is A
    let [a_there, b_there] = [on.place_beside_nan::<T>(&x.under(op_a))?, on.place_beside_nan::<T>(&y.under(op_b))?];
    let c_there = on.place::<T>(&Dense::from_fn(m, n, |_, _| f64::NAN))?;
    let [a, b, c] = [&a_there, &b_there, &c_there].map(Placed::operand);
    let (alpha, beta) = (Value::new(T::DTYPE, 1.0), Value::new(T::DTYPE, 0.0));
    on.launch(&Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c })?;
    let computed = on.fetch::<T>(&c_there)?;
    let rows = x.t();
    let alike = |x: f64, right: f64| match right.is_finite() {
        true => x.is_finite(),
        false => x == right || (x.is_nan() && right.is_nan()),
    };
    let wrong = computed.elements().find_map(|((i, j), x)| {
        let right = loops::gemm_element::<T>(1.0, rows.column(i), y.column(j), 0.0, 0.0);
        (!alike(x, right)).then(|| Failure::new("program: gemm", format!("{x}, expected {right}")).at((i, j)))
    });
    on.seen(format!("{op_a}{op_b}"), k).exact("program: gemm", wrong.map_or(Ok(()), Err))
}

/// Tests a product whose result lies in memory that was never written, and a product whose result holds NaN. With `β = 0` the
/// instruction must not read the old elements of the result (bound 1). The product in unwritten memory may pass by chance, if this
/// memory holds finite numbers.
///
/// # Errors
/// An element of a product is wrong.
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

/// Tests the instructions that scale by a power of two, that copy a matrix, and that copy it in `f32`. Only the last rounds, to the nearest
/// numbers.
///
/// # Errors
/// An element of a result differs from the expected one.
pub fn moves<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    let [m, n] = [on.extent(), on.extent()];
    let (a, c, beta) = (on.uniform::<T>(m, n), on.uniform::<T>(m, n), Value::new(T::DTYPE, -2.0));
    let scaled = on.run::<T, 1>([&c], |[c]| Instruction::Scale { beta, c })?;
    on.seen("", m).exact("program: scale", equal("program: scale", &scaled, &c.map(|c| -2.0 * c)))?;
    let copied = on.run::<T, 2>([&a, &c], |[a, b]| Instruction::Copy { a, b })?;
    on.seen("", m).exact("program: copy", equal("program: copy", &copied, &a))?;
    if T::DTYPE == DType::F64 {
        let (wide, narrow) = (on.place::<f64>(&a)?, on.place::<f32>(&c)?);
        on.launch(&Instruction::Narrow { alpha: Value::F64(4.0), a: wide.operand(), b: narrow.operand() })?;
        let rounded = a.map(|a| f32::from_f64(4.0 * a).to_f64());
        on.seen("", m).exact("program: narrow", equal("program: narrow", &on.fetch::<f32>(&narrow)?, &rounded))?;
    }
    Ok(())
}

/// Tests triangular solves with the matrix on either side, in both modes (bound 7).
///
/// # Errors
/// A result is wrong, or an element outside the operands was written.
pub fn triangles<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    triangles_of::<T>(trial, |on| [on.extent(), on.extent()])
}

/// Tests triangular solves for the numbers of unknowns and right-hand sides that `sizes` returns.
fn triangles_of<T: Scalar>(
    trial: &Trial<'_, dyn Device>,
    mut sizes: impl FnMut(&mut Launches<'_>) -> [usize; 2],
) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    for (uplo, diag) in
        [(Uplo::Lower, Diag::NonUnit), (Uplo::Upper, Diag::NonUnit), (Uplo::Lower, Diag::Unit), (Uplo::Upper, Diag::Unit)]
    {
        let [n, nrhs] = sizes(&mut on);
        let a = well_scaled::<T>(&on.uniform::<T>(n, n));
        let t = triangle(&a, uplo, diag);
        for (side, op) in [(Side::Left, Op::NoTrans), (Side::Left, Op::Trans), (Side::Right, Op::NoTrans), (Side::Right, Op::Trans)]
        {
            // if the triangular matrix stands on the right, the test checks `op(T)ᵀ·Xᵀ = Bᵀ` in place of `X·op(T) = B`
            let to_side = |b: &Dense| if side == Side::Left { b.clone() } else { b.t() };
            let (alpha, right) = (Value::new(T::DTYPE, 1.0), on.uniform::<T>(n, nrhs));
            let residual = |mode| -> Result<_, Failure> {
                let [triangle, b] = [&a, &to_side(&right)];
                let x = on.run::<T, 2>([triangle, b], |[a, b]| Instruction::Trsm { mode, side, uplo, op, diag, alpha, a, b })?;
                Ok((to_side(&x), linear::<T>(&to_side(&t.under(op)), &to_side(&x), 1.0, &right)))
            };
            let (_, substituted) = residual(TrsmMode::Substitution)?;
            let (x, inverted) = residual(TrsmMode::Inverted)?;
            let seen = on.seen(format!("{side}{uplo}{op}{diag}"), n);
            let worst = substituted.worst(&right.map(|_| 0.0), 0.0);
            seen.worst("program: trsm", bounds::trsm_substitution::<T>(n), worst)?;
            let norms = to_side(&t.under(op)).norm_one() * x.norm_one();
            let ratio = ratio(inverted.rounded().norm_one(), norms);
            seen.within("program: trsm inverted", bounds::trsm_inverted::<T>(n), ratio)?;
        }
    }
    unusual_pivots::<T>(&mut on)
}

/// Tests solves with one pivot whose reciprocal is infinite or subnormal. The other pivots are one, and all other coefficients are zero.
fn unusual_pivots<T: Scalar>(on: &mut Launches<'_>) -> Result<(), Failure> {
    let n = on.extent();
    let at = on.rng.below(n);
    let (mode, side, op, diag) = (TrsmMode::Substitution, Side::Left, Op::NoTrans, Diag::NonUnit);
    let alpha = Value::new(T::DTYPE, 1.0);
    // devices may flush subnormal numbers to zero in single precision
    let subnormal = if T::DTYPE == DType::F64 { T::MIN_POSITIVE / 4.0 } else { -0.0 };
    for (pivot, uplo) in
        [0.0, -0.0, subnormal, 2.0 / T::MIN_POSITIVE].into_iter().flat_map(|pivot| [(pivot, Uplo::Lower), (pivot, Uplo::Upper)])
    {
        let right_side = if pivot.abs() > 0.0 { pivot } else { 1.0 };
        let a = Dense::from_fn(n, n, |i, j| {
            if i != j {
                0.0
            } else if i == at {
                pivot
            } else {
                1.0
            }
        });
        let b = Dense::from_fn(n, 1, |i, _| if i == at { right_side } else { 1.0 });
        let x = on.run::<T, 2>([&a, &b], |[a, b]| Instruction::Trsm { mode, side, uplo, op, diag, alpha, a, b })?;
        let quotient = right_side / pivot;
        let is_later = |i: usize| if uplo == Uplo::Lower { i > at } else { i < at };
        let plain = Dense::from_fn(n, 1, |i, _| {
            if i == at {
                quotient
            } else if is_later(i) {
                1.0 - 0.0 * quotient
            } else {
                1.0
            }
        });
        let as_division = |(&x, &plain): (&f64, &f64)| x.total_cmp(&plain).is_eq() || x.is_nan() && plain.is_nan();
        if !x.column(0).iter().zip(plain.column(0)).all(as_division) {
            let what = format!("pivot {pivot:e} of row {at} gives {:e}, expected {quotient:e}", x.at(at, 0));
            return Err(Failure::new("program: trsm pivots", what));
        }
    }
    Ok(())
}

/// Tests a factorisation by the product P·L·U (bound 8), and tests row exchanges without a factorisation.
///
/// # Errors
/// A result is wrong, or an element outside the operands was written.
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

/// Tests a factorisation without row exchanges by the product P·L·U (bound 8). The diagonal elements of the test matrix dominate
/// their rows but not their columns, so that an instruction with pivoting would exchange rows.
///
/// # Errors
/// Rows were exchanged, the factors are wrong, or an element outside the operands was written.
pub fn without_pivoting<T: Scalar>(trial: &Trial<'_, dyn Device>) -> Result<(), Failure> {
    let mut on = Launches::new(trial);
    let n = on.extent();
    let m = n + on.extent();
    let uniform = on.uniform::<T>(m, n);
    // a power of two scales a row and its rounding errors by the same factor
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

/// Tests the factorisation of a panel with a column of zeros. `info` must be the row of the zero pivot, counted from one in the
/// whole matrix.
///
/// # Errors
/// `info` differs from the row of the zero pivot.
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

/// Scales the elements of A so that each triangle of A is about as large as the inverse of this triangle.
fn well_scaled<T: Scalar>(a: &Dense) -> Dense {
    let scale = real(a.rows()).sqrt();
    let scaled = |i, j| if i == j { 1.5 + a.at(i, j) / 2.0 } else { a.at(i, j) / scale };
    Dense::from_fn(a.rows(), a.cols(), scaled).map(|x| T::from_f64(x).to_f64())
}

/// Fails unless `computed` equals `right`. The results that the function compares have no rounding errors.
fn equal(check: &'static str, computed: &Dense, right: &Dense) -> Result<(), Failure> {
    #[allow(clippy::float_cmp, reason = "exact equality is the property")]
    match computed.elements().find(|&((i, j), x)| x != right.at(i, j)) {
        None => Ok(()),
        Some((at, x)) => Err(Failure::new(check, format!("{x}, expected {}", right.at(at.0, at.1))).at(at)),
    }
}
