//! How long calls of some sizes took, compared with their estimates.

use std::collections::HashMap;

use lapidary_core::DType;
use lapidary_core::algorithms::Problem;

/// Number of runs that are kept for each size. Their median counts: other programs slow some runs down, and on some devices
/// every run takes another time.
pub(super) const RUNS_KEPT: usize = 5;

/// A size that has not run on a device is corrected by the nearest size that has, up to this distance: two octaves in total.
const NEAR: u32 = 4;

/// Calls of a routine of about the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Bucket {
    pub operation: &'static str,
    pub dtype: DType,
    /// Twice the binary logarithm of each size, rounded; 0 where there are fewer than four.
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

    /// The distance between two buckets: the differences of their sizes in half octaves, added up. `None` if their routines or
    /// types differ.
    fn distance(&self, other: &Bucket) -> Option<u32> {
        let is_alike = (self.operation, self.dtype) == (other.operation, other.dtype);
        is_alike.then(|| self.size.iter().zip(other.size).map(|(a, b)| a.abs_diff(b)).sum())
    }
}

/// Ratios of the time of a run to its estimate, the latest of each bucket.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Runs(pub HashMap<Bucket, Vec<f64>>);

impl Runs {
    /// Number of runs in the bucket that are kept.
    pub fn count(&self, bucket: &Bucket) -> usize {
        self.0.get(bucket).map_or(0, Vec::len)
    }

    /// The factor by which estimates in the bucket are corrected: the median ratio of its runs, or of the nearest bucket's. For
    /// several devices together any distance is allowed, since they wait for each other at all sizes. `None` without such runs.
    pub fn correction(&self, bucket: &Bucket, is_team: bool) -> Option<f64> {
        let most = if is_team { u32::MAX } else { NEAR };
        let near = self.0.iter().filter_map(|(other, ratios)| Some((bucket.distance(other)?, other, ratios)));
        // of two that are as near, always the same one
        let nearest = near.filter(|(distance, ..)| *distance <= most).min_by_key(|(distance, other, _)| (*distance, **other));
        nearest.map(|(_, _, ratios)| median(ratios))
    }

    /// Adds a run.
    pub fn add(&mut self, bucket: Bucket, ratio: f64) {
        let ratios = self.0.entry(bucket).or_default();
        ratios.push(ratio);
        if ratios.len() > RUNS_KEPT {
            ratios.remove(0);
        }
    }
}

/// The middle of some ratios; of an even number, the smaller of the two in the middle.
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

    /// The nearest size corrects a size that has not run; no other routine, type, or size far away does.
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
