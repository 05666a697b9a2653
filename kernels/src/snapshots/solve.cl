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
// the last unknown and negative strides. The kernel also loads the coefficients above the diagonal and a unit diagonal, but does
// not use them.
//
// A workgroup has WIDTH right-hand sides. Each invocation holds MR unknowns of NR right-hand sides in registers. In each step,
// the invocations with the next MR unknowns compute these unknowns and write them to workgroup memory. After a barrier, the
// invocations with later unknowns eliminate the solved unknowns from their own equations. During a step, all invocations load the
// coefficients of the next step.
//
// An invocation multiplies by the reciprocals of its pivots, because a product takes less time than a division. An invocation divides by
// its pivots if one of them is zero, subnormal or not finite, or has a subnormal reciprocal.
// The first half holds the coefficients of the columns that an even step eliminates, and the second half those of an odd step.
// The array holds the unknowns that a step computes: first all of one right-hand side, then all of the next one.

__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void solve(const size n, const size nrhs, const size unit, __global const real *restrict a, const size a_at, const stride a_i, const stride a_k, __global real *restrict b, const size b_at, const stride b_i, const stride b_r) {
    const struct Args args = { n, nrhs, unit, a_at, a_i, a_k, b_at, b_i, b_r };
    __local vec coefficients[256];
    __local vec solved[32];
    const uint2 group = (uint2)(get_group_id(0), get_group_id(1));
    const u32 t = get_local_id(0) + get_local_id(1) * get_local_size(0);
    const u32 last = args.n - 1u;
    const stride origin = stride(args.a_at);
    const u32 own = t / LANES * MR;
    const u32 i_0 = (t + 0u * ITEMS) % 16u * V;
    const u32 k_0 = (t + 0u * ITEMS) / 16u;
    const u32 place_0 = k_0 * 16u + i_0 / V % 4u * 4u + i_0 / MR;
    coefficients[place_0] = (vec)(a[origin + stride(min(i_0 + 0u, last)) * args.a_i + stride(min(k_0, last)) * args.a_k], a[origin + stride(min(i_0 + 1u, last)) * args.a_i + stride(min(k_0, last)) * args.a_k]);
    const u32 i_1 = (t + 1u * ITEMS) % 16u * V;
    const u32 k_1 = (t + 1u * ITEMS) / 16u;
    const u32 place_1 = k_1 * 16u + i_1 / V % 4u * 4u + i_1 / MR;
    coefficients[place_1] = (vec)(a[origin + stride(min(i_1 + 0u, last)) * args.a_i + stride(min(k_1, last)) * args.a_k], a[origin + stride(min(i_1 + 1u, last)) * args.a_i + stride(min(k_1, last)) * args.a_k]);
    const u32 i_2 = (t + 2u * ITEMS) % 16u * V;
    const u32 k_2 = (t + 2u * ITEMS) / 16u;
    const u32 place_2 = k_2 * 16u + i_2 / V % 4u * 4u + i_2 / MR;
    coefficients[place_2] = (vec)(a[origin + stride(min(i_2 + 0u, last)) * args.a_i + stride(min(k_2, last)) * args.a_k], a[origin + stride(min(i_2 + 1u, last)) * args.a_i + stride(min(k_2, last)) * args.a_k]);
    const u32 i_3 = (t + 3u * ITEMS) % 16u * V;
    const u32 k_3 = (t + 3u * ITEMS) / 16u;
    const u32 place_3 = k_3 * 16u + i_3 / V % 4u * 4u + i_3 / MR;
    coefficients[place_3] = (vec)(a[origin + stride(min(i_3 + 0u, last)) * args.a_i + stride(min(k_3, last)) * args.a_k], a[origin + stride(min(i_3 + 1u, last)) * args.a_i + stride(min(k_3, last)) * args.a_k]);
    const u32 i_4 = (t + 4u * ITEMS) % 16u * V;
    const u32 k_4 = (t + 4u * ITEMS) / 16u;
    const u32 place_4 = k_4 * 16u + i_4 / V % 4u * 4u + i_4 / MR;
    coefficients[place_4] = (vec)(a[origin + stride(min(i_4 + 0u, last)) * args.a_i + stride(min(k_4, last)) * args.a_k], a[origin + stride(min(i_4 + 1u, last)) * args.a_i + stride(min(k_4, last)) * args.a_k]);
    const u32 i_5 = (t + 5u * ITEMS) % 16u * V;
    const u32 k_5 = (t + 5u * ITEMS) / 16u;
    const u32 place_5 = k_5 * 16u + i_5 / V % 4u * 4u + i_5 / MR;
    coefficients[place_5] = (vec)(a[origin + stride(min(i_5 + 0u, last)) * args.a_i + stride(min(k_5, last)) * args.a_k], a[origin + stride(min(i_5 + 1u, last)) * args.a_i + stride(min(k_5, last)) * args.a_k]);
    const u32 i_6 = (t + 6u * ITEMS) % 16u * V;
    const u32 k_6 = (t + 6u * ITEMS) / 16u;
    const u32 place_6 = k_6 * 16u + i_6 / V % 4u * 4u + i_6 / MR;
    coefficients[place_6] = (vec)(a[origin + stride(min(i_6 + 0u, last)) * args.a_i + stride(min(k_6, last)) * args.a_k], a[origin + stride(min(i_6 + 1u, last)) * args.a_i + stride(min(k_6, last)) * args.a_k]);
    const u32 i_7 = (t + 7u * ITEMS) % 16u * V;
    const u32 k_7 = (t + 7u * ITEMS) / 16u;
    const u32 place_7 = k_7 * 16u + i_7 / V % 4u * 4u + i_7 / MR;
    coefficients[place_7] = (vec)(a[origin + stride(min(i_7 + 0u, last)) * args.a_i + stride(min(k_7, last)) * args.a_k], a[origin + stride(min(i_7 + 1u, last)) * args.a_i + stride(min(k_7, last)) * args.a_k]);
    // a factor is the reciprocal of a pivot if the invocation multiplies, and the pivot itself if the invocation divides
    const real pivot_0 = a[origin + stride(min(own + 0u, last)) * args.a_i + stride(min(own + 0u, last)) * args.a_k];
    real factor_0 = real(1) / pivot_0;
    const real pivot_1 = a[origin + stride(min(own + 1u, last)) * args.a_i + stride(min(own + 1u, last)) * args.a_k];
    real factor_1 = real(1) / pivot_1;
    const real pivot_2 = a[origin + stride(min(own + 2u, last)) * args.a_i + stride(min(own + 2u, last)) * args.a_k];
    real factor_2 = real(1) / pivot_2;
    const real pivot_3 = a[origin + stride(min(own + 3u, last)) * args.a_i + stride(min(own + 3u, last)) * args.a_k];
    real factor_3 = real(1) / pivot_3;
    const real pivot_4 = a[origin + stride(min(own + 4u, last)) * args.a_i + stride(min(own + 4u, last)) * args.a_k];
    real factor_4 = real(1) / pivot_4;
    const real pivot_5 = a[origin + stride(min(own + 5u, last)) * args.a_i + stride(min(own + 5u, last)) * args.a_k];
    real factor_5 = real(1) / pivot_5;
    const real pivot_6 = a[origin + stride(min(own + 6u, last)) * args.a_i + stride(min(own + 6u, last)) * args.a_k];
    real factor_6 = real(1) / pivot_6;
    const real pivot_7 = a[origin + stride(min(own + 7u, last)) * args.a_i + stride(min(own + 7u, last)) * args.a_k];
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
    const stride row_0 = stride(args.b_at) + stride(min(own + 0u, last)) * args.b_i;
    const stride row_1 = stride(args.b_at) + stride(min(own + 1u, last)) * args.b_i;
    const stride row_2 = stride(args.b_at) + stride(min(own + 2u, last)) * args.b_i;
    const stride row_3 = stride(args.b_at) + stride(min(own + 3u, last)) * args.b_i;
    const stride row_4 = stride(args.b_at) + stride(min(own + 4u, last)) * args.b_i;
    const stride row_5 = stride(args.b_at) + stride(min(own + 5u, last)) * args.b_i;
    const stride row_6 = stride(args.b_at) + stride(min(own + 6u, last)) * args.b_i;
    const stride row_7 = stride(args.b_at) + stride(min(own + 7u, last)) * args.b_i;
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
    workgroupBarrier();
    for (u32 k = 0u; k < args.n; k += MR) {
        const u32 at = k / MR % 2u * 128u;
        const vec next_0 = (vec)(a[origin + stride(min(max(i_0, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_0, last)) * args.a_k], a[origin + stride(min(max(i_0, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_0, last)) * args.a_k]);
        const vec next_1 = (vec)(a[origin + stride(min(max(i_1, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_1, last)) * args.a_k], a[origin + stride(min(max(i_1, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_1, last)) * args.a_k]);
        const vec next_2 = (vec)(a[origin + stride(min(max(i_2, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_2, last)) * args.a_k], a[origin + stride(min(max(i_2, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_2, last)) * args.a_k]);
        const vec next_3 = (vec)(a[origin + stride(min(max(i_3, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_3, last)) * args.a_k], a[origin + stride(min(max(i_3, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_3, last)) * args.a_k]);
        const vec next_4 = (vec)(a[origin + stride(min(max(i_4, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_4, last)) * args.a_k], a[origin + stride(min(max(i_4, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_4, last)) * args.a_k]);
        const vec next_5 = (vec)(a[origin + stride(min(max(i_5, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_5, last)) * args.a_k], a[origin + stride(min(max(i_5, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_5, last)) * args.a_k]);
        const vec next_6 = (vec)(a[origin + stride(min(max(i_6, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_6, last)) * args.a_k], a[origin + stride(min(max(i_6, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_6, last)) * args.a_k]);
        const vec next_7 = (vec)(a[origin + stride(min(max(i_7, k + MR) + 0u, last)) * args.a_i + stride(min(k + MR + k_7, last)) * args.a_k], a[origin + stride(min(max(i_7, k + MR) + 1u, last)) * args.a_i + stride(min(k + MR + k_7, last)) * args.a_k]);
        if (own == k) {
            if (args.unit == 0u) {
                if (multiplies) {
                    x_0_0.x *= factor_0;
                    x_0_1.x *= factor_0;
                } else {
                    x_0_0.x /= factor_0;
                    x_0_1.x /= factor_0;
                }
            }
            const vec d_0_0 = coefficients[at + 0u + own / MR];
            const vec d_0_1 = coefficients[at + 4u + own / MR];
            const vec d_0_2 = coefficients[at + 8u + own / MR];
            const vec d_0_3 = coefficients[at + 12u + own / MR];
            x_0_0.y = fma(-d_0_0.y, x_0_0.x, x_0_0.y);
            x_0_1.y = fma(-d_0_0.y, x_0_1.x, x_0_1.y);
            x_1_0.x = fma(-d_0_1.x, x_0_0.x, x_1_0.x);
            x_1_1.x = fma(-d_0_1.x, x_0_1.x, x_1_1.x);
            x_1_0.y = fma(-d_0_1.y, x_0_0.x, x_1_0.y);
            x_1_1.y = fma(-d_0_1.y, x_0_1.x, x_1_1.y);
            x_2_0.x = fma(-d_0_2.x, x_0_0.x, x_2_0.x);
            x_2_1.x = fma(-d_0_2.x, x_0_1.x, x_2_1.x);
            x_2_0.y = fma(-d_0_2.y, x_0_0.x, x_2_0.y);
            x_2_1.y = fma(-d_0_2.y, x_0_1.x, x_2_1.y);
            x_3_0.x = fma(-d_0_3.x, x_0_0.x, x_3_0.x);
            x_3_1.x = fma(-d_0_3.x, x_0_1.x, x_3_1.x);
            x_3_0.y = fma(-d_0_3.y, x_0_0.x, x_3_0.y);
            x_3_1.y = fma(-d_0_3.y, x_0_1.x, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_0_0.y *= factor_1;
                    x_0_1.y *= factor_1;
                } else {
                    x_0_0.y /= factor_1;
                    x_0_1.y /= factor_1;
                }
            }
            const vec d_1_1 = coefficients[at + 20u + own / MR];
            const vec d_1_2 = coefficients[at + 24u + own / MR];
            const vec d_1_3 = coefficients[at + 28u + own / MR];
            x_1_0.x = fma(-d_1_1.x, x_0_0.y, x_1_0.x);
            x_1_1.x = fma(-d_1_1.x, x_0_1.y, x_1_1.x);
            x_1_0.y = fma(-d_1_1.y, x_0_0.y, x_1_0.y);
            x_1_1.y = fma(-d_1_1.y, x_0_1.y, x_1_1.y);
            x_2_0.x = fma(-d_1_2.x, x_0_0.y, x_2_0.x);
            x_2_1.x = fma(-d_1_2.x, x_0_1.y, x_2_1.x);
            x_2_0.y = fma(-d_1_2.y, x_0_0.y, x_2_0.y);
            x_2_1.y = fma(-d_1_2.y, x_0_1.y, x_2_1.y);
            x_3_0.x = fma(-d_1_3.x, x_0_0.y, x_3_0.x);
            x_3_1.x = fma(-d_1_3.x, x_0_1.y, x_3_1.x);
            x_3_0.y = fma(-d_1_3.y, x_0_0.y, x_3_0.y);
            x_3_1.y = fma(-d_1_3.y, x_0_1.y, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_1_0.x *= factor_2;
                    x_1_1.x *= factor_2;
                } else {
                    x_1_0.x /= factor_2;
                    x_1_1.x /= factor_2;
                }
            }
            const vec d_2_1 = coefficients[at + 36u + own / MR];
            const vec d_2_2 = coefficients[at + 40u + own / MR];
            const vec d_2_3 = coefficients[at + 44u + own / MR];
            x_1_0.y = fma(-d_2_1.y, x_1_0.x, x_1_0.y);
            x_1_1.y = fma(-d_2_1.y, x_1_1.x, x_1_1.y);
            x_2_0.x = fma(-d_2_2.x, x_1_0.x, x_2_0.x);
            x_2_1.x = fma(-d_2_2.x, x_1_1.x, x_2_1.x);
            x_2_0.y = fma(-d_2_2.y, x_1_0.x, x_2_0.y);
            x_2_1.y = fma(-d_2_2.y, x_1_1.x, x_2_1.y);
            x_3_0.x = fma(-d_2_3.x, x_1_0.x, x_3_0.x);
            x_3_1.x = fma(-d_2_3.x, x_1_1.x, x_3_1.x);
            x_3_0.y = fma(-d_2_3.y, x_1_0.x, x_3_0.y);
            x_3_1.y = fma(-d_2_3.y, x_1_1.x, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_1_0.y *= factor_3;
                    x_1_1.y *= factor_3;
                } else {
                    x_1_0.y /= factor_3;
                    x_1_1.y /= factor_3;
                }
            }
            const vec d_3_2 = coefficients[at + 56u + own / MR];
            const vec d_3_3 = coefficients[at + 60u + own / MR];
            x_2_0.x = fma(-d_3_2.x, x_1_0.y, x_2_0.x);
            x_2_1.x = fma(-d_3_2.x, x_1_1.y, x_2_1.x);
            x_2_0.y = fma(-d_3_2.y, x_1_0.y, x_2_0.y);
            x_2_1.y = fma(-d_3_2.y, x_1_1.y, x_2_1.y);
            x_3_0.x = fma(-d_3_3.x, x_1_0.y, x_3_0.x);
            x_3_1.x = fma(-d_3_3.x, x_1_1.y, x_3_1.x);
            x_3_0.y = fma(-d_3_3.y, x_1_0.y, x_3_0.y);
            x_3_1.y = fma(-d_3_3.y, x_1_1.y, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_2_0.x *= factor_4;
                    x_2_1.x *= factor_4;
                } else {
                    x_2_0.x /= factor_4;
                    x_2_1.x /= factor_4;
                }
            }
            const vec d_4_2 = coefficients[at + 72u + own / MR];
            const vec d_4_3 = coefficients[at + 76u + own / MR];
            x_2_0.y = fma(-d_4_2.y, x_2_0.x, x_2_0.y);
            x_2_1.y = fma(-d_4_2.y, x_2_1.x, x_2_1.y);
            x_3_0.x = fma(-d_4_3.x, x_2_0.x, x_3_0.x);
            x_3_1.x = fma(-d_4_3.x, x_2_1.x, x_3_1.x);
            x_3_0.y = fma(-d_4_3.y, x_2_0.x, x_3_0.y);
            x_3_1.y = fma(-d_4_3.y, x_2_1.x, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_2_0.y *= factor_5;
                    x_2_1.y *= factor_5;
                } else {
                    x_2_0.y /= factor_5;
                    x_2_1.y /= factor_5;
                }
            }
            const vec d_5_3 = coefficients[at + 92u + own / MR];
            x_3_0.x = fma(-d_5_3.x, x_2_0.y, x_3_0.x);
            x_3_1.x = fma(-d_5_3.x, x_2_1.y, x_3_1.x);
            x_3_0.y = fma(-d_5_3.y, x_2_0.y, x_3_0.y);
            x_3_1.y = fma(-d_5_3.y, x_2_1.y, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_3_0.x *= factor_6;
                    x_3_1.x *= factor_6;
                } else {
                    x_3_0.x /= factor_6;
                    x_3_1.x /= factor_6;
                }
            }
            const vec d_6_3 = coefficients[at + 108u + own / MR];
            x_3_0.y = fma(-d_6_3.y, x_3_0.x, x_3_0.y);
            x_3_1.y = fma(-d_6_3.y, x_3_1.x, x_3_1.y);
            if (args.unit == 0u) {
                if (multiplies) {
                    x_3_0.y *= factor_7;
                    x_3_1.y *= factor_7;
                } else {
                    x_3_0.y /= factor_7;
                    x_3_1.y /= factor_7;
                }
            }
            solved[(0u * LANES + t % LANES) * 4u + 0u] = x_0_0;
            solved[(0u * LANES + t % LANES) * 4u + 1u] = x_1_0;
            solved[(0u * LANES + t % LANES) * 4u + 2u] = x_2_0;
            solved[(0u * LANES + t % LANES) * 4u + 3u] = x_3_0;
            solved[(1u * LANES + t % LANES) * 4u + 0u] = x_0_1;
            solved[(1u * LANES + t % LANES) * 4u + 1u] = x_1_1;
            solved[(1u * LANES + t % LANES) * 4u + 2u] = x_2_1;
            solved[(1u * LANES + t % LANES) * 4u + 3u] = x_3_1;
        }
        workgroupBarrier();
        if (own > k) {
            const vec u_0_0 = solved[(0u * LANES + t % LANES) * 4u + 0u];
            const vec u_0_1 = solved[(1u * LANES + t % LANES) * 4u + 0u];
            const vec l_0_0 = coefficients[at + 0u + own / MR];
            x_0_0 = fma(l_0_0, (vec)(-u_0_0.x), x_0_0);
            x_0_1 = fma(l_0_0, (vec)(-u_0_1.x), x_0_1);
            const vec l_0_1 = coefficients[at + 4u + own / MR];
            x_1_0 = fma(l_0_1, (vec)(-u_0_0.x), x_1_0);
            x_1_1 = fma(l_0_1, (vec)(-u_0_1.x), x_1_1);
            const vec l_0_2 = coefficients[at + 8u + own / MR];
            x_2_0 = fma(l_0_2, (vec)(-u_0_0.x), x_2_0);
            x_2_1 = fma(l_0_2, (vec)(-u_0_1.x), x_2_1);
            const vec l_0_3 = coefficients[at + 12u + own / MR];
            x_3_0 = fma(l_0_3, (vec)(-u_0_0.x), x_3_0);
            x_3_1 = fma(l_0_3, (vec)(-u_0_1.x), x_3_1);
            const vec l_1_0 = coefficients[at + 16u + own / MR];
            x_0_0 = fma(l_1_0, (vec)(-u_0_0.y), x_0_0);
            x_0_1 = fma(l_1_0, (vec)(-u_0_1.y), x_0_1);
            const vec l_1_1 = coefficients[at + 20u + own / MR];
            x_1_0 = fma(l_1_1, (vec)(-u_0_0.y), x_1_0);
            x_1_1 = fma(l_1_1, (vec)(-u_0_1.y), x_1_1);
            const vec l_1_2 = coefficients[at + 24u + own / MR];
            x_2_0 = fma(l_1_2, (vec)(-u_0_0.y), x_2_0);
            x_2_1 = fma(l_1_2, (vec)(-u_0_1.y), x_2_1);
            const vec l_1_3 = coefficients[at + 28u + own / MR];
            x_3_0 = fma(l_1_3, (vec)(-u_0_0.y), x_3_0);
            x_3_1 = fma(l_1_3, (vec)(-u_0_1.y), x_3_1);
            const vec u_1_0 = solved[(0u * LANES + t % LANES) * 4u + 1u];
            const vec u_1_1 = solved[(1u * LANES + t % LANES) * 4u + 1u];
            const vec l_2_0 = coefficients[at + 32u + own / MR];
            x_0_0 = fma(l_2_0, (vec)(-u_1_0.x), x_0_0);
            x_0_1 = fma(l_2_0, (vec)(-u_1_1.x), x_0_1);
            const vec l_2_1 = coefficients[at + 36u + own / MR];
            x_1_0 = fma(l_2_1, (vec)(-u_1_0.x), x_1_0);
            x_1_1 = fma(l_2_1, (vec)(-u_1_1.x), x_1_1);
            const vec l_2_2 = coefficients[at + 40u + own / MR];
            x_2_0 = fma(l_2_2, (vec)(-u_1_0.x), x_2_0);
            x_2_1 = fma(l_2_2, (vec)(-u_1_1.x), x_2_1);
            const vec l_2_3 = coefficients[at + 44u + own / MR];
            x_3_0 = fma(l_2_3, (vec)(-u_1_0.x), x_3_0);
            x_3_1 = fma(l_2_3, (vec)(-u_1_1.x), x_3_1);
            const vec l_3_0 = coefficients[at + 48u + own / MR];
            x_0_0 = fma(l_3_0, (vec)(-u_1_0.y), x_0_0);
            x_0_1 = fma(l_3_0, (vec)(-u_1_1.y), x_0_1);
            const vec l_3_1 = coefficients[at + 52u + own / MR];
            x_1_0 = fma(l_3_1, (vec)(-u_1_0.y), x_1_0);
            x_1_1 = fma(l_3_1, (vec)(-u_1_1.y), x_1_1);
            const vec l_3_2 = coefficients[at + 56u + own / MR];
            x_2_0 = fma(l_3_2, (vec)(-u_1_0.y), x_2_0);
            x_2_1 = fma(l_3_2, (vec)(-u_1_1.y), x_2_1);
            const vec l_3_3 = coefficients[at + 60u + own / MR];
            x_3_0 = fma(l_3_3, (vec)(-u_1_0.y), x_3_0);
            x_3_1 = fma(l_3_3, (vec)(-u_1_1.y), x_3_1);
            const vec u_2_0 = solved[(0u * LANES + t % LANES) * 4u + 2u];
            const vec u_2_1 = solved[(1u * LANES + t % LANES) * 4u + 2u];
            const vec l_4_0 = coefficients[at + 64u + own / MR];
            x_0_0 = fma(l_4_0, (vec)(-u_2_0.x), x_0_0);
            x_0_1 = fma(l_4_0, (vec)(-u_2_1.x), x_0_1);
            const vec l_4_1 = coefficients[at + 68u + own / MR];
            x_1_0 = fma(l_4_1, (vec)(-u_2_0.x), x_1_0);
            x_1_1 = fma(l_4_1, (vec)(-u_2_1.x), x_1_1);
            const vec l_4_2 = coefficients[at + 72u + own / MR];
            x_2_0 = fma(l_4_2, (vec)(-u_2_0.x), x_2_0);
            x_2_1 = fma(l_4_2, (vec)(-u_2_1.x), x_2_1);
            const vec l_4_3 = coefficients[at + 76u + own / MR];
            x_3_0 = fma(l_4_3, (vec)(-u_2_0.x), x_3_0);
            x_3_1 = fma(l_4_3, (vec)(-u_2_1.x), x_3_1);
            const vec l_5_0 = coefficients[at + 80u + own / MR];
            x_0_0 = fma(l_5_0, (vec)(-u_2_0.y), x_0_0);
            x_0_1 = fma(l_5_0, (vec)(-u_2_1.y), x_0_1);
            const vec l_5_1 = coefficients[at + 84u + own / MR];
            x_1_0 = fma(l_5_1, (vec)(-u_2_0.y), x_1_0);
            x_1_1 = fma(l_5_1, (vec)(-u_2_1.y), x_1_1);
            const vec l_5_2 = coefficients[at + 88u + own / MR];
            x_2_0 = fma(l_5_2, (vec)(-u_2_0.y), x_2_0);
            x_2_1 = fma(l_5_2, (vec)(-u_2_1.y), x_2_1);
            const vec l_5_3 = coefficients[at + 92u + own / MR];
            x_3_0 = fma(l_5_3, (vec)(-u_2_0.y), x_3_0);
            x_3_1 = fma(l_5_3, (vec)(-u_2_1.y), x_3_1);
            const vec u_3_0 = solved[(0u * LANES + t % LANES) * 4u + 3u];
            const vec u_3_1 = solved[(1u * LANES + t % LANES) * 4u + 3u];
            const vec l_6_0 = coefficients[at + 96u + own / MR];
            x_0_0 = fma(l_6_0, (vec)(-u_3_0.x), x_0_0);
            x_0_1 = fma(l_6_0, (vec)(-u_3_1.x), x_0_1);
            const vec l_6_1 = coefficients[at + 100u + own / MR];
            x_1_0 = fma(l_6_1, (vec)(-u_3_0.x), x_1_0);
            x_1_1 = fma(l_6_1, (vec)(-u_3_1.x), x_1_1);
            const vec l_6_2 = coefficients[at + 104u + own / MR];
            x_2_0 = fma(l_6_2, (vec)(-u_3_0.x), x_2_0);
            x_2_1 = fma(l_6_2, (vec)(-u_3_1.x), x_2_1);
            const vec l_6_3 = coefficients[at + 108u + own / MR];
            x_3_0 = fma(l_6_3, (vec)(-u_3_0.x), x_3_0);
            x_3_1 = fma(l_6_3, (vec)(-u_3_1.x), x_3_1);
            const vec l_7_0 = coefficients[at + 112u + own / MR];
            x_0_0 = fma(l_7_0, (vec)(-u_3_0.y), x_0_0);
            x_0_1 = fma(l_7_0, (vec)(-u_3_1.y), x_0_1);
            const vec l_7_1 = coefficients[at + 116u + own / MR];
            x_1_0 = fma(l_7_1, (vec)(-u_3_0.y), x_1_0);
            x_1_1 = fma(l_7_1, (vec)(-u_3_1.y), x_1_1);
            const vec l_7_2 = coefficients[at + 120u + own / MR];
            x_2_0 = fma(l_7_2, (vec)(-u_3_0.y), x_2_0);
            x_2_1 = fma(l_7_2, (vec)(-u_3_1.y), x_2_1);
            const vec l_7_3 = coefficients[at + 124u + own / MR];
            x_3_0 = fma(l_7_3, (vec)(-u_3_0.y), x_3_0);
            x_3_1 = fma(l_7_3, (vec)(-u_3_1.y), x_3_1);
        }
        coefficients[128u - at + place_0] = next_0;
        coefficients[128u - at + place_1] = next_1;
        coefficients[128u - at + place_2] = next_2;
        coefficients[128u - at + place_3] = next_3;
        coefficients[128u - at + place_4] = next_4;
        coefficients[128u - at + place_5] = next_5;
        coefficients[128u - at + place_6] = next_6;
        coefficients[128u - at + place_7] = next_7;
        workgroupBarrier();
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
