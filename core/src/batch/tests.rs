use super::*;
use crate::matrix::{Home, Resident};

fn shape(layout: Layout, [rows, cols, ld, stride, count]: [usize; 5]) -> BatchShape {
    BatchShape { rows, cols, layout, ld, stride, count }
}

/// The indices of all elements of all matrices of a batch. An element that several matrices share occurs several times.
fn elements(shape: &BatchShape) -> Vec<usize> {
    let data = vec![0.0_f64; 400];
    let batch = Batch::new(&data, *shape).unwrap();
    let of = |i: usize| {
        let raw = batch.get(i).raw();
        (0..raw.rows * raw.cols).map(move |e| raw.offset + raw.index(e % raw.rows, e / raw.rows))
    };
    (0..batch.count()).flat_map(of).collect()
}

/// The test compares the check of strides with the definition: a batch is refused if and only if two matrices share an element.
#[test]
fn strides_are_refused_just_where_written_matrices_overlap() {
    let mut refused = 0;
    for layout in [Layout::ColMajor, Layout::RowMajor] {
        for (rows, cols) in [(1, 1), (1, 3), (3, 1), (2, 3), (3, 2)] {
            let line = if layout == Layout::ColMajor { rows } else { cols };
            for ld in line..line + 9 {
                for (stride, count) in (0..20).flat_map(|stride| [1, 2, 3, 4].map(|count| (stride, count))) {
                    let shape = shape(layout, [rows, cols, ld, stride, count]);
                    let mut all = elements(&shape);
                    all.sort_unstable();
                    let overlaps = all.windows(2).any(|pair| pair[0] == pair[1]);
                    let mut data = vec![0.0_f64; 400];
                    let error = BatchMut::new(&mut data, shape).err();
                    assert_eq!(error.is_some(), overlaps, "{shape:?}: {error:?}");
                    refused += usize::from(overlaps);
                }
            }
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn errors_name_the_argument_and_its_value() {
    let mut data = [0.0_f64; 11];
    let said = |result: Result<BatchMut<'_, f64>>| result.unwrap_err().to_string();
    assert!(said(BatchMut::new(&mut data, BatchShape::col_major(2, 2, 2).stride(3))).contains("stride = 3 makes matrices 0 and 1"));
    assert!(said(BatchMut::new(&mut data, BatchShape::col_major(2, 2, 2).ld(1))).contains("ld = 1"));
    assert!(said(BatchMut::col_major(&mut data, 2, 2, 3)).contains("data holds 11 elements, 3 matrices of 2×2"));
    let far = BatchShape::col_major(2, 2, 2).stride(usize::MAX / 2 + 1);
    assert!(said(BatchMut::new(&mut data, far)).contains("overflow"));
    // the data may end at the last element of the last matrix, without a full stride after this matrix
    assert!(BatchMut::new(&mut data, BatchShape::col_major(2, 2, 2).stride(7)).is_ok());
    let seven = MatMut::col_major(&mut data, 1, 7).unwrap();
    assert!(said(BatchMut::from_columns(seven, 2)).contains("7 columns are not 2 matrices"));
}

#[test]
fn columns_are_divided_on_hosts_and_on_devices() {
    let mut data: Vec<f64> = (0..24).map(f64::from).collect();
    let rows = BatchMut::from_columns(MatMut::row_major(&mut data, 2, 12).unwrap(), 4).unwrap();
    assert_eq!((rows.shape(), rows.count(), rows.as_ref().get(3).at(1, 2)), ((2, 3), 4, 23.0));
    let sums: Vec<f64> = rows.into_matrices().map(|matrix| matrix.at(0, 0) + matrix.at(1, 2)).collect();
    assert_eq!(sums, [14.0, 20.0, 26.0, 32.0]);
    let cols = Batch::from_columns(MatRef::col_major(&data, 2, 12).unwrap().sub(0..1, 2..12), 5).unwrap();
    assert_eq!([cols.get(0).at(0, 1), cols.get(4).at(0, 0)], [6.0, 20.0]);
    // SAFETY: the test does not read the elements of the resident matrix.
    let resident = unsafe { MatRef::<f64>::resident(Resident::new(0), 3, 6) };
    let raw = Batch::from_columns(resident, 2).unwrap().raw();
    assert!(matches!(raw.get(1).home, Home::Device(_)));
    assert_eq!((raw.get(1).offset, raw.get(1).ld), (9, 3));
    assert_eq!(raw.side_by_side(), Some(resident.raw()));
    // the test divides a matrix without columns into no matrices, and then into three empty matrices
    for (cols, count) in [(0, 0), (0, 3)] {
        let none = Batch::from_columns(MatRef::col_major(&data, 2, cols).unwrap(), count).unwrap();
        assert_eq!((none.shape(), none.count()), ((2, 0), count));
    }
    assert!(Batch::from_columns(MatRef::col_major(&data, 2, 1).unwrap(), 0).is_err());
}

#[test]
fn side_by_side_is_a_column_major_matrix() {
    let data = vec![0.0_f64; 400];
    let joined = |layout, numbers: [usize; 5]| {
        let joined = Batch::new(&data, shape(layout, numbers)).unwrap().raw().side_by_side();
        joined.map(|raw| (raw.rows, raw.cols, raw.ld))
    };
    assert_eq!(joined(Layout::ColMajor, [3, 2, 4, 8, 5]), Some((3, 10, 4)));
    assert_eq!(joined(Layout::ColMajor, [3, 2, 4, 9, 5]), None);
    assert_eq!(joined(Layout::ColMajor, [3, 2, 4, 9, 1]), Some((3, 2, 4)));
    // matrices of one contiguous column may lie at any distance that is not less than the column's length, in both layouts
    assert_eq!(joined(Layout::ColMajor, [3, 1, 7, 9, 5]), Some((3, 5, 9)));
    assert_eq!(joined(Layout::RowMajor, [3, 1, 1, 9, 5]), Some((3, 5, 9)));
    assert_eq!(joined(Layout::RowMajor, [3, 1, 2, 9, 5]), None);
    assert_eq!(joined(Layout::ColMajor, [3, 1, 7, 0, 5]), None);
    assert_eq!(joined(Layout::RowMajor, [3, 2, 2, 6, 5]), None);
    assert_eq!(
        Batch::new(&data, shape(Layout::RowMajor, [3, 2, 2, 6, 5])).unwrap().raw().t().side_by_side().map(|raw| raw.cols),
        Some(15)
    );
}
