//! The calls that the groups `host`, `opencl` and `wgpu` time, with random operands in host memory.

use lapidary::{DType, Routine, Scalar, flops};

use crate::cases::{copy, filled, name, poison, random, triangle};

/// A routine and the sizes of its matrices, which are all column-major and packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// C ← op(A)·op(B).
    Product(Product),
    /// X ← L⁻¹·B, where L is the lower triangle of a matrix of order n.
    Solve { n: usize, nrhs: usize },
    /// A = P·L·U, where A is of order n.
    Factors { n: usize },
    /// A·x = b with one right-hand side, where A is of order n. The result is the n×(n+1) matrix of the factors of A and of x.
    System { n: usize },
}

/// Sizes of a product of an m×k matrix op(A) and a k×n matrix op(B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    pub m: usize,
    pub n: usize,
    pub k: usize,
    /// Whether A and B are stored transposed.
    pub trans: [bool; 2],
}

impl Product {
    /// A product of matrices of order n that are not transposed.
    pub fn square(n: usize) -> Self {
        Product { m: n, n, k: n, trans: [false; 2] }
    }

    /// The rows and columns of A as A is stored.
    pub fn shape_a(&self) -> (usize, usize) {
        if self.trans[0] { (self.k, self.m) } else { (self.m, self.k) }
    }

    /// The rows and columns of B as B is stored.
    pub fn shape_b(&self) -> (usize, usize) {
        if self.trans[1] { (self.n, self.k) } else { (self.k, self.n) }
    }
}

impl Problem {
    pub fn routine(&self) -> Routine {
        match self {
            Problem::Product(_) => Routine::Gemm,
            Problem::Solve { .. } => Routine::Trsm,
            Problem::Factors { .. } => Routine::Getrf,
            Problem::System { .. } => Routine::Gesv,
        }
    }

    /// The sizes as a text for the table, such as `n=4096 TN`.
    pub fn size(&self) -> String {
        match *self {
            Problem::Product(Product { m, n, k, trans }) => {
                let ops: String = trans.map(|trans| if trans { 'T' } else { 'N' }).iter().collect();
                if m == n && n == k { format!("n={n} {ops}") } else { format!("{m}×{n}×{k} {ops}") }
            }
            Problem::Solve { n, nrhs } => format!("n={n} nrhs={nrhs}"),
            Problem::Factors { n } | Problem::System { n } => format!("n={n}"),
        }
    }

    /// Number of floating-point operations of a call.
    pub fn flops(&self) -> f64 {
        match *self {
            Problem::Product(Product { m, n, k, .. }) => flops::gemm(m, n, k),
            Problem::Solve { n, nrhs } => flops::trsm(n, nrhs),
            Problem::Factors { n } => flops::getrf(n, n),
            Problem::System { n } => flops::getrf(n, n) + flops::getrs(n, 1),
        }
    }

    /// Largest number of terms that a call sums for one element of its result.
    pub fn terms(&self) -> usize {
        match *self {
            Problem::Product(Product { k, .. }) => k,
            Problem::Solve { n, .. } | Problem::Factors { n } | Problem::System { n } => n,
        }
    }

    /// The rows and columns of A, of B and of the result. The matrix B of a factorisation is empty.
    pub fn shapes(&self) -> [(usize, usize); 3] {
        match *self {
            Problem::Product(product) => [product.shape_a(), product.shape_b(), (product.m, product.n)],
            Problem::Solve { n, nrhs } => [(n, n), (n, nrhs), (n, nrhs)],
            Problem::Factors { n } => [(n, n), (0, 0), (n, n)],
            Problem::System { n } => [(n, n), (n, 1), (n, n + 1)],
        }
    }

    /// The number of operands that a call reads and does not overwrite: A and B of a product, and A of a solve.
    pub fn inputs(&self) -> usize {
        match self {
            Problem::Product(_) => 2,
            Problem::Solve { .. } => 1,
            Problem::Factors { .. } | Problem::System { .. } => 0,
        }
    }
}

/// A problem and the element type of its matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    pub dtype: DType,
    pub problem: Problem,
}

/// Products of square matrices of the given orders.
pub fn products(dtype: DType, orders: &[usize]) -> Vec<Case> {
    cases(dtype, orders.iter().map(|&n| Problem::Product(Product::square(n))))
}

/// The products of order n in which A, B or both are transposed.
pub fn transposed(dtype: DType, n: usize) -> Vec<Case> {
    let each = [[true, false], [false, true], [true, true]];
    cases(dtype, each.map(|trans| Problem::Product(Product { trans, ..Product::square(n) })).into_iter())
}

/// A product with few terms, which updates an n×n matrix.
pub fn update(dtype: DType, n: usize, k: usize) -> Vec<Case> {
    cases(dtype, std::iter::once(Problem::Product(Product { k, ..Product::square(n) })))
}

/// Triangular solves with the given orders and numbers of right-hand sides.
pub fn solves(dtype: DType, sizes: &[(usize, usize)]) -> Vec<Case> {
    cases(dtype, sizes.iter().map(|&(n, nrhs)| Problem::Solve { n, nrhs }))
}

/// LU factorisations of square matrices of the given orders.
pub fn factors(dtype: DType, orders: &[usize]) -> Vec<Case> {
    cases(dtype, orders.iter().map(|&n| Problem::Factors { n }))
}

fn cases(dtype: DType, problems: impl Iterator<Item = Problem>) -> Vec<Case> {
    problems.map(|problem| Case { dtype, problem }).collect()
}

/// The cases for the orders that the option `--n` names, in both element types: for each order a product, a triangular solve with 128
/// right-hand sides if the order is larger, a solve with as many right-hand sides as the order, and a factorisation.
pub fn of_orders(orders: &[usize]) -> Vec<Case> {
    let few = orders.iter().filter(|&&n| n > 128).map(|&n| (n, 128));
    let sizes: Vec<_> = few.chain(orders.iter().map(|&n| (n, n))).collect();
    let of_type = |dtype| [products(dtype, orders), solves(dtype, &sizes), factors(dtype, orders)].concat();
    [DType::F64, DType::F32].map(of_type).concat()
}

/// The operands of a call in host memory, as they are before the call.
pub struct Operands<T> {
    pub problem: Problem,
    pub a: Vec<T>,
    pub b: Vec<T>,
}

impl<T: Scalar> Operands<T> {
    /// Draws random operands.
    ///
    /// # Errors
    /// The host has too little memory for the matrices.
    pub fn random(problem: Problem) -> Result<Self, String> {
        let [(rows, cols), of_b, of_c] = problem.shapes();
        check_memory::<T>([(rows, cols), of_b, of_c, of_c])?;
        let a = match problem {
            Problem::Product(_) => random(rows * cols, 1),
            Problem::Solve { n, .. } => triangle(n),
            Problem::Factors { .. } | Problem::System { .. } => random(rows * cols, 3),
        };
        Ok(Operands { problem, a, b: random(of_b.0 * of_b.1, 2) })
    }

    /// The elements of the result before the first call. A result that a call overwrites completely holds NaN, so that the check
    /// finds a call that writes nothing.
    pub fn unwritten(&self) -> Vec<T> {
        let [.., (rows, cols)] = self.problem.shapes();
        filled(rows * cols, T::from_f64(f64::NAN))
    }

    /// The operands that a call reads and does not overwrite.
    pub fn inputs(&self) -> impl Iterator<Item = &[T]> {
        [self.a.as_slice(), &self.b].into_iter().take(self.problem.inputs())
    }

    /// Prepares the memory of the result for a call: it receives the operands that the call overwrites, or NaN before a product.
    pub fn restore(&self, result: &mut [T]) {
        let overwritten: [&[T]; 2] = match self.problem {
            Problem::Product(_) => return poison(result),
            Problem::Solve { .. } => [&self.b, &[]],
            Problem::Factors { .. } => [&self.a, &[]],
            Problem::System { .. } => [&self.a, &self.b],
        };
        let [first, second] = overwritten;
        let (to_first, to_second) = result.split_at_mut(first.len());
        copy(to_first, first);
        copy(to_second, second);
    }

    /// Name of the routine with the letter of the element type, such as `dgemm`.
    pub fn name(&self) -> String {
        name::<T>(self.problem.routine().name())
    }
}

/// Checks that the host has memory for matrices with the given rows and columns.
///
/// # Errors
/// The host has too little memory.
pub fn check_memory<T>(shapes: impl IntoIterator<Item = (usize, usize)>) -> Result<(), String> {
    let bytes = |(rows, cols): (usize, usize)| rows.checked_mul(cols)?.checked_mul(size_of::<T>());
    let sum = shapes.into_iter().try_fold(0_usize, |sum, shape| sum.checked_add(bytes(shape)?));
    let needed = sum.ok_or("the sizes exceed the address space")?;
    match lapidary_host::memory::left() {
        Some(left) if left.free < needed as u64 => {
            Err(format!("the matrices take {} MiB of host memory, and {} MiB are free", needed >> 20, left.free >> 20))
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_follow_the_transpositions() {
        let product = Product { m: 2, n: 3, k: 4, trans: [false, true] };
        assert_eq!(Problem::Product(product).shapes(), [(2, 4), (3, 4), (2, 3)]);
        assert_eq!(Problem::Product(Product { trans: [true, false], ..product }).shapes(), [(4, 2), (4, 3), (2, 3)]);
        assert_eq!(Problem::Product(product).size(), "2×3×4 NT");
        assert_eq!(Problem::Product(Product::square(8)).size(), "n=8 NN");
    }

    #[test]
    fn the_option_n_names_products_solves_and_factors_in_both_types() {
        let all = of_orders(&[256]);
        assert_eq!([all.len(), of_orders(&[128]).len()], [8, 6]);
        assert!(all.contains(&Case { dtype: DType::F32, problem: Problem::Solve { n: 256, nrhs: 128 } }));
    }

    #[test]
    fn sizes_that_no_memory_holds_are_refused() {
        let refusal = |n| Operands::<f64>::random(Problem::Factors { n }).err().unwrap();
        assert!(refusal(usize::MAX / 2).contains("address space"));
        assert!(refusal(1 << 28).contains("host memory"));
    }
}
