//! The reason why devices take part in a call, as a value and as printed text.

use std::fmt;

use lapidary_core::DeviceRuntime;

use super::Priced;
use super::choice::Price;

/// Explains which devices take part in a call, and why. Printed, an explanation is a table.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explanation {
    /// The routine, the element type and the sizes of the call.
    pub call: String,
    /// Names of the devices that take part in the call.
    pub devices: Vec<String>,
    /// Reason why these devices take part.
    pub reason: Reason,
    /// The sets of devices that were priced, with the chosen set first. The list is empty unless devices were chosen by price.
    pub considered: Vec<PricedSet>,
}

/// Why devices take part in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The selection names these devices, or the application passed them to the machine.
    Selected,
    /// The selection names more devices, but all of them together would need longer, by the estimates in their facts.
    Faster,
    /// A reproducible call uses devices of one model, at most eight.
    OneModel,
    /// No other device can run the call.
    Alone,
    /// The call is so small that another device would cost more time than it could save.
    Small,
    /// The matrices lie on this device.
    Resident,
    /// Measuring speeds failed on all devices, for example because the memory limit is too small. If no device could be measured,
    /// the first device runs the call.
    Unmeasured,
    /// The price of these devices is the lowest.
    Price,
    /// The price of these devices was the lowest when they were chosen. A cached choice of devices is reused for eight calls of
    /// the same problem.
    Cached,
    /// The machine runs the call on these devices to measure them: they have run calls of this size only a few times, or not
    /// recently, so their price may be too high.
    Trial,
}

/// A set of devices with the price of a call on them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PricedSet {
    /// Names of the devices.
    pub devices: Vec<String>,
    /// Expected time of the call in seconds.
    pub seconds: f64,
    /// Number of earlier calls of about this size whose times correct `seconds`, at most five. If `runs` is 0, `seconds` comes from
    /// measured speeds and from the times of calls of other sizes.
    pub runs: usize,
}

/// The type of the function that [`Machine::explained`](crate::Machine::explained) takes.
pub(crate) type Tell = dyn Fn(&Explanation) + Send + Sync;

/// The function that the machine calls with each explanation.
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
    /// Returns the priced sets with the names of their devices.
    pub fn sets(&self, runtimes: &[DeviceRuntime]) -> Vec<PricedSet> {
        let name = |device: usize| runtimes[device].facts().name.clone();
        self.prices.iter().map(|price| PricedSet::new(price, name)).collect()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Selected => "no others are selected",
            Reason::Faster => "it is expected to be faster than all selected devices together",
            Reason::OneModel => "a reproducible call uses devices of one model, at most eight",
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
