//! Reads and writes matrix files. The extension of the file name selects the format.

pub mod atomic;
mod csv;
mod lines;
mod mtx;
mod npy;
pub mod temporary;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use lapidary::{DType, Scalar};

use crate::dense::{Dense, Numbers};
use crate::failure::{Failure, Result};
use crate::memory;
use crate::report::note;

/// A format of matrix files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// NumPy's array format.
    Npy,
    /// The Matrix Market format.
    Mtx,
    /// Text with commas between the elements.
    Csv,
}

impl Format {
    /// The format that the extension of the file name selects.
    pub fn of(path: &Path) -> Result<Format> {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("npy") => Ok(Format::Npy),
            Some("mtx") => Ok(Format::Mtx),
            Some("csv") => Ok(Format::Csv),
            Some(_) | None => Err(Failure::file(path, "the name must end in .npy, .mtx or .csv")),
        }
    }
}

/// Whether two paths name the same file, which need not exist.
pub fn same_file(one: &Path, other: &Path) -> bool {
    let stdout = [one, other].map(atomic::is_stdout);
    if stdout.contains(&true) {
        return stdout == [true; 2];
    }
    let place = |path: &Path| {
        path.canonicalize()
            .or_else(|_| Ok::<_, std::io::Error>(atomic::folder(path).canonicalize()?.join(path.file_name().unwrap_or_default())))
    };
    matches!((place(one), place(other)), (Ok(one), Ok(other)) if one == other)
}

/// Fails if two of the output files are the same file.
pub fn check_distinct(outputs: &[(&str, Option<&PathBuf>)]) -> Result<()> {
    for (at, (name, path)) in outputs.iter().enumerate() {
        let twin = outputs[..at].iter().find(|(_, other)| matches!((path, other), (Some(a), Some(b)) if same_file(a, b)));
        if let Some((other, _)) = twin {
            return Err(Failure::usage(format!("{other} and {name} name the same file")));
        }
    }
    Ok(())
}

/// A matrix from a file, and the properties of the file that matter when a file of the same kind is written.
pub struct Table {
    /// The elements of the matrix.
    pub numbers: Numbers,
    /// Whether the file contained a vector and not a matrix of one column.
    pub vector: bool,
    /// The element type in the file, if reading converted the elements to another type.
    converted: Option<&'static str>,
}

/// An opened file whose shape is known. The elements are still in the file, except for CSV files.
pub struct Source {
    path: PathBuf,
    body: Body,
}

/// The part of a file that is still to be read.
enum Body {
    Npy(npy::Reader<BufReader<File>>),
    Mtx(mtx::Reader<BufReader<File>>),
    /// The matrix of a CSV file. The shape of a CSV file is known only after the program has read the whole file.
    Csv(Dense<f64>),
}

impl Source {
    /// Number of rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        match &self.body {
            Body::Npy(reader) => reader.shape(),
            Body::Mtx(reader) => reader.shape(),
            Body::Csv(matrix) => (matrix.rows(), matrix.cols()),
        }
    }

    /// Reads the elements of the matrix. Fails if the host does not have enough memory, or if an element is not finite.
    pub fn read(self) -> Result<Table> {
        let ((rows, cols), path) = (self.shape(), &self.path);
        let element = match &self.body {
            Body::Npy(reader) => reader.dtype().size(),
            Body::Mtx(_) => DType::F64.size(),
            // The elements of a CSV file are in memory already, so that no more memory is needed.
            Body::Csv(_) => 0,
        };
        let what = format!("{}: the {rows}×{cols} matrix", path.display());
        memory::check(&what, rows.saturating_mul(cols).saturating_mul(element))?;
        let of_text = |matrix| Table { numbers: Numbers::F64(matrix), vector: false, converted: None };
        let table = match self.body {
            Body::Npy(reader) => reader.read(path)?,
            Body::Mtx(reader) => of_text(reader.read(path)?),
            Body::Csv(matrix) => of_text(matrix),
        };
        if let Some((i, j, value)) = table.numbers.first_non_finite() {
            return Err(Failure::file(path, format!("row {}, column {}: {value} is not a finite number", i + 1, j + 1)));
        }
        if let Some(kind) = table.converted {
            note(&format!("{}: values of type {kind} are converted to {}, exactly", path.display(), table.numbers.dtype()));
        }
        Ok(table)
    }
}

/// Opens a matrix file. Fails if the matrix has no element.
pub fn open(path: &Path) -> Result<Source> {
    let format = Format::of(path)?;
    let (file, size) = open_file(path)?;
    let input = BufReader::with_capacity(1 << 20, file);
    let body = match format {
        Format::Npy => Body::Npy(npy::Reader::new(path, input, size)?),
        Format::Mtx => Body::Mtx(mtx::Reader::new(path, input, size)?),
        Format::Csv => Body::Csv(csv::read(path, input, size)?),
    };
    let source = Source { path: path.to_owned(), body };
    match source.shape() {
        (0, cols) => Err(Failure::file(path, format!("the matrix is 0×{cols}, it has no elements"))),
        (rows, 0) => Err(Failure::file(path, format!("the matrix is {rows}×0, it has no elements"))),
        _ => Ok(source),
    }
}

/// Opens a file that is not empty, and returns its size.
fn open_file(path: &Path) -> Result<(File, u64)> {
    let unread = |e: std::io::Error| Failure::file(path, format!("cannot read: {e}"));
    // The file is checked before it is opened, since the opening of a pipe waits until another program opens it for writing.
    let meta = std::fs::metadata(path).map_err(unread)?;
    if meta.is_dir() {
        return Err(Failure::file(path, "is a folder"));
    }
    if !meta.is_file() {
        return Err(Failure::file(path, "is a pipe or a device, whose size nobody knows; write it to a file and name that"));
    }
    if meta.len() == 0 {
        return Err(Failure::file(path, "the file is empty"));
    }
    Ok((File::open(path).map_err(unread)?, meta.len()))
}

/// Writes a matrix file completely or not at all. If `vector` is set and the format has vectors, the matrix is stored as a vector.
pub fn write<T: Scalar>(path: &Path, matrix: &Dense<T>, vector: bool) -> Result<()> {
    let format = Format::of(path)?;
    atomic::write(path, |out| match format {
        Format::Npy => npy::write(out, matrix, vector),
        Format::Mtx => mtx::write(out, matrix),
        Format::Csv => csv::write(out, matrix),
    })
}

/// The shortest text from which a reader gets the same number.
pub fn number<T: Scalar>(value: T) -> String {
    let magnitude = value.to_f64().abs();
    if magnitude == 0.0 || (1e-4..1e16).contains(&magnitude) { value.to_string() } else { format!("{:e}", value.to_f64()) }
}

/// Whether the text of a number has a nonzero digit before its exponent.
fn has_digits(text: &str) -> bool {
    text.split(['e', 'E']).next().unwrap_or_default().contains(|c: char| ('1'..='9').contains(&c))
}

/// Parses one finite number in decimal notation.
fn parse_number(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(0.0) if has_digits(text) => Err(format!("{text:?} is below the range of f64")),
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(format!("{text:?} is not a finite number")),
        Err(_) if text.is_empty() => Err("a value is missing".to_owned()),
        Err(_) => Err(format!("{text:?} is not a number")),
    }
}
