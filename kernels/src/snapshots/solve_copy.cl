#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#define MIN_POSITIVE 2.2250738585072014e-308
typedef double vec;
#define ITEMS 16
#define EACH 2
#define NR 4
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
struct Args { size n; size nrhs; size unit; size flag_at; size a_at; stride a_i; stride a_k; size b_at; stride b_i; stride b_r; size c_at; stride c_i; stride c_r; };

// Copies the right-hand sides of a triangular system of at most 32 unknowns. If flags[flag_at] is not zero, the kernel solves the
// system by forward substitution, and writes the unknowns in place of the copy. Coefficient k of equation i is a[a_at + i·a_i + k·a_k]. Unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]
// and is written to c[c_at + i·c_i + r·c_r]. For backward substitution, the caller passes the positions of the last unknown and negative
// strides. The kernel reads neither coefficients above the diagonal nor a unit diagonal.
//
// A workgroup has NR right-hand sides. An invocation holds every unknown with an index t + p·ITEMS, for p below EACH. In each step, the
// invocation with the next unknown divides by its pivot and writes the unknown to workgroup memory. The other invocations eliminate the
// unknown from later equations. Two steps use different halves of workgroup memory, so that a step needs one barrier.

__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void solve_copy(const size n, const size nrhs, const size unit, __global const real *restrict flags, const size flag_at, __global const real *restrict a, const size a_at, const stride a_i, const stride a_k, __global const real *restrict b, const size b_at, const stride b_i, const stride b_r, __global real *restrict c, const size c_at, const stride c_i, const stride c_r) {
    const struct Args args = { n, nrhs, unit, flag_at, a_at, a_i, a_k, b_at, b_i, b_r, c_at, c_i, c_r };
    __local real solved[8];
    const uint2 group = (uint2)(get_group_id(0), get_group_id(1));
    const u32 t = get_local_id(0) + get_local_id(1) * get_local_size(0);
    const stride origin = stride(args.a_at);
    const size r_0 = group.x * NR + 0u;
    const stride from_0 = stride(args.b_at) + stride(min(r_0, args.nrhs - 1u)) * args.b_r;
    const size r_1 = group.x * NR + 1u;
    const stride from_1 = stride(args.b_at) + stride(min(r_1, args.nrhs - 1u)) * args.b_r;
    const size r_2 = group.x * NR + 2u;
    const stride from_2 = stride(args.b_at) + stride(min(r_2, args.nrhs - 1u)) * args.b_r;
    const size r_3 = group.x * NR + 3u;
    const stride from_3 = stride(args.b_at) + stride(min(r_3, args.nrhs - 1u)) * args.b_r;
    const u32 i_0 = t + 0u * ITEMS;
    real x_0_0 = (real)(0);
    real x_0_1 = (real)(0);
    real x_0_2 = (real)(0);
    real x_0_3 = (real)(0);
    if (i_0 < args.n) {
        x_0_0 = b[from_0 + stride(i_0) * args.b_i];
        x_0_1 = b[from_1 + stride(i_0) * args.b_i];
        x_0_2 = b[from_2 + stride(i_0) * args.b_i];
        x_0_3 = b[from_3 + stride(i_0) * args.b_i];
    }
    const u32 i_1 = t + 1u * ITEMS;
    real x_1_0 = (real)(0);
    real x_1_1 = (real)(0);
    real x_1_2 = (real)(0);
    real x_1_3 = (real)(0);
    if (i_1 < args.n) {
        x_1_0 = b[from_0 + stride(i_1) * args.b_i];
        x_1_1 = b[from_1 + stride(i_1) * args.b_i];
        x_1_2 = b[from_2 + stride(i_1) * args.b_i];
        x_1_3 = b[from_3 + stride(i_1) * args.b_i];
    }
    // a loop without steps takes the place of an `if`, because some compilers refuse a barrier in a branch
    const u32 steps = select(0u, args.n, flags[args.flag_at] != real(0));
    for (u32 k = 0u * ITEMS; k < min(1u * ITEMS, steps); k++) {
        const u32 at = k % 2u * NR;
        real l_0 = (real)(0);
        if (i_0 > k && i_0 < args.n) { l_0 = a[origin + stride(i_0) * args.a_i + stride(k) * args.a_k]; }
        real l_1 = (real)(0);
        if (i_1 > k && i_1 < args.n) { l_1 = a[origin + stride(i_1) * args.a_i + stride(k) * args.a_k]; }
        if (i_0 == k) {
            if (args.unit == 0u) {
                const real pivot = a[origin + stride(k) * (args.a_i + args.a_k)];
                x_0_0 /= pivot;
                x_0_1 /= pivot;
                x_0_2 /= pivot;
                x_0_3 /= pivot;
            }
            solved[at + 0u] = x_0_0;
            solved[at + 1u] = x_0_1;
            solved[at + 2u] = x_0_2;
            solved[at + 3u] = x_0_3;
        }
        workgroupBarrier();
        if (i_0 > k) {
            x_0_0 = fma(-l_0, solved[at + 0u], x_0_0);
            x_0_1 = fma(-l_0, solved[at + 1u], x_0_1);
            x_0_2 = fma(-l_0, solved[at + 2u], x_0_2);
            x_0_3 = fma(-l_0, solved[at + 3u], x_0_3);
        }
        if (i_1 > k) {
            x_1_0 = fma(-l_1, solved[at + 0u], x_1_0);
            x_1_1 = fma(-l_1, solved[at + 1u], x_1_1);
            x_1_2 = fma(-l_1, solved[at + 2u], x_1_2);
            x_1_3 = fma(-l_1, solved[at + 3u], x_1_3);
        }
    }
    for (u32 k = 1u * ITEMS; k < min(2u * ITEMS, steps); k++) {
        const u32 at = k % 2u * NR;
        real l_1 = (real)(0);
        if (i_1 > k && i_1 < args.n) { l_1 = a[origin + stride(i_1) * args.a_i + stride(k) * args.a_k]; }
        if (i_1 == k) {
            if (args.unit == 0u) {
                const real pivot = a[origin + stride(k) * (args.a_i + args.a_k)];
                x_1_0 /= pivot;
                x_1_1 /= pivot;
                x_1_2 /= pivot;
                x_1_3 /= pivot;
            }
            solved[at + 0u] = x_1_0;
            solved[at + 1u] = x_1_1;
            solved[at + 2u] = x_1_2;
            solved[at + 3u] = x_1_3;
        }
        workgroupBarrier();
        if (i_1 > k) {
            x_1_0 = fma(-l_1, solved[at + 0u], x_1_0);
            x_1_1 = fma(-l_1, solved[at + 1u], x_1_1);
            x_1_2 = fma(-l_1, solved[at + 2u], x_1_2);
            x_1_3 = fma(-l_1, solved[at + 3u], x_1_3);
        }
    }
    if (i_0 < args.n) {
        if (r_0 < args.nrhs) {
            c[stride(args.c_at) + stride(i_0) * args.c_i + stride(r_0) * args.c_r] = x_0_0;
        }
        if (r_1 < args.nrhs) {
            c[stride(args.c_at) + stride(i_0) * args.c_i + stride(r_1) * args.c_r] = x_0_1;
        }
        if (r_2 < args.nrhs) {
            c[stride(args.c_at) + stride(i_0) * args.c_i + stride(r_2) * args.c_r] = x_0_2;
        }
        if (r_3 < args.nrhs) {
            c[stride(args.c_at) + stride(i_0) * args.c_i + stride(r_3) * args.c_r] = x_0_3;
        }
    }
    if (i_1 < args.n) {
        if (r_0 < args.nrhs) {
            c[stride(args.c_at) + stride(i_1) * args.c_i + stride(r_0) * args.c_r] = x_1_0;
        }
        if (r_1 < args.nrhs) {
            c[stride(args.c_at) + stride(i_1) * args.c_i + stride(r_1) * args.c_r] = x_1_1;
        }
        if (r_2 < args.nrhs) {
            c[stride(args.c_at) + stride(i_1) * args.c_i + stride(r_2) * args.c_r] = x_1_2;
        }
        if (r_3 < args.nrhs) {
            c[stride(args.c_at) + stride(i_1) * args.c_i + stride(r_3) * args.c_r] = x_1_3;
        }
    }
}
