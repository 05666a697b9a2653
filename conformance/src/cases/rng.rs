//! The random number generator for operands. The same seed of the generator gives the same numbers on every platform.

/// The generator `SplitMix64` (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator whose numbers depend on `seed` alone.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// Draws the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Draws a uniform number in [−1, 1).
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn uniform(&mut self) -> f64 {
        let unit = (self.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        2.0 * unit - 1.0
    }

    /// Draws a uniform integer in `0..n`, for small `n`.
    pub fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.bits() % n as u64).expect("below n")
    }

    /// Draws an integer in `-bound..=bound`.
    pub fn integer(&mut self, bound: usize) -> f64 {
        crate::bounds::real(self.below(2 * bound + 1)) - crate::bounds::real(bound)
    }

    /// Returns true with probability 1/n. If n is zero, returns true.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n.max(1)) == 0
    }

    /// Draws one or minus one.
    pub fn sign(&mut self) -> f64 {
        if self.once_in(2) { -1.0 } else { 1.0 }
    }

    /// Draws a random order of `0..n` (algorithm of Fisher and Yates).
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}
