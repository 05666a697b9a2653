//! The tuned kernels of a device in the user's folder, as entries of the database of kernels.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use lapidary::DType;
use lapidary::kernels::Database;
use lapidary::kernels::database::{BYTE_ORDER_MARK, Entry, Family, Kernel, Least, LeastGroups, ProductSizes, Scope};

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

/// First line of each file.
const HEADING: &str = "# Written by `lapidary tune`. Lines may be edited or removed.";

/// Writes a winner to the file of its device. The entry replaces an earlier one for the same call. Lines without a measurement of
/// this device are the user's: they stay unchanged before the measured entries, and so take precedence.
///
/// # Errors
/// The file cannot be read or written. An existing file is unchanged then.
pub fn save(folder: &Path, device: &Device, winner: &Winner) -> Result<PathBuf> {
    let path = path(folder, device, winner.kernel.family());
    let (kept, mut entries) = existing(&path, device)?;
    let scope = Scope::Device(device.facts.identity.model.clone());
    let is_held = matches!(winner.kernel, Kernel::Group(Family::HeldRows, _));
    entries.retain(|entry| !is_replaced(entry, winner));
    entries.push(Entry {
        scope: scope.clone(),
        dtype: Some(winner.call.dtype()),
        dialect: device.language,
        // panels with fewer rows are factored by other kernels, which the search did not compare
        least: Least { rows: if is_held { winner.call.sizes[0] / 2 } else { 0 }, ..Least::default() },
        max_groups: usize::MAX,
        speed: None,
        sizes: order::sizes_of(winner.kernel, &winner.call),
        kernel: winner.kernel,
        origin: winner.measurement.clone(),
    });
    let mut text = format!("{HEADING}\n\n{kept}{scope}\n");
    for dtype in [DType::F32, DType::F64] {
        let mut of_type: Vec<&mut Entry> = entries.iter_mut().filter(|entry| entry.dtype == Some(dtype)).collect();
        order::sort(&mut of_type, restrict);
        for entry in of_type {
            text += &format!("{entry}  # {}\n", entry.origin);
        }
    }
    std::fs::create_dir_all(folder).map_err(|error| Failure::write(folder, error))?;
    atomic::write_text(&path, &text)?;
    Ok(path)
}

/// Checks that the results of a device can be added to its file, before a search takes time.
///
/// # Errors
/// The file cannot be read, or one of its lines is no entry.
pub fn readable(folder: &Path, device: &Device, family: &str) -> Result<()> {
    existing(&path(folder, device, family), device).map(drop)
}

fn path(folder: &Path, device: &Device, family: &str) -> PathBuf {
    folder.join(format!("{}.txt", slug(device, family)))
}

/// A name for files about a device and a family of kernels.
pub fn slug(device: &Device, family: &str) -> String {
    let name = format!("{family}-{}-{}", device.language_name(), device.facts.identity.model);
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let mut slug: String = name.chars().map(plain).collect();
    slug.truncate(100);
    slug
}

/// Returns the lines of a file that are the user's, and the entries that this command has measured, whose origins are their
/// comments.
fn existing(path: &Path, device: &Device) -> Result<(String, Vec<Entry>)> {
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(Failure::file(path, error)),
    };
    let text = text.trim_start_matches(BYTE_ORDER_MARK);
    let mut database = Database::default();
    if let Some(problem) = database.add(&path.display().to_string(), text).first() {
        return Err(Failure::usage(format!("{problem}; mend or remove the line")));
    }
    let scope = Scope::Device(device.facts.identity.model.clone());
    let of_device = |entry: &&Entry| entry.scope == scope && entry.dtype.is_some() && entry.dialect == device.language;
    let (mut numbers, mut entries) = (HashSet::new(), Vec::new());
    for entry in database.entries(&device.facts, device.dialect()).filter(of_device).filter(|entry| sizes(entry).is_some()) {
        // the origin is the path, the number of the line, and the comment
        let origin = entry.origin.strip_prefix(&format!("{}:", path.display())).unwrap_or_default();
        let (number, comment) = origin.split_once(": ").unwrap_or_default();
        numbers.insert(number.to_owned());
        entries.push(Entry { origin: comment.to_owned(), ..entry.clone() });
    }
    let is_kept = |(number, line): &(usize, &str)| *line != HEADING && !numbers.contains(&number.to_string());
    let mut kept: Vec<&str> = (1..).zip(text.lines()).filter(is_kept).map(|(_, line)| line).collect();
    let is_own = |line: &&str| line.trim().is_empty() || line.trim() == scope.to_string();
    kept.truncate(kept.iter().rposition(|line| !is_own(line)).map_or(0, |last| last + 1));
    let first = kept.iter().position(|line| !line.trim().is_empty()).unwrap_or(0);
    Ok((kept[first..].iter().map(|line| format!("{line}\n")).collect(), entries))
}

/// Whether a winner takes the place of an entry: one for the same call, or for the same kernel if its entries apply to all sizes.
fn is_replaced(entry: &Entry, winner: &Winner) -> bool {
    let is_of_all_sizes = !matches!(winner.kernel, Kernel::Product(_) | Kernel::Cpu(_));
    let is_of_kernel = entry.kernel.family() == winner.kernel.family() && entry.dtype == Some(winner.call.dtype());
    is_of_call(entry, &winner.call) || (is_of_all_sizes && is_of_kernel && sizes(entry).is_some())
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

/// An entry applies to products with at most this many times its measured work-groups: to squares of four times the order.
const LARGER: usize = 16;
/// Largest number in an entry of the database.
const LARGEST: usize = 1 << 20;

/// Sorts entries that apply to the same sizes from large to small products. An entry applies from the size on that lies, as a geometric mean,
/// between its own measured size and the next smaller one. The last entry for products of any shape applies from a quarter of its measured
/// work-groups on. Each entry applies to at most [`LARGER`] times its measured work-groups. The shipped entries serve products that
/// are smaller, narrower or far larger.
fn restrict(entries: &mut [&mut Entry]) {
    let elements = |entry: &Entry| sizes(entry).map_or(0.0, |[m, n, _]| m as f64 * n as f64);
    entries.sort_by(|a, b| elements(b).total_cmp(&elements(a)));
    for entry in entries.iter_mut() {
        entry.max_groups = match (entry.kernel, sizes(entry)) {
            (Kernel::Product(product), Some(sizes)) => {
                let most = product.groups(sizes).saturating_mul(LARGER);
                if most <= LARGEST { most } else { usize::MAX }
            }
            _ => usize::MAX,
        };
    }
    let measured: Vec<f64> = entries.iter().map(|entry| elements(entry)).collect();
    for (entry, pair) in entries.iter_mut().zip(measured.windows(2)) {
        if let (Kernel::Product(product), true) = (entry.kernel, pair[1] > 0.0) {
            let [mwg, nwg] = product.tile();
            let parts = sizes(entry).map_or(1, |[_, _, k]| product.parts(k));
            let groups = (pair[0] * pair[1]).sqrt() / (mwg * nwg) as f64 * parts as f64;
            entry.least.groups = LeastGroups::Number((groups.ceil() as usize).min(LARGEST));
        }
    }
    if let Some(last) = entries.last_mut() {
        let least = match (last.kernel, sizes(last)) {
            (Kernel::Product(product), Some(sizes)) if last.sizes == ProductSizes::default() => {
                (product.groups(sizes) / 4).min(LARGEST)
            }
            _ => 0,
        };
        last.least.groups = LeastGroups::Number(least);
    }
}

#[cfg(test)]
mod tests {
    use lapidary::DeviceFacts;
    use lapidary::kernels::{Dialect, Tuning};

    use super::*;

    fn device() -> Device {
        let mut facts = DeviceFacts::new("opencl:0");
        facts.identity.model = "Model 5, 2 GHz".to_owned();
        facts.limits.work_group = 1024;
        facts.limits.local_memory = 48 << 10;
        Device { facts, language: Some(Dialect::OpenClC) }
    }

    /// Saves a square tile of `tile` rows as the fastest kernel for products of order `n`, and returns the text of the file.
    fn saved(folder: &Path, is_f64: bool, n: usize, tile: usize) -> String {
        let call = Call { task: "gemm".to_owned(), is_f64, sizes: [n; 3], transposed: [false; 2], is_padded: false, seed: 1 };
        let values = [("mwg", tile), ("nwg", tile), ("kwg", 8), ("mr", 4), ("nr", 4), ("vwm", 1), ("stages", 2)];
        let kernel = Kernel::new("gemm_tile", &values).unwrap();
        let measurement = format!("gflops=1.0 m={n} n={n} k={n} driver=a: b");
        std::fs::read_to_string(save(folder, &device(), &Winner { call, kernel, measurement }).unwrap()).unwrap()
    }

    fn entries(text: &str) -> Vec<&str> {
        text.lines().filter(|line| line.starts_with("gemm_tile")).collect()
    }

    #[test]
    fn an_entry_applies_from_the_mean_of_its_size_and_the_next_smaller_one_on() {
        let folder = tempfile::tempdir().unwrap();
        let [_, _, text] = [(256, 16), (4096, 64), (1024, 32)].map(|(n, tile)| saved(folder.path(), false, n, tile));
        let tiles = "kwg=8 mr=4 nr=4 vwm=1 stages=2  # gflops=1.0 m=";
        assert!(text.contains(&format!(
            "gemm_tile f32 opencl groups>=1024 groups<=65536 mwg=64 nwg=64 {tiles}4096 n=4096 k=4096 driver=a: b\n"
        )));
        assert!(text.contains(&format!("gemm_tile f32 opencl groups>=256 groups<=16384 mwg=32 nwg=32 {tiles}1024 ")), "{text}");
        assert!(text.contains(&format!("gemm_tile f32 opencl groups>=64 groups<=4096 mwg=16 nwg=16 {tiles}256 ")), "{text}");
        let mut database = Database::default();
        assert_eq!(database.add("file", &text), Vec::<String>::new());
        let (facts, dialect) = (device().facts, device().dialect());
        let tuning = Tuning::lookup(&database, &facts, dialect);
        for (n, tile) in [
            (16_385, None),
            (16_384, Some(64)),
            (8192, Some(64)),
            (2048, Some(64)),
            (1984, Some(32)),
            (512, Some(32)),
            (480, Some(16)),
            (128, Some(16)),
            (112, None),
        ] {
            let used = tuning.products(DType::F32, [n; 3]).next().map(|product| product.tile()[0]);
            assert_eq!(used, tile, "{n}");
        }
    }

    #[test]
    fn entries_for_the_largest_products_can_be_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let [_, text] = [(1 << 17, 8), (1 << 18, 8)].map(|(n, tile)| saved(folder.path(), false, n, tile));
        assert_eq!(Database::default().add("file", &text), Vec::<String>::new());
    }

    #[test]
    fn an_entry_replaces_that_of_the_same_call_only() {
        let folder = tempfile::tempdir().unwrap();
        for (is_f64, n, tile) in [(false, 512, 32), (true, 512, 32), (false, 256, 32)] {
            saved(folder.path(), is_f64, n, tile);
        }
        let text = saved(folder.path(), false, 512, 64);
        let known: Vec<_> =
            entries(&text).iter().map(|line| (&line[10..13], line.contains("mwg=64"), line.contains("m=512"))).collect();
        assert_eq!(known, [("f32", true, true), ("f32", false, false), ("f64", false, true)], "{text}");
    }

    #[test]
    fn lines_of_the_user_stay_first_and_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path(), &device(), "gemm");
        let own = "gemm_tile f32 opencl groups>=96 mwg=32 nwg=32 kwg=8 mr=4 nr=4 vwm=1 stages=2";
        let other = "[device Model 6]\ngemm_tile f32 opencl mwg=8 nwg=8 kwg=8 mr=4 nr=4 vwm=1 stages=2  # m=512 n=512 k=512";
        let of_user = format!("# mine\n[device Model 5, 2 GHz]\n{own}\n\n{other}\n");
        // an editor has written a byte order mark
        std::fs::write(&path, format!("\u{feff}{HEADING}\n{of_user}")).unwrap();
        saved(folder.path(), false, 512, 16);
        let text = saved(folder.path(), false, 512, 64);
        let (kept, measured) =
            text.split_at(text.find("[device Model 5, 2 GHz]\ngemm_tile f32 opencl groups>=16 groups<=1024 mwg=64").expect(&text));
        assert_eq!(kept, format!("{HEADING}\n\n{of_user}"));
        assert_eq!(entries(measured).len(), 1, "{text}");
    }

    #[test]
    fn a_file_with_a_damaged_line_is_named_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let text = saved(folder.path(), false, 512, 16).replace("mwg=16", "mwg=x");
        let path = path(folder.path(), &device(), "gemm");
        std::fs::write(&path, &text).unwrap();
        let reason = readable(folder.path(), &device(), "gemm").unwrap_err().to_string();
        assert!(reason.starts_with(&format!("{}:4: ", path.display())) && reason.contains("mwg=x"), "{reason}");
        let call =
            Call { task: "gemm".to_owned(), is_f64: false, sizes: [8; 3], transposed: [false; 2], is_padded: false, seed: 1 };
        let winner = Winner { call, kernel: Kernel::Stop(None), measurement: String::new() };
        assert!(save(folder.path(), &device(), &winner).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert!(readable(folder.path(), &device(), "solve").is_ok());
    }

    #[test]
    fn file_names_are_short_and_plain() {
        let mut device = device();
        assert_eq!(slug(&device, "gemm"), "gemm-opencl-model-5--2-ghz");
        device.facts.identity.model = "é/".repeat(80);
        assert_eq!(slug(&device, "gemm"), format!("gemm-opencl-{}", "-".repeat(88)));
    }
}
