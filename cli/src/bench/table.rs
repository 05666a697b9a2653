//! Formats measurements as the table that `lapidary bench` prints, and as text with tabs between the columns.

use super::measure::{Measured, Samples};
use crate::report::fixed;
use crate::shape::Shape;

/// Formats pairs of names and values, such as `m=8 n=16`.
pub fn words<V: std::fmt::Display>(pairs: &[(&'static str, V)]) -> String {
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// The heading of the table. `peer` is the name of the routine that is timed in turn with Lapidary's, if any.
pub fn header(shape: &Shape, peer: Option<&str>) -> String {
    let sizes: String = shape.sizes().iter().map(|(name, _)| format!("{name:>8} ")).collect();
    let columns = |name| format!("{:>12}{:>15}{:>10}", format!("{name} ms"), format!("{name} GFLOP/s"), "ratio");
    let peer = peer.map(columns).unwrap_or_default();
    format!("{sizes}{:>8}{:>11}{:>12}{:>12}{:>12}{:>16}{peer}", "memory", "median ms", "min ms", "max ms", "GFLOP/s", "check")
}

/// The row of the table for one call.
pub fn row(measured: &Measured) -> String {
    let sizes: String = measured.shape.sizes().iter().map(|(_, size)| format!("{size:>8} ")).collect();
    let memory = measured.placement.name();
    let (ours, check) = &measured.ours;
    let [median, min, max] = [ours.median(), ours.min(), ours.max()].map(|seconds| fixed(seconds * 1e3, 4));
    let verdict = format!("{} {}", fixed(check.ratio, 3), check.verdict());
    let mut row = format!("{sizes}{memory:>8}{median:>11}{min:>12}{max:>12}{:>12}{verdict:>16}", speed(ours));
    if let (Some((peer, check)), Some(ratio)) = (&measured.peer, measured.speed_ratio()) {
        let (ms, gflops, ratio) = (fixed(peer.median() * 1e3, 4), speed(peer), fixed(ratio, 3));
        row += &format!("{ms:>12}{gflops:>15}{ratio:>10}");
        row += if check.passed() { "" } else { "  peer WRONG" };
    }
    row
}

/// The GFLOP/s of the samples as text, or a dash for a routine without floating-point operations.
fn speed(samples: &Samples) -> String {
    samples.gflops().map_or_else(|| "-".to_owned(), |gflops| fixed(gflops, 3))
}

/// Formats all measurements with tabs between the columns. The first line names the columns. Each further line holds the samples of
/// one library for one call. `results` must not be empty.
pub fn tsv(results: &[Measured]) -> String {
    let sizes = results[0].shape.sizes().into_iter().map(|(name, _)| name);
    let figures = ["library", "memory", "median_seconds", "min_seconds", "max_seconds", "gflops", "check_ratio", "check"];
    let mut text = sizes.chain(figures).collect::<Vec<_>>().join("\t") + "\n";
    for measured in results {
        let sizes: String = measured.shape.sizes().iter().map(|(_, size)| format!("{size}\t")).collect();
        let memory = measured.placement.name();
        let libraries = [("lapidary", Some(&measured.ours)), ("peer", measured.peer.as_ref())];
        for (library, (samples, check)) in libraries.into_iter().filter_map(|(library, run)| Some((library, run?))) {
            let [median, min, max] = [samples.median(), samples.min(), samples.max()];
            let gflops = samples.gflops().map_or_else(|| "-".to_owned(), |gflops| gflops.to_string());
            let (ratio, verdict) = (check.ratio, check.verdict());
            text += &format!("{sizes}{library}\t{memory}\t{median}\t{min}\t{max}\t{gflops}\t{ratio}\t{verdict}\n");
        }
    }
    text
}
