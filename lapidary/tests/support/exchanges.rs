//! Tests of calls with many row exchanges.

use lapidary::{Laswp, MatMut, Scalar};
use lapidary_conformance::Subject;

use crate::graded::Graded;

/// Tests more row exchanges than a kernel prepares at a time, in both orders. Rows are exchanged several times, as row `i` and as
/// row `ipiv[i]`, and several exchanges name the same row.
pub fn many_exchanges<T: Scalar>(subject: &Graded) {
    exchanges::<T>(subject, (9000, 11), 4400);
}

/// Tests more row exchanges than the number of iterations that some drivers allow for a loop.
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
