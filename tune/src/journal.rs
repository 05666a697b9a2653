//! Journals: the outcomes of a search in a file, which survives the end of the process.
//!
//! A kernel can hang a device or crash a driver, and so end the process. The journal therefore writes a line to the disk before
//! each launch. When the next search opens the journal, a launch without an outcome shows which candidate ended the process.
//!
//! The first line of a journal is the [`Header`]. Each other line is one of the following, where VALUES are the values of a
//! candidate, one for each axis:
//!
//! - `begin VALUES` before the launch of a candidate;
//! - `end VALUES setup=SECONDS runs=NUMBER seconds=SECONDS` after a measurement;
//! - `failed VALUES REASON` after a failure;
//! - `cancel VALUES` if the user interrupted the program during the launch.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::known::{Known, Timing};
use crate::text::{one_line, parse_seconds};

/// The reason of the failure of a candidate that was running when the process ended.
const CULPRIT: &str = "the process ended while the candidate ran";

/// Identity of a search. Outcomes of searches with different headers are not comparable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Name and version of the kernel family.
    pub family: String,
    /// Identity of the device and its driver.
    pub device: String,
    /// Names of the axes.
    pub axes: Vec<String>,
}

impl Header {
    fn line(&self) -> String {
        let [family, device, axes] = [&self.family, &self.device, &self.axes.join(" ")].map(|text| one_line(text));
        format!("journal 1\tfamily: {family}\tdevice: {device}\taxes: {axes}")
    }
}

/// A file to which a search appends outcomes.
///
/// Every method that appends a line returns after the operating system has written the line to the disk. If a method fails, for example
/// because the disk is full, the file keeps all lines that earlier calls have appended.
#[derive(Debug)]
pub struct Journal {
    file: File,
    /// Length of the complete lines of the file, in bytes.
    length: u64,
    ignored_lines: usize,
    set_aside: Option<PathBuf>,
}

impl Journal {
    /// Opens the journal at `path`, or makes it if there is none. Returns the journal and the outcomes that it contains, in the
    /// order of the measurements. A candidate that was running when the process ended becomes a failure.
    ///
    /// If the header of the file differs from `header`, the file is renamed: `.old` is appended to its name. A file that has this
    /// name already is replaced. The journal then starts without outcomes.
    ///
    /// # Errors
    /// The file cannot be read or written, or another process has opened the journal (`ErrorKind::WouldBlock`).
    pub fn open(path: &Path, header: &Header) -> Result<(Journal, Vec<Known>)> {
        let (mut file, mut bytes) = read_locked(path)?;
        let mut set_aside = None;
        if !bytes.is_empty() && !bytes.starts_with(format!("{}\n", header.line()).as_bytes()) {
            let mut old = path.as_os_str().to_owned();
            old.push(".old");
            std::fs::rename(path, &old)?;
            set_aside = Some(old.into());
            (file, bytes) = read_locked(path)?;
        }
        let mut journal = Journal { file, length: bytes.len() as u64, ignored_lines: 0, set_aside };
        if bytes.is_empty() {
            journal.append(&header.line())?;
        }
        let known = journal.read_lines(&String::from_utf8_lossy(&bytes), header.axes.len())?;
        Ok((journal, known))
    }

    /// Writes that the candidate is about to be launched.
    ///
    /// # Errors
    /// The line cannot be written. The candidate must not be launched then, because the journal could not name it as the culprit.
    pub fn begin(&mut self, values: &[usize]) -> Result<()> {
        self.append(&format!("begin{}", spaced(values)))
    }

    /// Writes the times of the candidate.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn end(&mut self, values: &[usize], timing: Timing) -> Result<()> {
        let Timing { setup_seconds, runs, seconds } = timing;
        self.append(&format!("end{} setup={setup_seconds} runs={runs} seconds={seconds}", spaced(values)))
    }

    /// Writes that the candidate has failed, and the reason.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn failed(&mut self, values: &[usize], reason: &str) -> Result<()> {
        self.append(&format!("failed{} {}", spaced(values), one_line(reason)))
    }

    /// Writes that the launch of the candidate was interrupted for a reason other than the candidate, such as Ctrl-C. The candidate
    /// counts as not measured.
    ///
    /// # Errors
    /// The line cannot be written.
    pub fn cancel(&mut self, values: &[usize]) -> Result<()> {
        self.append(&format!("cancel{}", spaced(values)))
    }

    /// Returns the number of lines that [`open`](Journal::open) could not interpret and therefore ignored.
    #[must_use]
    pub fn ignored_lines(&self) -> usize {
        self.ignored_lines
    }

    /// Returns the new name of an earlier journal if [`open`](Journal::open) renamed one, because its header differed.
    #[must_use]
    pub fn set_aside(&self) -> Option<&Path> {
        self.set_aside.as_deref()
    }

    /// Appends a line. First removes what an interrupted or failed write has left after the last complete line, so that the two
    /// lines do not become one.
    fn append(&mut self, line: &str) -> Result<()> {
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(self.length))?;
        let line = format!("{line}\n");
        self.file.write_all(line.as_bytes())?;
        self.file.sync_data()?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Reads the lines after the header. Writes a failure for the candidate that was running when the process ended.
    fn read_lines(&mut self, text: &str, axes: usize) -> Result<Vec<Known>> {
        let (mut known, mut running) = (Vec::new(), None);
        for line in text.lines().skip(1) {
            match parse(line, axes) {
                Some(Line::Begin(values)) => running = Some(values),
                Some(Line::Outcome(outcome)) => {
                    running = None;
                    known.push(outcome);
                }
                Some(Line::Cancel) => running = None,
                None => self.ignored_lines += 1,
            }
        }
        if let Some(values) = running {
            self.failed(&values, CULPRIT)?;
            known.push(Known { values, result: Err(CULPRIT.to_owned()) });
        }
        Ok(known)
    }
}

/// Opens a file for this process alone, and reads its complete lines.
fn read_locked(path: &Path) -> Result<(File, Vec<u8>)> {
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        // Some file systems have no locks.
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(error),
        Err(TryLockError::WouldBlock) => {
            let message = format!("another process has opened the journal {}", path.display());
            return Err(Error::new(ErrorKind::WouldBlock, message));
        }
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    // A line without an end is not complete, even if it can be parsed: its last number may lack digits.
    bytes.truncate(bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1));
    Ok((file, bytes))
}

fn spaced(values: &[usize]) -> String {
    values.iter().map(|value| format!(" {value}")).collect()
}

enum Line {
    Begin(Vec<usize>),
    Outcome(Known),
    Cancel,
}

/// Parses a line, whose candidate has `axes` values.
fn parse(line: &str, axes: usize) -> Option<Line> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let values: Vec<usize> = words.by_ref().take(axes).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    if values.len() != axes {
        return None;
    }
    let rest: Vec<&str> = words.collect();
    match (kind, rest.as_slice()) {
        ("begin", []) => Some(Line::Begin(values)),
        ("cancel", []) => Some(Line::Cancel),
        ("end", rest) => Some(Line::Outcome(Known { values, result: Ok(parse_timing(rest)?) })),
        ("failed", rest) => Some(Line::Outcome(Known { values, result: Err(rest.join(" ")) })),
        _ => None,
    }
}

fn parse_timing(words: &[&str]) -> Option<Timing> {
    let [setup, runs, time] = words else { return None };
    Some(Timing {
        setup_seconds: parse_seconds(setup.strip_prefix("setup=")?)?,
        runs: runs.strip_prefix("runs=")?.parse().ok()?,
        seconds: parse_seconds(time.strip_prefix("seconds=")?)?,
    })
}
