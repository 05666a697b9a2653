#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#define MIN_POSITIVE 2.2250738585072014e-308
typedef double2 vec;
#define ITEMS 16
#define LANES 4
#define MR 8
#define NR 2
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
struct Args { size n; size nrhs; size unit; size a_at; stride a_i; stride a_k; size b_at; stride b_i; stride b_r; };

// Solves triangular systems of at most ORDER unknowns by forward substitution. Coefficient k of equation i is a[a_at + i·a_i +
// k·a_k]. Unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]. For backward substitution, the caller passes the position of
// the last unknown and negative strides. The kernel loads a unit diagonal, but does not use it.
//
// A workgroup has WIDTH right-hand sides. Each invocation holds MR unknowns of NR right-hand sides and the coefficients among these
// unknowns in registers. In each step, the invocations with the next MR unknowns compute these unknowns and write them to workgroup
// memory. After a barrier, the invocations with later unknowns eliminate the solved unknowns from their own equations. All invocations
// load the coefficients of the unknowns that a step eliminates, one step ahead, and write them to workgroup memory before the barrier of
// this step.
//
// An invocation multiplies by the reciprocals of its pivots, because a product takes less time than a division. An invocation divides by
// its pivots if one of them is zero, subnormal or not finite, or has a subnormal reciprocal.
// Even steps use the first half of each array, and odd steps the second half. Some invocations already write for the next step while others
// still read for this one.
// The coefficients of the unknowns that a step eliminates:
// The unknowns that a step computes:

__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void solve(const size n, const size nrhs, const size unit, __global const real *restrict a, const size a_at, const stride a_i, const stride a_k, __global real *restrict b, const size b_at, const stride b_i, const stride b_r) {
    const struct Args args = { n, nrhs, unit, a_at, a_i, a_k, b_at, b_i, b_r };
    __local vec coefficients[384];
    __local vec solved[64];
    const uint2 group = (uint2)(get_group_id(0), get_group_id(1));
    const u32 t = get_local_id(0) + get_local_id(1) * get_local_size(0);
    // An invocation whose unknowns lie beyond the last one loads the coefficients of the last unknown, which exist, and does not use them.
    const u32 last = args.n - 1u;
    const stride origin = stride(args.a_at);
    // the first of the V equations, and the column of a step, whose coefficients this invocation loads
    const u32 i = t % 16u * V;
    const u32 column = t / 16u;
    const u32 row = min(i, last);
    const u32 place = column * 24u + i / V % 4u * 6u + i / MR;
    stride from_0 = origin + stride(min(i + 0u, last)) * args.a_i + stride(column) * args.a_k;
    stride from_1 = origin + stride(min(i + 1u, last)) * args.a_i + stride(column) * args.a_k;
    vec next_0 = (vec)(0);
    vec next_1 = (vec)(0);
    vec next_2 = (vec)(0);
    vec next_3 = (vec)(0);
    vec next_4 = (vec)(0);
    vec next_5 = (vec)(0);
    vec next_6 = (vec)(0);
    vec next_7 = (vec)(0);
    if (row >= 0u + MR) {
        next_0 = (vec)(a[from_0 + stride(0) * args.a_k], a[from_1 + stride(0) * args.a_k]);
        next_1 = (vec)(a[from_0 + stride(1) * args.a_k], a[from_1 + stride(1) * args.a_k]);
        next_2 = (vec)(a[from_0 + stride(2) * args.a_k], a[from_1 + stride(2) * args.a_k]);
        next_3 = (vec)(a[from_0 + stride(3) * args.a_k], a[from_1 + stride(3) * args.a_k]);
        next_4 = (vec)(a[from_0 + stride(4) * args.a_k], a[from_1 + stride(4) * args.a_k]);
        next_5 = (vec)(a[from_0 + stride(5) * args.a_k], a[from_1 + stride(5) * args.a_k]);
        next_6 = (vec)(a[from_0 + stride(6) * args.a_k], a[from_1 + stride(6) * args.a_k]);
        next_7 = (vec)(a[from_0 + stride(7) * args.a_k], a[from_1 + stride(7) * args.a_k]);
    }
    const u32 own = t / LANES * MR;
    const stride own_0 = stride(min(own + 0u, last));
    const stride own_1 = stride(min(own + 1u, last));
    const stride own_2 = stride(min(own + 2u, last));
    const stride own_3 = stride(min(own + 3u, last));
    const stride own_4 = stride(min(own + 4u, last));
    const stride own_5 = stride(min(own + 5u, last));
    const stride own_6 = stride(min(own + 6u, last));
    const stride own_7 = stride(min(own + 7u, last));
    const real d_0_1 = a[origin + own_1 * args.a_i + own_0 * args.a_k];
    const real d_0_2 = a[origin + own_2 * args.a_i + own_0 * args.a_k];
    const real d_0_3 = a[origin + own_3 * args.a_i + own_0 * args.a_k];
    const real d_0_4 = a[origin + own_4 * args.a_i + own_0 * args.a_k];
    const real d_0_5 = a[origin + own_5 * args.a_i + own_0 * args.a_k];
    const real d_0_6 = a[origin + own_6 * args.a_i + own_0 * args.a_k];
    const real d_0_7 = a[origin + own_7 * args.a_i + own_0 * args.a_k];
    const real d_1_2 = a[origin + own_2 * args.a_i + own_1 * args.a_k];
    const real d_1_3 = a[origin + own_3 * args.a_i + own_1 * args.a_k];
    const real d_1_4 = a[origin + own_4 * args.a_i + own_1 * args.a_k];
    const real d_1_5 = a[origin + own_5 * args.a_i + own_1 * args.a_k];
    const real d_1_6 = a[origin + own_6 * args.a_i + own_1 * args.a_k];
    const real d_1_7 = a[origin + own_7 * args.a_i + own_1 * args.a_k];
    const real d_2_3 = a[origin + own_3 * args.a_i + own_2 * args.a_k];
    const real d_2_4 = a[origin + own_4 * args.a_i + own_2 * args.a_k];
    const real d_2_5 = a[origin + own_5 * args.a_i + own_2 * args.a_k];
    const real d_2_6 = a[origin + own_6 * args.a_i + own_2 * args.a_k];
    const real d_2_7 = a[origin + own_7 * args.a_i + own_2 * args.a_k];
    const real d_3_4 = a[origin + own_4 * args.a_i + own_3 * args.a_k];
    const real d_3_5 = a[origin + own_5 * args.a_i + own_3 * args.a_k];
    const real d_3_6 = a[origin + own_6 * args.a_i + own_3 * args.a_k];
    const real d_3_7 = a[origin + own_7 * args.a_i + own_3 * args.a_k];
    const real d_4_5 = a[origin + own_5 * args.a_i + own_4 * args.a_k];
    const real d_4_6 = a[origin + own_6 * args.a_i + own_4 * args.a_k];
    const real d_4_7 = a[origin + own_7 * args.a_i + own_4 * args.a_k];
    const real d_5_6 = a[origin + own_6 * args.a_i + own_5 * args.a_k];
    const real d_5_7 = a[origin + own_7 * args.a_i + own_5 * args.a_k];
    const real d_6_7 = a[origin + own_7 * args.a_i + own_6 * args.a_k];
    // a factor is the reciprocal of a pivot if the invocation multiplies, and the pivot itself if the invocation divides
    const real pivot_0 = a[origin + own_0 * args.a_i + own_0 * args.a_k];
    real factor_0 = real(1) / pivot_0;
    const real pivot_1 = a[origin + own_1 * args.a_i + own_1 * args.a_k];
    real factor_1 = real(1) / pivot_1;
    const real pivot_2 = a[origin + own_2 * args.a_i + own_2 * args.a_k];
    real factor_2 = real(1) / pivot_2;
    const real pivot_3 = a[origin + own_3 * args.a_i + own_3 * args.a_k];
    real factor_3 = real(1) / pivot_3;
    const real pivot_4 = a[origin + own_4 * args.a_i + own_4 * args.a_k];
    real factor_4 = real(1) / pivot_4;
    const real pivot_5 = a[origin + own_5 * args.a_i + own_5 * args.a_k];
    real factor_5 = real(1) / pivot_5;
    const real pivot_6 = a[origin + own_6 * args.a_i + own_6 * args.a_k];
    real factor_6 = real(1) / pivot_6;
    const real pivot_7 = a[origin + own_7 * args.a_i + own_7 * args.a_k];
    real factor_7 = real(1) / pivot_7;
    const bool multiplies = min(abs(pivot_0), abs(factor_0)) >= MIN_POSITIVE && min(abs(pivot_1), abs(factor_1)) >= MIN_POSITIVE && min(abs(pivot_2), abs(factor_2)) >= MIN_POSITIVE && min(abs(pivot_3), abs(factor_3)) >= MIN_POSITIVE && min(abs(pivot_4), abs(factor_4)) >= MIN_POSITIVE && min(abs(pivot_5), abs(factor_5)) >= MIN_POSITIVE && min(abs(pivot_6), abs(factor_6)) >= MIN_POSITIVE && min(abs(pivot_7), abs(factor_7)) >= MIN_POSITIVE;
    if (!multiplies) {
        factor_0 = pivot_0;
        factor_1 = pivot_1;
        factor_2 = pivot_2;
        factor_3 = pivot_3;
        factor_4 = pivot_4;
        factor_5 = pivot_5;
        factor_6 = pivot_6;
        factor_7 = pivot_7;
    }
    // unknowns and right-hand sides beyond the last ones are copies of the last ones
    const stride row_0 = stride(args.b_at) + own_0 * args.b_i;
    const stride row_1 = stride(args.b_at) + own_1 * args.b_i;
    const stride row_2 = stride(args.b_at) + own_2 * args.b_i;
    const stride row_3 = stride(args.b_at) + own_3 * args.b_i;
    const stride row_4 = stride(args.b_at) + own_4 * args.b_i;
    const stride row_5 = stride(args.b_at) + own_5 * args.b_i;
    const stride row_6 = stride(args.b_at) + own_6 * args.b_i;
    const stride row_7 = stride(args.b_at) + own_7 * args.b_i;
    const u32 last_side = args.nrhs - 1u;
    const u32 r_0 = group.x * 8u + 0u * LANES + t % LANES;
    const stride col_0 = stride(min(r_0, last_side)) * args.b_r;
    vec x_0_0 = (vec)(b[row_0 + col_0], b[row_1 + col_0]);
    vec x_1_0 = (vec)(b[row_2 + col_0], b[row_3 + col_0]);
    vec x_2_0 = (vec)(b[row_4 + col_0], b[row_5 + col_0]);
    vec x_3_0 = (vec)(b[row_6 + col_0], b[row_7 + col_0]);
    const u32 r_1 = group.x * 8u + 1u * LANES + t % LANES;
    const stride col_1 = stride(min(r_1, last_side)) * args.b_r;
    vec x_0_1 = (vec)(b[row_0 + col_1], b[row_1 + col_1]);
    vec x_1_1 = (vec)(b[row_2 + col_1], b[row_3 + col_1]);
    vec x_2_1 = (vec)(b[row_4 + col_1], b[row_5 + col_1]);
    vec x_3_1 = (vec)(b[row_6 + col_1], b[row_7 + col_1]);
    // other invocations have also loaded elements of b that this invocation stores
    storageBarrier();
    for (u32 k = 0u; k < args.n; k += MR) {
        const u32 parity = k / MR % 2u;
        if (own == k) {
            if (args.unit != 0u) {
                x_0_0.y = fma(-d_0_1, x_0_0.x, x_0_0.y);
                x_0_1.y = fma(-d_0_1, x_0_1.x, x_0_1.y);
                x_1_0.x = fma(-d_0_2, x_0_0.x, x_1_0.x);
                x_1_1.x = fma(-d_0_2, x_0_1.x, x_1_1.x);
                x_1_0.y = fma(-d_0_3, x_0_0.x, x_1_0.y);
                x_1_1.y = fma(-d_0_3, x_0_1.x, x_1_1.y);
                x_2_0.x = fma(-d_0_4, x_0_0.x, x_2_0.x);
                x_2_1.x = fma(-d_0_4, x_0_1.x, x_2_1.x);
                x_2_0.y = fma(-d_0_5, x_0_0.x, x_2_0.y);
                x_2_1.y = fma(-d_0_5, x_0_1.x, x_2_1.y);
                x_3_0.x = fma(-d_0_6, x_0_0.x, x_3_0.x);
                x_3_1.x = fma(-d_0_6, x_0_1.x, x_3_1.x);
                x_3_0.y = fma(-d_0_7, x_0_0.x, x_3_0.y);
                x_3_1.y = fma(-d_0_7, x_0_1.x, x_3_1.y);
                x_1_0.x = fma(-d_1_2, x_0_0.y, x_1_0.x);
                x_1_1.x = fma(-d_1_2, x_0_1.y, x_1_1.x);
                x_1_0.y = fma(-d_1_3, x_0_0.y, x_1_0.y);
                x_1_1.y = fma(-d_1_3, x_0_1.y, x_1_1.y);
                x_2_0.x = fma(-d_1_4, x_0_0.y, x_2_0.x);
                x_2_1.x = fma(-d_1_4, x_0_1.y, x_2_1.x);
                x_2_0.y = fma(-d_1_5, x_0_0.y, x_2_0.y);
                x_2_1.y = fma(-d_1_5, x_0_1.y, x_2_1.y);
                x_3_0.x = fma(-d_1_6, x_0_0.y, x_3_0.x);
                x_3_1.x = fma(-d_1_6, x_0_1.y, x_3_1.x);
                x_3_0.y = fma(-d_1_7, x_0_0.y, x_3_0.y);
                x_3_1.y = fma(-d_1_7, x_0_1.y, x_3_1.y);
                x_1_0.y = fma(-d_2_3, x_1_0.x, x_1_0.y);
                x_1_1.y = fma(-d_2_3, x_1_1.x, x_1_1.y);
                x_2_0.x = fma(-d_2_4, x_1_0.x, x_2_0.x);
                x_2_1.x = fma(-d_2_4, x_1_1.x, x_2_1.x);
                x_2_0.y = fma(-d_2_5, x_1_0.x, x_2_0.y);
                x_2_1.y = fma(-d_2_5, x_1_1.x, x_2_1.y);
                x_3_0.x = fma(-d_2_6, x_1_0.x, x_3_0.x);
                x_3_1.x = fma(-d_2_6, x_1_1.x, x_3_1.x);
                x_3_0.y = fma(-d_2_7, x_1_0.x, x_3_0.y);
                x_3_1.y = fma(-d_2_7, x_1_1.x, x_3_1.y);
                x_2_0.x = fma(-d_3_4, x_1_0.y, x_2_0.x);
                x_2_1.x = fma(-d_3_4, x_1_1.y, x_2_1.x);
                x_2_0.y = fma(-d_3_5, x_1_0.y, x_2_0.y);
                x_2_1.y = fma(-d_3_5, x_1_1.y, x_2_1.y);
                x_3_0.x = fma(-d_3_6, x_1_0.y, x_3_0.x);
                x_3_1.x = fma(-d_3_6, x_1_1.y, x_3_1.x);
                x_3_0.y = fma(-d_3_7, x_1_0.y, x_3_0.y);
                x_3_1.y = fma(-d_3_7, x_1_1.y, x_3_1.y);
                x_2_0.y = fma(-d_4_5, x_2_0.x, x_2_0.y);
                x_2_1.y = fma(-d_4_5, x_2_1.x, x_2_1.y);
                x_3_0.x = fma(-d_4_6, x_2_0.x, x_3_0.x);
                x_3_1.x = fma(-d_4_6, x_2_1.x, x_3_1.x);
                x_3_0.y = fma(-d_4_7, x_2_0.x, x_3_0.y);
                x_3_1.y = fma(-d_4_7, x_2_1.x, x_3_1.y);
                x_3_0.x = fma(-d_5_6, x_2_0.y, x_3_0.x);
                x_3_1.x = fma(-d_5_6, x_2_1.y, x_3_1.x);
                x_3_0.y = fma(-d_5_7, x_2_0.y, x_3_0.y);
                x_3_1.y = fma(-d_5_7, x_2_1.y, x_3_1.y);
                x_3_0.y = fma(-d_6_7, x_3_0.x, x_3_0.y);
                x_3_1.y = fma(-d_6_7, x_3_1.x, x_3_1.y);
            } else if (multiplies) {
                x_0_0.x *= factor_0;
                x_0_1.x *= factor_0;
                x_0_0.y = fma(-d_0_1, x_0_0.x, x_0_0.y);
                x_0_1.y = fma(-d_0_1, x_0_1.x, x_0_1.y);
                x_1_0.x = fma(-d_0_2, x_0_0.x, x_1_0.x);
                x_1_1.x = fma(-d_0_2, x_0_1.x, x_1_1.x);
                x_1_0.y = fma(-d_0_3, x_0_0.x, x_1_0.y);
                x_1_1.y = fma(-d_0_3, x_0_1.x, x_1_1.y);
                x_2_0.x = fma(-d_0_4, x_0_0.x, x_2_0.x);
                x_2_1.x = fma(-d_0_4, x_0_1.x, x_2_1.x);
                x_2_0.y = fma(-d_0_5, x_0_0.x, x_2_0.y);
                x_2_1.y = fma(-d_0_5, x_0_1.x, x_2_1.y);
                x_3_0.x = fma(-d_0_6, x_0_0.x, x_3_0.x);
                x_3_1.x = fma(-d_0_6, x_0_1.x, x_3_1.x);
                x_3_0.y = fma(-d_0_7, x_0_0.x, x_3_0.y);
                x_3_1.y = fma(-d_0_7, x_0_1.x, x_3_1.y);
                x_0_0.y *= factor_1;
                x_0_1.y *= factor_1;
                x_1_0.x = fma(-d_1_2, x_0_0.y, x_1_0.x);
                x_1_1.x = fma(-d_1_2, x_0_1.y, x_1_1.x);
                x_1_0.y = fma(-d_1_3, x_0_0.y, x_1_0.y);
                x_1_1.y = fma(-d_1_3, x_0_1.y, x_1_1.y);
                x_2_0.x = fma(-d_1_4, x_0_0.y, x_2_0.x);
                x_2_1.x = fma(-d_1_4, x_0_1.y, x_2_1.x);
                x_2_0.y = fma(-d_1_5, x_0_0.y, x_2_0.y);
                x_2_1.y = fma(-d_1_5, x_0_1.y, x_2_1.y);
                x_3_0.x = fma(-d_1_6, x_0_0.y, x_3_0.x);
                x_3_1.x = fma(-d_1_6, x_0_1.y, x_3_1.x);
                x_3_0.y = fma(-d_1_7, x_0_0.y, x_3_0.y);
                x_3_1.y = fma(-d_1_7, x_0_1.y, x_3_1.y);
                x_1_0.x *= factor_2;
                x_1_1.x *= factor_2;
                x_1_0.y = fma(-d_2_3, x_1_0.x, x_1_0.y);
                x_1_1.y = fma(-d_2_3, x_1_1.x, x_1_1.y);
                x_2_0.x = fma(-d_2_4, x_1_0.x, x_2_0.x);
                x_2_1.x = fma(-d_2_4, x_1_1.x, x_2_1.x);
                x_2_0.y = fma(-d_2_5, x_1_0.x, x_2_0.y);
                x_2_1.y = fma(-d_2_5, x_1_1.x, x_2_1.y);
                x_3_0.x = fma(-d_2_6, x_1_0.x, x_3_0.x);
                x_3_1.x = fma(-d_2_6, x_1_1.x, x_3_1.x);
                x_3_0.y = fma(-d_2_7, x_1_0.x, x_3_0.y);
                x_3_1.y = fma(-d_2_7, x_1_1.x, x_3_1.y);
                x_1_0.y *= factor_3;
                x_1_1.y *= factor_3;
                x_2_0.x = fma(-d_3_4, x_1_0.y, x_2_0.x);
                x_2_1.x = fma(-d_3_4, x_1_1.y, x_2_1.x);
                x_2_0.y = fma(-d_3_5, x_1_0.y, x_2_0.y);
                x_2_1.y = fma(-d_3_5, x_1_1.y, x_2_1.y);
                x_3_0.x = fma(-d_3_6, x_1_0.y, x_3_0.x);
                x_3_1.x = fma(-d_3_6, x_1_1.y, x_3_1.x);
                x_3_0.y = fma(-d_3_7, x_1_0.y, x_3_0.y);
                x_3_1.y = fma(-d_3_7, x_1_1.y, x_3_1.y);
                x_2_0.x *= factor_4;
                x_2_1.x *= factor_4;
                x_2_0.y = fma(-d_4_5, x_2_0.x, x_2_0.y);
                x_2_1.y = fma(-d_4_5, x_2_1.x, x_2_1.y);
                x_3_0.x = fma(-d_4_6, x_2_0.x, x_3_0.x);
                x_3_1.x = fma(-d_4_6, x_2_1.x, x_3_1.x);
                x_3_0.y = fma(-d_4_7, x_2_0.x, x_3_0.y);
                x_3_1.y = fma(-d_4_7, x_2_1.x, x_3_1.y);
                x_2_0.y *= factor_5;
                x_2_1.y *= factor_5;
                x_3_0.x = fma(-d_5_6, x_2_0.y, x_3_0.x);
                x_3_1.x = fma(-d_5_6, x_2_1.y, x_3_1.x);
                x_3_0.y = fma(-d_5_7, x_2_0.y, x_3_0.y);
                x_3_1.y = fma(-d_5_7, x_2_1.y, x_3_1.y);
                x_3_0.x *= factor_6;
                x_3_1.x *= factor_6;
                x_3_0.y = fma(-d_6_7, x_3_0.x, x_3_0.y);
                x_3_1.y = fma(-d_6_7, x_3_1.x, x_3_1.y);
                x_3_0.y *= factor_7;
                x_3_1.y *= factor_7;
            } else {
                x_0_0.x /= factor_0;
                x_0_1.x /= factor_0;
                x_0_0.y = fma(-d_0_1, x_0_0.x, x_0_0.y);
                x_0_1.y = fma(-d_0_1, x_0_1.x, x_0_1.y);
                x_1_0.x = fma(-d_0_2, x_0_0.x, x_1_0.x);
                x_1_1.x = fma(-d_0_2, x_0_1.x, x_1_1.x);
                x_1_0.y = fma(-d_0_3, x_0_0.x, x_1_0.y);
                x_1_1.y = fma(-d_0_3, x_0_1.x, x_1_1.y);
                x_2_0.x = fma(-d_0_4, x_0_0.x, x_2_0.x);
                x_2_1.x = fma(-d_0_4, x_0_1.x, x_2_1.x);
                x_2_0.y = fma(-d_0_5, x_0_0.x, x_2_0.y);
                x_2_1.y = fma(-d_0_5, x_0_1.x, x_2_1.y);
                x_3_0.x = fma(-d_0_6, x_0_0.x, x_3_0.x);
                x_3_1.x = fma(-d_0_6, x_0_1.x, x_3_1.x);
                x_3_0.y = fma(-d_0_7, x_0_0.x, x_3_0.y);
                x_3_1.y = fma(-d_0_7, x_0_1.x, x_3_1.y);
                x_0_0.y /= factor_1;
                x_0_1.y /= factor_1;
                x_1_0.x = fma(-d_1_2, x_0_0.y, x_1_0.x);
                x_1_1.x = fma(-d_1_2, x_0_1.y, x_1_1.x);
                x_1_0.y = fma(-d_1_3, x_0_0.y, x_1_0.y);
                x_1_1.y = fma(-d_1_3, x_0_1.y, x_1_1.y);
                x_2_0.x = fma(-d_1_4, x_0_0.y, x_2_0.x);
                x_2_1.x = fma(-d_1_4, x_0_1.y, x_2_1.x);
                x_2_0.y = fma(-d_1_5, x_0_0.y, x_2_0.y);
                x_2_1.y = fma(-d_1_5, x_0_1.y, x_2_1.y);
                x_3_0.x = fma(-d_1_6, x_0_0.y, x_3_0.x);
                x_3_1.x = fma(-d_1_6, x_0_1.y, x_3_1.x);
                x_3_0.y = fma(-d_1_7, x_0_0.y, x_3_0.y);
                x_3_1.y = fma(-d_1_7, x_0_1.y, x_3_1.y);
                x_1_0.x /= factor_2;
                x_1_1.x /= factor_2;
                x_1_0.y = fma(-d_2_3, x_1_0.x, x_1_0.y);
                x_1_1.y = fma(-d_2_3, x_1_1.x, x_1_1.y);
                x_2_0.x = fma(-d_2_4, x_1_0.x, x_2_0.x);
                x_2_1.x = fma(-d_2_4, x_1_1.x, x_2_1.x);
                x_2_0.y = fma(-d_2_5, x_1_0.x, x_2_0.y);
                x_2_1.y = fma(-d_2_5, x_1_1.x, x_2_1.y);
                x_3_0.x = fma(-d_2_6, x_1_0.x, x_3_0.x);
                x_3_1.x = fma(-d_2_6, x_1_1.x, x_3_1.x);
                x_3_0.y = fma(-d_2_7, x_1_0.x, x_3_0.y);
                x_3_1.y = fma(-d_2_7, x_1_1.x, x_3_1.y);
                x_1_0.y /= factor_3;
                x_1_1.y /= factor_3;
                x_2_0.x = fma(-d_3_4, x_1_0.y, x_2_0.x);
                x_2_1.x = fma(-d_3_4, x_1_1.y, x_2_1.x);
                x_2_0.y = fma(-d_3_5, x_1_0.y, x_2_0.y);
                x_2_1.y = fma(-d_3_5, x_1_1.y, x_2_1.y);
                x_3_0.x = fma(-d_3_6, x_1_0.y, x_3_0.x);
                x_3_1.x = fma(-d_3_6, x_1_1.y, x_3_1.x);
                x_3_0.y = fma(-d_3_7, x_1_0.y, x_3_0.y);
                x_3_1.y = fma(-d_3_7, x_1_1.y, x_3_1.y);
                x_2_0.x /= factor_4;
                x_2_1.x /= factor_4;
                x_2_0.y = fma(-d_4_5, x_2_0.x, x_2_0.y);
                x_2_1.y = fma(-d_4_5, x_2_1.x, x_2_1.y);
                x_3_0.x = fma(-d_4_6, x_2_0.x, x_3_0.x);
                x_3_1.x = fma(-d_4_6, x_2_1.x, x_3_1.x);
                x_3_0.y = fma(-d_4_7, x_2_0.x, x_3_0.y);
                x_3_1.y = fma(-d_4_7, x_2_1.x, x_3_1.y);
                x_2_0.y /= factor_5;
                x_2_1.y /= factor_5;
                x_3_0.x = fma(-d_5_6, x_2_0.y, x_3_0.x);
                x_3_1.x = fma(-d_5_6, x_2_1.y, x_3_1.x);
                x_3_0.y = fma(-d_5_7, x_2_0.y, x_3_0.y);
                x_3_1.y = fma(-d_5_7, x_2_1.y, x_3_1.y);
                x_3_0.x /= factor_6;
                x_3_1.x /= factor_6;
                x_3_0.y = fma(-d_6_7, x_3_0.x, x_3_0.y);
                x_3_1.y = fma(-d_6_7, x_3_1.x, x_3_1.y);
                x_3_0.y /= factor_7;
                x_3_1.y /= factor_7;
            }
            solved[parity * 32u + 0u + t % LANES] = x_0_0;
            solved[parity * 32u + 8u + t % LANES] = x_1_0;
            solved[parity * 32u + 16u + t % LANES] = x_2_0;
            solved[parity * 32u + 24u + t % LANES] = x_3_0;
            solved[parity * 32u + 4u + t % LANES] = x_0_1;
            solved[parity * 32u + 12u + t % LANES] = x_1_1;
            solved[parity * 32u + 20u + t % LANES] = x_2_1;
            solved[parity * 32u + 28u + t % LANES] = x_3_1;
        }
        if (row >= k + MR) {
            coefficients[parity * 192u + 0u + place] = next_0;
            coefficients[parity * 192u + 24u + place] = next_1;
            coefficients[parity * 192u + 48u + place] = next_2;
            coefficients[parity * 192u + 72u + place] = next_3;
            coefficients[parity * 192u + 96u + place] = next_4;
            coefficients[parity * 192u + 120u + place] = next_5;
            coefficients[parity * 192u + 144u + place] = next_6;
            coefficients[parity * 192u + 168u + place] = next_7;
        }
        workgroupBarrier();
        from_0 += stride(MR) * args.a_k;
        from_1 += stride(MR) * args.a_k;
        if (row >= k + MR + MR) {
            next_0 = (vec)(a[from_0 + stride(0) * args.a_k], a[from_1 + stride(0) * args.a_k]);
            next_1 = (vec)(a[from_0 + stride(1) * args.a_k], a[from_1 + stride(1) * args.a_k]);
            next_2 = (vec)(a[from_0 + stride(2) * args.a_k], a[from_1 + stride(2) * args.a_k]);
            next_3 = (vec)(a[from_0 + stride(3) * args.a_k], a[from_1 + stride(3) * args.a_k]);
            next_4 = (vec)(a[from_0 + stride(4) * args.a_k], a[from_1 + stride(4) * args.a_k]);
            next_5 = (vec)(a[from_0 + stride(5) * args.a_k], a[from_1 + stride(5) * args.a_k]);
            next_6 = (vec)(a[from_0 + stride(6) * args.a_k], a[from_1 + stride(6) * args.a_k]);
            next_7 = (vec)(a[from_0 + stride(7) * args.a_k], a[from_1 + stride(7) * args.a_k]);
        }
        // for equations beyond the last one, no invocation has written coefficients
        if (own > k && own < args.n) {
            const vec u_0_0 = solved[parity * 32u + 0u + t % LANES];
            const vec u_0_1 = solved[parity * 32u + 4u + t % LANES];
            const vec l_0_0 = coefficients[parity * 192u + 0u + own / MR];
            x_0_0 = fma(l_0_0, (vec)(-u_0_0.x), x_0_0);
            x_0_1 = fma(l_0_0, (vec)(-u_0_1.x), x_0_1);
            const vec l_0_1 = coefficients[parity * 192u + 6u + own / MR];
            x_1_0 = fma(l_0_1, (vec)(-u_0_0.x), x_1_0);
            x_1_1 = fma(l_0_1, (vec)(-u_0_1.x), x_1_1);
            const vec l_0_2 = coefficients[parity * 192u + 12u + own / MR];
            x_2_0 = fma(l_0_2, (vec)(-u_0_0.x), x_2_0);
            x_2_1 = fma(l_0_2, (vec)(-u_0_1.x), x_2_1);
            const vec l_0_3 = coefficients[parity * 192u + 18u + own / MR];
            x_3_0 = fma(l_0_3, (vec)(-u_0_0.x), x_3_0);
            x_3_1 = fma(l_0_3, (vec)(-u_0_1.x), x_3_1);
            const vec l_1_0 = coefficients[parity * 192u + 24u + own / MR];
            x_0_0 = fma(l_1_0, (vec)(-u_0_0.y), x_0_0);
            x_0_1 = fma(l_1_0, (vec)(-u_0_1.y), x_0_1);
            const vec l_1_1 = coefficients[parity * 192u + 30u + own / MR];
            x_1_0 = fma(l_1_1, (vec)(-u_0_0.y), x_1_0);
            x_1_1 = fma(l_1_1, (vec)(-u_0_1.y), x_1_1);
            const vec l_1_2 = coefficients[parity * 192u + 36u + own / MR];
            x_2_0 = fma(l_1_2, (vec)(-u_0_0.y), x_2_0);
            x_2_1 = fma(l_1_2, (vec)(-u_0_1.y), x_2_1);
            const vec l_1_3 = coefficients[parity * 192u + 42u + own / MR];
            x_3_0 = fma(l_1_3, (vec)(-u_0_0.y), x_3_0);
            x_3_1 = fma(l_1_3, (vec)(-u_0_1.y), x_3_1);
            const vec u_1_0 = solved[parity * 32u + 8u + t % LANES];
            const vec u_1_1 = solved[parity * 32u + 12u + t % LANES];
            const vec l_2_0 = coefficients[parity * 192u + 48u + own / MR];
            x_0_0 = fma(l_2_0, (vec)(-u_1_0.x), x_0_0);
            x_0_1 = fma(l_2_0, (vec)(-u_1_1.x), x_0_1);
            const vec l_2_1 = coefficients[parity * 192u + 54u + own / MR];
            x_1_0 = fma(l_2_1, (vec)(-u_1_0.x), x_1_0);
            x_1_1 = fma(l_2_1, (vec)(-u_1_1.x), x_1_1);
            const vec l_2_2 = coefficients[parity * 192u + 60u + own / MR];
            x_2_0 = fma(l_2_2, (vec)(-u_1_0.x), x_2_0);
            x_2_1 = fma(l_2_2, (vec)(-u_1_1.x), x_2_1);
            const vec l_2_3 = coefficients[parity * 192u + 66u + own / MR];
            x_3_0 = fma(l_2_3, (vec)(-u_1_0.x), x_3_0);
            x_3_1 = fma(l_2_3, (vec)(-u_1_1.x), x_3_1);
            const vec l_3_0 = coefficients[parity * 192u + 72u + own / MR];
            x_0_0 = fma(l_3_0, (vec)(-u_1_0.y), x_0_0);
            x_0_1 = fma(l_3_0, (vec)(-u_1_1.y), x_0_1);
            const vec l_3_1 = coefficients[parity * 192u + 78u + own / MR];
            x_1_0 = fma(l_3_1, (vec)(-u_1_0.y), x_1_0);
            x_1_1 = fma(l_3_1, (vec)(-u_1_1.y), x_1_1);
            const vec l_3_2 = coefficients[parity * 192u + 84u + own / MR];
            x_2_0 = fma(l_3_2, (vec)(-u_1_0.y), x_2_0);
            x_2_1 = fma(l_3_2, (vec)(-u_1_1.y), x_2_1);
            const vec l_3_3 = coefficients[parity * 192u + 90u + own / MR];
            x_3_0 = fma(l_3_3, (vec)(-u_1_0.y), x_3_0);
            x_3_1 = fma(l_3_3, (vec)(-u_1_1.y), x_3_1);
            const vec u_2_0 = solved[parity * 32u + 16u + t % LANES];
            const vec u_2_1 = solved[parity * 32u + 20u + t % LANES];
            const vec l_4_0 = coefficients[parity * 192u + 96u + own / MR];
            x_0_0 = fma(l_4_0, (vec)(-u_2_0.x), x_0_0);
            x_0_1 = fma(l_4_0, (vec)(-u_2_1.x), x_0_1);
            const vec l_4_1 = coefficients[parity * 192u + 102u + own / MR];
            x_1_0 = fma(l_4_1, (vec)(-u_2_0.x), x_1_0);
            x_1_1 = fma(l_4_1, (vec)(-u_2_1.x), x_1_1);
            const vec l_4_2 = coefficients[parity * 192u + 108u + own / MR];
            x_2_0 = fma(l_4_2, (vec)(-u_2_0.x), x_2_0);
            x_2_1 = fma(l_4_2, (vec)(-u_2_1.x), x_2_1);
            const vec l_4_3 = coefficients[parity * 192u + 114u + own / MR];
            x_3_0 = fma(l_4_3, (vec)(-u_2_0.x), x_3_0);
            x_3_1 = fma(l_4_3, (vec)(-u_2_1.x), x_3_1);
            const vec l_5_0 = coefficients[parity * 192u + 120u + own / MR];
            x_0_0 = fma(l_5_0, (vec)(-u_2_0.y), x_0_0);
            x_0_1 = fma(l_5_0, (vec)(-u_2_1.y), x_0_1);
            const vec l_5_1 = coefficients[parity * 192u + 126u + own / MR];
            x_1_0 = fma(l_5_1, (vec)(-u_2_0.y), x_1_0);
            x_1_1 = fma(l_5_1, (vec)(-u_2_1.y), x_1_1);
            const vec l_5_2 = coefficients[parity * 192u + 132u + own / MR];
            x_2_0 = fma(l_5_2, (vec)(-u_2_0.y), x_2_0);
            x_2_1 = fma(l_5_2, (vec)(-u_2_1.y), x_2_1);
            const vec l_5_3 = coefficients[parity * 192u + 138u + own / MR];
            x_3_0 = fma(l_5_3, (vec)(-u_2_0.y), x_3_0);
            x_3_1 = fma(l_5_3, (vec)(-u_2_1.y), x_3_1);
            const vec u_3_0 = solved[parity * 32u + 24u + t % LANES];
            const vec u_3_1 = solved[parity * 32u + 28u + t % LANES];
            const vec l_6_0 = coefficients[parity * 192u + 144u + own / MR];
            x_0_0 = fma(l_6_0, (vec)(-u_3_0.x), x_0_0);
            x_0_1 = fma(l_6_0, (vec)(-u_3_1.x), x_0_1);
            const vec l_6_1 = coefficients[parity * 192u + 150u + own / MR];
            x_1_0 = fma(l_6_1, (vec)(-u_3_0.x), x_1_0);
            x_1_1 = fma(l_6_1, (vec)(-u_3_1.x), x_1_1);
            const vec l_6_2 = coefficients[parity * 192u + 156u + own / MR];
            x_2_0 = fma(l_6_2, (vec)(-u_3_0.x), x_2_0);
            x_2_1 = fma(l_6_2, (vec)(-u_3_1.x), x_2_1);
            const vec l_6_3 = coefficients[parity * 192u + 162u + own / MR];
            x_3_0 = fma(l_6_3, (vec)(-u_3_0.x), x_3_0);
            x_3_1 = fma(l_6_3, (vec)(-u_3_1.x), x_3_1);
            const vec l_7_0 = coefficients[parity * 192u + 168u + own / MR];
            x_0_0 = fma(l_7_0, (vec)(-u_3_0.y), x_0_0);
            x_0_1 = fma(l_7_0, (vec)(-u_3_1.y), x_0_1);
            const vec l_7_1 = coefficients[parity * 192u + 174u + own / MR];
            x_1_0 = fma(l_7_1, (vec)(-u_3_0.y), x_1_0);
            x_1_1 = fma(l_7_1, (vec)(-u_3_1.y), x_1_1);
            const vec l_7_2 = coefficients[parity * 192u + 180u + own / MR];
            x_2_0 = fma(l_7_2, (vec)(-u_3_0.y), x_2_0);
            x_2_1 = fma(l_7_2, (vec)(-u_3_1.y), x_2_1);
            const vec l_7_3 = coefficients[parity * 192u + 186u + own / MR];
            x_3_0 = fma(l_7_3, (vec)(-u_3_0.y), x_3_0);
            x_3_1 = fma(l_7_3, (vec)(-u_3_1.y), x_3_1);
        }
    }
    if (own + 0u < args.n) {
        if (r_0 < args.nrhs) { b[row_0 + col_0] = x_0_0.x; }
        if (r_1 < args.nrhs) { b[row_0 + col_1] = x_0_1.x; }
    }
    if (own + 1u < args.n) {
        if (r_0 < args.nrhs) { b[row_1 + col_0] = x_0_0.y; }
        if (r_1 < args.nrhs) { b[row_1 + col_1] = x_0_1.y; }
    }
    if (own + 2u < args.n) {
        if (r_0 < args.nrhs) { b[row_2 + col_0] = x_1_0.x; }
        if (r_1 < args.nrhs) { b[row_2 + col_1] = x_1_1.x; }
    }
    if (own + 3u < args.n) {
        if (r_0 < args.nrhs) { b[row_3 + col_0] = x_1_0.y; }
        if (r_1 < args.nrhs) { b[row_3 + col_1] = x_1_1.y; }
    }
    if (own + 4u < args.n) {
        if (r_0 < args.nrhs) { b[row_4 + col_0] = x_2_0.x; }
        if (r_1 < args.nrhs) { b[row_4 + col_1] = x_2_1.x; }
    }
    if (own + 5u < args.n) {
        if (r_0 < args.nrhs) { b[row_5 + col_0] = x_2_0.y; }
        if (r_1 < args.nrhs) { b[row_5 + col_1] = x_2_1.y; }
    }
    if (own + 6u < args.n) {
        if (r_0 < args.nrhs) { b[row_6 + col_0] = x_3_0.x; }
        if (r_1 < args.nrhs) { b[row_6 + col_1] = x_3_1.x; }
    }
    if (own + 7u < args.n) {
        if (r_0 < args.nrhs) { b[row_7 + col_0] = x_3_0.y; }
        if (r_1 < args.nrhs) { b[row_7 + col_1] = x_3_1.y; }
    }
}
