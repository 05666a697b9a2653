#define ITEMS 32

// Multiplies 16 lines of P by 8 lines of Q, with 8 terms, on the matrix unit of a multiprocessor. The call shows whether a device has the
// instructions of gemm_mma.
//     x[8·l + p] = P(l, p) for l < 16, x[128 + 8·l + p] = Q(l, p) for l < 8,    y[i + 16·j] <- sum of P(i, p)·Q(j, p) for p < 8

__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void mma_probe(__global const real *restrict x, __global real *restrict y) {
    __local real lines[24 * 8] __attribute__((aligned(16)));
    FRAGMENTS
    const uint lane = get_local_id(0), g = lane / 4, t = lane % 4;
    for (uint e = 2 * lane; e < 24 * 8; e += 64) copy(local_address(lines) + 8 * e, x + e);
    END_OF_COPY;
    WAIT_FOR_COPIES(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    real p[4], q[2], sum[4] = {0, 0, 0, 0};
    #pragma unroll
    for (int s = 0; s < 2; ++s) {
        q[s] = lines[(16 + g) * 8 + t + 4 * s];
        #pragma unroll
        for (int h = 0; h < 2; ++h) p[h + 2 * s] = lines[(g + 8 * h) * 8 + t + 4 * s];
    }
    MULTIPLY(sum, p, q);
    #pragma unroll
    for (int e = 0; e < 4; ++e) y[g + 8 * (e / 2) + 16 * (2 * t + e % 2)] = sum[e];
}
