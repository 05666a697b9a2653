//! Subjects whose factorisation has one of the faults that are typical of blocked algorithms.

use lapidary_conformance::Subject;
use lapidary_core::{Gemm, Getrf, Getrs, Laswp, Result, Scalar, Trsm};

use crate::naive::Naive;

/// Number of columns in each panel of the factorisation.
const PANEL: usize = 32;

/// The fault of the factorisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LuFault {
    /// `info` names the first zero pivot of the last panel that has a zero pivot.
    InfoOfLastPanel,
    /// If the matrix has more than 256 columns, one element of U has an error of one unit in the last place.
    LastPlaceBeyond256,
}

/// A subject of plain loops, with a fault in the factorisation.
pub struct FaultyLu(pub LuFault);

impl Subject for FaultyLu {
    fn name(&self) -> String {
        format!("{:?}", self.0)
    }
    fn gemm<T: Scalar>(&self, args: Gemm<'_, T>) -> Result<()> {
        Naive.gemm(args)
    }
    fn trsm<T: Scalar>(&self, args: Trsm<'_, T>) -> Result<()> {
        Naive.trsm(args)
    }
    fn getrf<T: Scalar>(&self, args: Getrf<'_, T>) -> Result<usize> {
        let Getrf { mut a, ipiv, pivoting, accuracy } = args.check()?.into_inner();
        let info = Naive.getrf(Getrf { a: a.reborrow(), ipiv, pivoting, accuracy })?;
        let zeros: Vec<usize> = (0..a.rows().min(a.cols())).filter(|&j| a.at(j, j) == T::ZERO).collect();
        match self.0 {
            LuFault::LastPlaceBeyond256 => {
                if a.cols() > 256 {
                    let at = a.rows().min(a.cols()) / 2;
                    a.set(at, at, a.at(at, at) * T::from_f64(1.0 + 2.0 * T::UNIT_ROUNDOFF));
                }
                Ok(info)
            }
            LuFault::InfoOfLastPanel => {
                let last_panel = zeros.last().map(|last| last / PANEL);
                Ok(zeros.iter().find(|&&j| Some(j / PANEL) == last_panel).map_or(info, |j| j + 1))
            }
        }
    }
    fn getrs<T: Scalar>(&self, args: Getrs<'_, T>) -> Result<()> {
        Naive.getrs(args)
    }
    fn laswp<T: Scalar>(&self, args: Laswp<'_, T>) -> Result<()> {
        Naive.laswp(args)
    }
}
