#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define real double
#define MIN_POSITIVE 2.2250738585072014e-308
#define ITEMS 64
#define REAL_BYTES 8
#define USES_PTX 1
#define HEADER 4
#define REGION 37376
#define BLOCK 64
#define WIDTH 32
#define SPLIT 1
#define TRANSPOSED 0
// Matrices are column-major: element (i, j) of matrix x is x[x_at + i + j·x_ld].
// Offsets have 64 bits, because a matrix may have more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
// How the work-groups of a launch send messages to one another through global memory.
//
// A message consists of words of the size of a real number, and a word holds the complement of its data. No data has a complement of zero:
// of the NaN, the one with all bits set is sent as another NaN. The receiver reads a word until it is not zero. Messages therefore need no
// order in memory.
//
// Each launch clears the messages of the launch before it. The memory of messages, `records`, begins with a header of HEADER words of 64 bits:
// the number of earlier launches, the number of pieces of 16 bytes that the last launch used, a word with two counters of 32 bits for kernels
// that need them, and a word that is not used, so that what follows begins at a multiple of 16 bytes. Two regions follow, one for launches with an even number and one for launches with an odd number. A launch writes zeros to the pieces that the
// last launch used in the other region. A region is therefore all zero when a launch begins to use it: the launch before the
// preceding one has used the region, and the preceding launch has cleared it. When all work-groups have read the header, one work-item
// changes it for the next launch.
#if REAL_BYTES == 8
typedef ulong Bits;
typedef ulong2 Piece;
#define AS_BITS(x) as_ulong(x)
#define AS_REAL(x) as_double(x)
#else
typedef uint Bits;
typedef uint4 Piece;
#define AS_BITS(x) as_uint(x)
#define AS_REAL(x) as_float(x)
#endif
// number of words in a piece
#define V (16 / REAL_BYTES)
#define REGION_OF(records, launch) ((__global Piece *)((records) + HEADER) + (launch) % 2 * REGION)

// Returns the word of a message that carries x.
static Bits word_of(real x) {
    const Bits bits = AS_BITS(x);
    return ~(bits == (Bits)-1 ? bits - 1 : bits);
}

// number of work-items in a sub-group
#define LANES 32
// the condition on which only the work-items of the first sub-group execute a statement
#define IN_FIRST_SUB_GROUP if (get_local_id(0) < LANES)
// unrolls a loop that calls functions of this file
#define UNROLLED_EXCHANGES _Pragma("unroll")
// no barrier is needed: a work-item that waits for a message does not stop other work-items of its work-group
#define BARRIER_AFTER_SENDING

// The functions below write and read words of messages in global memory. Other work-groups access the same words at the same time, so that
// the accesses have the scope of the device (PTX ISA, section memory consistency model).
static void put_word(__global Bits *to, Bits word) {
#if REAL_BYTES == 8
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(to), "l"(word));
#else
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" :: "l"(to), "r"(word));
#endif
}

static Bits get_word(__global const Bits *from) {
    Bits word;
#if REAL_BYTES == 8
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from));
#else
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(from));
#endif
    return word;
}

static uint uint_of_lane(uint x, uint lane) {
    uint of_lane;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(of_lane) : "r"(x), "r"(lane));
    return of_lane;
}

// Returns the x of work-item number `lane` among the WIDTH neighbouring work-items to which the caller belongs. They belong to one sub-group
// (PTX ISA, section shfl).
static real real_of_lane(real x, uint lane, __local real *values) {
    lane += get_local_id(0) % LANES / WIDTH * WIDTH;
#if REAL_BYTES == 8
    const ulong bits = as_ulong(x);
    return as_double((ulong)uint_of_lane((uint)(bits >> 32), lane) << 32 | uint_of_lane((uint)bits, lane));
#else
    return as_float(uint_of_lane(as_uint(x), lane));
#endif
}

// Solves a triangular system by forward substitution, for each right-hand side apart. Coefficient k of equation i is a[a_at + i·a_i + k·a_k].
// Unknown i of right-hand side r is b[b_at + i·b_i + r·b_r]. For backward substitution, the caller passes the position of the last unknown
// and negative strides. The kernel reads neither the opposite triangle nor the diagonal of a unit triangle.
//
// A task computes one block of BLOCK unknowns of one right-hand side. The work-group subtracts the products of the coefficients with the
// unknowns of all preceding blocks, in their order, and waits for each of these blocks. Then its first sub-group computes the unknowns of
// the task and sends them to the other work-groups (Hogg, "A Fast Dense Triangular Solve in CUDA", 2013). A work-group takes the next task from
// a counter. A work-group therefore waits only for work-groups that have begun before it.
//
// The launch has one work-group for each task, or one work-group in all.
//
// SPLIT work-items share a row of coefficients, and each work-item has OWN rows. Neighbouring work-items load neighbouring coefficients.
#define OWN (BLOCK * SPLIT / ITEMS)
#define TERMS (BLOCK / SPLIT)
#if TRANSPOSED
#define LANE (t % SPLIT)
#define ROW(e) (t / SPLIT * OWN + (e))
#else
#define LANE (t / BLOCK)
#define ROW(e) (t % BLOCK)
#endif
// number of unknowns of the block for each work-item of a sub-group of WIDTH work-items
#define EACH (BLOCK / WIDTH)
// number of elements between two columns of the block on the diagonal in local memory, so that work-items use different banks
#define STRIDE (BLOCK + 1)
#define UNROLLED _Pragma("unroll")
// loads the coefficients of the products with the unknowns of block p
#define LOAD(to, p)                                                                                    \
    UNROLLED for (uint e = 0; e < OWN; ++e) {                                                          \
        __global const real *const from = a + row_at[e] + (long)((p) * BLOCK + LANE) * a_k;            \
        UNROLLED for (uint q = 0; q < TERMS; ++q) to[e][q] = from[(long)(q * SPLIT) * a_k];            \
    }

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void trsv(const ulong n, const ulong nrhs, const ulong unit, __global const real *restrict a, const ulong a_at, const long a_i,
          const long a_k, __global real *restrict b, const ulong b_at, const long b_i, const long b_r, __global ulong *records) {
    // the strictly lower triangle of the block on the diagonal, by columns, and zeros
    __local real diagonal[BLOCK * STRIDE];
    __local real sums[BLOCK * (SPLIT + 1)], solved[2 * BLOCK], values[ITEMS];
    __local uint taken;
    const uint t = get_local_id(0), groups = get_num_groups(0), last_row = (uint)n - 1;
    const uint blocks = ((uint)n + BLOCK - 1) / BLOCK, tasks = blocks * (uint)nrhs;
    const ulong launches = records[0], used = records[1];
    volatile __global uint *const counters = (volatile __global uint *)(records + 2);
    __global Piece *const last = REGION_OF(records, launches + 1);
    __global Bits *const messages = (__global Bits *)REGION_OF(records, launches);
    a += a_at;
    b += b_at;
    for (uint round = 0; round < tasks / groups; ++round) {
        if (t == 0) taken = atomic_inc(counters);
        barrier(CLK_LOCAL_MEM_FENCE);
        const uint task = taken, begin = task / (uint)nrhs * BLOCK, r = task % (uint)nrhs;
        // the unknowns of right-hand side r follow those of right-hand side r - 1
        __global Bits *const unknowns = messages + r * blocks * BLOCK;
        for (ulong e = task * ITEMS + t; e < used; e += tasks * ITEMS) last[e] = 0;
        for (uint e = t; e < BLOCK * BLOCK; e += ITEMS) {
            const uint i = TRANSPOSED ? e / BLOCK : e % BLOCK, k = TRANSPOSED ? e % BLOCK : e / BLOCK;
            const int is_below = k < i && begin + i < n;
            diagonal[k * STRIDE + i] = is_below ? a[(long)(begin + i) * a_i + (long)(begin + k) * a_k] : 0;
        }
        // a factor is the reciprocal of a pivot if the work-item multiplies, and the pivot itself if it divides
        real x[EACH], factor[EACH];
        int multiplies[EACH];
        UNROLLED for (uint h = 0; h < EACH; ++h) {
            const uint i = begin + h * WIDTH + t % WIDTH;
            // the other work-items compute nothing that is used
            x[h] = t < WIDTH && i < n ? b[(long)i * b_i + (long)r * b_r] : 0;
            const real pivot = unit || i >= n ? 1 : a[(long)i * (a_i + a_k)];
            factor[h] = 1 / pivot;
            multiplies[h] = fmin(fabs(pivot), fabs(factor[h])) >= MIN_POSITIVE;
            if (!multiplies[h]) factor[h] = pivot;
        }

        long row_at[OWN];
        real sum[OWN], next[OWN][TERMS];
        UNROLLED for (uint e = 0; e < OWN; ++e) {
            sum[e] = 0;
            // a row beyond the last one is a copy of the last one
            row_at[e] = (long)min(begin + ROW(e), last_row) * a_i;
        }
        const uint count = begin / BLOCK;
        if (count > 0) { LOAD(next, 0) }
        for (uint p = 0; p < count; ++p) {
            real now[OWN][TERMS];
            UNROLLED for (uint e = 0; e < OWN; ++e) UNROLLED for (uint q = 0; q < TERMS; ++q) now[e][q] = next[e][q];
            if (p + 1 < count) { LOAD(next, p + 1) }
            __local real *const block = solved + p % 2 * BLOCK;
            if (t < BLOCK) {
                Bits word;
                do word = get_word(unknowns + p * BLOCK + t);
                while (word == 0);
                block[t] = AS_REAL(~word);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            // the sum of a block is added at once, because a long sum loses accuracy with each addition
            UNROLLED for (uint e = 0; e < OWN; ++e) {
                real part = 0;
                UNROLLED for (uint q = 0; q < TERMS; ++q) part = fma(now[e][q], block[LANE + q * SPLIT], part);
                sum[e] += part;
            }
        }
        UNROLLED for (uint e = 0; e < OWN; ++e) sums[ROW(e) * (SPLIT + 1) + LANE] = sum[e];
        barrier(CLK_LOCAL_MEM_FENCE);

        IN_FIRST_SUB_GROUP {
            const uint lane = t % WIDTH;
            UNROLLED for (uint h = 0; h < EACH; ++h)
                for (uint q = 0; q < SPLIT; ++q) x[h] -= sums[(h * WIDTH + lane) * (SPLIT + 1) + q];
            UNROLLED for (uint h = 0; h < EACH; ++h) {
                const uint i = h * WIDTH + lane;
                real own = 0;
                UNROLLED_EXCHANGES for (uint s = 0; s < WIDTH; ++s) {
                    real here = x[h] * factor[h];
                    if (!multiplies[h]) here = x[h] / factor[h];
                    own = lane == s ? here : own;
                    const real found = real_of_lane(here, s, values);
                    // an unknown that is already found may become NaN here, and is not used again
                    UNROLLED for (uint g = h; g < EACH; ++g)
                        x[g] = fma(-diagonal[(h * WIDTH + s) * STRIDE + g * WIDTH + lane], found, x[g]);
                }
                if (t < WIDTH) {
                    put_word(unknowns + begin + i, word_of(own));
                    if (begin + i < n) b[(long)(begin + i) * b_i + (long)r * b_r] = own;
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    // Each work-group counts itself at its end. The work-group that counts last changes the header for the next launch. All work-groups have read
    // the header by then, because each has computed its tasks with the numbers in it, so that no fence is needed.
    if (t == 0 && atomic_inc(counters + 1) == groups - 1) {
        records[0] = launches + 1;
        records[1] = tasks * (BLOCK / V);
        counters[0] = counters[1] = 0;
    }
}
