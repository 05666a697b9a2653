//! An array for row exchanges with canaries around it.

/// Number of canaries before the array, and number after it.
const AROUND: usize = 9;
/// Value of a canary, which is no row of any matrix.
const CANARY: i32 = -0x5a5a_5a5a;
/// Initial value of each row exchange, which is no row of any matrix.
const UNWRITTEN: i32 = -1;

/// An array of row exchanges in a buffer. Every element outside the array is a canary.
#[derive(Clone, Debug)]
pub struct Pivots(Vec<i32>);

impl Pivots {
    /// Allocates an array for `count` exchanges.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let mut room = vec![CANARY; AROUND + count + AROUND];
        room[AROUND..][..count].fill(UNWRITTEN);
        Pivots(room)
    }

    fn count(&self) -> usize {
        self.0.len() - 2 * AROUND
    }

    /// Read access to the exchanges.
    #[must_use]
    pub fn rows(&self) -> &[i32] {
        &self.0[AROUND..][..self.count()]
    }

    /// Write access to the exchanges.
    #[must_use]
    pub fn rows_mut(&mut self) -> &mut [i32] {
        let count = self.count();
        &mut self.0[AROUND..][..count]
    }

    /// Index of the first canary that was overwritten, if there is one.
    #[must_use]
    pub fn damaged(&self) -> Option<usize> {
        let inside = AROUND..AROUND + self.count();
        self.0.iter().enumerate().position(|(at, &x)| !inside.contains(&at) && x != CANARY)
    }
}
