#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#define MIN_POSITIVE 2.2250738585072014e-308
typedef double4 vec;
#define MWG 32
#define NWG 16
#define KWG 8
#define MR 4
#define NR 2
#define KR 2
#define MEMORY 4
#define STAGES 2
#define PAD 1
#define VW 4
#define ORDER 0
#define INDEXING 1
#define INLINE 1
#define RASTER 4
#define SPLIT 1
#define SWIZZLE 0
#define TRANS_A 0
#define TRANS_B 1
#define M 37
#define N 29
#define K 53
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
struct Args { size m; size n; size k; real alpha; size a_at; size a_ld; size b_at; size b_ld; real beta; size c_at; size c_ld; };

vec old(__global const real *restrict a, __global const real *restrict b, __global real *restrict c, const struct Args args, u32 start, u32 j);
void store(__global const real *restrict a, __global const real *restrict b, __global real *restrict c, const struct Args args, u32 start, u32 j, vec sum, vec old);
// C <- alpha·op(A)·op(B) + beta·C. A workgroup computes a tile of MWG x NWG elements, and each invocation MR x NR elements of it.
//
// Invocation (ti, tj) of the tile at (i0, j0) computes rows row_x, row_x + 1, ... in column col_y for each x < 1 and y < 2:
//     start_x = i0 + (ti + 8·x)·4,  row_x = min(start_x, m - 4),  col_y = min(j0 + tj + 8·y, n - 1)
// A vector or a column beyond the edge thus repeats elements inside the matrices. The kernel does not store its results.
//     op(A)(i, p) = a[a_at + i + p·a_ld],  op(B)(p, j) = b[b_at + j + p·b_ld]
//     slice_a[p·9 + v] = vector v of the tile's rows of op(A) in term p of a slice, v < 8
//     slice_b[p·17 + j] = op(B)(p, j0 + j) in term p of a slice, j < 16
//
// Both operands pass through workgroup memory in slices of KWG terms. Invocations load the next slice into registers
// while they use a slice, and read KR terms of a slice into registers before they multiply them.
// Workgroup memory holds two slices of an operand: some invocations fill one slice while others still use the other slice.
// If beta = 0, the kernel does not read C.

__kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void gemm_block(const size m, const size n, const size k, const real alpha, __global const real *restrict a, const size a_at, const size a_ld, __global const real *restrict b, const size b_at, const size b_ld, const real beta, __global real *restrict c, const size c_at, const size c_ld) {
    const struct Args args = { m, n, k, alpha, a_at, a_ld, b_at, b_ld, beta, c_at, c_ld };
    __local vec slice_a[144];
    __local real slice_b[272];
    const uint2 item = (uint2)(get_global_id(0), get_global_id(1));
    const u32 ti = item.x % 8u;
    const u32 tj = item.y % 8u;
    // workgroups take the tiles in stripes of RASTER columns of tiles, row by row within a stripe
    const size tiles_m = (M + MWG - 1u) / MWG;
    const size tiles_n = (N + NWG - 1u) / NWG;
    const size number = item.x / 8u + item.y / 8u * tiles_m;
    const size stripe = number / (RASTER * tiles_m);
    const size in_stripe = number % (RASTER * tiles_m);
    const size width = min(RASTER, tiles_n - stripe * RASTER);
    const u32 i0 = in_stripe / width * MWG;
    const u32 j0 = (stripe * RASTER + in_stripe % width) * NWG;
    const u32 t = ti + tj * 8u;
    // this invocation brings vector v_a_e of the tile in term p_a_e of each slice to place to_a_e
    const u32 v_a_0 = t % 8u;
    const u32 p_a_0 = t / 8u;
    const u32 row_0 = min(i0 + v_a_0 * 4u, M - 4u);
    const size from_a_0 = args.a_at + row_0 + p_a_0 * args.a_ld;
    const u32 to_a_0 = p_a_0 * 9u + v_a_0;
    vec next_a_0 = (vec)(0);
    // this invocation brings column j_b_e of the tile in term p_b_e of each slice to place to_b_e
    const u32 j_b_0 = t % NWG;
    const u32 p_b_0 = t / NWG;
    const u32 col_0 = min(j0 + j_b_0, N - 1u);
    const size from_b_0 = args.b_at + col_0 + p_b_0 * args.b_ld;
    const u32 to_b_0 = p_b_0 * 17u + j_b_0;
    real next_b_0 = (real)(0);
    const u32 j_b_1 = (t + 64u) % NWG;
    const u32 p_b_1 = (t + 64u) / NWG;
    const u32 col_1 = min(j0 + j_b_1, N - 1u);
    const size from_b_1 = args.b_at + col_1 + p_b_1 * args.b_ld;
    const u32 to_b_1 = p_b_1 * 17u + j_b_1;
    real next_b_1 = (real)(0);
    vec sum_0_0 = (vec)(0);
    vec sum_0_1 = (vec)(0);

    u32 used = 0u;
    {
        const u32 depth = min(KWG, K);
        const size at_a = 0u * args.a_ld;
        const size at_b = 0u * args.b_ld;
        if (depth == KWG) {
            next_a_0 = vload4(0, a + from_a_0 + at_a);
            next_b_0 = b[from_b_0 + at_b];
            next_b_1 = b[from_b_1 + at_b];
        } else {
            if (p_a_0 < depth) { next_a_0 = vload4(0, a + from_a_0 + at_a); }
            if (p_b_0 < depth) { next_b_0 = b[from_b_0 + at_b]; }
            if (p_b_1 < depth) { next_b_1 = b[from_b_1 + at_b]; }
        }
    }
    for (u32 p0 = 0u; p0 < K; p0 += KWG) {
        const u32 depth = min(KWG, K - p0);
        {
            slice_a[used * 72u + to_a_0] = next_a_0;
            slice_b[used * 136u + to_b_0] = next_b_0;
            slice_b[used * 136u + to_b_1] = next_b_1;
        }
        workgroupBarrier();
        if (p0 + KWG < K) {
            const u32 first = p0 + KWG;
            const u32 depth = min(KWG, K - first);
            const size at_a = first * args.a_ld;
            const size at_b = first * args.b_ld;
            if (depth == KWG) {
                next_a_0 = vload4(0, a + from_a_0 + at_a);
                next_b_0 = b[from_b_0 + at_b];
                next_b_1 = b[from_b_1 + at_b];
            } else {
                if (p_a_0 < depth) { next_a_0 = vload4(0, a + from_a_0 + at_a); }
                if (p_b_0 < depth) { next_b_0 = b[from_b_0 + at_b]; }
                if (p_b_1 < depth) { next_b_1 = b[from_b_1 + at_b]; }
            }
        }
        if (depth == KWG) {
            for (u32 p = 0u; p < KWG; p += KR) {
                const u32 at_a_0 = used * 72u + ti + p * 9u;
                const u32 at_b_0 = used * 136u + tj + p * 17u;
                const u32 at_a_1 = used * 72u + ti + (p + 1u) * 9u;
                const u32 at_b_1 = used * 136u + tj + (p + 1u) * 17u;
                const vec a_0_0 = slice_a[at_a_0];
                const real b_0_0 = slice_b[at_b_0];
                const real b_0_1 = slice_b[at_b_0 + 8u];
                const vec a_1_0 = slice_a[at_a_1];
                const real b_1_0 = slice_b[at_b_1];
                const real b_1_1 = slice_b[at_b_1 + 8u];
                sum_0_0 = fma(a_0_0, (vec)(b_0_0), sum_0_0);
                sum_0_1 = fma(a_0_0, (vec)(b_0_1), sum_0_1);
                sum_0_0 = fma(a_1_0, (vec)(b_1_0), sum_0_0);
                sum_0_1 = fma(a_1_0, (vec)(b_1_1), sum_0_1);
            }
        } else {
            for (u32 p = 0u; p < depth; p++) {
                const u32 at_a_0 = used * 72u + ti + p * 9u;
                const u32 at_b_0 = used * 136u + tj + p * 17u;
                const vec a_0_0 = slice_a[at_a_0];
                const real b_0_0 = slice_b[at_b_0];
                const real b_0_1 = slice_b[at_b_0 + 8u];
                sum_0_0 = fma(a_0_0, (vec)(b_0_0), sum_0_0);
                sum_0_1 = fma(a_0_0, (vec)(b_0_1), sum_0_1);
            }
        }
        used = 1u - used;
    }
    // Several old elements are read before the first of them is replaced. Otherwise each read would wait for the read before, because the compiler
    // keeps the order of reads and writes.
    const vec old_0_0 = old(a, b, c, args, i0 + ti * 4u, j0 + tj);
    const vec old_0_1 = old(a, b, c, args, i0 + ti * 4u, j0 + tj + 8u);
    store(a, b, c, args, i0 + ti * 4u, j0 + tj, sum_0_0, old_0_0);
    store(a, b, c, args, i0 + ti * 4u, j0 + tj + 8u, sum_0_1, old_0_1);
}

// Reads column j of C in the vector of rows that begins at `start`. Elements above `start` or outside C are zero, and all elements are zero if
// beta = 0.
vec old(__global const real *restrict a, __global const real *restrict b, __global real *restrict c, const struct Args args, u32 start, u32 j) {
    vec elements = (vec)(0);
    if (args.beta == real(0) || j >= N) { return elements; }
    const u32 row = min(start, M - 4u);
    const size at = args.c_at + row + j * args.c_ld;
    if (row >= start) { elements.x = c[at]; }
    if (row + 1u >= start) { elements.y = c[at + 1u]; }
    if (row + 2u >= start) { elements.z = c[at + 2u]; }
    if (row + 3u >= start) { elements.w = c[at + 3u]; }
    return elements;
}

// Computes column j of C in the vector of rows that begins at `start`, and stores the elements at `start` and below it.
void store(__global const real *restrict a, __global const real *restrict b, __global real *restrict c, const struct Args args, u32 start, u32 j, vec sum, vec old) {
    if (j >= N) { return; }
    const u32 row = min(start, M - 4u);
    const size at = args.c_at + row + j * args.c_ld;
    vec elements = args.alpha * sum;
    if (args.beta != real(0)) { elements = elements + args.beta * old; }
    // the rows above `start` belong to another vector
    if (row >= start) { c[at] = elements.x; }
    if (row + 1u >= start) { c[at + 1u] = elements.y; }
    if (row + 2u >= start) { c[at + 2u] = elements.z; }
    if (row + 3u >= start) { c[at + 3u] = elements.w; }
}
