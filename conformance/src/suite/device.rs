//! Properties of the devices of a subject, below the level of the routines.

use lapidary_core::Scalar;

use super::Entry;
use crate::Subject;
use crate::device::{Probe, every};

/// Creates entries of the list of properties from names, requirements and probes.
macro_rules! entries {
    ($($name:literal, $about:literal => $probe:ident;)+) => {
        vec![$(($name, $about, |trial| every::<S, T>(trial, Probe::$probe))),+]
    };
}

pub(super) fn transfers<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    entries! {
        "round_trip", "Rectangles of every shape and layout arrive and come back whole, and nothing around them is written." => RoundTrip;
        "bits_are_kept", "NaN, infinities, zeros of either sign and subnormal numbers are moved bit for bit." => Bits;
        "indices", "Columns of row indices arrive and come back." => Indices;
    }
}

pub(super) fn ordering<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    entries! {
        "commands_run_in_order", "Commands that depend on one another give what the same steps give on the host." => Chain;
        "queues_and_tokens", "So they do when they are submitted to several queues, each after the one before." => Queues;
        "threads_at_once", "So they do from several threads, each with buffers of its own." => Threads;
    }
}

pub(super) fn program<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    entries! {
        "products", "The instruction gemm keeps bound 1 on operands inside larger buffers." => Products;
        "products_in_norm", "Products that need to be accurate in norm only keep bound 15, and propagate NaN and infinities." => InNorm;
        "new_memory_is_not_read", "With β = 0 the instruction gemm does not read its result." => NewMemory;
        "scale_and_copy", "Scaling by a power of two and copying do not round, and copying to f32 rounds to nearest." => Moves;
        "triangles", "The instruction trsm keeps bound 7 in both modes." => Triangles;
        "ill_conditioned_triangles", "With blocks that have no accurate inverse, trsm keeps the norm-wise part of bound 7 in the mode inverted." => IllConditioned;
        "panels", "The instructions getrf and laswp keep bound 8, with pivots of the whole matrix." => Panels;
        "panels_without_pivoting", "Without pivoting the instruction getrf exchanges no rows and keeps bound 8." => WithoutPivoting;
        "batched_products", "The instruction gemm_batched keeps bound 1 for each matrix." => BatchedProducts;
        "batched_systems", "The instructions getrf_batched, getrs_batched and zero_pivots keep bound 8 for each matrix, beside a singular one." => BatchedSystems;
        "info_names_the_zero_pivot", "info is the row of a zero pivot in the whole matrix." => ZeroPivot;
    }
}

pub(super) fn faults<S: Subject + ?Sized, T: Scalar>() -> Vec<Entry<S>> {
    entries! {
        "too_much_memory_is_refused", "More memory than there is is refused as such, and other buffers keep their values." => TooMuchMemory;
    }
}
