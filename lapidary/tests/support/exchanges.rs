//! Many exchanges of rows.

use lapidary::MatMut;
use lapidary::core::{Laswp, Scalar};
use lapidary_conformance::Subject;

use crate::graded::Graded;

/// More exchanges of rows than are made at once, in either order. Rows that they name are named
/// twice, are those whose turn it is, or have one place in a table with others.
pub fn many_exchanges<T: Scalar>(subject: &Graded) {
    exchanges::<T>(subject, (9000, 11), 2200);
}

/// More exchanges than some drivers let a loop take rounds.
pub fn endless_exchanges<T: Scalar>(subject: &Graded) {
    exchanges::<T>(subject, (70_000, 2), 66_000);
}

fn exchanges<T: Scalar>(subject: &Graded, (m, n): (usize, usize), count: usize) {
    let a: Vec<T> = (0..m * n).map(|i| T::from_f64(i as f64)).collect();
    let ipiv: Vec<i32> = (0..count).map(|i| i32::try_from(i + (i * 37 + i / 5) % (m - i)).unwrap()).collect();
    let mut rows: Vec<usize> = (0..m).collect();
    ipiv.iter().enumerate().for_each(|(i, &p)| rows.swap(i, p as usize));
    let mut moved = a.clone();
    let exchange = |moved: &mut Vec<T>, forward| {
        let view = MatMut::col_major(moved, m, n).unwrap();
        subject.1.laswp(Laswp { a: view, ipiv: &ipiv, forward }).unwrap();
    };
    exchange(&mut moved, true);
    assert!((0..m * n).all(|e| moved[e] == a[rows[e % m] + e / m * m]), "{}: forward", subject.name());
    exchange(&mut moved, false);
    assert!(moved == a, "{}: and back", subject.name());
}
