//! Writes the linear system to files.

use std::io::Result;
use std::path::Path;

use crate::atomic::write_atomically;
use crate::potential::matrix;
use crate::study::{KNOWN, Solved};

/// Names of the files: the matrix, the right-hand side, and the expected result.
pub const NAMES: [&str; 3] = ["A.npy", "b.npy", "expected.json"];

/// Writes the system and its expected result.
pub fn write_system(folder: &Path, solved: &Solved, grading: u32) -> Result<()> {
    let (n, [a, b, about]) = (solved.x.len(), NAMES);
    write_atomically(&folder.join(a), &npy(&format!("({n}, {n})"), &matrix(&solved.panels)))?;
    write_atomically(&folder.join(b), &npy(&format!("({n},)"), &vec![1.0; n]))?;
    write_atomically(&folder.join(about), expected(solved, grading).as_bytes())
}

/// Formats data as a NumPy array file, version 1.0, in Fortran order.
fn npy(shape: &str, data: &[f64]) -> Vec<u8> {
    let header = format!("{{'descr': '<f8', 'fortran_order': True, 'shape': {shape}, }}");
    // The format requires that the data are aligned to 64 bytes and follow a newline.
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(length).expect("the header is short").to_le_bytes());
    file.extend(format!("{header:width$}\n", width = length - 1).bytes());
    file.extend(data.iter().flat_map(|value| value.to_le_bytes()));
    file
}

/// Formats the expected result. The sum of x has ten digits, since further digits of an f64 depend on the device.
fn expected(solved: &Solved, grading: u32) -> String {
    let (n, m, sum) = (solved.x.len(), solved.m, solved.capacitance());
    format!(
        r#"{{
  "n": {n},
  "sum_of_x": {sum:.10},
  "sum_of_x_tolerance": 1e-9,
  "capacitance_known": {KNOWN},
  "unit": "4*pi*epsilon_0*edge",
  "panels_per_edge": {m},
  "grading": {grading},
  "made_by": "cargo run --release -p lapidary --example capacitance -- {m} --grading {grading} --write-system data/capacitance"
}}
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::solve;
    use lapidary::{Machine, Select};

    #[test]
    fn the_data_of_an_npy_file_is_aligned() {
        let file = npy("(2,)", &[1.0, -2.0]);
        assert_eq!(file.len() % 64, 16);
        assert_eq!(file[file.len() - 17], b'\n');
        assert_eq!(file[file.len() - 8..], (-2.0_f64).to_le_bytes());
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write_atomically(&path, b"long before").unwrap();
        write_atomically(&path, b"after").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"after");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn the_shipped_system_is_what_this_example_writes() {
        let solved = solve(&Machine::open(&Select::all()).unwrap(), 10, 3).unwrap();
        let made = tempfile::tempdir().unwrap();
        write_system(made.path(), &solved, 3).unwrap();
        let shipped = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/capacitance"));
        for name in ["A.npy", "b.npy", "expected.json"] {
            let [made, shipped] = [made.path(), shipped].map(|folder| std::fs::read(folder.join(name)).unwrap());
            assert!(made == shipped, "{name} differs");
        }
    }
}
