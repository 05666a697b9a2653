//! The header of a .npy file, which is a Python dictionary with three keys.
//!
//! Lapidary has its own reader for this format, for two reasons. The crates for this format multiply the extents of an array
//! without a check, so that the header of a malicious file causes an overflow. The crates for this format also add a grammar engine
//! and a C compiler to the build.

use std::io::Read;

use lapidary::Layout;

use super::element::Element;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Maximum number of bytes of a header that the reader accepts. NumPy writes headers shorter than 1 KiB.
const LONGEST_HEADER: usize = 64 << 10;

/// The contents of a header that the reader has checked.
#[derive(Debug, PartialEq)]
pub struct Header {
    /// Element type of the array.
    pub element: Element,
    /// Order of the elements in the file.
    pub layout: Layout,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// Whether the array has one dimension.
    pub vector: bool,
}

impl Header {
    /// Reads the header of a file of `size` bytes. Fails if the rest of the file is longer or shorter than the described array.
    pub fn read(input: &mut impl Read, size: u64) -> Result<Header, String> {
        let (text, bytes) = read_text(input)?;
        let header = Header::parse(&text)?;
        header.check_size(size - bytes.min(size))?;
        Ok(header)
    }

    fn parse(text: &str) -> Result<Header, String> {
        let Entries { element, layout, shape } = Entries::parse(text)?;
        let missing = |key: &'static str| move || format!("the .npy header has no '{key}'");
        let (element, layout) = (element.ok_or_else(missing("descr"))?, layout.ok_or_else(missing("fortran_order"))?);
        let (rows, cols, vector) = match shape.ok_or_else(missing("shape"))?[..] {
            [rows] => (rows, 1, true),
            [rows, cols] => (rows, cols, false),
            ref shape => return Err(format!("the array has {} dimensions; 1 or 2 are supported", shape.len())),
        };
        Ok(Header { element, layout, rows, cols, vector })
    }

    /// Compares the size of the described array with the number of bytes after the header. No memory has been allocated for the
    /// array at this point.
    fn check_size(&self, held: u64) -> Result<(), String> {
        let Header { rows, cols, element, .. } = self;
        let bytes = rows.checked_mul(*cols).and_then(|len| len.checked_mul(element.size()));
        let array = format!("{rows}×{cols} {} array", element.name());
        match bytes.map(|bytes| bytes as u64) {
            Some(claimed) if claimed == held => Ok(()),
            Some(claimed) if claimed < held => {
                Err(format!("{} bytes follow the {array}; one array per file is read", held - claimed))
            }
            _ => Err(format!("the file is truncated: a {array} is claimed, {held} bytes of data follow")),
        }
    }
}

/// Writes a header of version 1.0 for little-endian elements in Fortran order.
pub fn write(out: &mut dyn std::io::Write, descr: &str, shape: &str) -> std::io::Result<()> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': {shape}, }}");
    // The format requires that the data start at a multiple of 64 bytes, after a newline.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&u16::try_from(padded).expect("the header is short").to_le_bytes())?;
    writeln!(out, "{header:width$}", width = padded - 1)
}

/// Reads the dictionary in the header as text. Also returns the number of bytes before the data of the array.
fn read_text(input: &mut impl Read) -> Result<(String, u64), String> {
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

/// Values of the keys `descr`, `fortran_order` and `shape` of a header. The value is `None` if the header lacks the key.
#[derive(Default)]
struct Entries {
    element: Option<Element>,
    layout: Option<Layout>,
    shape: Option<Vec<usize>>,
}

impl Entries {
    fn parse(text: &str) -> Result<Entries, String> {
        let mut rest = Rest(text.trim());
        let mut entries = Entries::default();
        rest.expect('{')?;
        while !rest.takes('}') {
            let key = rest.quoted().ok_or_else(|| rest.unlike("a key in quotes"))?;
            rest.expect(':')?;
            let twice = match key {
                "descr" => entries.element.replace(rest.element()?).is_some(),
                "fortran_order" => entries.layout.replace(rest.layout()?).is_some(),
                "shape" => entries.shape.replace(rest.shape()?).is_some(),
                other => return Err(format!("the .npy header has an unknown key '{other}'")),
            };
            if twice {
                return Err(format!("the .npy header names '{key}' twice"));
            }
            if !rest.takes(',') && !rest.0.starts_with('}') {
                return Err(rest.unlike("a comma or }"));
            }
        }
        if rest.0.is_empty() { Ok(entries) } else { Err(rest.unlike("the end")) }
    }
}

/// The part of the header's dictionary that the parser has not read yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    /// Skips the character `sign` and the spaces after it. Returns false if the next character is not `sign`.
    fn takes(&mut self, sign: char) -> bool {
        let rest = self.0.strip_prefix(sign);
        self.0 = rest.unwrap_or(self.0).trim_start();
        rest.is_some()
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        if self.takes(sign) { Ok(()) } else { Err(self.unlike(&sign.to_string())) }
    }

    fn unlike(&self, wanted: &str) -> String {
        let found: String = self.0.chars().take(20).collect();
        format!("the .npy header is malformed: {wanted} is expected at {found:?}")
    }

    /// Reads a quoted text, which may not contain escapes.
    fn quoted(&mut self) -> Option<&'a str> {
        let quote = self.0.chars().next().filter(|sign| ['\'', '"'].contains(sign))?;
        let (text, rest) = self.0[1..].split_once(quote).filter(|(text, _)| !text.contains('\\'))?;
        self.0 = rest.trim_start();
        Some(text)
    }

    /// Reads the characters up to the next punctuation mark or space.
    fn word(&mut self) -> &'a str {
        let end = self.0.find([',', '}', ')', ' ']).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest.trim_start();
        word
    }

    fn element(&mut self) -> Result<Element, String> {
        if self.0.starts_with('[') {
            return Err(format!("the array has a structured dtype; {}", Element::SUPPORTED));
        }
        Element::parse(self.quoted().ok_or("'descr' in the .npy header is not a string")?)
    }

    fn layout(&mut self) -> Result<Layout, String> {
        match self.word() {
            "True" => Ok(Layout::ColMajor),
            "False" => Ok(Layout::RowMajor),
            other => Err(format!("'fortran_order' in the .npy header is {other:?}, neither True nor False")),
        }
    }

    /// Reads a tuple of sizes. In Python, a tuple of one element ends in a comma.
    fn shape(&mut self) -> Result<Vec<usize>, String> {
        let bad = || "'shape' in the .npy header is not a tuple of sizes".to_owned();
        let (mut sizes, mut comma) = (Vec::new(), true);
        if !self.takes('(') {
            return Err(bad());
        }
        while !self.takes(')') {
            let digits = Some(self.word()).filter(|word| comma && word.bytes().all(|byte| byte.is_ascii_digit()));
            sizes.push(digits.and_then(|digits| digits.parse().ok()).ok_or_else(bad)?);
            comma = self.takes(',');
        }
        if sizes.len() == 1 && !comma { Err(bad()) } else { Ok(sizes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(descr: &str, order: &str, shape: &str) -> String {
        Header::parse(&format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}")).unwrap_err()
    }

    #[test]
    fn headers_are_read_in_any_order_of_keys() {
        let header = Header::parse("{\"shape\": (3,), 'fortran_order':False , 'descr': '>f4'} \n").unwrap();
        let Header { element, layout, rows, cols, vector } = header;
        assert_eq!((element, layout), (Element::parse(">f4").unwrap(), Layout::RowMajor));
        assert_eq!((rows, cols, vector), (3, 1, true));
        assert_eq!(Header::parse("{'descr': '<f8', 'fortran_order': True, 'shape': (3, 4,)}").unwrap().cols, 4);
    }

    #[test]
    fn wrong_headers_say_why() {
        assert!(message("[('x', '<f8')]", "True", "(1,)").contains("structured"));
        assert!(message("'<f8'", "True", "(1, 2, 3)").contains("3 dimensions"));
        for shape in ["(-1, 2)", "(3,,3)", "(3)", "(,)", "(3, 3", "3, 3", "(+3, 3)", "(3 3)", "(3.0, 3)", "[3, 3]"] {
            let message = message("'<f8'", "True", shape);
            assert!(message.contains("not a tuple"), "{shape}: {message}");
        }
        for order in ["Truely", "true", "1", "'True'", "None", ""] {
            let message = message("'<f8'", order, "(3, 3)");
            assert!(message.contains("neither True nor False"), "{order}: {message}");
        }
        for (text, words) in [
            ("{}", "no 'descr'"),
            ("", "malformed"),
            ("{'descr': '<f8', 'fortran_order': True, 'shape': (3,)", "malformed"),
            ("{'descr': '<f8', 'fortran_order': True, 'shape': (3,)} x", "malformed"),
            ("{'descr': '<f8' 'fortran_order': True, 'shape': (3,)}", "malformed"),
            ("{'descr': '<f8', 'descr': '<f8', 'fortran_order': True, 'shape': (3,)}", "twice"),
            ("{'descr': '<f8', 'fortran_order': True, 'shape': (3,), 'more': 1}", "unknown key 'more'"),
            ("{'descr': 8, 'fortran_order': True, 'shape': (3,)}", "not a string"),
        ] {
            let message = Header::parse(text).unwrap_err();
            assert!(message.contains(words), "{text}: {message}");
        }
    }

    #[test]
    fn sizes_that_overflow_are_truncated_files() {
        let text = format!("{{'descr': '<f8', 'fortran_order': True, 'shape': ({0}, {0})}}", u64::MAX);
        assert!(Header::parse(&text).unwrap().check_size(8).unwrap_err().contains("truncated"));
    }
}
