//! BLAS and LAPACK libraries of other projects as subjects. The suite can grade any shared library that has the C interface (cblas)
//! or the Fortran interface.
//!
//! The name of a library has this form:
//!
//! ```text
//! blas:PATH[,PATH…][#fortran][#lp64|#ilp64][#prefix=P,suffix=S]
//! ```
//!
//! - `blas:libopenblas.so.0`: a path, or a name that the dynamic loader finds.
//! - `blas:/…/libblas.so.3,/…/liblapack.so.3`: several files. The suite loads the files in the order of the name, and looks up each
//!   routine in one file after the other. If `liblapack.so.3` needs `libblas.so.3`, the loader uses the first file and not the BLAS
//!   that the system prefers.
//! - `#fortran`: products and triangular solves call `?gemm_` and `?trsm_`. Without `#fortran`, products and triangular solves call
//!   `cblas_?gemm` and `cblas_?trsm` if the library has these functions. All other routines are always called through the Fortran
//!   interface. Many libraries have separate code for the two interfaces, so that both interfaces should be graded. Few file names
//!   end in `#fortran`, and shells give `#` no meaning inside a word.
//!
//! The suite knows symbols with and without an underscore, and the suffixes of 64-bit integers (`_64_`, `64_`, `_64`, `__64`). If
//! the suffix does not determine the size of integers, the suite tests each file: it calls the dot product with a length whose
//! value differs between 32-bit and 64-bit integers. In a file without a dot product, the suite calls the LAPACK routine `ilaver`,
//! which returns the version. A file that has neither a dot product nor `ilaver` is refused, unless the name of the library
//! contains `#lp64` (32 bits) or `#ilp64` (64 bits).
//!
//! A library that is built for one program may add a prefix and a suffix to all its symbols. For example, the OpenBLAS of NumPy has
//! `scipy_dgemm_64_` and `scipy_cblas_dgemm64_`. The user gives prefix and suffix as `#prefix=scipy_,suffix=64_`. If the symbols of
//! a library have a known prefix such as `scipy_`, and the user did not state it, the error message shows the option. A suffix that
//! contains 64 means integers of 64 bits.
//!
//! A call that the library cannot do returns [`Unsupported`](lapidary_core::ErrorKind::Unsupported): a missing routine (the error
//! names its symbol), a triangular solve by inverted blocks, a factorisation without pivoting, or a size that exceeds the integers
//! of the library. The suite asks [`Subject::skip_reason`](crate::Subject::skip_reason) first, and skips trials that need a call
//! which the library cannot do.
//!
//! **Wrong arguments** never reach the library. The function `xerbla` of Netlib's BLAS ends the program, and no method to keep
//! `xerbla` from ending the program works with all libraries. The check of the argument structs refuses wrong arguments before the
//! library is called. The refusal of wrong arguments by this check shows nothing about the library, so that the trials of wrong
//! arguments are skipped.
//!
//! **Layouts**: gemm and trsm take operands in any combination of layouts in one call without copies, since cblas has an argument
//! for the layout and both interfaces have transposition flags. LAPACK takes column-major matrices only, so that row-major matrices
//! are copied before and after the call, as in LAPACK's own C interface.
//!
//! A library stays loaded until the program ends, since a library that has started threads may crash when it is unloaded.

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
