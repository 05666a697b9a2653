//! The database of kernels that devices use, with the user's tuned kernels before those that ship with Lapidary, and methods of
//! `Machine` that measure kernels.

use std::path::{Path, PathBuf};

use lapidary_core::{Error, ErrorKind};
use lapidary_kernels::Database;
use lapidary_kernels::database::BYTE_ORDER_MARK;

use crate::machine::Machine;
use crate::settings::Settings;

/// Reads the user's tuned kernels. Returns a database in which they precede the kernels that ship with Lapidary, and a note for
/// each file that cannot be read and each line that is no entry.
pub(crate) fn database(settings: &Settings) -> (Database, Vec<String>) {
    let (tuned, notes) = of_user(settings);
    (tuned.then(Database::shipped()), notes)
}

/// Reads the user's tuned kernels, and returns a note for each file that cannot be read and each line that is no entry.
pub(crate) fn of_user(settings: &Settings) -> (Database, Vec<String>) {
    let (mut tuned, mut notes) = (Database::default(), Vec::new());
    for path in settings.kernels_folder().map_or_else(Vec::new, |folder| files(&folder, &mut notes)) {
        match read(&path) {
            Ok(text) => notes.extend(tuned.add(&path.display().to_string(), &text)),
            Err(note) => notes.push(note),
        }
    }
    (tuned, notes)
}

/// Returns the text of the user's tuned kernels. Each file begins with a line for all devices, because a line that names the devices of
/// one file must not apply to the next file.
///
/// # Errors
/// A file cannot be read, or a line is no entry. The errors are the notes of [`of_user`].
pub(crate) fn text(settings: &Settings) -> Result<String, Vec<String>> {
    let (mut all, mut notes) = (String::new(), Vec::new());
    for path in settings.kernels_folder().map_or_else(Vec::new, |folder| files(&folder, &mut notes)) {
        match read(&path) {
            Ok(text) => {
                notes.extend(Database::default().add(&path.display().to_string(), &text));
                all += &format!("[any]\n{}\n", text.trim_start_matches(BYTE_ORDER_MARK));
            }
            Err(note) => notes.push(note),
        }
    }
    if notes.is_empty() { Ok(all) } else { Err(notes) }
}

/// Reads a file of tuned kernels. The error is a note for the user.
fn read(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: tuned kernels are not used: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the text files of a folder in the order of their names. There need not be a folder.
fn files(folder: &Path, notes: &mut Vec<String>) -> Vec<PathBuf> {
    match std::fs::read_dir(folder) {
        Ok(entries) => {
            let is_text = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "txt");
            let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_text).collect();
            files.sort();
            files
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            notes.push(format!("{}: tuned kernels are not used: {error}", folder.display()));
            Vec::new()
        }
    }
}

impl Machine {
    /// Makes the devices prefer the kernels that a text names over those of the database. The text has the format of the database
    /// ([`kernels::database`](crate::kernels::database)), and replaces the text of an earlier call. With an empty text, the
    /// database alone chooses the kernels. A device ignores entries for kernels that it does not have: the CPU backend has only cache blocks
    /// (`cpu_blocks`), and other devices have none.
    ///
    /// # Errors
    /// A line of the text names no kernel, a kernel exceeds a limit of a device, or the kernels of no device have parameters.
    pub fn prefer_kernels(&self, entries: &str) -> lapidary_core::Result<()> {
        let mut preferred = None;
        self.visit_devices(&mut |device| {
            let of_device = device.prefer_kernels(entries);
            preferred = match preferred.take() {
                Some(Err(error)) => Some(Err(error)),
                earlier => of_device.or(earlier),
            };
        });
        let no_parameters =
            || Error::new(ErrorKind::Unsupported, "prefer_kernels", "the kernels of these devices have no parameters");
        preferred.unwrap_or_else(|| Err(no_parameters()))
    }
}

#[cfg(test)]
mod tests {
    use lapidary_core::DeviceFacts;
    use lapidary_kernels::Dialect;

    use super::*;

    fn settings(folder: &Path) -> Settings {
        Settings { kernels_dir: Some(folder.to_owned()), ..Settings::default() }
    }

    fn first(database: &Database) -> String {
        database.entries(&DeviceFacts::new("test:0"), Dialect::Wgsl).next().unwrap().kernel.to_string()
    }

    #[test]
    fn tuned_kernels_come_first_and_what_is_damaged_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("b.txt"), "solve items=2\nsolve\n").unwrap();
        std::fs::write(folder.path().join("a.txt"), b"\xff\nsolve items=4\n").unwrap();
        std::fs::write(folder.path().join("a.old"), "solve items=8\n").unwrap();
        std::fs::create_dir(folder.path().join("c.txt")).unwrap();
        let (database, notes) = database(&settings(folder.path()));
        assert_eq!(first(&database), "solve items=4");
        let reasons = ["a.txt:1", "b.txt:2", "c.txt: tuned kernels are not used"];
        assert!(notes.len() == 3 && notes.iter().zip(reasons).all(|(note, reason)| note.contains(reason)), "{notes:?}");
    }

    #[test]
    fn the_devices_of_one_file_are_not_those_of_the_next_in_the_text() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(text(&settings(folder.path())), Ok(String::new()));
        std::fs::write(folder.path().join("a.txt"), "[device other]\nsolve items=2").unwrap();
        std::fs::write(folder.path().join("b.txt"), "\u{feff}solve items=4\n").unwrap();
        let mut all = Database::default();
        assert_eq!(all.add("all", &text(&settings(folder.path())).unwrap()), Vec::<String>::new());
        assert_eq!(first(&all), "solve items=4");
        // with a damaged line or file there is no text
        std::fs::write(folder.path().join("c.txt"), "solve items=4\nsolve items\n").unwrap();
        std::fs::create_dir(folder.path().join("d.txt")).unwrap();
        let notes = text(&settings(folder.path())).unwrap_err();
        let reasons = ["c.txt:2: `solve items` is skipped", "d.txt: tuned kernels are not used"];
        assert!(notes.len() == 2 && notes.iter().zip(reasons).all(|(note, reason)| note.contains(reason)), "{notes:?}");
    }

    #[test]
    fn without_a_folder_the_shipped_kernels_are_used() {
        let shipped = first(Database::shipped());
        for folder in [Path::new(""), Path::new("/nonexistent/kernels")] {
            let (database, notes) = database(&settings(folder));
            assert_eq!((first(&database), notes), (shipped.clone(), Vec::new()));
        }
        let (_, notes) = database(&settings(Path::new(file!())));
        assert_eq!(notes.len(), usize::from(Path::new(file!()).exists()));
    }
}
