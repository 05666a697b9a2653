//! Libraries of others as subjects: any BLAS and LAPACK that is a shared library,
//! through its C interface.
//!
//! A library is named as
//!
//! ```text
//! blas:PATH[,PATH…][#fortran][#lp64|#ilp64][#prefix=P,suffix=S]
//! ```
//!
//! - `blas:libopenblas.so.0`: a path, or a name that the loader finds.
//! - `blas:/…/libblas.so.3,/…/liblapack.so.3`: a routine is sought in one file after the
//!   other. They are loaded in this order, so that a LAPACK which needs "libblas.so.3"
//!   takes the one before it, and not the one that the system prefers.
//! - Products and triangular solves go through `cblas_?gemm` and `cblas_?trsm` where the
//!   library has them; with `#fortran` through `?gemm_` and `?trsm_`, as everything else
//!   does. These are two ways with code of their own in many libraries, and both can be
//!   graded. The name of a file hardly ends in `#fortran`, and a shell leaves it alone.
//!
//! Symbols with and without an underscore are known, and those of 64-bit integers (`_64_`, `64_`, `_64`). If the name does
//! not tell the size of integers, the suite tests each file: it calls a dot product with a length that the two sizes read
//! differently, or, in a file without it, the routine for the version of LAPACK. A file with neither is refused, unless
//! the name of the library says `#lp64` (32 bits) or `#ilp64` (64 bits).
//!
//! A library that is built for one program may carry a prefix before all its names, and a suffix
//! after them: NumPy's own OpenBLAS has `scipy_dgemm_64_` and `scipy_cblas_dgemm64_`. They are stated as
//! `#prefix=scipy_,suffix=64_`; the error for a library without the usual names gives this spelling where
//! the prefix is a known one. A suffix with 64 in it means integers of 64 bits.
//!
//! What a library does not have is [`Unsupported`](lapidary_core::ErrorKind::Unsupported),
//! and the error names the symbol: a routine, triangular solves by inverted blocks,
//! factorisations without pivoting, sizes beyond its integers. The suite asks
//! [`Subject::lacks`](crate::Subject::lacks) before, and skips what would need it.
//!
//! **Wrong arguments** never reach the library: the reference implementation's `xerbla`
//! stops the program, and there is no way to catch it that all libraries share. The
//! argument structs' own check refuses them, which says nothing of the library, so that
//! the properties about it are skipped.
//!
//! **Layouts**: a product or a solve of any layouts is one call, by the order of cblas
//! and by transposing flags; nothing is copied. LAPACK knows column-major matrices only:
//! others are copied there and back, as its own C interface does.
//!
//! A library stays loaded until the program ends, since those with threads of their own
//! do not survive being unloaded.

mod cblas;
mod fortran;
mod integer;
mod library;
mod names;
mod operand;
mod probe;
mod style;
mod symbols;
mod version;

pub use library::Library;
