//! `lapidary bench --sweep`: the sizes, the placements and the files of a sweep over sizes.

use std::path::{Path, PathBuf};

use lapidary::Machine;

use super::placement::Placement;
use crate::failure::{Failure, Result};
use crate::options::names;
use crate::report::note;

/// A sweep over sizes that the user does not name ends after a size of which a call takes longer than this number of seconds.
pub const MAX_SECONDS: f64 = 1.0;

/// The smallest size of [`ladder`].
const MIN_SIZE: usize = 64;

/// The largest size of [`ladder`].
const MAX_SIZE: usize = 32768;

/// The smallest power of two whose odd neighbours are sizes of [`ladder`].
const MIN_POWER_WITH_NEIGHBOURS: usize = 256;

/// The sizes of a sweep over sizes that the user does not name, in ascending order. The sizes are the powers of two from
/// [`MIN_SIZE`] to [`MAX_SIZE`] and the size midway between each two of them. The ladder also contains the odd neighbours of large
/// powers of two, since a routine may be much slower for odd sizes, or for leading dimensions that are powers of two.
pub fn ladder() -> Vec<usize> {
    let powers = std::iter::successors(Some(MIN_SIZE), |size| Some(size * 2)).take_while(|size| *size <= MAX_SIZE);
    powers
        .flat_map(|power| {
            let neighbour = |size| (power >= MIN_POWER_WITH_NEIGHBOURS).then_some(size);
            [neighbour(power - 1), Some(power), neighbour(power + 1), Some(power / 2 * 3)]
        })
        .flatten()
        .filter(|size| *size <= MAX_SIZE)
        .collect()
}

/// The placements of a sweep. A note states the reason if the sweep uses only one placement.
pub fn placements(machine: &Machine) -> Vec<Placement> {
    let (all, apart) = (machine.devices().count(), machine.devices().filter(|device| !device.host_memory).count());
    match (all, apart) {
        (_, 0) => note("note: all devices compute in host memory, so that no call has transfers: each size is timed once"),
        (1, _) => return vec![Placement::Host, Placement::Resident],
        _ => note(&format!(
            "note: matrices in device memory lie on one device, so that only calls with transfers are timed; choose one device with --device among {}",
            names(machine.devices())
        )),
    }
    vec![Placement::Host]
}

/// The files of a sweep, whose names begin with `prefix`: the table, the JSON document and the plot.
pub fn files(prefix: &Path) -> Result<[PathBuf; 3]> {
    if prefix.file_name().is_none() || prefix.to_string_lossy().ends_with(std::path::is_separator) {
        return Err(Failure::file(prefix, "--sweep takes the beginning of file names, such as results/gemm; this names a folder"));
    }
    Ok([".tsv", ".json", ".svg"].map(|ending| {
        let mut name = prefix.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_ascends_by_half_octaves_and_odd_neighbours() {
        let sizes = ladder();
        assert_eq!(sizes[..9], [64, 96, 128, 192, 255, 256, 257, 384, 511]);
        assert_eq!(sizes.last(), Some(&32768));
        assert!(sizes.is_sorted_by(|a, b| a < b) && [1023, 1025, 24576].iter().all(|size| sizes.contains(size)), "{sizes:?}");
    }

    #[test]
    fn files_keep_dots_of_the_prefix() {
        assert_eq!(files(Path::new("d/gemm.v2")).unwrap(), ["d/gemm.v2.tsv", "d/gemm.v2.json", "d/gemm.v2.svg"].map(PathBuf::from));
        assert!(["", "d/", "..", "d/.."].iter().all(|prefix| files(Path::new(prefix)).is_err()));
    }
}
