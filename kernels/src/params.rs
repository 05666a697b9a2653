//! Parameters of the kernels for products, and the constraints on these parameters.

use lapidary_core::{DType, Limits};

/// Parameters of a product by tiles in local memory. A work-group computes a tile of `mwg` × `nwg` elements of C. Each work-item
/// computes `mr` × `nr` elements of the tile. A and B pass through local memory in slices of `kwg` terms along k. Work-items read
/// rows from a slice in vectors of `vwm` elements. Local memory holds `stages` slices of each factor at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TileParams {
    /// Number of rows of C per work-group.
    pub mwg: usize,
    /// Number of columns of C per work-group.
    pub nwg: usize,
    /// Number of terms (extent along k) in a slice.
    pub kwg: usize,
    /// Number of rows of C per work-item.
    pub mr: usize,
    /// Number of columns of C per work-item.
    pub nr: usize,
    /// Number of rows in a vector: 1 for scalars, otherwise a vector length of the language.
    pub vwm: usize,
    /// Number of slices of each factor in local memory. With 2 slices, a work-group fills one while it uses the other.
    pub stages: usize,
}

impl TileParams {
    /// Parameter sets that suit many devices, the fastest first. The last set has the lowest requirements.
    const SAFE: [TileParams; 4] = [
        TileParams { mwg: 128, nwg: 64, kwg: 8, mr: 8, nr: 8, vwm: 1, stages: 2 },
        TileParams { mwg: 64, nwg: 64, kwg: 8, mr: 8, nr: 8, vwm: 1, stages: 2 },
        TileParams { mwg: 32, nwg: 32, kwg: 8, mr: 4, nr: 4, vwm: 1, stages: 2 },
        TileParams { mwg: 4, nwg: 4, kwg: 4, mr: 4, nr: 4, vwm: 1, stages: 2 },
    ];

    /// Returns the number of work-items in a work-group.
    #[must_use]
    pub fn items(&self) -> usize {
        self.local().iter().product()
    }

    /// Parameters for a product on a CPU. The slices are thin, because compilers for CPUs take minutes to compile long loops
    /// between barriers.
    pub const SMALL: TileParams = TileParams { mwg: 8, nwg: 8, kwg: 2, mr: 2, nr: 2, vwm: 1, stages: 2 };

    /// Returns two smaller tiles, the larger one first, for products that have too few large tiles
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

    /// Chooses the tile for an m×n product on a device with `units` multiprocessors: `self`, or a smaller tile if tiles like
    /// `self` would leave multiprocessors without work.
    pub(crate) fn of_product(self, dtype: DType, [m, n]: [usize; 2], units: usize) -> Self {
        let groups = |tile: &TileParams| m.div_ceil(tile.mwg) * n.div_ceil(tile.nwg);
        let is_smaller = |tile: &TileParams| tile.mwg * tile.nwg < self.mwg * self.nwg;
        let smaller = Self::smaller(dtype).into_iter().filter(is_smaller);
        smaller.fold(self, |tile, next| if groups(&tile) < units { next } else { tile })
    }

    /// Returns the number of work-items in a work-group, in each dimension.
    #[must_use]
    pub fn local(&self) -> [usize; 2] {
        [self.mwg / self.mr, self.nwg / self.nr]
    }

    /// Returns the bytes of local memory that a work-group uses.
    #[must_use]
    pub fn local_bytes(&self, dtype: DType) -> usize {
        self.stages * self.kwg * (self.mwg + self.vwm + self.nwg + 1) * dtype.size()
    }

    /// Checks that the kernel can be compiled and run.
    ///
    /// # Errors
    /// A parameter violates a constraint, which the error states with its reason.
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

    /// Chooses the fastest predefined parameter set within the limits.
    ///
    /// # Errors
    /// Even the smallest tile exceeds the limits. The error states the reason.
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

/// Parameters of a product of operands that are stored in whole vectors of 16 bytes. The kernel text unrolls the loop over a
/// slice, for devices whose compilers keep many values in registers. Every 32 consecutive work-items form a strip: `lanes_n`
/// work-items along the columns of C, and 32 / `lanes_n` along the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VectorParams {
    /// Number of rows of C per work-group.
    pub mwg: usize,
    /// Number of columns of C per work-group.
    pub nwg: usize,
    /// Number of terms (extent along k) in a slice.
    pub kwg: usize,
    /// Number of rows of C per work-item.
    pub mr: usize,
    /// Number of columns of C per work-item.
    pub nr: usize,
    /// Number of work-items of a strip along the columns.
    pub lanes_n: usize,
    /// Whether consecutive work-items of a strip alternate between two columns of the strip, instead of following one column.
    pub zigzag: bool,
    /// Whether the kernel reads operands from local memory one step before their multiplication.
    pub ahead: bool,
}

/// Number of work-items in a strip.
const STRIP: usize = 32;

impl VectorParams {
    /// Returns the parameters for products with many tiles.
    #[must_use]
    pub fn wide(dtype: DType) -> Self {
        match dtype {
            DType::F64 => VectorParams { mwg: 128, nwg: 128, kwg: 8, mr: 8, nr: 8, lanes_n: 8, zigzag: true, ahead: true },
            DType::F32 | DType::I32 => {
                VectorParams { mwg: 256, nwg: 128, kwg: 16, mr: 16, nr: 8, lanes_n: 4, zigzag: false, ahead: true }
            }
        }
    }

    /// Returns the parameters for products with fewer tiles and for devices with little local memory.
    #[must_use]
    pub fn narrow(dtype: DType) -> Self {
        match dtype {
            DType::F64 => VectorParams { mwg: 64, nwg: 64, kwg: 8, mr: 4, nr: 8, lanes_n: 4, zigzag: true, ahead: false },
            DType::F32 | DType::I32 => {
                VectorParams { mwg: 64, nwg: 64, kwg: 16, mr: 4, nr: 8, lanes_n: 4, zigzag: true, ahead: false }
            }
        }
    }

    /// Returns the number of elements in a vector.
    #[must_use]
    pub fn vector(dtype: DType) -> usize {
        16 / dtype.size()
    }

    /// Returns the number of work-items in a work-group.
    #[must_use]
    pub fn items(&self) -> usize {
        self.mwg / self.mr * (self.nwg / self.nr)
    }

    /// Returns the bytes of local memory that a work-group uses.
    #[must_use]
    pub fn local_bytes(&self, dtype: DType) -> usize {
        2 * self.kwg * (self.mwg + self.nwg) * dtype.size()
    }

    /// Returns whether the kernel can read B as it is stored, without a transposed copy. The vectors of B lie along k. The kernel
    /// stores the elements of each vector to different lines of local memory, in a shuffled order in which few accesses meet in
    /// one bank.
    #[must_use]
    pub fn transposes_b(&self, dtype: DType) -> bool {
        let (v, items) = (Self::vector(dtype), self.items());
        let along_k = self.kwg / v;
        // the shuffle permutes eight vectors, which must lie in one strip, and the columns that a work-item loads must be a
        // multiple of eight vectors apart
        8_usize.is_multiple_of(along_k) && items.is_multiple_of(8 * v * along_k) && (self.lanes_n * self.nr).is_multiple_of(8 * v)
    }

    /// Checks that the kernel can be compiled and run.
    ///
    /// # Errors
    /// A parameter violates a constraint, which the error states with its reason.
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

/// Parameters of a product of packed panels without barriers. Each work-item holds `nr` columns of C in registers, with `mv`
/// vectors of `vw` rows in each column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PanelParams {
    /// Number of vectors that a work-item holds in each column of C.
    pub mv: usize,
    /// Number of elements in a vector: 2, 4, 8 or 16.
    pub vw: usize,
    /// Number of columns of C per work-item.
    pub nr: usize,
    /// Number of work-items in a work-group. A device that runs work-items in lockstep needs more than one.
    pub group: usize,
}

impl PanelParams {
    /// Returns the number of rows in a panel of A.
    #[must_use]
    pub fn mr(&self) -> usize {
        self.mv * self.vw
    }

    /// Chooses parameters that fit the vector registers of a CPU with vectors of `bits` bits. A CPU with vectors of 512 bits or
    /// more has 32 vector registers, and other CPUs have 16.
    #[must_use]
    pub fn choose(dtype: DType, bits: usize) -> Self {
        let lanes = (bits / 8 / dtype.size()).clamp(2, 16);
        PanelParams { mv: 3, vw: lanes, nr: if bits >= 512 { 8 } else { 4 }, group: 1 }
    }

    /// Checks that the kernel can be compiled.
    ///
    /// # Errors
    /// A parameter violates a constraint, which the error states.
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
            assert_eq!([wide, narrow].map(|params| params.transposes_b(dtype)), [true; 2]);
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
            // the tile stays the same, because the tiles of `smaller` are not smaller than `SAFE[3]`
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
