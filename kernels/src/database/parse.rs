//! Parses and prints the text of the database.

use std::fmt;
use std::str::FromStr;

use lapidary_core::{DType, DeviceKind};

use super::{CPU_BLOCKS, Entry, Family, Kernel, Least, LeastGroups, Orientation, ProductSizes, Scope, Speed};
use crate::cpu::CpuBlocks;
use crate::product::Product;
use crate::thresholds::Threshold;
use crate::tuning::Dialect;

/// Kinds of devices with their names in the database.
const KINDS: [(&str, DeviceKind); 3] = [("cpu", DeviceKind::Cpu), ("gpu", DeviceKind::Gpu), ("other", DeviceKind::Other)];

/// The byte order mark, which some editors write before the first line of a file.
pub const BYTE_ORDER_MARK: char = '\u{feff}';

/// What a text of the database contains.
#[derive(Default)]
pub(super) struct Parsed {
    /// The entries.
    pub entries: Vec<Entry>,
    /// A sentence for each line that is no entry. The lines below a damaged scope are skipped.
    pub problems: Vec<String>,
}

/// Parses the text of a file with the name `name`. A byte order mark at the beginning of the text is ignored.
pub(super) fn parse(name: &str, text: &str) -> Parsed {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let (mut parsed, mut scope) = (Parsed::default(), Some(Scope::Any));
    for (number, line) in (1..).zip(text.lines()) {
        let (words, comment) = (words(line), line.split_once('#').map_or("", |(_, comment)| comment.trim()));
        let place = format!("{name}:{number}");
        if let Some(inside) = words.strip_prefix('[') {
            scope = inside.strip_suffix(']').and_then(self::scope);
            if scope.is_none() {
                parsed.problems.push(format!("{place}: `{words}` names no devices, and the entries below it are skipped"));
            }
        } else if !words.is_empty() {
            let Some(scope) = &scope else { continue };
            let origin = if comment.is_empty() { place.clone() } else { format!("{place}: {comment}") };
            match entry(words, scope, origin) {
                Ok(entry) => parsed.entries.push(entry),
                Err(reason) => parsed.problems.push(format!("{place}: `{words}` is skipped: {reason}")),
            }
        }
    }
    parsed
}

fn scope(text: &str) -> Option<Scope> {
    let kind = |name: &str| KINDS.iter().find(|(known, _)| *known == name).map(|&(_, kind)| kind);
    if text == "any" {
        return Some(Scope::Any);
    }
    let (word, name) = text.split_once(' ')?;
    match word {
        "device" => Some(Scope::Device(name.to_owned())),
        "architecture" => Some(Scope::Architecture(name.to_owned())),
        "vendor" => {
            let (vendor, of) = name.rsplit_once(", ")?;
            Some(Scope::Vendor(vendor.to_owned(), kind(of)?))
        }
        "kind" => kind(name).map(Scope::Kind),
        _ => None,
    }
}

/// Parses an entry that applies to all devices. The origin of the entry is empty.
impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        entry(words(text), &Scope::Any, String::new())
    }
}

/// Returns a line without its comment.
fn words(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

fn entry(text: &str, scope: &Scope, origin: String) -> Result<Entry, String> {
    let (mut dtype, mut dialect, mut values) = (None, None, Vec::new());
    let (mut least, mut max_groups, mut sizes) = (Least::default(), usize::MAX, ProductSizes::default());
    let mut conditions = Vec::new();
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let stopped = if name == "stop" { words.next() } else { None };
    let mut known: Vec<&str> = Vec::new();
    for word in words {
        check_new(word, &known)?;
        known.push(word);
        conditions.extend(condition(word));
        match word {
            "f32" => dtype = Some(DType::F32),
            "f64" => dtype = Some(DType::F64),
            "opencl" => dialect = Some(Dialect::OpenClC),
            "wgsl" => dialect = Some(Dialect::Wgsl),
            "groups>=units" => least.groups = LeastGroups::Units,
            "tall" => sizes.orientation = Some(Orientation::Tall),
            "wide" => sizes.orientation = Some(Orientation::Wide),
            _ => match comparison(word) {
                Some(("groups", ">=", count)) => least.groups = LeastGroups::Number(number(word, count)?),
                Some(("groups", "<=", count)) => max_groups = number(word, count)?,
                Some(("rows", ">=", count)) => least.rows = number(word, count)?,
                Some(("side", "<=", count)) => sizes.max_side = number(word, count)?,
                Some(("terms", ">=", count)) => sizes.min_terms = number(word, count)?,
                Some(("terms", "<=", count)) => sizes.max_terms = number(word, count)?,
                Some(_) => return Err(format!("`{word}` is no condition")),
                None => {
                    let (parameter, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is no parameter"))?;
                    values.push((parameter, number(word, value)?));
                }
            },
        }
    }
    check_ranges(least, max_groups, &sizes)?;
    if stopped.is_some() && !values.is_empty() {
        return Err("`stop` has no parameters".to_owned());
    }
    let speed = Speed::take(&mut values)?;
    let kernel = match stopped {
        Some("gemm") => Kernel::Stop(None),
        Some(family) => Kernel::Stop(Some(self::family(family)?)),
        None => kernel(name, values)?,
    };
    if speed.is_some() && !matches!(kernel, Kernel::Product(_)) {
        return Err("only kernels for products have a speed".to_owned());
    }
    let known = conditions_of(kernel);
    if let Some((word, _)) = conditions.into_iter().find(|(_, name)| !known.contains(name)) {
        let known =
            if known.is_empty() { "which has no conditions".to_owned() } else { format!("which knows {}", known.join(", ")) };
        return Err(format!("`{word}` means nothing to {}, {known}", stopped.map_or(name, |_| "`stop`")));
    }
    Ok(Entry { scope: scope.clone(), dtype, dialect, least, max_groups, sizes, speed, kernel, origin })
}

/// Checks that no earlier word of an entry sets the same property as `word`.
fn check_new(word: &str, earlier: &[&str]) -> Result<(), String> {
    let subject = |word: &str| match word {
        "f32" | "f64" => "type".to_owned(),
        "opencl" | "wgsl" => "language".to_owned(),
        "tall" | "wide" => "orientation".to_owned(),
        // `rows>` of `rows>=3`, and `mwg` of `mwg=64`
        _ => word.split('=').next().unwrap_or(word).to_owned(),
    };
    match earlier.iter().find(|earlier| subject(earlier) == subject(word)) {
        Some(earlier) if *earlier == word => Err(format!("`{word}` is given twice")),
        Some(earlier) => Err(format!("`{word}` follows `{earlier}`: keep one of the two")),
        None => Ok(()),
    }
}

/// Checks that no lower bound of an entry exceeds its upper bound.
fn check_ranges(least: Least, max_groups: usize, sizes: &ProductSizes) -> Result<(), String> {
    let least_groups = if let LeastGroups::Number(groups) = least.groups { groups } else { 0 };
    for (name, least, most) in [("groups", least_groups, max_groups), ("terms", sizes.min_terms, sizes.max_terms)] {
        if least > most {
            return Err(format!("`{name}>={least}` and `{name}<={most}` hold for no product"));
        }
    }
    Ok(())
}

/// Returns a word with the name of its condition, if the word restricts an entry to some sizes or to one language.
fn condition(word: &str) -> Option<(&str, &str)> {
    let name = match word {
        "opencl" | "wgsl" => "language",
        "tall" | "wide" => word,
        _ => comparison(word)?.0,
    };
    Some((word, name))
}

/// Returns the names of the conditions that an entry for a kernel may have.
fn conditions_of(kernel: Kernel) -> &'static [&'static str] {
    match kernel {
        Kernel::Product(_) => &["language", "groups", "side", "tall", "wide", "terms"],
        Kernel::Group(Family::Panel | Family::HeldRows | Family::Strips | Family::Columns | Family::Exchange, _) => {
            &["language", "rows"]
        }
        Kernel::Group(Family::Elements | Family::Triangle | Family::Solve | Family::Trsv | Family::Batched, _)
        | Kernel::Threshold(..)
        | Kernel::Stop(_) => &["language"],
        Kernel::Cpu(_) => &[],
    }
}

/// Splits a condition such as `rows>=3` into the name of a size, the comparison and the bound.
fn comparison(word: &str) -> Option<(&str, &'static str, &str)> {
    [">=", "<="].into_iter().find_map(|operator| word.split_once(operator).map(|(name, bound)| (name, operator, bound)))
}

/// Makes a kernel from its name and the values of its parameters, in any order.
pub(super) fn kernel(name: &str, mut values: Vec<(&str, usize)>) -> Result<Kernel, String> {
    let mut value = |parameter: &str| {
        let at = values.iter().position(|(name, _)| *name == parameter)?;
        Some(values.swap_remove(at).1)
    };
    let kernel = if let Some(product) = Product::from_values(name, &mut value) {
        Kernel::Product(product?)
    } else if name == CPU_BLOCKS {
        Kernel::Cpu(CpuBlocks::from_values(&mut value)?)
    } else if let Some(threshold) = Threshold::named(name) {
        let value = value(threshold.unit()).ok_or_else(|| format!("{} is not given", threshold.unit()))?;
        threshold.check(value)?;
        Kernel::Threshold(threshold, value)
    } else {
        Kernel::Group(family(name)?, value("items").ok_or("items is not given")?)
    };
    match values.first() {
        None => Ok(kernel),
        Some((parameter, _)) => Err(format!("{name} has no parameter `{parameter}`")),
    }
}

fn family(name: &str) -> Result<Family, String> {
    let family = Family::ALL.into_iter().find(|family| family.name() == name);
    family.ok_or_else(|| format!("no kernel is called `{name}`"))
}

/// Largest number in an entry. Products of a few such numbers do not overflow.
const LARGEST: usize = 1 << 20;

fn number(word: &str, digits: &str) -> Result<usize, String> {
    let number: usize = digits.parse().map_err(|_| format!("`{word}` holds no whole number from 0 to 2⁶⁴ − 1"))?;
    if number <= LARGEST { Ok(number) } else { Err(format!("`{word}` is larger than {LARGEST}")) }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kernel::Product(product) => write!(f, "{product}"),
            Kernel::Group(..) | Kernel::Cpu(_) => {
                f.write_str(self.family())?;
                self.values().into_iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
            }
            Kernel::Threshold(threshold, value) => write!(f, "{} {}={value}", threshold.name(), threshold.unit()),
            Kernel::Stop(family) => write!(f, "stop {}", family.map_or("gemm", Family::name)),
        }
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kernel())?;
        self.values().into_iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dialect::OpenClC => "opencl",
            Dialect::Wgsl => "wgsl",
        })
    }
}

/// The words of an entry, without its scope and its origin.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kernel = self.kernel.to_string();
        let (name, values) = match self.kernel {
            Kernel::Stop(_) => (&*kernel, ""),
            Kernel::Product(_) | Kernel::Group(..) | Kernel::Threshold(..) | Kernel::Cpu(_) => {
                kernel.split_once(' ').unwrap_or((&kernel, ""))
            }
        };
        f.write_str(name)?;
        self.dtype.iter().try_for_each(|dtype| write!(f, " {dtype}"))?;
        self.dialect.iter().try_for_each(|dialect| write!(f, " {dialect}"))?;
        match self.least.groups {
            LeastGroups::Number(0) => {}
            LeastGroups::Number(groups) => write!(f, " groups>={groups}")?,
            LeastGroups::Units => f.write_str(" groups>=units")?,
        }
        if self.max_groups < usize::MAX {
            write!(f, " groups<={}", self.max_groups)?;
        }
        if self.least.rows > 0 {
            write!(f, " rows>={}", self.least.rows)?;
        }
        write!(f, "{}", self.sizes)?;
        self.speed.iter().try_for_each(|speed| write!(f, "{speed}"))?;
        write!(f, " {values}")
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |kind: &DeviceKind| KINDS.iter().find(|(_, known)| known == kind).map_or("other", |(name, _)| name);
        match self {
            Scope::Device(model) => write!(f, "[device {model}]"),
            Scope::Architecture(architecture) => write!(f, "[architecture {architecture}]"),
            Scope::Vendor(vendor, kind) => write!(f, "[vendor {vendor}, {}]", name(kind)),
            Scope::Kind(kind) => write!(f, "[kind {}]", name(kind)),
            Scope::Any => f.write_str("[any]"),
        }
    }
}
