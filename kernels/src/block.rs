//! Parameters of the kernel `gemm_block`, a product whose operands take one of several ways through the memories of a device.
//!
//! The family follows the models of memory of auto-tuners for OpenCL: each operand passes through local memory, or each work-item
//! reads the operand from global memory itself. No operand is copied or padded first.

use lapidary_core::{DType, Limits};

use crate::params::parameters;

parameters! {
/// Parameters of the kernel `gemm_block`. A work-group computes a tile of `mwg` × `nwg` elements of C, and each work-item `mr` × `nr`
/// elements of the tile in registers.
///
/// | `memory` | A | B |
/// |---|---|---|
/// | 0 | global memory, term by term | global memory, term by term |
/// | 1 | local memory | local memory |
/// | 2 | local memory | global memory, term by term |
/// | 3 | global memory, `kr` terms at a time | global memory, `kr` terms at a time |
/// | 4 | local memory, `kr` terms at a time | local memory, `kr` terms at a time |
/// | 5 | global memory, term by term | local memory |
///
/// With `memory` 4, work-items also load the next slice into registers while they use a slice.
pub struct BlockParams {
    /// Number of rows of C per work-group.
    pub mwg: usize,
    /// Number of columns of C per work-group.
    pub nwg: usize,
    /// Number of terms (extent along k) in a slice of an operand in local memory. Without local memory, the value is `kr`.
    pub kwg: usize,
    /// Number of rows of C per work-item.
    pub mr: usize,
    /// Number of columns of C per work-item.
    pub nr: usize,
    /// Number of terms that each pass of the innermost loop multiplies.
    pub kr: usize,
    /// Memories from which work-items read the operands, see the table.
    pub memory: usize,
    /// Number of slices of an operand in local memory. With 2 slices, a work-group fills one while it uses the other. Without
    /// local memory, the value is 1.
    pub stages: usize,
    /// Number of elements of B, or of vectors of A, between the lines of a slice in local memory.
    pub pad: usize,
    /// Number of rows in a vector: 1, 2 or 4. If C has fewer rows, the product uses single elements.
    pub vw: usize,
    /// Order of the products of one term: 0 row by row, 1 column by column.
    pub order: usize,
    /// Origin of a work-item's position: 0 the index of the group and the local index, 1 the global index.
    pub indexing: usize,
    /// Place of m, n and k: 0 arguments of the kernel, 1 constants in the text. With 1, each size needs a program of its own.
    pub inline: usize,
    /// Number of columns of tiles that the work-groups visit together, row of tiles by row of tiles. With 1, they visit one column of
    /// tiles after the other.
    pub raster: usize,
    /// Number of parts into which the terms of a product are divided, 1 for no division. Each work-group adds the terms of one part
    /// into scratch memory, and a second kernel adds the parts.
    pub split: usize,
    /// Whether the lines of a slice are permuted, if neighbouring work-items store to different lines: slices of A if A is transposed,
    /// and slices of B if B is not. No two of these stores then use the same bank of local memory at once, although the lines have no
    /// padding.
    pub swizzle: bool = 0,
}
}

/// Returns the largest of `split`, half of `split`, a quarter of it and so on that is at most `slices`, but at least 1.
pub(crate) fn parts(split: usize, slices: usize) -> usize {
    let mut halves = std::iter::successors(Some(split), |&parts| (parts > 1).then_some(parts / 2));
    halves.find(|&parts| parts <= slices).unwrap_or(1)
}

/// Maximum number of products that a pass of the innermost loop adds, so that compilers accept the text in reasonable time.
const MAX_PRODUCTS_PER_PASS: usize = 2048;

/// Bytes of one access to all banks of local memory: 32 banks of 4 bytes, as on most GPUs. Work-items that access different elements
/// within as many bytes must not meet in a bank.
const BANK_BYTES: usize = 128;

/// The permutation of the elements of the lines of a slice ([`BlockParams::permutation`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permutation {
    /// Number of successive lines that fill all banks together, and therefore have the same permutation.
    every: usize,
    /// Number of neighbouring elements of one line that are stored at the same time.
    step: usize,
    /// Number of elements of a line.
    line: usize,
}

impl Permutation {
    /// Returns the number in the text that permutes line `p`, where `p` is the text of a number.
    pub fn of_line(self, p: &str) -> String {
        let every = if self.every > 1 { format!(" / {}u", self.every) } else { String::new() };
        let step = if self.step > 1 { format!(" * {}u", self.step) } else { String::new() };
        format!("{p}{every}{step} % {}u", self.line)
    }
}

impl BlockParams {
    /// Parameters of the plainest text, with small tiles that every device can compute. Other sets of parameters vary this one.
    pub const PLAIN: BlockParams = BlockParams {
        mwg: 8,
        nwg: 4,
        kwg: 2,
        mr: 4,
        nr: 2,
        kr: 2,
        memory: 0,
        stages: 1,
        pad: 0,
        vw: 1,
        order: 0,
        indexing: 0,
        inline: 0,
        raster: 1,
        split: 1,
        swizzle: false,
    };

    /// Returns the number of work-items in a work-group, in each dimension.
    #[must_use]
    pub fn local(&self) -> [usize; 2] {
        [self.mwg / self.mr, self.nwg / self.nr]
    }

    /// Returns the number of work-items in a work-group.
    #[must_use]
    pub fn items(&self) -> usize {
        self.local().iter().product()
    }

    /// Returns the number of parts of a product with `k` terms: the largest of `split`, half of `split`, a quarter of it and so on for
    /// which every part has at least one slice.
    #[must_use]
    pub fn parts(&self, k: usize) -> usize {
        parts(self.split, k.div_ceil(self.kwg))
    }

    /// Returns whether A, and whether B, passes through local memory.
    fn in_local_memory(&self) -> [bool; 2] {
        [matches!(self.memory, 1 | 2 | 4), matches!(self.memory, 1 | 4 | 5)]
    }

    /// Returns how a line of a slice is permuted: element j of line p lies at place j ^ (p / `every` · `step` % `line`). A line has `line`
    /// elements of `bytes` bytes.
    pub(crate) fn permutation(&self, line: usize, bytes: usize) -> Permutation {
        let together = (BANK_BYTES / bytes).max(1);
        Permutation { every: (together / line).max(1), step: (together / self.kwg).max(1), line }
    }

    /// Returns the bytes of local memory that a work-group uses.
    #[must_use]
    pub fn local_bytes(&self, dtype: DType) -> usize {
        let [a, b] = self.in_local_memory();
        let line_a = if a { self.mwg + self.pad * self.vw } else { 0 };
        let line_b = if b { self.nwg + self.pad } else { 0 };
        self.stages * self.kwg * (line_a + line_b) * dtype.size()
    }

    /// Checks that the kernel can be compiled and run.
    ///
    /// # Errors
    /// A parameter violates a constraint, which the error states with its reason.
    pub fn check(&self, dtype: DType, limits: &Limits) -> Result<(), String> {
        let BlockParams { mwg, nwg, kwg, mr, nr, kr, memory, stages, pad, vw, order, indexing, inline, raster, split, swizzle } =
            *self;
        if [mwg, nwg, kwg, mr, nr, kr, vw, raster, split].contains(&0) {
            return Err("every extent is at least one".to_owned());
        }
        let has_slices = self.in_local_memory().contains(&true);
        let rules = [
            (memory <= 5, "memory is one of the models in the table"),
            ([order, indexing, inline].iter().all(|&flag| flag <= 1), "order, indexing and inline choose between two texts"),
            (mwg % mr == 0 && nwg % nr == 0, "mr divides mwg and nr divides nwg: work-items share the tile equally"),
            ([1, 2, 4].contains(&vw) && mr % vw == 0, "vw is a length of vectors and divides mr: work-items hold whole vectors"),
            (kwg % kr == 0, "kr divides kwg: the innermost loop multiplies a slice in equal passes"),
            (has_slices || kwg == kr, "kwg is kr without local memory: there are no slices"),
            ([1, 2].contains(&stages), "stages is one or two: there is one slice to use and one to fill"),
            (pad <= 1, "pad is at most one: a second element distributes a line over no more banks"),
            (has_slices || (stages == 1 && pad == 0), "stages and pad stay the smallest without local memory: there are no slices"),
            (!swizzle || has_slices, "swizzle is zero without local memory: there are no slices"),
            (!swizzle || pad == 0, "swizzle takes the place of pad: permuted lines need no padding"),
            (
                !swizzle || [mwg / vw, nwg, kwg].iter().all(|extent| extent.is_power_of_two()),
                "with swizzle, mwg/vw, nwg and kwg are powers of two: the numbers of a line are permuted by bits",
            ),
            (mr * nr * kr <= MAX_PRODUCTS_PER_PASS, "mr·nr·kr products are a text that compilers accept in reasonable time"),
            (self.items() <= limits.work_group, "(mwg/mr)·(nwg/nr) work-items fit a work-group of the device"),
            (self.local_bytes(dtype) <= limits.local_memory, "the slices of A and B fit local memory"),
        ];
        rules.iter().find(|(met, _)| !met).map_or(Ok(()), |(_, reason)| Err((*reason).to_owned()))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::program::Program;

    pub(crate) const PARAMS: BlockParams =
        BlockParams { mwg: 32, nwg: 16, kwg: 8, memory: 1, stages: 2, pad: 1, vw: 2, ..BlockParams::PLAIN };

    /// Returns programs with every model of memory, number of slices, length of vectors and transposition. The other parameters take
    /// each of their values with each model of memory.
    pub(crate) fn variants(dtype: DType) -> Vec<Program> {
        let mut programs = Vec::new();
        for memory in 0..=5 {
            for stages in [1, 2] {
                for vw in [1, 2, 4] {
                    for flags in 0..4 {
                        let has_slices = ![0, 3].contains(&memory);
                        let other = programs.len() / 3;
                        let bit = |at: usize| other >> at & 1;
                        let (kwg, pad) = if has_slices { (8, bit(0)) } else { (2, 0) };
                        let shape = BlockParams { kwg, memory, stages, pad, vw, ..PARAMS };
                        let params = BlockParams {
                            order: bit(1),
                            indexing: bit(2),
                            inline: bit(3),
                            raster: 1 + 3 * bit(4),
                            split: 1 + 2 * bit(0),
                            swizzle: has_slices && pad == 0 && bit(2) == 1,
                            ..shape
                        };
                        let sizes = (params.inline == 1).then_some([37, 29, 53]);
                        if has_slices || stages == 1 {
                            let (trans_a, trans_b) = (flags & 1 == 1, flags & 2 == 2);
                            programs.push(Program::GemmBlock { dtype, params, trans_a, trans_b, sizes });
                        }
                    }
                }
            }
        }
        programs
    }

    #[test]
    fn each_constraint_says_why() {
        let limits = crate::limits(64, 16 << 10);
        assert_eq!((PARAMS.check(DType::F64, &limits), PARAMS.local_bytes(DType::F64)), (Ok(()), 2 * 8 * (34 + 17) * 8));
        let direct = BlockParams { memory: 0, kwg: 2, stages: 1, pad: 0, ..PARAMS };
        assert_eq!((direct.check(DType::F64, &limits), direct.local_bytes(DType::F64)), (Ok(()), 0));
        let refused = [
            (BlockParams { kr: 0, ..PARAMS }, "every extent"),
            (BlockParams { split: 0, ..PARAMS }, "every extent"),
            (BlockParams { memory: 6, ..PARAMS }, "models"),
            (BlockParams { order: 2, ..PARAMS }, "two texts"),
            (BlockParams { mwg: 34, ..PARAMS }, "mr divides mwg"),
            (BlockParams { vw: 8, mr: 8, ..PARAMS }, "length of vectors"),
            (BlockParams { vw: 4, mr: 2, ..PARAMS }, "length of vectors"),
            (BlockParams { kr: 3, ..PARAMS }, "kr divides kwg"),
            (BlockParams { kwg: 4, ..direct }, "kwg is kr"),
            (BlockParams { stages: 3, ..PARAMS }, "stages is one or two"),
            (BlockParams { pad: 2, ..PARAMS }, "at most one"),
            (BlockParams { swizzle: true, ..direct }, "swizzle is zero"),
            (BlockParams { swizzle: true, ..PARAMS }, "place of pad"),
            (BlockParams { swizzle: true, pad: 0, nwg: 24, ..PARAMS }, "powers of two"),
            (BlockParams { stages: 2, ..direct }, "stay the smallest"),
            (BlockParams { mwg: 64, nwg: 64, kwg: 16, kr: 16, mr: 16, nr: 16, ..PARAMS }, "mr·nr·kr"),
            (BlockParams { nwg: 32, ..PARAMS }, "fit a work-group"),
            (BlockParams { kwg: 32, ..PARAMS }, "fit local memory"),
        ];
        for (params, reason) in refused {
            let refusal = params.check(DType::F64, &limits).unwrap_err();
            assert!(refusal.contains(reason), "{params:?}: {refusal}");
            // reasons are counted, so that they do not contain the values of a set of parameters
            assert!(!refusal.contains(|c: char| c.is_ascii_digit()), "{refusal}");
        }
    }

    /// Neighbouring work-items that store different terms of one column meet in no bank of local memory, without padding.
    #[test]
    fn permuted_lines_have_no_bank_conflicts() {
        for bytes in [4, 8, 16, 32] {
            for [line, kwg] in [1, 2, 4, 8, 16, 32, 64, 128].into_iter().flat_map(|line| [1, 2, 8, 16, 64].map(|kwg| [line, kwg])) {
                let Permutation { every, step, .. } = BlockParams { kwg, ..PARAMS }.permutation(line, bytes);
                let place = |move_number: usize| {
                    let (j, p) = (move_number / kwg, move_number % kwg);
                    let swizzled = j ^ (p / every * step % line);
                    assert!(swizzled < line, "the element stays in its line");
                    p * line + swizzled
                };
                let mut places: Vec<usize> = (0..line * kwg).map(place).collect();
                for together in places.chunks(BANK_BYTES / bytes) {
                    let banks: std::collections::BTreeSet<usize> = together.iter().map(|at| at % (BANK_BYTES / bytes)).collect();
                    assert_eq!(banks.len(), together.len(), "{bytes} bytes, {line} elements in each of {kwg} lines");
                }
                places.sort_unstable();
                assert!(places.iter().copied().eq(0..line * kwg), "each place has one element");
            }
        }
        assert_eq!(Permutation { every: 2, step: 4, line: 16 }.of_line("p"), "p / 2u * 4u % 16u");
    }
}
