//! Block sizes, which determine how an algorithm cuts a problem into blocks. Block sizes are chosen from the sizes of the problem
//! and from the devices of the call.

mod groups;
mod parts;
mod solves;

use std::ops::Range;

use crate::enums::Side;
use crate::plan::footprint;
use crate::scalar::DType;

pub(crate) use groups::{Group, distributed_blocks, groups};
pub use parts::Part;

/// Block sizes of one call of a routine. The function `plan` of each algorithm names the block sizes that the algorithm uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// Number of rows of a block of the result, or number of right-hand sides of a strip, for which a device solves at a time that holds the
    /// triangle or works in place. 0 for other triangular solves.
    pub mc: usize,
    /// Number of columns of a block of the result, number of right-hand sides of a task, or number of columns of a strip that LU updates.
    pub nc: usize,
    /// Inner extent of one product of tiles: the number of columns of the left tile.
    pub kc: usize,
    /// Width of a strip of a product, order of a diagonal block of a triangular solve, or number of columns of a panel of LU.
    pub nb: usize,
    /// Maximum number of tasks into which the update of one step of LU is divided. More tasks balance the load of the devices
    /// better, but fewer tasks load the panel less often.
    pub share: usize,
    /// Where the matrix of a call lies during the call, and which devices work on it.
    pub place: Place,
}

/// Where the matrix of a call lies during the call, and which devices work on it. LU uses the places `Streamed`, `Distributed` and `Held`;
/// products and triangular solves use the place `Divided`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The matrix stays in host memory. The devices of the call load and store strips of it, or work on it in place.
    Shared,
    /// The matrix stays in host memory, as for `Shared`. Each device computes its own parts of it first.
    Divided {
        /// The parts of the matrix, in the order of the plan.
        parts: Vec<Part>,
    },
    /// The matrix stays in host memory. The only device of the call has memory for two panels: it factors one panel while it loads the next.
    Streamed,
    /// Each device of the call holds some columns of the matrix during the whole call.
    Distributed {
        /// The relative numbers of operations of the devices. At least one of them is positive.
        shares: Vec<u32>,
        /// Number of consecutive blocks of columns in a group, which one device holds.
        group_length: usize,
    },
    /// The only device of the call holds the whole matrix during the whole call.
    Held {
        /// `true` if the caller's matrix lies in host memory: the device loads the matrix and stores the factors. `false` if the caller's
        /// matrix already lies in the memory of the device.
        loads: bool,
    },
}

impl Blocking {
    fn of_product(mc: usize, nc: usize, kc: usize, nb: usize) -> Self {
        Blocking { mc, nc, kc, nb, share: usize::MAX, place: Place::Shared }
    }

    /// Cuts the inner extent `k` of a product into panels of at most `kc` columns of A.
    ///
    /// If a block of C has several strips, each panel is about twice as wide as the panel before it, up to `kc` columns. The device then starts to
    /// compute after the transfer of a narrow panel, computes with one panel while it loads the next panel, and spends most of its time on products
    /// with many terms, which are faster because they access the elements of C less often.
    pub(crate) fn panels(&self, k: usize) -> Vec<Range<usize>> {
        if !self.has_strips() {
            return partition(k, self.kc);
        }
        let (mut panels, mut end) = (Vec::new(), k);
        let mut push = |end: &mut usize, width: usize| {
            panels.push(*end - width..*end);
            *end -= width;
        };
        while widest_panel(end) > self.kc {
            push(&mut end, self.kc);
        }
        let mut width = widest_panel(end);
        for _ in 1..doubling_panels(end) {
            push(&mut end, width);
            // rounded down, so that the panel takes no more memory than half of the panel after it
            width = width / 2 / 16 * 16;
        }
        if end > 0 {
            let first = end;
            push(&mut end, first);
        }
        panels.reverse();
        panels
    }

    /// Number of panels that [`Self::panels`] returns for the same `k`.
    pub(crate) fn panel_count(&self, k: usize) -> usize {
        if self.has_strips() { self.panels(k).len() } else { block_count(k, self.kc) }
    }

    /// Whether a block of C of a product has several strips.
    fn has_strips(&self) -> bool {
        self.nb < self.nc
    }
}

/// When and how LU on one device works in panels, each of which one kernel queue factors while another queue runs an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookahead {
    /// Minimum order of a matrix. For smaller matrices, panels cost more time than their overlap with updates saves.
    pub min_order: usize,
    /// Minimum number of columns of a panel.
    pub min_nb: usize,
}

impl Lookahead {
    /// Maximum numbers of panels, each with panels up to the corresponding [`MAX_WIDTH`](Self::MAX_WIDTH): the width is the larger of the two.
    /// With more panels, the updates are products with few terms.
    const MAX_PANELS: [usize; 2] = [8, 16];
    /// Maximum numbers of columns of a panel, unless the minimum is larger. The factorisation of a panel is slower for each
    /// operation than an update, and its share of all operations grows with the width of the panels. LU of order 32768 took 5 to 8 % less time
    /// with 16 panels of 2048 columns than with 8 of 4096. LU of order 65536 in `f32` took as long with panels
    /// of 2048 columns as with 4096 (`docs/performance.md`).
    const MAX_WIDTH: [usize; 2] = [2048, 4096];
    /// Number of columns of which a width above the minimum is a multiple, so that panels consist of whole tiles of products.
    const UNIT: usize = 128;

    /// Returns the number of columns of a panel of a matrix of this order; `None` if LU does not work in panels.
    #[must_use]
    pub fn width(&self, order: usize) -> Option<usize> {
        let limits = Self::MAX_PANELS.into_iter().zip(Self::MAX_WIDTH);
        let least = limits.map(|(panels, widest)| order.div_ceil(panels).min(widest)).fold(0, usize::max);
        let width = if least <= self.min_nb { self.min_nb } else { least.next_multiple_of(Self::UNIT) };
        (order >= self.min_order).then_some(width)
    }
}

/// Cuts `0..n` into blocks of length `r`. If `n` is no multiple of `r`, the last two blocks are shorter than `r` and about
/// equally long, so that no block is very short and performance is a smooth function of `n`. This way to cut a range is known as
/// the NIISI partition.
#[must_use]
pub fn partition(n: usize, r: usize) -> Vec<Range<usize>> {
    let r = r.clamp(1, n.max(1));
    let regular = if n.is_multiple_of(r) { n / r } else { n / r - 1 };
    let mut blocks: Vec<_> = (0..regular).map(|i| i * r..(i + 1) * r).collect();
    let (start, rest) = (regular * r, n - regular * r);
    let middle = start + half(rest).min(r);
    blocks.extend([start..middle, middle..n].into_iter().filter(|block| !block.is_empty()));
    blocks
}

/// Cuts a range into blocks of length `r`, as [`partition`] does.
pub(crate) fn blocks(range: &Range<usize>, r: usize) -> Vec<Range<usize>> {
    partition(range.len(), r).into_iter().map(|block| range.start + block.start..range.start + block.end).collect()
}

/// Number of blocks that [`partition`] returns for the same arguments.
#[must_use]
pub fn block_count(n: usize, r: usize) -> usize {
    n.div_ceil(r.clamp(1, n.max(1)))
}

/// Maximum number of blocks along one side of a problem whose commands are counted block by block. If a problem has more blocks,
/// their number serves as a lower bound of the number of commands. No plan with more blocks is ever made.
pub(crate) const MAX_COUNTED_BLOCKS: usize = 1 << 20;

/// Half of `n`, rounded up. If the half is at least 128, it is rounded up to a multiple of 16, so that kernels work on whole
/// vectors.
fn half(n: usize) -> usize {
    let half = n.div_ceil(2);
    if half >= 128 { half.next_multiple_of(16) } else { half }
}

/// The facts about the devices of a call that determine the block sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// The share of each device in the work of a call, in proportion to its speed. A device computes its share of a result, or holds columns of a
    /// matrix whose updates take its share of the operations. The share is 0 if the device is too slow. At least one share is positive.
    pub shares: Vec<u32>,
    /// The smallest memory limit, in bytes, of the devices that copy. `None` if all devices work in place.
    pub memory: Option<usize>,
    /// The smallest maximum size of a buffer, in bytes, of the devices that copy. `None` if all devices work in place.
    pub buffer: Option<usize>,
    /// For each device of the call, the smallest extent of the parts into which its share of a result is divided ([`Place::Divided`]), or
    /// `usize::MAX` for a single part. Small parts correct shares that do not match the speeds of the devices, but each part loads other
    /// operands again.
    pub tails: Vec<usize>,
    /// Size of one element in bytes.
    pub element: usize,
    /// Whether every device of the call copies the first matrix of the plan, so that none works on it in place.
    pub all_copy: bool,
    /// Whether all matrices of the call lie on one device. This device then works on the problem as a whole.
    pub resident: bool,
    /// How the only device of the call factors a matrix in panels. `None` if the device factors no matrix in panels, or if there are several
    /// devices.
    pub lookahead: Option<Lookahead>,
}

/// Smallest order of a tile that is ever chosen, unless the matrix itself is smaller. A device whose memory cannot hold tiles of
/// the smallest order is refused.
const LEAST_TILE: usize = 8;
/// Largest order of a square tile. Larger square tiles are not faster.
const MAX_TILE: usize = 4096;
/// Maximum number of elements of a tile that has a side longer than [`MAX_TILE`]. The transfer of a tile with `MAX_ELEMENTS`
/// elements takes about a hundred times as long as a kernel launch.
const MAX_ELEMENTS: usize = 1 << 20;

/// About the minimum number of columns of the first panel of A of a product whose block of C stays on a device.
const NARROWEST_PANEL: usize = 320;
/// Minimum number of columns of a strip of a block of C.
const STRIP: usize = 1024;
/// Number of columns of the widest panel of a product below which a smaller block of C is better than narrower panels.
const LEAST_WIDEST: usize = 2048;
/// Smallest side of a block of C that stays on a device while panels pass through it, if the memory has no room for the whole of C.
const LEAST_HELD: usize = 2048;

/// The order of a tile with number `step` in the ascending list of allowed orders: all numbers below 64, then the multiples of
/// 16.
fn order(step: usize) -> usize {
    if step < 64 { step } else { (step - 60).saturating_mul(16) }
}

/// Halves the larger of two numbers, as [`half`] does.
fn halve_longer(mc: &mut usize, nc: &mut usize) {
    let side = if *mc > *nc { mc } else { nc };
    *side = half(*side);
}

impl Resources {
    /// The resources of `devices` devices of one model, whose matrices have elements of `element` bytes and lie in host memory. The devices
    /// copy, and each has `limit` bytes of memory; if no limit is given, they work in place.
    #[must_use]
    pub fn alike(devices: usize, limit: Option<usize>, element: usize) -> Self {
        let (shares, tails) = (vec![1; devices], vec![usize::MAX; devices]);
        let (memory, buffer, all_copy) = (limit, limit, limit.is_some());
        Resources { shares, memory, buffer, tails, element, all_copy, resident: false, lookahead: None }
    }

    /// Number of devices of the call.
    #[must_use]
    pub fn devices(&self) -> usize {
        self.shares.len()
    }

    /// Returns the indices of the devices whose share is not zero.
    fn with_shares(&self) -> impl Iterator<Item = usize> {
        (0..self.devices()).filter(|&device| self.shares[device] > 0)
    }

    /// The memory limit of the devices that copy, or twice their maximum buffer size if that is less, in bytes. One buffer has room for half of
    /// these bytes. `None` if all devices work in place.
    #[must_use]
    pub fn copy_limit(&self) -> Option<usize> {
        Some(self.memory?.min(self.buffer?.saturating_mul(2)))
    }

    /// Extents m, n and k of the tiles of a product, for a device that copies. The extents are equal, and as large as possible so
    /// that two triples of tiles of A, B and C fit in `limit` bytes: the device computes with one triple while it transfers the
    /// other triple. Tiles of equal extents load no operand much more often than another operand. No extent of a tile exceeds the
    /// corresponding element of `extents`, the extents of the whole product. If one extent of the product is short, the other two
    /// extents of the tiles grow, so that the tiles still fill the memory and the plan has few commands.
    fn copied_tile(&self, limit: usize, extents: [usize; 3]) -> [usize; 3] {
        let clipped = |order: usize| extents.map(|extent| extent.min(order));
        let fits = |order: usize| {
            let [m, n, k] = clipped(order);
            let faces = [(m, n), (m, k), (k, n)].map(|(rows, cols)| rows.saturating_mul(cols));
            let largest = faces.into_iter().fold(0, usize::max);
            let taken = faces.map(|face| footprint(face, largest)).into_iter().fold(0, usize::saturating_add);
            taken <= limit / self.element / 2 && (order <= MAX_TILE || largest <= MAX_ELEMENTS)
        };
        let longest = extents.into_iter().fold(LEAST_TILE, usize::max);
        let (mut least, mut most) = (LEAST_TILE, longest.saturating_add(1));
        while most - least > 1 {
            let middle = least.midpoint(most);
            let side = if fits(order(middle)) { &mut least } else { &mut most };
            *side = middle;
        }
        clipped(order(least))
    }

    /// Block sizes of the product of an m×k matrix and a k×n matrix.
    #[must_use]
    pub fn gemm(&self, m: usize, n: usize, k: usize) -> Blocking {
        let (mut mc, mut nc) = (m, n);
        if self.resident {
            return Blocking::of_product(mc, nc, usize::MAX, nc);
        }
        if let (true, Some(limit)) = (self.devices() > 1, self.copy_limit())
            && let Some(blocking) = self.divided_product(limit, [m, n, k])
        {
            return blocking;
        }
        let most = if self.copy_limit().is_none() { MAX_TILE } else { usize::MAX };
        let blocks = |mc: usize, nc: usize| m.div_ceil(mc.max(1)).saturating_mul(n.div_ceil(nc.max(1)));
        // halve the longer side of the block until every device has a block and no block is too large
        while (blocks(mc, nc) < self.devices() || mc.max(nc) > most) && mc.max(nc) > 2 * LEAST_TILE {
            halve_longer(&mut mc, &mut nc);
        }
        let Some(limit) = self.copy_limit() else { return Blocking::of_product(mc, nc, usize::MAX, nc) };
        self.held_block(limit, [mc, nc, k], false).unwrap_or_else(|| {
            let [mc, nc, kc] = self.copied_tile(limit, [mc, nc, k]);
            Blocking::of_product(mc, nc, kc, nc)
        })
    }

    /// Block sizes of a product for a device that keeps a block of C, of at most m×n elements, while panels of A and B pass through it.
    /// `None` if the memory suffices for small blocks only, for which square tiles of A, B and C transfer no more elements. `has_successor`
    /// states that the device computes further blocks, also if this block has m×n elements.
    fn held_block(&self, limit: usize, [m, n, k]: [usize; 3], has_successor: bool) -> Option<Blocking> {
        let (mut mc, mut nc) = (m, n);
        while mc.saturating_mul(nc) > self.memory.unwrap_or(limit) / self.element {
            if mc.min(nc) < LEAST_HELD {
                return None;
            }
            halve_longer(&mut mc, &mut nc);
        }
        loop {
            // Takes the widest panels that fit. If the block is narrow, transfers take longer than products, and the products with a wide
            // last panel would start late.
            let widest = widest_panel(k).min(LEAST_WIDEST.max(widest_panel(mc.min(nc))));
            let widths = std::iter::successors(Some(widest), |&width| (width > LEAST_WIDEST).then(|| half(width)));
            let blockings = widths.map(|kc| Blocking::of_product(mc, nc, kc, strip_width(mc, kc)));
            // a device that computes several blocks loads strips of the next block before it has stored the last strips of a block
            let blocks = if (mc, nc) == (m, n) && !has_successor { 1 } else { 2 };
            let is_usable = |blocking: &Blocking| blocking.has_strips() && block_count(k, blocking.kc) <= MAX_COUNTED_BLOCKS;
            if let Some(blocking) = blockings.take_while(is_usable).find(|blocking| self.fits_held(limit, blocking, k, blocks)) {
                return Some(blocking);
            }
            halve_longer(&mut mc, &mut nc);
            if mc.min(nc) < LEAST_HELD {
                return None;
            }
        }
    }

    /// Whether the memory of a device has room for `blocks` blocks of C, the last panel of A, two other panels of A and of B, and two strips of
    /// the last panel of B.
    fn fits_held(&self, limit: usize, blocking: &Blocking, k: usize, blocks: usize) -> bool {
        let Blocking { mc, nc, nb, .. } = *blocking;
        let mut widths: Vec<usize> = blocking.panels(k).into_iter().map(|panel| panel.len()).collect();
        let last = widths.pop().unwrap_or(0);
        let others = widths.iter().rev().take(2).flat_map(|&width| [(1, mc, width), (1, width, nc)]);
        let registers = [(blocks * block_count(nc, nb), mc, nb), (1, mc, last), (2, last, nb)].into_iter().chain(others);
        let sizes: Vec<_> = registers.map(|(count, rows, cols)| (count, rows.saturating_mul(cols))).collect();
        let largest = sizes.iter().map(|(_, size)| *size).fold(0, usize::max);
        let taken =
            sizes.iter().map(|&(count, size)| count.saturating_mul(footprint(size, largest))).fold(0, usize::saturating_add);
        let fits = |elements: usize, limit: usize| elements <= limit / self.element;
        fits(taken, self.memory.unwrap_or(limit)) && fits(largest, limit / 2)
    }

    /// Block sizes of exchanges in an m×n matrix: exchanges of rows if `side` is left, and of columns if `side` is right. A strip
    /// is a range of columns with all their elements (left) or a range of rows with all their elements (right). Two strips fit in
    /// the memory of a device.
    #[must_use]
    pub fn laswp(&self, m: usize, n: usize, side: Side) -> Blocking {
        let (height, across) = if side == Side::Left { (m, n) } else { (n, m) };
        if self.resident {
            return Blocking { mc: m, nc: across.max(1), kc: 0, nb: 0, share: usize::MAX, place: Place::Shared };
        }
        let pivots = height.saturating_mul(DType::I32.size());
        let fits = self
            .copy_limit()
            .map_or(MAX_TILE, |limit| limit.saturating_sub(pivots) / self.element / height.max(1).saturating_mul(2));
        let nc = across.div_ceil(self.devices()).min(fits).clamp(1, MAX_TILE.max(longest_strip(height)));
        Blocking { mc: m, nc, kc: 0, nb: 0, share: usize::MAX, place: Place::Shared }
    }

    /// Whether the call has a single device, and this device copies and can hold a matrix of `elements` elements in one buffer. An eighth
    /// of the memory is left for the scratch memory of kernels.
    fn holds(&self, elements: usize) -> bool {
        let fits = |limit: Option<usize>| limit.is_some_and(|limit| elements <= limit / self.element);
        self.devices() == 1 && fits(self.memory.map(|memory| memory / 8 * 7)) && fits(self.buffer)
    }

    /// Block sizes of LU of a matrix of `m` rows that is larger than the memory of the only device. The memory has room for two panels, one that
    /// is factored and one that is loaded, and for four strips of the panels that pass through. All panels have about the same width.
    fn streamed(&self, limit: usize, m: usize, order: usize) -> Blocking {
        let columns = |bytes: usize| bytes / self.element / m.max(1);
        let most = (columns(self.memory.unwrap_or(limit)) / 3).min(columns(self.buffer.unwrap_or(limit))).max(LEAST_TILE);
        let nb = order.div_ceil(order.div_ceil(most).max(1)).next_multiple_of(LEAST_TILE).clamp(LEAST_TILE, most);
        let kc = (nb / 4).clamp(LEAST_TILE, MAX_TERMS);
        // the columns beyond the order of the matrix are only updated, so that more of them may be loaded together
        let nc = most.min(longest_strip(m)).max(nb);
        Blocking { mc: m, nc, kc, nb, share: 1, place: Place::Streamed }
    }

    /// Block sizes of the LU factorisation of an m×n matrix.
    #[must_use]
    pub fn getrf(&self, m: usize, n: usize) -> Blocking {
        // if the memory of the device holds the whole matrix, every element moves only once in each direction
        if self.resident || self.holds(m.saturating_mul(n)) {
            let order = m.min(n);
            let panels = self.lookahead.or((!self.resident).then_some(PANELS_WITHOUT_LOOKAHEAD));
            let nb = panels.and_then(|panels| panels.width(order)).unwrap_or(order.max(1));
            return Blocking { mc: m, nc: n, kc: n, nb, share: usize::MAX, place: Place::Held { loads: !self.resident } };
        }
        if let (1, Some(limit)) = (self.devices(), self.copy_limit()) {
            return self.streamed(limit, m, m.min(n));
        }
        if let Some(blocking) = self.distributed(m, n, None) {
            return blocking;
        }
        let (nb, nc, share) = match self.copy_limit() {
            None => {
                let nb = panel_width(m.min(n));
                (nb, (n / (4 * self.devices())).next_multiple_of(8).clamp(nb.min(128), 512), usize::MAX)
            }
            Some(limit) => {
                // the memory of a device holds a panel and two strips of the trailing matrix: one strip is updated while the
                // other strip is transferred
                let columns = limit / self.element / m.max(1);
                let nb = (columns / 3).clamp(LEAST_TILE, COPIED_NB);
                let share = TASKS_PER_DEVICE * self.devices();
                // a panel has at most m columns; if m is small, the strips can use the memory that the panel leaves free
                let strip = if m < nb { columns.saturating_sub(m) / 2 } else { nb };
                (nb, strip.min(longest_strip(m)).min(n.div_ceil(share)).max(nb), share)
            }
        };
        Blocking { mc: m, nc, kc: nb, nb, share, place: Place::Shared }
    }
}

/// Number of panels into which `k` columns are cut, if each panel is twice as wide as the panel before it and the first has about
/// [`NARROWEST_PANEL`] columns or more.
fn doubling_panels(k: usize) -> u32 {
    (k / NARROWEST_PANEL + 1).ilog2().max(1)
}

/// Number of columns of the last of these panels: 2^(p - 1) of 2^p - 1 parts of the columns, if there are p panels.
fn widest_panel(k: usize) -> usize {
    match doubling_panels(k) {
        1 => k,
        panels => (k.div_ceil((1 << panels) - 1) << (panels - 1)).next_multiple_of(16),
    }
}

/// Number of columns of a strip of a block of C with `mc` rows. If possible, the number is `kc`, the number of columns of the widest panel of
/// A, halved several times and rounded down to a multiple of [`Lookahead::UNIT`]. The strip then takes at most half, a quarter or an eighth of
/// the memory of that panel, which are sizes of registers ([`footprint`]), and consists of whole tiles of products.
fn strip_width(mc: usize, kc: usize) -> usize {
    let least = STRIP.max(longest_strip(mc));
    let halves = std::iter::successors(Some(kc), |&width| Some(width / 2 / Lookahead::UNIT * Lookahead::UNIT));
    halves.take_while(|&width| width >= least).last().unwrap_or(least)
}

/// Number of columns of a strip of `height` rows above which a wider strip brings no further gain: the strip has [`MAX_ELEMENTS`]
/// elements.
fn longest_strip(height: usize) -> usize {
    MAX_ELEMENTS / height.max(1)
}

/// The panels of a host matrix on a device that factors no panel beside an update. The device loads and stores parts of the matrix while it
/// computes.
const PANELS_WITHOUT_LOOKAHEAD: Lookahead = Lookahead { min_order: 4096, min_nb: 512 };
/// Maximum number of columns of a strip of a panel of LU that passes through a device. A product with this number of terms accesses each
/// element of its result once for 2048 terms.
const MAX_TERMS: usize = 2048;
/// Maximum number of columns of a panel of a matrix that devices copy part by part: `4·P/B` for a device that computes P
/// floating-point operations per second and copies B bytes per second. The value of `COPIED_NB` suits a memory bus of a few GB/s
/// for each core.
const COPIED_NB: usize = 768;

/// Number of update tasks of a step of LU for each device. With several tasks per device, a slow device, or a
/// device that has spent time on the next panel, can run fewer tasks than the other devices.
const TASKS_PER_DEVICE: usize = 4;

/// Number of columns of a panel, for LU on devices that work in place. The panel is wide enough for a fast product in the update,
/// and narrow enough that its factorisation takes no longer than the update that runs at the same time.
fn panel_width(n: usize) -> usize {
    match n {
        0..512 => 32,
        512..2048 => 64,
        2048..6000 => 128,
        _ => 256,
    }
}

#[cfg(test)]
mod tests;
