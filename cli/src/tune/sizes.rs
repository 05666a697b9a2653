//! The sizes of the calls that are tuned.

use lapidary::kernels::space::Task;

use super::message::size_names;
use crate::failure::{Failure, Result};
use crate::options::parse_positive;

/// Options for the sizes of the calls.
#[derive(clap::Args, Debug)]
pub struct SizeOptions {
    /// Number of rows of C (gemm), B (trsm, trtri) or A (getrf, laswp, scale), or a list of such numbers [default: n]
    #[arg(long, value_delimiter = ',', value_name = "M", value_parser = parse_positive, requires = "n")]
    m: Vec<usize>,
    /// Number of columns, or order of the matrices of a batch, or a list of such numbers [default: for gemm three orders that suit the speed of the device, and a product with 8
    /// columns; for other tasks the largest of these orders]
    #[arg(long, value_delimiter = ',', value_name = "N", value_parser = parse_positive)]
    n: Vec<usize>,
    /// Number of terms of gemm, or a list of such numbers [default: n]
    #[arg(long, value_delimiter = ',', value_name = "K", value_parser = parse_positive, requires = "n")]
    k: Vec<usize>,
    /// Number of matrices of a batch, or a list of such numbers [default: 1024]
    #[arg(long, value_delimiter = ',', value_name = "COUNT", value_parser = parse_positive, requires = "n")]
    count: Vec<usize>,
}

/// Number of columns of the narrow product that is tuned by default.
const NARROW: usize = 8;
/// Number of matrices of a batch if the command line names none.
const COUNT: usize = 1024;
/// Order of the matrices of a batch that is tuned by default.
const BATCHED_ORDER: usize = 32;

impl SizeOptions {
    /// Returns the sizes m, n and k of each call that the command line names: call i has element i of each list. A list of one size
    /// applies to all calls. The result is empty if the command line names no sizes.
    ///
    /// # Errors
    /// Two lists have different lengths, or the routine does not have one of the sizes.
    pub fn calls(&self, task: Task) -> Result<Vec<[usize; 3]>> {
        let lists = [("m", &self.m), ("n", &self.n), ("k", &self.k), ("count", &self.count)];
        let known: Vec<&str> = size_names(task).into_iter().filter(|name| !name.is_empty()).collect();
        if let Some((name, _)) = lists.iter().find(|(name, list)| !list.is_empty() && !known.contains(name)) {
            let known = known.join(", --");
            return Err(Failure::usage(format!("--{name} means nothing to {}, which takes --{known}", task.name())));
        }
        let count = lists.iter().map(|(_, list)| list.len()).max().unwrap_or(0);
        if let Some((name, list)) = lists.iter().find(|(_, list)| list.len() > 1 && list.len() < count) {
            let message = format!("--{name} lists {} sizes, and another option {count}: give as many, or one", list.len());
            return Err(Failure::usage(message));
        }
        if count > 1 && task != Task::Gemm {
            let message = format!("the entries for {} apply to all sizes: name one size, the one that matters most", task.name());
            return Err(Failure::usage(message));
        }
        let at = |list: &[usize], i: usize| list.get(if list.len() == 1 { 0 } else { i }).copied();
        let call = |i: usize| {
            let n = at(&self.n, i).unwrap_or(1);
            if are_fixed(task) {
                return [n, n, at(&self.count, i).unwrap_or(COUNT)];
            }
            [at(&self.m, i).unwrap_or(n), n, at(&self.k, i).unwrap_or(n)]
        };
        Ok((0..count).map(call).collect())
    }
}

/// Returns whether the default sizes of a task do not depend on the speed of the device.
pub fn are_fixed(task: Task) -> bool {
    size_names(task).contains(&"count")
}

/// Returns the sizes of the calls that are tuned if the command line names none: for products squares of these orders, the largest first,
/// and a product with few columns, for other tasks the largest square, because their entries apply to all sizes. The order of batches is
/// fixed.
pub fn defaults(task: Task, orders: &[usize]) -> Vec<[usize; 3]> {
    if are_fixed(task) {
        return vec![[BATCHED_ORDER, BATCHED_ORDER, COUNT]];
    }
    let count = if task == Task::Gemm { orders.len() } else { 1 };
    let squares = orders.iter().take(count).map(|&n| [n; 3]);
    let narrow = orders.first().filter(|_| task == Task::Gemm).map(|&n| [n, NARROW, n]);
    squares.chain(narrow).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(task: Task, [m, n, k]: [&[usize]; 3]) -> Result<Vec<[usize; 3]>> {
        SizeOptions { m: m.to_vec(), n: n.to_vec(), k: k.to_vec(), count: Vec::new() }.calls(task)
    }

    #[test]
    fn lists_are_read_side_by_side() {
        assert_eq!(calls(Task::Gemm, [&[], &[512, 64], &[]]).unwrap(), [[512; 3], [64; 3]]);
        assert_eq!(calls(Task::Gemm, [&[2000, 64], &[1, 64], &[4096]]).unwrap(), [[2000, 1, 4096], [64, 64, 4096]]);
        assert_eq!(calls(Task::Trsm, [&[7], &[5], &[]]).unwrap(), [[7, 5, 5]]);
        assert_eq!(calls(Task::GemmBatched, [&[], &[5], &[]]).unwrap(), [[5, 5, COUNT]]);
        assert_eq!(calls(Task::Gemm, [&[]; 3]).unwrap(), [] as [[usize; 3]; 0]);
        let refused = |task, lists| calls(task, lists).unwrap_err().to_string();
        assert!(refused(Task::Gemm, [&[1, 2], &[1, 2, 3], &[]]).contains("--m lists 2 sizes, and another option 3"));
        assert!(refused(Task::Getrf, [&[], &[5, 9], &[]]).contains("the entries for getrf apply to all sizes"));
        assert!(refused(Task::Getrf, [&[], &[5], &[5]]).contains("--k means nothing to getrf, which takes --m, --n"));
    }

    #[test]
    fn a_narrow_product_follows_the_squares() {
        assert_eq!(defaults(Task::Gemm, &[512, 128]), [[512; 3], [128; 3], [512, 8, 512]]);
        assert_eq!(defaults(Task::Getrf, &[512, 128]), [[512; 3]]);
        assert_eq!(defaults(Task::GetrfBatched, &[512]), [[32, 32, COUNT]]);
    }
}
