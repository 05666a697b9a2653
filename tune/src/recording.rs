//! Recordings: the times of the points of a space, as text.
//!
//! A recording is a table with tabs between the columns. A comment in the first line is the title of the recording: it names the
//! kernel, the call and the device. The header names the axes, followed by `setup_seconds`, `run_seconds` and
//! `failure`. A row has a time in `run_seconds` or a reason in `failure`; the other column is empty. Empty lines and lines that
//! begin with `#` are comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::space::{Axis, Space};
use crate::text::{one_line, parse_seconds};

/// Names of the columns after the axes.
const COLUMNS: [&str; 3] = ["setup_seconds", "run_seconds", "failure"];

/// The measured times of one point.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Time to compile and verify the kernel, in seconds. If the point failed, the time until the failure.
    pub setup_seconds: f64,
    /// Time of a run in seconds, or the reason of the failure.
    pub result: Result<f64, String>,
}

/// The measured times of points, by the values of the points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    title: String,
    axes: Vec<String>,
    rows: BTreeMap<Vec<usize>, Row>,
}

impl Recording {
    /// Makes a recording without points.
    #[must_use]
    pub fn new(axes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Recording { title: String::new(), axes: axes.into_iter().map(Into::into).collect(), rows: BTreeMap::new() }
    }

    /// Sets the title, which is one line of text.
    #[must_use]
    pub fn titled(self, title: &str) -> Self {
        Recording { title: one_line(title), ..self }
    }

    /// Returns the title. The title is empty if the recording has none.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the space of the recorded points. An axis has the values that occur in the recording, and `is_structural` states for
    /// the name of an axis whether the axis is structural. Returns `None` if `usize` cannot count the combinations of the values.
    #[must_use]
    pub fn space(&self, is_structural: impl Fn(&str) -> bool) -> Option<Space> {
        let values = |axis: usize| self.rows.keys().map(|values| values[axis]).collect::<BTreeSet<usize>>();
        let axis = |(at, name): (usize, &String)| Axis {
            name: name.clone(),
            values: values(at).into_iter().collect(),
            structural: is_structural(name),
        };
        Space::of_points(self.axes.iter().enumerate().map(axis).collect(), self.rows.keys().map(Vec::as_slice))
    }

    /// Adds the times of a point. Later times of the same point replace earlier ones.
    pub fn insert(&mut self, values: Vec<usize>, row: Row) {
        debug_assert_eq!(values.len(), self.axes.len());
        self.rows.insert(values, row);
    }

    /// Returns the names of the axes.
    #[must_use]
    pub fn axes(&self) -> &[String] {
        &self.axes
    }

    /// Returns the times of the point with the given values.
    #[must_use]
    pub fn get(&self, values: &[usize]) -> Option<&Row> {
        self.rows.get(values)
    }

    /// Returns the values and times of all points, in increasing order of the values.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (&[usize], &Row)> {
        self.rows.iter().map(|(values, row)| (values.as_slice(), row))
    }
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.title.is_empty() {
            writeln!(f, "# {}", self.title)?;
        }
        let header: Vec<&str> = self.axes.iter().map(String::as_str).chain(COLUMNS).collect();
        writeln!(f, "{}", header.join("\t"))?;
        for (values, Row { setup_seconds, result }) in &self.rows {
            for value in values {
                write!(f, "{value}\t")?;
            }
            match result {
                Ok(seconds) => writeln!(f, "{setup_seconds}\t{seconds}\t")?,
                Err(reason) => writeln!(f, "{setup_seconds}\t\t{}", one_line(reason))?,
            }
        }
        Ok(())
    }
}

/// The error that a text is not a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Number of the line, counted from 1.
    pub line: usize,
    /// The reason for which the line is not accepted.
    pub reason: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for ParseError {}

impl FromStr for Recording {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let is_comment = |line: &str| line.trim().is_empty() || line.starts_with('#');
        let mut lines = text.lines().enumerate().filter(|(_, line)| !is_comment(line));
        let (at, header) = lines.next().unwrap_or_default();
        let mut recording = parse_header(header).map_err(|reason| ParseError { line: at + 1, reason })?;
        if let Some(title) = text.lines().next().and_then(|line| line.strip_prefix('#')) {
            recording = recording.titled(title);
        }
        for (at, line) in lines {
            recording.parse_row(line).map_err(|reason| ParseError { line: at + 1, reason })?;
        }
        Ok(recording)
    }
}

fn parse_header(line: &str) -> Result<Recording, String> {
    let names: Vec<&str> = line.split('\t').collect();
    let axes = names.strip_suffix(&COLUMNS);
    let axes = axes.ok_or_else(|| format!("the header does not end in the columns {}", COLUMNS.join(", ")))?;
    Ok(Recording::new(axes.iter().copied()))
}

impl Recording {
    fn parse_row(&mut self, line: &str) -> Result<(), String> {
        let fields: Vec<&str> = line.split('\t').collect();
        let expected = self.axes.len() + COLUMNS.len();
        let Some((values, &[setup, time, failure])) = fields.split_last_chunk().filter(|_| fields.len() == expected) else {
            return Err(format!("the row has {} columns instead of {expected}", fields.len()));
        };
        let values = self.axes.iter().zip(values).map(|(name, text)| parse_value(name, text)).collect::<Result<Vec<_>, _>>()?;
        let setup_seconds = parse_time("setup_seconds", setup)?;
        let result = match (time, failure) {
            ("", "") => return Err("the row has neither a time nor a failure".to_owned()),
            ("", reason) => Err(reason.to_owned()),
            (time, "") => Ok(parse_time("run_seconds", time)?),
            _ => return Err("the row has both a time and a failure".to_owned()),
        };
        match self.rows.insert(values, Row { setup_seconds, result }) {
            None => Ok(()),
            Some(_) => Err("an earlier row has the same values".to_owned()),
        }
    }
}

fn parse_value(name: &str, text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{name} is \"{text}\", which is not a whole number"))
}

fn parse_time(name: &str, text: &str) -> Result<f64, String> {
    parse_seconds(text).ok_or_else(|| format!("{name} is \"{text}\", which is not a time in seconds"))
}

#[cfg(test)]
mod tests {
    use super::{ParseError, Recording, Row};
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Recording, ParseError> {
        text.parse()
    }

    #[test]
    fn a_recording_reads_as_a_table() {
        let mut recording = Recording::new(["mwg", "nwg"]).titled("gemm_tile\nfor gemm f64");
        recording.insert(vec![64, 8], Row { setup_seconds: 0.5, result: Ok(1.25e-3) });
        recording.insert(vec![8, 8], Row { setup_seconds: 2.0, result: Err("wrong\n\tresult".to_owned()) });
        let text = "# gemm_tile for gemm f64\nmwg\tnwg\tsetup_seconds\trun_seconds\tfailure\n8\t8\t2\t\twrong result\n64\t8\t0.5\t0.00125\t\n";
        assert_eq!(recording.to_string(), text);
        let read = parse(&format!("{text}# a comment\n\n")).unwrap();
        assert_eq!(read.get(&[64, 8]), recording.get(&[64, 8]));
        assert_eq!(read.get(&[8, 8]).unwrap().result, Err("wrong result".to_owned()));
        assert_eq!(read.title(), "gemm_tile for gemm f64");
    }

    #[test]
    fn the_space_of_a_recording_has_the_recorded_points() {
        let table = "mwg\tstages\tsetup_seconds\trun_seconds\tfailure\n64\t1\t1\t1\t\n8\t2\t1\t\tslow\n64\t2\t1\t1\t\n";
        let recording = parse(table).unwrap();
        let space = recording.space(|name| name == "stages").unwrap();
        assert_eq!(space.points().collect::<Vec<_>>(), [[8, 2], [64, 1], [64, 2]]);
        assert_eq!(space.axes().iter().map(|axis| axis.structural).collect::<Vec<_>>(), [false, true]);
        assert_eq!((recording.title(), &space.axes()[0].values[..]), ("", &[8, 64][..]));
    }

    #[test]
    fn errors_name_line_and_reason() {
        let header = "a\tsetup_seconds\trun_seconds\tfailure";
        for (rows, line, reason) in [
            ("1\t0\t1\t\n1\t0\t1", 3, "3 columns instead of 4"),
            ("# \nx\t0\t1\t", 3, "a is \"x\""),
            ("1\t-1\t1\t", 2, "setup_seconds is \"-1\""),
            ("1\t0\tNaN\t", 2, "run_seconds is \"NaN\""),
            ("1\t0\t1\tslow", 2, "both"),
            ("1\t0\t\t", 2, "neither"),
            ("1\t0\t1\t\n1\t0\t2\t", 3, "same values"),
        ] {
            let error = parse(&format!("{header}\n{rows}\n")).unwrap_err();
            assert!(error.line == line && error.reason.contains(reason), "{rows:?}: {error}");
        }
        assert_eq!(parse("").unwrap_err().line, 1);
        assert!(parse("a\tb\n").unwrap_err().reason.contains("header"));
    }

    fn row() -> impl Strategy<Value = Row> {
        let result = prop_oneof![(1e-9..1e3).prop_map(Ok), "[a-z:,.]{1,9}( [a-z]{1,9}){0,3}".prop_map(Err)];
        (0.0..1e3, result).prop_map(|(setup_seconds, result)| Row { setup_seconds, result })
    }

    proptest! {
        #[test]
        fn print_and_parse_are_inverse(title in "([a-z=]{1,9}( [a-z,]{1,9}){0,3})?", rows in proptest::collection::btree_map(proptest::collection::vec(0_usize..99, 2), row(), 0..9)) {
            let recording = Recording { title, axes: vec!["a".to_owned(), "b".to_owned()], rows };
            prop_assert_eq!(parse(&recording.to_string()), Ok(recording));
        }
    }
}
