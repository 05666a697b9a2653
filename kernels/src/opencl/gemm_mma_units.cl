
// The matrix unit of a multiprocessor multiplies. The kernel calls the two factors P and Q. A line is a row of op(A) or a
// column of op(B).
//     P = op(A), Q = op(B), and lines of P are rows of C, unless both factors are transposed.
//     P = op(B), Q = op(A), and lines of P are columns of C, if both factors are transposed.
// One instruction multiplies 16 lines of P by 8 lines of Q in 8 terms. Work-item 4g + t of a sub-group holds
//     of P: lines 2g + h in terms 2t + s as element h + 2s,    of Q: line g in terms 2t + s as element s,
//     of the product: lines 2g + h of P with lines 2t + s of Q as element 2h + s,    for h, s < 2.
// In single precision, one instruction multiplies two groups of 8 terms. A work-item holds the elements of the second group, in the order above,
// after those of the first. The instruction itself numbers the lines and terms in another order, which does not change the sum. In the order above, the
// elements that a work-item reads are neighbours in memory. If the terms of both factors are contiguous in memory, the elements of P cannot be
// neighbours. Work-items then hold the terms t + 4s instead of 2t + s.
//
// A chunk is a pair of neighbouring elements. Chunks are permuted, so that the work-items of a sub-group read from different banks of local
// memory, with S = 2 in double precision and S = 4 in single precision:
//     If the lines are contiguous in memory, chunk c of the lines in term p is at place c ^ S/2·(p & 6).
//     If the terms are contiguous in memory, chunk c of the terms of line l is at place c ^ 4·(l % S).
//     If the terms of both factors are contiguous, chunks are not permuted. The distance of two lines is then P_LINE or Q_LINE.

#ifdef TWO_PARTS
#define S 4
#define PAIR float2
// number of groups of 8 terms that an instruction multiplies
#define GROUPS 2
#else
#define S 2
#define PAIR double2
#define GROUPS 1
#define MULTIPLY(sum, p, q) multiply(sum, p, q, exchanged)
#endif
#define SWAPPED (TRANS_A && TRANS_B)
// Whether the work-items read local memory by instructions that the compiler keeps in order. It moves loads in OpenCL C ahead, so that
// registers spill if a factor is transposed. Only whole tiles of 128 x 128 elements without transpositions are faster with these loads
// (bench/results/opencl/2026-11-26-h100-product-shapes.txt).
#define READS_IN_ORDER (S == 4 || TRANS_A || TRANS_B || GUARDED || MWG != 128 || NWG != 128)
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
// An element of C is a sum of k products, of which a slice holds KWG. In each step, the sub-group computes 8 * GROUPS of these products for each of
// its elements, and adds them. STEPS is the number of steps in a slice.
#define STEPS (KWG / (8 * GROUPS))
// number of fragments of a sub-group: of 16 lines of P, and of 8 lines of Q
// number of elements that a work-item holds of a fragment of P, of a fragment of Q and of their product
#define P_PARTS (P_SUB_GROUP / 16)
#define Q_PARTS (Q_SUB_GROUP / 8)
#define P_PART (4 * GROUPS)
#define Q_PART (2 * GROUPS)
#define PRODUCT 4
// distance of lines whose terms are contiguous, in elements
#if P_BY_TERMS
#define P_LINE (KWG + S)
#define Q_LINE (KWG + 4)
#else
#define P_LINE KWG
#define Q_LINE KWG
#endif
// elements of a slice of each factor
#define P_SLICE (P_WG * P_LINE)
#define Q_SLICE (Q_WG * Q_LINE)
// if the terms are contiguous: number of elements of a piece, and number of terms that a pass copies
#define TERMS_V V
#define TERMS_OF_PASS KWG

// Returns the index in a slice of the element of line l in term p, if the terms are contiguous in global memory.
static uint place_by_terms(uint l, uint p, uint line) {
#if P_BY_TERMS
    return l * line + p;
#else
    return l * line + (p / 2 ^ 4 * (l % S)) * 2 + p % 2;
#endif
}

// Returns the distance in a slice between the pieces of the first pass and of a later pass, if the terms are contiguous.
static uint pass_by_terms(uint lines, uint terms, uint line) {
    return lines * line;
}

// Returns the index in a slice of the element of line l in term p, if the lines are contiguous in global memory.
static uint place_by_lines(uint p, uint l, uint wg) {
    return p * wg + (l / 2 ^ S / 2 * (p & 6)) * 2 + l % 2;
}

// Returns the address to which a later pass copies its piece, if the lines are contiguous. `first` is the address of the first pass, and the
// later pass copies terms that follow `terms` terms later.
static Address pass_by_lines(Address first, uint terms, uint wg) {
    return (first ^ (terms & 6) * 16) + terms * wg * REAL_BYTES;
}

// place of an element of a slice, place of the first element of all slices, and the place `elements` after another one
#if READS_IN_ORDER
typedef Address Place;
#define FIRST local_at
#define AFTER(place, elements) ((place) + (elements) * REAL_BYTES)
#else
typedef __local const real *Place;
#define FIRST slices
#define AFTER(place, elements) ((place) + (elements))
#endif

#if !READS_IN_ORDER
// The reads below in OpenCL C, for products in which no factor is transposed.
static void read_p(real p[P_PARTS][P_PART], Place slice, int u, uint first, uint lane) {
    const uint g = lane / 4, t = lane % 4;
    #pragma unroll
    for (int i = 0; i < P_PARTS; ++i)
        #pragma unroll
        for (int s = 0; s < 2; ++s) {
            const PAIR pair = *(__local const PAIR *)(slice + (8 * u + 2 * t + s) * P_WG + first + 16 * i + (g ^ S * t) * 2);
            p[i][2 * s] = pair.x;
            p[i][2 * s + 1] = pair.y;
        }
}
static void read_q(real q[Q_PARTS][Q_PART], Place slice, int u, uint first, uint lane) {
    const uint g = lane / 4, t = lane % 4;
    #pragma unroll
    for (int i = 0; i < Q_PARTS; ++i) {
        const PAIR pair = *(__local const PAIR *)(slice + (first + 8 * i + g) * Q_LINE + (4 * u + t ^ 4 * (g % S)) * 2);
        q[i][0] = pair.x;
        q[i][1] = pair.y;
    }
}
#else
// Reads the sub-group's lines of P, from line `first` of the slice on, in the terms of step `step`.
static void read_p(real p[P_PARTS][P_PART], Place slice, int step, uint first, uint lane) {
    const uint g = lane / 4, t = lane % 4;
#if P_BY_TERMS
    const Place own = opaque(slice + ((first + 2 * g) * P_LINE + t) * REAL_BYTES);
#else
    const Place own = opaque(slice + (2 * t * P_WG + first + (g ^ S * t) * 2) * REAL_BYTES);
#endif
    #pragma unroll
    for (int i = 0; i < P_PARTS; ++i)
        #pragma unroll
        for (int e = 0; e < 2 * GROUPS; ++e) {
            // u: number of the group in the slice, s: which terms of the group
            const int u = GROUPS * step + e / 2, s = e % 2;
#if P_BY_TERMS
            #pragma unroll
            for (int h = 0; h < 2; ++h) read_element(p[i] + h + 2 * e, own + ((16 * i + h) * P_LINE + 8 * u + 4 * s) * REAL_BYTES);
#else
            const Place at = own ^ i % (S / 2) * 16 * REAL_BYTES;
            read_pair(p[i] + 2 * e, at + ((8 * u + s) * P_WG + i / (S / 2) * (8 * S)) * REAL_BYTES);
#endif
        }
}

// Reads the sub-group's lines of Q, from line `first` of the slice on, in the terms of step `step`.
static void read_q(real q[Q_PARTS][Q_PART], Place slice, int step, uint first, uint lane) {
    const uint g = lane / 4, t = lane % 4;
#if P_BY_TERMS
    const Place own = opaque(slice + ((first + g) * Q_LINE + t) * REAL_BYTES);
#elif Q_BY_TERMS
    // slices begin at multiples of 128 bytes
    const Place own = opaque(slice + ((first + g) * Q_LINE + (t ^ 4 * (g % S)) * 2) * REAL_BYTES);
#else
    const Place own = opaque(slice + (2 * t * Q_WG + first + (g / 2 ^ S * t) * 2 + g % 2) * REAL_BYTES);
#endif
    #pragma unroll
    for (int r = 0; r < GROUPS; ++r) {
        const int u = GROUPS * step + r;
        #pragma unroll
        for (int i = 0; i < Q_PARTS; ++i) {
#if P_BY_TERMS
            #pragma unroll
            for (int s = 0; s < 2; ++s) read_element(q[i] + 2 * r + s, own + (8 * i * Q_LINE + 8 * u + 4 * s) * REAL_BYTES);
#elif Q_BY_TERMS
            read_pair(q[i] + 2 * r, (own ^ u % S * 8 * REAL_BYTES) + (8 * i * Q_LINE + u / S * (8 * S)) * REAL_BYTES);
#else
            const Place at = own ^ i % S * 8 * REAL_BYTES;
            #pragma unroll
            for (int s = 0; s < 2; ++s) read_element(q[i] + 2 * r + s, at + ((8 * u + s) * Q_WG + i / S * (8 * S)) * REAL_BYTES);
#endif
        }
    }
}
#endif

// Reads the first `rows` elements of a pair of neighbouring elements of C. The other elements become zero.
static PAIR read_old(__global const real *at, int rows) {
#if GUARDED || V == 1
    return (PAIR)(rows > 0 ? at[0] : 0, rows > 1 ? at[1] : 0);
#else
    return *(__global const PAIR *)at;
#endif
}

// Writes the first `rows` elements of a pair of neighbouring elements of C.
static void write_new(__global real *at, int rows, PAIR pair) {
#if GUARDED || V == 1
    if (rows > 0) at[0] = pair.x;
    if (rows > 1) at[1] = pair.y;
#else
    *(__global PAIR *)at = pair;
#endif
}

// Writes the sub-group's elements of C, whose first one is element (i_first, j_first). Each element of `sum` belongs to a pair of rows of C.
// The work-item reads several old elements before it writes the first of them. Otherwise each read would wait for the read before, because the
// compiler keeps the order of reads and writes.
static void write(const real sum[P_PARTS][Q_PARTS][PRODUCT], uint lane, ulong i_first, ulong j_first, ulong m, ulong n, real alpha,
                  real beta, OUT(c)) {
    const uint g = lane / 4, t = lane % 4;
    #pragma unroll
    for (int y = 0; y < P_PARTS; ++y) {
        __global real *at[Q_PARTS][2];
        int rows[Q_PARTS][2];
        PAIR old[Q_PARTS][2];
        #pragma unroll
        for (int x = 0; x < Q_PARTS; ++x)
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                const ulong i = i_first + 2 * (SWAPPED ? t : g) + (SWAPPED ? 8 * x : 16 * y);
                const ulong j = j_first + 2 * (SWAPPED ? g : t) + (SWAPPED ? 16 * y : 8 * x) + r;
                at[x][r] = &AT(c, i, j);
                // number of elements of the pair inside C
                rows[x][r] = !GUARDED ? 2 : j < n ? (i < m) + (i + 1 < m) : 0;
                old[x][r] = beta == 0 ? (PAIR)(0) : read_old(at[x][r], rows[x][r]);
            }
        #pragma unroll
        for (int x = 0; x < Q_PARTS; ++x)
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                const real *own = sum[y][x];
                const PAIR product = alpha * (SWAPPED ? (PAIR)(own[2 * r], own[2 * r + 1]) : (PAIR)(own[r], own[2 + r]));
                write_new(at[x][r], rows[x][r], beta == 0 ? product : product + beta * old[x][r]);
            }
    }
}

#ifdef TWO_PARTS
// element (i, term) of op(A) and element (term, j) of op(B)
#define OF_A(i, term) (TRANS_A ? AT(a, term, i) : AT(a, i, term))
#define OF_B(term, j) (TRANS_B ? AT(b, j, term) : AT(b, term, j))

// Adds the products of the sub-group's lines of P and Q in the terms of a step. Each instruction adds to another sum than the instruction before
// it, so that it need not wait for the result of that instruction.
static void multiply_split(float sum[P_PARTS][Q_PARTS][PRODUCT], const float p[P_PARTS][P_PART], const float q[Q_PARTS][Q_PART],
                           __local element (*exchanged)[6]) {
    uint p_high[P_PARTS][4], p_low[P_PARTS][4];
    #pragma unroll
    for (int y = 0; y < P_PARTS; ++y)
        #pragma unroll
        for (int r = 0; r < 2; ++r)
            #pragma unroll
            for (int h = 0; h < 2; ++h) split(p[y][4 * r + h], p[y][4 * r + h + 2], p_high[y] + h + 2 * r, p_low[y] + h + 2 * r);
    #pragma unroll
    for (int x = 0; x < Q_PARTS; ++x) {
        uint q_high[2], q_low[2];
        float own[P_PARTS][PRODUCT];
        #pragma unroll
        for (int r = 0; r < 2; ++r) split(q[x][2 * r], q[x][2 * r + 1], q_high + r, q_low + r);
        #pragma unroll
        for (int y = 0; y < P_PARTS; ++y)
            #pragma unroll
            for (int e = 0; e < PRODUCT; ++e) own[y][e] = 0;
        #pragma unroll
        for (int y = 0; y < P_PARTS; ++y) multiply(own[y], p_low[y], q_high, exchanged);
        #pragma unroll
        for (int y = 0; y < P_PARTS; ++y) multiply(own[y], p_high[y], q_low, exchanged);
        #pragma unroll
        for (int y = 0; y < P_PARTS; ++y) multiply(own[y], p_high[y], q_high, exchanged);
        #pragma unroll
        for (int y = 0; y < P_PARTS; ++y)
            #pragma unroll
            for (int e = 0; e < PRODUCT; ++e) sum[y][x][e] += own[y][e];
    }
}

// Returns whether all sums of the work-item are finite.
static int are_finite(const float sum[P_PARTS][Q_PARTS][PRODUCT]) {
    int are = 1;
    #pragma unroll
    for (int y = 0; y < P_PARTS; ++y)
        #pragma unroll
        for (int x = 0; x < Q_PARTS; ++x)
            #pragma unroll
            for (int e = 0; e < PRODUCT; ++e) are &= isfinite(sum[y][x][e]);
    return are;
}

// Computes the elements of C of this work-item again by fma, from the elements of A and B instead of their parts. It adds the products with the
// indices k = begin, ..., end - 1.
// The kernel calls this function if one of its sums is infinite or NaN. The reason may be an element of A or B above 65504, the largest number in
// half precision: its parts are infinite, although the exact sum may be finite. Element (i_first, j_first) is the first element of C that the
// sub-group computes.
static void by_fma(float sum[P_PARTS][Q_PARTS][PRODUCT], uint lane, ulong i_first, ulong j_first, ulong begin, ulong end, ulong m, ulong n,
                   IN(a), IN(b)) {
    const uint g = lane / 4, t = lane % 4;
    const ulong p_first = 2 * g + (SWAPPED ? j_first : i_first), q_first = 2 * t + (SWAPPED ? i_first : j_first);
    const ulong p_lines = SWAPPED ? n : m, q_lines = SWAPPED ? m : n;
    #pragma unroll
    for (int y = 0; y < P_PARTS; ++y)
        #pragma unroll
        for (int x = 0; x < Q_PARTS; ++x)
            #pragma unroll
            for (int e = 0; e < 4; ++e) sum[y][x][e] = 0;
    #pragma unroll 1
    for (ulong term = begin; term < end; ++term) {
        float p[P_PARTS][2], q[Q_PARTS][2];
        #pragma unroll
        for (int h = 0; h < 2 * P_PARTS; ++h) {
            const ulong line = p_first + h / 2 * 16 + h % 2;
            p[h / 2][h % 2] = line >= p_lines ? 0 : SWAPPED ? OF_B(term, line) : OF_A(line, term);
        }
        #pragma unroll
        for (int s = 0; s < 2 * Q_PARTS; ++s) {
            const ulong line = q_first + s / 2 * 8 + s % 2;
            q[s / 2][s % 2] = line >= q_lines ? 0 : SWAPPED ? OF_A(line, term) : OF_B(term, line);
        }
        #pragma unroll
        for (int y = 0; y < P_PARTS; ++y)
            #pragma unroll
            for (int x = 0; x < Q_PARTS; ++x)
                #pragma unroll
                for (int e = 0; e < 4; ++e) sum[y][x][e] = fma(p[y][e / 2], q[x][e % 2], sum[y][x][e]);
    }
}
#endif
