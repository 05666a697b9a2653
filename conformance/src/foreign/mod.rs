//! BLAS and LAPACK libraries of other projects as subjects. Any shared library with the C interface (cblas) or the Fortran
//! interface can be graded.
//!
//! The name of a library has this form:
//!
//! ```text
//! blas:PATH[,PATH…][#fortran][#lp64|#ilp64][#prefix=P,suffix=S]
//! ```
//!
//! - `blas:libopenblas.so.0`: a path, or a name that the dynamic loader finds.
//! - `blas:/…/libblas.so.3,/…/liblapack.so.3`: several files. The files are loaded in this order, and each routine is
//!   looked up in one file after the other. If the second file needs "libblas.so.3", the loader uses the first file and not
//!   the library that the system prefers.
//! - `#fortran`: products and triangular solves call `?gemm_` and `?trsm_`. Without `#fortran`, products and triangular
//!   solves call `cblas_?gemm` and `cblas_?trsm` if the library has these functions. All other routines are always called
//!   through the Fortran interface. Many libraries have separate code for the two interfaces, so that both are worth
//!   grading. Few file names end in `#fortran`, and shells give `#` no meaning inside a word.
//!
//! The suite knows symbols with and without an underscore, and the suffixes of 64-bit integers (`_64_`, `64_`, `_64`,
//! `__64`). If the suffix does not tell the size of integers, the suite tests each file. The suite calls a dot product with
//! a length that the two sizes read differently. In a file without dot product, the suite calls the routine for the version
//! of LAPACK. A file that has neither of the two functions is refused, unless the name of the library contains `#lp64` (32
//! bits) or `#ilp64` (64 bits).
//!
//! A library that is built for one program may add a prefix and a suffix to all its symbols. For example, the OpenBLAS of
//! NumPy has `scipy_dgemm_64_` and `scipy_cblas_dgemm64_`. The user gives prefix and suffix as `#prefix=scipy_,suffix=64_`.
//! If a library has no usual symbols but a known prefix, the error message contains this spelling. A suffix that contains
//! 64 means integers of 64 bits.
//!
//! A call that the library cannot do returns [`Unsupported`](lapidary_core::ErrorKind::Unsupported): a missing routine (the
//! error names its symbol), a triangular solve by inverted blocks, a factorisation without pivoting, or a size that exceeds
//! its integers. The suite asks [`Subject::skip_reason`](crate::Subject::skip_reason) first and skips trials that need such a call.
//!
//! **Wrong arguments** never reach the library. The `xerbla` of the reference implementation ends the program, and no
//! method to prevent this works with all libraries. The check of the argument structs refuses wrong arguments before the
//! library is called. This refusal says nothing about the library, so that the trials about wrong arguments are skipped.
//!
//! **Layouts**: gemm and trsm with operands in any layouts are one call without copies, by means of the order argument of
//! cblas and of transposition flags. LAPACK takes column-major matrices only, so that other matrices are copied before and
//! after the call, as in LAPACK's own C interface.
//!
//! A library stays loaded until the program ends, since libraries with their own threads may crash when they are unloaded.

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
