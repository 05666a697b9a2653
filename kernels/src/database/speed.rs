//! The speed of a kernel for products, from which its time for a product is estimated.

use std::fmt;

use crate::product::Product;

/// Speed of a kernel for products on the devices of an entry, after the model r∞, n½ of Hockney and Jesshope (Parallel Computers 2,
/// 1988): a tile with k terms takes the time of k + `half` terms at the speed `peak`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// Speed on a product with many terms that occupies all multiprocessors equally, in GFLOP/s.
    pub peak: usize,
    /// Number of terms with which the kernel reaches half of the peak.
    pub half: usize,
    /// Speed of a multiprocessor with one work-group in percent of its speed with many work-groups.
    pub alone: usize,
}

impl Speed {
    /// The words of an entry that state the speed.
    const WORDS: [&str; 3] = ["peak", "half", "alone"];

    /// Takes the words that state a speed out of the values of an entry. Returns `None` if there are none.
    ///
    /// # Errors
    /// Some of the words are missing, or a value is out of range.
    pub(super) fn take(values: &mut Vec<(&str, usize)>) -> Result<Option<Self>, String> {
        let found = Self::WORDS.map(|word| values.iter().find(|(name, _)| *name == word).map(|&(_, value)| value));
        values.retain(|(name, _)| !Self::WORDS.contains(name));
        match found {
            [None, None, None] => Ok(None),
            [Some(peak @ 1..), Some(half), Some(alone @ 1..=100)] => Ok(Some(Speed { peak, half, alone })),
            _ => Err("a speed has a peak of at least 1, half, and alone, from 1 to 100 percent".to_owned()),
        }
    }

    /// Estimates the time of a product with the sizes m, n and k on a device with `units` multiprocessors. The times of two kernels on one
    /// device are comparable; their unit is not specified. The time is that of the multiprocessor with the most work-groups.
    pub(crate) fn time(&self, product: &Product, sizes: [usize; 3], units: usize) -> f64 {
        let [mwg, nwg] = product.tile();
        let groups_of_unit = (product.groups(sizes).div_ceil(units.max(1)) as f64).max(100.0 / self.alone as f64);
        let terms = sizes[2] as f64 / product.parts(sizes[2]) as f64 + self.half as f64;
        groups_of_unit * (mwg * nwg) as f64 * terms / self.peak as f64
    }
}

/// The words of an entry, each after a space.
impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " peak={} half={} alone={}", self.peak, self.half, self.alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::TileParams;

    #[test]
    fn a_product_takes_the_time_of_the_busiest_multiprocessor() {
        let params = TileParams { mwg: 10, nwg: 20, kwg: 8, mr: 1, nr: 1, vwm: 1, stages: 1 };
        let time = |alone, sizes, units| Speed { peak: 100, half: 5, alone }.time(&Product::Tile(params), sizes, units);
        // one tile of 200 elements with 10 and 5 terms at a speed of 100
        assert_eq!(time(100, [10, 20, 10], 4), 30.0);
        assert_eq!(time(100, [10, 80, 10], 4), 30.0, "a tile for each multiprocessor");
        assert_eq!(time(100, [10, 81, 10], 4), 60.0, "one multiprocessor with two tiles");
        assert_eq!([1, 81].map(|n| time(50, [10, n, 10], 4)), [60.0; 2], "one tile takes as long as two at once");
    }
}
