//! Reads the lines of a text file, numbered from 1.

use std::io::{self, BufRead};
use std::path::Path;

use crate::failure::{Failure, Result};

/// A text file that is read line by line.
pub struct Lines<R> {
    input: R,
    number: u64,
    /// The line that [`Lines::advance`] read last, without its line ending.
    pub text: String,
}

impl<R: BufRead> Lines<R> {
    /// Reads the lines of `input`.
    pub fn new(input: R) -> Self {
        Lines { input, number: 0, text: String::new() }
    }

    /// Reads the next line. Returns false at the end of the file.
    pub fn advance(&mut self, path: &Path) -> Result<bool> {
        self.text.clear();
        match self.input.read_line(&mut self.text) {
            Ok(0) => Ok(false),
            Ok(_) => {
                self.number += 1;
                self.text.truncate(self.text.trim_end_matches(['\n', '\r']).len());
                // Some editors begin a file with a byte-order mark.
                if self.number == 1 && self.text.starts_with('\u{feff}') {
                    self.text.remove(0);
                }
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                Err(Failure::line(path, self.number + 1, "the line is not UTF-8 text"))
            }
            Err(e) => Err(Failure::file(path, format!("cannot read: {e}"))),
        }
    }

    /// A failure whose message names the line that was read last.
    pub fn fail(&self, path: &Path, message: impl std::fmt::Display) -> Failure {
        Failure::line(path, self.number.max(1), message)
    }
}
