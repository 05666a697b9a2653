//! Parameters of the kernel `gemm_mma`, which copies the next slices to local memory while it multiplies. In double precision, the matrix
//! units of a GPU multiply. In single precision, the work-items or the matrix units multiply (`unit`).

use lapidary_core::{Accuracy, DType, Limits};

use crate::params::{VectorParams, parameters};

parameters! {
/// Parameters of the kernel `gemm_mma`. A work-group computes a tile of `mwg` × `nwg` elements of C, and each sub-group of 32 work-items
/// `mw` × `nw` elements of the tile.
pub struct MmaParams {
    /// Number of rows of C per work-group.
    pub mwg: usize,
    /// Number of columns of C per work-group.
    pub nwg: usize,
    /// Number of terms (extent along k) in a slice of an operand in local memory.
    pub kwg: usize,
    /// Number of rows of C per sub-group.
    pub mw: usize,
    /// Number of columns of C per sub-group.
    pub nw: usize,
    /// Number of slices of each operand in local memory. A sub-group uses one slice while the others are copied from global memory.
    pub stages: usize,
    /// Number of rows of tiles that the work-groups visit together, column of tiles by column of tiles.
    pub raster: usize,
    /// Number of parts into which the terms of a product are divided, 1 for no division.
    pub split: usize,
    /// Number of terms of an instruction: in double precision 8 for `mma.m16n8k8` (compute capability 9.0) and 4 for `mma.m8n8k4` (8.0). In
    /// single precision 1 for multiply-adds, and 16 for `mma.m16n8k16` of factors in two parts of half precision, whose products have the
    /// accuracy [`Accuracy::Normwise`].
    pub unit: usize,
    /// Whether the kernel computes products of all sizes and operands of all alignments. If not set, the kernel is used only for
    /// products of whole tiles of aligned operands.
    pub guarded: bool,
    /// Whether the kernel is used only for operands whose columns begin at multiples of 16 bytes. Copies of single elements are slower, so
    /// that other tiles are the fastest for other operands.
    pub aligned: bool = 0,
    /// Whether the kernel has PTX instructions. If not set, OpenCL C takes their place and the kernel is slow, for tests.
    pub ptx: bool = 1,
}
}

/// Number of work-items in a sub-group.
pub(crate) const SUB_GROUP: usize = 32;
/// Maximum bytes of local memory of a work-group on devices of compute capability 9.0. Drivers report less for OpenCL (48 KiB), but
/// take texts that declare more.
pub(crate) const MAX_LOCAL_BYTES: usize = 227 << 10;
/// Maximum number of bytes of C that a work-item holds: half of the 255 registers of 32 bits.
const MAX_BYTES: usize = 512;
/// Maximum number of unused elements between the lines, or the terms, of a slice.
const LONGEST_GAP: usize = 4;
/// Maximum number of rows of tiles that work-groups visit together.
const MAX_RASTER: usize = 1000;
/// The copies keep the order in which chunks are shuffled if a pass copies a multiple of this number of lines.
const SHUFFLED_LINES: usize = 8;
/// Number of terms in a pass of copies along the terms in single precision. A sub-group copies 8 terms of 4 lines,
/// one element to each of the 32 banks.
const TERMS_OF_PASS: usize = 8;

/// Returns whether the matrix units multiply, and not the work-items.
pub(crate) fn multiplies_by_units(dtype: DType, unit: usize) -> bool {
    dtype == DType::F64 || unit > 1
}

impl MmaParams {
    /// Returns the number of work-items in a work-group.
    #[must_use]
    pub fn items(&self) -> usize {
        self.mwg / self.mw * (self.nwg / self.nw) * SUB_GROUP
    }

    /// Returns the bytes of local memory that a work-group uses at most.
    #[must_use]
    pub fn local_bytes(&self, dtype: DType) -> usize {
        let MmaParams { mwg, nwg, kwg, stages, .. } = *self;
        let slice = match multiplies_by_units(dtype, self.unit) {
            true => (kwg + LONGEST_GAP) * (mwg + nwg),
            false => kwg * (mwg + nwg + 2 * LONGEST_GAP),
        };
        stages * slice * dtype.size()
    }

    /// Returns the number of parts of a product with `k` terms: the largest of `split`, half of `split`, a quarter of it and so on for
    /// which every part has at least one slice.
    #[must_use]
    pub fn parts(&self, k: usize) -> usize {
        crate::block::parts(self.split, k.div_ceil(self.kwg))
    }

    /// Checks that the kernel can be compiled and run.
    ///
    /// # Errors
    /// A parameter violates a constraint, which the error states with its reason.
    pub fn check(&self, dtype: DType, limits: &Limits) -> Result<(), String> {
        let MmaParams { mwg, nwg, kwg, mw, nw, stages, raster, split, .. } = *self;
        if [mwg, nwg, kwg, mw, nw, raster, split].contains(&0) {
            return Err("every extent is at least 1".to_owned());
        }
        let by_units = multiplies_by_units(dtype, self.unit);
        let of_kind = if by_units { self.rules_of_units(dtype) } else { self.rules_of_items() };
        let held = mw * nw / SUB_GROUP * dtype.size();
        let rules = [
            (mwg % mw == 0 && nwg % nw == 0, "mw divides mwg and nw divides nwg: sub-groups cover the tile"),
            (held <= MAX_BYTES, "the elements of a work-item fit half of the registers"),
            (raster <= MAX_RASTER, "raster is at most a thousand rows of tiles, so that numbers of tiles have 32 bits"),
            (stages >= 2, "there are several stages: one slice is used while others are copied"),
            (split.is_power_of_two(), "split is a power of two: fewer terms have half as many parts"),
        ];
        let fitting = [
            (self.items() <= limits.work_group, "(mwg/mw)·(nwg/nw) sub-groups fit a work-group of the device"),
            (self.local_bytes(dtype) <= MAX_LOCAL_BYTES, "the slices fit the local memory of a multiprocessor"),
        ];
        rules.iter().chain(&of_kind).chain(&fitting).find(|(met, _)| !met).map_or(Ok(()), |(_, reason)| Err((*reason).to_owned()))
    }

    /// Returns the accuracy of the products that the kernel computes in `dtype`.
    #[must_use]
    pub fn accuracy(&self, dtype: DType) -> Accuracy {
        if dtype == DType::F32 && multiplies_by_units(dtype, self.unit) { Accuracy::Normwise } else { Accuracy::Componentwise }
    }

    /// Returns the conditions if matrix units multiply, each with its reason.
    fn rules_of_units(&self, dtype: DType) -> Vec<(bool, &'static str)> {
        let MmaParams { mwg, nwg, kwg, mw, nw, unit, .. } = *self;
        let by_terms =
            |v| [mwg, nwg].iter().all(|&lines| self.divides(kwg, lines, v)) && self.of_pass(kwg, v).is_multiple_of(SHUFFLED_LINES);
        let by_lines = |v, extent| self.divides(extent, kwg, v) && self.of_pass(extent, v).is_power_of_two();
        let copies = self.copies(dtype);
        // number of elements in the 128 bytes of all banks of local memory, among which the chunks of a line are permuted
        let banks = 128 / dtype.size();
        let has_unit = if dtype == DType::F64 { [8, 4].contains(&unit) } else { unit == 16 };
        vec![
            (mw % banks == 0 && nw % banks == 0, "mw and nw are multiples of 16 lines, in single precision of 32"),
            (kwg % banks == 0, "kwg is a multiple of 16 terms, in single precision of 32"),
            (has_unit, "unit is 8 or 4, in single precision 16: the number of terms of an instruction of matrix units"),
            (
                copies.iter().all(|&v| by_terms(v)),
                "the work-items copy lines of kwg elements in equal passes of a multiple of eight lines",
            ),
            (
                copies.iter().all(|&v| by_lines(v, mwg) && by_lines(v, nwg)),
                "the work-items copy lines of mwg and of nwg elements in equal passes of a power of two lines",
            ),
        ]
    }

    /// Returns the conditions if the work-items multiply, each with its reason.
    fn rules_of_items(&self) -> Vec<(bool, &'static str)> {
        let MmaParams { mwg, nwg, kwg, mw, nw, unit, .. } = *self;
        vec![
            (
                mw % 32 == 0 && nw % 16 == 0,
                "mw is a multiple of 32 and nw of 16: 8 x 4 work-items hold vectors of 4 lines of each operand",
            ),
            (kwg % TERMS_OF_PASS == 0, "kwg is a multiple of 8, the number of terms in a pass of copies along the terms"),
            (unit == 1, "unit is 1 for a multiply-add, or 16 for matrix units"),
            (
                [mwg, nwg].iter().all(|&lines| self.divides(TERMS_OF_PASS, lines, 1)),
                "the work-items copy 8 terms of mwg and of nwg lines in equal passes",
            ),
            (
                self.copies(DType::F32).iter().all(|&v| [mwg, nwg].iter().all(|&extent| self.divides(extent, kwg, v))),
                "the work-items copy lines of mwg and of nwg elements in equal passes",
            ),
        ]
    }

    /// Returns the numbers of elements that a copy may move: a vector, and one element if the operands may have any alignment.
    fn copies(&self, dtype: DType) -> Vec<usize> {
        let vector = VectorParams::vector(dtype);
        if self.guarded && !self.aligned { vec![1, vector] } else { vec![vector] }
    }

    /// Returns the number of lines of `extent` contiguous elements in a pass that copies `v` elements per work-item.
    fn of_pass(&self, extent: usize, v: usize) -> usize {
        self.items() * v / extent
    }

    /// Returns whether passes of whole lines of `extent` contiguous elements copy `lines` lines.
    fn divides(&self, extent: usize, lines: usize, v: usize) -> bool {
        let of_pass = self.of_pass(extent, v);
        (self.items() * v).is_multiple_of(extent) && of_pass > 0 && lines.is_multiple_of(of_pass)
    }
}

/// The product that the kernel `mma_probe` with instructions of `unit` terms computes: its input, and the output of a device that has the
/// instructions.
#[must_use]
pub fn probe_product(unit: usize) -> (Vec<f64>, Vec<f64>) {
    let [lines_p, lines_q, terms] = [16, 8, unit.max(8)];
    // small integers, whose products are exact, in no regular order
    let x: Vec<f64> = (0..(lines_p + lines_q) * terms).map(|e| ((e * e + 3 * e) % 17) as f64 - 8.0).collect();
    // the kernel leaves out the last element of each factor
    let copied = |e: usize| if e + 1 == lines_p * terms || e + 1 == x.len() { 0.0 } else { x[e] };
    let line = |l: usize| (l * terms..(l + 1) * terms).map(copied);
    let dot = |i: usize, j: usize| line(i).zip(line(lines_p + j)).map(|(p, q)| p * q).sum();
    let y = (0..lines_p * lines_q).map(|e| dot(e % lines_p, e / lines_p)).collect();
    (x, y)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_refused_with_the_reason() {
        let limits = crate::limits(256, 0);
        let good = MmaParams {
            mwg: 128,
            nwg: 64,
            kwg: 16,
            mw: 32,
            nw: 32,
            stages: 3,
            raster: 8,
            split: 1,
            unit: 8,
            guarded: true,
            aligned: false,
            ptx: true,
        };
        assert_eq!(good.check(DType::F64, &limits), Ok(()));
        assert_eq!(good.items(), 256);
        assert_eq!([1, 16, 17, 48].map(|k| MmaParams { split: 4, ..good }.parts(k)), [1, 1, 2, 2]);
        let refused = [
            (MmaParams { mwg: 0, ..good }, "at least 1"),
            (MmaParams { mw: 48, ..good }, "cover the tile"),
            (MmaParams { nw: 8, ..good }, "multiples of 16 lines"),
            (MmaParams { mw: 128, nw: 64, ..good }, "registers"),
            (MmaParams { kwg: 8, ..good }, "multiple of 16 terms"),
            (MmaParams { stages: 1, ..good }, "several stages"),
            (MmaParams { split: 3, ..good }, "power of two"),
            (MmaParams { unit: 16, ..good }, "8 or 4"),
            (MmaParams { mwg: 64, mw: 64, kwg: 32, ..good }, "a multiple of eight lines"),
            (MmaParams { mwg: 64, nwg: 96, kwg: 48, guarded: false, ..good }, "passes of a power of two"),
            // aligned operands would be copied in passes of more lines than a slice has
            (MmaParams { mwg: 32, nwg: 128, mw: 16, nw: 16, ..good }, "a multiple of eight lines"),
            (MmaParams { raster: 1001, ..good }, "a thousand rows"),
            (MmaParams { mwg: 256, ..good }, "fit a work-group"),
            (MmaParams { stages: 10, ..good }, "local memory"),
        ];
        for (params, reason) in refused {
            let refusal = params.check(DType::F64, &limits).unwrap_err();
            assert!(refusal.contains(reason), "{params:?}: {refusal}");
        }
        // of aligned operands, the kernel copies pairs of elements, so that a pass has twice as many lines
        let pairs = MmaParams { mwg: 64, mw: 64, nw: 32, kwg: 16, ..good };
        for params in [MmaParams { guarded: false, ..pairs }, MmaParams { aligned: true, ..pairs }] {
            assert_eq!(params.check(DType::F64, &limits), Ok(()));
        }
    }

    #[test]
    fn parameters_in_single_precision_are_refused_with_the_reason() {
        let limits = crate::limits(256, 0);
        let good = MmaParams {
            mwg: 128,
            nwg: 128,
            kwg: 8,
            mw: 64,
            nw: 32,
            stages: 4,
            raster: 8,
            split: 1,
            unit: 1,
            guarded: true,
            aligned: false,
            ptx: true,
        };
        assert_eq!(good.check(DType::F32, &limits), Ok(()));
        assert!(good.check(DType::F64, &limits).is_err());
        assert_eq!(MmaParams { nwg: 256, nw: 64, ..good }.check(DType::F32, &limits), Ok(()));
        let refused = [
            (MmaParams { nwg: 8, nw: 8, ..good }, "vectors of 4 lines"),
            (MmaParams { mwg: 48, mw: 48, ..good }, "vectors of 4 lines"),
            (MmaParams { mw: 128, nw: 64, ..good }, "registers"),
            (MmaParams { kwg: 12, ..good }, "multiple of 8"),
            (MmaParams { unit: 0, ..good }, "multiply-add"),
            (MmaParams { unit: 16, ..good }, "in single precision of 32"),
            (MmaParams { unit: 8, kwg: 32, ..good }, "in single precision 16"),
            (MmaParams { mwg: 96, nwg: 64, mw: 32, ..good }, "8 terms of mwg"),
            // a pass would copy 16 terms of 64 lines
            (MmaParams { mwg: 64, nw: 16, ..good }, "lines of mwg and of nwg elements"),
            // without vectors, the work-items do not reach the end of a line
            (MmaParams { mwg: 64, nwg: 256, nw: 64, ..good }, "lines of mwg and of nwg elements"),
            (MmaParams { nwg: 256, kwg: 16, ..good }, "fit a work-group"),
            (MmaParams { stages: 30, ..good }, "local memory"),
        ];
        for (params, reason) in refused {
            let refusal = params.check(DType::F32, &limits).unwrap_err();
            assert!(refusal.contains(reason), "{params:?}: {refusal}");
        }
    }
}
