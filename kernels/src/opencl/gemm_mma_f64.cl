
// Double precision: the matrix unit of a multiprocessor multiplies.
// The factor whose lines are stored in the order that the instruction needs is called P, the other one Q:
//     P = op(A), Q = op(B), lines of P are rows of C,    or, if both factors are transposed,
//     P = op(B), Q = op(A), lines of P are columns of C.
// One instruction multiplies 16 lines of P by 8 lines of Q, with 8 terms. Work-item 4g + t of a sub-group holds
//     of P: lines 2g + h in terms 2t + s as element h + 2s,    of Q: line g in terms 2t + s as element s,
//     of the product: lines 2g + h of P with lines 2t + s of Q as element 2h + s,    for h, s < 2.
// The instruction numbers lines and terms in another order. The order above gives each work-item neighbours in memory. If the terms of
// both factors are contiguous, no order does that for P, and work-items hold terms t + 4s instead of terms 2t + s.
//
// A chunk is a pair of elements that lie side by side. The places in a slice let a sub-group read from all banks of local memory:
//     lines contiguous in memory:    chunk c of the lines in term p is at place c ^ (p & 6),
//     terms contiguous in memory:    chunk c of the terms of line l is at place c ^ 4·(l % 2),    or, if the terms of both factors are
//     contiguous, at place c of a longer row (P_LINE, Q_LINE).

#define SWAPPED (TRANS_A && TRANS_B)
// whether the terms of a factor are contiguous in memory
#define P_BY_TERMS (TRANS_A && !TRANS_B)
#define Q_BY_TERMS (SWAPPED || !TRANS_B)
#if SWAPPED
#define P_WG NWG
#define Q_WG MWG
#define P_SUB_GROUP NW
#define Q_SUB_GROUP MW
#else
#define P_WG MWG
#define Q_WG NWG
#define P_SUB_GROUP MW
#define Q_SUB_GROUP NW
#endif
// number of steps of 8 terms in a slice
#define STEPS (KWG / 8)
// number of fragments of 16 lines of P and of 8 lines of Q, and of a work-item's elements of a fragment and of a product of two
#define P_PARTS (P_SUB_GROUP / 16)
#define Q_PARTS (Q_SUB_GROUP / 8)
#define P_PART 4
#define Q_PART 2
#define PRODUCT 4
// distance of lines whose terms are contiguous, in elements
#if P_BY_TERMS
#define P_LINE (KWG + 2)
#define Q_LINE (KWG + 4)
#else
#define P_LINE KWG
#define Q_LINE KWG
#endif
// elements of a slice of each factor
#define P_SLICE (P_WG * P_LINE)
#define Q_SLICE (Q_WG * Q_LINE)
// elements of a copy along the terms, and terms that a pass of such copies takes
#define TERMS_V V
#define TERMS_OF_PASS KWG

// Returns the place in a slice of a line in a term, if the terms are contiguous.
static uint place_by_terms(uint l, uint p, uint line) {
#if P_BY_TERMS
    return l * line + p;
#else
    return l * line + (p / 2 ^ 4 * (l % 2)) * 2 + p % 2;
#endif
}

// Returns the distance in a slice of a pass by terms from the first one.
static uint pass_by_terms(uint lines, uint terms, uint line) {
    return lines * line;
}

// Returns the place in a slice of a line in a term, if the lines are contiguous.
static uint place_by_lines(uint p, uint l, uint wg) {
    return p * wg + (l / 2 ^ (p & 6)) * 2 + l % 2;
}

// Returns the address to which a pass by lines copies, `terms` terms after the first pass.
static Address pass_by_lines(Address first, uint terms, uint wg) {
    return (first ^ (terms & 6) * 16) + terms * wg * 8;
}

// Reads the sub-group's lines of P, from line `first` of the slice on, in the terms of step u.
static void read_p(double p[P_PARTS][P_PART], __local const double *slice, int u, uint first, uint lane) {
    const uint g = lane / 4, t = lane % 4;
    #pragma unroll
    for (int i = 0; i < P_PARTS; ++i)
        #pragma unroll
        for (int s = 0; s < 2; ++s) {
#if P_BY_TERMS
            #pragma unroll
            for (int h = 0; h < 2; ++h) p[i][h + 2 * s] = slice[(first + 2 * g + 16 * i + h) * P_LINE + 8 * u + t + 4 * s];
#else
            const double2 pair = *(__local const double2 *)(slice + (8 * u + 2 * t + s) * P_WG + first + 16 * i + (g ^ 2 * t) * 2);
            p[i][2 * s] = pair.x;
            p[i][2 * s + 1] = pair.y;
#endif
        }
}

// Reads the sub-group's lines of Q, from line `first` of the slice on, in the terms of step u.
static void read_q(double q[Q_PARTS][Q_PART], __local const double *slice, int u, uint first, uint lane) {
    const uint g = lane / 4, t = lane % 4;
    #pragma unroll
    for (int i = 0; i < Q_PARTS; ++i) {
#if P_BY_TERMS
        #pragma unroll
        for (int s = 0; s < 2; ++s) q[i][s] = slice[(first + 8 * i + g) * Q_LINE + 8 * u + t + 4 * s];
#elif Q_BY_TERMS
        const double2 pair = *(__local const double2 *)(slice + (first + 8 * i + g) * Q_LINE + (4 * u + t ^ 4 * (g % 2)) * 2);
        q[i][0] = pair.x;
        q[i][1] = pair.y;
#else
        #pragma unroll
        for (int s = 0; s < 2; ++s)
            q[i][s] = slice[(8 * u + 2 * t + s) * Q_WG + first + 16 * (i / 2) + ((4 * (i % 2) + g / 2) ^ 2 * t) * 2 + g % 2];
#endif
    }
}

// Writes the sub-group's elements of C, whose first one is element (i, j).
static void write(const double sum[P_PARTS][Q_PARTS][PRODUCT], uint lane, ulong i_first, ulong j_first, ulong m, ulong n, double alpha,
                  double beta, OUT(c)) {
    const uint g = lane / 4, t = lane % 4;
    // each element of `sum` belongs to a pair of rows of C
    #pragma unroll
    for (int y = 0; y < P_PARTS; ++y)
        #pragma unroll
        for (int x = 0; x < Q_PARTS; ++x)
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                const ulong i = i_first + 2 * (SWAPPED ? t : g) + (SWAPPED ? 8 * x : 16 * y);
                const ulong j = j_first + 2 * (SWAPPED ? g : t) + (SWAPPED ? 16 * y : 8 * x) + r;
                const double *own = sum[y][x];
                const double2 product = alpha * (SWAPPED ? (double2)(own[2 * r], own[2 * r + 1]) : (double2)(own[r], own[2 + r]));
#if GUARDED
                if (j < n) {
                    __global double *at = &AT(c, i, j);
                    if (i < m) at[0] = beta == 0 ? product.x : product.x + beta * at[0];
                    if (i + 1 < m) at[1] = beta == 0 ? product.y : product.y + beta * at[1];
                }
#elif V == 2
                __global double2 *at = (__global double2 *)&AT(c, i, j);
                *at = beta == 0 ? product : product + beta * *at;
#else
                __global double *at = &AT(c, i, j);
                at[0] = beta == 0 ? product.x : product.x + beta * at[0];
                at[1] = beta == 0 ? product.y : product.y + beta * at[1];
#endif
            }
}
