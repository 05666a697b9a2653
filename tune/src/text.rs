//! Fields of text files.

/// Replaces line ends and tabs, which separate the fields of a file, by spaces. Several spaces become one.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Parses a time in seconds, which is finite and not negative.
pub fn parse_seconds(text: &str) -> Option<f64> {
    text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0)
}
