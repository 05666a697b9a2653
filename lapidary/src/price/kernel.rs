//! Measured times of one kernel, and the interpolation between them.

use lapidary_core::{Extent, Instruction, TimedKernel};

/// Measured points in ascending order. The first number of a point is an amount: floating-point operations, moved elements or bytes.
/// The second number is the time in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve(pub Vec<(f64, f64)>);

/// Measured times of one kernel: a curve for each width ([`TimedKernel::width`]), in ascending order of the widths. If a kernel was
/// measured on square matrices only, it has one curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kernel(Vec<(usize, Curve)>);

/// The largest ratio of the width of a kernel to the largest measured width for which times are extrapolated over widths. The time of
/// a wider kernel is that of a kernel of this width with the same amount of work.
const FARTHEST_WIDTH: f64 = 4.0;

impl Curve {
    /// Estimates the seconds for an amount. The estimate between two measured points is interpolated on logarithmic axes. Beyond the
    /// last measured point, the estimate is extrapolated with a slope of at most 1. Below the first measured point, the estimate is
    /// the time of the first measured point.
    pub fn seconds(&self, amount: f64) -> f64 {
        if amount <= self.0[0].0 { self.0[0].1 } else { self.extended(amount) }
    }

    /// Estimates the seconds of a transfer. Up to the last measured point, the estimate is that of [`Self::seconds`]. Beyond it, each further byte
    /// takes as long as a byte between the last two points, but at most the mean time of a byte of the last point. A link has a largest rate, which
    /// a slope on logarithmic axes would exceed.
    pub fn transfer_seconds(&self, bytes: f64) -> f64 {
        match self.0[..] {
            [.., (from, start), (to, end)] if bytes > to => {
                let (of_byte, mean) = ((end - start) / (to - from), end / to);
                end + (bytes - to) * if of_byte > 0.0 { of_byte.min(mean) } else { mean }
            }
            _ => self.seconds(bytes),
        }
    }

    /// Estimates the seconds as [`Self::seconds`] does, but extrapolates also below the first measured point.
    fn extended(&self, amount: f64) -> f64 {
        let points = &self.0;
        let above = points.partition_point(|(measured, _)| *measured < amount);
        match points[..] {
            [(measured, seconds)] => seconds * amount / measured,
            _ => {
                let above = above.clamp(1, points.len() - 1);
                interpolate([points[above - 1], points[above]], amount, [0.0, 1.0])
            }
        }
    }
}

/// Interpolates or extrapolates between two points on logarithmic axes, with a slope within the given limits.
fn interpolate([(from, start), (to, end)]: [(f64, f64); 2], at: f64, [least, most]: [f64; 2]) -> f64 {
    let power = ((end / start).ln() / (to / from).ln()).clamp(least, most);
    end * (at / to).powf(power)
}

impl Kernel {
    /// A kernel that was measured on square matrices only.
    pub fn of_squares(curve: Curve) -> Self {
        Kernel(vec![(0, curve)])
    }

    /// A kernel with the measured times of several shapes, each with its sizes m, n and k and its seconds. `None` if there are no
    /// shapes.
    pub fn of_shapes(kernel: TimedKernel, shapes: &[([usize; 3], f64)]) -> Option<Self> {
        let mut shapes: Vec<_> =
            shapes.iter().map(|&(sizes, seconds)| (kernel.width(sizes), kernel.work(sizes), seconds)).collect();
        shapes.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let curves = shapes.chunk_by(|a, b| a.0 == b.0).map(|points| {
            let mut curve: Vec<_> = points.iter().map(|&(_, work, seconds)| (work, seconds)).collect();
            // of two shapes with the same amount of work, the shorter time counts
            curve.dedup_by(|next, kept| {
                let is_equal = next.0 <= kept.0;
                kept.1 = if is_equal { kept.1.min(next.1) } else { kept.1 };
                is_equal
            });
            (points[0].0, Curve(curve))
        });
        (!shapes.is_empty()).then(|| Kernel(curves.collect()))
    }

    /// The measured points on square matrices, if the kernel was measured on square matrices only.
    pub fn squares(&self) -> &Curve {
        &self.0[0].1
    }

    /// Estimates the seconds of a kernel of a width with an amount of work. Between two measured widths, and beyond the largest
    /// measured width, the estimate is interpolated and extrapolated over widths on logarithmic axes: with the same amount of work, a
    /// wider kernel takes as long or less long. Below the smallest measured width, the estimate is that of the smallest measured
    /// width.
    pub fn seconds(&self, width: usize, work: f64) -> f64 {
        let curves = &self.0;
        let above = curves.partition_point(|(measured, _)| *measured < width);
        if above == 0 || curves.len() == 1 {
            return curves[0].1.seconds(work);
        }
        let above = above.min(curves.len() - 1);
        let point = |index: usize| {
            let (width, curve) = &curves[index];
            let seconds = if index == 0 { curve.seconds(work) } else { curve.extended(work) };
            (*width as f64, seconds)
        };
        let [narrow, wide] = [above - 1, above].map(point);
        interpolate([narrow, wide], (width as f64).min(FARTHEST_WIDTH * wide.0), [-1.0, 0.0])
    }
}

/// The kernel whose measured times give the estimate for an instruction, and the sizes m, n and k of this kernel. `None` if the
/// estimate comes from the memory bandwidth alone. The estimate for a batch is that for one kernel with the same number of operations.
pub(crate) fn timed<O: Extent + Copy>(instruction: &Instruction<O>) -> Option<(TimedKernel, [usize; 3])> {
    match instruction {
        Instruction::Gemm { op_a, a, c, .. } | Instruction::GemmBatched { op_a, a, c, .. } => {
            Some((TimedKernel::Gemm, [c.extent().0, c.extent().1, op_a.shape(a.extent()).1]))
        }
        Instruction::Trsm { a, b, .. } | Instruction::GetrsBatched { lu: a, b, .. } => {
            let (order, (rows, cols)) = (a.extent().0, b.extent());
            // a solve from the right has a right-hand side for each row of B
            Some((TimedKernel::Trsm, [order, if rows == order { cols } else { rows }, order]))
        }
        Instruction::Getrf { a, .. } | Instruction::GetrfBatched { a, .. } => {
            let (rows, cols) = a.extent();
            Some((TimedKernel::Getrf, [rows, cols, rows.min(cols)]))
        }
        Instruction::Laswp { swaps, a, ipiv } => {
            let ((rows, cols), pivots) = (a.extent(), ipiv.extent().0);
            let (rows, cols) = if swaps.side == lapidary_core::Side::Left { (rows, cols) } else { (cols, rows) };
            Some((TimedKernel::Laswp, [rows, cols, pivots]))
        }
        Instruction::Copy { .. } | Instruction::Narrow { .. } | Instruction::Scale { .. } | Instruction::ZeroPivots { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(seconds: f64, expected: f64) {
        assert!((seconds / expected - 1.0).abs() < 1e-12, "{seconds}, not {expected}");
    }

    #[test]
    fn times_are_interpolated_between_shapes_and_extrapolated_beyond_them() {
        // products of width 10 compute 1e6 operations per second, and products of width 40 twice as many
        let shapes = [([10; 3], 2e-3), ([100, 100, 10], 0.2), ([40; 3], 64e-3), ([400, 400, 40], 6.4)];
        let kernel = Kernel::of_shapes(TimedKernel::Gemm, &shapes).unwrap();
        for (width, work, expected) in [
            (10, 2e4, 0.02),
            (40, 1.28e6, 0.64),
            // the geometric mean of the two widths has the geometric mean of their times
            (20, 2e4, 0.02 / f64::sqrt(2.0)),
            // larger and wider than every measured shape, and the largest width for which times are extrapolated
            (160, 1e9, 250.0),
            (1600, 1e9, 250.0),
            // narrower than every measured shape, and smaller
            (1, 2e4, 0.02),
            (1, 2.0, 2e-3),
        ] {
            near(kernel.seconds(width, work), expected);
        }
        assert_eq!(Kernel::of_shapes(TimedKernel::Gemm, &[]), None);
    }

    #[test]
    fn one_curve_of_squares_gives_the_times_of_all_widths() {
        let kernel = Kernel::of_squares(Curve(vec![(1e3, 1e-3), (1e5, 1e-2)]));
        for (work, expected) in [(1.0, 1e-3), (1e4, 10f64.powf(-2.5)), (1e7, 0.1)] {
            near(kernel.seconds(7, work), expected);
        }
        near(Kernel::of_squares(Curve(vec![(1e3, 1e-3)])).seconds(7, 1e6), 1.0);
    }

    #[test]
    fn transfers_beyond_the_measured_ones_have_the_rate_of_the_last_two() {
        let link = Curve(vec![(10.0, 3.0), (20.0, 4.0), (40.0, 8.0)]);
        for (bytes, expected) in [(5.0, 3.0), (20.0, 4.0), (140.0, 28.0)] {
            near(link.transfer_seconds(bytes), expected);
        }
        // a latency that the last two transfers share
        near(Curve(vec![(10.0, 6.0), (20.0, 7.0)]).transfer_seconds(120.0), 17.0);
        // the mean rate, since the last transfer was slower than proportional, took no longer than the one before, or is the only one
        near(Curve(vec![(10.0, 1.0), (20.0, 4.0)]).transfer_seconds(40.0), 8.0);
        near(Curve(vec![(10.0, 4.0), (20.0, 4.0)]).transfer_seconds(40.0), 8.0);
        near(Curve(vec![(10.0, 1.0)]).transfer_seconds(40.0), 4.0);
    }
}
