//! NumPy's array file, format versions 1 to 3 (`numpy.lib.format`).
//!
//! The reader is our own: the crates for this format multiply the extents of
//! the shape unchecked, which a hostile header overflows, and bring a grammar
//! engine and a C compiler into the build for a header of three keys.

use std::io::{self, Read, Write};
use std::path::Path;

use lapidary::{DType, Layout, Scalar};

use super::Table;
use crate::dense::{Dense, Numbers};
use crate::failure::{Failure, Result};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// NumPy itself writes headers below 1 KiB; no longer one is believed.
const LONGEST_HEADER: usize = 64 << 10;

/// What the header says, checked.
#[derive(Debug, PartialEq)]
struct Header {
    dtype: DType,
    big_endian: bool,
    layout: Layout,
    rows: usize,
    cols: usize,
    vector: bool,
}

/// Reads a matrix or a vector of f32 or f64; `size` is the size of the file.
pub fn read(path: &Path, mut input: impl Read, size: u64) -> Result<Table> {
    let fail = |message: String| Failure::file(path, message);
    let (text, header_bytes) = read_header(&mut input).map_err(fail)?;
    let header = parse_header(&text).map_err(fail)?;
    check_size(&header, size - header_bytes.min(size)).map_err(fail)?;
    let numbers = match header.dtype {
        DType::F32 => read_data(&header, input, f32::from_le_bytes, f32::from_be_bytes).map(Numbers::F32),
        DType::F64 => read_data(&header, input, f64::from_le_bytes, f64::from_be_bytes).map(Numbers::F64),
        DType::I32 => unreachable!("the header accepts floating point only"),
    };
    let numbers = numbers.map_err(|e| fail(format!("cannot read: {e}")))?;
    Ok(Table { numbers, vector: header.vector })
}

/// The dictionary in the header, and the bytes before the data.
fn read_header(input: &mut impl Read) -> Result<(String, u64), String> {
    let truncated = |_| "the file ends inside the .npy header".to_owned();
    let mut start = [0; 8];
    input.read_exact(&mut start).map_err(truncated)?;
    if &start[..6] != MAGIC {
        return Err("this is not a .npy file: it does not begin with \\x93NUMPY".to_owned());
    }
    let wide = match start[6] {
        1 => false,
        2 | 3 => true,
        version => return Err(format!("version {version} of the .npy format is unknown (1, 2 and 3 are read)")),
    };
    let mut length = [0; 4];
    let length_bytes = if wide { 4 } else { 2 };
    input.read_exact(&mut length[..length_bytes]).map_err(truncated)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST_HEADER {
        return Err(format!("the .npy header claims {length} bytes, more than {LONGEST_HEADER}"));
    }
    let mut text = vec![0; length];
    input.read_exact(&mut text).map_err(truncated)?;
    let text = String::from_utf8(text).map_err(|_| "the .npy header is not text".to_owned())?;
    Ok((text, (8 + length_bytes + length) as u64))
}

fn parse_header(text: &str) -> Result<Header, String> {
    let (dtype, big_endian) = parse_descr(value_of(text, "descr")?)?;
    let order = value_of(text, "fortran_order")?;
    let layout = match (order.starts_with("True"), order.starts_with("False")) {
        (true, _) => Layout::ColMajor,
        (_, true) => Layout::RowMajor,
        _ => return Err("'fortran_order' in the .npy header is neither True nor False".to_owned()),
    };
    let shape = parse_shape(value_of(text, "shape")?)?;
    let (rows, cols, vector) = match shape[..] {
        [rows] => (rows, 1, true),
        [rows, cols] => (rows, cols, false),
        _ => return Err(format!("the array has {} dimensions; 1 or 2 are supported", shape.len())),
    };
    Ok(Header { dtype, big_endian, layout, rows, cols, vector })
}

/// The text that follows `'key':` in the dictionary.
fn value_of<'a>(text: &'a str, key: &str) -> Result<&'a str, String> {
    let found = [format!("'{key}':"), format!("\"{key}\":")].iter().find_map(|k| text.split_once(k.as_str()));
    found.map(|(_, rest)| rest.trim_start()).ok_or_else(|| format!("the .npy header has no '{key}'"))
}

fn parse_descr(value: &str) -> Result<(DType, bool), String> {
    let supported = "supported are f32 and f64 ('<f4', '<f8', '>f4', '>f8')";
    if value.starts_with('[') {
        return Err(format!("the array has a structured dtype; {supported}"));
    }
    let quoted = value.get(1..).and_then(|v| v.split_once(['\'', '"']));
    let descr = quoted.ok_or("'descr' in the .npy header is not a string")?.0;
    let native_big = cfg!(target_endian = "big");
    match descr {
        "<f4" => Ok((DType::F32, false)),
        "<f8" => Ok((DType::F64, false)),
        ">f4" => Ok((DType::F32, true)),
        ">f8" => Ok((DType::F64, true)),
        "=f4" => Ok((DType::F32, native_big)),
        "=f8" => Ok((DType::F64, native_big)),
        other => Err(format!("dtype '{other}' is not supported; {supported}")),
    }
}

fn parse_shape(value: &str) -> Result<Vec<usize>, String> {
    let bad = || "'shape' in the .npy header is not a tuple of sizes".to_owned();
    let inside = value.strip_prefix('(').and_then(|v| v.split_once(')')).ok_or_else(bad)?.0;
    let parts = inside.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().map_err(|_| bad())).collect()
}

/// Compares what the header claims with what the file holds, before anything is allocated.
fn check_size(header: &Header, held: u64) -> Result<(), String> {
    let Header { rows, cols, dtype, .. } = *header;
    let claimed = rows.checked_mul(cols).and_then(|len| len.checked_mul(dtype.size())).map(|bytes| bytes as u64);
    match claimed {
        Some(claimed) if claimed == held => Ok(()),
        Some(claimed) if claimed < held => {
            Err(format!("{} bytes follow the {rows}×{cols} {dtype} array; one array per file is read", held - claimed))
        }
        _ => Err(format!("the file is truncated: a {rows}×{cols} {dtype} array is claimed, {held} bytes of data follow")),
    }
}

/// Reads the elements, in whole blocks of them.
fn read_data<T: Scalar, const N: usize>(
    header: &Header,
    mut input: impl Read,
    little: fn([u8; N]) -> T,
    big: fn([u8; N]) -> T,
) -> io::Result<Dense<T>> {
    let decode = if header.big_endian { big } else { little };
    let len = header.rows * header.cols;
    let mut data = Vec::new();
    data.try_reserve_exact(len).map_err(io::Error::other)?;
    let mut block = vec![0; (64 << 10) * N];
    while data.len() < len {
        let bytes = &mut block[..(len - data.len()).min(64 << 10) * N];
        input.read_exact(bytes)?;
        data.extend(bytes.chunks_exact(N).map(|chunk| decode(chunk.try_into().expect("the chunk is exact"))));
    }
    Ok(Dense::from_vec(data, header.rows, header.cols, header.layout))
}

/// Writes version 1.0, little-endian, in Fortran order.
pub fn write<T: Scalar>(out: &mut dyn Write, matrix: &Dense<T>, vector: bool) -> io::Result<()> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let shape = if vector && cols == 1 { format!("({rows},)") } else { format!("({rows}, {cols})") };
    let descr = if T::DTYPE == DType::F32 { "<f4" } else { "<f8" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': {shape}, }}");
    // the format wants the data aligned to 64 bytes and a newline before it
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&u16::try_from(padded).expect("the header is short").to_le_bytes())?;
    writeln!(out, "{header:width$}", width = padded - 1)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_in_any_order_of_keys() {
        let header = parse_header("{\"shape\": (3,), 'fortran_order': False, 'descr': '>f4'}").unwrap();
        let Header { dtype, big_endian, rows, cols, vector, .. } = header;
        assert_eq!((dtype, big_endian, rows, cols, vector), (DType::F32, true, 3, 1, true));
    }

    #[test]
    fn wrong_headers_say_why() {
        let message = |descr: &str, shape: &str| {
            parse_header(&format!("{{'descr': {descr}, 'fortran_order': True, 'shape': {shape}}}")).unwrap_err()
        };
        assert!(message("'<i8'", "(1,)").contains("'<i8' is not supported"));
        assert!(message("[('x', '<f8')]", "(1,)").contains("structured"));
        assert!(message("'<f8'", "(1, 2, 3)").contains("3 dimensions"));
        assert!(message("'<f8'", "(-1, 2)").contains("not a tuple"));
        assert!(parse_header("{}").unwrap_err().contains("no 'descr'"));
    }

    #[test]
    fn sizes_that_overflow_are_truncated_files() {
        let header = parse_header(&format!("{{'descr': '<f8', 'fortran_order': True, 'shape': ({0}, {0})}}", u64::MAX));
        assert!(check_size(&header.unwrap(), 8).unwrap_err().contains("truncated"));
    }
}
