//! The oracle computes the correct results of the routines. The oracle shares no code with any backend.
//!
//! Operands are copied into [`Dense`] matrices of `f64`, which is exact for `f32` too. Products are evaluated in twice that
//! precision ([`Double`]), for `f32` subjects too. If an operand or a result is not finite, higher precision does not help.
//! The plain triple loop in the working precision ([`loops`]) then defines the *class* of the result: NaN, +∞ or −∞.

pub mod dense;
pub mod double;
pub mod loops;
pub mod product;
pub mod residual;

pub use dense::Dense;
pub use double::Double;
pub use product::Product;
