//! Prints the results as HPL prints them, so that programs that read the output of HPL can read them.

/// The algorithm in the notation of HPL: time of the wall clock (`W`), grid of processes by rows (`R`), lookahead of one panel (`1`),
/// broadcast along a ring (`0`), and panels that are factored right-looking and recursively, in 2 parts, down to 1 column (`R2R1`). The text
/// is constant: devices choose their own variants of this algorithm.
const VARIANT: &str = "WR10R2R1";

/// The results of one run.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Order of the system.
    pub n: usize,
    /// Number of columns of a panel. `None` if the library has chosen it.
    pub nb: Option<usize>,
    /// Number of devices.
    pub devices: usize,
    /// Time of the factorisation and the solve, in seconds.
    pub seconds: f64,
    /// Speed in GFLOP/s.
    pub gflops: f64,
    /// The residual ([`residual`](super::check::residual)).
    pub residual: f64,
    /// Whether the residual is small enough.
    pub is_small: bool,
}

impl Row {
    /// The lines that HPL prints for a run. HPL states a grid of P × Q processes; here P is 1, and Q is the number of devices.
    pub fn lines(&self) -> Vec<String> {
        let Row { n, nb, devices, seconds, .. } = *self;
        let nb = nb.map_or_else(|| "auto".to_owned(), |nb| nb.to_string());
        let verdict = if self.is_small { "PASSED" } else { "FAILED" };
        let [double, single] = ["=", "-"].map(|sign| sign.repeat(80));
        vec![
            double.clone(),
            "T/V                N    NB     P     Q               Time                 Gflops".to_owned(),
            single.clone(),
            format!("{VARIANT}{n:>12} {nb:>5} {:>5} {devices:>5} {seconds:>18.2}    {:>19}", 1, scientific(self.gflops, 4)),
            single,
            format!("||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= {:>16} ...... {verdict}", scientific(self.residual, 8)),
            double,
        ]
    }
}

/// Formats a number as `%e` of C does: the exponent has a sign and at least two digits.
fn scientific(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected lines are those that the formats of HPL 2.3 give.
    #[test]
    fn the_lines_are_those_of_hpl() {
        let row = Row {
            n: 35_000,
            nb: Some(192),
            devices: 2,
            seconds: 1234.567,
            gflops: 23.154,
            residual: 1.234_567_891e-3,
            is_small: true,
        };
        let lines = row.lines();
        assert_eq!(lines[3], "WR10R2R1       35000   192     1     2            1234.57             2.3154e+01");
        assert_eq!(lines[5], "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   1.23456789e-03 ...... PASSED");
        assert!(lines.iter().all(|line| line.len() == 80), "{lines:#?}");
        let failed = Row { nb: None, residual: f64::NAN, is_small: false, ..row }.lines();
        assert!(failed[3].contains("  auto ") && failed[5].ends_with("NaN ...... FAILED"), "{failed:#?}");
        assert_eq!([scientific(0.0, 2), scientific(1e-120, 1), scientific(-2.5e7, 1)], ["0.00e+00", "1.0e-120", "-2.5e+07"]);
    }
}
