//! Merges exported entries into the text of a file of the database.

use super::line::{Line, Subject, parse};
use crate::Result;

/// An entry of an exported file.
#[derive(Debug, PartialEq)]
pub struct Entry<'a> {
    /// The line in brackets that names the device.
    section: &'a str,
    subject: Subject<'a>,
    /// The whole line, with the measurement in its comment.
    line: &'a str,
}

impl Entry<'_> {
    fn replaces(&self, other: &Entry<'_>) -> bool {
        (self.section, self.subject) == (other.section, other.subject)
    }
}

/// Returns the entries of an exported file, which has the name `name`.
///
/// # Errors
/// A line is no entry, or stands below no line `[device …]`.
pub fn exported<'a>(name: &str, text: &'a str) -> Result<Vec<Entry<'a>>> {
    let entries = entries(name, text)?;
    match entries.iter().find(|(_, entry)| !entry.section.starts_with("[device ")) {
        Some((at, _)) => Err(format!("{name}:{}: the entry stands below no line `[device …]`", at + 1)),
        None => Ok(entries.into_iter().map(|(_, entry)| entry).collect()),
    }
}

/// Returns the text of a file of the database with the entries that belong into this file. A new entry takes the place of the entries
/// for the same device, family, language and element type. The comments of the text stay.
///
/// # Errors
/// A line of the text is no entry.
pub fn merged(file: &str, text: &str, new: &[Entry<'_>]) -> Result<String> {
    let new: Vec<&Entry<'_>> = new.iter().filter(|entry| entry.subject.file() == Some(file)).collect();
    let mut text = text.to_owned();
    for (number, entry) in new.iter().enumerate() {
        // the first entry of a subject brings the others along
        if !new[..number].iter().any(|earlier| earlier.replaces(entry)) {
            let lines: Vec<&str> = new.iter().filter(|other| other.replaces(entry)).map(|other| other.line).collect();
            text = with_lines(file, &text, entry, &lines)?;
        }
    }
    Ok(text)
}

/// Returns `text` with `lines` in the place of the entries that `entry` replaces. If there are none, the lines stand at the end of
/// the section.
fn with_lines(file: &str, text: &str, entry: &Entry<'_>, lines: &[&str]) -> Result<String> {
    let old: Vec<usize> = entries(file, text)?.into_iter().filter(|(_, old)| entry.replaces(old)).map(|(at, _)| at).collect();
    let mut all: Vec<&str> = text.lines().collect();
    let at = match old.first() {
        Some(first) => *first,
        None => end_of_section(&mut all, entry.section),
    };
    for at in old.into_iter().rev() {
        all.remove(at);
    }
    all.splice(at..at, lines.iter().copied());
    Ok(all.join("\n") + "\n")
}

/// Returns the number of the line after the last line of a section. A missing section is added: before the first section that is for
/// a device with a later name or for several devices.
fn end_of_section<'a>(all: &mut Vec<&'a str>, section: &'a str) -> usize {
    let headings: Vec<(usize, &str)> = all.iter().enumerate().filter_map(|(at, line)| Some((at, heading(line)?))).collect();
    let start = headings.iter().position(|(_, name)| *name == section);
    let is_later = |name: &str| !name.starts_with("[device ") || name > section;
    let next = match start {
        Some(number) => headings.get(number + 1),
        None => headings.iter().find(|(_, name)| is_later(name)),
    };
    let next = next.map_or(all.len(), |(at, _)| first_line(all, *at));
    if start.is_some() {
        return all[..next].iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    }
    let blank_before = all[..next].last().filter(|line| !line.is_empty()).map(|_| "");
    let blank_after = all.get(next).map(|_| "");
    let end = next + blank_before.iter().len() + 1;
    all.splice(next..next, blank_before.into_iter().chain([section]).chain(blank_after));
    end
}

/// Returns the first of the comment lines that belong to the section whose line in brackets has the number `heading`. These comments
/// follow an empty line.
fn first_line(all: &[&str], heading: usize) -> usize {
    let first = all[..heading].iter().rposition(|line| !line.starts_with('#')).map_or(heading, |before| before + 1);
    if first > 0 && all[first - 1].is_empty() { first } else { heading }
}

fn heading(line: &str) -> Option<&str> {
    match parse(line) {
        Ok(Line::Section(name)) => Some(name),
        Ok(Line::Comment | Line::Entry(_)) | Err(_) => None,
    }
}

/// Returns the entries of a text with the numbers of their lines, counted from 0.
fn entries<'a>(name: &str, text: &'a str) -> Result<Vec<(usize, Entry<'a>)>> {
    let (mut entries, mut section) = (Vec::new(), "");
    for (at, line) in text.lines().enumerate() {
        match parse(line).map_err(|reason| format!("{name}:{}: {reason}", at + 1))? {
            Line::Comment => {}
            Line::Section(name) => section = name,
            Line::Entry(subject) => entries.push((at, Entry { section, subject, line: line.trim() })),
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::{exported, merged};

    const GEMM: &str = "\
# Products.

[device B]
# measured by hand
gemm_tile f64 opencl mwg=8  # old
gemm_tile f64 wgsl mwg=8
gemm_vector f64 opencl mwg=16

# All CPUs.
[kind cpu]
gemm_panel f64 mv=3

[any]
gemm_tile mwg=4
";

    /// Merges an exported text into [`GEMM`].
    fn merge(export: &str) -> String {
        let text = merged("gemm.txt", GEMM, &exported("tuned.txt", export).unwrap()).unwrap();
        let again = merged("gemm.txt", &text, &exported("tuned.txt", export).unwrap()).unwrap();
        assert_eq!(text, again, "a second run changes the text");
        text
    }

    #[test]
    fn entries_for_the_same_device_family_language_and_type_are_replaced() {
        let text = merge("# Written.\n[device B]\ngemm_vector f64 opencl groups>=9 mwg=32  # new\ngemm_tile f64 opencl mwg=2\n");
        let expected = GEMM
            .replace(
                "gemm_tile f64 opencl mwg=8  # old",
                "gemm_vector f64 opencl groups>=9 mwg=32  # new\ngemm_tile f64 opencl mwg=2",
            )
            .replace("gemm_vector f64 opencl mwg=16\n", "");
        assert_eq!(text, expected);
    }

    #[test]
    fn other_languages_and_types_are_added_to_the_section() {
        let text = merge("[device B]\ngemm_tile f32 opencl mwg=8\nsolve f32 opencl items=8\n");
        assert_eq!(text, GEMM.replace("mwg=16\n", "mwg=16\ngemm_tile f32 opencl mwg=8\n"));
    }

    #[test]
    fn sections_of_devices_are_in_alphabetical_order_before_the_others() {
        let text = merge("[device C]\ngemm_tile f32 mwg=1\n\n[device A]\ngemm_tile f32 mwg=2\n");
        let expected = GEMM
            .replace("[device B]", "[device A]\ngemm_tile f32 mwg=2\n\n[device B]")
            .replace("# All CPUs.", "[device C]\ngemm_tile f32 mwg=1\n\n# All CPUs.");
        assert_eq!(text, expected);
        let entries = exported("tuned.txt", "[device C]\nsolve items=4").unwrap();
        assert_eq!(merged("groups.txt", "", &entries).unwrap(), "[device C]\nsolve items=4\n");
        assert_eq!(merged("groups.txt", "# Groups.\n", &entries).unwrap(), "# Groups.\n\n[device C]\nsolve items=4\n");
    }

    #[test]
    fn entries_of_other_families_belong_to_other_files() {
        let entries = exported("tuned.txt", "[device B]\npanel items=4\nsolve items=4\ngemm_tile mwg=1\n").unwrap();
        let merge = |file| merged(file, "[any]\n", &entries).unwrap();
        assert_eq!(merge("getrf.txt"), "[device B]\npanel items=4\n\n[any]\n");
        assert_eq!(merge("groups.txt"), "[device B]\nsolve items=4\n\n[any]\n");
    }

    #[test]
    fn refusals_name_file_and_line() {
        let refused = |text| exported("tuned.txt", text).unwrap_err();
        assert!(refused("[device B]\n\nhello\n").starts_with("tuned.txt:3: `hello`"));
        assert!(refused("solve items=4\n").starts_with("tuned.txt:1: the entry stands below no line"));
        assert!(refused("[device B]\n[any]\nsolve items=4\n").starts_with("tuned.txt:3:"));
        let entries = exported("tuned.txt", "[device B]\nsolve items=4\n").unwrap();
        assert!(merged("groups.txt", "[any]\nsolve\n?\n", &entries).unwrap_err().starts_with("groups.txt:3:"));
    }
}
