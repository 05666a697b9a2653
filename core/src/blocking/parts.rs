//! The division of a result among several devices.

use std::ops::Range;

use super::{Blocking, Place, Resources, half};

/// A rectangle of the result of a call, which one device computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The rows of the result.
    pub rows: Range<usize>,
    /// The columns of the result. For a triangular solve, the result has one column for each right-hand side.
    pub cols: Range<usize>,
    /// Index of the device that computes the part, unless another device has no part left and would finish this part earlier. `None` if
    /// every device may compute the part.
    pub device: Option<usize>,
}

/// Number of rows or columns of which the sides of parts are multiples, so that kernels work on whole vectors.
const UNIT: usize = 16;
/// The last part of a device has at least the extent of the result divided by this number, so that a plan has few parts.
const MOST_PARTS: usize = 64;

/// Divides `0..extent` among devices in proportion to `shares`. If `tail` is less than `extent`, the parts of a device become narrower, down to
/// `tail`, so that devices whose shares do not match their speeds still finish close together.
fn divide(extent: usize, shares: &[u32], tail: usize) -> Vec<(Range<usize>, usize)> {
    let all = shares.iter().map(|&share| u64::from(share)).sum::<u64>().max(1);
    let least = tail.max(extent / MOST_PARTS).max(UNIT);
    let (mut parts, mut start, mut sum) = (Vec::new(), 0, 0);
    for (device, &share) in shares.iter().enumerate() {
        sum += u64::from(share);
        #[allow(clippy::cast_possible_truncation, reason = "the quotient is at most `extent`")]
        let due = (extent as u128 * u128::from(sum)).div_ceil(u128::from(all)) as usize;
        let end = due.checked_next_multiple_of(UNIT).unwrap_or(extent).min(extent);
        while start < end {
            let rest = end - start;
            let width = if rest / 2 < least { rest } else { half(rest) };
            parts.push((start..start + width, device));
            start += width;
        }
    }
    parts
}

impl Resources {
    /// Divides a result of m rows and n columns among the devices of a call: by rows, or by columns.
    pub(super) fn divided(&self, m: usize, n: usize, by_rows: bool) -> Vec<Part> {
        let of = |(along, device)| {
            let (rows, cols) = if by_rows { (along, 0..n) } else { (0..m, along) };
            Part { rows, cols, device: Some(device) }
        };
        divide(if by_rows { m } else { n }, &self.shares, self.tail).into_iter().map(of).collect()
    }
}

impl Blocking {
    /// The parts into which a result of m rows and n columns is divided among devices.
    pub(crate) fn parts(&self, m: usize, n: usize) -> Vec<Part> {
        match &self.place {
            Place::Divided { parts } => parts.clone(),
            _ => vec![Part { rows: 0..m, cols: 0..n, device: None }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_one_model_have_one_part_each() {
        assert_eq!(divide(16_384, &[1, 1], usize::MAX), [(0..8192, 0), (8192..16_384, 1)]);
        assert_eq!(divide(1000, &[1, 1, 1], usize::MAX), [(0..336, 0), (336..672, 1), (672..1000, 2)]);
        assert_eq!(divide(1, &[1, 1], usize::MAX), [(0..1, 0)]);
        assert!(divide(0, &[1, 1], usize::MAX).is_empty());
    }

    #[test]
    fn parts_cover_the_result_in_proportion_to_the_shares() {
        for (extent, shares, tail) in
            [(4096, vec![16, 9], 32), (5000, vec![1, 16, 0], 500), (77, vec![3, 5], 1), (10, vec![1; 4], 1)]
        {
            let parts = divide(extent, &shares, tail);
            assert!(parts.windows(2).all(|pair| pair[0].0.end == pair[1].0.start), "{parts:?}");
            assert_eq!((parts[0].0.start, parts.last().unwrap().0.end), (0, extent));
            assert!(parts.len() <= shares.len() * MOST_PARTS);
            let all: u32 = shares.iter().sum();
            for (device, &share) in shares.iter().enumerate() {
                let own: Vec<usize> = parts.iter().filter(|part| part.1 == device).map(|part| part.0.len()).collect();
                let due = extent as f64 * f64::from(share) / f64::from(all);
                assert!((own.iter().sum::<usize>() as f64 - due).abs() <= UNIT as f64, "{own:?} of {extent}, shares {shares:?}");
                assert!(own.windows(2).all(|pair| pair[1] <= pair[0]), "parts become narrower: {own:?}");
                assert!(own.len() < 2 || *own.last().unwrap() + UNIT >= tail, "{own:?}, at least {tail}");
            }
        }
    }
}
