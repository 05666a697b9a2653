#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define real double
#define MIN_POSITIVE 2.2250738585072014e-308
#define ITEMS 64
#define WIDTH 32
#define REAL_BYTES 8
#define USES_PTX 1
#define REGION 69360
#define MOVES 16
// Matrices are column-major: element (i, j) of matrix x is x[x_at + i + j·x_ld].
// Offsets have 64 bits, because a matrix may have more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
// LU factorisation A = P·L·U of a panel of at most WIDTH columns in one launch. The work-groups wait for one another. Each work-item
// loads one row of the panel into registers, and stores the row at the end. The kernel chooses pivots by the rules that the comment of
// `getrf_panel` states.
//
// A row stays with its work-item. The work-item only changes the number of the place that the row has in P·A. Step s chooses the pivot of
// column s. Each work-group sends its best candidate: first the magnitude and the place of the candidate, then the elements of its row. Each
// work-group receives the magnitudes of all candidates, and the row of the best candidate. The row at place s is always a candidate. If
// this row must be the pivot, it counts as larger than all other candidates, so that each step has a best candidate.
//
// A step first updates column s + 1 and sends the magnitude of the next candidate. It updates the other columns while the message is on
// its way. After step s, x[0] holds the element of column s + 1, x[1] that of column s + 2 and so on, so that no index of a register varies.
//
// A message consists of words of 64 bits. A word holds 32 bits of data, and the number of the step, s + 1. The receiver reads a word until
// the word holds the number of the step. Messages therefore need no order in memory. `records` holds two sets of records, and a set has a
// record for each work-group. Even steps use one set, and odd steps use the other set. A work-group sends the magnitude of step s + 1
// after it has received all messages of step s. A work-group that sends in step s + 2 has received these magnitudes from all work-groups.
// Thus no work-group still reads the set.
//
// Each launch clears the messages of the launch before it. `records` begins with two words: the number of earlier launches, and the number
// of words that the last launch used. Two regions follow, one for launches with an even number and one for launches with an odd number. A
// launch writes zeros to the words that the last launch used in the other region. A region is therefore all zero when a launch begins to
// use it: only the launch before the last one has used the region, and the last launch has cleared it. The regions lie at the same places
// for all numbers of work-groups and columns and for both types. One work-item changes the two words after the last step. Each work-group
// reads the two words before it sends its first message, and the work-item has received messages from all work-groups.
//
// At the end, the work-groups exchange the rows of other columns of the matrix: of `left` columns on the left of the panel and of `right`
// columns on its right. Each work-group moves elements in its share of these columns. Work-groups without rows of the panel may take part.

// A real number takes WORDS words. A record consists of the magnitude and the place of the candidate (HEAD words), the reciprocal of the
// candidate, and its row. The number of words of a record is even, because vectors of two words are read and written.
#define WORDS (REAL_BYTES / 4)
#define HEAD 4
#define RECORD (HEAD + (WIDTH + 2) * WORDS)

#if WORDS == 2
typedef ulong Bits;
#define AS_BITS(x) as_ulong(x)
#define AS_REAL(x) as_double(x)
#else
typedef uint Bits;
#define AS_BITS(x) as_uint(x)
#define AS_REAL(x) as_float(x)
#endif

// A candidate for the pivot. `bits` are the bits of its magnitude: a larger magnitude has larger bits. `origin` holds the place of the row and
// the number of the work-group.
typedef struct {
    Bits bits;
    uint origin;
} Candidate;
#define ORIGIN(place, group) ((place) << 8 | (group))
#define PLACE(origin) ((origin) >> 8)
#define GROUP(origin) ((origin) & 255)
#define NOWHERE 0xffffffff
// `bits` of a candidate that must be the pivot: larger than the bits of every magnitude
#define LARGEST ((Bits)-1)

// Number of places to which the exchanges may move rows: the first WIDTH places, and WIDTH places of pivots
#define PLACES (2 * WIDTH)

// no barrier is needed: a work-item that waits for a message does not stop other work-items of its work-group
#define BARRIER_AFTER_SENDING

// The functions below write and read words of messages in global memory. Other work-groups access the same words at the same time, so that
// the accesses have the scope of the device (PTX ISA, section memory consistency model).
static void put_word(__global ulong *to, ulong word) {
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(to), "l"(word));
}

static void put_words(__global ulong *to, ulong2 words) {
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" :: "l"(to), "l"(words.x), "l"(words.y));
}

static ulong get_word(__global const ulong *from) {
    ulong word;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(from));
    return word;
}

static ulong2 get_words(__global const ulong *from) {
    ulong x, y;
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "l"(from));
    return (ulong2)(x, y);
}

// Returns the largest, or the smallest, x of the 32 work-items of a sub-group (PTX ISA, section redux).
static uint max_of_sub_group(uint x) {
    uint most;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(most) : "r"(x));
    return most;
}

static uint min_of_sub_group(uint x) {
    uint least;
    asm volatile("redux.sync.min.u32 %0, %1, 0xffffffff;" : "=r"(least) : "r"(x));
    return least;
}

// Returns the best candidate of a sub-group.
static Candidate best_of_sub_group(Candidate c) {
#if WORDS == 2
    const uint high = max_of_sub_group((uint)(c.bits >> 32)), low = max_of_sub_group((uint)(c.bits >> 32) == high ? (uint)c.bits : 0);
    const Bits most = (ulong)high << 32 | low;
#else
    const Bits most = max_of_sub_group(c.bits);
#endif
    const Candidate best = {most, min_of_sub_group(c.bits == most ? c.origin : NOWHERE)};
    return best;
}

// Returns the best candidate of a work-group.
#define CANDIDATES (ITEMS / 32)
static Candidate best_of_group(Candidate c, __local Candidate *candidates) {
    c = best_of_sub_group(c);
    if (get_local_id(0) % 32 == 0) candidates[get_local_id(0) / 32] = c;
    barrier(CLK_LOCAL_MEM_FENCE);
    return best_of_sub_group(candidates[get_local_id(0) % CANDIDATES]);
}

static ulong word(uint step, uint data) {
    return (ulong)step << 32 | data;
}

static int has_come(ulong word, uint step) {
    return (uint)(word >> 32) == step;
}

static void send_element(__global ulong *to, uint step, real x) {
    const Bits bits = AS_BITS(x);
#if WORDS == 2
    put_words(to, (ulong2)(word(step, (uint)bits), word(step, (uint)(bits >> 32))));
#else
    put_word(to, word(step, bits));
#endif
}

static real receive_element(__global const ulong *from, uint step) {
#if WORDS == 2
    ulong2 words;
    do words = get_words(from);
    while (!has_come(words.x, step) || !has_come(words.y, step));
    return AS_REAL((uint)words.x | words.y << 32);
#else
    ulong word;
    do word = get_word(from);
    while (!has_come(word, step));
    return AS_REAL((uint)word);
#endif
}

static void send_candidate(__global ulong *record, uint step, Candidate c) {
    const ulong bits = c.bits;
    put_words(record, (ulong2)(word(step, (uint)bits), word(step, (uint)(bits >> 32))));
    put_word(record + 2, word(step, c.origin));
}

static Candidate receive_candidate(__global const ulong *record, uint step) {
    ulong2 bits;
    ulong origin;
    do {
        bits = get_words(record);
        origin = get_word(record + 2);
    } while (!has_come(bits.x, step) || !has_come(bits.y, step) || !has_come(origin, step));
    const Candidate c = {(Bits)((uint)bits.x | bits.y << 32), (uint)origin};
    return c;
}

// Returns the row at `place` as a candidate for the pivot of column s. The element of the row in column s is x.
static Candidate candidate_of_row(real x, uint place, uint group, uint s, int pivoting) {
    const Candidate none = {0, NOWHERE};
    Candidate c = {AS_BITS(fabs(x)), ORIGIN(place, group)};
    if (place == s && (!pivoting || isnan(x))) c.bits = LARGEST;
    // a row with a NaN or a zero in column s is no candidate, unless it is the row at place s
    return place == s || (pivoting && place > s && fabs(x) > 0) ? c : none;
}

// A work-item moves MOVES elements at once. PLACE_OF_MOVE(q) is the index in `to` and `from` of the places between which element q moves,
// and COLUMN_OF_MOVE(q) is the column of element q.
#define PLACE_OF_MOVE(q) ((t + (q) * ITEMS) % PLACES)
#define COLUMN_OF_MOVE(q) (begin + (ulong)((t + (q) * ITEMS) / PLACES) * groups)
#define IS_MOVE(q) (COLUMN_OF_MOVE(q) < left + right && from[PLACE_OF_MOVE(q)] != to[PLACE_OF_MOVE(q)])
// the element of a row in a column outside of the panel; `column` counts these columns only
#define OTHER(row, column) AT(a, row, (column) < left ? (column) : (column) + n)

// Exchanges the rows of the columns outside of the panel. Element (0, 0) of `a` is the first element of the leftmost of these columns. All
// elements of a column are read before an element of the column is written.
static void exchange_rows(ulong n, ulong left, ulong right, __global real *a, ulong a_at, ulong a_ld, __local const uint *pivots,
                          __local uint *to, __local uint *from) {
    const uint t = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0);
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint e = t; e < PLACES; e += ITEMS) {
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
    for (ulong begin = group; begin < left + right; begin += (ulong)groups * MOVES * ITEMS / PLACES) {
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

// Finds the best candidate of a work-group, sends its magnitude and its place, and returns the candidate.
static Candidate send_best(Candidate c, __global ulong *record, uint step, __local Candidate *candidates) {
    c = best_of_group(c, candidates);
    if (get_local_id(0) == 0) send_candidate(record, step, c);
    return c;
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void getrf_held_rows(const ulong m, const ulong n, const ulong pivoting, const ulong first, const ulong left, const ulong right,
                     __global real *a, const ulong a_at, const ulong a_ld, __global int *ipiv, const ulong ipiv_at, __global int *info,
                     const ulong info_at, __global ulong *records) {
    __local Candidate candidates[2][CANDIDATES];
    // the reciprocal of the pivot, followed by the row of the pivot
    __local real received[WIDTH + 1];
    // pivots[s] is the place of the pivot of step s; together, all exchanges move the row at the place from[e] to the place to[e]
    __local uint pivots[WIDTH], from[PLACES], to[PLACES];
    const uint t = get_local_id(0), group = get_group_id(0), groups = get_num_groups(0), i = group * ITEMS + t;
    const Candidate none = {0, NOWHERE};
    const ulong launches = records[0], used = records[1], words = 2 * groups * RECORD;
    __global ulong *const region = records + 2 + launches % 2 * REGION, *const last = records + 2 + (launches + 1) % 2 * REGION;
    for (ulong e = i; e < used; e += groups * ITEMS) last[e] = 0;
    real x[WIDTH];
    #pragma unroll
    for (uint q = 0; q < WIDTH; ++q) x[q] = i < m && q < n ? AT(a, i, q) : 0;
    uint place = i;
    for (uint e = t; e < WIDTH; e += ITEMS) pivots[e] = e;

    Candidate best = candidate_of_row(x[0], place, group, 0, pivoting);
    best = send_best(best, region + group * RECORD, 1, candidates[0]);
    for (uint s = 0; s < n; ++s) {
        const uint step = s + 1, count = WIDTH - s;
        __global ulong *const set = region + s % 2 * groups * RECORD, *const next_set = region + step % 2 * groups * RECORD;
        if (place == PLACE(best.origin)) {
            __global ulong *const row = set + group * RECORD + HEAD;
            #pragma unroll
            for (uint q = 0; q < WIDTH; ++q)
                if (q < count) send_element(row + (q + 1) * WORDS, step, x[q]);
            send_element(row, step, 1 / x[0]);
        }

        BARRIER_AFTER_SENDING;
        const Candidate other = t < groups ? receive_candidate(set + t * RECORD, step) : none;
        const Candidate pivot_row = best_of_group(other, candidates[1]);
        __global const ulong *const row = set + GROUP(pivot_row.origin) * RECORD + HEAD;
        for (uint e = t; e <= count; e += ITEMS) received[e] = receive_element(row + e * WORDS, step);
        barrier(CLK_LOCAL_MEM_FENCE);

        const uint p = PLACE(pivot_row.origin);
        __local const real *const u = received + 1;
        const real reciprocal = received[0], pivot = u[0];
        place = place == p ? s : place == s ? p : place;
        const int is_below = place > s;
        real l = x[0];
        if (is_below && pivot != 0) l = fabs(pivot) >= MIN_POSITIVE ? l * reciprocal : l / pivot;
        // column s + 1 is updated first, because the next search for a pivot reads only this column
        x[0] = is_below && step < WIDTH ? x[1] - l * u[1] : x[1];
        if (step < n) {
            best = candidate_of_row(x[0], place, group, step, pivoting);
            best = send_best(best, next_set + group * RECORD, step + 1, candidates[0]);
        }
        if (t == 0) pivots[s] = p;
        if (i == 0) {
            ipiv[ipiv_at + s] = (int)(first + p);
            if (pivot == 0 && info[info_at] == 0) info[info_at] = (int)(first + s + 1);
        }
        // columns whose steps are complete lie in the last registers
        #pragma unroll
        for (uint q = 2; q < WIDTH; ++q) x[q - 1] = is_below && q < count ? x[q] - l * u[q] : x[q];
        x[WIDTH - 1] = l;
    }
    if (i == 0) {
        records[0] = launches + 1;
        records[1] = words;
    }

    #pragma unroll
    for (uint q = 0; q < WIDTH; ++q) {
        const uint j = (q + (uint)n) % WIDTH;
        if (i < m && j < n) AT(a, place, j) = x[q];
    }
    if (left + right > 0) exchange_rows(n, left, right, a, a_at - left * a_ld, a_ld, pivots, to, from);
}
