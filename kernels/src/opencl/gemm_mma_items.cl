
// Single precision: the work-items multiply and add by fma, because matrix units would round the factors. The kernel calls the factors
// P = op(A) and Q = op(B). A line is a row of op(A) or a column of op(B). The work-items of a sub-group form a grid of 8 x 4: work-item `lane`
// has the position (x, y) = (lane / 2 % 8, lane / 16 · 2 + lane % 2). It computes the elements of C in
//     the rows 4x + e + 32h and the columns 4y + e + 16h of the sub-group's part of the tile, for e < 4 and all h.
// Two work-items whose numbers differ in the last bit only read the same lines of P. Two work-items whose numbers differ in the second last
// bit only read the same lines of Q.
//
// In all transpositions, the element of line l in term p has the index p·P_LINE + l or p·Q_LINE + l in a slice, so that a step reads
// neighbouring elements. If the lines are contiguous in global memory, a copy moves 16 bytes. If the terms are contiguous, a copy moves
// one element, and a sub-group copies 8 terms of 4 lines at once. These 32 elements lie in different banks of local memory, because P_LINE
// and Q_LINE are then odd multiples of 4. If slices had the order of global memory, copies could move 16 bytes here too. A work-item would
// then read vectors along the terms, which take 32 registers for 8 lines. Vectors along the lines take 8 registers.

#define SWAPPED 0
// whether the terms of a factor are contiguous in memory
#define P_BY_TERMS TRANS_A
#define Q_BY_TERMS (!TRANS_B)
#define P_WG MWG
#define Q_WG NWG
// a step has one term
#define STEPS KWG
// number of fragments of 4 lines of P and of Q that a work-item holds
// number of elements of a fragment of P, of a fragment of Q and of their product
#define P_PARTS (MW / 32)
#define Q_PARTS (NW / 16)
#define P_PART 4
#define Q_PART 4
#define PRODUCT 16
// distance between two terms in a slice, in elements
#define P_LINE (P_WG + 4 * P_BY_TERMS)
#define Q_LINE (Q_WG + 4 * Q_BY_TERMS)
// elements of a slice of each factor
#define P_SLICE (KWG * P_LINE)
#define Q_SLICE (KWG * Q_LINE)
// if the terms are contiguous: number of elements of a piece, and number of terms that a pass copies
#define TERMS_V 1
#define TERMS_OF_PASS 8

// Returns the index in a slice of the element of line l in term p, if the terms are contiguous in global memory.
static uint place_by_terms(uint l, uint p, uint line) {
    return p * line + l;
}

// Returns the distance in a slice between the pieces of the first pass and of a later pass, if the terms are contiguous.
static uint pass_by_terms(uint lines, uint terms, uint line) {
    return terms * line + lines;
}

// Returns the index in a slice of the element of line l in term p, if the lines are contiguous in global memory.
static uint place_by_lines(uint p, uint l, uint wg) {
    return p * wg + l;
}

// Returns the address to which a later pass copies its piece, if the lines are contiguous. `first` is the address of the first pass, and the
// later pass copies terms that follow `terms` terms later.
static Address pass_by_lines(Address first, uint terms, uint wg) {
    return first + terms * wg * 4;
}

// place of an element of a slice, place of the first element of all slices, and the place `elements` after another one
typedef __local const float *Place;
#define FIRST slices
#define AFTER(place, elements) ((place) + (elements))

// Reads 4 neighbouring elements.
static void read_part(float part[4], Place at) {
    const float4 lines = *(__local const float4 *)at;
    part[0] = lines.x;
    part[1] = lines.y;
    part[2] = lines.z;
    part[3] = lines.w;
}

// Reads the work-item's lines of P, where the sub-group begins with line `first` of the slice, in term u.
static void read_p(float p[P_PARTS][P_PART], Place slice, int u, uint first, uint lane) {
    #pragma unroll
    for (int h = 0; h < P_PARTS; ++h) read_part(p[h], slice + u * P_LINE + first + 32 * h + lane / 2 % 8 * 4);
}

// Reads the work-item's lines of Q, where the sub-group begins with line `first` of the slice, in term u.
static void read_q(float q[Q_PARTS][Q_PART], Place slice, int u, uint first, uint lane) {
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

// Reads the first `rows` elements of four neighbouring elements of C. The other elements become zero.
static float4 read_old(__global const float *at, int rows) {
#if !GUARDED && V == 4
    return *(__global const float4 *)at;
#else
    return (float4)(rows > 0 ? at[0] : 0, rows > 1 ? at[1] : 0, rows > 2 ? at[2] : 0, rows > 3 ? at[3] : 0);
#endif
}

// Writes the first `rows` elements of four neighbouring elements of C.
static void write_new(__global float *at, int rows, float4 four) {
#if !GUARDED && V == 4
    *(__global float4 *)at = four;
#else
    if (rows > 0) at[0] = four.x;
    if (rows > 1) at[1] = four.y;
    if (rows > 2) at[2] = four.z;
    if (rows > 3) at[3] = four.w;
#endif
}

// Writes the sub-group's elements of C, whose first one is element (i_first, j_first). The work-item reads several old elements before it writes
// the first of them. Otherwise each read would wait for the read before, because the compiler keeps the order of reads and writes.
static void write(const float sum[P_PARTS][Q_PARTS][PRODUCT], uint lane, ulong i_first, ulong j_first, ulong m, ulong n, float alpha,
                  float beta, OUT(c)) {
    #pragma unroll
    for (int x = 0; x < Q_PARTS; ++x) {
        __global float *at[4][P_PARTS];
        int rows[4][P_PARTS];
        float4 old[4][P_PARTS];
        #pragma unroll
        for (int r = 0; r < 4; ++r)
            #pragma unroll
            for (int y = 0; y < P_PARTS; ++y) {
                const ulong i = i_first + 32 * y + lane / 2 % 8 * 4, j = j_first + 16 * x + (lane / 16 * 2 + lane % 2) * 4 + r;
                at[r][y] = &AT(c, i, j);
                // number of elements inside C
                rows[r][y] = !GUARDED ? 4 : i < m && j < n ? (int)min(m - i, (ulong)4) : 0;
                old[r][y] = beta == 0 ? (float4)(0) : read_old(at[r][y], rows[r][y]);
            }
        #pragma unroll
        for (int r = 0; r < 4; ++r)
            #pragma unroll
            for (int y = 0; y < P_PARTS; ++y) {
                const float *own = sum[y][x] + 4 * r;
                const float4 product = alpha * (float4)(own[0], own[1], own[2], own[3]);
                write_new(at[r][y], rows[r][y], beta == 0 ? product : product + beta * old[r][y]);
            }
    }
}
