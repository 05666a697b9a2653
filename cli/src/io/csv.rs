//! Reads and writes CSV files, which have one line for each row and no header. A line that begins with `#` is a comment.
//!
//! Lapidary has its own reader for this format: the common CSV crate skips blank lines, and treats a final comment without a
//! newline as a row. In a column of numbers a blank line stands for a missing number.

use std::io::{self, BufRead, Write};
use std::path::Path;

use lapidary::{Layout, Scalar};

use super::lines::Lines;
use super::{number, parse_number};
use crate::dense::Dense;
use crate::failure::Result;
use crate::memory;

/// Reads a row-major matrix from a file of `size` bytes. Fails if the host does not have enough memory for the matrix.
pub fn read(path: &Path, input: impl BufRead, size: u64) -> Result<Dense<f64>> {
    let mut lines = Lines::new(input);
    let (mut data, mut rows, mut cols) = (Vec::new(), 0, 0);
    let mut blank = false;
    while lines.advance(path)? {
        let text = lines.text.trim();
        if text.is_empty() {
            blank = rows > 0;
            continue;
        }
        if text.starts_with('#') {
            continue;
        }
        if blank {
            return Err(lines.fail(path, "a blank line stands before this row: is a value missing there? Remove the line"));
        }
        let before = data.len();
        push_row(&mut data, text).map_err(|message| lines.fail(path, format!("{message}{}", likely_cause(text, rows == 0))))?;
        let length = data.len() - before;
        if rows == 0 {
            cols = length;
            check_memory(path, size, lines.text.len() + 1, cols)?;
        }
        if length != cols {
            return Err(lines.fail(path, format!("the row has {length} values, the first row has {cols}")));
        }
        rows += 1;
    }
    Ok(Dense::from_vec(data, rows, cols, Layout::RowMajor))
}

/// Estimates the number of rows from the length of the first row. Fails if a matrix with so many rows exceeds the available host
/// memory.
fn check_memory(path: &Path, size: u64, row_bytes: usize, cols: usize) -> Result<()> {
    let rows = usize::try_from(size).unwrap_or(usize::MAX) / row_bytes;
    memory::check_matrices::<f64>(&format!("{}: the matrix of about {rows} rows, {cols} columns,", path.display()), &[(rows, cols)])
}

fn push_row(data: &mut Vec<f64>, text: &str) -> Result<(), String> {
    for (column, field) in text.split(',').map(str::trim).enumerate() {
        data.push(parse_number(unquoted(field)).map_err(|message| format!("column {}: {message}", column + 1))?);
    }
    Ok(())
}

/// The text of a field without the quotes around it.
fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field).trim()
}

/// Explains the likely reason why a row cannot be parsed. The text is empty if no reason is known.
fn likely_cause(text: &str, first: bool) -> &'static str {
    // A field counts as a number even if this number is infinite, NaN or out of range.
    let is_number = |field: &str| unquoted(field).parse::<f64>().is_ok() || parse_number(unquoted(field)).is_ok();
    let is_header = text.contains(char::is_alphabetic) && !text.split(',').any(is_number);
    match text {
        _ if text.contains(';') => "; values are separated by commas, this row has semicolons",
        _ if text.contains('\t') => "; values are separated by commas, this row has tabs",
        _ if text.contains('\r') => "; lines end in a newline, this file has carriage returns alone",
        _ if first && is_header => "; this looks like a header: remove the line, or begin it with #",
        _ if !text.contains(',') && text.contains(' ') => "; values are separated by commas, this row has spaces",
        _ => "",
    }
}

/// Writes one line for each row, with commas between the elements.
pub fn write<T: Scalar>(out: &mut dyn Write, matrix: &Dense<T>) -> io::Result<()> {
    let view = matrix.view();
    for i in 0..matrix.rows() {
        for j in 0..matrix.cols() {
            write!(out, "{}{}", if j == 0 { "" } else { "," }, number(view.at(i, j)))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::likely_cause;

    /// A first row with NaN or infinity must not be called a header, since the message would tell the user to remove a row of data.
    #[test]
    fn a_first_row_with_a_number_that_is_not_finite_is_no_header() {
        assert!(likely_cause("x,y", true).contains("header"));
        for row in ["nan,1", "1,inf", "1e999,2", "\"nan\",x", "NA,1"] {
            assert_eq!(likely_cause(row, true), "", "{row}");
        }
    }
}
