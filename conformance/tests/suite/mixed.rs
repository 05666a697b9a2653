//! Solutions in double precision with factors in single precision: the plain loops of `gesv_mixed`, and their faults.

use lapidary_conformance::Subject;
use lapidary_conformance::subject::Factors;
use lapidary_conformance::suite::properties_in;
use lapidary_core::{Error, Gemm, Getrf, Getrs, Laswp, MatMut, MatRef, Result, Scalar, Trsm};

use crate::naive::Naive;
use crate::{find, outcome, quick};

/// A fault of `gesv_mixed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixedFault {
    /// The first solution is accepted without refinement.
    NeverRefines,
    /// The last solution is accepted although refinement did not converge.
    NeverFallsBack,
    /// Elements beyond the range of single precision become its largest number.
    Saturates,
    /// The system is always factored in double precision.
    AlwaysDouble,
    /// The elements of X are set to zero before a zero pivot is found.
    WritesBeforeError,
    /// NaN in B counts as zero.
    DropsNanOfB,
}
use MixedFault::{AlwaysDouble, DropsNanOfB, NeverFallsBack, NeverRefines, Saturates, WritesBeforeError};

/// Solves A·x = r with factors of A in type `T`. Returns the solution, or the number of the first zero pivot.
fn solve<T: Scalar>(a: MatRef<'_, f64>, r: &[f64]) -> Result<Result<Vec<f64>, usize>> {
    let n = a.rows();
    let mut lu: Vec<T> = (0..n * n).map(|e| T::from_f64(a.at(e % n, e / n))).collect();
    let mut ipiv = vec![0; n];
    match Naive.getrf(Getrf::new(MatMut::col_major(&mut lu, n, n)?, &mut ipiv))? {
        0 => {}
        pivot => return Ok(Err(pivot)),
    }
    let mut x: Vec<T> = r.iter().map(|&r| T::from_f64(r)).collect();
    Naive.getrs(Getrs::new(MatRef::col_major(&lu, n, n)?, &ipiv, MatMut::col_major(&mut x, n, r.len() / n)?))?;
    Ok(Ok(x.iter().map(|x| x.to_f64()).collect()))
}

/// Solves A·X = B as LAPACK's dsgesv does, with a fault if there is one. Each step factors A again.
pub fn solve_mixed(a: MatRef<'_, f64>, b: MatRef<'_, f64>, mut x: MatMut<'_, f64>, fault: Option<MixedFault>) -> Result<Factors> {
    let (n, nrhs) = b.shape();
    if n == 0 || nrhs == 0 {
        return Ok(Factors::Single);
    }
    let b: Vec<f64> = (0..n * nrhs).map(|e| b.at(e % n, e / n)).collect();
    let b: Vec<f64> = b.iter().map(|&b| if fault == Some(DropsNanOfB) && b.is_nan() { 0.0 } else { b }).collect();
    let mut write = |values: &[f64]| values.iter().enumerate().for_each(|(e, &value)| x.set(e % n, e / n, value));
    let saturated: Vec<f64> = (0..n * n).map(|e| a.at(e % n, e / n).clamp(-f64::from(f32::MAX), f64::from(f32::MAX))).collect();
    let narrow = if fault == Some(Saturates) { MatRef::col_major(&saturated, n, n)? } else { a };
    let norm = (0..n).map(|i| (0..n).map(|j| narrow.at(i, j).abs()).sum::<f64>()).fold(0.0, f64::max);
    let (mut solution, mut r, largest) =
        (vec![0.0; n * nrhs], b.clone(), |x: &[f64]| x.iter().fold(0.0, |m: f64, x| m.max(x.abs())));
    for step in 0..=30 {
        let Ok(correction) = solve::<f32>(narrow, &r)? else { break };
        solution.iter_mut().zip(correction).for_each(|(x, d)| *x += d);
        r.clone_from(&b);
        let (view, product) = (MatRef::col_major(&solution, n, nrhs)?, MatMut::col_major(&mut r, n, nrhs)?);
        Naive.gemm(Gemm::new(narrow, view, product).alpha(-1.0).beta(1.0))?;
        let limit = (n as f64).sqrt() * f64::UNIT_ROUNDOFF * norm;
        let mut columns = solution.chunks(n).zip(r.chunks(n));
        let is_finite = r.iter().chain(&solution).all(|value| value.is_finite());
        let is_refined = is_finite && columns.all(|(x, r)| largest(r) <= limit * largest(x));
        let is_accepted = is_refined || fault == Some(NeverRefines) || (fault == Some(NeverFallsBack) && step == 30);
        if is_accepted && fault != Some(AlwaysDouble) {
            write(&solution);
            return Ok(Factors::Single);
        }
    }
    if fault == Some(WritesBeforeError) {
        write(&vec![0.0; n * nrhs]);
    }
    write(&solve::<f64>(a, &b)?.map_err(|pivot| Error::singular("gesv_mixed", pivot))?);
    Ok(Factors::Double)
}

/// A subject of plain loops whose `gesv_mixed` has a fault.
struct Faulty(MixedFault);

impl Subject for Faulty {
    fn name(&self) -> String {
        format!("{:?}", self.0)
    }
    fn gesv_mixed(&self, a: MatRef<'_, f64>, b: MatRef<'_, f64>, x: MatMut<'_, f64>) -> Option<Result<Factors>> {
        Some(solve_mixed(a, b, x, Some(self.0)))
    }
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        Naive.gemm(args)
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        Naive.trsm(args)
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        Naive.getrf(args)
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        Naive.getrs(args)
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        Naive.laswp(args)
    }
}

/// Each fault, a property that catches the fault, and the check that fails.
pub const FAULTS: &[(MixedFault, &str, &str)] = &[
    (NeverRefines, "mixed::well_conditioned", "gesv_mixed: residual"),
    (NeverFallsBack, "mixed::ill_conditioned", "gesv_mixed: precision"),
    (Saturates, "mixed::beyond_single_precision", "gesv_mixed: precision"),
    (AlwaysDouble, "mixed::well_conditioned", "gesv_mixed: precision"),
    (WritesBeforeError, "mixed::singular_is_an_error", "gesv_mixed: X stays"),
    (DropsNanOfB, "mixed::nan_stays_in_its_column", "gesv_mixed: NaN"),
];

#[test]
fn faults_of_refinement_are_caught() {
    for &(fault, name, check) in FAULTS {
        let failure = outcome(&Faulty(fault), find(&properties_in::<_, f64>(), name), &quick());
        let failure = failure.expect_err(&format!("{fault:?} passes {name}"));
        assert_eq!(failure.check, check, "{fault:?} is caught for another reason: {failure}");
    }
}
