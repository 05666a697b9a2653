typedef float real;
#define MIN_POSITIVE 1.17549435e-38f
typedef float2 vec;
#define MWG 32
#define NWG 16
#define KWG 2
#define MR 4
#define NR 2
#define KR 2
#define MEMORY 0
#define STAGES 1
#define PAD 0
#define VW 2
#define ORDER 0
#define INDEXING 0
#define INLINE 0
#define RASTER 1
#define SPLIT 1
#define SWIZZLE 0
#define TRANS_A 0
#define TRANS_B 0
typedef uint u32;
typedef ulong size;
typedef long stride;
#define u32(x) ((u32)(x))
#define real(x) ((real)(x))
#define stride(x) ((stride)(x))
#define abs fabs
#undef min
#define min(x, y) ((x) < (y) ? (x) : (y))
#undef max
#define max(x, y) ((x) > (y) ? (x) : (y))
#undef select
#define select(no, yes, condition) ((condition) ? (yes) : (no))
#define workgroupBarrier() barrier(CLK_LOCAL_MEM_FENCE)
#define storageBarrier() barrier(CLK_GLOBAL_MEM_FENCE)
#ifndef FP_FAST_FMAF
#define fma(x, y, z) ((x) * (y) + (z))
#endif
struct Args { size m; size n; size k; real alpha; size a_at; size a_ld; size b_at; size b_ld; real beta; size c_at; size c_ld; };

vec old(__global const real *restrict a, __global const real *restrict b, __global real *restrict c, const struct Args args, u32 start, u32 j);
void store(__global const real *restrict a, __global const real *restrict b, __global real *restrict c, const struct Args args, u32 start, u32 j, vec sum, vec old);
// C <- alpha·op(A)·op(B) + beta·C. A workgroup computes a tile of MWG x NWG elements, and each invocation MR x NR elements of it.
//
// Invocation (ti, tj) of the tile at (i0, j0) computes rows row_x, row_x + 1, ... in column col_y for each x < 2 and y < 2:
//     start_x = i0 + (ti + 8·x)·2,  row_x = min(start_x, m - 2),  col_y = min(j0 + tj + 8·y, n - 1)
// A vector or a column beyond the edge thus repeats elements inside the matrices. The kernel does not store its results.
//     op(A)(i, p) = a[a_at + i + p·a_ld],  op(B)(p, j) = b[b_at + p + j·b_ld]
//
// Invocations read each term of both operands from global memory right before they multiply it.
// If beta = 0, the kernel does not read C.

__kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void gemm_block(const size m, const size n, const size k, const real alpha, __global const real *restrict a, const size a_at, const size a_ld, __global const real *restrict b, const size b_at, const size b_ld, const real beta, __global real *restrict c, const size c_at, const size c_ld) {
    const struct Args args = { m, n, k, alpha, a_at, a_ld, b_at, b_ld, beta, c_at, c_ld };
    const uint2 group = (uint2)(get_group_id(0), get_group_id(1));
    const uint2 own = (uint2)(get_local_id(0), get_local_id(1));
    const u32 ti = own.x;
    const u32 tj = own.y;
    const u32 i0 = group.x * MWG;
    const u32 j0 = group.y * NWG;
    const u32 row_0 = min(i0 + ti * 2u, args.m - 2u);
    const size from_a_0 = args.a_at + row_0;
    const u32 row_1 = min(i0 + (ti + 8u) * 2u, args.m - 2u);
    const size from_a_1 = args.a_at + row_1;
    const u32 col_0 = min(j0 + tj, args.n - 1u);
    const size from_b_0 = args.b_at + col_0 * args.b_ld;
    const u32 col_1 = min(j0 + tj + 8u, args.n - 1u);
    const size from_b_1 = args.b_at + col_1 * args.b_ld;
    vec sum_0_0 = (vec)(0);
    vec sum_1_0 = (vec)(0);
    vec sum_0_1 = (vec)(0);
    vec sum_1_1 = (vec)(0);

    u32 p = 0u;
    for (; p + KR <= args.k; p += KR) {
        const size at_a_0 = p * args.a_ld;
        const size at_b_0 = p;
        const size at_a_1 = (p + 1u) * args.a_ld;
        const size at_b_1 = (p + 1u);
        const real b_0_0 = b[from_b_0 + at_b_0];
        const real b_0_1 = b[from_b_1 + at_b_0];
        const vec a_0_0 = vload2(0, a + from_a_0 + at_a_0);
        sum_0_0 = fma(a_0_0, (vec)(b_0_0), sum_0_0);
        sum_0_1 = fma(a_0_0, (vec)(b_0_1), sum_0_1);
        const vec a_0_1 = vload2(0, a + from_a_1 + at_a_0);
        sum_1_0 = fma(a_0_1, (vec)(b_0_0), sum_1_0);
        sum_1_1 = fma(a_0_1, (vec)(b_0_1), sum_1_1);
        const real b_1_0 = b[from_b_0 + at_b_1];
        const real b_1_1 = b[from_b_1 + at_b_1];
        const vec a_1_0 = vload2(0, a + from_a_0 + at_a_1);
        sum_0_0 = fma(a_1_0, (vec)(b_1_0), sum_0_0);
        sum_0_1 = fma(a_1_0, (vec)(b_1_1), sum_0_1);
        const vec a_1_1 = vload2(0, a + from_a_1 + at_a_1);
        sum_1_0 = fma(a_1_1, (vec)(b_1_0), sum_1_0);
        sum_1_1 = fma(a_1_1, (vec)(b_1_1), sum_1_1);
    }
    for (; p < args.k; p++) {
        const size at_a_0 = p * args.a_ld;
        const size at_b_0 = p;
        const real b_0_0 = b[from_b_0 + at_b_0];
        const real b_0_1 = b[from_b_1 + at_b_0];
        const vec a_0_0 = vload2(0, a + from_a_0 + at_a_0);
        sum_0_0 = fma(a_0_0, (vec)(b_0_0), sum_0_0);
        sum_0_1 = fma(a_0_0, (vec)(b_0_1), sum_0_1);
        const vec a_0_1 = vload2(0, a + from_a_1 + at_a_0);
        sum_1_0 = fma(a_0_1, (vec)(b_0_0), sum_1_0);
        sum_1_1 = fma(a_0_1, (vec)(b_0_1), sum_1_1);
    }
    // Several old elements are read before the first of them is replaced. Otherwise each read would wait for the read before, because the compiler
    // keeps the order of reads and writes.
    const vec old_0_0 = old(a, b, c, args, i0 + ti * 2u, j0 + tj);
    const vec old_1_0 = old(a, b, c, args, i0 + (ti + 8u) * 2u, j0 + tj);
    const vec old_0_1 = old(a, b, c, args, i0 + ti * 2u, j0 + tj + 8u);
    const vec old_1_1 = old(a, b, c, args, i0 + (ti + 8u) * 2u, j0 + tj + 8u);
    store(a, b, c, args, i0 + ti * 2u, j0 + tj, sum_0_0, old_0_0);
    store(a, b, c, args, i0 + (ti + 8u) * 2u, j0 + tj, sum_1_0, old_1_0);
    store(a, b, c, args, i0 + ti * 2u, j0 + tj + 8u, sum_0_1, old_0_1);
    store(a, b, c, args, i0 + (ti + 8u) * 2u, j0 + tj + 8u, sum_1_1, old_1_1);
}

// Reads column j of C in the vector of rows that begins at `start`. Elements above `start` or outside C are zero, and all elements are zero if
// beta = 0.
vec old(__global const real *restrict a, __global const real *restrict b, __global real *restrict c, const struct Args args, u32 start, u32 j) {
    vec elements = (vec)(0);
    if (args.beta == real(0) || j >= args.n) { return elements; }
    const u32 row = min(start, args.m - 2u);
    const size at = args.c_at + row + j * args.c_ld;
    if (row >= start) { elements.x = c[at]; }
    if (row + 1u >= start) { elements.y = c[at + 1u]; }
    return elements;
}

// Computes column j of C in the vector of rows that begins at `start`, and stores the elements at `start` and below it.
void store(__global const real *restrict a, __global const real *restrict b, __global real *restrict c, const struct Args args, u32 start, u32 j, vec sum, vec old) {
    if (j >= args.n) { return; }
    const u32 row = min(start, args.m - 2u);
    const size at = args.c_at + row + j * args.c_ld;
    vec elements = args.alpha * sum;
    if (args.beta != real(0)) { elements = elements + args.beta * old; }
    // the rows above `start` belong to another vector
    if (row >= start) { c[at] = elements.x; }
    if (row + 1u >= start) { c[at + 1u] = elements.y; }
}
