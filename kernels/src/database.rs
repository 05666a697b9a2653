//! The database of kernel parameters: which kernels with which parameters are fast on which devices.
//!
//! The database is text, one file per family of kernels (`kernels/database/`). A line in brackets names devices. Each line below
//! it is an entry: the name of a kernel, the values of its parameters, and words that restrict the entry. Only a parameter with a default
//! may be missing. A `#` begins a comment;
//! the comment of a tuned entry holds the measurement.
//!
//! ```text
//! [vendor NVIDIA Corporation, gpu]
//! gemm_tile f64 groups>=units mwg=128 nwg=64 kwg=8 mr=8 nr=8 vwm=1 stages=2  # gflops=17600 m=4096 n=4096 k=4096
//! ```
//!
//! | Word | Restricts the entry to |
//! |---|---|
//! | `f32`, `f64` | one element type |
//! | `opencl`, `wgsl` | one language |
//! | `groups>=N` | products for which the kernel has at least N work-groups; `groups>=units`: one per multiprocessor |
//! | `groups<=N` | products for which the kernel has at most N work-groups |
//! | `side<=N` | products in which the smaller extent of C is at most N |
//! | `tall`, `wide` | products in which C has at least as many rows as columns, or at least as many columns as rows |
//! | `terms>=N`, `terms<=N` | products with at least, or at most, N terms (extent along k) |
//! | `rows>=N` | panels, and row exchanges of matrices, with at least N rows |
//!
//! A word that means nothing to the kernel of an entry, such as `tall` for `exchange`, is refused. So is a word that sets what an
//! earlier word has set, as in `mwg=64 mwg=32`, `f32 f64` or `tall wide`.
//!
//! An entry for products may state the speed of its kernel: `peak=N` in GFLOP/s, `half=N`, the number of terms with which the kernel
//! reaches half of the peak, and `alone=N`, the speed of a multiprocessor with one work-group in percent of that with many. Of entries
//! with a speed that follow one another, the one with the shortest estimated time comes first ([`Speed`]).
//!
//! An entry may also name a threshold, at which one kernel or algorithm takes over from another, such as `lu_block columns=1024`. Its only
//! parameter is named by its unit ([`Threshold`]; `docs/tuning.md` lists all thresholds). The words `f32`, `f64`, `opencl` and `wgsl` may
//! restrict it, but no sizes.
//!
//! An entry `stop gemm`, or `stop` with the name of a family such as `stop strips`, says that no later entry for products or for the
//! family applies.

use std::sync::LazyLock;

use lapidary_core::{DType, DeviceFacts, DeviceKind};

use crate::cpu::CpuBlocks;
use crate::product::Product;
use crate::thresholds::Threshold;
use crate::tuning::Dialect;

mod parse;
mod sizes;
mod speed;

pub use parse::BYTE_ORDER_MARK;
pub use sizes::{Orientation, ProductSizes};
pub use speed::Speed;

/// Entries for kernels, from the texts of this crate and from texts of users.
#[derive(Clone, Debug, Default)]
pub struct Database {
    entries: Vec<Entry>,
}

/// An entry: a kernel with its parameters, and the conditions under which the entry applies.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Devices to which the entry applies.
    pub scope: Scope,
    /// The only element type to which the entry applies. `None` if the entry applies to all types.
    pub dtype: Option<DType>,
    /// The only language to which the entry applies. `None` if the entry applies to both languages.
    pub dialect: Option<Dialect>,
    /// Sizes from which on the entry applies.
    pub least: Least,
    /// Maximum number of work-groups of the kernel in a product.
    pub max_groups: usize,
    /// Sizes of the products to which the entry applies.
    pub sizes: ProductSizes,
    /// Speed of a kernel for products, if it was measured.
    pub speed: Option<Speed>,
    /// The kernel with its parameters.
    pub kernel: Kernel,
    /// Where the entry comes from, such as `gemm.txt:12`, and the comment at its end. An explanation shows both to users.
    pub origin: String,
}

impl Entry {
    /// Returns the element types to which the entry applies.
    pub(crate) fn dtypes(&self) -> impl Iterator<Item = DType> + use<> {
        let only = self.dtype;
        [DType::F32, DType::F64].into_iter().filter(move |&dtype| only.is_none_or(|only| only == dtype))
    }
}

/// A kernel of a family, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// A kernel for products.
    Product(Product),
    /// A kernel whose parameter is the number of work-items in a work-group.
    Group(Family, usize),
    /// The cache blocks of products of the CPU backend.
    Cpu(CpuBlocks),
    /// No kernel, but the value of a threshold between kernels.
    Threshold(Threshold, usize),
    /// No kernel: entries after this one do not apply. Without a kernel of a family, a device does the work in another way. `None`
    /// stands for the kernels for products.
    Stop(Option<Family>),
}

impl Kernel {
    /// Makes a kernel from its name and the values of its parameters, in any order.
    ///
    /// # Errors
    /// No kernel has the name, a parameter is missing, or there is a parameter that the kernel does not have.
    pub fn new(name: &str, values: &[(&str, usize)]) -> Result<Self, String> {
        parse::kernel(name, values.to_vec())
    }

    /// Returns the name of the family in the database: `gemm` for all kernels for products, and its own name for a threshold.
    #[must_use]
    pub fn family(&self) -> &'static str {
        match self {
            Kernel::Product(_) | Kernel::Stop(None) => "gemm",
            Kernel::Group(family, _) | Kernel::Stop(Some(family)) => family.name(),
            Kernel::Cpu(_) => CPU_BLOCKS,
            Kernel::Threshold(threshold, _) => threshold.name(),
        }
    }

    /// Returns the names and values of the parameters.
    #[must_use]
    pub fn values(&self) -> Vec<(&'static str, usize)> {
        match self {
            Kernel::Product(product) => product.values(),
            Kernel::Group(_, items) => vec![("items", *items)],
            Kernel::Cpu(blocks) => blocks.values(),
            Kernel::Threshold(threshold, value) => vec![(threshold.unit(), *value)],
            Kernel::Stop(_) => Vec::new(),
        }
    }
}

/// Name of the cache blocks of the CPU backend in the database.
pub const CPU_BLOCKS: &str = "cpu_blocks";

/// A family of kernels whose parameter is the number of work-items in a work-group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Kernels `scale`, `copy`, `laswp`, `zero_pivots` and `clear`.
    Elements,
    /// Kernels `trsm_block` and `trtri_block`, in which each work-item solves with a triangle, or inverts a part of one, alone.
    Triangle,
    /// Kernel that makes many row exchanges at once. Without it, each work-item makes the exchanges in one column.
    Exchange,
    /// Kernel in which a work-group solves a triangular system. Without it, each work-item solves for one right-hand side.
    Solve,
    /// Kernel in which work-groups that wait for one another solve a triangular system for few right-hand sides.
    Trsv,
    /// Kernel in which one work-group factors a narrow panel.
    Panel,
    /// Kernel in which work-groups that wait for one another factor a panel. Each work-item holds a row.
    HeldRows,
    /// Kernels that factor a panel by strips, each of which a work-group holds in registers.
    Strips,
    /// Kernel in which many work-groups factor a panel column by column.
    Columns,
    /// Kernels in which a work-group computes a matrix of a batch.
    Batched,
}

impl Family {
    /// All families, in the order of their declaration.
    pub const ALL: [Family; 10] = [
        Family::Elements,
        Family::Triangle,
        Family::Exchange,
        Family::Solve,
        Family::Trsv,
        Family::Panel,
        Family::HeldRows,
        Family::Strips,
        Family::Columns,
        Family::Batched,
    ];

    /// Returns the name of the family in the database.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Family::Elements => "elements",
            Family::Triangle => "triangle",
            Family::Exchange => "exchange",
            Family::Solve => "solve",
            Family::Trsv => "trsv",
            Family::Panel => "panel",
            Family::HeldRows => "held_rows",
            Family::Strips => "strips",
            Family::Columns => "columns",
            Family::Batched => "batched",
        }
    }
}

/// Sizes from which on an entry applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Least {
    /// Minimum number of work-groups of the kernel in a product.
    pub groups: LeastGroups,
    /// Minimum number of rows of a panel.
    pub rows: usize,
}

/// Minimum number of work-groups of a kernel in a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeastGroups {
    /// This number of work-groups.
    Number(usize),
    /// One work-group per multiprocessor of the device.
    Units,
}

impl Default for LeastGroups {
    fn default() -> Self {
        LeastGroups::Number(0)
    }
}

/// Devices to which an entry applies, from few devices to all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Devices of this model.
    Device(String),
    /// Devices of this instruction set.
    Architecture(String),
    /// Devices of this vendor and kind.
    Vendor(String, DeviceKind),
    /// Devices of this kind.
    Kind(DeviceKind),
    /// All devices.
    Any,
}

impl Scope {
    /// Returns the scopes to which a device belongs, the narrowest first.
    #[must_use]
    pub fn chain(facts: &DeviceFacts) -> Vec<Scope> {
        let identity = &facts.identity;
        let named = [
            (&identity.model, Scope::Device(identity.model.clone())),
            (&identity.architecture, Scope::Architecture(identity.architecture.clone())),
            (&identity.vendor, Scope::Vendor(identity.vendor.clone(), identity.kind)),
        ];
        let named = named.into_iter().filter(|(name, _)| !name.is_empty()).map(|(_, scope)| scope);
        named.chain([Scope::Kind(identity.kind), Scope::Any]).collect()
    }
}

/// The texts of this crate, with their file names.
const TEXTS: [(&str, &str); 5] = [
    ("cpu.txt", include_str!("../database/cpu.txt")),
    ("gemm.txt", include_str!("../database/gemm.txt")),
    ("getrf.txt", include_str!("../database/getrf.txt")),
    ("groups.txt", include_str!("../database/groups.txt")),
    ("thresholds.txt", include_str!("../database/thresholds.txt")),
];

impl Database {
    /// Returns the database of this crate.
    #[must_use]
    pub fn shipped() -> &'static Self {
        static SHIPPED: LazyLock<Database> = LazyLock::new(|| {
            let mut shipped = Database::default();
            for (name, text) in TEXTS {
                let problems = shipped.add(name, text);
                debug_assert!(problems.is_empty(), "{problems:?}");
            }
            shipped
        });
        &SHIPPED
    }

    /// Adds the entries of a text, whose name stands in messages. Returns a sentence for each line that is skipped because it is
    /// no entry. Of two entries for the same devices, the one that was added first has precedence.
    pub fn add(&mut self, name: &str, text: &str) -> Vec<String> {
        let parsed = parse::parse(name, text);
        self.entries.extend(parsed.entries);
        parsed.problems
    }

    /// Adds the entries of another database after the entries of this one.
    #[must_use]
    pub fn then(mut self, other: &Database) -> Self {
        self.entries.extend(other.entries.iter().cloned());
        self
    }

    /// Returns the first entry for the cache blocks of the CPU backend that applies to a device and an element type.
    #[must_use]
    pub fn cpu_blocks(&self, facts: &DeviceFacts, dtype: DType) -> Option<CpuBlocks> {
        // entries for the CPU backend are restricted to no language
        let entries = self.entries(facts, Dialect::OpenClC).filter(|entry| entry.dtype.is_none_or(|only| only == dtype));
        let mut blocks = entries.filter_map(|entry| if let Kernel::Cpu(blocks) = entry.kernel { Some(blocks) } else { None });
        blocks.find(|blocks| blocks.check(dtype).is_ok())
    }

    /// Returns the entries for a device and a language in the order of precedence: entries for few devices come before entries
    /// for many.
    pub fn entries(&self, facts: &DeviceFacts, dialect: Dialect) -> impl Iterator<Item = &Entry> {
        let suits = move |entry: &&Entry| entry.dialect.is_none_or(|only| only == dialect);
        Scope::chain(facts)
            .into_iter()
            .flat_map(move |scope| self.entries.iter().filter(move |entry| entry.scope == scope))
            .filter(suits)
    }
}

#[cfg(test)]
mod tests;
