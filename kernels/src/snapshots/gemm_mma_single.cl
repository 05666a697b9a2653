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
#define ALIGNED 0
#define PTX 1
#define TRANS_A 0
#define TRANS_B 1
#define LOOPS 1
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

// Starts to copy `v` elements from global memory to local memory: one element, or elements of 16 bytes in all.
static void copy(Address to, __global const real *from, int v) {
    if (v * REAL_BYTES == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" :: "r"(to), "l"(from));
    else
        asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2;" :: "r"(to), "l"(from), "n"(REAL_BYTES));
}

// Starts to copy the first `bytes` bytes of `v` elements. The other bytes become zero. A single element is either copied as a whole or
// becomes zero. Two copies with opposite conditions take fewer instructions than one copy whose number of bytes is a variable (bench/results/opencl/2026-11-26-f32-registers.txt).
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

// C <- alpha·op(A)·op(B) + beta·C. A work-group computes a tile of MWG x NWG elements of C. Each sub-group of 32 work-items computes MW x NW
// elements of the tile. The work-group copies both factors to local memory in slices of KWG terms. Local memory holds STAGES slices of each
// factor: the work-group multiplies one slice while the copies of the other slices run.
//
// The text before this one (gemm_mma_units.cl or gemm_mma_items.cl) calls the factors P and Q, and states which elements each work-item holds
// and where they lie in a slice. A sub-group multiplies a slice in STEPS steps. During a step, it reads the elements for the next step.
// If beta = 0, the kernel does not read C. If LOOPS is 1, a launch may have fewer work-groups than C has tiles. Each work-group then computes
// several tiles, one after the other.

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

// The part of the copies of a factor that a work-item makes. In a pass, each work-item copies one piece: TERMS_V neighbouring terms of a line
// if the terms are contiguous in memory, and V neighbouring lines in a term if the lines are contiguous.
typedef struct {
    // first element of the piece that the first pass copies of the next slice, and the distance to the piece of the next pass
    __global const real *from;
    ulong by_pass;
    // place in the first slice of local memory, in bytes
    Address to;
#if GUARDED
    // If the terms are contiguous: the number of passes inside the matrix, and the number of bytes from the first piece to the end of the
    // last slice. If the lines are contiguous: the number of bytes of a piece inside the matrix, and of passes inside the last slice.
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

// Starts to copy a piece of `v` elements. If GUARDED, only the first `bytes` bytes of the piece are copied, and the rest becomes zero.
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
    uint number = get_group_id(0) + group_n * get_num_groups(0);
    do {
        const uint stripe = number / (RASTER * tiles_n);
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
        read_q(q[0], FIRST, 0, q_first, lane);
        read_p(p[0], AFTER(FIRST, Q_SLICE), 0, p_first, lane);

        #pragma unroll 1
        for (; left > 0; --left) {
            #pragma unroll
            for (int u = 0; u < STEPS; ++u) {
                if (u == STEPS - 1) {
                    // the sub-group has read all elements of this slice, and next reads elements of the next slice
                    stage = stage == STAGES - 1 ? 0 : stage + 1;
                    WAIT_FOR_COPIES(STAGES - 2);
                    barrier(CLK_LOCAL_MEM_FENCE);
                }
                // the last reads of the last slice are not used
                const Place from = AFTER(FIRST, stage * SLICE);
                read_q(q[(u + 1) % 2], from, (u + 1) % STEPS, q_first, lane);
                read_p(p[(u + 1) % 2], AFTER(from, Q_SLICE), (u + 1) % STEPS, p_first, lane);
                if (u == 0) {
                    // the sub-groups have multiplied the previous slice, so that the next copy overwrites it
                    if (left >= STAGES) {
                        const uint at = (stage == 0 ? STAGES - 1 : stage - 1) * (SLICE * REAL_BYTES);
                        START_Q(at, left == STAGES);
                        START_P(at, left == STAGES);
                    }
                    END_OF_COPY;
                }
#ifdef TWO_PARTS
                multiply_split(sum, p[u % 2], q[u % 2], exchanged);
#else
                #pragma unroll
                for (int x = 0; x < Q_PARTS; ++x)
                    #pragma unroll
                    for (int y = 0; y < P_PARTS; ++y) MULTIPLY(sum[y][x], p[u % 2][y], q[u % 2][x]);
#endif
            }
        }

        const ulong i = tile_i * (ulong)MWG + i_of_sub_group, j = tile_j * (ulong)NWG + j_of_sub_group;
#ifdef TWO_PARTS
        if (!are_finite(sum)) by_fma(sum, lane, i, j, begin, end, m, n, a, a_at, a_ld, b, b_at, b_ld);
#endif
        write(sum, lane, i, j, m, n, alpha, beta, c, c_at + part * n * c_ld, c_ld);
#if LOOPS
        // the copies of the next tile wait until all sub-groups have read their last slice
        barrier(CLK_LOCAL_MEM_FENCE);
        number += get_num_groups(0) * get_num_groups(1) / SPLIT;
#endif
    } while (LOOPS && number < tiles_m * tiles_n);
}
