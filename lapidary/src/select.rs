//! Which devices a machine consists of.

use std::env::VarError;
use std::fmt;
use std::str::FromStr;

use lapidary_core::{Error, ErrorKind, Result};

/// The kinds of devices that this build knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// Logical devices of the CPU.
    Cpu,
    /// Devices of OpenCL drivers.
    #[cfg(feature = "opencl")]
    OpenCl,
}

impl Backend {
    /// Every kind.
    pub const ALL: &[Backend] = &[
        Backend::Cpu,
        #[cfg(feature = "opencl")]
        Backend::OpenCl,
    ];
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Cpu => "cpu",
            #[cfg(feature = "opencl")]
            Backend::OpenCl => "opencl",
        })
    }
}

/// Some devices of one kind: `cpu`, `cpu:0,1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) backend: Backend,
    pub(crate) which: Which,
}

/// Which devices of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that are there, if any; not the machine's processor once more.
    Present,
    /// All; there must be one.
    Every,
    /// By number.
    Listed(Vec<usize>),
}

/// A selection of devices: `all`, `cpu`, `cpu:0`, `cpu:0,1`; kinds are joined by `+`.
///
/// ```
/// use lapidary::Select;
/// let select: Select = "cpu:0,2".parse()?;
/// assert_eq!(select.to_string(), "cpu:0,2");
/// assert!("cpu:x".parse::<Select>().unwrap_err().to_string().contains("`x`"));
/// # Ok::<(), lapidary::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    pub(crate) picks: Vec<Pick>,
}

impl Select {
    /// Whatever is there. A processor that several kinds offer counts once.
    #[must_use]
    pub fn all() -> Self {
        Select { picks: Backend::ALL.iter().map(|&backend| Pick { backend, which: Which::Present }).collect() }
    }

    /// Devices `0..count` of one kind.
    #[must_use]
    pub fn first(backend: Backend, count: usize) -> Self {
        Select { picks: vec![Pick { backend, which: Which::Listed((0..count).collect()) }] }
    }

    /// The selection named by `LAPIDARY_DEVICE`; all devices if it is not set.
    ///
    /// # Errors
    /// The variable does not name devices.
    pub fn from_env() -> Result<Self> {
        match std::env::var("LAPIDARY_DEVICE") {
            Ok(text) if text.is_empty() => Ok(Self::all()),
            Ok(text) => text.parse().map_err(|error: Error| error.with("variable", "LAPIDARY_DEVICE")),
            Err(VarError::NotPresent) => Ok(Self::all()),
            Err(error) => Err(Error::invalid("select", "LAPIDARY_DEVICE is no text").caused_by(error)),
        }
    }
}

impl FromStr for Select {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "all" {
            return Ok(Self::all());
        }
        let picks = text.split('+').map(|part| parse_pick(part.trim())).collect::<Result<Vec<_>>>()?;
        for (i, pick) in picks.iter().enumerate() {
            if picks[..i].iter().any(|earlier| earlier.backend == pick.backend) {
                return Err(Error::invalid("select", format!("{0} is named twice; write {0}:0,1", pick.backend)));
            }
        }
        Ok(Select { picks })
    }
}

fn parse_pick(part: &str) -> Result<Pick> {
    let (kind, indices) = part.split_once(':').map_or((part, None), |(kind, indices)| (kind, Some(indices)));
    let backend = Backend::ALL.iter().copied().find(|backend| backend.to_string() == kind).ok_or_else(|| {
        let known: Vec<String> = Backend::ALL.iter().map(ToString::to_string).collect();
        Error::new(
            ErrorKind::NoSuchDevice,
            "select",
            format!("no device kind `{kind}` in this build; there is: {}", known.join(", ")),
        )
    })?;
    let indices = indices.map(|list| list.split(',').map(parse_index).collect::<Result<Vec<_>>>()).transpose()?;
    if let Some(repeated) = indices.iter().flatten().find(|i| indices.iter().flatten().filter(|j| i == j).count() > 1) {
        return Err(Error::invalid("select", format!("device {backend}:{repeated} is named twice")));
    }
    Ok(Pick { backend, which: indices.map_or(Which::Every, Which::Listed) })
}

fn parse_index(text: &str) -> Result<usize> {
    text.trim().parse().map_err(|source| {
        Error::invalid("select", format!("`{text}` is no device number; write cpu:0 or cpu:0,1")).caused_by(source)
    })
}

impl fmt::Display for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.picks.iter().any(|pick| pick.which == Which::Present) {
            return f.write_str("all");
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
