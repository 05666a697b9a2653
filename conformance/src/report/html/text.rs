//! Formats numbers and verdicts for the HTML page.

use crate::report::{Figure, Verdict};

/// Formats the ratio of an error to its bound, as a percentage or a multiple.
pub fn share(used: f64) -> String {
    match used {
        f64::INFINITY => "∞".to_owned(),
        0.0 => "0 %".to_owned(),
        _ if used < 0.01 => "< 1 %".to_owned(),
        _ if used < 10.0 => format!("{:.0} %", 100.0 * used),
        _ if used < 1e5 => format!("{used:.0} ×"),
        _ => format!("{used:.0e} ×"),
    }
}

/// Formats a ratio or the limit of a bound.
pub fn number(value: f64) -> String {
    match value {
        _ if value.is_nan() => "–".to_owned(),
        _ if value.is_infinite() => "∞".to_owned(),
        0.0 => "0".to_owned(),
        _ if (0.01..1e4).contains(&value.abs()) => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

/// Whether the figure exceeds its limit.
pub fn over(figure: &Figure) -> bool {
    figure.used() > 1.0
}

/// Describes a figure on one line.
pub fn figure(figure: &Figure) -> String {
    let flags = if figure.flags.is_empty() { String::new() } else { format!(" {}", figure.flags) };
    let of = if figure.limit > 0.0 { format!("{} of ", share(figure.used())) } else { String::new() };
    format!("{}{flags}, size {}: {} is {of}bound {}", figure.check, figure.size, number(figure.ratio), figure.bound)
}

/// The sign and the word of a verdict. Each verdict has a different sign, so that a reader needs no colours.
pub fn verdict(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Passed => ("✔", "passed"),
        Verdict::Failed => ("✘", "failed"),
        Verdict::Expected => ("◐", "known failure"),
        Verdict::UnexpectedlyPassed => ("‼", "unexpected pass"),
        Verdict::Skipped => ("–", "skipped"),
    }
}

/// Formats the number of trials that have a verdict.
pub fn counted(count: usize, verdict: Verdict) -> String {
    let word = match verdict {
        Verdict::Expected if count > 1 => "known failures",
        Verdict::UnexpectedlyPassed if count > 1 => "unexpected passes",
        _ => self::verdict(verdict).1,
    };
    format!("{count} {word}")
}

/// The style class of a verdict on the page.
pub fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "good",
        Verdict::Failed | Verdict::UnexpectedlyPassed => "bad",
        Verdict::Expected => "known",
        Verdict::Skipped => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shares = [0.0, 0.004, 0.314, 1.26, 12.0, 3e9, f64::INFINITY].map(share);
        assert_eq!(shares, ["0 %", "< 1 %", "31 %", "126 %", "12 ×", "3e9 ×", "∞"]);
        assert_eq!([1, 2].map(|count| counted(count, Verdict::Expected)), ["1 known failure", "2 known failures"]);
        assert_eq!([0.0, 1.5, 4.44e-16, f64::INFINITY, f64::NAN].map(number), ["0", "1.500", "4.44e-16", "∞", "–"]);
    }
}
