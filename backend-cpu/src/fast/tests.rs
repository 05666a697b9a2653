//! Compares every fast instruction with its plain loop in `crate::reference`, for every vector type.

use lapidary_core::{Diag, Op, Scalar, Side, Swaps, Uplo};

use super::blocks::{Blocking, Blocks};
use super::simd::{Lanes, WIDEST};
use crate::reference;
use crate::team::Team;
use crate::tile::Tile;

mod batched;

const OPS: [Op; 2] = [Op::NoTrans, Op::Trans];
const SIDES: [Side; 2] = [Side::Left, Side::Right];
const UPLOS: [Uplo; 2] = [Uplo::Lower, Uplo::Upper];
const DIAGS: [Diag; 2] = [Diag::NonUnit, Diag::Unit];

/// A xorshift generator of random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// A random value between −1 and 1.
    fn value<T: Scalar>(&mut self) -> T {
        T::from_f64((self.next() % 2001) as f64 / 1000.0 - 1.0)
    }
    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }
}

/// A matrix whose memory holds NaN between the columns and after the last column, so that a stray write is detected.
#[derive(Clone)]
struct Matrix<T> {
    data: Vec<T>,
    rows: usize,
    cols: usize,
    ld: usize,
}

impl<T: Lanes> Matrix<T> {
    fn new(rows: usize, cols: usize, gap: usize, mut f: impl FnMut(usize, usize) -> T) -> Self {
        let ld = rows + gap;
        let mut data = vec![T::from_f64(f64::NAN); ld * cols + 3];
        (0..cols).for_each(|j| (0..rows).for_each(|i| data[i + j * ld] = f(i, j)));
        Matrix { data, rows, cols, ld }
    }
    fn random(rows: usize, cols: usize, r: &mut Random) -> Self {
        let gap = r.below(4);
        Self::new(rows, cols, gap, |_, _| r.value())
    }
    fn tile(&mut self) -> Tile<T> {
        // SAFETY: the vector holds ld·cols elements.
        unsafe { Tile::new(self.data.as_mut_ptr(), self.rows, self.cols, self.ld) }
    }
    fn get(&self, i: usize, j: usize) -> f64 {
        self.data[i + j * self.ld].to_f64()
    }
    /// The largest |self − other| over all elements. Both matrices must have NaN at the same places.
    #[track_caller]
    fn distance(&self, other: &Self) -> f64 {
        let pairs = || self.data.iter().zip(&other.data).map(|(x, y)| (x.to_f64(), y.to_f64()));
        assert!(pairs().all(|(x, y)| x.is_nan() == y.is_nan()), "NaN or a canary differs");
        pairs().map(|(x, y)| if x == y { 0.0 } else { (x - y).abs() }).fold(0.0, |a, b| if b.is_nan() { a } else { a.max(b) })
    }
}

/// A triangular matrix with a dominant diagonal. Elements that a routine must not read are NaN.
fn triangle<T: Lanes>(n: usize, uplo: Uplo, diag: Diag, r: &mut Random) -> Matrix<T> {
    Matrix::new(n, n, 2, |i, j| {
        let stored = if uplo == Uplo::Lower { i > j } else { i < j };
        match (i == j, diag) {
            (true, Diag::Unit) => T::from_f64(f64::NAN),
            (true, Diag::NonUnit) => T::from_f64(2.0 + r.below(5) as f64),
            _ if stored => T::from_f64(r.value::<T>().to_f64() / n as f64),
            _ => T::from_f64(f64::NAN),
        }
    })
}

/// Calls `f` with every vector type: for one thread, for a team whose members all take part in each job, and for a team whose cache blocks
/// are so small that each product has many.
fn each_way(f: impl Fn(&Team)) {
    let small = Blocks { kc: 5, mc: 1, nc: 3, team_mc: 30, team_nc: 9 };
    let small = Blocking { f32: small, f64: Blocks { kc: 7, ..small } };
    for team in [Team::alone(), Team::eager(3), Team::eager(2).with_blocking(small)] {
        for bits in [512, 256, 0] {
            WIDEST.set(bits);
            f(&team);
        }
    }
}

fn sizes(r: &mut Random) -> usize {
    [0, 1, 2, 3, 7, 8, 15, 24, 25, 31, 49, 64, 97][r.below(13)]
}

fn gemm_agrees<T: Lanes>(team: &Team) {
    let mut r = Random(3);
    for case in 0..160 {
        let size = [sizes(&mut r), sizes(&mut r), if case % 40 == 0 { 900 } else { sizes(&mut r) }];
        let ops = [OPS[r.below(2)], OPS[r.below(2)]];
        let (alpha, beta) = ([1.0, -1.0, 0.5, 0.0][r.below(4)], [1.0, 0.0, -2.0][r.below(3)]);
        product_agrees::<T>(team, &mut r, size, ops, alpha, beta);
    }
    // few rows and columns but a large k, so that a team divides the terms of each sum into ranges
    for (size, beta) in [([1, 1, 40], 0.0), ([5, 3, 100], -2.0), ([8, 1, 500], 0.0), ([25, 17, 700], 1.0), ([40, 64, 1030], 0.0)] {
        product_agrees::<T>(team, &mut r, size, OPS, 0.5, beta);
    }
    // a small k, and so many tiles that a team uses wider tiles
    product_agrees::<T>(team, &mut r, [310, 321, 5], OPS, 0.5, -2.0);
    // products so large that all members of a team together pack the operands once
    for ops in [OPS, [Op::Trans, Op::NoTrans]] {
        product_agrees::<T>(team, &mut r, [270, 220, 510], ops, 0.5, -2.0);
    }
}

fn product_agrees<T: Lanes>(team: &Team, r: &mut Random, [m, n, k]: [usize; 3], [op_a, op_b]: [Op; 2], alpha: f64, beta: f64) {
    let (sa, sb) = (op_a.shape((m, k)), op_b.shape((k, n)));
    let (mut a, mut b) = (Matrix::<T>::random(sa.0, sa.1, r), Matrix::random(sb.0, sb.1, r));
    let (alpha, beta, nan) = (T::from_f64(alpha), T::from_f64(beta), T::from_f64(f64::NAN));
    let mut c = Matrix::random(m, n, r);
    if beta == T::ZERO {
        c.data.fill(nan);
    }
    if alpha == T::ZERO {
        a.data.fill(nan);
    }
    let mut want = c.clone();
    // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
    unsafe {
        reference::gemm(op_a, op_b, alpha, a.tile(), b.tile(), beta, want.tile());
        super::gemm(team, op_a, op_b, alpha, a.tile(), b.tile(), beta, c.tile());
    }
    // twice bound 1 of docs/numerics.md, with entries of at most 1 (β·C₀ at most 2)
    let bound = 4.0 * (k as f64 + 3.0) * T::UNIT_ROUNDOFF * (k as f64 + 2.0);
    assert!(c.distance(&want) <= bound, "{m}×{n}×{k} {op_a}{op_b}: {}", c.distance(&want));
}

#[test]
fn gemm_is_the_reference() {
    each_way(gemm_agrees::<f32>);
    each_way(gemm_agrees::<f64>);
}

/// Tests products with several blocks of A and of B, and factorisations with panels that are wider than the narrowest panel.
#[test]
fn large_matrices_of_a_team_are_the_reference() {
    let (mut r, team) = (Random(23), Team::eager(3));
    for (m, n, k) in [(2500, 40, 900), (40, 2100, 600)] {
        let (mut a, mut b) = (Matrix::<f64>::random(m, k, &mut r), Matrix::random(k, n, &mut r));
        let mut c = Matrix::random(m, n, &mut r);
        let mut want = c.clone();
        // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
        unsafe {
            reference::gemm(Op::NoTrans, Op::NoTrans, 1.0, a.tile(), b.tile(), -1.0, want.tile());
            super::gemm(&team, Op::NoTrans, Op::NoTrans, 1.0, a.tile(), b.tile(), -1.0, c.tile());
        }
        // twice bound 1 of docs/numerics.md, as in `product_agrees`
        let bound = 4.0 * (k as f64 + 3.0) * f64::UNIT_ROUNDOFF * (k as f64 + 2.0);
        assert!(c.distance(&want) <= bound, "{m}×{n}×{k}: {}", c.distance(&want));
    }
    for (m, n, by_rows) in [(700, 600, false), (600, 700, false), (700, 600, true), (600, 700, true)] {
        let original = Matrix::<f64>::random(m, n, &mut r);
        let factored = |team: &Team| {
            let (mut a, mut pivots, mut info) = (original.clone(), vec![-1; m.min(n)], 0);
            let mut rows = Matrix::<f64>::new(n, m, 3, |j, i| a.data[i + j * a.ld]);
            // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
            unsafe {
                let ipiv = Tile::new(pivots.as_mut_ptr(), m.min(n), 1, m.min(n));
                if by_rows {
                    super::getrf_by_rows(team, true, rows.tile(), ipiv, &mut info);
                    pivots.iter_mut().for_each(|p| *p += 10);
                    (0..n).for_each(|j| (0..m).for_each(|i| a.data[i + j * a.ld] = rows.data[j + i * rows.ld]));
                } else {
                    super::getrf(team, true, 10, a.tile(), ipiv, &mut info);
                }
            }
            (a, pivots)
        };
        let (mut a, mut pivots) = factored(&team);
        check_factors(&original, &mut a, &mut pivots, true);
        // two factorisations give the same bits, no matter which member computes which piece
        let (again, pivots_again) = factored(&team);
        assert_eq!((pivots, a.distance(&again)), (pivots_again, 0.0));
    }
}

#[test]
fn gemm_propagates_nan_through_zero() {
    each_way(|team| {
        let mut a = Matrix::<f64>::new(30, 9, 1, |i, j| if (i, j) == (29, 4) { f64::INFINITY } else { 1.0 });
        let (mut b, mut c) = (Matrix::new(9, 5, 0, |_, _| 0.0), Matrix::new(30, 5, 0, |_, _| 1.0));
        // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
        unsafe { super::gemm(team, Op::NoTrans, Op::NoTrans, 1.0, a.tile(), b.tile(), 1.0, c.tile()) }
        assert!((0..5).all(|j| c.get(29, j).is_nan() && c.get(28, j) == 1.0));
    });
}

fn trsm_agrees<T: Lanes>(team: &Team) {
    let mut r = Random(5);
    for case in 0..32 * 8 {
        let (side, uplo, op, diag) = (SIDES[case % 2], UPLOS[case / 2 % 2], OPS[case / 4 % 2], DIAGS[case / 8 % 2]);
        let (n, others) = match case {
            // the order of the triangle is so large that members share products
            0..8 => (257, 9),
            // the system is divided into two triangles, for which each member solves alone, and a product that members share
            8..12 => (513, 64),
            // so many right-hand sides that a member solves several strips, the last of which is wider
            12..14 => (100, 2500),
            _ => (sizes(&mut r), sizes(&mut r) * (1 + r.below(4))),
        };
        let alpha = T::from_f64(if case < 14 { -0.5 } else { [1.0, -0.5, 0.0][r.below(3)] });
        let mut a = triangle::<T>(n, uplo, diag, &mut r);
        let (rows, cols) = if side == Side::Left { (n, others) } else { (others, n) };
        let mut b = Matrix::random(rows, cols, &mut r);
        let mut want = b.clone();
        // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
        unsafe {
            reference::trsm(side, uplo, op, diag, alpha, a.tile(), want.tile());
            super::trsm(team, side, uplo, op, diag, alpha, a.tile(), b.tile());
        }
        // bound 7 of docs/numerics.md; the norm of the triangle's inverse is below e
        let bound = 16.0 * (n as f64 + 3.0) * T::UNIT_ROUNDOFF;
        assert!(b.distance(&want) <= bound, "{side}{uplo}{op}{diag} {n} {others}: {}", b.distance(&want));
    }
}

#[test]
fn trsm_is_the_reference() {
    each_way(trsm_agrees::<f32>);
    each_way(trsm_agrees::<f64>);
}

#[test]
fn trsm_divides_by_odd_pivots_as_ieee_does() {
    each_way(|team| {
        for pivot in [0.0, -0.0, 5e-324, 1e308, f64::INFINITY, f64::NAN, 49.0] {
            let mut a = Matrix::new(1, 1, 0, |_, _| pivot);
            let mut b = Matrix::new(1, 11, 2, |_, j| j as f64 - 3.0);
            let want = Matrix::new(1, 11, 2, |_, j| (j as f64 - 3.0) / pivot);
            // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
            unsafe { super::trsm(team, Side::Left, Uplo::Lower, Op::NoTrans, Diag::NonUnit, 1.0, a.tile(), b.tile()) }
            assert_eq!(b.distance(&want), 0.0);
        }
    });
}

fn getrf_agrees<T: Lanes>(team: &Team) {
    let mut r = Random(11);
    for case in 0..150 {
        let (m, n) = (sizes(&mut r) * (1 + r.below(15)), sizes(&mut r));
        let mut a = Matrix::<T>::random(m, n, &mut r);
        if case % 5 == 0 && n > 3 {
            (0..m).for_each(|i| a.data[i + 2 * a.ld] = T::ZERO);
        }
        let pivoting = case % 3 != 0;
        if !pivoting {
            (0..m.min(n)).for_each(|i| a.data[i + i * a.ld] = T::from_f64(3.0 * m as f64));
        }
        let original = a.clone();
        let (mut pivots, mut info) = (vec![-1; m.min(n)], 0);
        let (mut plain, mut plain_pivots, mut plain_info) = (a.clone(), pivots.clone(), 0);
        let mut by_rows = Matrix::<T>::new(n, m, 3, |j, i| a.data[i + j * a.ld]);
        let (mut pivots_by_rows, mut info_by_rows) = (pivots.clone(), 0);
        // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
        unsafe {
            let ipiv = Tile::new(pivots.as_mut_ptr(), m.min(n), 1, m.min(n));
            super::getrf(team, pivoting, 10, a.tile(), ipiv, &mut info);
            let ipiv = Tile::new(pivots_by_rows.as_mut_ptr(), m.min(n), 1, m.min(n));
            super::getrf_by_rows(team, pivoting, by_rows.tile(), ipiv, &mut info_by_rows);
            let ipiv = Tile::new(plain_pivots.as_mut_ptr(), m.min(n), 1, m.min(n));
            reference::getrf(pivoting, 10, plain.tile(), ipiv, &mut plain_info);
        }
        assert_eq!([info > 0, info_by_rows > 0], [plain_info > 0; 2], "{m}×{n}");
        assert!(info == 0 || info_by_rows + 10 == info, "{m}×{n}: {info_by_rows} and {info}");
        check_factors(&original, &mut a, &mut pivots, pivoting);
        assert!((0..m).all(|i| (n..n + 3).all(|j| by_rows.get(j, i).is_nan())), "gaps");
        let mut columns = Matrix::<T>::new(m, n, 1, |i, j| by_rows.data[j + i * by_rows.ld]);
        pivots_by_rows.iter_mut().for_each(|p| *p += 10);
        check_factors(&original, &mut columns, &mut pivots_by_rows, pivoting);
    }
}

/// Checks bound 8 of docs/numerics.md for each entry of the matrix.
fn check_factors<T: Lanes>(original: &Matrix<T>, lu: &mut Matrix<T>, pivots: &mut [i32], pivoting: bool) {
    let (m, n, steps) = (lu.rows, lu.cols, pivots.len());
    let mut pa = original.clone();
    // SAFETY: each tile is a whole matrix in memory of its own, and the pivots are rows of the matrix.
    unsafe {
        let ipiv = Tile::new(pivots.as_mut_ptr(), steps, 1, steps);
        reference::laswp(Swaps { side: Side::Left, forward: true, first_row: 10 }, pa.tile(), ipiv);
    }
    for j in 0..n {
        for i in 0..m {
            let l = |k: usize| if k == i { 1.0 } else { lu.get(i, k) };
            let terms = || (0..=i.min(j).min(steps - 1)).map(|k| l(k) * lu.get(k, j));
            let (product, size): (f64, f64) = (terms().sum(), terms().map(f64::abs).sum());
            let bound = 2.0 * (steps as f64 + 3.0) * T::UNIT_ROUNDOFF * (size + pa.get(i, j).abs());
            assert!((product - pa.get(i, j)).abs() <= bound, "{m}×{n} at {i},{j}: {product} {}", pa.get(i, j));
            assert!(!pivoting || i <= j || lu.get(i, j).abs() <= 1.0 + 4.0 * T::UNIT_ROUNDOFF);
        }
    }
    assert!((0..n).all(|j| (m..lu.ld).all(|i| lu.get(i, j).is_nan())), "gap rows");
}

#[test]
fn getrf_factors() {
    each_way(getrf_agrees::<f32>);
    each_way(getrf_agrees::<f64>);
}

#[test]
fn pivots_on_exact_integers_are_the_reference() {
    each_way(|team| {
        let mut r = Random(13);
        for case in 0..60 {
            // in a matrix of one column, no rounding error affects the choice of the pivot; the columns include ties, NaN and great
            // lengths
            let (m, nan) = (1 + r.below(1500), case % 4 == 0);
            let mut a =
                Matrix::<f64>::new(m, 1, 0, |_, _| if nan && r.below(9) == 0 { f64::NAN } else { r.below(30) as f64 - 15.0 });
            let (mut plain, mut p, mut q, mut info) = (a.clone(), [0], [0], 0);
            // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
            unsafe {
                super::getrf(team, true, 0, a.tile(), Tile::new(p.as_mut_ptr(), 1, 1, 1), &mut info);
                reference::getrf(true, 0, plain.tile(), Tile::new(q.as_mut_ptr(), 1, 1, 1), &mut info);
            }
            assert_eq!((p, a.distance(&plain)), (q, 0.0));
        }
    });
}

#[test]
fn exchanges_and_copies_are_the_reference() {
    each_way(|team| {
        let mut r = Random(17);
        for case in 0..64 {
            let swaps = Swaps { side: [Side::Left, Side::Right][case % 2], forward: case / 2 % 2 == 0, first_row: 5 };
            let (m, n) = (1 + sizes(&mut r) * 5, 1 + sizes(&mut r));
            let size = if swaps.side == Side::Left { m } else { n };
            let mut pivots: Vec<i32> = (0..size).map(|i| 5 + (i + r.below(size - i)) as i32).collect();
            let mut a = Matrix::<f32>::random(m, n, &mut r);
            let mut plain = a.clone();
            let mut b = Matrix::new(n, m, 3, |_, _| f32::NAN);
            let mut c = b.clone();
            // SAFETY: each tile is a whole matrix in memory of its own, and the shapes are those that the routine requires.
            unsafe {
                let ipiv = Tile::new(pivots.as_mut_ptr(), size, 1, size);
                super::laswp(team, swaps, a.tile(), ipiv);
                reference::laswp(swaps, plain.tile(), ipiv);
                super::copy(team, Op::Trans, a.tile(), b.tile());
                reference::copy(Op::Trans, a.tile(), c.tile());
            }
            assert_eq!((a.distance(&plain), b.distance(&c)), (0.0, 0.0));
        }
    });
}
