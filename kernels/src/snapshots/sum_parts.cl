#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
#define MIN_POSITIVE 2.2250738585072014e-308
typedef double vec;
#define ITEMS 64
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
struct Args { size m; size n; size count; real alpha; real beta; size c_at; size c_ld; };

// C <- alpha·(part 0 + part 1 + ... + part (count - 1)) + beta·C. An invocation computes one element of C.
//
// Element (i, j) of C is element i + j·m of each part, and a part has m·n elements. An invocation adds the parts in this order, so that
// results are reproducible. If beta = 0, the kernel does not read C.
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void sum_parts(const size m, const size n, const size count, const real alpha, __global const real *restrict parts, const real beta, __global real *restrict c, const size c_at, const size c_ld) {
    const struct Args args = { m, n, count, alpha, beta, c_at, c_ld };
    const uint2 item = (uint2)(get_global_id(0), get_global_id(1));
    const size elements = args.m * args.n;
    if (item.x >= elements) { return; }
    real sum = (real)(0);
    for (size part = 0u; part < args.count; part++) {
        sum += parts[item.x + part * elements];
    }
    const size at = args.c_at + item.x % args.m + item.x / args.m * args.c_ld;
    if (args.beta == real(0)) {
        c[at] = args.alpha * sum;
    } else {
        c[at] = args.alpha * sum + args.beta * c[at];
    }
}
