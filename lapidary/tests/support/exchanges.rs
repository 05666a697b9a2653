//! Many exchanges of rows.

use lapidary::MatMut;
use lapidary::core::{Laswp, Scalar};
use lapidary_conformance::Subject;

use crate::graded::Graded;

/// More exchanges of rows than are made at once, in either order. Rows that they name are named
/// twice, are those whose turn it is, or have one place in a table with others.
pub fn many_exchanges<T: Scalar>(subject: &Graded) {
    const M: usize = 9000;
    const N: usize = 11;
    let a: Vec<T> = (0..M * N).map(|i| T::from_f64(i as f64)).collect();
    let ipiv: Vec<i32> = (0..2200).map(|i| i32::try_from(i + (i * 37 + i / 5) % (M - i)).unwrap()).collect();
    let mut rows: Vec<usize> = (0..M).collect();
    ipiv.iter().enumerate().for_each(|(i, &p)| rows.swap(i, p as usize));
    let mut moved = a.clone();
    let exchange = |moved: &mut Vec<T>, forward| {
        let view = MatMut::col_major(moved, M, N).unwrap();
        subject.1.laswp(Laswp { a: view, ipiv: &ipiv, forward }).unwrap();
    };
    exchange(&mut moved, true);
    assert!((0..M * N).all(|e| moved[e] == a[rows[e % M] + e / M * M]), "{}: forward", subject.name());
    exchange(&mut moved, false);
    assert!(moved == a, "{}: and back", subject.name());
}
