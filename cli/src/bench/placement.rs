//! Where the matrices of a timed call lie.

/// The memory in which the matrices of a timed call lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The matrices lie in host memory. The time of a call includes all transfers.
    Host,
    /// The matrices lie in device memory. The time of a call includes no transfers.
    Resident,
}

impl Placement {
    /// Name of the placement in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Host => "host",
            Placement::Resident => "resident",
        }
    }

    /// Name of the curve of this placement in a plot that also shows the other placement.
    pub fn curve(self) -> &'static str {
        match self {
            Placement::Host => "with transfers",
            Placement::Resident => "in device memory",
        }
    }
}
