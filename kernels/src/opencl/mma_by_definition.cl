
// The instruction of mma.cl in OpenCL C: adds the product of 16 lines of P and 8 lines of Q in 8 terms. Work-item 4g + t of a sub-group holds
//     line g + 8h of P in term t + 4s as p[h + 2s], line g of Q in term t + 4s as q[s],
//     the sum of line g + 8h of P with line 2t + s of Q as sum[2h + s],    for h, s < 2.
// The work-items of a sub-group exchange p and q through local memory.
#define FRAGMENTS \
    __local real fragments[ITEMS][6]; \
    __local real (*const exchanged)[6] = fragments + get_local_id(0) / 32 * 32;
#ifdef TWO_PARTS
#define PART(x) as_float(as_uint(x) & 0xffffe000)
#else
#define PART(x) (x)
#endif
static void multiply(real sum[4], const real p[4], const real q[2], __local real (*exchanged)[6]) {
    const int lane = get_local_id(0) % 32, g = lane / 4, t = lane % 4;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = 0; e < 4; ++e) exchanged[lane][e] = PART(p[e]);
    for (int s = 0; s < 2; ++s) exchanged[lane][4 + s] = PART(q[s]);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = 0; e < 4; ++e)
        for (int term = 0; term < 8; ++term) {
            const int h = e / 2, s = e % 2;
            sum[e] = fma(exchanged[4 * g + term % 4][h + term / 4 * 2], exchanged[4 * (2 * t + s) + term % 4][4 + term / 4], sum[e]);
        }
}

// the reads of mma.cl
static void read_element(real *x, Address at) {
    *x = *(__local const real *)at;
}
static Address opaque(Address at) {
    return at;
}
static void read_pair(real x[2], Address at) {
    for (int e = 0; e < 2; ++e) x[e] = ((__local const real *)at)[e];
}
