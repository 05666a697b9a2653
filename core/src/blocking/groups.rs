//! Block sizes of LU of a matrix that several devices hold together, and the groups of blocks that each device holds.

use std::ops::Range;

use super::{Blocking, LEAST_TILE, Lookahead, Place, Resources, block_count, blocks, partition};
use crate::plan::held_footprint;

/// Number of blocks of a distributed matrix for each device, unless the blocks are then wider than [`WIDE_PANEL`]. With more blocks, the
/// devices finish closer together, but the products of the updates have fewer terms.
const BLOCKS_PER_DEVICE: usize = 8;
/// Maximum number of blocks of a distributed matrix for each device, unless the blocks are then wider than [`WIDEST_PANEL`].
const MAX_BLOCKS_PER_DEVICE: usize = 16;
/// Maximum number of blocks of a distributed matrix.
const MAX_DISTRIBUTED_BLOCKS: usize = 4096;
/// Number of columns of a panel above which the products of updates are hardly faster.
const WIDE_PANEL: usize = 1024;
/// Maximum number of columns of a panel. The simulator predicts nearly equal times for 1024 and 2048 columns, and longer times for 3072 and 4480
/// (bench/results/2026-11-27-lu-groups.txt).
const WIDEST_PANEL: usize = 2048;

/// Mean number of groups of the devices, if there are enough blocks. With more groups the devices finish closer together.
const GROUPS_PER_DEVICE: usize = 4;
/// Maximum number of blocks of a group. A device factors the panels of a group one after the other, and waits for a panel of another device
/// only before the first of them. Longer groups would hardly shorten the waits, and would leave devices without work at the end.
const LONGEST_GROUP: usize = 4;

/// Consecutive blocks of columns that one device holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Index, among the devices of the call, of the device that holds these blocks in its memory.
    pub device: usize,
    /// Indices of the blocks, counted from the left of the matrix.
    pub blocks: Range<usize>,
}

/// Distributes groups of `length` blocks of columns over devices, at least one of whose `shares` is positive, so that the operations of the
/// devices are in proportion to their shares. The groups are distributed from right to left, since those on the right take the most operations.
/// Each goes to the device whose operations are then the smallest multiple of its share. Two devices with equal shares hold groups in the order
/// 0, 1, 1, 0, 0, 1, ….
pub(crate) fn groups(blocks: usize, shares: &[u32], length: usize) -> Vec<Group> {
    let (mut groups, mut operations) = (Vec::new(), vec![0.0; shares.len()]);
    for first in (0..blocks).step_by(length).rev() {
        let own = first..(first + length).min(blocks);
        let added = own.clone().map(|block| operations_of(block, blocks)).fold(0.0, std::ops::Add::add);
        let multiple = |device: &usize| (operations[*device] + added) / f64::from(shares[*device]);
        let takes_part = |device: &usize| shares[*device] > 0;
        let by_multiple = |a: &usize, b: &usize| multiple(a).total_cmp(&multiple(b));
        let device = (0..shares.len()).filter(takes_part).min_by(by_multiple).expect("a share is positive");
        operations[device] += added;
        groups.push(Group { device, blocks: own });
    }
    groups.reverse();
    groups
}

/// Twice the number of blocks of elements that are computed in a block of columns of a square matrix: with the block itself and each block on its
/// left, the blocks of elements from the diagonal down.
#[allow(clippy::cast_precision_loss, reason = "numbers of blocks are small")]
fn operations_of(block: usize, blocks: usize) -> f64 {
    ((block + 1) * (2 * blocks - block)) as f64
}

/// The columns of all blocks of a matrix with `n` columns: the panels, and on the right of them blocks of the width of the widest panel.
pub(crate) fn distributed_blocks(panels: &[Range<usize>], n: usize) -> Vec<Range<usize>> {
    let (end, width) = (panels.last().map_or(0, |panel| panel.end), panels.iter().map(Range::len).max().unwrap_or(1));
    panels.iter().cloned().chain(blocks(&(end..n), width)).collect()
}

impl Resources {
    /// Block sizes of LU of a matrix that several devices hold together, with panels of `nb` columns if this number is given. `None` if a device
    /// works in place, if the memory of a device has no room for its columns and for the panels of two groups, or if the matrix has too many
    /// blocks. If the memory has no room, panels are narrower, and groups are shorter.
    pub(crate) fn distributed(&self, m: usize, n: usize, nb: Option<usize>) -> Option<Blocking> {
        self.copy_limit().filter(|_| self.all_copy)?;
        let devices = self.shares.iter().filter(|&&share| share > 0).count().max(1);
        let per_device = |blocks: usize| m.min(n).div_ceil(blocks * devices);
        let chosen = per_device(MAX_BLOCKS_PER_DEVICE).max(per_device(BLOCKS_PER_DEVICE).min(WIDE_PANEL)).min(WIDEST_PANEL);
        let unit = if chosen < Lookahead::UNIT { LEAST_TILE } else { Lookahead::UNIT };
        let widest = nb.unwrap_or(chosen.next_multiple_of(unit).max(LEAST_TILE));
        let narrower = |&width: &usize| (nb.is_none() && width > WIDE_PANEL).then(|| (width / 2).next_multiple_of(unit));
        let longest = (block_count(n, widest) / (GROUPS_PER_DEVICE * devices)).clamp(1, LONGEST_GROUP);
        let shorter = |&length: &usize| (length > 1).then_some(length / 2);
        let lengths = std::iter::successors(Some(longest), shorter);
        let sizes = lengths.flat_map(|length| std::iter::successors(Some(widest), narrower).map(move |nb| (nb, length)));
        let (nb, group_length) = sizes.into_iter().find(|&(nb, length)| self.holds_distributed(m, n, nb, length))?;
        let place = Place::Distributed { shares: self.shares.clone(), group_length };
        Some(Blocking { mc: m, nc: nb, kc: nb, nb, share: usize::MAX, place })
    }

    /// Whether the devices have room for a matrix in panels of `nb` columns and groups of `length` panels that they hold together.
    fn holds_distributed(&self, m: usize, n: usize, nb: usize, length: usize) -> bool {
        if block_count(n, nb) > MAX_DISTRIBUTED_BLOCKS {
            return false;
        }
        let panels = partition(m.min(n), nb);
        let Some(width) = panels.iter().map(Range::len).max() else { return false };
        let blocks = distributed_blocks(&panels, n);
        if blocks.len() > MAX_DISTRIBUTED_BLOCKS {
            return false;
        }
        let groups = groups(blocks.len(), &self.shares, length);
        let columns = |group: &Group| blocks[group.blocks.end - 1].end - blocks[group.blocks.start].start;
        let longest = groups.iter().map(columns).fold(0, usize::max);
        let taken = |columns: usize| held_footprint(columns, longest);
        let held = |device: usize| {
            let own = groups.iter().filter(|group| group.device == device);
            own.map(|group| taken(columns(group))).fold(0, usize::saturating_add)
        };
        // the panels of a group update columns until those of the next group have been received
        let received = 2 * length * taken(width);
        let most = (0..self.devices()).map(held).fold(0, usize::max).saturating_add(received);
        let fits = |columns: usize, limit: Option<usize>| limit.is_some_and(|limit| columns <= limit / self.element / m.max(1));
        fits(most, self.memory.map(|memory| memory / 8 * 7)) && fits(longest, self.buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The devices and the lengths of the groups, in order.
    fn lengths(blocks: usize, shares: &[u32], length: usize) -> Vec<(usize, usize)> {
        groups(blocks, shares, length).into_iter().map(|group| (group.device, group.blocks.len())).collect()
    }

    #[test]
    fn groups_hold_the_shares_of_their_devices() {
        assert_eq!(lengths(32, &[1, 1], 4), [(0, 4), (1, 4), (1, 4), (0, 4)].repeat(2));
        assert_eq!(lengths(35, &[1, 1], 4).last(), Some(&(0, 3)));
        assert_eq!(lengths(8, &[1, 1], 1), [(0, 1), (1, 1), (1, 1), (0, 1)].repeat(2));
        assert_eq!(lengths(5, &[1], 1), [(0, 1); 5]);
        for (blocks, shares) in [(64, vec![1, 1]), (64, vec![3, 1]), (100, vec![100, 30, 0]), (7, vec![1, 1, 1])] {
            let groups = groups(blocks, &shares, 3);
            assert!(groups.windows(2).all(|pair| pair[0].blocks.end == pair[1].blocks.start), "{groups:?}");
            assert_eq!((groups[0].blocks.start, groups.last().unwrap().blocks.end), (0, blocks));
            let all: u32 = shares.iter().sum();
            let operations = |group: &Group| group.blocks.clone().map(|block| operations_of(block, blocks)).sum::<f64>();
            let (total, largest) = (groups.iter().map(operations).sum::<f64>(), groups.iter().map(operations).fold(0.0, f64::max));
            for (device, &share) in shares.iter().enumerate() {
                let own: f64 = groups.iter().filter(|group| group.device == device).map(operations).sum();
                let due = total * f64::from(share) / f64::from(all);
                assert!((own - due).abs() <= largest / 2.0, "device {device}: {own} of {total} operations, shares {shares:?}");
            }
        }
        // a device whose share is less than a group holds none
        assert_eq!(lengths(50, &[100, 1], 4).iter().filter(|(device, _)| *device == 1).count(), 0);
    }
}
