#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define real double
#define MIN_POSITIVE 2.2250738585072014e-308
#define LANES 8
#define MICRO 2
#define DEPTH 16
#define TRANS_A 0
#define TRANS_B 1
// Matrices are column-major: element (i, j) of matrix x is x[x_at + i + j·x_ld].
// Offsets have 64 bits, because a matrix may have more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
// C <- alpha·op(A)·op(B) + beta·C for many small matrices. Matrix g of operand x begins g·x_step elements after the first matrix.
//
// A work-group computes a tile of TILE x TILE elements of one matrix. Each of its LANES x LANES work-items computes MICRO x MICRO
// elements. A and B pass through local memory in slices of DEPTH terms. Slices hold zeros beyond the edges of the matrices, and
// elements beyond the edges of C are not stored. If beta = 0, the kernel does not read C.
#define TILE (LANES * MICRO)
#define ITEMS (LANES * LANES)
// one element of padding, so that neighbours along k lie in different banks
#define LINE (TILE + 1)
#define BATCH(x) x##_at, const ulong x##_ld, const ulong x##_step

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm_batched(const ulong m, const ulong n, const ulong k, const real alpha, __global const real *a, const ulong BATCH(a),
                  __global const real *b, const ulong BATCH(b), const real beta, __global real *c, const ulong BATCH(c)) {
    __local real slice_a[DEPTH * LINE], slice_b[DEPTH * LINE];
    const ulong tiles = (m + TILE - 1) / TILE, g = get_group_id(1);
    const ulong i0 = get_group_id(0) % tiles * TILE, j0 = get_group_id(0) / tiles * TILE;
    const int t = get_local_id(0), ti = t % LANES, tj = t / LANES;
    a += a_at + g * a_step;
    b += b_at + g * b_step;
    c += c_at + g * c_step;
    real sum[MICRO][MICRO];
    for (int x = 0; x < MICRO; ++x)
        for (int y = 0; y < MICRO; ++y) sum[x][y] = 0;
    for (ulong p0 = 0; p0 < k; p0 += DEPTH) {
        // neighbouring work-items read neighbouring memory
        for (int s = t; s < TILE * DEPTH; s += ITEMS) {
            const int i = TRANS_A ? s / DEPTH : s % TILE, p = TRANS_A ? s % DEPTH : s / TILE;
            const ulong row = i0 + i, term = p0 + p;
            slice_a[p * LINE + i] = row < m && term < k ? a[TRANS_A ? term + row * a_ld : row + term * a_ld] : 0;
        }
        for (int s = t; s < TILE * DEPTH; s += ITEMS) {
            const int j = TRANS_B ? s % TILE : s / DEPTH, p = TRANS_B ? s / TILE : s % DEPTH;
            const ulong col = j0 + j, term = p0 + p;
            slice_b[p * LINE + j] = col < n && term < k ? b[TRANS_B ? col + term * b_ld : term + col * b_ld] : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int p = 0; p < DEPTH; ++p)
            for (int x = 0; x < MICRO; ++x) {
                const real left = slice_a[p * LINE + ti + x * LANES];
                for (int y = 0; y < MICRO; ++y) sum[x][y] = fma(left, slice_b[p * LINE + tj + y * LANES], sum[x][y]);
            }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int y = 0; y < MICRO; ++y)
        for (int x = 0; x < MICRO; ++x) {
            const ulong i = i0 + ti + x * LANES, j = j0 + tj + y * LANES;
            if (i < m && j < n) {
                const real old = beta == 0 ? 0 : beta * c[i + j * c_ld];
                c[i + j * c_ld] = beta == 0 ? alpha * sum[x][y] : alpha * sum[x][y] + old;
            }
        }
}
