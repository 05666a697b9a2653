//! The parameters of the kernels and what bounds them.

use lapidary_core::{DType, Limits};

/// A product through local memory: a tile of `mwg` × `nwg` elements for each
/// work-group, of `mr` × `nr` for each work-item, in slices of `kwg` along k that
/// are read in vectors of `vwm` rows; `stages` of them are in local memory at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TileParams {
    /// Rows of C for each work-group.
    pub mwg: usize,
    /// Columns of C for each work-group.
    pub nwg: usize,
    /// Depth of a slice.
    pub kwg: usize,
    /// Rows of C for each work-item.
    pub mr: usize,
    /// Columns of C for each work-item.
    pub nr: usize,
    /// Rows of a vector: 1 is none, else a vector length of the language.
    pub vwm: usize,
    /// Slices in local memory: with 2, one is filled while the other is used.
    pub stages: usize,
}

impl TileParams {
    /// Safe choices, the fastest first. The last one fits every device.
    const SAFE: [TileParams; 4] = [
        TileParams { mwg: 128, nwg: 64, kwg: 8, mr: 8, nr: 8, vwm: 1, stages: 2 },
        TileParams { mwg: 64, nwg: 64, kwg: 8, mr: 8, nr: 8, vwm: 1, stages: 2 },
        TileParams { mwg: 32, nwg: 32, kwg: 8, mr: 4, nr: 4, vwm: 1, stages: 2 },
        TileParams { mwg: 4, nwg: 4, kwg: 4, mr: 4, nr: 4, vwm: 1, stages: 2 },
    ];

    /// Work-items of a work-group.
    #[must_use]
    pub fn items(&self) -> usize {
        self.local().iter().product()
    }

    /// For a processor, whose compiler takes minutes over long loops between barriers: slices are thin.
    pub const SMALL: TileParams = TileParams { mwg: 8, nwg: 8, kwg: 2, mr: 2, nr: 2, vwm: 1, stages: 2 };

    /// Tiles for products that have too few large ones, the larger of the two first
    /// (bench/results/opencl/2026-11-24-h100-small-tiles.txt).
    #[must_use]
    pub fn smaller(dtype: DType) -> [TileParams; 2] {
        let middle = TileParams { mwg: 32, nwg: 32, kwg: 16, mr: 4, nr: 4, vwm: 1, stages: 2 };
        let small = TileParams { mwg: 16, nwg: 16, kwg: 32, mr: 2, nr: 2, vwm: 1, stages: 2 };
        match dtype {
            DType::F64 => [middle, small],
            DType::F32 | DType::I32 => [TileParams { nr: 2, ..middle }; 2],
        }
    }

    /// The tile for a product of m×n on a device of so many multiprocessors: this one, or a smaller one if it leaves
    /// some without work.
    pub(crate) fn of_product(self, dtype: DType, [m, n]: [usize; 2], units: usize) -> Self {
        let groups = |tile: &TileParams| m.div_ceil(tile.mwg) * n.div_ceil(tile.nwg);
        let is_smaller = |tile: &TileParams| tile.mwg * tile.nwg < self.mwg * self.nwg;
        let smaller = Self::smaller(dtype).into_iter().filter(is_smaller);
        smaller.fold(self, |tile, next| if groups(&tile) < units { next } else { tile })
    }

    /// Work-items of a work-group in each dimension.
    #[must_use]
    pub fn local(&self) -> [usize; 2] {
        [self.mwg / self.mr, self.nwg / self.nr]
    }

    /// Bytes of local memory.
    #[must_use]
    pub fn local_bytes(&self, dtype: DType) -> usize {
        self.stages * self.kwg * (self.mwg + self.vwm + self.nwg + 1) * dtype.size()
    }

    /// Whether the kernel can be made and run.
    ///
    /// # Errors
    /// The constraint that is not met, and why it is one.
    pub fn check(&self, dtype: DType, limits: &Limits) -> Result<(), String> {
        let TileParams { mwg, nwg, kwg, mr, nr, vwm, stages } = *self;
        if [mwg, nwg, kwg, mr, nr, vwm].contains(&0) {
            return Err("every extent is at least 1".to_owned());
        }
        let rules = [
            (mwg % mr == 0 && nwg % nr == 0, "mr divides mwg and nr divides nwg: work-items share the tile equally"),
            (
                (mwg * kwg) % self.items().max(1) == 0 && (nwg * kwg) % self.items().max(1) == 0,
                "the work-items divide mwg·kwg and nwg·kwg: they fetch a slice in equal parts",
            ),
            (
                [1, 2, 4, 8].contains(&vwm) && mr % vwm == 0,
                "vwm is 1 or a length of vectors and divides mr: rows are read in vectors",
            ),
            ([1, 2].contains(&stages), "stages is 1 or 2: there is one slice to use and one to fill"),
            (self.items() <= limits.work_group, "(mwg/mr)·(nwg/nr) work-items fit a work-group of the device"),
            (self.local_bytes(dtype) <= limits.local_memory, "the slices of A and B fit local memory"),
        ];
        rules.iter().find(|(met, _)| !met).map_or(Ok(()), |(_, reason)| Err((*reason).to_owned()))
    }

    /// The fastest safe choice within the limits.
    ///
    /// # Errors
    /// Why even the smallest one does not fit.
    pub fn choose(dtype: DType, limits: &Limits) -> Result<Self, String> {
        let mut refusal = String::new();
        for params in Self::SAFE {
            match params.check(dtype, limits) {
                Ok(()) => return Ok(params),
                Err(reason) => refusal = reason,
            }
        }
        Err(refusal)
    }
}

/// A product of operands in whole vectors of 16 bytes, with the loop over a slice
/// written out: for devices whose compilers keep many values in registers. Work-items
/// form strips of 32, `lanes_n` of them along the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorParams {
    /// Rows of C for each work-group.
    pub mwg: usize,
    /// Columns of C for each work-group.
    pub nwg: usize,
    /// Depth of a slice.
    pub kwg: usize,
    /// Rows of C for each work-item.
    pub mr: usize,
    /// Columns of C for each work-item.
    pub nr: usize,
    /// Work-items of a strip along the columns.
    pub lanes_n: usize,
    /// Whether neighbours of a strip lie in zigzag and not in lines.
    pub zigzag: bool,
    /// Whether operands are read from local memory a step before they are multiplied.
    pub ahead: bool,
}

/// Work-items of a strip.
const STRIP: usize = 32;

impl VectorParams {
    /// For products with many tiles.
    #[must_use]
    pub fn wide(dtype: DType) -> Self {
        match dtype {
            DType::F64 => VectorParams { mwg: 128, nwg: 128, kwg: 8, mr: 8, nr: 8, lanes_n: 8, zigzag: true, ahead: true },
            DType::F32 | DType::I32 => {
                VectorParams { mwg: 256, nwg: 128, kwg: 16, mr: 16, nr: 8, lanes_n: 4, zigzag: false, ahead: true }
            }
        }
    }

    /// For products with fewer, and for devices with little local memory.
    #[must_use]
    pub fn narrow(dtype: DType) -> Self {
        match dtype {
            DType::F64 => VectorParams { mwg: 64, nwg: 64, kwg: 8, mr: 4, nr: 8, lanes_n: 4, zigzag: true, ahead: false },
            DType::F32 | DType::I32 => {
                VectorParams { mwg: 64, nwg: 64, kwg: 16, mr: 4, nr: 8, lanes_n: 4, zigzag: true, ahead: false }
            }
        }
    }

    /// Elements of a vector.
    #[must_use]
    pub fn vector(dtype: DType) -> usize {
        16 / dtype.size()
    }

    /// Work-items of a work-group.
    #[must_use]
    pub fn items(&self) -> usize {
        self.mwg / self.mr * (self.nwg / self.nr)
    }

    /// Bytes of local memory.
    #[must_use]
    pub fn local_bytes(&self, dtype: DType) -> usize {
        2 * self.kwg * (self.mwg + self.nwg) * dtype.size()
    }

    /// Whether the kernel can read B as it is stored, without a transposed copy. The vectors of B lie along k. The kernel stores
    /// their elements to lines of local memory along the columns, shuffled so that few accesses meet in one bank.
    #[must_use]
    pub fn turns_b(&self, dtype: DType) -> bool {
        let (v, items) = (Self::vector(dtype), self.items());
        let along_k = self.kwg / v;
        // the shuffle permutes eight vectors: they must lie in one strip, and the columns that an item loads must be whole groups
        // of them apart
        8_usize.is_multiple_of(along_k) && items.is_multiple_of(8 * v * along_k) && (self.lanes_n * self.nr).is_multiple_of(8 * v)
    }

    /// Whether the kernel can be made and run.
    ///
    /// # Errors
    /// The constraint that is not met, and why it is one.
    pub fn check(&self, dtype: DType, limits: &Limits) -> Result<(), String> {
        let VectorParams { mwg, nwg, kwg, mr, nr, lanes_n, .. } = *self;
        if [mwg, nwg, kwg, mr, nr, lanes_n].contains(&0) {
            return Err("every extent is at least 1".to_owned());
        }
        let (v, items) = (Self::vector(dtype), self.items());
        let lanes_m = STRIP / lanes_n;
        let rules = [
            (mr % v == 0 && nr % v == 0 && kwg % v == 0, "a vector divides mr, nr and kwg: all moves in vectors"),
            (
                lanes_n.is_power_of_two() && lanes_m * lanes_n == STRIP && lanes_m > 1,
                "lanes_n is a power of two below 32: lanes are told apart by bits",
            ),
            (
                mwg % (lanes_m * mr) == 0 && nwg % (lanes_n * nr) == 0,
                "strips of 32 work-items, lanes_n of them along the columns, cover the tile",
            ),
            (
                items % (mwg / v) == 0 && items % (nwg / v) == 0 && (mwg / v * kwg) % items == 0 && (nwg / v * kwg) % items == 0,
                "the work-items fetch whole lines of a slice in equal parts",
            ),
            (items <= limits.work_group, "(mwg/mr)·(nwg/nr) work-items fit a work-group of the device"),
            (self.local_bytes(dtype) <= limits.local_memory, "two slices of A and B fit local memory"),
        ];
        rules.iter().find(|(met, _)| !met).map_or(Ok(()), |(_, reason)| Err((*reason).to_owned()))
    }
}

/// A product of packed panels without barriers: `mv` vectors of `vw` rows and
/// `nr` columns of C in the registers of each work-item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PanelParams {
    /// Vectors of rows.
    pub mv: usize,
    /// Elements of a vector: 1 is none, else a vector length of the language.
    pub vw: usize,
    /// Columns.
    pub nr: usize,
    /// Work-items of a group; a device that runs them in lanes wants several.
    pub group: usize,
}

impl PanelParams {
    /// Rows of a panel of A.
    #[must_use]
    pub fn mr(&self) -> usize {
        self.mv * self.vw
    }

    /// What fits the registers of a processor with vectors of `bits` bits:
    /// 32 registers of 512 bits, or 16 of fewer.
    #[must_use]
    pub fn choose(dtype: DType, bits: usize) -> Self {
        let lanes = (bits / 8 / dtype.size()).clamp(2, 16);
        PanelParams { mv: 3, vw: lanes, nr: if bits >= 512 { 8 } else { 4 }, group: 1 }
    }

    /// Whether the kernel can be made.
    ///
    /// # Errors
    /// The constraint that is not met.
    pub fn check(&self) -> Result<(), String> {
        if ![2, 4, 8, 16].contains(&self.vw) {
            return Err("vw is a vector length of OpenCL C: 2, 4, 8 or 16".to_owned());
        }
        if [self.mv, self.nr, self.group].contains(&0) { Err("every extent is at least 1".to_owned()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_fit_the_limits_that_they_are_made_for() {
        let (desktop, browser) = (
            Limits { work_group: 1024, local_memory: 48 << 10, ..Limits::default() },
            Limits { work_group: 256, local_memory: 16 << 10, ..Limits::default() },
        );
        for dtype in [DType::F32, DType::F64] {
            let (wide, narrow) = (VectorParams::wide(dtype), VectorParams::narrow(dtype));
            assert_eq!((wide.check(dtype, &desktop), narrow.check(dtype, &browser)), (Ok(()), Ok(())));
            assert!(wide.check(dtype, &browser).unwrap_err().contains("local memory"));
            assert_eq!([wide, narrow].map(|params| params.turns_b(dtype)), [true; 2]);
            assert!(VectorParams { lanes_n: 3, ..narrow }.check(dtype, &desktop).unwrap_err().contains("power of two"));
            assert!(VectorParams { mwg: 72, ..narrow }.check(dtype, &desktop).is_err());
        }
    }

    #[test]
    fn a_choice_meets_the_limits_and_no_faster_one_does() {
        let h100 = Limits { work_group: 1024, local_memory: 48 << 10, ..Limits::default() };
        assert_eq!(TileParams::choose(DType::F64, &h100), Ok(TileParams::SAFE[0]));
        let small = Limits { work_group: 64, local_memory: 16 << 10, ..Limits::default() };
        let chosen = TileParams::choose(DType::F64, &small).unwrap();
        assert_eq!(chosen, TileParams::SAFE[2], "{}", TileParams::SAFE[1].check(DType::F64, &small).unwrap_err());
        assert_eq!(
            TileParams::choose(DType::F32, &Limits { work_group: 1, local_memory: 1024, ..Limits::default() }),
            Ok(TileParams::SAFE[3])
        );
    }

    #[test]
    fn tiles_are_as_large_as_keeps_every_multiprocessor_at_work() {
        let large = TileParams::SAFE[0];
        for (dtype, [middle, small]) in [DType::F64, DType::F32].map(|dtype| (dtype, TileParams::smaller(dtype))) {
            let tile = |m, n| large.of_product(dtype, [m, n], 132);
            assert_eq!([tile(2048, 2048), tile(1056 * 16, 64)], [large; 2]);
            assert_eq!([tile(1024, 1024), tile(32 * 132, 1)], [middle; 2]);
            assert_eq!([tile(64, 64), tile(1, 1)], [small; 2]);
            assert_eq!(large.of_product(dtype, [1, 1], 1), large);
            // a device with room for little has small tiles already
            assert_eq!(TileParams::SAFE[3].of_product(dtype, [1, 1], 132), TileParams::SAFE[3]);
        }
    }

    #[test]
    fn a_refusal_says_why() {
        let limits = Limits { work_group: 256, local_memory: 32 << 10, ..Limits::default() };
        let odd = TileParams { mwg: 10, nwg: 8, kwg: 8, mr: 4, nr: 4, vwm: 1, stages: 2 };
        assert!(odd.check(DType::F32, &limits).unwrap_err().contains("divides"));
        let none = TileParams { mr: 0, ..odd };
        assert!(none.check(DType::F32, &limits).unwrap_err().contains("at least 1"));
        assert!(
            TileParams::choose(DType::F64, &Limits { work_group: 1, local_memory: 8, ..Limits::default() })
                .unwrap_err()
                .contains("local memory")
        );
        assert!(PanelParams { mv: 1, vw: 3, nr: 1, group: 1 }.check().is_err());
    }
}
