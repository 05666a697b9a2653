
// Single precision: the work-items multiply and add by fma, because matrix units would round the operands. P = op(A), Q = op(B).
// Work-item `lane` of a sub-group has the place (x, y) = (lane / 2 % 8, lane / 16 · 2 + lane % 2) of 8 x 4 places, and holds
//     rows 4x + e + 32h and columns 4y + e + 16h of the sub-group's elements, for e < 4 and all h.
// Neighbours in the last bit of `lane` read the same lines of P, and neighbours in the bit before it the same lines of Q.
//
// Line l in term p is element p·P_LINE + l or p·Q_LINE + l of a slice, in all transpositions, so that a step reads contiguous lines. Lines
// that are contiguous in global memory are copied 16 bytes at a time. If the terms are contiguous, a copy moves one element. A
// sub-group then copies 8 terms of 4 lines. The distance of terms, an odd multiple of 4 elements, gives each of these elements a bank of
// its own. Slices in the order of global memory would take fewer copies, but vectors along the terms of 8 lines occupy 32 registers
// where vectors along the lines occupy 8.

#define SWAPPED 0
// whether the terms of a factor are contiguous in memory
#define P_BY_TERMS TRANS_A
#define Q_BY_TERMS (!TRANS_B)
#define P_WG MWG
#define Q_WG NWG
// a step has one term
#define STEPS KWG
// number of fragments of 4 lines of each factor, and of elements of a fragment and of a product of two
#define P_PARTS (MW / 32)
#define Q_PARTS (NW / 16)
#define P_PART 4
#define Q_PART 4
#define PRODUCT 16
// distance of terms, in elements
#define P_LINE (P_WG + 4 * P_BY_TERMS)
#define Q_LINE (Q_WG + 4 * Q_BY_TERMS)
// elements of a slice of each factor
#define P_SLICE (KWG * P_LINE)
#define Q_SLICE (KWG * Q_LINE)
// elements of a copy along the terms, and terms that a pass of such copies takes
#define TERMS_V 1
#define TERMS_OF_PASS 8

// Returns the place in a slice of a line in a term, if the terms are contiguous.
static uint place_by_terms(uint l, uint p, uint line) {
    return p * line + l;
}

// Returns the distance in a slice of a pass by terms from the first one.
static uint pass_by_terms(uint lines, uint terms, uint line) {
    return terms * line + lines;
}

// Returns the place in a slice of a line in a term, if the lines are contiguous.
static uint place_by_lines(uint p, uint l, uint wg) {
    return p * wg + l;
}

// Returns the address to which a pass by lines copies, `terms` terms after the first pass.
static Address pass_by_lines(Address first, uint terms, uint wg) {
    return first + terms * wg * 4;
}

// Reads a fragment of 4 lines.
static void read_part(float part[4], __local const float *at) {
    const float4 lines = *(__local const float4 *)at;
    part[0] = lines.x;
    part[1] = lines.y;
    part[2] = lines.z;
    part[3] = lines.w;
}

// Reads the work-item's lines of P, where the sub-group begins with line `first` of the slice, in term u.
static void read_p(float p[P_PARTS][P_PART], __local const float *slice, int u, uint first, uint lane) {
    #pragma unroll
    for (int h = 0; h < P_PARTS; ++h) read_part(p[h], slice + u * P_LINE + first + 32 * h + lane / 2 % 8 * 4);
}

// Reads the work-item's lines of Q, where the sub-group begins with line `first` of the slice, in term u.
static void read_q(float q[Q_PARTS][Q_PART], __local const float *slice, int u, uint first, uint lane) {
    #pragma unroll
    for (int h = 0; h < Q_PARTS; ++h) read_part(q[h], slice + u * Q_LINE + first + 16 * h + (lane / 16 * 2 + lane % 2) * 4);
}

// Adds the products of 4 lines of P and 4 lines of Q in one term.
#define FRAGMENTS
#define MULTIPLY(sum, p, q) multiply(sum, p, q)
static void multiply(float sum[PRODUCT], const float p[P_PART], const float q[Q_PART]) {
    #pragma unroll
    for (int j = 0; j < 4; ++j)
        #pragma unroll
        for (int e = 0; e < 4; ++e) {
            // the direction changes from column to column, so that two products that follow one another have a factor in common
            const int i = j % 2 ? 3 - e : e;
            sum[4 * j + i] = fma(p[i], q[j], sum[4 * j + i]);
        }
}

// Writes the sub-group's elements of C, whose first one is element (i_first, j_first).
static void write(const float sum[P_PARTS][Q_PARTS][PRODUCT], uint lane, ulong i_first, ulong j_first, ulong m, ulong n, float alpha,
                  float beta, OUT(c)) {
    #pragma unroll
    for (int x = 0; x < Q_PARTS; ++x)
        #pragma unroll
        for (int r = 0; r < 4; ++r)
            #pragma unroll
            for (int y = 0; y < P_PARTS; ++y) {
                const ulong i = i_first + 32 * y + lane / 2 % 8 * 4, j = j_first + 16 * x + (lane / 16 * 2 + lane % 2) * 4 + r;
                const float *own = sum[y][x] + 4 * r;
#if !GUARDED && V == 4
                const float4 product = alpha * (float4)(own[0], own[1], own[2], own[3]);
                __global float4 *at = (__global float4 *)&AT(c, i, j);
                *at = beta == 0 ? product : product + beta * *at;
#else
                #pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (!GUARDED || (i + e < m && j < n)) {
                        __global float *at = &AT(c, i + e, j);
                        *at = beta == 0 ? alpha * own[e] : alpha * own[e] + beta * *at;
                    }
#endif
            }
}
