//! The check that the operands of a call lie on the device of its stream.

use lapidary_core::{Error, Home, Layout, RawMat, Result};

use crate::stream::Stream;

/// An operand of a call, with the name of its argument.
pub(super) type Named = (&'static str, RawMat);

impl Stream {
    /// Returns an error unless all operands lie on the device of the stream. The error names the first operand that does not.
    pub(super) fn check_places(&self, operation: &'static str, operands: &[Named]) -> Result<()> {
        let mut wrong = operands.iter().filter_map(|(name, raw)| self.wrong_place(raw).map(|place| format!("{name} {place}")));
        wrong.next().map_or(Ok(()), |message| Err(Error::invalid(operation, message)))
    }

    /// Says where an operand lies, unless it lies on the device of the stream.
    fn wrong_place(&self, raw: &RawMat) -> Option<String> {
        let Home::Device(resident) = raw.home else {
            return Some("lies in host memory: upload it, or use the calls of `Machine`".to_owned());
        };
        let runtime = self.machine.runtimes().get(resident.device);
        if runtime.is_none_or(|runtime| runtime.resident(resident.key).is_err()) {
            return Some("belongs to another machine".to_owned());
        }
        (resident.device != self.device)
            .then(|| format!("lies on device {}, the stream is one of device {}", resident.device, self.device))
    }

    /// Returns an error if an operand is a transposed view. Operands of products, solves and row exchanges may be transposed views.
    pub(super) fn check_untransposed(operation: &'static str, operands: &[Named]) -> Result<()> {
        let mut transposed = operands.iter().filter(|(_, raw)| raw.layout == Layout::RowMajor);
        transposed.next().map_or(Ok(()), |(name, _)| {
            Err(Error::invalid(operation, format!("{name} is a transposed view; pass the matrix untransposed")))
        })
    }
}
