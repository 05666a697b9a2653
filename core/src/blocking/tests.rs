//! Tests of block sizes: blocks cover their range, tiles fit in the memory, and every device gets work.

use super::solves::{COPIED_TRSM_NB, HELD_BLOCKS, TRSM_NB};
use super::*;
use crate::algorithms::getrf;
use crate::dispatch::Reach;
use crate::enums::Layout;
use crate::schedule::Schedule;

#[test]
fn the_last_two_blocks_share_the_remainder() {
    assert_eq!(partition(10, 4), [0..4, 4..7, 7..10]);
    assert_eq!(partition(8, 4), [0..4, 4..8]);
    assert_eq!(partition(5, 4), [0..3, 3..5]);
    let whole = |n: usize| vec![(0, n)];
    let ends = |n, r| partition(n, r).into_iter().map(|block| (block.start, block.end)).collect::<Vec<_>>();
    assert_eq!((ends(3, 4), ends(1, 1)), (whole(3), whole(1)));
    assert!(partition(0, 4).is_empty() && block_count(0, 4) == 0);
    assert_eq!(partition(2, 0), [0..1, 1..2]);
}

#[test]
fn blocks_cover_the_range_and_none_is_much_smaller() {
    for n in 1..600 {
        for r in [1, 7, 16, 100, 300] {
            let blocks = partition(n, r);
            assert!(blocks.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!((blocks[0].start, blocks[blocks.len() - 1].end), (0, n));
            assert_eq!(block_count(n, r), blocks.len());
            assert!(blocks.iter().all(|block| block.len() <= r && 2 * block.len() + 32 >= r.min(n)));
        }
    }
}

const NUMBERS: [usize; 5] = [1, 2, 3, 7, 16];
const EXTENTS: [usize; 7] = [1, 16, 17, 200, 1000, 4096, 12_000];

/// Problems for the tests: number of rows, number of columns, number of devices.
fn cases() -> impl Iterator<Item = (usize, usize, usize)> {
    EXTENTS.into_iter().flat_map(|m| EXTENTS.into_iter().flat_map(move |n| NUMBERS.map(|devices| (m, n, devices))))
}

fn in_place(devices: usize) -> Resources {
    Resources::alike(devices, None, 8)
}

fn copying(devices: usize, limit: usize) -> Resources {
    Resources::alike(devices, Some(limit), 8)
}

fn on_one_device() -> Resources {
    Resources { resident: true, ..in_place(1) }
}

/// Whether the call has a single device, and `elements` elements use at most half of the memory of this device, so that the
/// device holds the whole problem.
fn is_held(resources: &Resources, elements: usize) -> bool {
    resources.devices() == 1 && 2 * 8 * elements <= resources.copy_limit().unwrap()
}

/// Memory limits, from the smallest that any plan accepts to more memory than any plan uses.
fn limits() -> impl Iterator<Item = usize> {
    (0..40).map(|i| 6 * 8 * LEAST_TILE * LEAST_TILE * ((2 + i % 2) << (i / 2)) / 2)
}

#[test]
fn a_product_gives_each_device_a_tile_and_cuts_no_further() {
    for (m, n, devices) in cases() {
        let Blocking { mc, nc, .. } = in_place(devices).gemm(m, n, 100);
        let tiles = partition(m, mc).len() * partition(n, nc).len();
        let small = mc.max(nc) <= 2 * LEAST_TILE;
        assert!(tiles >= devices || small, "{m}×{n} on {devices}: {tiles} tiles");
        assert!(mc.max(nc) <= MAX_TILE);
        // the last cut was necessary: before this cut there were too few tiles, or a tile was too large
        let uncut = tiles == 1 || tiles <= 2 * (devices - 1) || 2 * mc.max(nc) >= MAX_TILE;
        assert!(uncut && (mc == m || mc >= LEAST_TILE) && (nc == n || nc >= LEAST_TILE), "{m}×{n} on {devices}: {mc}×{nc}");
    }
    let tile = |m, n, devices| (in_place(devices).gemm(m, n, 100).mc, in_place(devices).gemm(m, n, 100).nc);
    assert_eq!(tile(MAX_TILE, MAX_TILE, 1), (MAX_TILE, MAX_TILE), "one device takes all");
    assert_eq!((tile(300, 100, 2), tile(100, 300, 2)), ((160, 100), (100, 160)), "the longer side is cut");
    assert_eq!((tile(16, 16, 64), tile(17, 17, 64)), ((16, 16), (9, 9)), "small tiles stay");
}

#[test]
fn two_sets_of_tiles_take_the_memory_of_a_product_if_it_is_small() {
    for limit in limits() {
        let Blocking { mc, nc, kc, nb, .. } = copying(1, limit).gemm(20_000, 20_000, 20_000);
        if nb < nc {
            assert!(mc.min(nc) >= LEAST_HELD, "{limit}: {mc}×{nc}");
            continue;
        }
        let set = |side: usize| 8 * 3 * side * side;
        assert!(mc == kc && nc == kc && 2 * set(kc) <= limit, "{limit}: {kc}");
        // with tiles of the next larger order, two sets of tiles exceed the memory limit
        let step = if kc >= 64 { 16 } else { 1 };
        assert!(kc == MAX_TILE || 2 * set(kc + step) > limit, "{limit}: {kc}");
        assert!(kc < 64 || kc.is_multiple_of(16), "{limit}: {kc}");
    }
}

#[test]
fn a_block_of_a_product_stays_on_the_device_while_panels_pass() {
    let blocking = |limit, [m, n, k]: [usize; 3]| copying(1, limit).gemm(m, n, k);
    // a GPU with 80 GB holds the whole result
    let whole = blocking(80 << 30, [16_384; 3]);
    assert_eq!((whole.mc, whole.nc, whole.kc, whole.nb), (16_384, 16_384, 8464, STRIP));
    let widths = |blocking: &Blocking, k| blocking.panels(k).into_iter().map(|panel| panel.len()).collect::<Vec<_>>();
    assert_eq!(widths(&whole, 16_384), [528, 1056, 2112, 4224, 8464]);
    // strips and panels of other orders take hardly more memory than their elements
    let other = blocking(80 << 30, [20_000; 3]);
    assert_eq!((widths(&other, 20_000), other.nb), (vec![640, 1280, 2576, 5168, 10_336], 1280));
    // strips consist of whole tiles of 128 columns
    assert_eq!(blocking(80 << 30, [18_000; 3]).nb, 1152);
    for k in (0..40_000).step_by(997).chain([1, 319, 639, 640, 959, 960]) {
        let widths = widths(&Blocking { kc: widest_panel(k), ..whole.clone() }, k);
        assert_eq!(widths.iter().sum::<usize>(), k);
        assert!(k < NARROWEST_PANEL || widths[0] >= NARROWEST_PANEL / 16 * 15, "{widths:?}");
        assert!(widths.iter().skip(1).zip(widths.iter().skip(2)).all(|(width, next)| 2 * width <= *next), "{widths:?}");
    }
    // panels that are as wide as the memory allows, and before them panels that double
    assert_eq!(widths(&Blocking { kc: 1504, ..whole.clone() }, 5000), [664, 1328, 1504, 1504]);
    // the last panel of a narrow product is short, because its transfers take longer than its products
    assert_eq!(blocking(80 << 30, [20_000, 1300, 20_000]).kc, LEAST_WIDEST);
    // several devices share the columns, or the rows if there are more of them
    let shared = copying(2, 80 << 30).gemm(24_000, 24_000, 24_000);
    assert_eq!((shared.mc, shared.nc), (24_000, 12_000));
    let halves = [0..12_000, 12_000..24_000].into_iter().zip(0..);
    let halves = halves.map(|(cols, device)| Part { rows: 0..24_000, cols, device: Some(device) });
    assert_eq!(shared.place, Place::Divided { parts: halves.collect() });
    let tall = copying(2, 80 << 30).gemm(30_000, 20_000, 20_000);
    assert_eq!((tall.mc, tall.nc), (15_008, 20_000));
    // within 2 GiB, the result is cut into blocks
    let cut = blocking(2 << 30, [24_000; 3]);
    assert_eq!((cut.mc, cut.nc, cut.kc), (12_000, 6000, 1600));
    // a small product is one instruction
    let small = blocking(2 << 30, [1000; 3]);
    assert_eq!([small.mc, small.nc, small.kc, small.nb], [1000; 4]);
}

/// Extents m, n and k of products, of which at least one is short. With square tiles, each command of a product with a short
/// extent would do little work.
const SHORT: [[usize; 3]; 10] = [
    [8, 8, 1_000_000],
    [1, 1, 1_000_000],
    [1_000_000, 8, 8],
    [8, 1_000_000, 8],
    [1_000_000, 1, 1],
    [20_000, 1, 20_000],
    [1, 20_000, 20_000],
    [20_000, 20_000, 1],
    [100, 3, 300_000],
    [5, 300_000, 100],
];

#[test]
fn where_an_extent_is_short_the_others_fill_the_memory() {
    for ([m, n, k], limit) in SHORT.into_iter().flat_map(|shape| (16..34).map(move |log| (shape, 1_usize << log))) {
        let Blocking { mc, nc, kc, nb, .. } = copying(1, limit).gemm(m, n, k);
        let pieces = partition(m, mc).len() * partition(n, nc).len() * partition(k, kc).len();
        // The memory limit has room for two triples of tiles of A, B and C. The plan transfers each element about once. Each
        // transfer moves at least a quarter of a triple, or a quarter of the largest tile that is ever chosen.
        let quarter = (limit / 8).min(2 * MAX_ELEMENTS) / 4;
        let most = 2 + (m * n + m * k + k * n) / quarter;
        assert!(pieces <= most, "{m}×{n}×{k} within {limit}: {pieces} pieces of {mc}×{nc}×{kc}, at most {most}");
        let set = mc * nc + mc * kc + kc * nc;
        let sets = if nb < nc { 1 } else { 2 };
        assert!(sets * 8 * set <= limit, "{m}×{n}×{k} within {limit}: {mc}×{nc}×{kc}");
    }
}

#[test]
fn a_triangle_on_one_device_is_not_cut() {
    let Blocking { nb, nc, .. } = on_one_device().trsm(1000, 5000);
    assert_eq!((nb, nc), (1000, 5000));
}

/// A device cuts its right-hand sides into four strips of 1024 to 4096 columns. If the memory has no room for them beside the triangle, the strips
/// are halved.
#[test]
fn strips_of_right_hand_sides_are_wide() {
    let strip = |memory, n| copying(1, memory).trsm(n, n).mc;
    assert_eq!([2000, 8192, 16_384, 32_768].map(|n| strip(1 << 40, n)), [1024, 2048, 4096, 4096]);
    // room for the triangle of order 16384, and for strips of 2048 columns
    assert_eq!(strip(16_384 * (18_432 + 6 * 2048) * 8, 16_384), 2048);
    assert_eq!(copying(2, 1 << 40).trsm(16_384, 16_384).mc, 2048);
    let one_of_two = Resources { shares: vec![0, 16], ..copying(2, 1 << 40) };
    assert_eq!(one_of_two.trsm(16_384, 16_384).mc, 4096);
}

#[test]
fn right_hand_sides_are_shared_out_and_tiles_of_a_triangle_fit() {
    for (n, nrhs, devices) in cases() {
        let share = nrhs.div_ceil(devices);
        let Blocking { nb, nc, kc, .. } = in_place(devices).trsm(n, nrhs);
        assert_eq!((nb, kc), (n.min(TRSM_NB), usize::MAX));
        let rounded = (share..share + 8).contains(&nc) && nc.is_multiple_of(8);
        assert!(rounded || nc == MAX_TILE && share > MAX_TILE, "{nrhs} on {devices}: {nc}");
        for resources in limits().map(|limit| copying(devices, limit)) {
            let tile = resources.copied_tile(resources.copy_limit().unwrap(), [n.min(COPIED_TRSM_NB), share, n]);
            let Blocking { mc, nb, nc, kc, .. } = resources.trsm(n, nrhs);
            if mc > 0 {
                // the device holds the triangle
                assert!(nc == nrhs && mc >= nrhs.min(STRIP), "{n}: {mc}");
                assert!(partition(n, nb).len() <= HELD_BLOCKS && nb >= n.min(TRSM_NB), "{n}: {nb}");
            } else {
                assert!(!is_held(&resources, 4 * n * (n + nrhs)), "{n}, {nrhs}");
                assert_eq!([nb, nc, kc], tile);
            }
        }
    }
}

#[test]
fn two_strips_take_the_memory_of_exchanges() {
    let (tall, wide) = ((1000, 300), (300, 1000));
    for (side, (m, n)) in [(Side::Left, tall), (Side::Right, tall), (Side::Left, wide), (Side::Right, wide)] {
        let (height, across) = if side == Side::Left { (m, n) } else { (n, m) };
        assert_eq!(on_one_device().laswp(m, n, side).nc, across);
        for (devices, limit) in NUMBERS.into_iter().flat_map(|devices| limits().map(move |limit| (devices, limit))) {
            let (nc, share) = (copying(devices, limit).laswp(m, n, side).nc, across.div_ceil(devices));
            let fits = |nc: usize| 4 * height + 2 * 8 * height * nc <= limit;
            assert!(nc == 1 || nc <= share && fits(nc), "{m}×{n} on {devices} within {limit}: {nc}");
            assert!(nc == share || !fits(nc + 1), "{m}×{n} on {devices} within {limit}: {nc}");
        }
    }
    assert_eq!(in_place(2).laswp(10, 20_000, Side::Left).nc, MAX_TILE);
}

#[test]
fn a_panel_and_two_strips_take_the_memory_of_a_factorisation() {
    for (m, n, devices) in cases().filter(|(_, _, devices)| *devices > 1) {
        for limit in limits() {
            let Blocking { nb, nc, share, place, .. } = copying(devices, limit).getrf(m, n);
            if let Place::Distributed { .. } = place {
                continue;
            }
            let fits = |nb: usize| 3 * 8 * m * nb <= limit;
            assert!((LEAST_TILE..=COPIED_NB).contains(&nb));
            // strips are wider than `nb` only if the matrix has fewer rows than `nb`
            assert!(nc == nb || m < nb && 8 * m * (m + 2 * nc) <= limit && m * nc <= MAX_ELEMENTS, "{m}×{n} within {limit}: {nc}");
            assert!(nb == LEAST_TILE || fits(nb), "{m}×{n} within {limit}: {nb}");
            assert!(nb == COPIED_NB || !fits(nb + 1), "{m}×{n} within {limit}: {nb}");
            assert!(share >= 2 * devices, "tasks to choose from");
        }
    }
}

/// A device that cannot hold the matrix holds two panels and four strips, each of which takes at most a quarter of the memory of a panel.
/// No wider panels would be fewer.
#[test]
fn two_panels_and_four_strips_take_the_memory_of_a_factorisation_on_one_device() {
    for (m, n, _) in cases() {
        for limit in limits() {
            let (order, devices) = (m.min(n), copying(1, limit));
            let Blocking { nb, nc, kc, place, .. } = devices.getrf(m, n);
            if m * n <= limit / 8 * 7 / 8 {
                assert_eq!(place, Place::Held { loads: true });
                assert_eq!(nb, PANELS_WITHOUT_LOOKAHEAD.width(order).unwrap_or(order.max(1)));
                continue;
            }
            let fits = |nb: usize| 3 * 8 * m * nb <= limit;
            assert!(nb == LEAST_TILE || (fits(nb) && kc <= (nb / 4).max(LEAST_TILE)), "{m}×{n} within {limit}: {nb}, {kc}");
            assert!(nc == nb || (fits(nc) && m * nc <= MAX_ELEMENTS), "{m}×{n} within {limit}: {nc}");
            let fewer = order.div_ceil(order.div_ceil(nb).max(2) - 1);
            assert!(nb >= order || !fits(fewer), "{m}×{n} within {limit}: panels of {nb} columns, {fewer} fit");
            assert_eq!(place, Place::Streamed);
        }
    }
}

#[test]
fn strips_of_few_rows_fill_the_memory() {
    for (m, limit) in [(1, 1 << 20), (8, 1 << 20), (8, 16 << 20), (100, 1 << 30)] {
        let (n, Blocking { nc, .. }) = (1_000_000, copying(1, limit).getrf(m, 1_000_000));
        let most = 2 + m * n / ((limit / 8).min(2 * MAX_ELEMENTS) / 4) + TASKS_PER_DEVICE;
        assert!(partition(n, nc).len() <= most, "{m} rows within {limit}: strips of {nc}, at most {most}");
    }
}

#[test]
fn panels_grow_with_the_order_and_each_device_has_strips_to_choose_from() {
    let mut before = 32;
    for n in (1..12_000).step_by(7) {
        let nb = in_place(1).getrf(n, n).nb;
        assert!(nb >= before && nb <= 256, "{n}: {nb}");
        before = nb;
        for devices in NUMBERS {
            let Blocking { nb, nc, .. } = in_place(devices).getrf(n, n);
            // each device gets four strips, unless a quarter of its columns is too narrow or too wide for a strip
            let (least, quarter, most) = (nb.min(128), n / (4 * devices), 512);
            let rounded = (quarter..quarter + 8).contains(&nc) && nc.is_multiple_of(8);
            let bounded = nc == least && quarter <= least || nc == most && quarter + 8 > most;
            assert!(rounded || bounded, "{n} on {devices}: {nc}");
        }
    }
    assert_eq!(in_place(1).getrf(12_000, 300).nb, in_place(1).getrf(300, 300).nb, "the order is that of the shorter side");
    assert_eq!(on_one_device().getrf(700, 500).nb, 500);
    assert_eq!(on_one_device().getrf(500, 700).nc, 700);
}

#[test]
fn where_there_is_nothing_to_cut_blocks_are_chosen_all_the_same() {
    for resources in [in_place(2), copying(2, 1 << 20), on_one_device()] {
        for (m, n) in [(0, 0), (0, 5), (5, 0)] {
            let (product, factorisation) = (resources.gemm(m, n, m), resources.getrf(m, n));
            assert!(product.mc <= m && product.nc <= n && factorisation.nb > 0);
            assert!(resources.trsm(m, n).nb > 0);
            assert!([Side::Left, Side::Right].iter().all(|&side| resources.laswp(m, n, side).nc > 0));
        }
    }
}

/// The memory is unlimited. One buffer must have room for a strip of right-hand sides, or for a whole matrix that LU factors.
#[test]
fn a_block_that_is_held_fits_in_a_buffer() {
    let n = 4096;
    let resources = |buffer| Resources { memory: Some(1 << 40), buffer: Some(buffer), ..in_place(1) };
    let (strip, matrix) = (8 * n * STRIP, 8 * n * n);
    let trsm = |buffer| resources(buffer).trsm(n, n).mc;
    assert_eq!([strip, strip - 1].map(trsm), [STRIP, 0]);
    let getrf = |buffer| resources(buffer).getrf(n, n).place;
    assert_eq!([matrix, matrix - 8].map(getrf), [Place::Held { loads: true }, Place::Streamed]);
    // a device with one kernel queue stores rows while it computes
    assert_eq!([4095, 4096, 16_384].map(|n| resources(1 << 40).getrf(n, n).nb), [4095, 512, 2048]);
}

/// Two devices hold a matrix that takes three quarters of their memory in narrower panels than they would with more memory, and a matrix that takes
/// five sixths also in shorter groups.
#[test]
fn panels_of_a_distributed_matrix_leave_room_for_the_matrix() {
    let each = 120_000 * 120_000 * 8 / 2;
    let sizes = |memory| {
        let blocking = Resources { shares: vec![1; 2], ..copying(2, memory) }.getrf(120_000, 120_000);
        let Place::Distributed { group_length, .. } = blocking.place else { panic!("{:?}", blocking.place) };
        (blocking.nb, group_length)
    };
    assert_eq!([1 << 40, each / 3 * 4, each / 5 * 6].map(sizes), [(2048, 4), (1024, 4), (1024, 1)]);
}

/// The blocks of a matrix with one row have one column each, whatever the width of panels is.
#[test]
fn a_matrix_with_too_many_blocks_is_not_distributed() {
    let distributed = |n| Resources { shares: vec![1; 2], ..copying(2, 1 << 40) }.distributed(1, n, None).is_some();
    assert_eq!([4096, 4097].map(distributed), [true, false]);
}

/// With enough memory, each of two devices holds at least four groups, of at most four blocks.
#[test]
fn groups_are_as_long_as_the_number_of_blocks_allows() {
    let length = |blocks: usize| {
        let resources = Resources { shares: vec![1; 2], ..copying(2, 1 << 40) };
        match resources.distributed(4096, 4096, Some(4096 / blocks)).unwrap().place {
            Place::Distributed { group_length, .. } => group_length,
            place => panic!("{place:?}"),
        }
    };
    assert_eq!([4, 8, 16, 24, 32, 64].map(length), [1, 1, 2, 3, 4, 4]);
}

#[test]
fn the_columns_of_a_distributed_matrix_fit_into_the_memory_of_each_device() {
    for (m, n) in [(1000, 1000), (700, 1300), (1300, 700), (40, 2000)] {
        for shares in [vec![1, 1], vec![100, 30], vec![1, 1, 1], vec![100, 0]] {
            let resources = |limit| Resources { shares: shares.clone(), ..copying(shares.len(), limit) };
            let is_distributed = |limit: &usize| matches!(resources(*limit).getrf(m, n).place, Place::Distributed { .. });
            // the smallest memory in which the matrix is distributed, up to a part in 64
            let limit = (8..38).flat_map(|power| (64..128).map(move |parts| parts << power)).find(is_distributed).unwrap();
            let problem = getrf::Problem::pivoted((m, n), Layout::ColMajor, DType::F64);
            let plan = getrf::plan(&problem, &resources(limit).getrf(m, n));
            // the choice of the blocks leaves an eighth of the memory free, of which the plan may use a quarter, for the pivots
            let reach = Reach { memory: limit / 32 * 29, in_place: vec![false; 3], flops: 1.0, queues: 2 };
            Schedule::new(plan, vec![reach; shares.len()]).unwrap_or_else(|short| panic!("{m}×{n} on {shares:?}: {short:?}"));
        }
    }
}

#[test]
fn panels_in_a_second_queue_are_wide_if_there_are_many() {
    let panels = Lookahead { min_order: 2048, min_nb: 1024 };
    let widths = [2047, 4096, 12_000, 16_384, 32_768, 49_152, 65_536, 131_072].map(|order| panels.width(order));
    let expected = [None, Some(1024), Some(1536), Some(2048), Some(2048), Some(3072), Some(4096), Some(4096)];
    assert_eq!(widths, expected);
    assert_eq!(Lookahead { min_nb: 5000, ..panels }.width(65_536), Some(5000));
}
