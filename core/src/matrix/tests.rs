//! Tests of views: a view computes the indices of elements from its layout, and constructors refuse a view that needs more
//! elements than the slice has.

use super::*;

#[test]
fn views_index_by_layout() {
    let data: Vec<f64> = (0..12).map(f64::from).collect();
    let a = MatRef::new(&data, 2, 3, 4, Layout::ColMajor).unwrap();
    assert_eq!([a.at(1, 0), a.at(0, 2), a.t().at(2, 1)], [1.0, 8.0, 9.0]);
    let r = MatRef::row_major(&data, 3, 4).unwrap().sub(1..3, 1..4);
    assert_eq!([r.at(0, 0), r.at(1, 2)], [5.0, 11.0]);
}

#[test]
fn the_stride_of_a_single_line_may_be_any_number() {
    let data = [1.0_f64, 2.0];
    for (rows, cols, layout) in [(2, 1, Layout::ColMajor), (1, 2, Layout::RowMajor)] {
        let view = |ld| MatRef::new(&data, rows, cols, ld, layout).unwrap();
        assert_eq!((view(usize::MAX).ld(), view(usize::MAX).at(rows - 1, cols - 1)), (2, 2.0));
        assert_eq!(view(1000).ld(), 1000);
    }
    assert_eq!(MatRef::<f64>::new(&[], 0, usize::MAX, 5, Layout::ColMajor).unwrap().ld(), 5);
}

#[test]
fn a_diagonal_is_a_row_in_either_layout() {
    let data: Vec<f64> = (0..12).map(f64::from).collect();
    for (layout, rows, cols) in [(Layout::ColMajor, 3, 2), (Layout::RowMajor, 2, 3), (Layout::ColMajor, 2, 3)] {
        let a = MatRef::new(&data, rows, cols, 4, layout).unwrap();
        let d = a.diagonal();
        assert_eq!((d.shape(), d.at(0, 0), d.at(0, 1)), ((1, 2), a.at(0, 0), a.at(1, 1)));
    }
    let one = MatRef::new(&data, 3, 1, usize::MAX, Layout::ColMajor).unwrap().diagonal();
    assert_eq!((one.shape(), one.at(0, 0)), ((1, 1), 0.0));
}

#[test]
fn wrong_views_name_the_argument() {
    let data = [0.0_f64; 4];
    let message = |r: Result<MatRef<'_, f64>>| r.unwrap_err().to_string();
    assert!(message(MatRef::new(&data, 3, 1, 2, Layout::ColMajor)).contains("ld = 2"));
    assert!(message(MatRef::col_major(&data, 3, 2)).contains("data holds 4"));
    assert!(message(MatRef::new(&data, 1, usize::MAX, usize::MAX, Layout::ColMajor)).contains("overflow"));
}

#[test]
fn split_views_do_not_overlap() {
    let mut data = [0.0_f32; 6];
    let view = MatMut::col_major(&mut data, 2, 3).unwrap();
    let (mut left, mut right) = view.split_cols(1);
    left.set(1, 0, 1.0);
    right.set(0, 1, 2.0);
    assert_eq!(data, [0.0, 1.0, 0.0, 0.0, 2.0, 0.0]);
}

#[test]
fn an_empty_sub_view_at_the_end_stays_inside() {
    let data = [0.0_f64; 4];
    let a = MatRef::col_major(&data, 2, 2).unwrap().sub(2..2, 2..2);
    assert_eq!((a.shape(), a.raw().offset), ((0, 0), 0));
}
