#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#define MIN_POSITIVE 2.2250738585072014e-308
typedef double2 vec;
#define as_vec as_double2
#define MWG 32
#define NWG 32
#define KWG 4
#define MR 4
#define NR 8
#define LANES_N 4
#define ZIGZAG 1
#define AHEAD 0
#define IMAGES 1
#define TRANS_B 1
#define VEC_C 0
#define V 2
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

vec old(__read_only image1d_buffer_t a, __read_only image1d_buffer_t b, __global real *restrict c, const struct Args args, u32 tile, u32 i, u32 col);
void store(__read_only image1d_buffer_t a, __read_only image1d_buffer_t b, __global real *restrict c, const struct Args args, u32 tile, u32 i, u32 col, vec sum, vec old);
// C <- alpha·A·op(B) + beta·C for operands in whole vectors. The extent k is a multiple of KWG.
// Positions and leading dimensions of A and B are multiples of the vector length.
// Elements that fill the last vector follow each line of A and of B. A vector has 2 elements.
//     A(i, p) = element a_at + i + p·a_ld of a,  op(B)(p, j) = element b_at + j + p·b_ld of b
// The kernel reads a and b as images. Pixel q of an image holds the 2 elements from element 2·q of its buffer on.
//
// A workgroup computes a tile of MWG x NWG elements. The invocations form strips of 8 x 4 = 32.
// Each invocation computes MR x NR elements: vectors of rows that are 8 vectors apart, in groups of as many
// columns as a vector has elements. A and op(B) pass through workgroup memory in slices of KWG terms along k. While the invocations
// use one slice, they load the next slice into registers. The kernel text unrolls the loop over a slice. Invocations
// beyond an edge read elements inside the matrices and store nothing. If beta = 0, the kernel does not read C.
// the slices of B, followed by the slices of A, each stored in lines of vectors along the side of the tile

__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void gemm_vector(const size m, const size n, const size k, const real alpha, __read_only image1d_buffer_t a, const size a_at, const size a_ld, __read_only image1d_buffer_t b, const size b_at, const size b_ld, const real beta, __global real *restrict c, const size c_at, const size c_ld) {
    const struct Args args = { m, n, k, alpha, a_at, a_ld, b_at, b_ld, beta, c_at, c_ld };
    __local vec slices[256];
    const uint2 group = (uint2)(get_group_id(0), get_group_id(1));
    const u32 t = get_local_id(0) + get_local_id(1) * get_local_size(0);
    const size ld_a = args.a_ld / 2u;
    const size ld_b = args.b_ld / 2u;
    const u32 lane = t % 32u;
    const u32 strip = t / 32u;
    const u32 lane_n = lane / 16u * 2u + lane % 2u;
    const u32 lane_m = lane / 2u % 8u;
    const u32 strip_m = strip % 1u;
    const u32 strip_n = strip / 1u;

    // this invocation reads vector row_a of the tile in line p_a of each slice of A
    const u32 row_a = t % 16u;
    const u32 p_a = t / 16u;
    size from_a = args.a_at / 2u + min(group.x * 16u + row_a, (args.m - 1u) / 2u) + p_a * ld_a;
    const size step_a = KWG * ld_a;
    const u32 to_a = 64u + p_a * 16u + row_a;
    const u32 col_b = t % 16u;
    const u32 p_b = t / 16u;
    size from_b = args.b_at / 2u + min(group.y * 16u + col_b, (args.n - 1u) / 2u) + p_b * ld_b;
    const size step_b = KWG * ld_b;
    const u32 to_b = p_b * 16u + col_b;
    const size next_b_0 = 0u * ld_b;
    const size next_b_1 = 2u * ld_b;
    vec sum_0_0 = (vec)(real(0));
    vec sum_1_0 = (vec)(real(0));
    vec sum_0_1 = (vec)(real(0));
    vec sum_1_1 = (vec)(real(0));
    vec sum_0_2 = (vec)(real(0));
    vec sum_1_2 = (vec)(real(0));
    vec sum_0_3 = (vec)(real(0));
    vec sum_1_3 = (vec)(real(0));
    vec sum_0_4 = (vec)(real(0));
    vec sum_1_4 = (vec)(real(0));
    vec sum_0_5 = (vec)(real(0));
    vec sum_1_5 = (vec)(real(0));
    vec sum_0_6 = (vec)(real(0));
    vec sum_1_6 = (vec)(real(0));
    vec sum_0_7 = (vec)(real(0));
    vec sum_1_7 = (vec)(real(0));

    const u32 read_a = 64u + strip_m * 16u + lane_m;
    const u32 read_b_0 = strip_n * 16u + (lane_n ^ 0u);
    vec load_a_0 = (vec)(0);
    vec load_a_1 = (vec)(0);
    vec load_b_0 = (vec)(0);
    vec load_b_1 = (vec)(0);
    load_a_0 = as_vec(read_imageui(a, (int)(from_a + 0u * ld_a)));
    load_a_1 = as_vec(read_imageui(a, (int)(from_a + 2u * ld_a)));
    load_b_0 = as_vec(read_imageui(b, (int)(from_b + next_b_0)));
    load_b_1 = as_vec(read_imageui(b, (int)(from_b + next_b_1)));
    // after the last slice, the same slice is fetched again and not used
    const u32 count = args.k / KWG;
    from_a += select(0u, step_a, 1u < count);
    from_b += select(0u, step_b, 1u < count);
    slices[0u + to_a + 0u] = load_a_0;
    slices[0u + to_a + 32u] = load_a_1;
    slices[0u + to_b + 0u] = load_b_0;
    slices[0u + to_b + 32u] = load_b_1;
    workgroupBarrier();
    u32 used = 0u;
    for (u32 s = 1u; s <= count; s++) {
        load_a_0 = as_vec(read_imageui(a, (int)(from_a + 0u * ld_a)));
        load_a_1 = as_vec(read_imageui(a, (int)(from_a + 2u * ld_a)));
        load_b_0 = as_vec(read_imageui(b, (int)(from_b + next_b_0)));
        load_b_1 = as_vec(read_imageui(b, (int)(from_b + next_b_1)));
        from_a += select(0u, step_a, s + 1u < count);
        from_b += select(0u, step_b, s + 1u < count);
        const vec b_0_0 = slices[used + read_b_0 + 0u];
        const vec b_0_1 = slices[used + read_b_0 + 4u];
        const vec b_0_2 = slices[used + read_b_0 + 8u];
        const vec b_0_3 = slices[used + read_b_0 + 12u];
        const vec a_0_0 = slices[used + read_a + 0u];
        const vec a_0_1 = slices[used + read_a + 8u];
        sum_0_0 = fma((vec)(b_0_0.x), a_0_0, sum_0_0);
        sum_1_0 = fma((vec)(b_0_0.x), a_0_1, sum_1_0);
        sum_0_1 = fma((vec)(b_0_0.y), a_0_0, sum_0_1);
        sum_1_1 = fma((vec)(b_0_0.y), a_0_1, sum_1_1);
        sum_0_2 = fma((vec)(b_0_1.x), a_0_0, sum_0_2);
        sum_1_2 = fma((vec)(b_0_1.x), a_0_1, sum_1_2);
        sum_0_3 = fma((vec)(b_0_1.y), a_0_0, sum_0_3);
        sum_1_3 = fma((vec)(b_0_1.y), a_0_1, sum_1_3);
        sum_0_4 = fma((vec)(b_0_2.x), a_0_0, sum_0_4);
        sum_1_4 = fma((vec)(b_0_2.x), a_0_1, sum_1_4);
        sum_0_5 = fma((vec)(b_0_2.y), a_0_0, sum_0_5);
        sum_1_5 = fma((vec)(b_0_2.y), a_0_1, sum_1_5);
        sum_0_6 = fma((vec)(b_0_3.x), a_0_0, sum_0_6);
        sum_1_6 = fma((vec)(b_0_3.x), a_0_1, sum_1_6);
        sum_0_7 = fma((vec)(b_0_3.y), a_0_0, sum_0_7);
        sum_1_7 = fma((vec)(b_0_3.y), a_0_1, sum_1_7);
        const vec b_1_0 = slices[used + read_b_0 + 16u];
        const vec b_1_1 = slices[used + read_b_0 + 20u];
        const vec b_1_2 = slices[used + read_b_0 + 24u];
        const vec b_1_3 = slices[used + read_b_0 + 28u];
        const vec a_1_0 = slices[used + read_a + 16u];
        const vec a_1_1 = slices[used + read_a + 24u];
        sum_0_0 = fma((vec)(b_1_0.x), a_1_0, sum_0_0);
        sum_1_0 = fma((vec)(b_1_0.x), a_1_1, sum_1_0);
        sum_0_1 = fma((vec)(b_1_0.y), a_1_0, sum_0_1);
        sum_1_1 = fma((vec)(b_1_0.y), a_1_1, sum_1_1);
        sum_0_2 = fma((vec)(b_1_1.x), a_1_0, sum_0_2);
        sum_1_2 = fma((vec)(b_1_1.x), a_1_1, sum_1_2);
        sum_0_3 = fma((vec)(b_1_1.y), a_1_0, sum_0_3);
        sum_1_3 = fma((vec)(b_1_1.y), a_1_1, sum_1_3);
        sum_0_4 = fma((vec)(b_1_2.x), a_1_0, sum_0_4);
        sum_1_4 = fma((vec)(b_1_2.x), a_1_1, sum_1_4);
        sum_0_5 = fma((vec)(b_1_2.y), a_1_0, sum_0_5);
        sum_1_5 = fma((vec)(b_1_2.y), a_1_1, sum_1_5);
        sum_0_6 = fma((vec)(b_1_3.x), a_1_0, sum_0_6);
        sum_1_6 = fma((vec)(b_1_3.x), a_1_1, sum_1_6);
        sum_0_7 = fma((vec)(b_1_3.y), a_1_0, sum_0_7);
        sum_1_7 = fma((vec)(b_1_3.y), a_1_1, sum_1_7);
        const vec b_2_0 = slices[used + read_b_0 + 32u];
        const vec b_2_1 = slices[used + read_b_0 + 36u];
        const vec b_2_2 = slices[used + read_b_0 + 40u];
        const vec b_2_3 = slices[used + read_b_0 + 44u];
        const vec a_2_0 = slices[used + read_a + 32u];
        const vec a_2_1 = slices[used + read_a + 40u];
        sum_0_0 = fma((vec)(b_2_0.x), a_2_0, sum_0_0);
        sum_1_0 = fma((vec)(b_2_0.x), a_2_1, sum_1_0);
        sum_0_1 = fma((vec)(b_2_0.y), a_2_0, sum_0_1);
        sum_1_1 = fma((vec)(b_2_0.y), a_2_1, sum_1_1);
        sum_0_2 = fma((vec)(b_2_1.x), a_2_0, sum_0_2);
        sum_1_2 = fma((vec)(b_2_1.x), a_2_1, sum_1_2);
        sum_0_3 = fma((vec)(b_2_1.y), a_2_0, sum_0_3);
        sum_1_3 = fma((vec)(b_2_1.y), a_2_1, sum_1_3);
        sum_0_4 = fma((vec)(b_2_2.x), a_2_0, sum_0_4);
        sum_1_4 = fma((vec)(b_2_2.x), a_2_1, sum_1_4);
        sum_0_5 = fma((vec)(b_2_2.y), a_2_0, sum_0_5);
        sum_1_5 = fma((vec)(b_2_2.y), a_2_1, sum_1_5);
        sum_0_6 = fma((vec)(b_2_3.x), a_2_0, sum_0_6);
        sum_1_6 = fma((vec)(b_2_3.x), a_2_1, sum_1_6);
        sum_0_7 = fma((vec)(b_2_3.y), a_2_0, sum_0_7);
        sum_1_7 = fma((vec)(b_2_3.y), a_2_1, sum_1_7);
        const vec b_3_0 = slices[used + read_b_0 + 48u];
        const vec b_3_1 = slices[used + read_b_0 + 52u];
        const vec b_3_2 = slices[used + read_b_0 + 56u];
        const vec b_3_3 = slices[used + read_b_0 + 60u];
        const vec a_3_0 = slices[used + read_a + 48u];
        const vec a_3_1 = slices[used + read_a + 56u];
        sum_0_0 = fma((vec)(b_3_0.x), a_3_0, sum_0_0);
        sum_1_0 = fma((vec)(b_3_0.x), a_3_1, sum_1_0);
        sum_0_1 = fma((vec)(b_3_0.y), a_3_0, sum_0_1);
        sum_1_1 = fma((vec)(b_3_0.y), a_3_1, sum_1_1);
        sum_0_2 = fma((vec)(b_3_1.x), a_3_0, sum_0_2);
        sum_1_2 = fma((vec)(b_3_1.x), a_3_1, sum_1_2);
        sum_0_3 = fma((vec)(b_3_1.y), a_3_0, sum_0_3);
        sum_1_3 = fma((vec)(b_3_1.y), a_3_1, sum_1_3);
        sum_0_4 = fma((vec)(b_3_2.x), a_3_0, sum_0_4);
        sum_1_4 = fma((vec)(b_3_2.x), a_3_1, sum_1_4);
        sum_0_5 = fma((vec)(b_3_2.y), a_3_0, sum_0_5);
        sum_1_5 = fma((vec)(b_3_2.y), a_3_1, sum_1_5);
        sum_0_6 = fma((vec)(b_3_3.x), a_3_0, sum_0_6);
        sum_1_6 = fma((vec)(b_3_3.x), a_3_1, sum_1_6);
        sum_0_7 = fma((vec)(b_3_3.y), a_3_0, sum_0_7);
        sum_1_7 = fma((vec)(b_3_3.y), a_3_1, sum_1_7);
        slices[128u - used + to_a + 0u] = load_a_0;
        slices[128u - used + to_a + 32u] = load_a_1;
        slices[128u - used + to_b + 0u] = load_b_0;
        slices[128u - used + to_b + 32u] = load_b_1;
        used = 128u - used;
        workgroupBarrier();
    }

    const u32 i = group.x * 16u + strip_m * 16u + lane_m;
    const u32 j = strip_n * 32u + lane_n * 2u;
    // Several old vectors are read before the first of them is replaced. Otherwise each read would wait for the read before, because the compiler
    // keeps the order of reads and writes.
    const vec old_0_0 = old(a, b, c, args, group.y, i + 0u, j + 0u);
    const vec old_1_0 = old(a, b, c, args, group.y, i + 8u, j + 0u);
    const vec old_0_1 = old(a, b, c, args, group.y, i + 0u, j + 1u);
    const vec old_1_1 = old(a, b, c, args, group.y, i + 8u, j + 1u);
    const vec old_0_2 = old(a, b, c, args, group.y, i + 0u, j + 8u);
    const vec old_1_2 = old(a, b, c, args, group.y, i + 8u, j + 8u);
    const vec old_0_3 = old(a, b, c, args, group.y, i + 0u, j + 9u);
    const vec old_1_3 = old(a, b, c, args, group.y, i + 8u, j + 9u);
    store(a, b, c, args, group.y, i + 0u, j + 0u, sum_0_0, old_0_0);
    store(a, b, c, args, group.y, i + 8u, j + 0u, sum_1_0, old_1_0);
    store(a, b, c, args, group.y, i + 0u, j + 1u, sum_0_1, old_0_1);
    store(a, b, c, args, group.y, i + 8u, j + 1u, sum_1_1, old_1_1);
    store(a, b, c, args, group.y, i + 0u, j + 8u, sum_0_2, old_0_2);
    store(a, b, c, args, group.y, i + 8u, j + 8u, sum_1_2, old_1_2);
    store(a, b, c, args, group.y, i + 0u, j + 9u, sum_0_3, old_0_3);
    store(a, b, c, args, group.y, i + 8u, j + 9u, sum_1_3, old_1_3);
    const vec old_0_4 = old(a, b, c, args, group.y, i + 0u, j + 16u);
    const vec old_1_4 = old(a, b, c, args, group.y, i + 8u, j + 16u);
    const vec old_0_5 = old(a, b, c, args, group.y, i + 0u, j + 17u);
    const vec old_1_5 = old(a, b, c, args, group.y, i + 8u, j + 17u);
    const vec old_0_6 = old(a, b, c, args, group.y, i + 0u, j + 24u);
    const vec old_1_6 = old(a, b, c, args, group.y, i + 8u, j + 24u);
    const vec old_0_7 = old(a, b, c, args, group.y, i + 0u, j + 25u);
    const vec old_1_7 = old(a, b, c, args, group.y, i + 8u, j + 25u);
    store(a, b, c, args, group.y, i + 0u, j + 16u, sum_0_4, old_0_4);
    store(a, b, c, args, group.y, i + 8u, j + 16u, sum_1_4, old_1_4);
    store(a, b, c, args, group.y, i + 0u, j + 17u, sum_0_5, old_0_5);
    store(a, b, c, args, group.y, i + 8u, j + 17u, sum_1_5, old_1_5);
    store(a, b, c, args, group.y, i + 0u, j + 24u, sum_0_6, old_0_6);
    store(a, b, c, args, group.y, i + 8u, j + 24u, sum_1_6, old_1_6);
    store(a, b, c, args, group.y, i + 0u, j + 25u, sum_0_7, old_0_7);
    store(a, b, c, args, group.y, i + 8u, j + 25u, sum_1_7, old_1_7);
}

// Reads vector i of C in column `col` of a tile. The elements are zero if beta = 0 or if they lie outside.
vec old(__read_only image1d_buffer_t a, __read_only image1d_buffer_t b, __global real *restrict c, const struct Args args, u32 tile, u32 i, u32 col) {
    vec elements = (vec)(0);
    const u32 j = tile * NWG + col;
    if (i * 2u >= args.m || j >= args.n) { return elements; }
    const size at = args.c_at + i * 2u + j * args.c_ld;
    if (args.beta == real(0)) { return elements; }
    if (i * 2u + 0u < args.m) { elements.x = c[at + 0u]; }
    if (i * 2u + 1u < args.m) { elements.y = c[at + 1u]; }
    return elements;
}

// Computes vector i of C in column `col` of a tile from the vector's sums of products and the old vector, and stores the vector.
void store(__read_only image1d_buffer_t a, __read_only image1d_buffer_t b, __global real *restrict c, const struct Args args, u32 tile, u32 i, u32 col, vec sum, vec old) {
    const u32 j = tile * NWG + col;
    if (i * 2u >= args.m || j >= args.n) { return; }
    const size at = args.c_at + i * 2u + j * args.c_ld;
    vec elements = args.alpha * sum;
    if (args.beta != real(0)) { elements = elements + args.beta * old; }
    if (i * 2u + 0u < args.m) { c[at + 0u] = elements.x; }
    if (i * 2u + 1u < args.m) { c[at + 1u] = elements.y; }
}
