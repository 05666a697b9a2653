//! The parameters of a kernel, and the combinations of their values that the kernel accepts.

use std::collections::{BTreeMap, HashMap};

/// A parameter of a kernel, and the values that a search may give to this parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Name of the parameter.
    pub name: String,
    /// Values of the parameter.
    pub values: Vec<usize>,
    /// Whether the parameter changes the structure of the kernel's text, such as the number of slices in local memory.
    /// [`Method::Nested`](crate::Method::Nested) holds the structural axes while it varies the other axes.
    pub structural: bool,
}

/// The points that a kernel accepts, out of all combinations of the values of the axes. A point has one value for each axis. The
/// index of a point in the space stands for the point in all other parts of this crate.
#[derive(Clone, Debug)]
pub struct Space {
    axes: Vec<Axis>,
    /// For each axis, the difference between the ranks of two combinations that have consecutive values on this axis.
    strides: Vec<usize>,
    /// For each point, its rank: the number of combinations that precede it. The ranks increase.
    ranks: Vec<usize>,
    /// The values of all points, one point after the other.
    values: Vec<usize>,
    refused: Vec<(String, usize)>,
    total: usize,
}

impl Space {
    /// Enumerates all combinations of the values of `axes`, and keeps the combinations for which `check` returns `Ok`. The space
    /// counts the refused combinations by the reasons that `check` returns, and does not store them.
    ///
    /// The constructor sorts the values of each axis and removes repeated values. The last axis varies fastest.
    #[must_use]
    pub fn new(axes: Vec<Axis>, mut check: impl FnMut(&[usize]) -> Result<(), String>) -> Self {
        let mut space = Space::without_points(axes).expect("the combinations can be enumerated, and so they can be counted");
        let mut reasons = HashMap::new();
        for rank in 0..space.total {
            let values = space.combination(rank);
            match check(&values) {
                Ok(()) => space.keep(rank, &values),
                Err(reason) => space.refuse(reason, &mut reasons),
            }
        }
        space
    }

    /// Makes a space of exactly these points. Points that have values outside `axes` are left out. Returns `None` if `usize` cannot
    /// count the combinations of the values of the axes.
    #[must_use]
    pub fn of_points<'a>(axes: Vec<Axis>, points: impl IntoIterator<Item = &'a [usize]>) -> Option<Self> {
        let mut space = Space::without_points(axes)?;
        let ranked: BTreeMap<usize, &[usize]> =
            points.into_iter().filter_map(|values| Some((space.rank(values)?, values))).collect();
        ranked.into_iter().for_each(|(rank, values)| space.keep(rank, values));
        Some(space)
    }

    /// Makes a space that has no points yet. Returns `None` if `usize` cannot count the combinations.
    fn without_points(mut axes: Vec<Axis>) -> Option<Self> {
        for axis in &mut axes {
            axis.values.sort_unstable();
            axis.values.dedup();
        }
        let total = axes.iter().try_fold(1_usize, |total, axis| total.checked_mul(axis.values.len()))?;
        let strides = strides(&axes);
        Some(Space { axes, strides, ranks: Vec::new(), values: Vec::new(), refused: Vec::new(), total })
    }

    fn keep(&mut self, rank: usize, values: &[usize]) {
        self.ranks.push(rank);
        self.values.extend_from_slice(values);
    }

    /// Counts a refused combination. `reasons` holds the position of each reason in `self.refused`.
    fn refuse(&mut self, reason: String, reasons: &mut HashMap<String, usize>) {
        let at = *reasons.entry(reason).or_insert_with_key(|reason| {
            self.refused.push((reason.clone(), 0));
            self.refused.len() - 1
        });
        self.refused[at].1 += 1;
    }

    /// Returns the combination that `rank` combinations precede.
    fn combination(&self, rank: usize) -> Vec<usize> {
        let value = |(axis, stride): (&Axis, &usize)| axis.values[rank / stride % axis.values.len()];
        self.axes.iter().zip(&self.strides).map(value).collect()
    }

    /// Returns the axes, each with its values in increasing order.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Returns the number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Whether the space has no points.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Returns the values of the point with index `point`.
    ///
    /// # Panics
    /// Panics if the space has no point with this index.
    #[must_use]
    pub fn point(&self, point: usize) -> &[usize] {
        let width = self.axes.len();
        &self.values[point * width..(point + 1) * width]
    }

    /// Returns the values of all points, in the order of their indices.
    pub fn points(&self) -> impl ExactSizeIterator<Item = &[usize]> {
        (0..self.len()).map(|point| self.point(point))
    }

    /// Returns the reasons for which combinations were refused, in the order in which the reasons first appeared, and the number
    /// of combinations that were refused for each reason.
    #[must_use]
    pub fn refused(&self) -> &[(String, usize)] {
        &self.refused
    }

    /// Returns the number of all combinations, accepted or refused.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns the index of the point with the given values, or `None` if the space has no such point.
    #[must_use]
    pub fn find(&self, values: &[usize]) -> Option<usize> {
        self.ranks.binary_search(&self.rank(values)?).ok()
    }

    /// Returns the number of combinations that precede the combination `values`. `None` if an axis lacks one of the values.
    fn rank(&self, values: &[usize]) -> Option<usize> {
        if values.len() != self.axes.len() {
            return None;
        }
        let mut rank = 0;
        for ((axis, stride), value) in self.axes.iter().zip(&self.strides).zip(values) {
            rank += stride * axis.values.binary_search(value).ok()?;
        }
        Some(rank)
    }

    /// Returns the points that differ from `point` at most in their value on the axis with index `axis`, including `point` itself,
    /// in increasing order of this value.
    ///
    /// # Panics
    /// Panics if the space has no such point or no such axis.
    #[must_use]
    pub fn line(&self, point: usize, axis: usize) -> Vec<usize> {
        let (stride, len) = (self.strides[axis], self.axes[axis].values.len());
        let rank = self.ranks[point];
        let begin = rank - rank / stride % len * stride;
        (0..len).filter_map(|at| self.ranks.binary_search(&(begin + at * stride)).ok()).collect()
    }

    /// Returns the neighbours of `point`: for each axis, the point of the space with the next lower value on this axis, and the
    /// point with the next higher value. All other values of a neighbour equal those of `point`.
    ///
    /// # Panics
    /// Panics if the space has no such point.
    #[must_use]
    pub fn neighbours(&self, point: usize) -> Vec<usize> {
        let mut neighbours = Vec::new();
        for axis in 0..self.axes.len() {
            let line = self.line(point, axis);
            neighbours.extend(line.iter().rev().find(|&&other| other < point));
            neighbours.extend(line.iter().find(|&&other| other > point));
        }
        neighbours
    }

    /// Returns the distance of two points: the sum, over all axes, of the number of values between the values of the points.
    pub(crate) fn distance(&self, a: usize, b: usize) -> usize {
        let at = |point: usize, axis: usize| self.ranks[point] / self.strides[axis] % self.axes[axis].values.len();
        (0..self.axes.len()).map(|axis| at(a, axis).abs_diff(at(b, axis))).sum()
    }

    /// Returns the values of `point` on the structural axes, or on the other axes if `structural` is false.
    pub(crate) fn part(&self, point: usize, structural: bool) -> Vec<usize> {
        let pairs = self.axes.iter().zip(self.point(point));
        pairs.filter(|(axis, _)| axis.structural == structural).map(|(_, value)| *value).collect()
    }
}

fn strides(axes: &[Axis]) -> Vec<usize> {
    let mut strides = vec![1; axes.len()];
    for at in (1..axes.len()).rev() {
        strides[at - 1] = strides[at] * axes[at].values.len();
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::{Axis, Space};
    use proptest::prelude::*;

    fn axis(name: &str, values: &[usize]) -> Axis {
        Axis { name: name.to_owned(), values: values.to_vec(), structural: false }
    }

    fn space(check: impl FnMut(&[usize]) -> Result<(), String>) -> Space {
        Space::new(vec![axis("a", &[3, 1, 2, 4, 2]), axis("b", &[10, 20, 30])], check)
    }

    #[test]
    fn refusals_are_counted_by_reason() {
        let check = |values: &[usize]| match values {
            [1, _] => Err("a is 1".to_owned()),
            [_, 20] => Err("b is 20".to_owned()),
            [4, _] => Err("a is 4".to_owned()),
            _ => Ok(()),
        };
        let space = space(check);
        let reasons = [("a is 1", 3), ("b is 20", 3), ("a is 4", 2)].map(|(reason, count)| (reason.to_owned(), count));
        assert_eq!(space.refused(), reasons);
        assert_eq!((space.total(), space.len()), (12, 4));
        assert_eq!(space.points().collect::<Vec<_>>(), [[2, 10], [2, 30], [3, 10], [3, 30]]);
    }

    #[test]
    fn only_points_of_the_space_are_found() {
        let space = space(|values| if values[0] == 2 { Err(String::new()) } else { Ok(()) });
        assert!(space.points().enumerate().all(|(at, values)| space.find(values) == Some(at)));
        for absent in [&[2, 10][..], &[5, 10], &[1], &[1, 10, 1]] {
            assert_eq!(space.find(absent), None, "{absent:?}");
        }
    }

    #[test]
    fn a_space_of_points_has_these_points() {
        let axes = || vec![axis("a", &[3, 1]), axis("b", &[10, 20])];
        let points: [&[usize]; 4] = [&[3, 10], &[1, 20], &[3, 10], &[2, 10]];
        let space = Space::of_points(axes(), points).unwrap();
        assert_eq!(space.points().collect::<Vec<_>>(), [[1, 20], [3, 10]]);
        assert_eq!((space.find(&[3, 10]), space.find(&[1, 10]), space.total()), (Some(1), None, 4));
        let two = axis("two", &[0, 1]);
        assert!(Space::of_points(vec![two; 64], []).is_none());
    }

    #[test]
    fn neighbours_skip_refused_values() {
        let space = space(|values| if values[0] == 2 { Err(String::new()) } else { Ok(()) });
        let near = |values: &[usize]| -> Vec<_> {
            space.neighbours(space.find(values).unwrap()).into_iter().map(|point| space.point(point).to_vec()).collect()
        };
        assert_eq!(near(&[3, 20]), [[1, 20], [4, 20], [3, 10], [3, 30]]);
        assert_eq!(near(&[1, 10]), [[3, 10], [1, 20]]);
    }

    #[test]
    fn a_space_may_have_no_axes_or_no_values() {
        let one = Space::new(Vec::new(), |_| Ok(()));
        assert_eq!((one.len(), one.find(&[]), one.neighbours(0)), (1, Some(0), Vec::new()));
        let none = Space::new(vec![axis("a", &[1]), axis("b", &[])], |_| Ok(()));
        assert!(none.is_empty() && none.total() == 0);
    }

    proptest! {
        #[test]
        fn neighbours_are_mutual(kept in proptest::collection::vec(any::<bool>(), 12)) {
            let mut kept = kept.into_iter();
            let space = space(|_| if kept.next() == Some(true) { Ok(()) } else { Err(String::new()) });
            for point in 0..space.len() {
                for other in space.neighbours(point) {
                    prop_assert!(space.neighbours(other).contains(&point));
                    let differences = space.point(point).iter().zip(space.point(other)).filter(|(a, b)| a != b).count();
                    prop_assert_eq!(differences, 1);
                }
            }
        }
    }
}
