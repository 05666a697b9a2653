//! Blocks cover their range, and none is much smaller than the others.

use super::partition;

#[test]
fn the_last_two_blocks_share_the_remainder() {
    assert_eq!(partition(10, 4), [0..4, 4..7, 7..10]);
    assert_eq!(partition(8, 4), [0..4, 4..8]);
    assert_eq!(partition(5, 4), [0..3, 3..5]);
    let whole = |n: usize| vec![(0, n)];
    let ends = |n, r| partition(n, r).into_iter().map(|block| (block.start, block.end)).collect::<Vec<_>>();
    assert_eq!((ends(3, 4), ends(1, 1)), (whole(3), whole(1)));
    assert!(partition(0, 4).is_empty());
}

#[test]
fn blocks_cover_the_range_and_none_is_much_smaller() {
    for n in 1..600 {
        for r in [1, 7, 16, 100, 300] {
            let blocks = partition(n, r);
            assert!(blocks.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!((blocks[0].start, blocks[blocks.len() - 1].end), (0, n));
            assert!(blocks.iter().all(|block| block.len() <= r && 2 * block.len() + 32 >= r.min(n)));
        }
    }
}
