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
