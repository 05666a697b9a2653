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
    /// Index of the device that should compute the part, which owns the tasks of the part. `None` if any device may compute it.
    pub device: Option<usize>,
}

/// Number of rows or columns of which the sides of parts are multiples, so that kernels work on whole vectors.
const UNIT: usize = 16;
/// Ratio of the extent of a device's share to the smallest extent of a part of this share, so that a plan has few parts.
const MAX_NARROWING: usize = 32;

/// A rule by which a result is divided.
struct Division<'a> {
    /// The relative sizes of the shares of the devices.
    shares: &'a [u32],
    /// For each device, the smallest extent of its parts, if it has several.
    tails: &'a [usize],
    /// Whether rows may be divided.
    divides_rows: bool,
}

impl Part {
    /// Cuts the part into the first `extent` rows or columns of it, and the rest.
    fn cut(self, by_rows: bool, extent: usize) -> [Part; 2] {
        let split = |range: &Range<usize>| [range.start..range.start + extent, range.start + extent..range.end];
        if by_rows {
            split(&self.rows).map(|rows| Part { rows, ..self.clone() })
        } else {
            split(&self.cols).map(|cols| Part { cols, ..self.clone() })
        }
    }
}

impl Division<'_> {
    /// Whether the rows of a part are divided, because there are more of them than columns. The devices together then load as few elements
    /// of the other operands as possible.
    fn by_rows(&self, part: &Part) -> bool {
        self.divides_rows && part.rows.len() > part.cols.len()
    }

    fn extent(&self, part: &Part) -> usize {
        if self.by_rows(part) { part.rows.len() } else { part.cols.len() }
    }

    /// Divides a part among devices in proportion to their shares. The method divides the devices into two groups, cuts the part once, and
    /// divides each of the two pieces among the devices of one group. If the side that is cut is shorter than [`UNIT`] times the number of
    /// devices, the device with the largest share gets the whole part.
    fn among(&self, part: Part, devices: &[usize]) -> Vec<Part> {
        if part.rows.is_empty() || part.cols.is_empty() {
            return Vec::new();
        }
        let extent = self.extent(&part);
        let devices = if extent < UNIT.saturating_mul(devices.len()) { self.fastest(devices) } else { devices };
        if let &[device] = devices {
            return self.of_one_device(device, Part { device: Some(device), ..part });
        }
        let (first, second) = devices.split_at(devices.len() / 2);
        let share = |devices: &[usize]| devices.iter().map(|&device| u128::from(self.shares[device])).sum::<u128>();
        // rounded to the nearest multiple
        let units = (extent as u128 * share(first) * 2 / share(devices) / UNIT as u128).div_ceil(2);
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the number of units of a share is at most that of `extent`, rounded up"
        )]
        let of_first = (units as usize).saturating_mul(UNIT).min(extent);
        let by_rows = self.by_rows(&part);
        let [a, b] = part.cut(by_rows, of_first);
        [self.among(a, first), self.among(b, second)].concat()
    }

    /// Returns the device with the largest share, as a slice of one element. If several devices have the largest share, returns the first.
    fn fastest<'d>(&self, devices: &'d [usize]) -> &'d [usize] {
        let fastest = (0..devices.len()).rev().max_by_key(|&at| self.shares[devices[at]]).unwrap_or(0);
        &devices[fastest..=fastest]
    }

    /// Cuts the part of a device into parts that become smaller, down to the tail of the device, so that devices whose shares do not match
    /// their speeds still finish close together.
    fn of_one_device(&self, device: usize, part: Part) -> Vec<Part> {
        let (by_rows, extent) = (self.by_rows(&part), self.extent(&part));
        let least = self.tails[device].max(extent / MAX_NARROWING).max(UNIT);
        let (mut parts, mut rest, mut left) = (Vec::new(), part, extent);
        while left / 2 >= least {
            let [next, others] = rest.cut(by_rows, half(left));
            (rest, left) = (others, left - half(left));
            parts.push(next);
        }
        parts.push(rest);
        parts
    }
}

impl Resources {
    /// Divides a result of m rows and n columns among the devices of a call that have a share. Rows are divided only if `divides_rows`. If a
    /// single device has a share, its part is the whole result, as if the device were alone.
    pub(super) fn divided(&self, m: usize, n: usize, divides_rows: bool) -> Vec<Part> {
        let division = Division { shares: &self.shares, tails: &self.tails, divides_rows };
        let devices: Vec<usize> = self.with_shares().collect();
        debug_assert!(!devices.is_empty(), "a device has a share");
        let whole = Part { rows: 0..m, cols: 0..n, device: None };
        match devices[..] {
            [device] if m > 0 && n > 0 => vec![Part { device: Some(device), ..whole }],
            _ => division.among(whole, &devices),
        }
    }

    /// Block sizes of a product that is divided among several devices. `None` if the memory suffices for small blocks only.
    pub(super) fn divided_product(&self, limit: usize, [m, n, k]: [usize; 3]) -> Option<Blocking> {
        let parts = self.divided(m, n, true);
        let rows = parts.iter().map(|part| part.rows.len()).max()?;
        let cols = parts.iter().map(|part| part.cols.len()).max()?;
        let has_successors = parts.windows(2).any(|pair| pair[0].device == pair[1].device);
        let blocking = self.held_block(limit, [rows, cols, k], has_successors)?;
        Some(Blocking { place: Place::Divided { parts }, ..blocking })
    }
}

impl Blocking {
    /// The parts into which a result of m rows and n columns is divided among devices.
    pub(crate) fn parts(&self, m: usize, n: usize) -> Vec<Part> {
        match &self.place {
            Place::Divided { parts } => parts.clone(),
            Place::Shared | Place::Streamed | Place::Distributed { .. } | Place::Held { .. } => {
                vec![Part { rows: 0..m, cols: 0..n, device: None }]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of a result of m rows and n columns, if all devices have the same smallest extent of a part.
    fn parts(m: usize, n: usize, shares: &[u32], tail: usize, divides_rows: bool) -> Vec<Part> {
        let (shares, tails) = (shares.to_vec(), vec![tail; shares.len()]);
        Resources { shares, tails, ..Resources::alike(0, None, 8) }.divided(m, n, divides_rows)
    }

    fn part(rows: Range<usize>, cols: Range<usize>, device: usize) -> Part {
        Part { rows, cols, device: Some(device) }
    }

    #[test]
    fn devices_of_one_model_have_one_part_each() {
        let of = |m, n, devices: usize| parts(m, n, &vec![1; devices], usize::MAX, true);
        assert_eq!(of(1000, 1000, 2), [part(0..1000, 0..496, 0), part(0..1000, 496..1000, 1)]);
        assert_eq!(of(1001, 1000, 2), [part(0..496, 0..1000, 0), part(496..1001, 0..1000, 1)]);
        // four devices have squares, so that each loads half of A and half of B
        let squares =
            [part(0..512, 0..512, 0), part(512..1024, 0..512, 1), part(0..512, 512..1024, 2), part(512..1024, 512..1024, 3)];
        assert_eq!(of(1024, 1024, 4), squares);
        assert_eq!((of(1, 1, 2), of(0, 5, 2)), (vec![part(0..1, 0..1, 0)], Vec::new()));
        assert_eq!(of(32, 32, 2), [part(0..32, 0..16, 0), part(0..32, 16..32, 1)]);
        let solve = parts(1000, 96, &[1, 1, 1], usize::MAX, false);
        assert_eq!(solve, [part(0..1000, 0..32, 0), part(0..1000, 32..64, 1), part(0..1000, 64..96, 2)]);
    }

    #[test]
    fn the_fastest_device_computes_a_small_result() {
        for (extent, shares) in [(1, vec![1, 16]), (31, vec![1, 16]), (40, vec![3, 16, 16])] {
            assert_eq!(parts(9, extent, &shares, usize::MAX, false), [part(0..9, 0..extent, 1)], "{extent} {shares:?}");
        }
        // the share of the first device is less than half a unit
        assert_eq!(parts(9, 100, &[1, 16], usize::MAX, false), [part(0..9, 0..100, 1)]);
    }

    #[test]
    fn the_only_device_with_a_share_has_one_part() {
        assert_eq!(parts(9, 256, &[0, 16, 0], 32, false), [part(0..9, 0..256, 1)]);
        assert_eq!(parts(0, 5, &[0, 16], 32, true), []);
    }

    #[test]
    fn each_part_of_a_device_is_half_of_what_is_left() {
        let of_first = [part(0..9, 0..64, 0), part(0..9, 64..96, 0), part(0..9, 96..128, 0)];
        assert_eq!(parts(9, 256, &[1, 1], 32, false)[..3], of_first);
    }

    #[test]
    fn parts_cover_the_result_in_proportion_to_the_shares() {
        let cases = [
            (4096, 4096, vec![16, 9], 32),
            (300, 5000, vec![1, 16, 0, 3], 500),
            (770, 77, vec![3, 5], 1),
            (1000, 1000, vec![1; 7], 1),
            (10, 10, vec![1; 4], 1),
        ];
        for (m, n, shares, tail) in cases {
            let parts = parts(m, n, &shares, tail, true);
            let area = |part: &Part| part.rows.len() * part.cols.len();
            assert_eq!(parts.iter().map(area).sum::<usize>(), m * n, "the parts have the size of the result");
            for (i, a) in parts.iter().enumerate() {
                assert!(area(a) > 0 && a.rows.end <= m && a.cols.end <= n);
                let meets = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
                assert!(parts[..i].iter().all(|b| !(meets(&a.rows, &b.rows) && meets(&a.cols, &b.cols))), "{parts:?} overlap");
            }
            let all: u32 = shares.iter().sum();
            for (device, &share) in shares.iter().enumerate() {
                let own: Vec<usize> = parts.iter().filter(|part| part.device == Some(device)).map(area).collect();
                let due = (m * n) as f64 * f64::from(share) / f64::from(all);
                let rounding = (3 * UNIT * m.max(n)) as f64;
                assert!((own.iter().sum::<usize>() as f64 - due).abs() <= rounding, "{own:?} of {m}×{n}, shares {shares:?}");
                assert!(own.windows(2).all(|pair| pair[1] <= pair[0]), "parts become smaller: {own:?}");
                assert!(own.len() <= 7);
            }
        }
    }
}
