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
