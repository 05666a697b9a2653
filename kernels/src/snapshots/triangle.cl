#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define real double
#define MIN_POSITIVE 2.2250738585072014e-308
#define GROUP 64
#define NB 32
// Matrices are column-major: element (i, j) of matrix x is x[x_at + i + j·x_ld].
// Offsets have 64 bits, because a matrix may have more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
// Kernels for triangles of at most NB unknowns.

// Solves a triangular system by forward substitution, one right-hand side for each work-item. Coefficient k of equation i is
// a[a_at + i·a_i + k·a_k]. Unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]. For backward substitution, the caller
// passes the position of the last unknown and negative strides. The kernel does not read a unit diagonal. The loops are unrolled,
// so that the unknowns stay in registers. Unknowns beyond the last one repeat equation n - 1 and are not stored.
__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void trsm_block(const ulong n, const ulong nrhs, const ulong unit, __global const real *a, const ulong a_at,
                         const long a_i, const long a_k, __global real *b, const ulong b_at, const long b_i,
                         const long b_r) {
    const ulong r = get_global_id(0);
    const int last = (int)n - 1;
    a += a_at;
#define COEFFICIENT(i, k) a[min(i, last) * a_i + (k) * a_k]
    if (r >= nrhs) return;
    b += (long)b_at + (long)r * b_r;
    real x[NB];
    #pragma unroll
    for (int i = 0; i < NB; ++i) x[i] = b[min(i, last) * b_i];
    #pragma unroll
    for (int k = 0; k < NB; ++k)
        if (k <= last) {
            if (!unit) x[k] /= COEFFICIENT(k, k);
            #pragma unroll
            for (int i = k + 1; i < NB; ++i) x[i] -= COEFFICIENT(i, k) * x[k];
        }
    #pragma unroll
    for (int i = 0; i < NB; ++i)
        if (i <= last) b[i * b_i] = x[i];
}

// V <- the inverses of the NB x NB blocks on the diagonal of A. Each work-item computes one column of one block. The opposite
// triangle of each block becomes zero. The kernel treats an upper block as a lower block whose rows and columns are in reverse
// order.
__kernel void trtri_block(const ulong n, const ulong upper, const ulong unit, IN(a), OUT(v)) {
    const ulong o = get_global_id(1) * (ulong)NB;
    const int size = (int)min((ulong)NB, n - o), j = get_global_id(0);
    if (j >= size) return;
    real x[NB];
    for (int i = 0; i < size; ++i) {
        const int row = upper ? size - 1 - i : i;
        real rest = i == j ? 1 : 0;
        if (i >= j) {
            for (int k = j; k < i; ++k) {
                const int col = upper ? size - 1 - k : k;
                rest -= AT(a, o + row, o + col) * x[k];
            }
            if (!unit) rest /= AT(a, o + row, o + row);
        }
        x[i] = rest;
        AT(v, o + row, o + (upper ? size - 1 - j : j)) = rest;
    }
}
