#define real float
#define MIN_POSITIVE 1.17549435e-38f
#define MWG 64
#define NWG 32
#define KWG 16
#define MW 32
#define NW 16
#define STAGES 3
#define RASTER 8
#define SPLIT 2
#define UNIT 1
#define GUARDED 1
#define TRANS_A 0
#define TRANS_B 1
#define V 1
// Matrices are column-major: element (i, j) of matrix x is x[x_at + i + j·x_ld].
// Offsets have 64 bits, because a matrix may have more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
// PTX instructions that copy to local memory (PTX ISA, section cp.async).

#define REAL_BYTES ((int)sizeof(real))
// address of local memory in PTX instructions
typedef uint Address;

static Address local_address(__local real *x) {
    Address address;
    asm volatile("{ .reg .u64 at; cvta.to.shared.u64 at, %1; cvt.u32.u64 %0, at; }" : "=r"(address) : "l"(x));
    return address;
}

// Starts to copy `v` elements, either one or 16 bytes of them, from global memory to local memory.
static void copy(Address to, __global const real *from, int v) {
    if (v * REAL_BYTES == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" :: "r"(to), "l"(from));
    else
        asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2;" :: "r"(to), "l"(from), "n"(REAL_BYTES));
}

// Starts to copy `bytes` bytes, and to fill the rest of `v` elements with zeros.
// A single element is copied either whole or not at all. Two copies with opposite conditions take fewer instructions than one whose number
// of bytes is a variable (bench/results/opencl/2026-11-26-f32-registers.txt).
static void copy_part(Address to, __global const real *from, int v, int bytes) {
    if (v * REAL_BYTES == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes));
    else
        asm volatile("{ .reg .pred is_inside; setp.ne.s32 is_inside, %2, 0;"
            " @is_inside cp.async.ca.shared.global.L2::128B [%0], [%1], %3; @!is_inside cp.async.ca.shared.global [%0], [%1], %3, 0; }"
            :: "r"(to), "l"(from), "r"(bytes), "n"(REAL_BYTES));
}

// Ends a group of copies.
#define END_OF_COPY asm volatile("cp.async.commit_group;" ::: "memory")
// Waits until at most `groups` groups of copies are not complete.
#define WAIT_FOR_COPIES(groups) asm volatile("cp.async.wait_group %0;" :: "n"(groups) : "memory")

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

// C <- alpha·op(A)·op(B) + beta·C, with copies to local memory that run beside the computation. A work-group computes a tile of MWG x NWG
// elements, and each sub-group of 32 work-items MW x NW elements of it. The factors pass through local memory in slices of KWG terms. Local
// memory holds STAGES slices of both: one is used, the others are being copied.
//
// The text before this one (gemm_mma_f64.cl or gemm_mma_f32.cl) names the factors P and Q, and states which elements a work-item holds and
// where a slice holds them. A sub-group takes the terms of a slice in STEPS steps, and reads the fragments of a step while it multiplies
// those of the step before.
// If beta = 0, the kernel does not read C.

#define SUB_GROUPS_M (MWG / MW)
#define ITEMS (SUB_GROUPS_M * (NWG / NW) * 32)
// elements of a slice of both factors
#define SLICE (Q_SLICE + P_SLICE)
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

// The work-item's part of the copies of a factor. A pass copies one piece of each of several lines or terms: along the terms TERMS_V
// elements, along the lines V elements.
typedef struct {
    // element that the first pass copies of the next slice, and the distance between passes
    __global const real *from;
    ulong by_pass;
    // place in the first slice of local memory, in bytes
    Address to;
#if GUARDED
    // What lies inside the matrix, if the terms are contiguous: number of passes, and of bytes of the last slice from the first piece on;
    // if the lines are contiguous: number of bytes of a piece, and of passes of the last slice.
    int passes, last_bytes, bytes, last_passes;
#endif
} Copy;

// number of lines in a pass along the terms
#define LINES_OF_PASS (ITEMS * TERMS_V / TERMS_OF_PASS)
// number of terms in a pass along `wg` lines
#define TERMS_BY_LINES(wg) (ITEMS * V / (wg))

// Prepares to copy lines `first`, first + 1, ... of a factor with `lines` lines, whose terms are contiguous.
static Copy by_terms(__global const real *x, ulong ld, ulong first, ulong lines, ulong begin, ulong end, Address base, uint line) {
    const uint pieces = TERMS_OF_PASS / TERMS_V, l = get_local_id(0) / pieces, p = get_local_id(0) % pieces * TERMS_V;
    Copy c;
    c.from = x + (first + l) * ld + begin + p;
    c.by_pass = LINES_OF_PASS * ld;
    c.to = base + place_by_terms(l, p, line) * REAL_BYTES;
#if GUARDED
    c.passes = first + l < lines ? (int)min((lines - first - l - 1) / LINES_OF_PASS, (ulong)KWG * MWG * NWG) + 1 : 0;
    c.last_bytes = ((int)((end - begin - 1) % KWG) + 1 - (int)p) * REAL_BYTES;
#endif
    return c;
}

// Prepares to copy lines `first`, first + 1, ... of a factor with `lines` lines that are contiguous. A work-group copies `wg` lines.
static Copy by_lines(__global const real *x, ulong ld, ulong first, ulong lines, ulong begin, ulong end, Address base, uint wg) {
    const uint p = get_local_id(0) / (wg / V), l = get_local_id(0) % (wg / V) * V;
    Copy c;
    c.from = x + (begin + p) * ld + first + l;
    c.by_pass = TERMS_BY_LINES(wg) * ld;
    c.to = base + place_by_lines(p, l, wg) * REAL_BYTES;
#if GUARDED
    c.bytes = first + l < lines ? (int)min((lines - first - l) * REAL_BYTES, (ulong)(V * REAL_BYTES)) : 0;
    c.last_passes = ((int)((end - begin - 1) % KWG) - (int)p + (int)TERMS_BY_LINES(wg)) / (int)TERMS_BY_LINES(wg);
#endif
    return c;
}

// Starts to copy a piece of `v` elements. If the tiles may extend beyond the matrix, zeros take the place of all but `bytes` bytes.
static void start(__global const real *from, Address to, int v, int bytes) {
#if GUARDED
    copy_part(to, from, v, bytes);
#else
    copy(to, from, v);
#endif
}

// Starts to copy a slice of `wg` lines, whose terms are contiguous, to a stage of local memory.
static void start_by_terms(Copy *c, uint stage, uint wg, uint line, int is_last) {
    #pragma unroll
    for (int e = 0; e < wg / LINES_OF_PASS; ++e)
        #pragma unroll
        for (int terms = 0; terms < KWG; terms += TERMS_OF_PASS) {
            int bytes = TERMS_V * REAL_BYTES;
#if GUARDED
            if (is_last) bytes = clamp(c->last_bytes - terms * REAL_BYTES, 0, bytes);
            if (e >= c->passes) bytes = 0;
#endif
            const Address to = c->to + stage + pass_by_terms(e * LINES_OF_PASS, terms, line) * REAL_BYTES;
            start(c->from + e * c->by_pass + terms, to, TERMS_V, bytes);
        }
    c->from += KWG;
}

// Starts to copy a slice of `wg` lines that are contiguous to a stage of local memory.
static void start_by_lines(Copy *c, uint stage, uint wg, int is_last) {
    #pragma unroll
    for (int e = 0; e < KWG / TERMS_BY_LINES(wg); ++e) {
        int bytes = V * REAL_BYTES;
#if GUARDED
        bytes = !is_last || e < c->last_passes ? c->bytes : 0;
#endif
        start(c->from, pass_by_lines(c->to, e * TERMS_BY_LINES(wg), wg) + stage, V, bytes);
        c->from += c->by_pass;
    }
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm_mma(const ulong m, const ulong n, const ulong k, const real alpha, IN(a), IN(b), const real beta, OUT(c)) {
    __local real slices[STAGES * SLICE] __attribute__((aligned(128)));
    FRAGMENTS
    const Address local_at = local_address(slices);
    const uint item = get_local_id(0), lane = item % 32, sub_group = item / 32;
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
    Copy copy_p = by_lines(b + b_at, b_ld, tile_j * (ulong)NWG, n, begin, end, local_at + Q_SLICE * REAL_BYTES, NWG);
#else
#if TRANS_A
    Copy copy_p = by_terms(a + a_at, a_ld, tile_i * (ulong)MWG, m, begin, end, local_at + Q_SLICE * REAL_BYTES, P_LINE);
#else
    Copy copy_p = by_lines(a + a_at, a_ld, tile_i * (ulong)MWG, m, begin, end, local_at + Q_SLICE * REAL_BYTES, MWG);
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

    real sum[P_PARTS][Q_PARTS][PRODUCT];
    #pragma unroll
    for (int y = 0; y < P_PARTS; ++y)
        #pragma unroll
        for (int x = 0; x < Q_PARTS; ++x)
            #pragma unroll
            for (int e = 0; e < PRODUCT; ++e) sum[y][x][e] = 0;
    real p[2][P_PARTS][P_PART], q[2][Q_PARTS][Q_PART];

    #pragma unroll
    for (int s = 0; s < STAGES - 1; ++s) {
        if (s < left) {
            START_Q(s * SLICE * REAL_BYTES, s == left - 1);
            START_P(s * SLICE * REAL_BYTES, s == left - 1);
        }
        END_OF_COPY;
    }
    uint stage = 0;
    WAIT_FOR_COPIES(STAGES - 2);
    barrier(CLK_LOCAL_MEM_FENCE);
    read_q(q[0], slices, 0, q_first, lane);
    read_p(p[0], slices + Q_SLICE, 0, p_first, lane);

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
            __local const real *from = slices + stage * SLICE;
            read_q(q[(u + 1) % 2], from, (u + 1) % STEPS, q_first, lane);
            read_p(p[(u + 1) % 2], from + Q_SLICE, (u + 1) % STEPS, p_first, lane);
            if (u == 0) {
                // the last slice of those that are being copied takes the place of the slice before this one
                if (left >= STAGES) {
                    const uint at = (stage == 0 ? STAGES - 1 : stage - 1) * (SLICE * REAL_BYTES);
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

    const ulong i = tile_i * (ulong)MWG + i_of_sub_group, j = tile_j * (ulong)NWG + j_of_sub_group;
    write(sum, lane, i, j, m, n, alpha, beta, c, c_at + part * n * c_ld, c_ld);
}
