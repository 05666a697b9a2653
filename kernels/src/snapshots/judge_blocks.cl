#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#define MIN_POSITIVE 2.2250738585072014e-308
typedef double vec;
#define ITEMS 32
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
struct Args { size n; size order; size unit; real limit; size a_at; size a_step; size v_at; size v_ld; size z_at; size y_at; size flags_at; };

// Judges the inverses of the blocks on the diagonal of a triangle. A block of V has `order` rows (the last one may have fewer), and begins at
// the same row and column as its block of the triangle. A workgroup judges one block. sums[z_at + k] is the sum of the magnitudes of column k of the block, and
// sums[y_at + k] the sum of column k of the product of the magnitudes of the block and of its inverse.
//
// An inverse is kept if in each of its columns sums[y_at + k] <= limit, the pivot a[a_at + k·a_step] is neither zero nor subnormal, and the
// square of sums[z_at + k] is at most the reciprocal of the smallest normal number. The last condition rejects blocks with very
// large elements, because elements of their inverses may underflow. An inverse that is not kept becomes the identity.
// sums[flags_at + first row of the block] becomes zero if the inverse is kept, and else one. The kernel does not read a unit diagonal.

__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void judge_blocks(const size n, const size order, const size unit, const real limit, __global const real *restrict a, const size a_at, const size a_step, __global real *restrict v, const size v_at, const size v_ld, __global real *restrict sums, const size z_at, const size y_at, const size flags_at) {
    const struct Args args = { n, order, unit, limit, a_at, a_step, v_at, v_ld, z_at, y_at, flags_at };
    __local u32 counts[32];
    const uint2 group = (uint2)(get_group_id(0), get_group_id(1));
    const u32 t = get_local_id(0) + get_local_id(1) * get_local_size(0);
    const size begin = group.x * args.order;
    const size rows = min(args.order, args.n - begin);
    // the number of columns that meet the conditions, since comparisons with NaN are false
    u32 count = 0u;
    for (size k = begin + t; k < begin + rows; k += ITEMS) {
        real pivot = real(1);
        if (args.unit == 0u) { pivot = abs(a[args.a_at + k * args.a_step]); }
        const real z = sums[args.z_at + k];
        if (pivot >= MIN_POSITIVE && z * z * MIN_POSITIVE <= real(1) && sums[args.y_at + k] <= args.limit) { count += 1u; }
    }
    counts[t] = count;
    workgroupBarrier();
    if (t < 16u) { counts[t] += counts[t + 16u]; }
    workgroupBarrier();
    if (t < 8u) { counts[t] += counts[t + 8u]; }
    workgroupBarrier();
    if (t < 4u) { counts[t] += counts[t + 4u]; }
    workgroupBarrier();
    if (t < 2u) { counts[t] += counts[t + 2u]; }
    workgroupBarrier();
    if (t < 1u) { counts[t] += counts[t + 1u]; }
    workgroupBarrier();
    const bool keeps = counts[0] == rows;
    if (t == 0u) { sums[args.flags_at + begin] = select(real(1), real(0), keeps); }
    if (!keeps) {
        for (size e = t; e < rows * rows; e += ITEMS) {
            const size i = e % rows;
            const size k = e / rows;
            v[args.v_at + begin + i + (begin + k) * args.v_ld] = select(real(0), real(1), i == k);
        }
    }
}
