//! Ratios of measured to estimated times of earlier calls, by which the estimates for later calls are corrected.

use std::collections::HashMap;

use lapidary_core::DType;
use lapidary_core::algorithms::Problem;

/// Number of ratios that are kept for each size of call. The median of the kept ratios corrects estimates, since other programs
/// slow down some calls and the times on some devices vary from call to call.
pub(super) const RUNS_KEPT: usize = 5;

/// Maximum distance, in half octaves, between a size that a single device has not run and the size whose run times correct the
/// price on this device.
const NEAR: u32 = 4;

/// A class of calls: one routine, one element type, and about the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Bucket {
    pub operation: &'static str,
    pub dtype: DType,
    /// Twice the binary logarithm of each size, rounded. If the routine has fewer than four sizes, the remaining elements are 0.
    pub size: [u32; 4],
}

impl Bucket {
    pub fn of(problem: &Problem) -> Self {
        let mut size = [0; 4];
        for (half_octaves, (_, extent)) in size.iter_mut().zip(problem.sizes()) {
            *half_octaves = (2.0 * (extent.max(1) as f64).log2()).round() as u32;
        }
        Bucket { operation: problem.operation(), dtype: problem.dtype(), size }
    }

    /// Sum of the differences of the sizes of two buckets, in half octaves. Returns `None` if the routines or element types of
    /// the buckets differ.
    fn distance(&self, other: &Bucket) -> Option<u32> {
        let is_alike = (self.operation, self.dtype) == (other.operation, other.dtype);
        is_alike.then(|| self.size.iter().zip(other.size).map(|(a, b)| a.abs_diff(b)).sum())
    }
}

/// For each bucket, the ratios of measured to estimated time of the latest calls in the bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Runs(pub HashMap<Bucket, Vec<f64>>);

impl Runs {
    /// Number of ratios that are kept for the bucket.
    pub fn count(&self, bucket: &Bucket) -> usize {
        self.0.get(bucket).map_or(0, Vec::len)
    }

    /// Returns the number by which estimates in the bucket are multiplied: the median ratio of the nearest bucket that has ratios.
    /// For a single device, the distance to the nearest bucket must be at most [`NEAR`]. For several devices, the nearest bucket
    /// may be at any distance, since devices wait for each other at all sizes. Returns `None` if no bucket within the allowed
    /// distance has ratios.
    pub fn correction(&self, bucket: &Bucket, is_team: bool) -> Option<f64> {
        let most = if is_team { u32::MAX } else { NEAR };
        let near = self.0.iter().filter_map(|(other, ratios)| Some((bucket.distance(other)?, other, ratios)));
        // if two buckets are equally near, the order of buckets decides, so that the choice is reproducible
        let nearest = near.filter(|(distance, ..)| *distance <= most).min_by_key(|(distance, other, _)| (*distance, **other));
        nearest.map(|(_, _, ratios)| median(ratios))
    }

    /// Adds the ratio of a call, and removes the oldest ratio if the bucket then has more than [`RUNS_KEPT`] ratios.
    pub fn add(&mut self, bucket: Bucket, ratio: f64) {
        let ratios = self.0.entry(bucket).or_default();
        ratios.push(ratio);
        if ratios.len() > RUNS_KEPT {
            ratios.remove(0);
        }
    }
}

/// Returns the median of the ratios. For an even number of ratios, returns the smaller of the two middle ratios.
fn median(ratios: &[f64]) -> f64 {
    let mut sorted = ratios.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(sorted.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEMM: Bucket = Bucket { operation: "gemm", dtype: DType::F64, size: [20, 20, 20, 0] };

    #[test]
    fn the_median_of_the_latest_runs_corrects() {
        let mut runs = Runs::default();
        for (ratio, expected) in [(3.0, 3.0), (2.0, 2.0), (4.0, 3.0), (5.0, 3.0), (6.0, 4.0), (7.0, 5.0), (1.0, 5.0)] {
            runs.add(GEMM, ratio);
            assert_eq!(runs.correction(&GEMM, false), Some(expected), "after {ratio}");
        }
        assert_eq!(runs.count(&GEMM), RUNS_KEPT);
    }

    /// The run times of the nearest size correct the estimates for a size that has not run. Run times of other routines, other
    /// element types and distant sizes do not correct the estimates for a single device.
    #[test]
    fn a_near_size_corrects() {
        let mut runs = Runs::default();
        let larger = Bucket { size: [22, 22, 20, 0], ..GEMM };
        for bucket in [GEMM, larger] {
            runs.add(bucket, if bucket == GEMM { 2.0 } else { 3.0 });
        }
        for (bucket, expected) in [
            (Bucket { size: [21, 20, 20, 0], ..GEMM }, Some(2.0)),
            (Bucket { size: [22, 21, 20, 0], ..GEMM }, Some(3.0)),
            (Bucket { size: [20, 20, 15, 0], ..GEMM }, None),
            (Bucket { operation: "trsm", ..GEMM }, None),
            (Bucket { dtype: DType::F32, ..GEMM }, None),
        ] {
            assert_eq!(runs.correction(&bucket, false), expected, "{bucket:?}");
        }
        let far = Bucket { size: [30, 30, 30, 0], ..GEMM };
        assert_eq!([false, true].map(|is_team| runs.correction(&far, is_team)), [None, Some(3.0)]);
    }
}
