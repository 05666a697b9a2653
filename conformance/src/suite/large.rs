//! Properties of matrices with so many elements that 32-bit indices overflow under `--full`.

use lapidary_core::Scalar;

use super::Entry;
use crate::Subject;
use crate::device::{Probe, every};
use crate::properties::large;

pub(super) fn on_devices<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    vec![(
        "matrix_in_one_buffer",
        "A matrix of more than 2^16 elements, with --full 2^31, in one buffer of a device: moved, multiplied, exchanged, solved.",
        |trial| every::<S, T>(trial, Probe::OneBuffer),
    )]
}

pub(super) fn in_host_memory<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    vec![(
        "matrix_in_host_memory",
        "gemm, laswp and trsm on a matrix of more than 2^16 elements, with --full 2^31, in host memory.",
        large::check_large::<S, T>,
    )]
}
