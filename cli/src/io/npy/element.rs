//! The element types of a .npy file, and the conversion of elements to numbers.

use half::f16;
use lapidary::{DType, Scalar};

/// An element type that the reader supports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Element {
    /// Kind of the values: their type and their number of bits.
    pub kind: Kind,
    /// Whether the first byte of a value is the most significant byte.
    pub big_endian: bool,
}

/// Kind of a value: its type and its number of bits.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Kind {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    F32,
    F64,
}

/// Each kind of value, with its letter and its size in a header, and with the name that NumPy gives it.
const KINDS: [(Kind, &str, usize, &str); 12] = [
    (Kind::Bool, "b", 1, "bool"),
    (Kind::I8, "i", 1, "int8"),
    (Kind::I16, "i", 2, "int16"),
    (Kind::I32, "i", 4, "int32"),
    (Kind::I64, "i", 8, "int64"),
    (Kind::U8, "u", 1, "uint8"),
    (Kind::U16, "u", 2, "uint16"),
    (Kind::U32, "u", 4, "uint32"),
    (Kind::U64, "u", 8, "uint64"),
    (Kind::F16, "f", 2, "float16"),
    (Kind::F32, "f", 4, "f32"),
    (Kind::F64, "f", 8, "f64"),
];

impl Element {
    /// List of the supported element types, for error messages.
    pub const SUPPORTED: &str = "supported are floats of 2, 4 and 8 bytes, integers and bool";

    /// Parses a dtype such as `<f8` or `|b1`.
    pub fn parse(descr: &str) -> Result<Element, String> {
        let code = descr.trim_start_matches(['<', '>', '=', '|']);
        let kind = KINDS.iter().find(|(_, letter, size, _)| code == format!("{letter}{size}"));
        let big_endian = match descr.strip_suffix(code) {
            Some(">") => Some(true),
            Some("<") => Some(false),
            Some("=") => Some(cfg!(target_endian = "big")),
            // Only for a value of one byte, the header may state that there is no byte order.
            Some("|") => kind.filter(|(_, _, size, _)| *size == 1).map(|_| false),
            Some(_) | None => None,
        };
        match (kind, big_endian) {
            (Some(&(kind, ..)), Some(big_endian)) => Ok(Element { kind, big_endian }),
            _ if code.starts_with('c') => {
                Err(format!("dtype '{descr}' is complex, which is not supported: the routines compute with real numbers"))
            }
            _ => Err(format!("dtype '{descr}' is not supported; {}", Self::SUPPORTED)),
        }
    }

    fn row(self) -> (usize, &'static str) {
        let row = KINDS.iter().find(|(kind, ..)| *kind == self.kind);
        row.map(|&(_, _, size, name)| (size, name)).expect("every kind has its row")
    }

    /// Size of a value in bytes.
    pub fn size(self) -> usize {
        self.row().0
    }

    /// NumPy's name of the element type.
    pub fn name(self) -> &'static str {
        self.row().1
    }
}

/// A function that converts the bytes of a value, least significant byte first. The error of the function explains why the bytes
/// cannot be converted.
pub type Decode<T, const N: usize> = fn([u8; N]) -> Result<T, String>;

/// Converts a bool to 0 or 1.
pub fn truth([byte]: [u8; 1]) -> Result<f64, String> {
    match byte {
        0 | 1 => Ok(f64::from(byte)),
        other => Err(format!("the byte {other} is no bool")),
    }
}

/// Converts a half-precision number to single precision, without a rounding error.
pub fn half(bytes: [u8; 2]) -> Result<f32, String> {
    Ok(f16::from_le_bytes(bytes).to_f32())
}

/// Converts an integer to double precision. Fails if the conversion is not exact.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "what is lost is looked for")]
pub fn integer(value: impl Into<i128>) -> Result<f64, String> {
    let value = value.into();
    let number = value as f64;
    if number as i128 == value { Ok(number) } else { Err(format!("the integer {value} is not exact in f64")) }
}

/// The dtype by which a header describes elements of type `T`.
pub fn descr<T: Scalar>() -> &'static str {
    if T::DTYPE == DType::F32 { "<f4" } else { "<f8" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dtypes_are_read_or_refused_with_the_reason() {
        let name = |descr| Element::parse(descr).map(|element| (element.name(), element.size(), element.big_endian));
        assert_eq!(name(">i4"), Ok(("int32", 4, true)));
        assert_eq!(name("|b1"), Ok(("bool", 1, false)));
        assert_eq!(name("<f2"), Ok(("float16", 2, false)));
        for complex in ["<c8", ">c16"] {
            assert!(name(complex).unwrap_err().contains("complex"), "{complex}");
        }
        for other in ["<f16", "<M8[ns]", "|O", "<U3", "|f8", "f8", "", "<", "<i3", "<<f8", "<f08"] {
            assert!(name(other).unwrap_err().contains("not supported"), "{other}");
        }
    }

    #[test]
    fn integers_are_exact_or_refused() {
        assert_eq!(integer(-(1_i64 << 53)), Ok(-9_007_199_254_740_992.0));
        assert_eq!((integer(u64::MAX - 2047), integer(i64::MIN)), (Ok(18_446_744_073_709_549_568.0), Ok(-(2_f64.powi(63)))));
        for inexact in [i128::from(u64::MAX), i64::MAX.into(), (1 << 53) + 1, -(1 << 53) - 1] {
            assert!(integer(inexact).unwrap_err().contains(&inexact.to_string()), "{inexact}");
        }
    }

    #[test]
    fn halves_are_what_they_are_in_single_precision() {
        let bits = [0x3c00_u16, 0xc000, 0x0001, 0x7bff, 0x8000].map(|bits| half(bits.to_le_bytes()).unwrap());
        assert_eq!(bits, [1.0, -2.0, 5.960_464_5e-8, 65504.0, -0.0]);
        assert!(half(0x7c00_u16.to_le_bytes()).unwrap().is_infinite() && half([0, 0x7e]).unwrap().is_nan());
    }
}
