#define real float
#define MIN_POSITIVE 1.17549435e-38f
#define ITEMS 64
#define COLUMNS 2
// Matrices are column-major: element (i, j) of matrix x is x[x_at + i + j·x_ld].
// Offsets have 64 bits, because a matrix may have more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
// Exchanges rows i and ipiv[i] - first of A for all i, in order or in reverse order. The kernel makes a set of SET exchanges at
// once. One work-item first computes where the set moves each row. Then the work-items move COLUMNS columns at a time: all
// elements are read before any element is written.
//
// Each row that a set moves has a place. The rows i of a set have the first SET places, in the order of the exchanges. Other rows
// that a set names have places in a hash table of TABLE entries. In the hash table, a row takes the first free entry from entry
// (row number modulo TABLE) on.
#define SET (4 * ITEMS)
#define TABLE (2 * SET)
#define PLACES (SET + TABLE)
#define EACH (PLACES / ITEMS)
#define NONE 0xffffffffu
// the row i of exchange number `step`
#define ROW(step) (forward ? (step) : (uint)count - 1 - (step))

// Returns the place of a row in the hash table. If the table does not contain the row, the function enters the row first.
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
    // the place of row ipiv[i] - first for each exchange of the set
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
            // the rows i of a set are consecutive
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
        // after this barrier, a work-item sees the elements that other work-items wrote for the previous set
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        // the row to which the elements at each place move, and whether they move at all
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
