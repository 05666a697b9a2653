//! The sizes of the products to which an entry of the database applies.

use std::fmt;

/// The sizes of the products to which an entry applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductSizes {
    /// Maximum of the smaller extent of C.
    pub max_side: usize,
    /// Whether C must be tall or wide. `None` if the entry applies to both.
    pub orientation: Option<Orientation>,
    /// Minimum number of terms (extent along k).
    pub min_terms: usize,
    /// Maximum number of terms.
    pub max_terms: usize,
}

/// Along which extent a matrix is longer. A square matrix is tall and wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Orientation {
    /// At least as many rows as columns.
    Tall,
    /// At least as many columns as rows.
    Wide,
}

/// The sizes of all products.
impl Default for ProductSizes {
    fn default() -> Self {
        ProductSizes { max_side: usize::MAX, orientation: None, min_terms: 0, max_terms: usize::MAX }
    }
}

/// Maximum of the smaller extent of C in a narrow product.
const MAX_NARROW_SIDE: usize = 64;
/// A size is much longer than another if it is at least this many times as long.
const MUCH_LONGER: usize = 8;

impl ProductSizes {
    /// Returns the sizes for which a kernel is worth using that is fast for the sizes m, n and k, if a product with these sizes is
    /// narrow: C has few rows or few columns, and the other extent or the number of terms is much larger. Returns `None` if the product
    /// is not narrow.
    #[must_use]
    pub fn like_narrow([m, n, k]: [usize; 3]) -> Option<Self> {
        let (side, length) = (m.min(n), m.max(n));
        let is_long = length >= MUCH_LONGER * side;
        let has_many_terms = k >= MUCH_LONGER * length;
        let longer = if m >= n { Orientation::Tall } else { Orientation::Wide };
        (side <= MAX_NARROW_SIDE && (is_long || has_many_terms)).then_some(ProductSizes {
            max_side: 2 * side,
            orientation: is_long.then_some(longer),
            min_terms: if has_many_terms { k / 2 } else { 0 },
            max_terms: usize::MAX,
        })
    }

    /// Returns whether an entry applies to a product with the sizes m, n and k.
    #[must_use]
    pub fn hold(&self, [m, n, k]: [usize; 3]) -> bool {
        let is_oriented = match self.orientation {
            Some(Orientation::Tall) => m >= n,
            Some(Orientation::Wide) => n >= m,
            None => true,
        };
        is_oriented && m.min(n) <= self.max_side && (self.min_terms..=self.max_terms).contains(&k)
    }
}

/// The words of an entry, each after a space.
impl fmt::Display for ProductSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.max_side < usize::MAX {
            write!(f, " side<={}", self.max_side)?;
        }
        f.write_str(match self.orientation {
            Some(Orientation::Tall) => " tall",
            Some(Orientation::Wide) => " wide",
            None => "",
        })?;
        if self.min_terms > 0 {
            write!(f, " terms>={}", self.min_terms)?;
        }
        if self.max_terms < usize::MAX {
            write!(f, " terms<={}", self.max_terms)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_hold_between_their_bounds() {
        let sizes = ProductSizes { max_side: 16, min_terms: 100, max_terms: 200, ..ProductSizes::default() };
        assert_eq!([[16, 99, 100], [99, 16, 200]].map(|product| sizes.hold(product)), [true; 2]);
        assert_eq!([[17, 17, 100], [1, 1, 99], [1, 1, 201]].map(|product| sizes.hold(product)), [false; 3]);
        let holds = |orientation| {
            let sizes = ProductSizes { orientation: Some(orientation), ..sizes };
            [[20, 5, 100], [5, 20, 100], [5, 5, 100]].map(|product| sizes.hold(product))
        };
        assert_eq!([Orientation::Tall, Orientation::Wide].map(holds), [[true, false, true], [false, true, true]]);
        assert!(ProductSizes::default().hold([usize::MAX; 3]) && ProductSizes::default().hold([0; 3]));
    }

    #[test]
    fn narrow_products_are_long_or_have_many_terms() {
        let words = |sizes| ProductSizes::like_narrow(sizes).map(|sizes| sizes.to_string());
        assert_eq!([[65, 1000, 1000], [64, 511, 511], [64; 3]].map(words), [None, None, None]);
        assert_eq!(words([2000, 8, 2000]).as_deref(), Some(" side<=16 tall"));
        assert_eq!(words([1, 2000, 2000]).as_deref(), Some(" side<=2 wide"));
        assert_eq!(words([64, 64, 16_384]).as_deref(), Some(" side<=128 terms>=8192"));
        assert_eq!(words([8, 64, 512]).as_deref(), Some(" side<=16 wide terms>=256"));
    }
}
