typedef float real;
#define MIN_POSITIVE 1.17549435e-38f
typedef float2 vec;
#define MWG 32
#define NWG 16
#define KWG 8
#define MR 4
#define NR 2
#define KR 2
#define MEMORY 1
#define STAGES 2
#define PAD 0
#define VW 2
#define ORDER 0
#define INDEXING 0
#define INLINE 0
#define RASTER 1
#define SPLIT 1
#define SWIZZLE 1
#define TRANS_A 1
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
//     op(A)(i, p) = a[a_at + p + i·a_ld],  op(B)(p, j) = b[b_at + p + j·b_ld]
//     slice_a[p·16 + (v ^ p·2 mod 16)] = vector v of the tile's rows of op(A) in term p of a slice, v < 16
//     slice_b[p·16 + (j ^ p/2·4 mod 16)] = op(B)(p, j0 + j) in term p of a slice, j < 16
//
// Both operands pass through workgroup memory in slices of KWG terms.
// Workgroup memory holds two slices of an operand: some invocations fill one slice while others still use the other slice.
// Invocations store neighbouring terms of A and of B to different lines of a slice.
// The operator ^ (exclusive or) permutes each line so that no two of these stores use the same bank of memory at once.
// If beta = 0, the kernel does not read C.

__kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void gemm_block(const size m, const size n, const size k, const real alpha, __global const real *restrict a, const size a_at, const size a_ld, __global const real *restrict b, const size b_at, const size b_ld, const real beta, __global real *restrict c, const size c_at, const size c_ld) {
    const struct Args args = { m, n, k, alpha, a_at, a_ld, b_at, b_ld, beta, c_at, c_ld };
    __local vec slice_a[256];
    __local real slice_b[256];
    const uint2 group = (uint2)(get_group_id(0), get_group_id(1));
    const uint2 own = (uint2)(get_local_id(0), get_local_id(1));
    const u32 ti = own.x;
    const u32 tj = own.y;
    const u32 i0 = group.x * MWG;
    const u32 j0 = group.y * NWG;
    const u32 t = ti + tj * 8u;
    // this invocation brings vector v_a_e of the tile in term p_a_e of each slice to place to_a_e
    const u32 v_a_0 = t / KWG;
    const u32 p_a_0 = t % KWG;
    const u32 row_0 = min(i0 + v_a_0 * 2u, args.m - 2u);
    const size from_a_0 = args.a_at + row_0 * args.a_ld + p_a_0;
    const u32 to_a_0 = p_a_0 * 16u + (v_a_0 ^ (p_a_0 * 2u % 16u));
    const u32 v_a_1 = (t + 64u) / KWG;
    const u32 p_a_1 = (t + 64u) % KWG;
    const u32 row_1 = min(i0 + v_a_1 * 2u, args.m - 2u);
    const size from_a_1 = args.a_at + row_1 * args.a_ld + p_a_1;
    const u32 to_a_1 = p_a_1 * 16u + (v_a_1 ^ (p_a_1 * 2u % 16u));
    // this invocation brings column j_b_e of the tile in term p_b_e of each slice to place to_b_e
    const u32 j_b_0 = t / KWG;
    const u32 p_b_0 = t % KWG;
    const u32 col_0 = min(j0 + j_b_0, args.n - 1u);
    const size from_b_0 = args.b_at + col_0 * args.b_ld + p_b_0;
    const u32 to_b_0 = p_b_0 * 16u + (j_b_0 ^ (p_b_0 / 2u * 4u % 16u));
    const u32 j_b_1 = (t + 64u) / KWG;
    const u32 p_b_1 = (t + 64u) % KWG;
    const u32 col_1 = min(j0 + j_b_1, args.n - 1u);
    const size from_b_1 = args.b_at + col_1 * args.b_ld + p_b_1;
    const u32 to_b_1 = p_b_1 * 16u + (j_b_1 ^ (p_b_1 / 2u * 4u % 16u));
    vec sum_0_0 = (vec)(0);
    vec sum_1_0 = (vec)(0);
    vec sum_0_1 = (vec)(0);
    vec sum_1_1 = (vec)(0);

    u32 used = 0u;
    for (u32 p0 = 0u; p0 < args.k; p0 += KWG) {
        const u32 depth = min(KWG, args.k - p0);
        const size at_a = p0;
        const size at_b = p0;
        if (depth == KWG) {
            slice_a[used * 128u + to_a_0] = (vec)(a[from_a_0 + at_a], a[from_a_0 + at_a + 1u * args.a_ld]);
            slice_a[used * 128u + to_a_1] = (vec)(a[from_a_1 + at_a], a[from_a_1 + at_a + 1u * args.a_ld]);
            slice_b[used * 128u + to_b_0] = b[from_b_0 + at_b];
            slice_b[used * 128u + to_b_1] = b[from_b_1 + at_b];
        } else {
            if (p_a_0 < depth) { slice_a[used * 128u + to_a_0] = (vec)(a[from_a_0 + at_a], a[from_a_0 + at_a + 1u * args.a_ld]); }
            if (p_a_1 < depth) { slice_a[used * 128u + to_a_1] = (vec)(a[from_a_1 + at_a], a[from_a_1 + at_a + 1u * args.a_ld]); }
            if (p_b_0 < depth) { slice_b[used * 128u + to_b_0] = b[from_b_0 + at_b]; }
            if (p_b_1 < depth) { slice_b[used * 128u + to_b_1] = b[from_b_1 + at_b]; }
        }
        workgroupBarrier();
        if (depth == KWG) {
            for (u32 p = 0u; p < KWG; p += KR) {
                const u32 at_a_0 = used * 128u + p * 16u;
                const u32 swizzled_a_0 = ti ^ (p * 2u % 16u);
                const u32 at_b_0 = used * 128u + p * 16u;
                const u32 swizzled_b_0 = tj ^ (p / 2u * 4u % 16u);
                const u32 at_a_1 = used * 128u + (p + 1u) * 16u;
                const u32 swizzled_a_1 = ti ^ ((p + 1u) * 2u % 16u);
                const u32 at_b_1 = used * 128u + (p + 1u) * 16u;
                const u32 swizzled_b_1 = tj ^ ((p + 1u) / 2u * 4u % 16u);
                const real b_0_0 = slice_b[at_b_0 + swizzled_b_0];
                const real b_0_1 = slice_b[at_b_0 + (swizzled_b_0 ^ 8u)];
                const vec a_0_0 = slice_a[at_a_0 + swizzled_a_0];
                sum_0_0 = fma(a_0_0, (vec)(b_0_0), sum_0_0);
                sum_0_1 = fma(a_0_0, (vec)(b_0_1), sum_0_1);
                const vec a_0_1 = slice_a[at_a_0 + (swizzled_a_0 ^ 8u)];
                sum_1_0 = fma(a_0_1, (vec)(b_0_0), sum_1_0);
                sum_1_1 = fma(a_0_1, (vec)(b_0_1), sum_1_1);
                const real b_1_0 = slice_b[at_b_1 + swizzled_b_1];
                const real b_1_1 = slice_b[at_b_1 + (swizzled_b_1 ^ 8u)];
                const vec a_1_0 = slice_a[at_a_1 + swizzled_a_1];
                sum_0_0 = fma(a_1_0, (vec)(b_1_0), sum_0_0);
                sum_0_1 = fma(a_1_0, (vec)(b_1_1), sum_0_1);
                const vec a_1_1 = slice_a[at_a_1 + (swizzled_a_1 ^ 8u)];
                sum_1_0 = fma(a_1_1, (vec)(b_1_0), sum_1_0);
                sum_1_1 = fma(a_1_1, (vec)(b_1_1), sum_1_1);
            }
        } else {
            for (u32 p = 0u; p < depth; p++) {
                const u32 at_a_0 = used * 128u + p * 16u;
                const u32 swizzled_a_0 = ti ^ (p * 2u % 16u);
                const u32 at_b_0 = used * 128u + p * 16u;
                const u32 swizzled_b_0 = tj ^ (p / 2u * 4u % 16u);
                const real b_0_0 = slice_b[at_b_0 + swizzled_b_0];
                const real b_0_1 = slice_b[at_b_0 + (swizzled_b_0 ^ 8u)];
                const vec a_0_0 = slice_a[at_a_0 + swizzled_a_0];
                sum_0_0 = fma(a_0_0, (vec)(b_0_0), sum_0_0);
                sum_0_1 = fma(a_0_0, (vec)(b_0_1), sum_0_1);
                const vec a_0_1 = slice_a[at_a_0 + (swizzled_a_0 ^ 8u)];
                sum_1_0 = fma(a_0_1, (vec)(b_0_0), sum_1_0);
                sum_1_1 = fma(a_0_1, (vec)(b_0_1), sum_1_1);
            }
        }
        used = 1u - used;
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
