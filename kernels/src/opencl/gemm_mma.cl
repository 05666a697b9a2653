// C <- alpha·op(A)·op(B) + beta·C by the matrix units of a multiprocessor. A work-group computes a tile of MWG x NWG elements, and
// each sub-group of 32 work-items MW x NW elements of it. The functions of mma.cl are its instructions.
//
// The factor whose lines are stored in the order that the instruction needs is called P, the other one Q:
//     P = op(A), Q = op(B), lines of P are rows of C,    or, if both factors are transposed,
//     P = op(B), Q = op(A), lines of P are columns of C.
// One instruction multiplies 16 lines of P by 8 lines of Q, with 8 terms. Work-item 4g + t of a sub-group holds
//     of P: lines 2g + h in terms 2t + s as element h + 2s,    of Q: line g in terms 2t + s as element s,
//     of the product: lines 2g + h of P with lines 2t + s of Q as element 2h + s,    for h, s < 2.
// The instruction numbers lines and terms in another order. The order above gives each work-item neighbours in memory. If the terms of
// both factors are contiguous, no order does that for P, and work-items hold terms t + 4s instead of terms 2t + s.
//
// The factors pass through local memory in slices of KWG terms. Local memory holds STAGES slices: one is used, the others are being
// copied. A chunk is a pair of elements that lie side by side. The places in a slice let a sub-group read from all banks of local memory:
//     lines contiguous in memory:    chunk c of the lines in term p is at place c ^ (p & 6),
//     terms contiguous in memory:    chunk c of the terms of line l is at place c ^ 4·(l % 2),    or, if the terms of both factors are
//     contiguous, at place c of a longer row (P_LINE, Q_LINE).
// If beta = 0, the kernel does not read C.

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
#define SUB_GROUPS_M (MWG / MW)
#define ITEMS (SUB_GROUPS_M * (NWG / NW) * 32)
// number of steps of 8 terms in a slice, and of fragments of 16 lines of P and of 8 lines of Q
#define STEPS (KWG / 8)
#define P_PARTS (P_SUB_GROUP / 16)
#define Q_PARTS (Q_SUB_GROUP / 8)
// distance of lines whose terms are contiguous, in elements
#if P_BY_TERMS
#define P_LINE (KWG + 2)
#define Q_LINE (KWG + 4)
#else
#define P_LINE KWG
#define Q_LINE KWG
#endif
// elements of a slice
#define Q_SLICE (Q_WG * Q_LINE)
#define SLICE (Q_SLICE + P_WG * P_LINE)
#if P_BY_TERMS
#define START_P(stage, is_last) start_by_terms(&copy_p, stage, P_WG, P_LINE, is_last)
#else
#define START_P(stage, is_last) start_by_lines(&copy_p, stage, P_WG, is_last)
#endif
#if Q_BY_TERMS
#define START_Q(stage, is_last) start_by_terms(&copy_q, stage, Q_WG, Q_LINE, is_last)
#else
#define START_Q(stage, is_last) start_by_lines(&copy_q, stage, Q_WG, is_last)
#endif

// The work-item's part of the copies of a factor. A pass copies one chunk, or half a chunk if the matrices are not stored in whole
// chunks (V = 1), of each of several lines or terms.
typedef struct {
    // element that the first pass copies of the next slice, and the distance between passes
    __global const real *from;
    ulong by_pass;
    // place in the first slice of local memory, in bytes
    Address to;
#if GUARDED
    // number of bytes of a pass, and of passes, that lie inside the matrix: in the slices before the last one, and in the last one
    int bytes, last_bytes, passes, last_passes;
#endif
} Copy;

// number of lines or terms in a pass, if `extent` elements of each are contiguous
#define PER_PASS(extent) (ITEMS * V / (extent))

// Prepares to copy lines `first`, first + 1, ... of a factor with `lines` lines, whose terms are contiguous.
static Copy by_terms(__global const real *x, ulong ld, ulong first, ulong lines, ulong begin, ulong end, Address base, uint line) {
    const uint l = get_local_id(0) / (KWG / V), p = get_local_id(0) % (KWG / V) * V;
    Copy c;
    c.from = x + (first + l) * ld + begin + p;
    c.by_pass = PER_PASS(KWG) * ld;
#if P_BY_TERMS
    c.to = base + (l * line + p) * 8;
#else
    c.to = base + l * line * 8 + (p / 2 ^ 4 * (l % 2)) * 16 + p % 2 * 8;
#endif
#if GUARDED
    c.bytes = 8 * V;
    c.last_bytes = clamp(((int)((end - begin - 1) % KWG) + 1 - (int)p) * 8, 0, 8 * V);
    c.passes = first + l < lines ? (int)min((lines - first - l - 1) / PER_PASS(KWG), (ulong)KWG * MWG * NWG) + 1 : 0;
    c.last_passes = c.passes;
#endif
    return c;
}

// Prepares to copy lines `first`, first + 1, ... of a factor with `lines` lines that are contiguous. A work-group copies `wg` lines.
static Copy by_lines(__global const real *x, ulong ld, ulong first, ulong lines, ulong begin, ulong end, Address base, uint wg) {
    const uint p = get_local_id(0) / (wg / V), l = get_local_id(0) % (wg / V) * V;
    Copy c;
    c.from = x + (begin + p) * ld + first + l;
    c.by_pass = PER_PASS(wg) * ld;
    c.to = base + p * wg * 8 + (l / 2 ^ (p & 6)) * 16 + l % 2 * 8;
#if GUARDED
    c.bytes = first + l < lines ? (int)min((lines - first - l) * 8, (ulong)(8 * V)) : 0;
    c.last_bytes = c.bytes;
    c.passes = KWG;
    c.last_passes = ((int)((end - begin - 1) % KWG) - (int)p + (int)PER_PASS(wg)) / (int)PER_PASS(wg);
#endif
    return c;
}

// Starts one pass. Zeros take the place of what lies outside the matrix.
static void start(const Copy *c, __global const real *from, Address to, int pass, int is_last) {
#if GUARDED
    const int passes = is_last ? c->last_passes : c->passes, bytes = is_last ? c->last_bytes : c->bytes;
    copy_part(to, from, pass < passes ? bytes : 0);
#else
    copy(to, from);
#endif
}

// Starts to copy a slice of `wg` lines, whose terms are contiguous, to a stage of local memory.
static void start_by_terms(Copy *c, uint stage, uint wg, uint line, int is_last) {
    #pragma unroll
    for (int e = 0; e < wg / PER_PASS(KWG); ++e)
        start(c, c->from + e * c->by_pass, c->to + stage + e * PER_PASS(KWG) * line * 8, e, is_last);
    c->from += KWG;
}

// Starts to copy a slice of `wg` lines that are contiguous to a stage of local memory.
static void start_by_lines(Copy *c, uint stage, uint wg, int is_last) {
    #pragma unroll
    for (int e = 0; e < KWG / PER_PASS(wg); ++e) {
        const Address to = c->to ^ (e * PER_PASS(wg) & 6) * 16;
        start(c, c->from, to + stage + e * PER_PASS(wg) * wg * 8, e, is_last);
        c->from += c->by_pass;
    }
}

// Reads the sub-group's lines of P, from line `first` of the slice on, in the terms of step u.
static void read_p(double p[P_PARTS][4], __local const double *slice, int u, uint first, uint g, uint t) {
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
static void read_q(double q[Q_PARTS][2], __local const double *slice, int u, uint first, uint g, uint t) {
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

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm_mma(const ulong m, const ulong n, const ulong k, const real alpha, IN(a), IN(b), const real beta, OUT(c)) {
    __local double slices[STAGES * SLICE] __attribute__((aligned(128)));
    FRAGMENTS
    const Address local_at = local_address(slices);
    const uint item = get_local_id(0), lane = item % 32, sub_group = item / 32, g = lane / 4, t = lane % 4;
#if SPLIT > 1
    const uint part = get_group_id(1) % SPLIT, group_n = get_group_id(1) / SPLIT;
    // the first parts have one slice more than the others if the number of slices is no multiple of SPLIT
    const ulong all = (k + KWG - 1) / KWG, longer = all % SPLIT;
    const ulong begin = (all / SPLIT * part + min((ulong)part, longer)) * KWG;
    const ulong end = min(begin + (all / SPLIT + (part < longer)) * KWG, k);
#else
    const uint part = 0, group_n = get_group_id(1);
    const ulong begin = 0, end = k;
#endif
    // work-groups take the tiles in stripes of RASTER rows of tiles, column by column within a stripe
    const uint tiles_m = (uint)((m + MWG - 1) / MWG), tiles_n = (uint)((n + NWG - 1) / NWG);
    const uint number = get_group_id(0) + group_n * tiles_m, stripe = number / (RASTER * tiles_n);
    const uint in_stripe = number % (RASTER * tiles_n), height = min((uint)RASTER, tiles_m - stripe * RASTER);
    const uint tile_i = stripe * RASTER + in_stripe % height, tile_j = in_stripe / height;
    int left = (int)((end - begin + KWG - 1) / KWG);

#if SWAPPED
    Copy copy_q = by_terms(a + a_at, a_ld, tile_i * (ulong)MWG, m, begin, end, local_at, Q_LINE);
    Copy copy_p = by_lines(b + b_at, b_ld, tile_j * (ulong)NWG, n, begin, end, local_at + Q_SLICE * 8, NWG);
#else
#if TRANS_A
    Copy copy_p = by_terms(a + a_at, a_ld, tile_i * (ulong)MWG, m, begin, end, local_at + Q_SLICE * 8, P_LINE);
#else
    Copy copy_p = by_lines(a + a_at, a_ld, tile_i * (ulong)MWG, m, begin, end, local_at + Q_SLICE * 8, MWG);
#endif
#if TRANS_B
    Copy copy_q = by_lines(b + b_at, b_ld, tile_j * (ulong)NWG, n, begin, end, local_at, NWG);
#else
    Copy copy_q = by_terms(b + b_at, b_ld, tile_j * (ulong)NWG, n, begin, end, local_at, Q_LINE);
#endif
#endif
    // first row and first column of the sub-group in the tile
    const uint i_of_sub_group = sub_group % SUB_GROUPS_M * MW, j_of_sub_group = sub_group / SUB_GROUPS_M * NW;
    const uint p_first = SWAPPED ? j_of_sub_group : i_of_sub_group, q_first = SWAPPED ? i_of_sub_group : j_of_sub_group;

    double sum[P_PARTS][Q_PARTS][4];
    #pragma unroll
    for (int y = 0; y < P_PARTS; ++y)
        #pragma unroll
        for (int x = 0; x < Q_PARTS; ++x)
            #pragma unroll
            for (int e = 0; e < 4; ++e) sum[y][x][e] = 0;
    double p[2][P_PARTS][4], q[2][Q_PARTS][2];

    #pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < left) {
            START_Q(s * SLICE * 8, s == left - 1);
            START_P(s * SLICE * 8, s == left - 1);
        }
        END_OF_COPY;
    }
    uint stage = 0;
    WAIT_FOR_COPIES(STAGES - 2);
    barrier(CLK_LOCAL_MEM_FENCE);
    read_q(q[0], slices, 0, q_first, g, t);
    read_p(p[0], slices + Q_SLICE, 0, p_first, g, t);

    #pragma unroll 1
    for (; left > 0; --left) {
        #pragma unroll
        for (int u = 0; u < STEPS; ++u) {
            if (u == STEPS - 1) {
                // the sub-group has read this slice, and goes on to the next one
                stage = stage == STAGES - 1 ? 0 : stage + 1;
                WAIT_FOR_COPIES(STAGES - 2);
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            // the last reads of the last slice are not used
            __local const double *from = slices + stage * SLICE;
            read_q(q[(u + 1) % 2], from, (u + 1) % STEPS, q_first, g, t);
            read_p(p[(u + 1) % 2], from + Q_SLICE, (u + 1) % STEPS, p_first, g, t);
            if (u == 0) {
                // the last slice of those that are being copied takes the place of the slice before this one
                if (left >= STAGES) {
                    const uint at = (stage == 0 ? STAGES - 1 : stage - 1) * (SLICE * 8);
                    START_Q(at, left == STAGES);
                    START_P(at, left == STAGES);
                }
                END_OF_COPY;
            }
            #pragma unroll
            for (int x = 0; x < Q_PARTS; ++x)
                #pragma unroll
                for (int y = 0; y < P_PARTS; ++y) MULTIPLY(sum[y][x], p[u % 2][y], q[u % 2][x]);
        }
    }

    // each element of `sum` belongs to a pair of rows of C
    const ulong i_first = tile_i * (ulong)MWG + i_of_sub_group + 2 * (SWAPPED ? t : g);
    const ulong j_first = tile_j * (ulong)NWG + j_of_sub_group + 2 * (SWAPPED ? g : t);
    #pragma unroll
    for (int y = 0; y < P_PARTS; ++y)
        #pragma unroll
        for (int x = 0; x < Q_PARTS; ++x)
            #pragma unroll
            for (int r = 0; r < 2; ++r) {
                const ulong i = i_first + (SWAPPED ? 8 * x : 16 * y), j = j_first + (SWAPPED ? 16 * y : 8 * x) + r;
                const double *own = sum[y][x];
                const double2 product = alpha * (SWAPPED ? (double2)(own[2 * r], own[2 * r + 1]) : (double2)(own[r], own[2 + r]));
#if GUARDED
                if (j < n) {
                    __global double *at = &AT(c, i, j + part * n);
                    if (i < m) at[0] = beta == 0 ? product.x : product.x + beta * at[0];
                    if (i + 1 < m) at[1] = beta == 0 ? product.y : product.y + beta * at[1];
                }
#elif V == 2
                __global double2 *at = (__global double2 *)&AT(c, i, j + part * n);
                *at = beta == 0 ? product : product + beta * *at;
#else
                __global double *at = &AT(c, i, j + part * n);
                at[0] = beta == 0 ? product.x : product.x + beta * at[0];
                at[1] = beta == 0 ? product.y : product.y + beta * at[1];
#endif
            }
}
