//! Parameters of the products of the CPU backend. The backend has no generated kernels; only the sizes of its cache blocks are entries of
//! the database.

use lapidary_core::DType;

use crate::params::parameters;

parameters! {
/// Maximum sizes of the cache blocks of a product on the CPU. One thread packs blocks of A and B for itself in a small product. In a
/// larger product, all threads of a team share the packed blocks. Blocks are made nearly equal, so that most of them are smaller.
pub struct CpuBlocks {
    /// Number of terms (extent along k) of a block. A few columns of B with this many terms stay in the first-level cache.
    pub kc: usize,
    /// Number of rows of A, with `kc` terms each, that one thread uses at a time. They stay in the second-level cache.
    pub mc: usize,
    /// Number of columns of B in a block of one thread.
    pub nc: usize,
    /// Number of rows of A, with `kc` terms each, in a block that a team shares. A part of the last-level cache holds the block.
    pub team_mc: usize,
    /// Number of columns of B in a block that a team shares.
    pub team_nc: usize,
}
}

/// Maximum size of a packed block in bytes.
const MAX_BLOCK_BYTES: usize = 128 << 20;

impl CpuBlocks {
    /// Checks that a product can use the blocks.
    ///
    /// # Errors
    /// A parameter violates a constraint, which the error states with its reason.
    pub fn check(&self, dtype: DType) -> Result<(), String> {
        let CpuBlocks { kc, mc, nc, team_mc, team_nc } = *self;
        let fits = |lines: usize| lines.saturating_mul(kc).saturating_mul(dtype.size()) <= MAX_BLOCK_BYTES;
        let rules = [
            (![kc, mc, nc, team_mc, team_nc].contains(&0), "every extent is at least 1"),
            (mc <= team_mc, "mc is at most team_mc: one thread uses a part of the rows that its team has packed"),
            (
                [mc, nc, team_mc, team_nc].into_iter().all(fits),
                "a packed block is small compared with the memory of the host: threads keep their blocks for later calls",
            ),
        ];
        rules.iter().find(|(met, _)| !met).map_or(Ok(()), |(_, reason)| Err((*reason).to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_constraint_says_why() {
        let blocks = CpuBlocks { kc: 512, mc: 192, nc: 4096, team_mc: 2048, team_nc: 2048 };
        assert_eq!(blocks.check(DType::F64), Ok(()));
        for (refused, reason) in [
            (CpuBlocks { nc: 0, ..blocks }, "every extent"),
            (CpuBlocks { team_mc: 96, ..blocks }, "at most team_mc"),
            (CpuBlocks { team_nc: 1 << 16, ..blocks }, "a packed block is small"),
        ] {
            let refusal = refused.check(DType::F64).unwrap_err();
            assert!(refusal.contains(reason), "{refused:?}: {refusal}");
        }
        // the limit is in bytes, so that it depends on the type
        let large = CpuBlocks { nc: 1 << 16, ..blocks };
        assert!(large.check(DType::F32).is_ok() && large.check(DType::F64).is_err());
    }
}
