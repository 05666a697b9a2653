typedef float real;
#define MIN_POSITIVE 1.17549435e-38f
typedef float4 vec;
#define ITEMS 256
#define SIDE 32
#define V 4
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
struct Args { size k; size k_pad; size a_lines; size a_at; size a_by_line; size a_by_k; size a_dst; size a_ld; size b_lines; size b_at; size b_by_line; size b_by_k; size b_dst; size b_ld; };

// Copies lines of one or two matrices side by side into whole vectors of dst, with zeros for missing lines and terms. Element (l,
// p) of a, which has a_lines lines of k elements, is a[a_at + l·a_by_line + p·a_by_k]. The kernel copies this element to
// dst[a_dst + l + p·a_ld], for l below a_ld and p below k_pad. The lines of b, if there is a second matrix, are copied in the
// same way. A workgroup copies SIDE x SIDE elements, so that it reads and writes contiguous elements in both directions.

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void pad(const size k, const size k_pad, __global const real *restrict a, const size a_lines, const size a_at, const size a_by_line, const size a_by_k, const size a_dst, const size a_ld, __global const real *restrict b, const size b_lines, const size b_at, const size b_by_line, const size b_by_k, const size b_dst, const size b_ld, __global vec *restrict dst) {
    const struct Args args = { k, k_pad, a_lines, a_at, a_by_line, a_by_k, a_dst, a_ld, b_lines, b_at, b_by_line, b_by_k, b_dst, b_ld };
    __local real square[1056];
    const uint2 group = (uint2)(get_group_id(0), get_group_id(1));
    const u32 t = get_local_id(0) + get_local_id(1) * get_local_size(0);
    // the workgroups copy the squares of the first matrix, then the squares of the second matrix
    const u32 squares = (args.k_pad + SIDE - 1u) / SIDE;
    const bool second = group.y >= squares;
    const u32 l0 = group.x * SIDE;
    const u32 p0 = (group.y % squares) * SIDE;
    const u32 lines = select(args.a_lines, args.b_lines, second);
    const size at = select(args.a_at, args.b_at, second);
    const size by_line = select(args.a_by_line, args.b_by_line, second);
    const size by_k = select(args.a_by_k, args.b_by_k, second);
    const size dst_at = select(args.a_dst, args.b_dst, second);
    const size dst_ld = select(args.a_ld, args.b_ld, second);
    // `near` counts elements in the direction in which the source is contiguous, and `far` counts in the other direction
    const bool along = by_line == 1u;
    const u32 near = t % SIDE;
    const u32 far = t / SIDE;
    const bool inside = select(p0 + near < args.k, l0 + near < lines, along);
    const u32 rest = select(lines - min(l0, lines), args.k - min(p0, args.k), along);
    const size begin = at + l0 * by_line + p0 * by_k + select(far * by_line + near * by_k, near * by_line + far * by_k, along);
    const size step = 8u * select(by_line, by_k, along);
    const u32 place = select(far + near * (SIDE + 1u), near + far * (SIDE + 1u), along);
    const u32 place_step = select(8u, 264u, along);
    real x_0 = real(0);
    real x_1 = real(0);
    real x_2 = real(0);
    real x_3 = real(0);
    if (second) {
        if (inside && far + 0u < rest) { x_0 = b[begin + 0u * step]; }
        if (inside && far + 8u < rest) { x_1 = b[begin + 1u * step]; }
        if (inside && far + 16u < rest) { x_2 = b[begin + 2u * step]; }
        if (inside && far + 24u < rest) { x_3 = b[begin + 3u * step]; }
    } else {
        if (inside && far + 0u < rest) { x_0 = a[begin + 0u * step]; }
        if (inside && far + 8u < rest) { x_1 = a[begin + 1u * step]; }
        if (inside && far + 16u < rest) { x_2 = a[begin + 2u * step]; }
        if (inside && far + 24u < rest) { x_3 = a[begin + 3u * step]; }
    }
    square[place + 0u * place_step] = x_0;
    square[place + 1u * place_step] = x_1;
    square[place + 2u * place_step] = x_2;
    square[place + 3u * place_step] = x_3;
    workgroupBarrier();
    for (u32 e = t; e < 256u; e += ITEMS) {
        const u32 l = e % 8u * 4u;
        const u32 p = e / 8u;
        if (l0 + l < dst_ld && p0 + p < args.k_pad) {
            const u32 here = l + p * (SIDE + 1u);
            dst[(dst_at + l0 + l + (p0 + p) * dst_ld) / 4u] = (vec)(square[here + 0u], square[here + 1u], square[here + 2u], square[here + 3u]);
        }
    }
}
