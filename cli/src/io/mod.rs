//! Matrices in files, by the extension of the name.

pub mod atomic;
mod csv;
mod mtx;
mod npy;
pub mod temporary;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use lapidary::Scalar;

use crate::dense::{Dense, Numbers};
use crate::failure::{Failure, Result};

/// What the extension of a file name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// NumPy's array file.
    Npy,
    /// Matrix Market.
    Mtx,
    /// Text with commas.
    Csv,
}

impl Format {
    /// The format of a file, by its extension.
    pub fn of(path: &Path) -> Result<Format> {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("npy") => Ok(Format::Npy),
            Some("mtx") => Ok(Format::Mtx),
            Some("csv") => Ok(Format::Csv),
            Some(_) | None => Err(Failure::file(path, "the name must end in .npy, .mtx or .csv")),
        }
    }
}

/// Whether two names lead to one file, which need not be there.
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

/// Refuses outputs of which two are one file.
pub fn check_distinct(outputs: &[(&str, Option<&PathBuf>)]) -> Result<()> {
    for (at, (name, path)) in outputs.iter().enumerate() {
        let twin = outputs[..at].iter().find(|(_, other)| matches!((path, other), (Some(a), Some(b)) if same_file(a, b)));
        if let Some((other, _)) = twin {
            return Err(Failure::usage(format!("{other} and {name} name the same file")));
        }
    }
    Ok(())
}

/// A matrix from a file, with what is needed to write its like.
pub struct Table {
    /// The elements.
    pub numbers: Numbers,
    /// Whether the file held a vector, not a matrix of one column.
    pub vector: bool,
}

/// Reads a matrix of finite numbers that has at least one element.
pub fn read(path: &Path) -> Result<Table> {
    let format = Format::of(path)?;
    let (file, size) = open(path)?;
    let input = BufReader::with_capacity(1 << 20, file);
    let table = match format {
        Format::Npy => npy::read(path, input, size)?,
        Format::Mtx => Table { numbers: Numbers::F64(mtx::read(path, input, size)?), vector: false },
        Format::Csv => Table { numbers: Numbers::F64(csv::read(path, input)?), vector: false },
    };
    check(path, &table.numbers)?;
    Ok(table)
}

/// Opens a file that is not empty and tells its size.
fn open(path: &Path) -> Result<(File, u64)> {
    let file = File::open(path).map_err(|e| Failure::file(path, format!("cannot read: {e}")))?;
    let meta = file.metadata().map_err(|e| Failure::file(path, format!("cannot read: {e}")))?;
    if meta.is_dir() {
        return Err(Failure::file(path, "is a folder"));
    }
    if meta.len() == 0 {
        return Err(Failure::file(path, "the file is empty"));
    }
    Ok((file, meta.len()))
}

fn check(path: &Path, numbers: &Numbers) -> Result<()> {
    let (rows, cols) = numbers.shape();
    if rows == 0 || cols == 0 {
        return Err(Failure::file(path, format!("the matrix is {rows}×{cols}, it has no elements")));
    }
    match numbers.first_non_finite() {
        None => Ok(()),
        Some((i, j, value)) => Err(Failure::file(path, format!("row {}, column {}: {value} is not a finite number", i + 1, j + 1))),
    }
}

/// Writes a matrix whole or not at all. With `vector`, a format that knows
/// vectors holds one.
pub fn write<T: Scalar>(path: &Path, matrix: &Dense<T>, vector: bool) -> Result<()> {
    let format = Format::of(path)?;
    atomic::write(path, |out| match format {
        Format::Npy => npy::write(out, matrix, vector),
        Format::Mtx => mtx::write(out, matrix),
        Format::Csv => csv::write(out, matrix),
    })
}

/// The shortest text that reads back as the same number.
pub fn number<T: Scalar>(value: T) -> String {
    let magnitude = value.to_f64().abs();
    if magnitude == 0.0 || (1e-4..1e16).contains(&magnitude) { value.to_string() } else { format!("{:e}", value.to_f64()) }
}

/// Reads one finite number in decimal notation.
fn parse_number(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(format!("{text:?} is not a finite number")),
        Err(_) if text.is_empty() => Err("a value is missing".to_owned()),
        Err(_) => Err(format!("{text:?} is not a number")),
    }
}
