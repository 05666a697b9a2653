//! Every instruction on one device at a size that an interpreter bears, on one
//! thread: below the routines, and for a backend's own tests.

use lapidary_core::{Device, Diag, Instruction, Op, Scalar, Side, Uplo};

use super::launches::{FIRST_ROW, Launches, column, done, inside, square};
use super::square::{Matrix, N, equal, matrix, norm, product, sizes, triangle, turned, unit, wide};
use crate::bounds::{self, real};
use crate::failure::ratio;
use crate::{Failure, Ledger, Scope, Trial};

/// The instructions of a device under test, for a backend's own tests. Each method panics
/// at the first wrong result.
#[derive(Debug)]
pub struct Instructions<'d, D>(pub &'d D);

impl<D: Device> Instructions<'_, D> {
    /// Every instruction.
    pub fn all<T: Scalar>(&self) {
        self.products::<T>();
        // not among the products, which tests repeat on one device: an interpreter that watches
        // memory still takes it for unwritten when it is given to somebody else
        self.must(new_memory::<D, T>);
        self.must(moves::<D, T>);
        self.must(triangles::<D, T>);
        self.panels::<T>();
    }

    /// `gemm` in all its forms.
    pub fn products<T: Scalar>(&self) {
        self.must(products::<D, T>);
    }

    /// `getrf` and `laswp`.
    pub fn panels<T: Scalar>(&self) {
        self.must(panels::<D, T>);
        self.must(zero_pivot::<D, T>);
    }

    fn must(&self, check: impl Fn(&Trial<'_, D>) -> Result<(), Failure>) {
        let (scope, ledger) = (Scope::quick(1), Ledger::default());
        let trial = Trial { subject: self.0, scope: &scope, ledger: &ledger };
        check(&trial).unwrap_or_else(|failure| panic!("{failure}"));
    }
}

/// Products in all their forms, on operands inside larger buffers (bound 1).
///
/// # Errors
/// A result is wrong, or something beside it was written.
pub fn products<D: Device, T: Scalar>(trial: &Trial<'_, D>) -> Result<(), Failure> {
    let (a, b, c) = (matrix::<T>(1), matrix::<T>(2), matrix::<T>(3));
    let (alpha, beta) = (T::from_f64(0.5), T::from_f64(-2.0));
    for (op_a, op_b) in [(Op::NoTrans, Op::NoTrans), (Op::Trans, Op::NoTrans), (Op::NoTrans, Op::Trans), (Op::Trans, Op::Trans)] {
        let on = Launches::new(trial, &format!("{op_a}{op_b}"));
        let computed = on.run([&a, &b, &c], |[a, b, c]| Instruction::Gemm { alpha, op_a, a, op_b, b, beta, c })?;
        let (wide_a, wide_b) = (turned(op_a, &a), turned(op_b, &b));
        let exact = product(&wide_a, &wide_b).into_iter().zip(&c).map(|(p, c)| 0.5 * p - 2.0 * c.to_f64());
        let scale = product(&sizes(&wide_a), &sizes(&wide_b)).into_iter().zip(&c).map(|(p, c)| 0.5 * p + 2.0 * c.to_f64().abs());
        on.close("program: gemm", bounds::gemm_componentwise::<T>(N), &wide(&computed), exact.zip(scale))?;
    }
    Ok(())
}

/// A product into memory that was never written, and into NaN: with `β = 0` neither is
/// read (bound 1). New memory may happen to hold numbers that do no harm.
///
/// # Errors
/// A result is wrong.
pub fn new_memory<D: Device, T: Scalar>(trial: &Trial<'_, D>) -> Result<(), Failure> {
    let (on, a, b) = (Launches::new(trial, "NN"), matrix::<T>(1), matrix::<T>(2));
    let [a_there, b_there] = [on.upload(&a, N)?, on.upload(&b, N)?];
    let new = done(trial.subject.alloc(N * N * size_of::<T>()))?;
    let poisoned = on.upload(&[T::from_f64(f64::NAN); N * N], N)?;
    for c_there in [&new, &poisoned] {
        let [a_view, b_view, c_view] = [&a_there, &b_there, c_there].map(square);
        let (op_a, op_b, alpha, beta) = (Op::NoTrans, Op::NoTrans, T::ONE, T::ZERO);
        on.launch(&Instruction::Gemm { alpha, op_a, a: a_view, op_b, b: b_view, beta, c: c_view })?;
        let computed = on.download(c_there, vec![T::ZERO; N * N], N)?;
        let scale = product(&sizes(&wide(&a)), &sizes(&wide(&b)));
        let right = product(&wide(&a), &wide(&b)).into_iter().zip(scale);
        on.close("program: gemm", bounds::gemm_componentwise::<T>(N), &wide(&computed), right)?;
    }
    Ok(())
}

/// Scaling by a power of two and copying, which do not round.
///
/// # Errors
/// An element differs.
pub fn moves<D: Device, T: Scalar>(trial: &Trial<'_, D>) -> Result<(), Failure> {
    let (on, a, c, beta) = (Launches::new(trial, ""), matrix::<T>(1), matrix::<T>(3), T::from_f64(-2.0));
    let scaled = on.run([&c], |[c]| Instruction::Scale { beta, c })?;
    equal("program: scale", &scaled, &c.iter().map(|&c| beta * c).collect::<Vec<T>>())?;
    let copied = on.run([&a, &c], |[a, b]| Instruction::Copy { a, b })?;
    equal("program: copy", &copied, &a)
}

/// Substitution from either side (bound 7), and the inverses of triangles.
///
/// # Errors
/// A result is wrong, or something beside it was written.
pub fn triangles<D: Device, T: Scalar>(trial: &Trial<'_, D>) -> Result<(), Failure> {
    let (a, b) = (matrix::<T>(1), matrix::<T>(2));
    for (uplo, diag) in
        [(Uplo::Lower, Diag::NonUnit), (Uplo::Upper, Diag::NonUnit), (Uplo::Lower, Diag::Unit), (Uplo::Upper, Diag::Unit)]
    {
        let triangle = triangle(&a, uplo, diag);
        for (side, op) in [(Side::Left, Op::NoTrans), (Side::Left, Op::Trans), (Side::Right, Op::NoTrans), (Side::Right, Op::Trans)]
        {
            let (alpha, on) = (T::ONE, Launches::new(trial, &format!("{side}{uplo}{op}{diag}")));
            let x = on.run([&a, &b], |[a, b]| Instruction::Trsm { side, uplo, op, diag, alpha, a, b })?;
            let t = turned(op, &triangle);
            let both = |t: &[f64], x: &[f64]| if side == Side::Left { product(t, x) } else { product(x, t) };
            let scale = both(&sizes(&t), &sizes(&wide(&x))).into_iter().zip(&b).map(|(p, b)| p + b.to_f64().abs());
            let back = both(&t, &wide(&x));
            on.close("program: trsm", bounds::trsm_substitution::<T>(N), &back, wide(&b).into_iter().zip(scale))?;
        }
        let on = Launches::new(trial, &format!("{uplo}{diag}"));
        let inverse = on.run([&a, &b], |[a, inverse]| Instruction::Trtri { uplo, diag, a, inverse })?;
        let (triangle, inverse) = (wide(&triangle), wide(&inverse));
        let apart: Vec<f64> = product(&triangle, &inverse).iter().zip(unit()).map(|(x, e)| x - e).collect();
        let ratio = ratio(norm(&apart), norm(&triangle) * norm(&inverse));
        on.seen.within("program: trtri", bounds::trsm_inverted::<T>(N), ratio)?;
    }
    Ok(())
}

/// P·L·U from the factors (bound 8), and the exchanges by themselves.
///
/// # Errors
/// A result is wrong, or something beside it was written.
pub fn panels<D: Device, T: Scalar>(trial: &Trial<'_, D>) -> Result<(), Failure> {
    let on = Launches::new(trial, "");
    // rows in reverse, so that pivots are found far from the diagonal
    let a: Matrix<T> = matrix::<T>(1).chunks(N).flat_map(|column| column.iter().rev().copied()).collect();
    let (lu, pivots, info) = factored(&on, &a)?;
    let ipiv = on.download(&pivots, vec![0; N], N)?;
    if !(0..N).all(|i| (i + FIRST_ROW..N + FIRST_ROW).contains(&usize::try_from(ipiv[i]).unwrap_or(0))) {
        return Err(Failure::new("program: getrf pivots", format!("{ipiv:?} for rows {FIRST_ROW}..{}", N + FIRST_ROW)));
    }
    equal("program: getrf info", &[info], &[0])?;
    let (lower, upper) = (triangle(&lu, Uplo::Lower, Diag::Unit), triangle(&lu, Uplo::Upper, Diag::NonUnit));
    let exchanged = on.laswp(&a, &pivots, Side::Left, true)?;
    let product = product(&wide(&lower), &wide(&upper));
    let apart: Vec<f64> = product.iter().zip(wide(&exchanged)).map(|(lu, a)| lu - a).collect();
    let ratio = ratio(norm(&apart), real(N) * norm(&wide(&a)) * bounds::epsilon::<T>());
    on.seen.within("program: getrf", bounds::getrf_residual(), ratio)?;
    equal("program: laswp", &on.laswp(&exchanged, &pivots, Side::Left, false)?, &a)?;
    let transposed = |x: &Matrix<T>| turned(Op::Trans, x).into_iter().map(T::from_f64).collect::<Vec<T>>();
    equal("program: laswp", &on.laswp(&transposed(&a), &pivots, Side::Right, true)?, &transposed(&exchanged))
}

/// A panel with a column of zeros: `info` is its row in the whole matrix, counted from one.
///
/// # Errors
/// `info` is something else.
pub fn zero_pivot<D: Device, T: Scalar>(trial: &Trial<'_, D>) -> Result<(), Failure> {
    const ZERO: usize = 20;
    let mut a = matrix::<T>(1);
    a[ZERO * N..][..N].fill(T::ZERO);
    let (.., info) = factored(&Launches::new(trial, ""), &a)?;
    let expected = i32::try_from(FIRST_ROW + ZERO + 1).expect("few rows");
    equal("program: getrf info", &[info], &[expected])
}

/// The factors of a panel whose first row is row [`FIRST_ROW`] of a matrix, its pivots and `info`.
fn factored<D: Device, T: Scalar>(on: &Launches<'_, D>, a: &Matrix<T>) -> Result<(Matrix<T>, D::Buffer, i32), Failure> {
    let (factors, pivots, info) = (on.upload_inside(a)?, on.upload(&[0; N], N)?, on.upload(&[0], 1)?);
    let (ipiv, told) = (column(&pivots, N), column(&info, 1));
    on.launch(&Instruction::<T, _>::Getrf { pivoting: true, first_row: FIRST_ROW, a: inside(&factors), ipiv, info: told })?;
    Ok((on.download_inside(&factors)?, pivots, on.download(&info, vec![7], 1)?[0]))
}
