//! The oracle computes the correct results of the routines. The oracle shares no code with any backend.
//!
//! Operands are copied into [`Dense`] matrices of `f64`. The copy is exact for operands in `f32` too. Products are computed in
//! twice the precision of `f64` ([`Double`]), whatever the precision of the subject. If an operand or a result is not finite, the
//! plain triple loop in the precision of the subject ([`loops`]) defines the *class* of the result: NaN, +∞ or −∞.

pub mod dense;
pub mod double;
pub mod loops;
pub mod product;
pub mod residual;

pub use dense::Dense;
pub use double::Double;
pub use product::Product;
