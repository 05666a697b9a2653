//! The tuned kernels of a device in the user's folder, as entries of the database of kernels.

use std::path::{Path, PathBuf};

use lapidary::DType;
use lapidary::kernels::Database;
use lapidary::kernels::database::{Entry, Kernel, Least, LeastGroups, Scope};

use super::goal::Device;
use super::message::Call;
use super::order;
use crate::failure::{Failure, Result};
use crate::io::atomic;

/// A kernel that was the fastest for a call.
pub struct Winner {
    /// The call.
    pub call: Call,
    /// The kernel with its parameters.
    pub kernel: Kernel,
    /// What was measured, as `key=value` words.
    pub measurement: String,
}

/// Writes a winner to the file of its device. The entry replaces an earlier one for the same call.
///
/// # Errors
/// The file cannot be read or written. An existing file is unchanged then.
pub fn save(folder: &Path, device: &Device, winner: &Winner) -> Result<PathBuf> {
    let path = folder.join(format!("{}.txt", slug(device, winner.kernel.family())));
    let mut entries = existing(&path, device)?;
    entries.retain(|entry| !is_of_call(entry, &winner.call));
    entries.push(Entry {
        scope: Scope::Device(device.facts.identity.model.clone()),
        dtype: Some(winner.call.dtype()),
        dialect: Some(device.dialect),
        least: Least::default(),
        sizes: order::sizes_of(winner.kernel, &winner.call),
        kernel: winner.kernel,
        origin: winner.measurement.clone(),
    });
    let scope = Scope::Device(device.facts.identity.model.clone());
    let mut text = format!("# Written by `lapidary tune`. Lines may be edited or removed.\n\n{scope}\n");
    for dtype in [DType::F32, DType::F64] {
        let mut of_type: Vec<&mut Entry> = entries.iter_mut().filter(|entry| entry.dtype == Some(dtype)).collect();
        order::sort(&mut of_type, restrict);
        for entry in of_type {
            text += &format!("{entry}  # {}\n", entry.origin);
        }
    }
    std::fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))?;
    atomic::write(&path, |out| out.write_all(text.as_bytes()))?;
    Ok(path)
}

/// A name for files about a device and a family of kernels.
pub fn slug(device: &Device, family: &str) -> String {
    let name = format!("{family}-{}-{}", device.dialect, device.facts.identity.model);
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let mut slug: String = name.chars().map(plain).collect();
    slug.truncate(100);
    slug
}

/// Returns the entries of a file, whose origins are their comments.
fn existing(path: &Path, device: &Device) -> Result<Vec<Entry>> {
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::file(path, error)),
    };
    let mut database = Database::default();
    let problems = database.add("", &text);
    if let Some(problem) = problems.first() {
        return Err(Failure::file(path, format!("{problem}; mend or remove the file")));
    }
    let comment = |origin: &str| origin.split_once(": ").map_or("", |(_, comment)| comment).to_owned();
    let entries = database.entries(&device.facts, device.dialect);
    Ok(entries.map(|entry| Entry { origin: comment(&entry.origin), ..entry.clone() }).collect())
}

/// Whether an entry was measured with a call of this type and these sizes.
fn is_of_call(entry: &Entry, call: &Call) -> bool {
    entry.dtype == Some(call.dtype()) && sizes(entry) == Some(call.sizes)
}

/// The sizes with which an entry was measured, from its comment.
fn sizes(entry: &Entry) -> Option<[usize; 3]> {
    let value = |name: &str| entry.origin.split(' ').find_map(|word| word.strip_prefix(name)?.parse().ok());
    Some([value("m=")?, value("n=")?, value("k=")?])
}

/// Sorts entries that apply to the same sizes from large to small products. An entry applies from the size on that lies, as a geometric mean,
/// between its own measured size and the next smaller one.
fn restrict(entries: &mut [&mut Entry]) {
    let elements = |entry: &Entry| sizes(entry).map_or(0.0, |[m, n, _]| m as f64 * n as f64);
    entries.sort_by(|a, b| elements(b).total_cmp(&elements(a)));
    let measured: Vec<f64> = entries.iter().map(|entry| elements(entry)).collect();
    for (entry, pair) in entries.iter_mut().zip(measured.windows(2)) {
        if let (Kernel::Product(product), true) = (entry.kernel, pair[1] > 0.0) {
            let [mwg, nwg] = product.tile();
            let parts = sizes(entry).map_or(1, |[_, _, k]| product.parts(k));
            let groups = (pair[0] * pair[1]).sqrt() / (mwg * nwg) as f64 * parts as f64;
            entry.least.groups = LeastGroups::Number(groups.ceil() as usize);
        }
    }
    if let Some(last) = entries.last_mut() {
        last.least.groups = LeastGroups::Number(0);
    }
}
