//! An array for the pivots of a factorisation, with canaries before and after it.

/// Number of canaries before the array of pivots, and number of canaries after the array.
const AROUND: usize = 9;
/// Value of a canary, which is not the index of a row.
const CANARY: i32 = -0x5a5a_5a5a;
/// Initial value of each pivot, which is not the index of a row.
const UNWRITTEN: i32 = -1;

/// An array of pivots in a buffer. Every element of the buffer outside the array is a canary.
#[derive(Clone, Debug)]
pub struct Pivots(Vec<i32>);

impl Pivots {
    /// Allocates an array for `count` pivots.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let mut room = vec![CANARY; AROUND + count + AROUND];
        room[AROUND..][..count].fill(UNWRITTEN);
        Pivots(room)
    }

    fn count(&self) -> usize {
        self.0.len() - 2 * AROUND
    }

    /// The pivots, for reading.
    #[must_use]
    pub fn rows(&self) -> &[i32] {
        &self.0[AROUND..][..self.count()]
    }

    /// The pivots, for writing.
    #[must_use]
    pub fn rows_mut(&mut self) -> &mut [i32] {
        let count = self.count();
        &mut self.0[AROUND..][..count]
    }

    /// Index of the first canary that was overwritten. `None` if no canary was overwritten.
    #[must_use]
    pub fn damaged(&self) -> Option<usize> {
        let inside = AROUND..AROUND + self.count();
        self.0.iter().enumerate().position(|(at, &x)| !inside.contains(&at) && x != CANARY)
    }
}
