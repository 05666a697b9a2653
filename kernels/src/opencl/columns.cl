// One step of A = P·L·U of a panel of at most WIDTH columns by many work-groups, LANES
// work-items for a row. Step s eliminates column s - 1, and looks for the pivot of
// column s; there are n + 1 steps. Rules as in `getrf_panel`.
//
// What a step must know of all rows stands in notes: for each work-group the best pivot
// among its rows (magnitude, place) and the row that holds it, and at the end the row on
// the diagonal. There are two sets of notes: one is read while the other is written.
#define ROWS (ITEMS / LANES)
#define HELD (WIDTH / LANES)
#define NOTE (WIDTH + 2)
#define J(q) (lane + (q) * LANES)

// Brings the largest of `count` magnitudes to the front, the first of equal ones.
void first_largest(__local real *magnitude, __local ulong *place, const uint t, const uint count) {
    for (uint half_count = count / 2; half_count > 0; half_count /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < half_count) {
            const real other = magnitude[t + half_count];
            if (other > magnitude[t] || (other == magnitude[t] && place[t + half_count] < place[t])) {
                magnitude[t] = other;
                place[t] = place[t + half_count];
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void getrf_column(const ulong m, const ulong n, const ulong pivoting, const ulong first, const ulong step, __global real *a,
                  const ulong a_at, const ulong a_ld, __global int *ipiv, const ulong ipiv_at, __global int *info,
                  const ulong info_at, __global real *notes) {
    __local real magnitude[ITEMS];
    __local ulong place[ITEMS];
    // column step - 1 of the work-group's rows
    __local real eliminated[ROWS];
    const uint t = get_local_id(0), row = t % ROWS, lane = t / ROWS;
    const ulong groups = (m + ROWS - 1) / ROWS, group = get_group_id(0), i = group * ROWS + row, s = step;
    __global real *const written = notes + (s % 2) * (groups + 1) * NOTE;
    __global const real *const told = notes + (1 - s % 2) * (groups + 1) * NOTE;
    // columns lane, lane + LANES, ... of row i
    real x[HELD];
    #pragma unroll
    for (uint q = 0; q < HELD; ++q) x[q] = i < m && J(q) < n ? AT(a, i, J(q)) : 0;

    if (s > 0) {
        const ulong c = s - 1;
        #pragma unroll
        for (uint q = 0; q < HELD; ++q)
            if (J(q) == c) eliminated[row] = x[q];
        magnitude[t] = -1;
        place[t] = 0;
        for (ulong g = t; g < groups; g += ITEMS) {
            const real here = told[g * NOTE];
            if (here > magnitude[t]) {
                magnitude[t] = here;
                place[t] = g * ROWS + (ulong)told[g * NOTE + 1];
            }
        }
        first_largest(magnitude, place, t, ITEMS);
        __global const real *const diagonal = told + groups * NOTE + 2;
        const int better = magnitude[0] > fabs(diagonal[c]);
        const ulong p = better ? place[0] : c;
        __global const real *const pivots = better ? told + p / ROWS * NOTE + 2 : diagonal;
        const real pivot = pivots[c];
        if (group == 0 && t == 0) {
            ipiv[ipiv_at + c] = (int)(first + p);
            if (pivot == 0 && info[info_at] == 0) info[info_at] = (int)(first + c + 1);
        }
        real l = eliminated[row];
        if (i == p && better) {
            l = diagonal[c];
            #pragma unroll
            for (uint q = 0; q < HELD; ++q) x[q] = diagonal[J(q)];
        }
        if (pivot != 0) l = fabs(pivot) >= MIN_POSITIVE ? l * (1 / pivot) : l / pivot;
        // only the exchanged rows change to the left of column c
        const ulong changes_from = better && (i == p || i == c) ? 0 : c;
        #pragma unroll
        for (uint q = 0; q < HELD; ++q) {
            if (i < m && i >= c && J(q) < n && J(q) >= changes_from) {
                const real upper = pivots[J(q)];
                if (i == c)
                    x[q] = upper;
                else if (J(q) == c)
                    x[q] = l;
                else if (J(q) > c)
                    x[q] -= l * upper;
                AT(a, i, J(q)) = x[q];
            }
        }
    }

    if (s < n) {
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (uint q = 0; q < HELD; ++q)
            if (J(q) == s) {
                const real here = fabs(x[q]);
                // a NaN is no candidate
                magnitude[row] = pivoting && i >= s && i < m && here >= 0 ? here : (real)-1;
                place[row] = i;
            }
        first_largest(magnitude, place, t, ROWS);
        __global real *const own = written + group * NOTE, *const diagonal = written + groups * NOTE;
        if (t == 0) {
            own[0] = magnitude[0];
            own[1] = (real)(place[0] % ROWS);
        }
        #pragma unroll
        for (uint q = 0; q < HELD; ++q) {
            if (i == place[0]) own[2 + J(q)] = x[q];
            if (i == s) diagonal[2 + J(q)] = x[q];
        }
    }
}
