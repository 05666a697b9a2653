//! Looks up the kernels for a device in the database.

use lapidary_core::{Accuracy, DType, DeviceFacts, DeviceKind, Feature, Lookahead};

use crate::database::{Database, Entry, Family, Kernel, LeastGroups, ProductSizes, Speed};
use crate::held_rows::{HeldRows, HeldShape};
use crate::product::Product;
use crate::program::Program;
use crate::scratch::Purpose;
use crate::strips::{StripLimits, StripParams};
use crate::thresholds::{Threshold, Thresholds};

/// Language of the kernel sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The language OpenCL C in version 1.2.
    OpenClC,
    /// WGSL, the shading language of WebGPU.
    Wgsl,
}

/// Beginning of the names of instruction sets for which compilers take PTX instructions in OpenCL C.
const PTX: &str = "sm_";

/// Width of the longest WGSL vector, in bits.
const WGSL_VECTOR_BITS: usize = 128;

/// The entries of the database that apply to a device and that the device can run within its limits, in the order of preference.
/// An instruction uses the first entry whose conditions it meets and whose kernel the compiler of the device accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// Kernels for products, first in f32, then in f64.
    products: [List<Product>; 2],
    /// Parameters for each family, first in f32, then in f64.
    groups: [[List<usize>; 2]; Family::ALL.len()],
    /// Thresholds between kernels.
    thresholds: Thresholds,
    /// Maximum scratch memory for one [`Purpose`], in bytes. The value is the size of the largest buffer, or less under a memory
    /// limit.
    pub max_scratch_bytes: usize,
    /// Number of multiprocessors of the device, or 1 if the driver does not report it.
    units: usize,
    /// How kernels that hold rows of a panel run on the device.
    pub held_rows: HeldRows,
    /// Whether one launch factors all strips, so that work-groups wait for one another ([`Feature::GroupsMayWait`]). Only the
    /// WGSL program has a kernel that factors all strips in one launch.
    pub groups_may_wait: bool,
}

/// Returns whether the OpenCL compiler of a device takes PTX instructions.
#[must_use]
pub fn takes_ptx(facts: &DeviceFacts) -> bool {
    facts.identity.architecture.starts_with(PTX)
}

/// The entries of one family in the order of preference.
#[derive(Clone, Debug, PartialEq)]
struct List<P> {
    entries: Vec<Ranked<P>>,
    /// Whether no later entry applies.
    is_closed: bool,
}

// implemented by hand, because a derived `Default` would require `P: Default`
impl<P> Default for List<P> {
    fn default() -> Self {
        List { entries: Vec::new(), is_closed: false }
    }
}

impl<P> List<P> {
    fn push(&mut self, entry: Ranked<P>) {
        if !self.is_closed {
            self.entries.push(entry);
        }
    }

    fn extend(&mut self, later: List<P>) {
        if !self.is_closed {
            self.entries.extend(later.entries);
            self.is_closed = later.is_closed;
        }
    }
}

/// An entry for one device.
#[derive(Clone, Debug, PartialEq)]
struct Ranked<P> {
    /// Parameters of the kernel.
    params: P,
    /// Minimum number of work-groups of a product, or of rows of a panel.
    least: usize,
    /// Maximum number of work-groups of a product.
    max_groups: usize,
    /// Sizes of the products to which the entry applies.
    sizes: ProductSizes,
    /// Speed of a kernel for products, if it was measured.
    speed: Option<Speed>,
    /// Where the entry comes from.
    origin: String,
}

/// Returns 0 for f32 and 1 for f64.
pub(crate) fn index(dtype: DType) -> usize {
    usize::from(dtype == DType::F64)
}

impl Tuning {
    /// Looks up the kernels for a device. Thresholds that `database` does not name have the values of the shipped database.
    #[must_use]
    pub fn lookup(database: &Database, facts: &DeviceFacts, dialect: Dialect) -> Self {
        let mut tuning = Self::collect(database, facts, dialect);
        tuning.thresholds.extend(Thresholds::shipped(facts, dialect));
        tuning
    }

    /// Collects the entries of a database for a device.
    fn collect(database: &Database, facts: &DeviceFacts, dialect: Dialect) -> Self {
        let mut tuning = Tuning {
            products: Default::default(),
            groups: Default::default(),
            thresholds: Thresholds::default(),
            max_scratch_bytes: facts.limits.buffer,
            units: facts.compute_units.unwrap_or(1),
            held_rows: HeldRows::on(facts),
            groups_may_wait: dialect == Dialect::Wgsl && facts.has(Feature::GroupsMayWait),
        };
        for entry in database.entries(facts, dialect) {
            for dtype in entry.dtypes() {
                if check(entry.kernel, dtype, facts, dialect).is_ok() {
                    tuning.push(entry, dtype, facts);
                }
            }
        }
        tuning
    }

    /// Looks up the kernels that share local memory, for any kind of device. Tests run these kernels on CPUs too.
    #[must_use]
    pub fn shared(facts: &DeviceFacts, dialect: Dialect) -> Self {
        let mut facts = facts.clone();
        facts.identity.kind = DeviceKind::Other;
        Self::lookup(Database::shipped(), &facts, dialect)
    }

    /// Returns this tuning with the entries of `text` before all others. Tests and measurements choose kernels by this function.
    ///
    /// # Errors
    /// A line of the text is no entry, or the device cannot run the kernel of an entry. The error states the reason.
    pub fn preferring(self, text: &str, facts: &DeviceFacts, dialect: Dialect) -> Result<Self, String> {
        let mut preferred = Database::default();
        if let Some(problem) = preferred.add("text", text).into_iter().next() {
            return Err(problem);
        }
        for entry in preferred.entries(facts, dialect) {
            let checks: Vec<Result<(), String>> = entry.dtypes().map(|dtype| check(entry.kernel, dtype, facts, dialect)).collect();
            // a kernel without an element type may fit local memory in single precision only
            if let (true, Some(Err(reason))) = (checks.iter().all(Result::is_err), checks.first()) {
                return Err(format!("{}: {reason}", entry.kernel));
            }
        }
        let mut all = Self::collect(&preferred, facts, dialect);
        for (first, rest) in all.products.iter_mut().zip(self.products) {
            first.extend(rest);
        }
        for (first, rest) in all.groups.iter_mut().flatten().zip(self.groups.into_iter().flatten()) {
            first.extend(rest);
        }
        all.thresholds.extend(self.thresholds);
        Ok(Tuning { products: all.products, groups: all.groups, thresholds: all.thresholds, ..self })
    }

    fn push(&mut self, entry: &Entry, dtype: DType, facts: &DeviceFacts) {
        let (sizes, max_groups, speed, origin) = (entry.sizes, entry.max_groups, entry.speed, entry.origin.clone());
        match entry.kernel {
            Kernel::Product(params) => {
                let least = match entry.least.groups {
                    LeastGroups::Number(groups) => groups,
                    LeastGroups::Units => facts.compute_units.unwrap_or(1),
                };
                self.products[index(dtype)].push(Ranked { params, least, max_groups, sizes, speed, origin });
            }
            Kernel::Group(family, params) => {
                let least = entry.least.rows;
                self.groups[family as usize][index(dtype)].push(Ranked { params, least, max_groups, sizes, speed, origin });
            }
            Kernel::Threshold(threshold, value) => self.thresholds.push(threshold, dtype, value, &origin),
            // the CPU backend looks up its blocks itself
            Kernel::Cpu(_) => {}
            Kernel::Stop(Some(family)) => self.groups[family as usize][index(dtype)].is_closed = true,
            Kernel::Stop(None) => self.products[index(dtype)].is_closed = true,
        }
    }

    /// Returns the kernels for a product with the sizes m, n and k in the order of preference: those whose entries apply to the sizes,
    /// and that have as many work-groups in the product as their entries require and allow. Of entries with a speed that follow one
    /// another, the one with the shortest estimated time comes first.
    pub fn products(&self, dtype: DType, sizes: [usize; 3]) -> impl Iterator<Item = Product> {
        self.products_with(Accuracy::Componentwise, dtype, sizes)
    }

    /// Returns the kernels for a product that needs `accuracy`, as [`products`](Self::products) does.
    pub fn products_with(&self, accuracy: Accuracy, dtype: DType, sizes: [usize; 3]) -> impl Iterator<Item = Product> {
        self.suited(accuracy, dtype, sizes).into_iter().map(|ranked| ranked.params)
    }

    /// Returns the entries of [`products_with`](Self::products_with).
    fn suited(&self, accuracy: Accuracy, dtype: DType, sizes: [usize; 3]) -> Vec<&Ranked<Product>> {
        let suits = move |ranked: &&Ranked<Product>| {
            if accuracy == Accuracy::Componentwise && ranked.params.accuracy(dtype) == Accuracy::Normwise {
                return false;
            }
            let is_bounded = ranked.least > 0 || ranked.max_groups < usize::MAX;
            ranked.sizes.hold(sizes) && (!is_bounded || (ranked.least..=ranked.max_groups).contains(&ranked.params.groups(sizes)))
        };
        let mut suited: Vec<&Ranked<Product>> = self.products[index(dtype)].entries.iter().filter(suits).collect();
        for neighbours in suited.chunk_by_mut(|one, next| one.speed.is_some() && next.speed.is_some()) {
            let time = |ranked: &Ranked<Product>| ranked.speed.map_or(0.0, |speed| speed.time(&ranked.params, sizes, self.units));
            neighbours.sort_by(|one, other| time(one).total_cmp(&time(other)));
        }
        suited
    }

    /// Returns where the entry of a kernel for a product with the sizes m, n and k comes from. `None` if no entry for these sizes names
    /// the kernel.
    #[must_use]
    pub fn origin(&self, dtype: DType, sizes: [usize; 3], product: Product) -> Option<&str> {
        let ranked = self.suited(product.accuracy(dtype), dtype, sizes).into_iter().find(|ranked| ranked.params == product)?;
        Some(&ranked.origin)
    }

    /// Returns the value of a threshold, in its unit.
    #[must_use]
    pub fn threshold(&self, threshold: Threshold, dtype: DType) -> usize {
        self.thresholds.get(threshold, dtype).0
    }

    /// Returns when and how LU on the device alone works in panels, each of which one queue factors while another queue runs an update.
    #[must_use]
    pub fn lookahead(&self, dtype: DType) -> Lookahead {
        let [min_order, min_nb] = [Threshold::Lookahead, Threshold::LookaheadPanel].map(|of| self.threshold(of, dtype));
        Lookahead { min_order, min_nb }
    }

    /// Returns where the entry of a threshold comes from.
    #[must_use]
    pub fn threshold_origin(&self, threshold: Threshold, dtype: DType) -> &str {
        self.thresholds.get(threshold, dtype).1
    }

    /// Returns the sizes of work-groups of a family for a panel of `rows` rows, in the order of preference. Families that factor
    /// no panels ignore `rows`.
    pub(crate) fn groups(&self, family: Family, dtype: DType, rows: usize) -> impl Iterator<Item = usize> {
        let entries = self.groups[family as usize][index(dtype)].entries.iter();
        entries.filter(move |ranked| rows >= ranked.least).map(|ranked| ranked.params)
    }

    /// Returns the shapes of work-groups that hold the rows of a panel of `rows` rows, in the order of preference.
    pub(crate) fn held_shapes(&self, dtype: DType, rows: usize) -> impl Iterator<Item = HeldShape> {
        self.held_rows.shapes(rows, move || self.groups(Family::HeldRows, dtype, rows))
    }

    /// Returns the size of work-groups of a family whose kernels run on every device.
    pub(crate) fn group(&self, family: Family, dtype: DType) -> usize {
        self.groups(family, dtype, usize::MAX).next().unwrap_or(1)
    }

    /// Returns a copy of `self` for a device whose memory is limited to `limit` bytes. Scratch memory takes at most an eighth of
    /// the limit, in equal shares for the values of [`Purpose`].
    #[must_use]
    pub fn within_memory(self, limit: usize) -> Self {
        Tuning { max_scratch_bytes: self.max_scratch_bytes.min(Purpose::share(limit)), ..self }
    }

    /// Returns the shapes of the strips by which a panel of `rows` rows can be factored, in the order of preference.
    pub fn strips(&self, dtype: DType, rows: usize) -> impl Iterator<Item = StripParams> {
        let most = StripLimits {
            rows: self.threshold(Threshold::StripRows, dtype),
            elements: self.threshold(Threshold::StripElements, dtype),
            waits: self.groups_may_wait,
        };
        self.groups(Family::Strips, dtype, rows).filter_map(move |items| StripParams::choose(rows, items, most))
    }
}

/// Checks that a device can run a kernel within its limits.
///
/// # Errors
/// A parameter violates a constraint, which the error states with its reason.
pub fn check(kernel: Kernel, dtype: DType, facts: &DeviceFacts, dialect: Dialect) -> Result<(), String> {
    let mut limits = facts.limits;
    if dialect == Dialect::Wgsl {
        // WGSL has no images of buffers
        limits.image_pixels = 0;
    }
    let limits = &limits;
    let program = match kernel {
        Kernel::Product(Product::Mma(_)) if dialect != Dialect::OpenClC => {
            return Err("the kernel is written in OpenCL C, and not in WGSL".to_owned());
        }
        Kernel::Product(Product::Mma(params)) if params.ptx && !takes_ptx(facts) => {
            return Err("the kernel needs a device whose compiler takes instructions of PTX (architecture sm_…)".to_owned());
        }
        Kernel::Product(product) => {
            let vector_bits = match dialect {
                Dialect::OpenClC => facts.vector_bits,
                Dialect::Wgsl => WGSL_VECTOR_BITS,
            };
            return product.check(dtype, limits, vector_bits);
        }
        Kernel::Cpu(blocks) => return blocks.check(dtype),
        Kernel::Threshold(..) | Kernel::Stop(_) => return Ok(()),
        Kernel::Group(family, items) => match family {
            Family::Elements => Program::Elements { dtype, group: items },
            Family::Triangle => Program::Triangle { dtype, group: items },
            Family::Exchange => Program::Exchange { dtype, items },
            Family::Solve => Program::Solve { dtype, items },
            Family::Panel if items == 1 && limits.loop_iterations < usize::MAX => {
                return Err(
                    "a single work-item loops over whole columns, which takes more iterations than a loop may have".to_owned()
                );
            }
            Family::Panel => Program::Panel { dtype, items },
            Family::HeldRows | Family::Trsv if dialect != Dialect::OpenClC => {
                return Err("the kernel is written in OpenCL C, and not in WGSL".to_owned());
            }
            Family::HeldRows => Program::HeldRows { dtype, shape: HeldShape { items, each: 1 }, uses_ptx: takes_ptx(facts) },
            Family::Trsv if facts.identity.kind == DeviceKind::Gpu && !takes_ptx(facts) => {
                return Err(
                    "work-groups wait for one another on GPUs whose compiler takes instructions of PTX (architecture sm_…)"
                        .to_owned(),
                );
            }
            // the transposed text takes more local memory
            Family::Trsv => Program::Trsv { dtype, items, is_transposed: true, uses_ptx: takes_ptx(facts) },
            Family::Strips => {
                let params = StripParams::widest(items);
                let params = params.ok_or_else(|| format!("{items} work-items are too few for a strip"))?;
                Program::Strips { dtype, params }
            }
            Family::Columns => Program::Columns { dtype, items },
            // the program of a batch depends on the sizes of its matrices, and is checked for each batch
            Family::Batched if !items.is_power_of_two() => return Err(format!("{items} work-items are no power of two")),
            Family::Batched => Program::Elements { dtype, group: items },
        },
    };
    program.check(limits)
}

/// Returns a sentence for each entry of a database that applies to a device, but that the device can run in none of its element types.
/// The sentence begins with the place of the entry.
#[must_use]
pub fn refusals(database: &Database, facts: &DeviceFacts, dialect: Dialect) -> Vec<String> {
    let refusal = |entry: &Entry| {
        let dtypes =
            [DType::F32, DType::F64].into_iter().filter(|&dtype| entry.dtype.map_or(facts.computes(dtype), |only| only == dtype));
        let checks: Vec<Result<(), String>> = dtypes.map(|dtype| check(entry.kernel, dtype, facts, dialect)).collect();
        let reason = checks.iter().all(Result::is_err).then(|| checks.into_iter().find_map(Result::err)).flatten()?;
        // the comment of the entry follows the place
        let place = entry.origin.split(": ").next().unwrap_or_default();
        Some(format!("{place}: {} is not used: {reason}", entry.kernel))
    };
    database.entries(facts, dialect).filter_map(refusal).collect()
}

#[cfg(test)]
mod tests;
