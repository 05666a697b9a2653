#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#define MIN_POSITIVE 2.2250738585072014e-308
typedef double vec;
#define ITEMS 64
#define SIDE 32
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
struct Args { size n; size order; size upper; size unit; size weighted; size a_at; size a_i; size a_k; size weights_at; size sums_at; };

// Sums the magnitudes of the columns of the blocks on the diagonal of a triangle: sums[sums_at + k] <- Σ w_i·|element (i, k)|. Row i and
// column k belong to the same block, and w_i is sums[weights_at + i], or one if weighted is zero. Element (i, k) is a[a_at + i·a_i +
// k·a_k]. The kernel reads neither elements outside of the triangle nor a unit diagonal.
//
// A workgroup sums SIDE columns. Neighbouring invocations read neighbouring elements, whether a column or a row is contiguous. Each
// invocation sums some of the elements of a column; one invocation for each column then adds these partial sums.

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void sum_blocks(const size n, const size order, const size upper, const size unit, const size weighted, __global const real *restrict a, const size a_at, const size a_i, const size a_k, __global real *restrict sums, const size weights_at, const size sums_at) {
    const struct Args args = { n, order, upper, unit, weighted, a_at, a_i, a_k, weights_at, sums_at };
    __local real parts[1056];
    const uint2 group = (uint2)(get_group_id(0), get_group_id(1));
    const u32 t = get_local_id(0) + get_local_id(1) * get_local_size(0);
    // `order` is a multiple of SIDE, so that the columns of a workgroup lie in the same block
    const size first = group.x * SIDE;
    const size begin = first / args.order * args.order;
    const size end = min(begin + args.order, args.n);
    const bool along = args.a_i == 1u;
    const u32 near = t % SIDE;
    const u32 far = t / SIDE;
    const u32 k_first = select(near, far, along);
    const u32 k_step = select(SIDE, 2u, along);
    const u32 i_first = select(far, near, along);
    const u32 i_step = select(2u, SIDE, along);
    for (u32 column = k_first; column < SIDE; column += k_step) {
        const size k = first + column;
        real sum = (real)(0);
        if (k < end) {
            const bool lower = args.upper == 0u;
            const size stop = select(k + 1u, end, lower);
            for (size i = select(begin, k, lower) + i_first; i < stop; i += i_step) {
                real x = real(1);
                if (args.unit == 0u || i != k) { x = abs(a[args.a_at + i * args.a_i + k * args.a_k]); }
                if (args.weighted != 0u) { x *= sums[args.weights_at + i]; }
                sum += x;
            }
        }
        parts[column * (SIDE + 1u) + i_first] = sum;
    }
    workgroupBarrier();
    if (t < SIDE && first + t < args.n) {
        real total = (real)(0);
        for (u32 p = 0u; p < i_step; p++) {
            total += parts[t * (SIDE + 1u) + p];
        }
        sums[args.sums_at + first + t] = total;
    }
}
