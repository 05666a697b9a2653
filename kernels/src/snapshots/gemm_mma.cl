#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define real double
#define MIN_POSITIVE 2.2250738585072014e-308
#define MWG 64
#define NWG 32
#define KWG 16
#define MW 32
#define NW 16
#define STAGES 3
#define RASTER 8
#define SPLIT 2
#define UNIT 8
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

// Instruction of the matrix units (PTX ISA, section mma): adds the product of 16 lines of P and 8 lines of Q in 8 terms. Work-item 4g + t
// of a sub-group holds
//     line g + 8h of P in term t + 4s as p[h + 2s], line g of Q in term t + 4s as q[s],
//     the sum of line g + 8h of P with line 2t + s of Q as sum[2h + s],    for h, s < 2.
// In single precision, the instruction multiplies 16 terms. Each element of p and q is a pair of numbers in half precision, which belong to the
// terms 2(t + 4s) and 2(t + 4s) + 1. The unit adds in single precision.
#define FRAGMENTS __local element (*const exchanged)[6] = 0;
#ifdef TWO_PARTS
typedef uint element;
#else
typedef real element;
#endif
static void multiply(real sum[4], const element p[4], const element q[2], __local element (*exchanged)[6]) {
#ifdef TWO_PARTS
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(p[0]), "r"(p[1]), "r"(p[2]), "r"(p[3]), "r"(q[0]), "r"(q[1]));
#elif UNIT == 8
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
        : "d"(p[0]), "d"(p[1]), "d"(p[2]), "d"(p[3]), "d"(q[0]), "d"(q[1]));
#else
    #pragma unroll
    for (int e = 0; e < 4; ++e)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
            : "+d"(sum[e % 2 * 2]), "+d"(sum[e % 2 * 2 + 1]) : "d"(p[e]), "d"(q[e / 2]));
#endif
}

#ifdef TWO_PARTS
// Returns x and y, rounded to half precision, as the lower and the upper half of a register.
static uint pack(float x, float y) {
    uint pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(y), "f"(x));
    return pair;
}

// The inverse of `pack`.
static void unpack(uint pair, float *x, float *y) {
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }" : "=f"(*x), "=f"(*y) : "r"(pair));
}
#endif

// Reads the element of local memory at `at`, or the pair of elements. The compiler keeps the order of these instructions.
#ifdef TWO_PARTS
static void read_element(real *x, Address at) {
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(*x) : "r"(at));
}
static void read_pair(real x[2], Address at) {
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x[0]), "=f"(x[1]) : "r"(at));
}
#else
static void read_element(real *x, Address at) {
    asm volatile("ld.shared.f64 %0, [%1];" : "=d"(*x) : "r"(at));
}
static void read_pair(real x[2], Address at) {
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x[0]), "=d"(x[1]) : "r"(at));
}
#endif
// Returns `at`. The compiler cannot see this. It therefore adds constants in the read instruction and needs no register for the sum.
static Address opaque(Address at) {
    asm volatile("" : "+r"(at));
    return at;
}

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
