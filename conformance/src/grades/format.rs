//! Measures the precision in which a device computes, which may be lower than the precision of the element type.

use lapidary_core::{Result, Scalar};

use super::grade;
use super::probe::sums;
use crate::Subject;
use crate::oracle::Dense;
use crate::report::Grade;

/// Grades the number of binary digits of operands and of sums, and names the format that has as many digits (bound 4).
pub fn precision<S: Subject, T: Scalar>(subject: &S) -> Result<Grade> {
    let (operand, sum) = (digits_of_operands::<S, T>(subject)?, digits_of_sums::<S, T>(subject)?);
    let wide = sums::<S, T>(subject, &Dense::from_fn(1, 1, |_, _| 1.0e30))?[0].is_finite();
    let claimed = crate::bounds::real(1) / T::UNIT_ROUNDOFF;
    let claimed_digits = usize::try_from(claimed.log2() as i64).unwrap_or(0);
    let kept = operand >= claimed_digits && sum >= claimed_digits;
    let verdict = if kept { T::DTYPE.to_string() } else { format!("hidden {}", format_of(operand.min(sum), wide)) };
    let about = "Bound 4: 1 + 2^-p and sums with 2^-p for falling p show how many binary digits are carried. A lower precision inside is named.";
    Ok(grade(T::DTYPE, "precision", format!("operands carry {operand} bits, sums {sum}"), verdict, about))
}

/// Name of the format with this number of binary digits. `wide` states whether the format has the exponent range of `f32`.
fn format_of(digits: usize, wide: bool) -> &'static str {
    match digits {
        53.. => "f64",
        24..53 => "f32",
        11..24 if wide => "TF32",
        11..24 => "f16",
        _ => "bf16",
    }
}

/// The number of binary digits of operands: the largest `p + 1` for which `(1 + 2^-p)·1` is more than one.
fn digits_of_operands<S: Subject, T: Scalar>(subject: &S) -> Result<usize> {
    digits::<S, T>(subject, |p| vec![1.0 + (-f64::from(p)).exp2(), 0.0])
}

/// The number of binary digits of sums: the largest `p + 1` for which `1·1 + 2^-p·1` is more than one.
fn digits_of_sums<S: Subject, T: Scalar>(subject: &S) -> Result<usize> {
    digits::<S, T>(subject, |p| vec![1.0, (-f64::from(p)).exp2()])
}

fn digits<S: Subject, T: Scalar>(subject: &S, row: impl Fn(i32) -> Vec<f64>) -> Result<usize> {
    let rows: Vec<Vec<f64>> = (1..=60).map(row).collect();
    let x = Dense::from_fn(rows.len(), 2, |i, j| T::from_f64(rows[i][j]).to_f64());
    let results = sums::<S, T>(subject, &x)?;
    Ok(1 + results.iter().take_while(|&&sum| sum > 1.0).count())
}

#[cfg(test)]
mod tests {
    use super::format_of;

    #[test]
    fn digits_name_formats() {
        let names = [(53, true), (24, true), (11, true), (11, false), (8, true)].map(|(digits, wide)| format_of(digits, wide));
        assert_eq!(names, ["f64", "f32", "TF32", "f16", "bf16"]);
    }
}
