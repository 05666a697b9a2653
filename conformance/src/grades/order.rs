//! Determines the order in which a device adds the terms of a sum, as a tree, from results alone.
//!
//! The method is that of Xie et al., *FPRev: Revealing the order of floating-point summation* (2024). Two of the n terms are M and
//! −M. M is so large that M + 1 is rounded to M. All other terms are ones. Only a one that is added after M and −M have cancelled
//! remains in the sum. Therefore, n minus the sum is the number of terms below the node of the tree where M and −M meet. The
//! numbers of terms below the nodes of all pairs determine the tree.

use lapidary_core::{Result, Scalar};

use super::grade;
use super::probe::sums;
use crate::Subject;
use crate::bounds::real;
use crate::oracle::Dense;
use crate::report::Grade;

/// Number of terms of the sum.
const TERMS: usize = 64;

/// For each pair of terms `i < j`, the number of terms below the node of the tree where the two terms meet.
type Tree = Vec<((usize, usize), usize)>;

/// Grades the summation tree by its kind and a hash. The hash changes if a kernel adds the terms in another order.
pub fn fingerprint<S: Subject, T: Scalar>(subject: &S) -> Result<Grade> {
    let tree = tree::<S, T>(subject)?;
    let about = "How the terms of an inner product of 64 are added (FPRev): a changed kernel shows as another number.";
    Ok(grade(T::DTYPE, "order of summation", format!("{:08x}", hash(&tree)), kind(&tree), about))
}

/// Determines the tree by one product. Each row of the left matrix tests one pair of terms.
fn tree<S: Subject, T: Scalar>(subject: &S) -> Result<Tree> {
    let pairs: Vec<(usize, usize)> = (0..TERMS).flat_map(|j| (0..j).map(move |i| (i, j))).collect();
    // a number far larger than the sum of all ones, and far below overflow
    let large = if T::UNIT_ROUNDOFF < 1e-10 { 100.0_f64.exp2() } else { 60.0_f64.exp2() };
    let x = Dense::from_fn(pairs.len(), TERMS, |row, term| match pairs[row] {
        (i, _) if term == i => large,
        (_, j) if term == j => -large,
        _ => 1.0,
    });
    let below = |survivors: f64| (0..=TERMS).find(|&count| (real(TERMS - count) - survivors).abs() < 0.5).unwrap_or(0);
    Ok(pairs.into_iter().zip(sums::<S, T>(subject, &x)?.into_iter().map(below)).collect())
}

/// Describes the kind of the tree.
fn kind(tree: &Tree) -> String {
    let all = |rule: &dyn Fn(usize, usize) -> Option<usize>| {
        tree.iter().all(|&((i, j), below)| rule(i, j).is_none_or(|expected| expected == below))
    };
    if all(&|_, j| Some(j + 1)) {
        return "one after the other".to_owned();
    }
    if all(&|i, _| Some(TERMS - i)) {
        return "one after the other, from the end".to_owned();
    }
    if all(&|i, j| Some(1 << (usize::BITS - (i ^ j).leading_zeros()))) {
        return "pairwise".to_owned();
    }
    let powers = || (1..6).rev().map(|power| 1_usize << power);
    if let Some(ways) = powers().find(|&ways| all(&|i, j| (i % ways == j % ways).then(|| j / ways + 1))) {
        return format!("in {ways} interleaved sums");
    }
    if let Some(block) = powers().find(|&block| all(&|i, j| (i / block == j / block).then(|| j % block + 1))) {
        return format!("in blocks of {block}");
    }
    "another tree".to_owned()
}

/// FNV-1a hash of the numbers of terms in a tree.
fn hash(tree: &Tree) -> u32 {
    tree.iter().fold(0x811c_9dc5, |hash, &(_, below)| (hash ^ u32::try_from(below).unwrap_or(0)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::{TERMS, Tree, hash, kind};

    /// The tree of an order of summation. `meets(i, j)` is the number of terms below the node where terms `i` and `j` meet.
    fn tree(meets: impl Fn(usize, usize) -> usize) -> Tree {
        (0..TERMS).flat_map(|j| (0..j).map(move |i| (i, j))).map(|(i, j)| ((i, j), meets(i, j))).collect()
    }

    #[test]
    fn trees_are_told_apart() {
        let trees = [
            tree(|_, j| j + 1),
            tree(|i, _| TERMS - i),
            tree(|i, j| (i ^ j).next_power_of_two().max(2) << usize::from((i ^ j).is_power_of_two() && i ^ j > 1)),
            tree(|i, j| if i % 4 == j % 4 { j / 4 + 1 } else { TERMS }),
            tree(|i, j| if i / 16 == j / 16 { j % 16 + 1 } else { 16 * (j / 16 + 1) }),
            tree(|i, j| TERMS - i.min(j) % 3),
        ];
        let kinds = trees.each_ref().map(kind);
        let expected = [
            "one after the other",
            "one after the other, from the end",
            "pairwise",
            "in 4 interleaved sums",
            "in blocks of 16",
            "another tree",
        ];
        assert_eq!(kinds, expected);
        let mut hashes = trees.each_ref().map(hash).to_vec();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), trees.len());
    }
}
