//! Properties of a pair of subjects: the results of both must agree.

use lapidary_core::{Scalar, TrsmMode, TrsmMode::Inverted, TrsmMode::Substitution};

use super::{Entry, Group, Property, Way, search, under};
use crate::cases::{Fill, GemmCase, GetrfCase, LaswpCase, Shape, SolveCase, TrsmCase};
use crate::properties::agreement::Pair;
use crate::{Failure, Subject, Trial};

/// The list of properties in which two subjects must agree, in the precision of `T`.
#[must_use]
pub fn agreements<'a, R: Subject, S: Subject, T: Scalar>() -> Vec<Property<Pair<'a, R, S>>> {
    const EXACT: &[Shape] = &[Shape::Exact, Shape::Ties, Shape::TiesBelow, Shape::Permuted, Shape::Singular, Shape::ZeroColumn];
    const ROUNDED: &[Shape] = &[Shape::Random, Shape::Graded, Shape::Dominant, Shape::Nan];
    let entries: Vec<Entry<Pair<'a, R, S>>> = vec![
        ("laswp", "Rows move alike.", |pair| search(pair.scope, LaswpCase::any(pair.scope), |case| pair.agree_in_laswp::<T>(case))),
        ("gemm_integers", "Exact products are equal.", |pair| gemms::<R, S, T>(pair, &[Fill::Integers])),
        ("gemm_random", "Products are twice bound 1 apart at most.", |pair| gemms::<R, S, T>(pair, &[Fill::Uniform, Fill::Graded])),
        ("gemm_nan", "NaN and Inf stand in the same places.", |pair| gemms::<R, S, T>(pair, &[Fill::NonFinite])),
        ("trsm_integers", "Exact solutions are equal.", |pair| trsms::<R, S, T>(pair, Substitution, &[Fill::Integers])),
        ("trsm_substitution", "Residuals are twice bound 7 apart at most.", |pair| {
            trsms::<R, S, T>(pair, Substitution, &[Fill::Uniform, Fill::Graded])
        }),
        ("trsm_inverted", "Residuals are twice bound 7 apart at most.", |pair| trsms::<R, S, T>(pair, Inverted, &[Fill::Uniform])),
        ("getrf_exact", "Exact factors, pivots and info are equal.", |pair| getrfs::<R, S, T>(pair, EXACT)),
        ("getrf_random", "Factors multiply to what is twice bound 8 apart at most.", |pair| getrfs::<R, S, T>(pair, ROUNDED)),
        ("solve", "Residuals are twice bound 8 apart at most.", |pair| {
            search(pair.scope, SolveCase::any(pair.scope), |case| pair.agree_in_solve::<T>(case))
        }),
    ];
    under::<T, _, _>(Group { name: "agreement", calls: &[], entries }, Way::Typed).collect()
}

type Compared<'a, 'b, R, S> = Trial<'a, Pair<'b, R, S>>;

fn gemms<R: Subject, S: Subject, T: Scalar>(pair: &Compared<'_, '_, R, S>, fills: &'static [Fill]) -> Result<(), Failure> {
    search(pair.scope, GemmCase::any(pair.scope, fills), |case| pair.agree_in_gemm::<T>(case))
}

fn trsms<R: Subject, S: Subject, T: Scalar>(
    pair: &Compared<'_, '_, R, S>,
    mode: TrsmMode,
    fills: &'static [Fill],
) -> Result<(), Failure> {
    search(pair.scope, TrsmCase::any(pair.scope, mode, fills), |case| pair.agree_in_trsm::<T>(case))
}

fn getrfs<R: Subject, S: Subject, T: Scalar>(pair: &Compared<'_, '_, R, S>, shapes: &'static [Shape]) -> Result<(), Failure> {
    search(pair.scope, GetrfCase::any(pair.scope, shapes), |case| pair.agree_in_getrf::<T>(case))
}
