//! Reads and writes Matrix Market files (<https://math.nist.gov/MatrixMarket/formats.html>).
//!
//! Lapidary has its own reader for this format: the only crate that reads dense files of this format states no licence, and its
//! error messages name no line.

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::str::SplitWhitespace;

use lapidary::Scalar;

use super::lines::Lines;
use super::{number, parse_number};
use crate::dense::Dense;
use crate::failure::Result;

/// Symmetry of a matrix, which determines the elements that a file contains and how all other elements follow from these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symmetry {
    General,
    Symmetric,
    SkewSymmetric,
}

/// The first line of a Matrix Market file.
#[derive(Debug, PartialEq)]
struct Banner {
    coordinate: bool,
    integer: bool,
    symmetry: Symmetry,
}

/// An opened file whose header has been read up to the sizes.
pub struct Reader<R> {
    lines: Lines<R>,
    banner: Banner,
    sizes: Sizes,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header of a file up to the sizes. `size` is the number of bytes in the file.
    pub fn new(path: &Path, input: R, size: u64) -> Result<Self> {
        let mut lines = Lines::new(input);
        if !lines.advance(path)? {
            return Err(lines.fail(path, "the Matrix Market banner is missing"));
        }
        let banner = parse_banner(&lines.text).map_err(|message| lines.fail(path, message))?;
        if !advance_to_data(&mut lines, path)? {
            return Err(lines.fail(path, "the file ends before the line with the sizes"));
        }
        let sizes = parse_sizes(&lines.text, &banner, size).map_err(|message| lines.fail(path, message))?;
        Ok(Reader { lines, banner, sizes })
    }

    /// Number of rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.sizes.rows, self.sizes.cols)
    }

    /// Reads the values of a file into a matrix.
    pub fn read(mut self, path: &Path) -> Result<Dense<f64>> {
        let mut a = Dense::zeros(self.sizes.rows, self.sizes.cols).map_err(|e| self.lines.fail(path, e))?;
        let what = if self.banner.coordinate { "entries" } else { "values" };
        let filled = if self.banner.coordinate { self.read_entries(path, &mut a) } else { self.read_array(path, &mut a) };
        filled?;
        if advance_to_data(&mut self.lines, path)? {
            return Err(self.lines.fail(path, format!("more than the {} {what} that were announced", self.sizes.entries)));
        }
        Ok(a)
    }

    /// Reads values in the coordinate format, which has lines `i j value` with indices from 1. The function adds up values with
    /// equal indices.
    fn read_entries(&mut self, path: &Path, a: &mut Dense<f64>) -> Result<()> {
        let Reader { lines, banner, sizes: Sizes { rows, cols, entries } } = self;
        for read in 0..*entries {
            if !advance_to_data(lines, path)? {
                return Err(lines.fail(path, format!("the file ends after {read} of {entries} entries")));
            }
            let entry = parse_entry(&lines.text, banner, (*rows, *cols));
            let (i, j, value) = entry.map_err(|message| lines.fail(path, message))?;
            add(a, (i, j), value, banner.symmetry);
        }
        Ok(())
    }

    /// Reads values in the array format, which contains one column after the other. The file of a symmetric matrix contains only
    /// the lower triangle.
    fn read_array(&mut self, path: &Path, a: &mut Dense<f64>) -> Result<()> {
        let Reader { lines, banner, sizes: Sizes { rows, cols, entries } } = self;
        let (rows, cols, symmetry) = (*rows, *cols, banner.symmetry);
        let mut places = (0..cols).flat_map(|j| (first_row(j, symmetry)..rows).map(move |i| (i, j)));
        let mut read = 0;
        while read < *entries {
            if !advance_to_data(lines, path)? {
                return Err(lines.fail(path, format!("the file ends after {read} of {entries} values")));
            }
            for word in lines.text.split_whitespace() {
                let value = parse_value(word, banner).map_err(|message| lines.fail(path, message))?;
                let place = places.next().ok_or_else(|| lines.fail(path, format!("more than {entries} values")))?;
                add(a, place, value, symmetry);
                read += 1;
            }
        }
        Ok(())
    }
}

/// Reads the next line that is neither blank nor a comment. Returns false at the end of the file.
fn advance_to_data<R: BufRead>(lines: &mut Lines<R>, path: &Path) -> Result<bool> {
    while lines.advance(path)? {
        let text = lines.text.trim_start();
        if !text.is_empty() && !text.starts_with('%') {
            return Ok(true);
        }
    }
    Ok(false)
}

fn parse_banner(line: &str) -> Result<Banner, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_ascii_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["%%matrixmarket", "matrix", format, field, symmetry] = words[..] else {
        return Err("the first line must read: %%MatrixMarket matrix FORMAT FIELD SYMMETRY".to_owned());
    };
    let coordinate = match format {
        "coordinate" => true,
        "array" => false,
        other => return Err(format!("format {other:?} is unknown (array or coordinate)")),
    };
    Ok(Banner { coordinate, integer: parse_field(field)?, symmetry: parse_symmetry(symmetry)? })
}

/// Whether the field in the first line states that the values are integers.
fn parse_field(field: &str) -> Result<bool, String> {
    match field {
        "real" | "double" => Ok(false),
        "integer" => Ok(true),
        "complex" => Err("complex matrices are not supported: the routines compute with real numbers".to_owned()),
        "pattern" => Err("a pattern holds no values, there is nothing to compute with".to_owned()),
        other => Err(format!("field {other:?} is unknown (real or integer)")),
    }
}

fn parse_symmetry(symmetry: &str) -> Result<Symmetry, String> {
    match symmetry {
        "general" => Ok(Symmetry::General),
        "symmetric" => Ok(Symmetry::Symmetric),
        "skew-symmetric" => Ok(Symmetry::SkewSymmetric),
        "hermitian" => Err("hermitian matrices are complex, which is not supported".to_owned()),
        other => Err(format!("symmetry {other:?} is unknown (general, symmetric or skew-symmetric)")),
    }
}

/// The sizes that the line after the comments states.
#[derive(Debug, PartialEq)]
struct Sizes {
    rows: usize,
    cols: usize,
    entries: usize,
}

/// Parses the line of sizes and compares it with the number of bytes in the file, before any memory is allocated.
fn parse_sizes(line: &str, banner: &Banner, size: u64) -> Result<Sizes, String> {
    let parsed: Result<Vec<usize>, _> = line.split_whitespace().map(str::parse).collect();
    let (rows, cols, entries, shortest) = match (parsed.as_deref(), banner.coordinate) {
        (Ok(&[rows, cols, entries]), true) => (rows, cols, Some(entries), "1 1 1\n"),
        (Ok(&[rows, cols]), false) => (rows, cols, array_length(rows, cols, banner.symmetry), "1\n"),
        (_, true) => return Err("the sizes must read: ROWS COLUMNS ENTRIES".to_owned()),
        (_, false) => return Err("the sizes must read: ROWS COLUMNS".to_owned()),
    };
    if banner.symmetry != Symmetry::General && rows != cols {
        return Err(format!("a symmetric matrix must be square, this one is {rows}×{cols}"));
    }
    // The newline after the last line of a file may be missing.
    let least = entries.and_then(|entries| (entries as u64).checked_mul(shortest.len() as u64)).map(|b| b.saturating_sub(1));
    match (entries, least) {
        (Some(entries), Some(least)) if least <= size => Ok(Sizes { rows, cols, entries }),
        _ => Err(format!("a {rows}×{cols} matrix is claimed, the file of {size} bytes cannot hold its values")),
    }
}

fn array_length(rows: usize, cols: usize, symmetry: Symmetry) -> Option<usize> {
    match symmetry {
        Symmetry::General => rows.checked_mul(cols),
        Symmetry::Symmetric => rows.checked_add(1)?.checked_mul(rows).map(|twice| twice / 2),
        Symmetry::SkewSymmetric => rows.checked_mul(rows.saturating_sub(1)).map(|twice| twice / 2),
    }
}

/// Adds a value at (i, j) and, if the matrix is symmetric, at (j, i).
fn add(a: &mut Dense<f64>, (i, j): (usize, usize), value: f64, symmetry: Symmetry) {
    let rows = a.rows();
    let data = a.data_mut();
    data[i + j * rows] += value;
    match symmetry {
        Symmetry::Symmetric if i != j => data[j + i * rows] += value,
        Symmetry::SkewSymmetric => data[j + i * rows] -= value,
        Symmetry::General | Symmetry::Symmetric => {}
    }
}

fn parse_entry(line: &str, banner: &Banner, (rows, cols): (usize, usize)) -> Result<(usize, usize, f64), String> {
    let mut words = line.split_whitespace();
    let i = parse_index(&mut words, "row", rows)?;
    let j = parse_index(&mut words, "column", cols)?;
    let value = parse_value(words.next().unwrap_or_default(), banner)?;
    if let Some(more) = words.next() {
        return Err(format!("{more:?} follows the value"));
    }
    match banner.symmetry {
        Symmetry::Symmetric if j > i => Err("a symmetric file holds the lower triangle only, this is above it".to_owned()),
        Symmetry::SkewSymmetric if j >= i => Err("a skew-symmetric file holds what is below the diagonal only".to_owned()),
        Symmetry::General | Symmetry::Symmetric | Symmetry::SkewSymmetric => Ok((i, j, value)),
    }
}

fn parse_index(words: &mut SplitWhitespace<'_>, what: &str, extent: usize) -> Result<usize, String> {
    let text = words.next().unwrap_or_default();
    match text.parse::<usize>() {
        Ok(index) if (1..=extent).contains(&index) => Ok(index - 1),
        Ok(index) => Err(format!("{what} index {index} is outside 1 … {extent}")),
        Err(_) => Err(format!("{text:?} is not a {what} index")),
    }
}

fn parse_value(text: &str, banner: &Banner) -> Result<f64, String> {
    // Fortran writes the exponent of a double-precision number with a D. An error message must show the original text.
    let fortran = text.replace(['D', 'd'], "e");
    let value = parse_number(&fortran).map_err(|error| error.replace(&format!("{fortran:?}"), &format!("{text:?}")))?;
    if banner.integer && value.fract() != 0.0 {
        return Err(format!("{text:?} is not an integer, which the banner promises"));
    }
    #[allow(clippy::cast_possible_truncation, reason = "what is not the integer itself is refused")]
    if banner.integer && text.parse::<i128>().is_ok_and(|integer| integer != value as i128) {
        return Err(format!("{text:?} is an integer that f64 does not hold"));
    }
    Ok(value)
}

fn first_row(j: usize, symmetry: Symmetry) -> usize {
    match symmetry {
        Symmetry::General => 0,
        Symmetry::Symmetric => j,
        Symmetry::SkewSymmetric => j + 1,
    }
}

/// Writes a matrix in the array format.
pub fn write<T: Scalar>(out: &mut dyn Write, matrix: &Dense<T>) -> io::Result<()> {
    writeln!(out, "%%MatrixMarket matrix array real general")?;
    writeln!(out, "{} {}", matrix.rows(), matrix.cols())?;
    let view = matrix.view();
    for j in 0..matrix.cols() {
        for i in 0..matrix.rows() {
            writeln!(out, "{}", number(view.at(i, j)))?;
        }
    }
    Ok(())
}
