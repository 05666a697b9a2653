//! The oracle: what the routines should give, independent of every backend.
//!
//! Operands are copied into plain [`Dense`] matrices of `f64` (exact for `f32`) and products are evaluated in twice that
//! precision ([`Double`]), for `f32` subjects too. If an operand or a result is not finite, higher precision does not help: the
//! plain triple loop in the working precision ([`loops`]) then defines the *class* of the result: NaN, +∞ or −∞.

pub mod dense;
pub mod double;
pub mod loops;
pub mod product;
pub mod residual;

pub use dense::Dense;
pub use double::Double;
pub use product::Product;
