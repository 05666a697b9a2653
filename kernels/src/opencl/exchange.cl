// Exchanges rows i and ipiv[i] - first of A for all i, in order or in reverse order, SET of
// them at once: what they do together is found out first, then all that moves in COLUMNS
// columns is read before anything is written.
//
// Rows of a set have places: SET for those whose turn it is, in order, and TABLE for others
// that they name, each at the first free place from its number on.
#define SET (4 * ITEMS)
#define TABLE (2 * SET)
#define PLACES (SET + TABLE)
#define EACH (PLACES / ITEMS)
#define NONE 0xffffffffu
// the row of an exchange
#define ROW(step) (forward ? (step) : (uint)count - 1 - (step))

// The place of a row in the table.
uint place_of(volatile __local uint *others, const uint row) {
    uint place = row % TABLE;
    for (;;) {
        const uint found = atomic_cmpxchg(&others[place], NONE, row);
        if (found == NONE || found == row) return place;
        place = (place + 1) % TABLE;
    }
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void exchange(const ulong count, const ulong n, const ulong forward, const ulong first, __global real *a, const ulong a_at,
              const ulong a_ld, __global const int *restrict ipiv, const ulong ipiv_at) {
    // the place that each exchange of the set names
    __local uint named[SET];
    // the row at each place of the table, and the row whose elements end at each place
    __local uint others[TABLE], held[PLACES];
    const uint t = get_local_id(0);
    for (ulong begin = 0; begin < count; begin += SET) {
        const uint here = (uint)min(count - begin, (ulong)SET), turns = ROW((uint)begin);
        for (uint q = t; q < TABLE; q += ITEMS) others[q] = NONE;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint e = t; e < here; e += ITEMS) {
            held[e] = ROW((uint)begin + e);
            const uint other = (uint)ipiv[ipiv_at + held[e]] - (uint)first;
            // the rows of a set follow one another
            const uint turn = forward ? other - turns : turns - other;
            if (turn < here) {
                named[e] = turn;
            } else {
                named[e] = SET + place_of(others, other);
                held[named[e]] = other;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t == 0)
            for (uint e = 0; e < here; ++e) {
                const uint old = held[e];
                held[e] = held[named[e]];
                held[named[e]] = old;
            }
        // what other work-items wrote for the set before is read now
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        // where the work-item's elements go to: nowhere if they stay
        uint to[EACH];
        int moves[EACH];
        #pragma unroll
        for (uint q = 0; q < EACH; ++q) {
            const uint e = t + q * ITEMS;
            to[q] = e < SET ? ROW((uint)begin + e) : others[e - SET];
            moves[q] = (e < SET ? e < here : to[q] != NONE) && held[e] != to[q];
        }
        for (ulong column = get_group_id(0) * COLUMNS; column < n; column += get_num_groups(0) * COLUMNS) {
            real x[EACH][COLUMNS];
            #pragma unroll
            for (uint q = 0; q < EACH; ++q)
                #pragma unroll
                for (uint c = 0; c < COLUMNS; ++c)
                    if (moves[q] && column + c < n) x[q][c] = AT(a, held[t + q * ITEMS], column + c);
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            #pragma unroll
            for (uint q = 0; q < EACH; ++q)
                #pragma unroll
                for (uint c = 0; c < COLUMNS; ++c)
                    if (moves[q] && column + c < n) AT(a, to[q], column + c) = x[q][c];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
