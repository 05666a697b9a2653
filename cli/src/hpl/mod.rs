//! The parts of the Linpack benchmark: the random system, the check of the solution, and the printed block of results.

pub mod check;
pub mod speed;
pub mod system;
pub mod table;
