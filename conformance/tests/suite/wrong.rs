//! Subjects of plain loops, each with one deliberate fault.

use lapidary_conformance::Subject;
use lapidary_core::{
    Accuracy, Diag, Error, ErrorKind, Gemm, Getrf, Getrs, Laswp, Layout, MatMut, MatRef, Op, Result, Scalar, Side, Trsm, TrsmMode,
    Uplo,
};

use super::naive::{Naive, norm_one, swap, under};

/// The fault of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Products are computed in a lower precision: f32 in place of f64, and TF32 in place of f32.
    LowPrecision,
    /// If k is one more than the size of a tile, the last term of each sum is left out.
    TileEdge,
    /// `β·C` is added even if `β = 0`.
    ReadsOldC,
    /// A and B are read even if `α = 0`.
    ReadsUnderZeroAlpha,
    /// If `α = β = 0`, C is left unchanged.
    KeepsUnderZeroFactors,
    /// Terms of a product in which the element of B is zero are skipped.
    SkipsZeros,
    /// Subnormal results become zero.
    Flushes,
    /// The element after the last column (of a row-major matrix: row) of a result is written.
    WritesGap,
    /// One element of a read-only operand is changed in its last bits.
    WritesA,
    /// The last row of C is left unchanged.
    DropsLastRow,
    /// The transposition of A is ignored if A is square.
    IgnoresOp,
    /// β is rounded to an integer.
    RoundsBeta,
    /// A call with wrong arguments writes to its output before it returns the error.
    WritesBeforeCheck,
    /// The triangle that trsm must not read is read and multiplied by zero, so that only a NaN or an infinity in this triangle
    /// shows the fault.
    ReadsOppositeTriangle,
    /// The diagonal is read and multiplied by zero although it is a unit diagonal, so that only a NaN or an infinity on it shows
    /// the fault.
    ReadsUnitDiagonal,
    /// The triangular solve multiplies by reciprocals of the diagonal elements, some of which overflow.
    Reciprocals,
    /// All elements of a triangular solution are rounded to the spacing of numbers near four times the largest element.
    FixedPoint,
    /// A solution by inverted blocks has a relative error of 128·n unit roundoffs.
    RoughInverse,
    /// Each element of a triangular solution has an error of one or two units in the last place.
    LastPlaceOfX,
    /// The element after the last row exchange is written.
    WritesPastPivots,
    /// The candidate with the second largest magnitude becomes the pivot.
    WrongPivot,
    /// Of several candidates with the same magnitude, the last one becomes the pivot.
    LastOfTies,
    /// Of several candidates with the same magnitude below the diagonal, the last one becomes the pivot.
    LastOfTiesBelow,
    /// Of several candidates with the same magnitude below the diagonal, whose distance is a multiple of 256 rows, the last one
    /// becomes the pivot.
    LastOfTiesFarBelow,
    /// `info` of getrf is always zero.
    LosesInfo,
    /// `info` names the last zero pivot and not the first.
    LastInfo,
    /// The factorisation stops at a zero pivot.
    StopsAtZero,
    /// If n is one more than the size of a tile, the last column is not updated.
    StaleColumn,
    /// The last element of U has an error of one or two units in the last place.
    LastPlaceOfU,
    /// NaN in an operand is replaced by zero.
    DropsNan,
    /// Elements below a pivot that is NaN are left unchanged.
    SkipsNanPivots,
    /// getrs solves `A·X = B` in place of `Aᵀ·X = B`.
    SolvesUntransposed,
    /// The residual of one equation is five sixths of the limit of LAPACK's test routine dget02, which limits the sum of the
    /// residuals over all equations.
    RoughEquation,
    /// Row exchanges are always done in forward order.
    AlwaysForward,
    /// A call with wrong arguments returns the error kind of a failed device.
    RefusesAsFailed,
    /// If k is zero, gemm returns at once, so that C is not multiplied by β.
    SkipsEmptySums,
    /// If the output has no elements, the address of its first element is written.
    WritesWhenEmpty,
    /// Operands whose exponents exceed three tenths of the exponent range count as infinite.
    NarrowExponents,
    /// If the order of the system is one more than the size of a tile, the last unknown is doubled.
    DoublesLastUnknown,
    /// If a pivot is zero, all elements of the solution become NaN.
    ZeroPivotSpoils,
    /// The pivot −0 is treated as 0.
    LosesSignOfZero,
    /// The element after the first matrix of a batch is written.
    WritesGapOfBatch,
    /// The last matrix of a batch is left unchanged.
    DropsLastOfBatch,
    /// All matrices of a batch report the `info` of the first matrix.
    RepeatsInfoOfBatch,
    /// All matrices of a batch are solved with the row exchanges of the first matrix.
    RepeatsPivotsOfBatch,
    /// Zero times an element of each matrix of a batch is added to the next matrix, so that NaN and infinity spread.
    LeaksIntoNextOfBatch,
}

/// A subject of plain loops with one fault.
pub struct Wrong(pub Fault);

fn last_row<T: Scalar>(c: &MatMut<'_, T>) -> Vec<T> {
    let last = c.rows().saturating_sub(1);
    (0..if c.rows() == 0 { 0 } else { c.cols() }).map(|j| c.at(last, j)).collect()
}

/// Changes the element that lies `index` elements after `address`. The changed element may lie outside the matrix, but inside the
/// buffer of the matrix.
fn poke<T>(address: Option<*mut T>, index: usize, change: impl Fn(T) -> T) {
    let place = address.expect("host memory").wrapping_add(index);
    // SAFETY: the element lies in a buffer of the suite, which has elements after the matrix, and no other thread uses this buffer
    // during the call.
    unsafe { place.write(change(place.read())) };
}

impl Wrong {
    fn is(&self, fault: Fault) -> bool {
        self.0 == fault
    }

    fn product<T: Scalar>(&self, x: T, y: T) -> T {
        let beyond = |x: T| x.is_finite() && x.abs().to_f64().log2() > -0.3 * T::MIN_POSITIVE.log2();
        match self.0 {
            Fault::SkipsZeros if y == T::ZERO => T::ZERO,
            Fault::NarrowExponents if beyond(x) || beyond(y) => T::from_f64(f64::INFINITY),
            _ => x * y,
        }
    }

    fn add<T: Scalar>(&self, sum: T, term: T) -> T {
        let low = |x: f64| if T::UNIT_ROUNDOFF < 1e-10 { f64::from(x as f32) } else { truncated(x) };
        if self.is(Fault::LowPrecision) { T::from_f64(low((sum + term).to_f64())) } else { sum + term }
    }

    fn loops<T: Scalar>(&self, args: Gemm<'_, T>) {
        let Gemm { alpha, op_a, a, op_b, b, beta, mut c } = args;
        let k = op_a.shape(a.shape()).1;
        let k = if self.is(Fault::TileEdge) && k > 1 && k % 4 == 1 { k - 1 } else { k };
        let op_a = if self.is(Fault::IgnoresOp) && a.rows() == a.cols() { Op::NoTrans } else { op_a };
        let reads = alpha != T::ZERO || self.is(Fault::ReadsUnderZeroAlpha);
        for i in 0..c.rows() {
            for j in 0..c.cols() {
                let terms = (0..if reads { k } else { 0 }).map(|p| self.product(under(&a, op_a, i, p), under(&b, op_b, p, j)));
                let product = alpha * terms.fold(T::ZERO, |sum, term| self.add(sum, term));
                let old = if beta == T::ZERO && !self.is(Fault::ReadsOldC) { T::ZERO } else { beta * c.at(i, j) };
                let sum = product + old;
                let flush = self.is(Fault::Flushes) && sum.abs().to_f64() < T::MIN_POSITIVE;
                c.set(i, j, if flush { T::ZERO } else { sum });
            }
        }
    }
}

fn truncated(x: f64) -> f64 {
    f64::from(f32::from_bits((x as f32).to_bits() & !0x1fff))
}

impl Subject for Wrong {
    fn name(&self) -> String {
        format!("{:?}", self.0)
    }

    fn gemm<T: Scalar>(&self, mut args: Gemm<'_, T>) -> Result<()> {
        self.before_check(&mut args.c);
        let Gemm { alpha, op_a, a, op_b, b, beta, mut c } = self.refused(args.check())?.into_inner();
        let empty = self.is(Fault::SkipsEmptySums) && op_a.shape(a.shape()).1 == 0;
        if empty || self.is(Fault::KeepsUnderZeroFactors) && alpha == T::ZERO && beta == T::ZERO {
            return Ok(());
        }
        self.when_empty(&mut c);
        let beta = if self.is(Fault::RoundsBeta) { T::from_f64(beta.to_f64().round()) } else { beta };
        let kept = last_row(&c);
        self.loops(Gemm { alpha, op_a, a, op_b, b, beta, c: c.reborrow() });
        if c.rows() * c.cols() > 0 {
            self.damage(&a, &mut c, &kept);
        }
        Ok(())
    }

    fn trsm<T: Scalar>(&self, mut args: Trsm<'_, T>) -> Result<()> {
        self.before_check(&mut args.b);
        let Trsm { side, uplo, op, diag, alpha, a, mut b, mode } = args.check()?.into_inner();
        self.when_empty(&mut b);
        if self.is(Fault::DropsNan) {
            drop_nan(&mut b);
        }
        Naive.trsm(Trsm { side, uplo, op, diag, alpha, a, b: b.reborrow(), mode })?;
        let indices = (0..a.rows()).flat_map(|i| (0..a.rows()).map(move |j| (i, j)));
        let reads = alpha == T::ZERO && self.is(Fault::ReadsUnderZeroAlpha) && a.rows() > 0;
        let read = if reads { T::ZERO * a.at(0, 0) } else { T::ZERO };
        let stray: T = indices.filter(|&at| self.strays(&a, at, uplo, diag)).map(|(i, j)| T::ZERO * (T::ONE / a.at(i, j))).sum();
        let (shift, factor) = (self.shift(&b), self.factor::<T>(a.rows(), mode));
        for i in 0..b.rows() {
            for j in 0..b.cols() {
                let x = (b.at(i, j) + stray + read + shift - shift) * factor;
                b.set(i, j, self.unknown(x, &a, if side == Side::Left { i } else { j }, diag));
            }
        }
        Ok(())
    }

    fn getrf<T: Scalar>(&self, mut args: Getrf<'_, T>) -> Result<usize> {
        self.before_check(&mut args.a);
        let Getrf { mut a, ipiv, pivoting, .. } = args.check()?.into_inner();
        self.when_empty(&mut a);
        let (m, n) = a.shape();
        let mut zeros = Vec::new();
        let stale: Vec<T> = (0..m).filter(|_| n > 0).map(|i| a.at(i, n - 1)).collect();
        if self.is(Fault::DropsNan) {
            drop_nan(&mut a);
        }
        for (j, exchange) in ipiv.iter_mut().enumerate() {
            let p = if pivoting { self.pivot(&a, j) } else { j };
            *exchange = i32::try_from(p).expect("few rows");
            swap(&mut a, j, p);
            if self.is(Fault::SkipsNanPivots) && a.at(j, j).to_f64().is_nan() {
                continue;
            }
            if a.at(j, j) != T::ZERO {
                eliminate(&mut a, j);
                continue;
            }
            zeros.push(j + 1);
            if self.is(Fault::StopsAtZero) {
                break;
            }
        }
        if self.is(Fault::StaleColumn) && n > 1 && n % 4 == 1 {
            stale.into_iter().enumerate().for_each(|(i, x)| a.set(i, n - 1, x));
        }
        if self.is(Fault::LastPlaceOfU) && m.min(n) > 0 {
            let last = (m.min(n) - 1, n - 1);
            a.set(last.0, last.1, a.at(last.0, last.1) * next_to_one());
        }
        if self.is(Fault::WritesPastPivots) && !ipiv.is_empty() {
            poke(Some(ipiv.as_mut_ptr()), ipiv.len(), |_| 0);
        }
        let info = if self.is(Fault::LastInfo) { zeros.last() } else { zeros.first() };
        Ok(if self.is(Fault::LosesInfo) { 0 } else { info.copied().unwrap_or(0) })
    }

    fn getrs<T: Scalar>(&self, mut args: Getrs<'_, T>) -> Result<()> {
        self.before_check(&mut args.b);
        match self.0 {
            Fault::SolvesUntransposed => Naive.getrs(args.op(Op::NoTrans)),
            Fault::RoughEquation => rough_equation(args),
            _ => Naive.getrs(args),
        }
    }

    fn laswp<T: Scalar>(&self, mut args: Laswp<'_, T>) -> Result<()> {
        self.before_check(&mut args.a);
        Naive.laswp(Laswp { forward: args.forward || self.is(Fault::AlwaysForward), ..args })
    }

    fn gemm_batched<T: Scalar>(&self, args: lapidary_core::GemmBatched<'_, T>) -> Result<()> {
        batches::gemm(self, args)
    }

    fn getrf_batched<T: Scalar>(&self, args: lapidary_core::GetrfBatched<'_, T>) -> Result<()> {
        batches::getrf(self, args)
    }

    fn getrs_batched<T: Scalar>(&self, args: lapidary_core::GetrsBatched<'_, T>) -> Result<()> {
        batches::getrs(self, args)
    }
}

/// Batched routines that call the single routine for each matrix, some of them with one of the faults for batches.
mod batches {
    use lapidary_core::{GemmBatched, GetrfBatched, GetrsBatched};

    use super::*;

    pub fn gemm<T: Scalar>(wrong: &Wrong, args: GemmBatched<'_, T>) -> Result<()> {
        let GemmBatched { alpha, op_a, a, op_b, b, beta, c } = args.check()?.into_inner();
        let (count, (rows, cols)) = (c.count(), c.shape());
        for (i, mut c) in c.into_matrices().enumerate() {
            if wrong.is(Fault::DropsLastOfBatch) && i + 1 == count {
                continue;
            }
            wrong.gemm(Gemm { alpha, op_a, a: a.get(i), op_b, b: b.get(i), beta, c: c.reborrow() })?;
            if wrong.is(Fault::WritesGapOfBatch) && i == 0 && rows * cols > 0 {
                let (line, lines) = if c.layout() == Layout::ColMajor { (rows, cols) } else { (cols, rows) };
                if count == 1 || c.ld() > line {
                    poke(c.host_ptr(), (lines - 1) * c.ld() + line, |_| T::ONE);
                }
            }
        }
        Ok(())
    }

    pub fn getrf<T: Scalar>(wrong: &Wrong, args: GetrfBatched<'_, T>) -> Result<()> {
        let GetrfBatched { a, ipiv, info, pivoting } = args.check()?.into_inner();
        let order = a.shape().0.min(a.shape().1);
        let mut leaked = T::ZERO;
        for (i, mut a) in a.into_matrices().enumerate() {
            let (m, n) = a.shape();
            if wrong.is(Fault::LeaksIntoNextOfBatch) && m * n > 0 {
                let last = a.at(m - 1, n - 1) + a.at(m / 2, n / 2);
                a.set(0, 0, a.at(0, 0) + T::ZERO * leaked);
                leaked = last;
            }
            let told = wrong.getrf(Getrf { a, ipiv: &mut ipiv[i * order..][..order], pivoting, accuracy: Accuracy::default() })?;
            info[i] = i32::try_from(told).expect("few rows");
        }
        if wrong.is(Fault::RepeatsInfoOfBatch) && !info.is_empty() {
            let first = info[0];
            info.fill(first);
        }
        Ok(())
    }

    pub fn getrs<T: Scalar>(wrong: &Wrong, args: GetrsBatched<'_, T>) -> Result<()> {
        let GetrsBatched { op, lu, ipiv, b } = args.check()?.into_inner();
        let order = lu.shape().0;
        for (i, b) in b.into_matrices().enumerate() {
            let of = if wrong.is(Fault::RepeatsPivotsOfBatch) { 0 } else { i };
            wrong.getrs(Getrs::new(lu.get(i), &ipiv[of * order..][..order], b).op(op))?;
        }
        Ok(())
    }
}

impl Wrong {
    fn before_check<T: Scalar>(&self, output: &mut MatMut<'_, T>) {
        if self.is(Fault::WritesBeforeCheck) && output.rows() * output.cols() > 0 {
            output.set(0, 0, T::ONE);
        }
    }

    fn refused<C>(&self, checked: Result<C>) -> Result<C> {
        let is_wrong = checked.is_err() && self.is(Fault::RefusesAsFailed);
        if is_wrong { Err(Error::new(ErrorKind::DeviceFailed, "gemm", "something is wrong")) } else { checked }
    }

    fn when_empty<T: Scalar>(&self, output: &mut MatMut<'_, T>) {
        if self.is(Fault::WritesWhenEmpty) && output.rows() * output.cols() == 0 {
            poke(output.host_ptr(), 0, |_| T::ZERO);
        }
    }

    /// Applies the faults that change single unknowns to the unknown `x` of a triangular solve.
    fn unknown<T: Scalar>(&self, x: T, a: &MatRef<'_, T>, equation: usize, diag: Diag) -> T {
        let order = a.rows();
        let is_negative = |i: usize| a.at(i, i) == T::ZERO && a.at(i, i).to_f64().is_sign_negative();
        match self.0 {
            Fault::Flushes if x.abs().to_f64() < T::MIN_POSITIVE => T::ZERO,
            Fault::DoublesLastUnknown if order > 1 && order % 4 == 1 && equation + 1 == order => x + x,
            Fault::LosesSignOfZero if diag == Diag::NonUnit && !x.is_finite() && (0..order).any(is_negative) => -x,
            _ => x,
        }
    }

    /// Applies the faults that leave the computed product right but damage the operands or the result afterwards.
    fn damage<T: Scalar>(&self, a: &MatRef<'_, T>, c: &mut MatMut<'_, T>, kept: &[T]) {
        let (m, n) = c.shape();
        if self.is(Fault::DropsLastRow) {
            kept.iter().enumerate().for_each(|(j, &x)| c.set(m - 1, j, x));
        }
        if self.is(Fault::WritesGap) {
            poke(c.host_ptr(), c.raw().index(m - 1, n - 1) + 1, |_| T::ZERO);
        }
        if self.is(Fault::WritesA) && a.rows() * a.cols() > 0 {
            poke(a.host_ptr(), 0, |x: T| T::from_f64(x.to_f64() * (1.0 + 4.0 * T::UNIT_ROUNDOFF)));
        }
    }

    /// Whether the fault makes trsm read element (i, j) of A although it must not, or multiply by the reciprocal of this element
    /// although the reciprocal is infinite.
    fn strays<T: Scalar>(&self, a: &MatRef<'_, T>, (i, j): (usize, usize), uplo: Uplo, diag: Diag) -> bool {
        match self.0 {
            Fault::ReadsOppositeTriangle => i != j && (i < j) == (uplo == Uplo::Lower),
            Fault::ReadsUnitDiagonal => i == j && diag == Diag::Unit,
            Fault::ZeroPivotSpoils => i == j && diag == Diag::NonUnit && a.at(i, j) == T::ZERO,
            Fault::Reciprocals => i == j && diag == Diag::NonUnit && a.at(i, j) != T::ZERO && !(T::ONE / a.at(i, j)).is_finite(),
            _ => false,
        }
    }

    /// A number that is first added to each element of a solution and then subtracted. The two operations round small elements.
    fn shift<T: Scalar>(&self, x: &MatMut<'_, T>) -> T {
        let elements = (0..x.rows()).flat_map(|i| (0..x.cols()).map(move |j| x.at(i, j).abs().to_f64()));
        let largest = elements.filter(|x| x.is_finite()).fold(0.0, f64::max);
        if self.is(Fault::FixedPoint) { T::from_f64(4.0 * largest) } else { T::ZERO }
    }

    /// The factor by which a solution of order n is multiplied.
    fn factor<T: Scalar>(&self, n: usize, mode: TrsmMode) -> T {
        match self.0 {
            Fault::LastPlaceOfX => next_to_one(),
            Fault::RoughInverse if mode == TrsmMode::Inverted => T::from_f64(1.0 + 128.0 * n as f64 * T::UNIT_ROUNDOFF),
            _ => T::ONE,
        }
    }

    /// Whether a candidate becomes the pivot in place of an equal candidate that lies `distance` rows above. `is_diagonal` states
    /// whether the equal candidate is the diagonal element.
    fn takes_later(&self, distance: usize, is_diagonal: bool) -> bool {
        match self.0 {
            Fault::LastOfTies => true,
            Fault::LastOfTiesBelow => !is_diagonal,
            Fault::LastOfTiesFarBelow => !is_diagonal && distance.is_multiple_of(256),
            _ => false,
        }
    }

    fn pivot<T: Scalar>(&self, a: &MatMut<'_, T>, j: usize) -> usize {
        let (mut best, mut second) = (j, j);
        for i in j + 1..a.rows() {
            let (x, y) = (a.at(i, j).abs(), a.at(best, j).abs());
            if x > y || (x == y && self.takes_later(i - best, best == j)) {
                second = best;
                best = i;
            }
        }
        if self.is(Fault::WrongPivot) && a.at(second, j) != T::ZERO { second } else { best }
    }
}

fn eliminate<T: Scalar>(a: &mut MatMut<'_, T>, j: usize) {
    for i in j + 1..a.rows() {
        let l = a.at(i, j) / a.at(j, j);
        a.set(i, j, l);
        for q in j + 1..a.cols() {
            a.set(i, q, a.at(i, q) - l * a.at(j, q));
        }
    }
}

/// The next number above one.
fn next_to_one<T: Scalar>() -> T {
    T::from_f64(1.0 + 2.0 * T::UNIT_ROUNDOFF)
}

fn drop_nan<T: Scalar>(a: &mut MatMut<'_, T>) {
    for i in 0..a.rows() {
        for j in 0..a.cols() {
            a.set(i, j, if a.at(i, j).to_f64().is_nan() { T::ZERO } else { a.at(i, j) });
        }
    }
}

/// Solves a system with an error in its first equation: the residual is 25·ε·‖A‖₁·‖x‖₁ for each right-hand side, where dget02
/// allows 30·ε·‖A‖₁·‖x‖₁ for the sum over all equations. The function computes ‖L·U‖₁ in place of ‖A‖₁, since an exchange of rows
/// does not change the norm.
fn rough_equation<T: Scalar>(args: Getrs<'_, T>) -> Result<()> {
    let Getrs { op, lu, ipiv, mut b, mode } = args.check()?.into_inner();
    let n = lu.rows();
    let mut response: Vec<T> = (0..n).map(|i| if i == 0 { T::ONE } else { T::ZERO }).collect();
    Naive.getrs(Getrs::new(lu, ipiv, MatMut::new(&mut response, n, 1, n.max(1), Layout::ColMajor)?).op(op))?;
    Naive.getrs(Getrs { op, lu, ipiv, b: b.reborrow(), mode })?;
    let allowed = 25.0 * 2.0 * T::UNIT_ROUNDOFF * norm_one(&lu, op);
    for j in 0..b.cols() {
        let length: f64 = (0..n).map(|i| b.at(i, j).abs().to_f64()).sum();
        for (i, &x) in response.iter().enumerate() {
            b.set(i, j, b.at(i, j) + T::from_f64(allowed * length) * x);
        }
    }
    Ok(())
}
