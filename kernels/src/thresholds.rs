//! Thresholds: the sizes at which one kernel or algorithm takes over from another.
//!
//! A threshold is an entry of the database with one value, whose name is the unit: `lu_block columns=1024`. Of several entries for the
//! same threshold, the first one for a device counts. The entries for all devices are in `database/thresholds.txt`.

use lapidary_core::{DType, DeviceFacts};

use crate::database::{Database, Kernel};
use crate::program::{MAX_INVERTED, TRIANGLE};
use crate::trsv::MAX_SIDES;
use crate::tuning::{Dialect, index};

/// A size at which one kernel or algorithm takes over from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Threshold {
    /// Minimum number of rows, of columns and of terms (extent along k) of a product whose operands are copied to whole vectors. Smaller
    /// products whose operands are not stored in whole vectors use another kernel than `gemm_vector`.
    CopyOperands,
    /// Maximum number of terms (extent along k) whose operands are copied to whole vectors at a time, rounded up to whole slices.
    CopiedTerms,
    /// Minimum number of rows and columns of C for which B is copied to its transpose, although `gemm_vector` can transpose vectors of B.
    RepackB,
    /// Number of multiprocessors that is assumed if the driver does not report it. It limits the parts into which terms are divided.
    SplitUnits,
    /// Maximum number of work-groups per multiprocessor into which the terms of a product are divided.
    SplitGroups,
    /// Minimum number of products m·n·k of a matrix, in units of 1024, from which on the matrices of a batch are multiplied one by one.
    BatchedGemm,
    /// Maximum number of rows and of columns of a matrix that one work-group factors or solves with. Larger matrices of a batch are
    /// factored one by one.
    BatchedLu,
    /// Maximum number of work-groups of the kernel `exchange`. A launch with few exchanges has smaller work-groups, and may have more of them in proportion.
    ExchangeGroups,
    /// Maximum number of columns of LU that are factored before the columns on their right are updated, rounded up to whole panels.
    LuBlock,
    /// Maximum number of columns of a block of LU in which each panel of held rows updates all columns on its right at once.
    HeldBlock,
    /// Maximum number of columns of a panel that one work-group factors (kernel `getrf_panel`).
    LuPanel,
    /// Maximum number of rows of a panel that many work-groups factor column by column (kernel `getrf_column`).
    LuColumns,
    /// Maximum number of strips of a panel if each strip has a launch of its own.
    LuStrips,
    /// Maximum number of strips of a panel if one launch factors all strips.
    LuWaitingStrips,
    /// Maximum number of rows of a strip per work-item, a multiple of 4. Panels with more rows are factored column by column.
    StripRows,
    /// Maximum number of elements of a strip per work-item. Strips of fewer columns hold more rows; two columns always fit.
    StripElements,
    /// Maximum number of unknowns of a triangle that is solved by substitution, if the kernel takes so many. Larger triangles are halved.
    TrsmBlock,
    /// Maximum number of terms of a product in a triangular solve, rounded up to a multiple of [`TRIANGLE`]. A longer sum is less accurate.
    TrsmTerms,
    /// Maximum number of right-hand sides for which work-groups that wait for one another solve with a triangle (kernel `trsv`).
    TrsvSides,
    /// Maximum order of the diagonal blocks that a triangular solve inverts, if its mode permits inverses and the kernel `trsv` does not solve.
    /// Zero if the device substitutes.
    InvertedBlock,
    /// Value u: a triangular solve for n unknowns and r right-hand sides inverts diagonal blocks if n ≥ u or n·r ≥ u².
    InvertedSolve,
    /// Minimum order of a matrix that LU on one device factors in panels, each of which one queue factors while another queue runs an
    /// update. A plan of the core depends on this value, and no instruction does.
    Lookahead,
    /// Minimum number of columns of the panels of [`Threshold::Lookahead`].
    LookaheadPanel,
    /// Number of tiles that each work-group of a product computes while another queue factors a panel. If the number is 0, products are
    /// launched whole.
    BesidePanel,
}

/// The name and the unit of a threshold, and what depends on it.
struct Description {
    name: &'static str,
    unit: &'static str,
    /// Names of the kernels whose launches depend on the threshold.
    kernels: &'static [&'static str],
    /// The values that a search tries, in ascending order. Empty if the threshold is not searched.
    trials: &'static [usize],
}

impl Threshold {
    /// All thresholds, in the order of their declaration.
    pub const ALL: [Threshold; 24] = [
        Threshold::CopyOperands,
        Threshold::CopiedTerms,
        Threshold::RepackB,
        Threshold::SplitUnits,
        Threshold::SplitGroups,
        Threshold::BatchedGemm,
        Threshold::BatchedLu,
        Threshold::ExchangeGroups,
        Threshold::LuBlock,
        Threshold::HeldBlock,
        Threshold::LuPanel,
        Threshold::LuColumns,
        Threshold::LuStrips,
        Threshold::LuWaitingStrips,
        Threshold::StripRows,
        Threshold::StripElements,
        Threshold::TrsmBlock,
        Threshold::TrsmTerms,
        Threshold::TrsvSides,
        Threshold::InvertedBlock,
        Threshold::InvertedSolve,
        Threshold::Lookahead,
        Threshold::LookaheadPanel,
        Threshold::BesidePanel,
    ];

    fn description(self) -> Description {
        let fixed = |name, unit, kernels| Description { name, unit, kernels, trials: &[] };
        let searched = |name, unit, kernels, trials| Description { name, unit, kernels, trials };
        let of_lu: &[&str] = &["getrf_panel", "getrf_column", "getrf_held_rows", "getrf_strip", "getrf_strips"];
        let of_strips = &of_lu[3..];
        let of_triangles: &[&str] = &["trsv", "solve", "trsm_block", "trtri_block"];
        match self {
            Threshold::CopyOperands => fixed("copy_operands", "extent", &["pad"]),
            Threshold::CopiedTerms => fixed("copied_terms", "terms", &["pad"]),
            Threshold::RepackB => fixed("repack_b", "extent", &["gemm_vector"]),
            Threshold::SplitUnits => fixed("split_units", "units", &["sum_parts"]),
            Threshold::SplitGroups => fixed("split_groups", "groups_per_unit", &["sum_parts"]),
            Threshold::BatchedGemm => fixed("batched_gemm", "kibiproducts", &["gemm_batched"]),
            Threshold::BatchedLu => fixed("batched_lu", "order", &["getrf_rows", "getrf_batched", "getrs_batched"]),
            Threshold::ExchangeGroups => searched("exchange_groups", "groups", &["exchange"], &[32, 64, 128, 256, 512, 1024]),
            Threshold::LuBlock => searched("lu_block", "columns", of_lu, &[128, 256, 512, 1024, 2048]),
            Threshold::HeldBlock => searched("held_block", "columns", &["getrf_held_rows"], &[32, 64, 128, 256, 512]),
            Threshold::LuPanel => searched("lu_panel", "columns", &["getrf_panel"], &[4, 8, 16, 32, 64]),
            Threshold::LuColumns => fixed("lu_columns", "rows", &["getrf_column"]),
            Threshold::LuStrips => searched("lu_strips", "strips", &["getrf_strip"], &[16, 32, 64, 128, 256]),
            Threshold::LuWaitingStrips => searched("lu_waiting_strips", "strips", &["getrf_strips"], &[32, 64, 128, 256, 512]),
            Threshold::StripRows => searched("strip_rows", "rows", of_strips, &[16, 32, 64]),
            Threshold::StripElements => searched("strip_elements", "elements", of_strips, &[16, 32, 64, 128, 256]),
            Threshold::TrsmBlock => searched("trsm_block", "unknowns", &["solve"], &[32, 64, 128, 256]),
            Threshold::TrsmTerms => fixed("trsm_terms", "terms", of_triangles),
            Threshold::TrsvSides => fixed("trsv_sides", "sides", &["trsv"]),
            Threshold::InvertedBlock => searched("inverted_block", "unknowns", of_triangles, &[0, 32, 64, 128, 256, 512, 1024]),
            Threshold::InvertedSolve => fixed("inverted_solve", "unknowns", of_triangles),
            Threshold::Lookahead => fixed("lookahead", "rows", &[]),
            Threshold::LookaheadPanel => fixed("lookahead_panel", "columns", &[]),
            Threshold::BesidePanel => fixed("beside_panel", "tiles", &["gemm_mma"]),
        }
    }

    /// Returns the name of the threshold in the database.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// Returns the unit of the value, which is the name of the only parameter in the database.
    #[must_use]
    pub fn unit(self) -> &'static str {
        self.description().unit
    }

    /// Returns the threshold with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|threshold| threshold.name() == name)
    }

    /// Returns the values that a search tries, in ascending order. The list is empty if the threshold is not searched.
    #[must_use]
    pub fn trials(self) -> &'static [usize] {
        self.description().trials
    }

    /// Returns whether the launches of a kernel depend on the threshold.
    #[must_use]
    pub fn concerns(self, kernel: &str) -> bool {
        self.description().kernels.contains(&kernel)
    }

    /// Checks a value.
    ///
    /// # Errors
    /// The value is outside the range of the threshold. The error states the reason.
    pub fn check(self, value: usize) -> Result<(), String> {
        let (met, reason) = match self {
            // without work for the kernel of a batch, the matrices are computed one by one
            Threshold::BatchedGemm | Threshold::BatchedLu | Threshold::LuColumns | Threshold::InvertedSolve => {
                (true, String::new())
            }
            // every matrix has panels, or a product leaves no multiprocessor free
            Threshold::Lookahead | Threshold::BesidePanel => (true, String::new()),
            Threshold::CopyOperands
            | Threshold::CopiedTerms
            | Threshold::RepackB
            | Threshold::SplitUnits
            | Threshold::SplitGroups
            | Threshold::ExchangeGroups
            | Threshold::LuBlock
            | Threshold::HeldBlock
            | Threshold::LuStrips
            | Threshold::LuWaitingStrips
            | Threshold::LookaheadPanel
            | Threshold::TrsmTerms
            | Threshold::StripElements => (value >= 1, "is at least 1: a part of the work is not empty".to_owned()),
            Threshold::TrsvSides => {
                let reason =
                    format!("is at most {MAX_SIDES}: the messages of a block of each right-hand side fit into scratch memory");
                (value <= MAX_SIDES, reason)
            }
            Threshold::LuPanel => {
                ((1..=1024).contains(&value), "is from 1 to 1024: more columns are too much work for one work-group".to_owned())
            }
            Threshold::StripRows => {
                let reason = "is a multiple of 4 from 4 to 64: a work-item holds whole vectors, and the text names each row";
                (value.is_multiple_of(4) && (4..=64).contains(&value), reason.to_owned())
            }
            Threshold::TrsmBlock => {
                (value >= TRIANGLE, format!("is at least {TRIANGLE}: a triangle is halved into multiples of {TRIANGLE} unknowns"))
            }
            Threshold::InvertedBlock => {
                let is_doubled = (TRIANGLE..=MAX_INVERTED).contains(&value) && value.is_power_of_two();
                let reason = format!(
                    "is 0 or a power of two from {TRIANGLE} to {MAX_INVERTED}: the order of inverted blocks begins there and doubles"
                );
                (value == 0 || is_doubled, reason)
            }
        };
        if met { Ok(()) } else { Err(format!("{} of {} {reason}", self.unit(), self.name())) }
    }
}

/// The values of all thresholds on a device, first in f32, then in f64, with the places where their entries come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Thresholds([[Option<(usize, String)>; 2]; Threshold::ALL.len()]);

impl Thresholds {
    /// Returns the values that the shipped database names for a device.
    pub fn shipped(facts: &DeviceFacts, dialect: Dialect) -> Self {
        let mut shipped = Thresholds::default();
        for entry in Database::shipped().entries(facts, dialect) {
            if let Kernel::Threshold(threshold, value) = entry.kernel {
                entry.dtypes().for_each(|dtype| shipped.push(threshold, dtype, value, &entry.origin));
            }
        }
        shipped
    }

    /// Takes the value of an entry, unless an earlier entry has named one.
    pub fn push(&mut self, threshold: Threshold, dtype: DType, value: usize, origin: &str) {
        self.0[threshold as usize][index(dtype)].get_or_insert_with(|| (value, origin.to_owned()));
    }

    /// Takes the values of later entries for thresholds that have no value.
    pub fn extend(&mut self, later: Thresholds) {
        for (own, other) in self.0.iter_mut().flatten().zip(later.0.into_iter().flatten()) {
            *own = own.take().or(other);
        }
    }

    /// Returns the value of a threshold, and where its entry comes from.
    pub fn get(&self, threshold: Threshold, dtype: DType) -> (usize, &str) {
        let known = self.0[threshold as usize][index(dtype)].as_ref();
        let (value, origin) = known.expect("the shipped database has an entry for all devices");
        (*value, origin)
    }
}

#[cfg(test)]
mod tests;
