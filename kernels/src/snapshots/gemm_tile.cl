#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define real double
#define MIN_POSITIVE 2.2250738585072014e-308
#define MWG 16
#define NWG 8
#define KWG 4
#define MR 4
#define NR 2
#define VWM 2
#define STAGES 2
#define TRANS_A 0
#define TRANS_B 1
// Matrices are column-major: element (i, j) of matrix x is x[x_at + i + j·x_ld].
// Offsets have 64 bits, because a matrix may have more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
// C <- alpha·op(A)·op(B) + beta·C. Each work-group computes a tile of MWG x NWG elements.
//
// Work-item (ti, tj) computes MR x NR elements of the tile: vectors ti + x·WGM, of VWM rows each, in columns tj + y·WGN. The
// factors op(A) and op(B) pass through local memory in slices of KWG terms along k. While the work-items use one slice, they load
// the next slice into registers. If STAGES = 2, local memory has a separate place for the next slice. Slices hold zeros beyond
// the edges of the matrices. If beta = 0, the kernel does not read C.
#define WGM (MWG / MR)
#define WGN (NWG / NR)
#define ITEMS (WGM * WGN)
#define VECTORS (MR / VWM)
#if VWM == 1
#define VEC real
#else
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#define VEC JOIN(real, VWM)
#endif

// Element s of a slice has index i (or j) along the tile and index p along k. The order of the elements lets neighbouring
// work-items read neighbouring memory.
#if TRANS_A
#define A_I(s) ((s) / KWG)
#define A_P(s) ((s) % KWG)
#define OP_A(i, p) AT(a, p, i)
#else
#define A_I(s) ((s) % MWG)
#define A_P(s) ((s) / MWG)
#define OP_A(i, p) AT(a, i, p)
#endif
#if TRANS_B
#define B_J(s) ((s) % NWG)
#define B_P(s) ((s) / NWG)
#define OP_B(p, j) AT(b, j, p)
#else
#define B_J(s) ((s) / KWG)
#define B_P(s) ((s) % KWG)
#define OP_B(p, j) AT(b, p, j)
#endif

__kernel __attribute__((reqd_work_group_size(WGM, WGN, 1)))
void gemm_tile(const ulong m, const ulong n, const ulong k, const real alpha, IN(a), IN(b), const real beta, OUT(c)) {
    // one vector of padding in each line distributes transposed stores over the banks of local memory
    __local VEC slice_a[STAGES][KWG][MWG / VWM + 1];
    __local real slice_b[STAGES][KWG][NWG + 1];
    const int ti = get_local_id(0), tj = get_local_id(1), t = ti + tj * WGM;
    const ulong i0 = get_group_id(0) * (ulong)MWG, j0 = get_group_id(1) * (ulong)NWG;
    const int rows = (int)min((ulong)MWG, m - i0), cols = (int)min((ulong)NWG, n - j0);

    VEC sum[NR][VECTORS];
    #pragma unroll
    for (int y = 0; y < NR; ++y)
        #pragma unroll
        for (int x = 0; x < VECTORS; ++x) sum[y][x] = (VEC)(0);

    real next_a[MWG * KWG / ITEMS], next_b[NWG * KWG / ITEMS];
    int used = STAGES - 1;
    for (ulong p0 = 0; p0 < k + KWG; p0 += KWG) {
        // the slice at p0 is fetched while the previous slice is multiplied
        const int depth = p0 < k ? (int)min((ulong)KWG, k - p0) : 0;
        if (depth > 0) {
            #pragma unroll
            for (int e = 0; e < MWG * KWG / ITEMS; ++e) {
                const int i = A_I(t + e * ITEMS), p = A_P(t + e * ITEMS);
                next_a[e] = i < rows && p < depth ? OP_A(i0 + i, p0 + p) : 0;
            }
            #pragma unroll
            for (int e = 0; e < NWG * KWG / ITEMS; ++e) {
                const int j = B_J(t + e * ITEMS), p = B_P(t + e * ITEMS);
                next_b[e] = j < cols && p < depth ? OP_B(p0 + p, j0 + j) : 0;
            }
        }
        if (p0 > 0) {
            #pragma unroll
            for (int p = 0; p < KWG; ++p) {
                VEC x_a[VECTORS];
                real x_b[NR];
                #pragma unroll
                for (int x = 0; x < VECTORS; ++x) x_a[x] = slice_a[used][p][ti + x * WGM];
                #pragma unroll
                for (int y = 0; y < NR; ++y) x_b[y] = slice_b[used][p][tj + y * WGN];
                #pragma unroll
                for (int y = 0; y < NR; ++y)
                    #pragma unroll
                    for (int x = 0; x < VECTORS; ++x) sum[y][x] += x_a[x] * (VEC)(x_b[y]);
            }
        }
        used = (used + 1) % STAGES;
        // with one stage, all work-items must have used the current slice before the next slice overwrites it
        if (STAGES == 1) barrier(CLK_LOCAL_MEM_FENCE);
        if (depth > 0) {
            #pragma unroll
            for (int e = 0; e < MWG * KWG / ITEMS; ++e)
                ((__local real *)slice_a[used][A_P(t + e * ITEMS)])[A_I(t + e * ITEMS)] = next_a[e];
            #pragma unroll
            for (int e = 0; e < NWG * KWG / ITEMS; ++e) slice_b[used][B_P(t + e * ITEMS)][B_J(t + e * ITEMS)] = next_b[e];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }

    #pragma unroll
    for (int y = 0; y < NR; ++y)
        #pragma unroll
        for (int x = 0; x < MR; ++x) {
            const int i = (ti + x / VWM * WGM) * VWM + x % VWM, j = tj + y * WGN;
            if (i < rows && j < cols) {
                const real product = alpha * ((const real *)sum[y])[x];
                AT(c, i0 + i, j0 + j) = beta == 0 ? product : product + beta * AT(c, i0 + i, j0 + j);
            }
        }
}
