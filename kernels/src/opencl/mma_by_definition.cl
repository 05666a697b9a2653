
// The instruction of mma.cl in OpenCL C. The work-items of a sub-group exchange p and q through local memory.
#ifdef TWO_PARTS
typedef uint element;
#else
typedef real element;
#endif
#define FRAGMENTS \
    __local element fragments[ITEMS][6]; \
    __local element (*const exchanged)[6] = fragments + get_local_id(0) / 32 * 32;

#ifdef TWO_PARTS
// Returns x and y, rounded to half precision, as the lower and the upper half of a number.
static uint pack(float x, float y) {
    ushort halves[2];
    vstore_half_rte(x, 0, (half *)halves);
    vstore_half_rte(y, 1, (half *)halves);
    return halves[0] | (uint)halves[1] << 16;
}

// The inverse of `pack`.
static void unpack(uint pair, float *x, float *y) {
    const ushort halves[2] = {pair, pair >> 16};
    *x = vload_half(0, (const half *)halves);
    *y = vload_half(1, (const half *)halves);
}
#endif

// Returns sum + x·y.
static real add_product(real sum, element x, element y) {
#ifdef TWO_PARTS
    float of_x[2], of_y[2];
    unpack(x, of_x, of_x + 1);
    unpack(y, of_y, of_y + 1);
    return fma(of_x[1], of_y[1], fma(of_x[0], of_y[0], sum));
#else
    return fma(x, y, sum);
#endif
}

static void multiply(real sum[4], const element p[4], const element q[2], __local element (*exchanged)[6]) {
    const int lane = get_local_id(0) % 32, g = lane / 4, t = lane % 4;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = 0; e < 4; ++e) exchanged[lane][e] = p[e];
    for (int s = 0; s < 2; ++s) exchanged[lane][4 + s] = q[s];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = 0; e < 4; ++e)
        for (int term = 0; term < 8; ++term) {
            const int h = e / 2, s = e % 2;
            __local const element *p_term = exchanged[4 * g + term % 4], *q_term = exchanged[4 * (2 * t + s) + term % 4];
            sum[e] = add_product(sum[e], p_term[h + term / 4 * 2], q_term[4 + term / 4]);
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
