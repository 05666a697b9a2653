
#define ITEMS 32
// number of terms of the product
#ifdef TWO_PARTS
#define TERMS 16
#else
#define TERMS 8
#endif

// Multiplies 16 lines of P by 8 lines of Q. The call shows whether a device has the instructions of gemm_mma: copies to local
// memory, of V elements and of one element, whole and in part, and those of a matrix unit if the kernel uses it.
//     x[TERMS·l + p] = P(l, p) for l < 16, x[TERMS·(16 + l) + p] = Q(l, p) for l < 8,    y[i + 16·j] <- sum of P(i, p)·Q(j, p) for p < TERMS
// The last term of the last line of P and of Q counts as outside the matrix, so that zero takes its place.

#ifdef TWO_PARTS
// Returns a pair of neighbouring terms of a line.
static uint element_at(__local const real *line, uint pair) {
    return pack(line[2 * pair], line[2 * pair + 1]);
}
#elif defined(FRAGMENTS)
static real element_at(__local const real *line, uint term) {
    return line[term];
}
#endif

__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void mma_probe(__global const real *restrict x, __global real *restrict y) {
    __local real lines[24 * TERMS] __attribute__((aligned(16)));
    const uint lane = get_local_id(0), g = lane / 4, t = lane % 4;
    const Address to = local_address(lines);
    for (uint e = V * lane; e < 16 * TERMS; e += V * 32) copy(to + REAL_BYTES * e, x + e, V);
    for (uint e = 16 * TERMS + lane; e < 24 * TERMS; e += 32) copy(to + REAL_BYTES * e, x + e, 1);
    END_OF_COPY;
    WAIT_FOR_COPIES(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    const uint p_end = 16 * TERMS - 1, q_end = 24 * TERMS - 1;
    for (uint e = V * lane; e < 16 * TERMS; e += V * 32)
        if (e + V > p_end) copy_part(to + REAL_BYTES * e, x + e, V, (p_end - e) * REAL_BYTES);
    for (uint e = 16 * TERMS + lane; e < 24 * TERMS; e += 32)
        if (e >= q_end - 1) copy_part(to + REAL_BYTES * e, x + e, 1, e < q_end ? REAL_BYTES : 0);
    END_OF_COPY;
    real sum[4] = {0, 0, 0, 0};
#ifdef FRAGMENTS
    FRAGMENTS
    WAIT_FOR_COPIES(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    element p[4], q[2];
    #pragma unroll
    for (int s = 0; s < 2; ++s) {
        q[s] = element_at(lines + (16 + g) * TERMS, t + 4 * s);
        #pragma unroll
        for (int h = 0; h < 2; ++h) p[h + 2 * s] = element_at(lines + (g + 8 * h) * TERMS, t + 4 * s);
    }
    multiply(sum, p, q, exchanged);
#else
    WAIT_FOR_COPIES(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = 0; e < 4; ++e)
        for (int p = 0; p < TERMS; ++p) sum[e] = fma(lines[(g + 8 * (e / 2)) * TERMS + p], lines[(16 + 2 * t + e % 2) * TERMS + p], sum[e]);
#endif
    #pragma unroll
    for (int e = 0; e < 4; ++e) y[g + 8 * (e / 2) + 16 * (2 * t + e % 2)] = sum[e];
}
