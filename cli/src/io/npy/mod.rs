//! Reads and writes NumPy's array format, versions 1 to 3 (`numpy.lib.format`).

mod element;
mod header;

use std::io::{self, Read, Write};
use std::path::Path;

use lapidary::{DType, Layout, Scalar};

use self::element::{Decode, Kind, descr, half, integer, truth};
use self::header::Header;
use super::Table;
use crate::dense::{Dense, Numbers};
use crate::failure::{Failure, Result};

/// An opened file whose header has been read.
pub struct Reader<R> {
    header: Header,
    input: R,
}

impl<R: Read> Reader<R> {
    /// Reads the header of a file. `size` is the number of bytes in the file.
    pub fn new(path: &Path, mut input: R, size: u64) -> Result<Self> {
        let header = Header::read(&mut input, size).map_err(|message| Failure::file(path, message))?;
        Ok(Reader { header, input })
    }

    /// Number of rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.header.rows, self.header.cols)
    }

    /// Element type of the matrix that [`read`](Self::read) returns.
    pub fn dtype(&self) -> DType {
        if matches!(self.header.element.kind, Kind::F16 | Kind::F32) { DType::F32 } else { DType::F64 }
    }

    /// Reads the elements of the array. Elements of type f32 and f64 are kept, float16 is converted to f32, and integers and bools
    /// are converted to f64.
    pub fn read(self, path: &Path) -> Result<Table> {
        let (kind, name, vector) = (self.header.element.kind, self.header.element.name(), self.header.vector);
        macro_rules! integers {
            ($type:ty) => {
                self.elements(path, |bytes| integer(<$type>::from_le_bytes(bytes))).map(Numbers::F64)
            };
        }
        let numbers = match kind {
            Kind::F32 => self.elements(path, |bytes| Ok(f32::from_le_bytes(bytes))).map(Numbers::F32),
            Kind::F64 => self.elements(path, |bytes| Ok(f64::from_le_bytes(bytes))).map(Numbers::F64),
            Kind::F16 => self.elements(path, half).map(Numbers::F32),
            Kind::Bool => self.elements(path, truth).map(Numbers::F64),
            Kind::I8 => integers!(i8),
            Kind::I16 => integers!(i16),
            Kind::I32 => integers!(i32),
            Kind::I64 => integers!(i64),
            Kind::U8 => integers!(u8),
            Kind::U16 => integers!(u16),
            Kind::U32 => integers!(u32),
            Kind::U64 => integers!(u64),
        }?;
        let converted = (!matches!(kind, Kind::F32 | Kind::F64)).then_some(name);
        Ok(Table { numbers, vector, converted })
    }

    /// Reads the elements in blocks and converts each element by `decode`.
    fn elements<T: Scalar, const N: usize>(mut self, path: &Path, decode: Decode<T, N>) -> Result<Dense<T>> {
        const BLOCK: usize = 64 << 10;
        let Header { rows, cols, layout, element, .. } = self.header;
        let mut data = Dense::<T>::room(rows, cols)?;
        let mut block = vec![0; BLOCK * N];
        while data.len() < rows * cols {
            let bytes = &mut block[..(rows * cols - data.len()).min(BLOCK) * N];
            self.input.read_exact(bytes).map_err(|e| Failure::file(path, format!("cannot read: {e}")))?;
            for chunk in bytes.chunks_exact(N) {
                let mut value: [u8; N] = chunk.try_into().expect("the chunk is exact");
                if element.big_endian {
                    value.reverse();
                }
                data.push(decode(value).map_err(|message| misfit(path, &self.header, data.len(), &message))?);
            }
        }
        Ok(Dense::from_vec(data, rows, cols, layout))
    }
}

/// The failure if element `at` of the file cannot be converted.
fn misfit(path: &Path, header: &Header, at: usize, message: &str) -> Failure {
    let (row, column) = match header.layout {
        Layout::ColMajor => (at % header.rows, at / header.rows),
        Layout::RowMajor => (at / header.cols, at % header.cols),
    };
    Failure::file(path, format!("row {}, column {}: {message}", row + 1, column + 1))
}

/// Writes a file of format version 1.0 with little-endian elements in Fortran order.
pub fn write<T: Scalar>(out: &mut dyn Write, matrix: &Dense<T>, vector: bool) -> io::Result<()> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let shape = if vector && cols == 1 { format!("({rows},)") } else { format!("({rows}, {cols})") };
    header::write(out, descr::<T>(), &shape)?;
    let view = matrix.view();
    for j in 0..cols {
        for i in 0..rows {
            write_element(out, view.at(i, j))?;
        }
    }
    Ok(())
}

#[allow(clippy::cast_possible_truncation, reason = "an f32 that went through f64 is unchanged")]
fn write_element<T: Scalar>(out: &mut dyn Write, value: T) -> io::Result<()> {
    match T::DTYPE {
        DType::F32 => out.write_all(&(value.to_f64() as f32).to_le_bytes()),
        DType::F64 => out.write_all(&value.to_f64().to_le_bytes()),
        DType::I32 => unreachable!("no scalar is an integer"),
    }
}
