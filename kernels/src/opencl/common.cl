// Matrices are column-major: element (i, j) of x lies i + j·x_ld elements after x_at.
// Offsets have 64 bits, since a matrix may hold more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
