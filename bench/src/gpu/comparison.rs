//! Lapidary's speed beside that of another library, and the table of these speeds.

use lapidary::{DType, Routine};
use serde_json::{Value, json};

use super::Mode;
use super::problem::Case;
use crate::measure::Times;

/// Lapidary's speed in a case, and the speed of one other library in the same run.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Routine, element type and sizes, such as `gemm f64 n=4096 NN`.
    pub case: String,
    pub mode: Mode,
    /// Speed of Lapidary in GFLOP/s.
    pub ours: f64,
    /// Speed of Lapidary as a fraction of the stated peak, for products in `f64`.
    pub of_peak: Option<f64>,
    /// Name of the other library and its speed in GFLOP/s. `None` if there is no other library.
    pub peer: Option<(String, f64)>,
}

impl Comparison {
    /// Compares the times of Lapidary, which come first, with those of each other library. `peak` is the stated peak of products in
    /// `f64`, in TFLOP/s.
    pub fn of(case: &Case, mode: Mode, times: &[Times], peak: Option<f64>) -> Vec<Self> {
        let Case { dtype, problem } = case;
        let speed = |times: &Times| problem.flops() / times.median() / 1e9;
        let [ours, peers @ ..] = times else { return Vec::new() };
        let is_product = problem.routine() == Routine::Gemm && *dtype == DType::F64;
        let row = |peer: Option<&Times>| Comparison {
            case: format!("{} {dtype} {}", problem.routine().name(), problem.size()),
            mode,
            ours: speed(ours),
            of_peak: peak.filter(|_| is_product).map(|peak| speed(ours) / (1e3 * peak)),
            peer: peer.map(|peer| (peer.name.clone(), speed(peer))),
        };
        if peers.is_empty() { vec![row(None)] } else { peers.iter().map(|peer| row(Some(peer))).collect() }
    }

    /// Speed of Lapidary divided by the speed of the other library.
    pub fn ratio(&self) -> Option<f64> {
        self.peer.as_ref().map(|(_, speed)| self.ours / speed)
    }

    pub fn to_json(&self) -> Value {
        json!({
            "case": self.case, "mode": self.mode.name(), "ours_gflops": self.ours, "of_peak": self.of_peak,
            "peer": self.peer.as_ref().map(|(name, _)| name), "peer_gflops": self.peer.as_ref().map(|(_, speed)| speed),
            "ratio": self.ratio(),
        })
    }

    fn line(&self) -> String {
        let share = self.of_peak.map_or_else(String::new, |part| format!("{:.1} %", 100.0 * part));
        let (name, speed) = self.peer.as_ref().map_or(("", String::new()), |(name, speed)| (name, format!("{speed:.1}")));
        let ratio = self.ratio().map_or_else(String::new, |ratio| format!("{ratio:.3}"));
        let line =
            format!("{:<32}{:<11}{:>10.1}{share:>9}  {name:<10}{speed:>10}{ratio:>8}", self.case, self.mode.name(), self.ours);
        line.trim_end().to_owned()
    }
}

/// Prints the table. Speeds are medians in GFLOP/s. A ratio above 1 means that Lapidary is faster.
pub fn print(all: &[Comparison]) {
    println!("\n{:<32}{:<11}{:>10}{:>9}  {:<10}{:>10}{:>8}", "GFLOP/s", "", "ours", "of peak", "peer", "peer", "ratio");
    all.iter().for_each(|comparison| println!("{}", comparison.line()));
}

#[cfg(test)]
mod tests {
    use super::super::problem::{products, solves};
    use super::*;

    fn times(name: &str, seconds: f64) -> Times {
        Times { name: name.to_owned(), seconds: vec![seconds] }
    }

    #[test]
    fn each_peer_has_a_row_with_its_ratio() {
        let case = &products(DType::F64, &[1000])[0];
        let rows =
            Comparison::of(case, Mode::Burst, &[times("ours", 0.001), times("cublas", 0.0005), times("clblast", 0.002)], Some(4.0));
        let ratios: Vec<_> = rows.iter().map(|row| row.ratio().unwrap()).collect();
        assert_eq!(ratios, [0.5, 2.0]);
        assert_eq!(rows[0].of_peak, Some(0.5));
        let line = rows[0].line();
        assert_eq!(
            line.split_whitespace().collect::<Vec<_>>().join(" "),
            "gemm f64 n=1000 NN burst 2000.0 50.0 % cublas 4000.0 0.500"
        );
    }

    #[test]
    fn only_products_in_f64_have_a_share_of_the_peak() {
        let share = |case: &Case| Comparison::of(case, Mode::Sustained, &[times("ours", 0.1)], Some(4.0))[0].of_peak;
        assert!(share(&products(DType::F64, &[10])[0]).is_some());
        assert_eq!([share(&products(DType::F32, &[10])[0]), share(&solves(DType::F64, &[(10, 10)])[0])], [None; 2]);
        assert_eq!(Comparison::of(&products(DType::F64, &[10])[0], Mode::Burst, &[times("ours", 0.1)], None)[0].ratio(), None);
    }
}
