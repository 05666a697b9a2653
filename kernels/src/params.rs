//! The parameters of the kernels and what bounds them.

use lapidary_core::DType;

/// What a device allows a kernel to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Work-items of a work-group.
    pub work_group: usize,
    /// Bytes of local memory of a work-group.
    pub local_memory: usize,
    /// Work-groups of a launch in each dimension.
    pub groups: usize,
}

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

    /// For a processor, whose compiler takes minutes over long loops between barriers.
    pub(crate) const SMALL: TileParams = TileParams { mwg: 8, nwg: 8, kwg: 4, mr: 2, nr: 2, vwm: 1, stages: 2 };

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
    fn a_choice_meets_the_limits_and_no_faster_one_does() {
        let h100 = Limits { work_group: 1024, local_memory: 48 << 10, groups: 65_535 };
        assert_eq!(TileParams::choose(DType::F64, &h100), Ok(TileParams::SAFE[0]));
        let small = Limits { work_group: 64, local_memory: 16 << 10, groups: 65_535 };
        let chosen = TileParams::choose(DType::F64, &small).unwrap();
        assert_eq!(chosen, TileParams::SAFE[2], "{}", TileParams::SAFE[1].check(DType::F64, &small).unwrap_err());
        assert_eq!(
            TileParams::choose(DType::F32, &Limits { work_group: 1, local_memory: 1024, groups: 65_535 }),
            Ok(TileParams::SAFE[3])
        );
    }

    #[test]
    fn a_refusal_says_why() {
        let limits = Limits { work_group: 256, local_memory: 32 << 10, groups: 65_535 };
        let odd = TileParams { mwg: 10, nwg: 8, kwg: 8, mr: 4, nr: 4, vwm: 1, stages: 2 };
        assert!(odd.check(DType::F32, &limits).unwrap_err().contains("divides"));
        let none = TileParams { mr: 0, ..odd };
        assert!(none.check(DType::F32, &limits).unwrap_err().contains("at least 1"));
        assert!(
            TileParams::choose(DType::F64, &Limits { work_group: 1, local_memory: 8, groups: 65_535 })
                .unwrap_err()
                .contains("local memory")
        );
        assert!(PanelParams { mv: 1, vw: 3, nr: 1, group: 1 }.check().is_err());
    }
}
