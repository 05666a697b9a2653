#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define real double
#define MIN_POSITIVE 2.2250738585072014e-308
#define ITEMS 64
#define EACH 2
#define REAL_BYTES 8
#define USES_PTX 1
#define HEADER 4
#define REGION 37376
#define WIDTH 16
#define MAX_GROUPS 64
#define MOVES 16
#define AT_ONCE 5
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

// LU factorisation A = P·L·U of a panel of at most WIDTH columns in one launch. The work-groups wait for one another. Each work-item
// loads EACH rows of the panel into registers. The kernel chooses pivots by the rules that the comment of `getrf_panel` states.
//
// A row stays with its work-item. The work-item only changes the number of the place that the row has in P·A. Step s chooses the pivot of
// column s. Each work-group sends its best candidate for the pivot, with its row. Each work-group receives the candidates of all
// work-groups. The row at place s is always a candidate. If this row must be the pivot, it counts as larger than all other candidates, so
// that each step has a best candidate.
//
// At step s, x[r][0] holds the element of column s of row r of a work-item, x[r][1] that of column s + 1 and so on, so that no index of a
// register varies. The elements of L and the rows of U lie in local memory.
//
// `records` (messages.cl) has a record for each step and each work-group. Each work-group reads the header before it sends its first message.
// The work-item that changes the header has received messages from all work-groups.
//
// At the end, the work-groups exchange the rows of other columns of the matrix: of `left` columns on the left of the panel and of `right`
// columns on its right. In `solved` columns directly on the right, they also compute the rows of U; the panel then has WIDTH columns. Each
// work-group has a share of the columns. Work-groups without rows of the panel may take part.

// A record has HEAD pieces with the magnitude, the place, the work-group and the work-item of the candidate, and the reciprocal of the
// candidate. Pieces with its row follow.
#if REAL_BYTES == 8
#define HEAD 2
typedef double2 Reals;
#define REALS(x, q) (Reals)((x)[q], (x)[(q) + 1])
#define ANY_IS_ZERO(p) ((p).x == 0 || (p).y == 0)
// the piece of a message with these numbers, and the numbers in a piece
#define MAKE_PIECE(words) (Piece)(word_of((words)[0]), word_of((words)[1]))
#define REALS_IN(p) {AS_REAL((p).x), AS_REAL((p).y)}
#define RECIPROCAL_IN(record) AS_REAL((record)[1].x)
#define OWNER_IN(record) ((uint)((record)[0].y >> 32))
#else
#define HEAD 1
typedef float4 Reals;
#define REALS(x, q) (Reals)((x)[q], (x)[(q) + 1], (x)[(q) + 2], (x)[(q) + 3])
#define ANY_IS_ZERO(p) ((p).x == 0 || (p).y == 0 || (p).z == 0 || (p).w == 0)
#define MAKE_PIECE(words) (Piece)(word_of((words)[0]), word_of((words)[1]), word_of((words)[2]), word_of((words)[3]))
#define REALS_IN(p) {AS_REAL((p).x), AS_REAL((p).y), AS_REAL((p).z), AS_REAL((p).w)}
#define RECIPROCAL_IN(record) AS_REAL((record)[0].z)
#define OWNER_IN(record) ((record)[0].w)
#endif
#define PIECES (HEAD + WIDTH / V)
// number of rows of a work-group
#define ROWS (EACH * ITEMS)
// A step updates and sends the columns in chunks of this number. It skips a chunk whose columns are all complete.
#define CHUNK 8

// A candidate for the pivot. `bits` are the bits of its magnitude: a larger magnitude has larger bits. `origin` holds the place of the row and
// the number of the work-group.
typedef struct {
    Bits bits;
    uint origin;
} Candidate;
#define ORIGIN(place, group) ((place) << 8 | (group))
#define PLACE(origin) ((origin) >> 8)
#define GROUP(origin) ((origin) & 255)
// `origin` if there is no candidate, so that its complement is not zero
#define NOWHERE 0xfffffffe
// `bits` of a candidate that must be the pivot: larger than the bits of every magnitude that is compared
#define LARGEST ((Bits)-2)

// Number of places to which the exchanges may move rows: the first WIDTH places, and WIDTH places of pivots
#define PLACES (2 * WIDTH)
// number of elements between two rows of L and U in local memory, so that work-items that read a column use different banks
#define STRIDE (WIDTH + 1)

#define CANDIDATES (ITEMS / LANES)

// The functions below write and read pieces of messages, as `put_word` and `get_word` do words.
static void put_piece(__global Piece *to, Piece p) {
#if REAL_BYTES == 8
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" :: "l"(to), "l"(p.x), "l"(p.y));
#else
    asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" :: "l"(to), "r"(p.x), "r"(p.y), "r"(p.z), "r"(p.w));
#endif
}

static Piece get_piece(__global const Piece *from) {
    Piece p;
#if REAL_BYTES == 8
    ulong x, y;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "l"(from));
    p = (Piece)(x, y);
#else
    uint x, y, z, w;
    asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(from));
    p = (Piece)(x, y, z, w);
#endif
    return p;
}

// Returns the largest, or the smallest, x of the work-items of a sub-group (PTX ISA, section redux).
static uint max_of_lanes(uint x) {
    uint most;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(most) : "r"(x));
    return most;
}

static uint min_of_lanes(uint x) {
    uint least;
    asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(least) : "r"(x));
    return least;
}

// Returns a bit for each work-item of a sub-group, which is set if the condition holds there (PTX ISA, section vote).
static uint lanes_with(int condition) {
    uint lanes;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(lanes) : "r"(condition));
    return lanes;
}

// Returns the number of the work-item of a sub-group that holds the best candidate. All work-items of the sub-group call the function.
static uint lane_of_best(Candidate c, __local Candidate *candidates) {
#if REAL_BYTES == 8
    const uint high = (uint)(c.bits >> 32);
#else
    const uint high = c.bits;
#endif
    const uint most = max_of_lanes(high);
    uint lanes = lanes_with(high == most);
    // the branch is rarely taken: in few steps, several candidates have the same leading bits
    if (lanes & (lanes - 1)) {
        int is_best = high == most;
#if REAL_BYTES == 8
        const uint low = is_best ? (uint)c.bits : 0, most_of_low = max_of_lanes(low);
        is_best = is_best && low == most_of_low;
#endif
        const uint origin = is_best ? c.origin : NOWHERE, least = min_of_lanes(origin);
        lanes = lanes_with(is_best && origin == least);
    }
    // if no work-item holds a candidate, all bits are set, and the lowest one is taken
    return 31 - clz(lanes & -lanes);
}

// Returns `origin` of the work-item `lane` of a sub-group.
static uint origin_of_lane(uint origin, uint lane, __local const Candidate *candidates) {
    return uint_of_lane(origin, lane);
}

// Returns 1/x with an error of a few roundings. In double precision, returns zero or NaN if x or 1/x is zero, subnormal or not finite; the
// caller divides in these cases. A division in double precision takes about 200 cycles on an H100 (PTX ISA, section rcp; Newton's method).
static real reciprocal_of(real x) {
#if REAL_BYTES == 8
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
    r = fma(r, fma(-x, r, 1.0), r);
    return fma(r, fma(-x, r, 1.0), r);
#else
    return 1 / x;
#endif
}

// Returns the row at `place` as a candidate for the pivot of column s. The element of the row in column s is x.
static Candidate candidate_of_row(real x, uint place, uint group, uint s, int pivoting) {
    const Candidate none = {0, NOWHERE};
    Candidate c = {AS_BITS(fabs(x)), ORIGIN(place, group)};
    if (place == s && (!pivoting || isnan(x))) c.bits = LARGEST;
    // a row with a NaN or a zero in column s is no candidate, unless it is the row at place s
    return place == s || (pivoting && place > s && fabs(x) > 0) ? c : none;
}

// Returns the candidate that the first piece of a record describes.
static Candidate candidate_in(Piece head) {
    const Candidate c = {head.x, (uint)head.y};
    return c;
}

// Lists the moves of all exchanges together: the row at the place from[e] moves to the place to[e].
static void list_moves(__local const uint *pivots, __local uint *to, __local uint *from) {
    for (uint e = get_local_id(0); e < PLACES; e += ITEMS) {
        const uint place = e < WIDTH ? e : pivots[e - WIDTH];
        // the row that ends at this place is found by the exchanges in reverse order
        uint row = place;
        int is_new = e < WIDTH || place >= WIDTH;
        for (uint s = WIDTH; s-- > 0;) {
            row = row == s ? pivots[s] : row == pivots[s] ? s : row;
            if (s + WIDTH < e) is_new &= pivots[s] != place;
        }
        to[e] = place;
        from[e] = is_new ? row : place;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

// A work-item moves MOVES elements at once. PLACE_OF_MOVE(q) is the index in `to` and `from` of the places between which element q moves,
// and COLUMN_OF_MOVE(q) is the column of element q.
#define PLACE_OF_MOVE(q) ((t + (q) * ITEMS) % PLACES)
#define COLUMN_OF_MOVE(q) (begin + (ulong)((t + (q) * ITEMS) / PLACES) * groups)
#define IS_MOVE(q) (COLUMN_OF_MOVE(q) < left + right && from[PLACE_OF_MOVE(q)] != to[PLACE_OF_MOVE(q)])
// the element of a row in a column outside of the panel; `column` counts the columns whose rows are only exchanged
#define OTHER(row, column) AT(a, row, (column) < left ? (column) : (column) + between)

// Exchanges the rows of `left` and `right` columns, between which `between` other columns lie. Element (0, 0) of `a` is the first element of
// the leftmost column. All elements of a column are read before an element of the column is written.
static void exchange_rows(ulong left, ulong right, ulong between, __global real *a, ulong a_at, ulong a_ld, __local const uint *to,
                          __local const uint *from) {
    const uint t = get_local_id(0), groups = get_num_groups(0);
    for (ulong begin = get_group_id(0); begin < left + right; begin += (ulong)groups * MOVES * ITEMS / PLACES) {
        real x[MOVES];
        #pragma unroll
        for (uint q = 0; q < MOVES; ++q)
            if (IS_MOVE(q)) x[q] = OTHER(from[PLACE_OF_MOVE(q)], COLUMN_OF_MOVE(q));
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        #pragma unroll
        for (uint q = 0; q < MOVES; ++q)
            if (IS_MOVE(q)) OTHER(to[PLACE_OF_MOVE(q)], COLUMN_OF_MOVE(q)) = x[q];
    }
}

// Exchanges the rows of `columns` columns, and computes their first WIDTH rows of U: U12 ← L11⁻¹·A12. L11 lies in `top`. WIDTH work-items have
// a column.
static void solve_rows(ulong columns, __global real *a, ulong a_at, ulong a_ld, __local const real *top, __local const uint *to,
                       __local const uint *from, __local real *values) {
    const uint t = get_local_id(0), i = t % WIDTH, together = ITEMS / WIDTH;
    for (ulong begin = get_group_id(0) * together; begin < columns; begin += get_num_groups(0) * together) {
        const ulong column = begin + t / WIDTH;
        const int is_column = column < columns, is_move = is_column && from[WIDTH + i] != to[WIDTH + i];
        real x = is_column ? AT(a, from[i], column) : 0;
        const real moved = is_move ? AT(a, from[WIDTH + i], column) : 0;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (is_move) AT(a, to[WIDTH + i], column) = moved;
        #pragma unroll 4
        for (uint k = 0; k < WIDTH; ++k) {
            const real solved = real_of_lane(x, k, values);
            if (i > k) x -= top[i * STRIDE + k] * solved;
        }
        if (is_column) AT(a, i, column) = x;
    }
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void getrf_held_rows(const ulong m, const ulong n, const ulong pivoting, const ulong first, const ulong left, const ulong solved,
                     const ulong right, __global real *a, const ulong a_at, const ulong a_ld, __global int *ipiv, const ulong ipiv_at,
                     __global int *info, const ulong info_at, __global ulong *records) {
    // `sent` holds the records of the best candidates of all sub-groups, and `received` those of all work-groups
    __local Piece sent[CANDIDATES * PIECES], received[MAX_GROUPS * PIECES];
    // factors[s·ROWS + r·ITEMS + t] is the element of L in column s of row r of work-item t; row s of `top` is row s of L and U
    __local real factors[WIDTH * ROWS], top[WIDTH * STRIDE], values[ITEMS];
    // pivots[s] is the place of the pivot of step s; together, all exchanges move the row at the place from[e] to the place to[e]
    __local uint pivots[WIDTH], from[PLACES], to[PLACES];
    __local Candidate candidates[ITEMS];
    const uint t = get_local_id(0), lane = t % LANES, group = get_group_id(0), groups = get_num_groups(0), i = group * ITEMS + t;
    const uint with_rows = ((uint)m + ROWS - 1) / ROWS;
    const Candidate none = {0, NOWHERE};
    const ulong launches = records[0], used = records[1];
    __global Piece *const last = REGION_OF(records, launches + 1);
    for (ulong e = i; e < used; e += groups * ITEMS) last[e] = 0;
    real x[EACH][WIDTH], l[EACH];
    uint place[EACH], singular = 0;
    #pragma unroll
    for (uint r = 0; r < EACH; ++r) {
        place[r] = group * ROWS + r * ITEMS + t;
        l[r] = 0;
        #pragma unroll
        for (uint q = 0; q < WIDTH; ++q) x[r][q] = place[r] < m && q < n ? AT(a, place[r], q) : 0;
    }
    for (uint e = t; e < WIDTH; e += ITEMS) pivots[e] = e;
    uint first_column[AT_ONCE];
    #pragma unroll
    for (uint q = 0; q < AT_ONCE; ++q) {
        const uint piece = (t + q * ITEMS) % PIECES;
        first_column[q] = piece < HEAD ? 0 : (piece - HEAD) * V;
    }
    __global Piece *const region = REGION_OF(records, launches), *set = region;
    // the records of all steps, which are followed by the rows of L
    __global Piece *const lower = region + (groups + (n - 1) * with_rows) * PIECES;
    __local Piece *const own = sent + t / LANES * PIECES;
    __local const real *u = 0;

    for (uint s = 0; s < n; ++s) {
        // work-groups without rows send only the first message, which says that they have read the two words of `records`
        const uint senders = s == 0 ? groups : with_rows, count = senders * PIECES, live = WIDTH - s;
        // column s is updated first, because the search for a pivot reads only this column
        real first_x[EACH], best_x = 0;
        Candidate mine = none;
        uint best_row = 0;
        #pragma unroll
        for (uint r = 0; r < EACH; ++r) {
            first_x[r] = s == 0 ? x[r][0] : x[r][1] - l[r] * u[1];
            const Candidate c = candidate_of_row(first_x[r], place[r], group, s, pivoting != 0);
            if (r == 0 || c.bits > mine.bits || (c.bits == mine.bits && c.origin < mine.origin)) {
                mine = c;
                best_row = r;
                best_x = first_x[r];
            }
        }
        const uint best_lane = lane_of_best(mine, candidates);
        // a row that has become a row of U is updated too, but it is not used any more
        #pragma unroll
        for (uint r = 0; r < EACH; ++r) {
            #pragma unroll
            for (uint q = 0; q < WIDTH; q += CHUNK)
                if (s > 0 && q <= live)
                    #pragma unroll
                    for (uint e = q; e < q + CHUNK; ++e)
                        if (e > 1) x[r][e - 1] = x[r][e] - l[r] * u[e];
            x[r][0] = first_x[r];
        }
        if (lane == best_lane) {
            // by the number of the row in the head, its work-group finds the elements of L of the row
            const uint row = best_row * ITEMS + t;
#if REAL_BYTES == 8
            own[0] = (Piece)(mine.bits, (ulong)row << 32 | mine.origin);
            own[1] = (Piece)(AS_BITS(reciprocal_of(best_x)), 0);
#else
            own[0] = (Piece)(mine.bits, mine.origin, AS_BITS(reciprocal_of(best_x)), row);
#endif
            #pragma unroll
            for (uint r = 0; r < EACH; ++r)
                if (r == best_row)
                    #pragma unroll
                    for (uint q = 0; q < WIDTH; q += CHUNK)
                        if (q < live)
                            #pragma unroll
                            for (uint e = q; e < q + CHUNK; e += V) *(__local Reals *)(own + HEAD + e / V) = REALS(x[r], e);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const Candidate of_lanes = lane < CANDIDATES ? candidate_in(sent[lane * PIECES]) : none;
        if (t / LANES == lane_of_best(of_lanes, candidates) && lane < HEAD + (live + V - 1) / V && group < senders) {
            __local const real *const words = (__local const real *)(own + lane);
            put_piece(set + group * PIECES + lane, MAKE_PIECE(words));
        }

        BARRIER_AFTER_SENDING;
        Piece p[AT_ONCE];
        int is_missing;
        do {
            is_missing = 0;
            #pragma unroll
            for (uint q = 0; q < AT_ONCE; ++q)
                if (first_column[q] < live && t + q * ITEMS < count) {
                    p[q] = get_piece(set + t + q * ITEMS);
                    is_missing |= ANY_IS_ZERO(p[q]);
                }
        } while (is_missing);
        #pragma unroll
        for (uint q = 0; q < AT_ONCE; ++q)
            if (first_column[q] < live && t + q * ITEMS < count) received[t + q * ITEMS] = ~p[q];
        barrier(CLK_LOCAL_MEM_FENCE);
        Candidate best = lane < senders ? candidate_in(received[lane * PIECES]) : none;
        for (uint g = lane + LANES; g < senders; g += LANES) {
            const Candidate c = candidate_in(received[g * PIECES]);
            if (c.bits > best.bits || (c.bits == best.bits && c.origin < best.origin)) best = c;
        }
        const uint origin = origin_of_lane(best.origin, lane_of_best(best, candidates), candidates);

        const uint pivot_place = PLACE(origin);
        __local const Piece *const record = received + GROUP(origin) * PIECES;
        u = (__local const real *)(record + HEAD);
        const real reciprocal = RECIPROCAL_IN(record), pivot = u[0];
        #pragma unroll
        for (uint r = 0; r < EACH; ++r) {
            place[r] = place[r] == pivot_place ? s : place[r] == s ? pivot_place : place[r];
            l[r] = x[r][0];
            if (fabs(pivot) >= MIN_POSITIVE && fabs(reciprocal) >= MIN_POSITIVE) l[r] *= reciprocal;
            else if (pivot != 0) l[r] /= pivot;
            if (place[r] > s) factors[s * ROWS + r * ITEMS + t] = l[r];
        }
        // the last WIDTH work-items store row s of U; in the work-group that holds this row, they also send its elements of L
        const uint q = t - (ITEMS - WIDTH);
        if (q < live) top[s * STRIDE + s + q] = u[q];
        if (q * V < s && GROUP(origin) == group && solved > 0) {
            real of_piece[V];
            #pragma unroll
            for (uint e = 0; e < V; ++e) of_piece[e] = q * V + e < s ? factors[(q * V + e) * ROWS + OWNER_IN(record)] : 0;
            put_piece(lower + s * (WIDTH / V) + q, MAKE_PIECE(of_piece));
        }
        if (t == 0) pivots[s] = pivot_place;
        if (pivot == 0 && singular == 0) singular = s + 1;
        set += count;
    }
    BARRIER_AFTER_SENDING;
    for (uint e = t; e < (solved > 0 ? WIDTH * (WIDTH / V) : 0); e += ITEMS) {
        const uint s = e / (WIDTH / V), j = e % (WIDTH / V) * V;
        if (j < s) {
            Piece p;
            do p = get_piece(lower + e);
            while (ANY_IS_ZERO(p));
            p = ~p;
            const real of_piece[V] = REALS_IN(p);
            #pragma unroll
            for (uint k = 0; k < V; ++k)
                if (j + k < s) top[s * STRIDE + j + k] = of_piece[k];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);

    if (i == 0) {
        records[0] = launches + 1;
        records[1] = lower + n * (WIDTH / V) - region;
        if (singular != 0 && info[info_at] == 0) info[info_at] = (int)(first + singular);
    }
    if (i < n) ipiv[ipiv_at + i] = (int)(first + pivots[i]);
    for (uint e = i; e < n * WIDTH; e += groups * ITEMS)
        if (e / WIDTH <= e % WIDTH && e % WIDTH < n) AT(a, e / WIDTH, e % WIDTH) = top[e / WIDTH * STRIDE + e % WIDTH];
    #pragma unroll
    for (uint r = 0; r < EACH; ++r)
        for (uint j = 0; j < n; ++j)
            if (group * ROWS + r * ITEMS + t < m && j < place[r]) AT(a, place[r], j) = factors[j * ROWS + r * ITEMS + t];
    if (left + solved + right > 0) {
        list_moves(pivots, to, from);
        solve_rows(solved, a, a_at + n * a_ld, a_ld, top, to, from, values);
        exchange_rows(left, right, n + solved, a, a_at - left * a_ld, a_ld, to, from);
    }
}
