//! The selection of the devices of a machine.

use std::env::VarError;
use std::fmt;
use std::num::{IntErrorKind, ParseIntError};
use std::ops::{Range, RangeFull};
use std::str::FromStr;

use lapidary_core::{Error, ErrorKind, Result};

/// A backend. Every build has the same backends as values of this type, but a build without the feature of a backend opens none of
/// its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// The CPU backend. A device number selects one logical device with one thread; without a number the CPU is one device with
    /// all threads.
    Cpu,
    /// The OpenCL backend: devices of OpenCL drivers.
    OpenCl,
    /// The wgpu backend: adapters of Vulkan, Metal and DX12.
    Wgpu,
}

impl Backend {
    /// Returns the backends whose devices this build can open.
    pub fn of_this_build() -> impl Iterator<Item = Backend> {
        let all = [(Backend::Cpu, true), (Backend::OpenCl, cfg!(feature = "opencl")), (Backend::Wgpu, cfg!(feature = "wgpu"))];
        all.into_iter().filter_map(|(backend, is_built)| is_built.then_some(backend))
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Cpu => "cpu",
            Backend::OpenCl => "opencl",
            Backend::Wgpu => "wgpu",
        })
    }
}

/// Some devices of one backend, as `cpu` or `cpu:0,1` in a selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) backend: Backend,
    pub(crate) which: Which,
}

/// The devices of a backend that a selection names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All devices of the backend, if there are any, except the CPU of this computer as an OpenCL or wgpu device.
    Present,
    /// All devices of the backend; at least one must open.
    Every,
    /// The devices with these numbers.
    Listed(Vec<usize>),
}

/// The numbers of the devices that a selection names of one backend: all (`..`), a number, or an array, a slice, a `Vec` or a range of
/// numbers. Numbers count from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers(Which);

impl From<RangeFull> for Numbers {
    fn from(_: RangeFull) -> Self {
        Numbers(Which::Every)
    }
}

impl From<Vec<usize>> for Numbers {
    fn from(numbers: Vec<usize>) -> Self {
        Numbers(Which::Listed(numbers))
    }
}

impl From<usize> for Numbers {
    fn from(number: usize) -> Self {
        vec![number].into()
    }
}

impl From<&[usize]> for Numbers {
    fn from(numbers: &[usize]) -> Self {
        numbers.to_vec().into()
    }
}

impl<const N: usize> From<[usize; N]> for Numbers {
    fn from(numbers: [usize; N]) -> Self {
        numbers.to_vec().into()
    }
}

impl From<Range<usize>> for Numbers {
    fn from(numbers: Range<usize>) -> Self {
        numbers.collect::<Vec<_>>().into()
    }
}

/// A selection of devices, made by methods or parsed from text. The text is `all`, `none`, or backends with optional device numbers
/// such as `cpu`, `cpu:0` and `cpu:0,1`, joined by `+`. The letters of the text may be upper or lower case.
///
/// ```
/// use lapidary::Select;
/// let select = Select::cpu(..).and(Select::opencl([0, 1]));
/// assert_eq!(select.to_string(), "cpu+opencl:0,1");
/// let select: Select = "cpu:0,2".parse()?;
/// assert_eq!(select, Select::cpu([0, 2]));
/// assert!("cpu:x".parse::<Select>().unwrap_err().to_string().contains("`x`"));
/// # Ok::<(), lapidary::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    pub(crate) picks: Vec<Pick>,
}

impl Select {
    /// Selects all available devices: the CPU, then the OpenCL devices, then the wgpu adapters. The devices of a machine have this order, so
    /// that device 0 is the CPU ([`Machine::devices`](crate::Machine::devices)). For each call the machine chooses the devices that take part
    /// ([`Machine::explain`](crate::Machine::explain)). A CPU that is also listed by OpenCL or wgpu is used once, through the CPU
    /// backend.
    #[must_use]
    pub fn all() -> Self {
        Select { picks: Backend::of_this_build().map(|backend| Pick { backend, which: Which::Present }).collect() }
    }

    /// Selects the CPU: one device with all threads (`..`), or logical devices of one thread each, which the numbers name.
    #[must_use]
    pub fn cpu(numbers: impl Into<Numbers>) -> Self {
        Self::of(Backend::Cpu, numbers)
    }

    /// Selects OpenCL devices: all (`..`), or those with the given numbers.
    #[must_use]
    pub fn opencl(numbers: impl Into<Numbers>) -> Self {
        Self::of(Backend::OpenCl, numbers)
    }

    /// Selects wgpu devices: all (`..`), or those with the given numbers.
    #[must_use]
    pub fn wgpu(numbers: impl Into<Numbers>) -> Self {
        Self::of(Backend::Wgpu, numbers)
    }

    /// Selects devices of one backend: all (`..`), or those with the given numbers. Numbers that occur twice give two logical devices,
    /// which share one piece of hardware. OpenCL opens only a CPU twice, and returns an error for other devices. Without a number the selection
    /// is empty: it is printed as `none`, and no machine can be opened from it. A machine cannot be opened either if this build lacks the backend
    /// ([`ErrorKind::NoSuchDevice`]).
    #[must_use]
    pub fn of(backend: Backend, numbers: impl Into<Numbers>) -> Self {
        let Numbers(which) = numbers.into();
        let is_empty = which == Which::Listed(Vec::new());
        Select { picks: if is_empty { Vec::new() } else { vec![Pick { backend, which }] } }
    }

    /// Selects the devices that at least one of the two selections names. The devices of `self` come first. If one selection names a
    /// backend without numbers and the other selection names it with numbers, all devices of the backend are selected. A combination
    /// with [`Select::all`] selects all devices.
    ///
    /// ```
    /// use lapidary::Select;
    /// let gpus = Select::opencl([0, 1]).and(Select::wgpu(0));
    /// assert_eq!(gpus.and(Select::opencl([1, 2])).to_string(), "opencl:0,1,2+wgpu:0");
    /// ```
    #[must_use]
    pub fn and(mut self, other: Select) -> Self {
        if self.is_all() || other.is_all() {
            return Self::all();
        }
        for pick in other.picks {
            let Some(own) = self.picks.iter_mut().find(|own| own.backend == pick.backend) else {
                self.picks.push(pick);
                continue;
            };
            match (&mut own.which, pick.which) {
                (Which::Listed(own), Which::Listed(mut added)) => {
                    added.retain(|number| !own.contains(number));
                    own.extend(added);
                }
                (own, _) => *own = Which::Every,
            }
        }
        self
    }

    fn is_all(&self) -> bool {
        self.picks.iter().any(|pick| pick.which == Which::Present)
    }

    /// Returns the backend of each part of the selection.
    pub fn backends(&self) -> impl Iterator<Item = Backend> {
        self.picks.iter().map(|pick| pick.backend)
    }

    /// Whether a machine with this selection chooses the devices of each call.
    pub(crate) fn names_no_device(&self) -> bool {
        self.picks.iter().all(|pick| pick.which == Which::Present)
    }

    /// Repeats `times` times each device that the selection names by number. The repeated entries are logical devices that share
    /// one piece of hardware.
    #[must_use]
    pub fn repeated(mut self, times: usize) -> Self {
        for pick in &mut self.picks {
            if let Which::Listed(indices) = &mut pick.which {
                *indices = indices.repeat(times);
            }
        }
        self.picks.retain(|pick| pick.which != Which::Listed(Vec::new()));
        self
    }

    /// Adds the name of the variable `LAPIDARY_DEVICE` to an error about a selection, if the variable is set.
    #[must_use]
    pub fn attribute_to_env(error: Error) -> Error {
        let named = std::env::var_os("LAPIDARY_DEVICE").is_some_and(|text| !text.is_empty());
        let selecting = matches!(error.kind(), ErrorKind::NoSuchDevice | ErrorKind::InvalidArgument);
        if named && selecting { error.with("variable", "LAPIDARY_DEVICE") } else { error }
    }

    /// Returns the selection in the variable `LAPIDARY_DEVICE`, or all devices if the variable is unset or empty.
    ///
    /// # Errors
    /// The value of the variable is not a valid selection.
    pub fn from_env() -> Result<Self> {
        match std::env::var("LAPIDARY_DEVICE") {
            Ok(text) if text.is_empty() => Ok(Self::all()),
            Ok(text) => text.parse().map_err(Self::attribute_to_env),
            Err(VarError::NotPresent) => Ok(Self::all()),
            Err(error) => Err(Error::invalid("select", "LAPIDARY_DEVICE is no text").caused_by(error)),
        }
    }
}

/// The text of a selection without devices.
const NONE: &str = "none";

/// Malformed text is an error of kind `InvalidArgument`. Well-formed text is an error of kind `NoSuchDevice` if this build does
/// not contain the backend or if a device number overflows `usize`.
impl FromStr for Select {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.to_ascii_lowercase();
        if let Some(device) = named_twice(&text) {
            return Err(Error::invalid("select", format!("device {device} is named twice")));
        }
        if let Some(right) = with_plus(&text) {
            // a selection that names a backend twice is refused in either form
            right.parse::<Self>()?;
            return Err(Error::invalid("select", format!("`{text}`: a comma stands between numbers; write {right}")));
        }
        if text == "all" {
            return Ok(Self::all());
        }
        if text == NONE {
            return Ok(Select { picks: Vec::new() });
        }
        // parse the whole text before looking up backends, so that malformed text is reported first
        let parts = text.split('+').map(|part| parse_part(part.trim())).collect::<Result<Vec<_>>>()?;
        if let Some((kind, _)) = parts.iter().find(|part| parts.iter().filter(|other| part.0 == other.0).count() > 1) {
            return Err(Error::invalid("select", format!("{kind} is named twice; write {kind}:0,1")));
        }
        let pick = |(kind, indices): (&str, Option<_>)| -> Result<Pick> {
            Ok(Pick { backend: backend(kind)?, which: indices.map_or(Which::Every, Which::Listed) })
        };
        let picks = parts.into_iter().map(pick).collect::<Result<_>>()?;
        Ok(Select { picks })
    }
}

/// Returns a device whose number the text names twice, such as `opencl:0` in `opencl:0,0` and in `opencl:0+opencl:0`.
fn named_twice(text: &str) -> Option<String> {
    let (mut kind, mut seen) = ("", Vec::new());
    for part in text.split([',', '+']) {
        let index = part.split_once(':').map_or(part, |(word, index)| {
            kind = word.trim();
            index
        });
        let Ok(index) = index.trim().parse::<usize>() else { continue };
        if seen.contains(&(kind, index)) {
            return Some(format!("{kind}:{index}"));
        }
        seen.push((kind, index));
    }
    None
}

/// The name of the backend with which a part of a selection begins.
fn kind_of(part: &str) -> &str {
    part.split(':').next().unwrap_or(part)
}

/// Corrects a selection in which a comma stands before the name of a backend: `cpu,opencl` becomes `cpu+opencl`, and `cpu:0,cpu:1` becomes
/// `cpu:0,1`. Returns `None` if no comma stands before the name of a backend.
fn with_plus(text: &str) -> Option<String> {
    let mut parts = text.split(',').map(str::trim);
    let first = parts.next()?.to_owned();
    let is_kind = |part: &str| part.starts_with(|sign: char| sign.is_ascii_alphabetic());
    if text.split([',', '+']).any(|part| part.trim() == "all") {
        // the parser reports the error that `all` must stand alone
        return None;
    }
    let (right, _) = parts.fold((first.clone(), kind_of(&first).to_owned()), |(text, kind), part| match part.split_once(':') {
        Some((same, number)) if same == kind && text.contains(':') => (format!("{text},{number}"), kind),
        _ if is_kind(part) => (format!("{text}+{part}"), kind_of(part).to_owned()),
        _ => (format!("{text},{part}"), kind),
    });
    (right != text.split(',').map(str::trim).collect::<Vec<_>>().join(",")).then_some(right)
}

/// Parses a backend name and optional device numbers. This function does not check whether the backend exists.
fn parse_part(part: &str) -> Result<(&str, Option<Vec<usize>>)> {
    let (kind, indices) = part.split_once(':').map_or((part, None), |(kind, indices)| (kind, Some(indices)));
    let is_word = !kind.is_empty() && kind.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if !is_word || kind == "all" {
        let hint = if kind == "all" { "`all` stands alone" } else { "write all, or cpu, cpu:0,1, cpu+opencl:0" };
        let subject =
            if part.is_empty() { "the name of a device is missing".to_owned() } else { format!("`{part}` names no devices here") };
        return Err(Error::invalid("select", format!("{subject}; {hint}")));
    }
    let indices =
        indices.map(|list| list.split(',').map(|index| parse_index(kind, index)).collect::<Result<Vec<_>>>()).transpose()?;
    Ok((kind, indices))
}

fn backend(kind: &str) -> Result<Backend> {
    Backend::of_this_build().find(|backend| backend.to_string() == kind).ok_or_else(|| not_in_build(kind))
}

/// The error of a selection that names a backend which this build lacks.
pub(crate) fn not_in_build(kind: impl fmt::Display) -> Error {
    let known: Vec<String> = Backend::of_this_build().map(|backend| backend.to_string()).collect();
    let message = format!("no device kind `{kind}` in this build; there is: {}", known.join(", "));
    Error::new(ErrorKind::NoSuchDevice, "select", message)
}

fn parse_index(kind: &str, text: &str) -> Result<usize> {
    text.trim().parse().map_err(|source: ParseIntError| match source.kind() {
        IntErrorKind::PosOverflow => Error::new(ErrorKind::NoSuchDevice, "select", format!("there is no {kind}:{text}")),
        _ => Error::invalid("select", format!("`{text}` is no device number; write {kind}:0 or {kind}:0,1")).caused_by(source),
    })
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_all() {
            return f.write_str("all");
        }
        if self.picks.is_empty() {
            return f.write_str(NONE);
        }
        for (i, Pick { backend, which }) in self.picks.iter().enumerate() {
            write!(f, "{}{backend}", if i == 0 { "" } else { "+" })?;
            let indices: &[usize] = if let Which::Listed(indices) = which { indices } else { &[] };
            for (j, index) in indices.iter().enumerate() {
                write!(f, "{}{index}", if j == 0 { ":" } else { "," })?;
            }
        }
        Ok(())
    }
}
