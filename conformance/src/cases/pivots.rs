//! Room for row exchanges, with canaries around it.

/// Canaries before the room, and after it.
const AROUND: usize = 9;
/// No row of any matrix.
const CANARY: i32 = -0x5a5a_5a5a;
/// What stands where nothing was written: no row either.
const UNWRITTEN: i32 = -1;

/// A vector of row exchanges in a buffer whose every other element is a canary.
#[derive(Clone, Debug)]
pub struct Pivots(Vec<i32>);

impl Pivots {
    /// Room for so many exchanges.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let mut room = vec![CANARY; AROUND + count + AROUND];
        room[AROUND..][..count].fill(UNWRITTEN);
        Pivots(room)
    }

    fn count(&self) -> usize {
        self.0.len() - 2 * AROUND
    }

    /// The exchanges.
    #[must_use]
    pub fn rows(&self) -> &[i32] {
        &self.0[AROUND..][..self.count()]
    }

    /// The room to write them to.
    #[must_use]
    pub fn rows_mut(&mut self) -> &mut [i32] {
        let count = self.count();
        &mut self.0[AROUND..][..count]
    }

    /// The first place outside the room that is not a canary any more.
    #[must_use]
    pub fn damaged(&self) -> Option<usize> {
        let inside = AROUND..AROUND + self.count();
        self.0.iter().enumerate().position(|(at, &x)| !inside.contains(&at) && x != CANARY)
    }
}
