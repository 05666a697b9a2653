//! Text with commas: one row a line, no header; `#` begins a comment.

use std::io::{self, Read, Write};
use std::path::Path;

use ::csv::{ReaderBuilder, StringRecord, Trim};
use lapidary::{Layout, Scalar};

use super::{number, parse_number};
use crate::dense::Dense;
use crate::failure::{Failure, Result};

/// Reads the rows; the matrix is row-major.
pub fn read(path: &Path, input: impl Read) -> Result<Dense<f64>> {
    // flexible: a ragged row gets our message, which names both lengths
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).trim(Trim::All).comment(Some(b'#')).from_reader(input);
    let (mut data, mut rows, mut cols) = (Vec::new(), 0, 0);
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(|e| malformed(path, &e))? {
        let line = record.position().map_or(0, ::csv::Position::line);
        if rows == 0 {
            cols = record.len();
        }
        if record.len() != cols {
            let message = format!("the row has {} values, the first row has {cols}", record.len());
            return Err(Failure::line(path, line, message));
        }
        push_row(&mut data, &record).map_err(|message| Failure::line(path, line, message))?;
        rows += 1;
    }
    Ok(Dense::from_vec(data, rows, cols, Layout::RowMajor))
}

fn push_row(data: &mut Vec<f64>, record: &StringRecord) -> std::result::Result<(), String> {
    for (column, field) in record.iter().enumerate() {
        data.push(parse_number(field).map_err(|message| format!("column {}: {message}", column + 1))?);
    }
    Ok(())
}

fn malformed(path: &Path, error: &::csv::Error) -> Failure {
    match error.position() {
        Some(position) => Failure::line(path, position.line(), "the line is not UTF-8 text"),
        None => Failure::file(path, error),
    }
}

/// Writes one row a line.
pub fn write<T: Scalar>(out: &mut dyn Write, matrix: &Dense<T>) -> io::Result<()> {
    let view = matrix.view();
    let mut writer = ::csv::Writer::from_writer(out);
    for i in 0..matrix.rows() {
        writer.write_record((0..matrix.cols()).map(|j| number(view.at(i, j))))?;
    }
    writer.flush()
}
