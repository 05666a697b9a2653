//! Lines of the database of kernels. `kernels/src/database.rs` describes the format.

use crate::Result;

/// A line of a file of the database, or of an exported file.
#[derive(Debug, PartialEq)]
pub enum Line<'a> {
    /// An empty line or a comment.
    Comment,
    /// A line in brackets, which names devices. Holds the line without its comment.
    Section(&'a str),
    /// An entry.
    Entry(Subject<'a>),
}

/// What an entry is about. An entry for a device replaces the entries of the device that have the same subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subject<'a> {
    /// Family of the kernel: `gemm` for all kernels for products, else the name of the kernel or of the threshold.
    pub family: &'a str,
    /// Language of the kernel. `None` if the entry applies to both languages.
    pub language: Option<&'a str>,
    /// Element type. `None` if the entry applies to all types.
    pub dtype: Option<&'a str>,
}

impl Subject<'_> {
    /// Name of the file of the database that holds the family. `None` if there is no such family.
    pub fn file(&self) -> Option<&'static str> {
        match self.family {
            "gemm" => Some("gemm.txt"),
            "held_rows" | "strips" | "columns" | "panel" => Some("getrf.txt"),
            "elements" | "triangle" | "exchange" | "solve" | "trsv" | "batched" => Some("groups.txt"),
            "cpu_blocks" => Some("cpu.txt"),
            family if THRESHOLDS.contains(&family) => Some("thresholds.txt"),
            _ => None,
        }
    }
}

/// Names of the thresholds between kernels.
const THRESHOLDS: [&str; 24] = [
    "copy_operands",
    "copied_terms",
    "repack_b",
    "split_units",
    "split_groups",
    "batched_gemm",
    "batched_lu",
    "exchange_groups",
    "lu_block",
    "held_block",
    "lu_panel",
    "lu_columns",
    "lu_strips",
    "lu_waiting_strips",
    "strip_rows",
    "strip_elements",
    "trsm_block",
    "trsm_terms",
    "trsv_sides",
    "inverted_block",
    "inverted_solve",
    "lookahead",
    "lookahead_panel",
    "beside_panel",
];

/// Parses a line.
///
/// # Errors
/// The line is neither empty nor a comment, a section or an entry.
pub fn parse(line: &str) -> Result<Line<'_>> {
    let words = line.split('#').next().unwrap_or_default().trim();
    if words.is_empty() {
        return Ok(Line::Comment);
    }
    if words.starts_with('[') {
        return if words.ends_with(']') { Ok(Line::Section(words)) } else { Err(format!("`{words}` names no devices")) };
    }
    let subject = subject(words).map_err(|reason| format!("`{words}` is no entry: {reason}"))?;
    Ok(Line::Entry(subject))
}

fn subject(text: &str) -> Result<Subject<'_>> {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or_default();
    let name = if name == "stop" { words.next().ok_or("it stops no family")? } else { name };
    let family = if name.starts_with("gemm_") { "gemm" } else { name };
    let mut subject = Subject { family, language: None, dtype: None };
    if subject.file().is_none() {
        return Err(format!("no kernel is called `{name}`"));
    }
    for word in words {
        match word {
            "opencl" | "wgsl" => subject.language = Some(word),
            "f32" | "f64" => subject.dtype = Some(word),
            "tall" | "wide" => {}
            _ if is_restriction_or_value(word) => {}
            _ => return Err(format!("`{word}` is no parameter")),
        }
    }
    Ok(subject)
}

/// Whether a word is a condition, such as `groups>=96`, or the value of a parameter, such as `mwg=64`.
fn is_restriction_or_value(word: &str) -> bool {
    let is_number = |digits: &str| digits.parse::<usize>().is_ok();
    let comparison = [">=", "<="].into_iter().find_map(|operator| Some((word.split_once(operator)?, operator)));
    match (comparison, word.split_once('=')) {
        (Some((("groups", "units"), ">=")), _) => true,
        (Some((("groups" | "rows" | "terms", bound), ">=") | (("groups" | "side" | "terms", bound), "<=")), _) => is_number(bound),
        (Some(_), _) | (None, None) => false,
        (None, Some((name, value))) => !name.is_empty() && is_number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Subject, parse};

    #[test]
    fn lines_are_told_apart() {
        assert_eq!([parse(""), parse("  # mwg=8")], [Ok(Line::Comment), Ok(Line::Comment)]);
        assert_eq!(parse("[device A, B]  # fast"), Ok(Line::Section("[device A, B]")));
        let entry = |family, language, dtype| Ok(Line::Entry(Subject { family, language, dtype }));
        assert_eq!(parse("gemm_tile f64 opencl groups>=units mwg=8 # m=1"), entry("gemm", Some("opencl"), Some("f64")));
        assert_eq!(parse("columns wgsl rows>=256 items=8"), entry("columns", Some("wgsl"), None));
        assert_eq!(parse("lu_block f64 columns=512"), entry("lu_block", None, Some("f64")));
        assert_eq!([parse("stop gemm"), parse("stop strips")], [entry("gemm", None, None), entry("strips", None, None)]);
    }

    #[test]
    fn every_line_of_the_shipped_files_is_understood() {
        for file in super::super::FILES {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernels/database").join(file);
            let text = std::fs::read_to_string(path).unwrap();
            for line in text.lines() {
                assert!(parse(line).is_ok(), "{file}: {line}: {:?}", parse(line));
            }
        }
    }

    #[test]
    fn what_is_no_entry_is_refused() {
        for (line, reason) in [
            ("[device A", "names no devices"),
            ("gemm mwg=8 8", "`8` is no parameter"),
            ("solve items=many", "`items=many`"),
            ("solve =4", "`=4`"),
            ("columns rows>=units items=4", "`rows>=units`"),
            ("gemm_tile tiles>=4 mwg=8", "`tiles>=4`"),
            ("gemm_tile side>=4 mwg=8", "`side>=4`"),
            ("stop", "stops no family"),
            ("hello world", "no kernel is called `hello`"),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(reason), "{line}: {error}");
        }
    }
}
