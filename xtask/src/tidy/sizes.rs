//! Checks the number of lines in each file.

use super::Finding;
use super::source::Source;

/// Maximum number of lines in a file.
const MAX_LINES: usize = 500;
/// Number of lines above which `cargo xtask tidy` warns about a file.
const WARNING_LINES: usize = 300;

/// Finds files with more than [`MAX_LINES`] lines.
pub fn too_long(sources: &[Source]) -> Vec<Finding> {
    above(sources, MAX_LINES, usize::MAX)
}

/// Finds files with more than [`WARNING_LINES`] lines, up to [`MAX_LINES`].
pub fn long(sources: &[Source]) -> Vec<Finding> {
    above(sources, WARNING_LINES, MAX_LINES)
}

fn above(sources: &[Source], least: usize, most: usize) -> Vec<Finding> {
    let outside = |source: &&Source| (least + 1..=most).contains(&source.code.len());
    let finding = |source: &Source| Finding::new(&source.path, format!("{} lines; {least} are enough", source.code.len()));
    sources.iter().filter(outside).map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_found() {
        let count = |lines: usize| {
            let sources = [Source::new("x.rs", &"a\n".repeat(lines))];
            (long(&sources).len(), too_long(&sources).len())
        };
        assert_eq!([300, 301, 500, 501].map(count), [(0, 0), (1, 0), (1, 0), (0, 1)]);
    }
}
