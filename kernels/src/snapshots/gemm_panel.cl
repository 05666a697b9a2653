#define real float
#define MIN_POSITIVE 1.17549435e-38f
#define MV 1
#define VW 4
#define NR 3
#define GROUP 8
// Matrices are column-major: element (i, j) of matrix x is x[x_at + i + j·x_ld].
// Offsets have 64 bits, because a matrix may have more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
// C <- alpha·A·B + beta·C without barriers, for devices whose work-items are threads with vector registers. Each work-item
// computes MR x NR elements.
//
// A is packed in panels of MR rows, and B in panels of NR columns. A panel consists of `width` lines of k elements. Element p of
// line l is p·width + l elements after the start of the panel. The last panel is filled up with zeros. If beta = 0, the kernel
// does not read C.
#define MR (MV * VW)
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#define VEC JOIN(real, VW)
#define LOAD JOIN(vload, VW)
#define STORE JOIN(vstore, VW)

// Packs `lines` lines of k elements into panels of `width` lines. Element p of line l is src[src_at + l·by_line + p·by_k]. Each
// work-item packs one panel.
__kernel void pack(const ulong width, const ulong lines, const ulong k, __global const real *restrict src, const ulong src_at,
                   const ulong by_line, const ulong by_k, __global real *restrict panels, const ulong panels_at) {
    const ulong first = get_global_id(0) * width;
    if (first >= lines) return;
    const uint here = (uint)min(width, lines - first);
    __global const real *from = src + src_at + first * by_line;
    __global real *to = panels + panels_at + first * k;
    for (ulong p = 0; p < k; ++p, from += by_k, to += width) {
        if (by_line == 1 && here == width) {
            for (uint l = 0; l < width; ++l) to[l] = from[l];
        } else {
            for (uint l = 0; l < here; ++l) to[l] = from[l * by_line];
            for (uint l = here; l < width; ++l) to[l] = 0;
        }
    }
}

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void gemm_panel(const ulong m, const ulong n, const ulong k, const real alpha, __global const real *restrict panels,
                const ulong a_at, const ulong b_at, const real beta, OUT(c)) {
    const ulong i0 = get_global_id(1) * (ulong)MR, j0 = get_global_id(0) * (ulong)NR;
    if (i0 >= m || j0 >= n) return;
    __global const real *a = panels + a_at + i0 * k;
    __global const real *b = panels + b_at + j0 * k;

    VEC sum[NR][MV];
    #pragma unroll
    for (int y = 0; y < NR; ++y)
        #pragma unroll
        for (int x = 0; x < MV; ++x) sum[y][x] = (VEC)(0);
    for (ulong p = 0; p < k; ++p, a += MR, b += NR) {
        VEC column[MV];
        #pragma unroll
        for (int x = 0; x < MV; ++x) column[x] = LOAD(x, a);
        #pragma unroll
        for (int y = 0; y < NR; ++y)
            #pragma unroll
            for (int x = 0; x < MV; ++x) sum[y][x] += column[x] * (VEC)(b[y]);
    }

    if (i0 + MR <= m && j0 + NR <= n) {
        #pragma unroll
        for (int y = 0; y < NR; ++y)
            #pragma unroll
            for (int x = 0; x < MV; ++x) {
                __global real *to = &AT(c, i0, j0 + y);
                const VEC product = (VEC)(alpha) * sum[y][x];
                STORE(beta == 0 ? product : product + (VEC)(beta) * LOAD(x, to), x, to);
            }
        return;
    }
    for (int y = 0; y < NR; ++y)
        for (int x = 0; x < MV; ++x) {
            real edge[VW];
            STORE(sum[y][x], 0, edge);
            for (int v = 0; v < VW; ++v) {
                const ulong i = i0 + x * VW + v, j = j0 + y;
                if (i < m && j < n) {
                    const real product = alpha * edge[v];
                    AT(c, i, j) = beta == 0 ? product : product + beta * AT(c, i, j);
                }
            }
        }
}
