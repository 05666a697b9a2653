//! Why devices take part in a call, for people and programs.

use std::fmt;

use lapidary_core::DeviceRuntime;

use super::Priced;
use super::choice::Price;

/// Which devices take part in a call, and why. It prints as a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The call: the routine, the element type and the sizes.
    pub call: String,
    /// Names of the devices that take part.
    pub devices: Vec<String>,
    /// Why these.
    pub reason: Reason,
    /// The sets of devices that were considered, the chosen one first; empty unless the price decides.
    pub considered: Vec<PricedSet>,
}

/// Why devices take part in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The selection, or the application that made the machine, names them.
    Selected,
    /// No other device is capable.
    Alone,
    /// The call is so small that another device would cost more time than it could save.
    Small,
    /// The matrices lie on the device.
    Resident,
    /// It is the first of several devices of which none could be measured, for example since the memory limit is too small.
    Unmeasured,
    /// Their price is the lowest.
    Price,
    /// Their price was the lowest when they were chosen. A choice is reused for eight calls of the same problem.
    Cached,
    /// They have run at this size a few times only, or not recently, and may be faster than their price says.
    Trial,
}

/// A set of devices with its price for a call.
#[derive(Clone, Debug, PartialEq)]
pub struct PricedSet {
    /// Names of the devices.
    pub devices: Vec<String>,
    /// Expected time of the call in seconds.
    pub seconds: f64,
    /// Runs of about this size by which the time was corrected, at most five. Without any the time comes from measured
    /// speeds, and from runs of other sizes.
    pub runs: usize,
}

/// What [`Machine::explained`](crate::Machine::explained) calls.
pub(crate) type Tell = dyn Fn(&Explanation) + Send + Sync;

/// The function that receives explanations.
pub(crate) struct Listener(pub Box<Tell>);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Listener")
    }
}

impl PricedSet {
    pub(super) fn new(price: &Price, name: impl Fn(usize) -> String) -> Self {
        PricedSet { devices: price.devices.iter().map(|&device| name(device)).collect(), seconds: price.seconds, runs: price.runs }
    }
}

impl Priced {
    /// The sets that are considered.
    pub fn sets(&self, drivers: &[DeviceRuntime]) -> Vec<PricedSet> {
        let name = |device: usize| drivers[device].facts().name.clone();
        self.prices.iter().map(|price| PricedSet::new(price, name)).collect()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Selected => "no others are selected",
            Reason::Alone => "it is the only device that can run it",
            Reason::Small => "the call is too small to be shared",
            Reason::Resident => "matrices of the call lie on it",
            Reason::Unmeasured => "it is the first of several, and no device's speed could be measured",
            Reason::Price => "of these sets, the first is expected to be the fastest",
            Reason::Cached => "the first of these sets was expected to be the fastest when it was chosen, some calls ago",
            Reason::Trial => "the first of these sets may be faster than its price says, and is tried",
        })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { call, devices, reason, considered } = self;
        write!(f, "{call}: on {}, since {reason}", devices.join("+"))?;
        let names: Vec<String> = considered.iter().map(|set| set.devices.join("+")).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0);
        for (set, name) in considered.iter().zip(names) {
            let basis = match set.runs {
                0 => "by measured speeds".to_owned(),
                1 => "corrected by 1 run".to_owned(),
                runs => format!("corrected by {runs} runs"),
            };
            write!(f, "\n  {name:<width$}  {:>10.4} ms  {basis}", set.seconds * 1e3)?;
        }
        Ok(())
    }
}
