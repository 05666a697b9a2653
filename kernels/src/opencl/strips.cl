// One step of A = P·L·U of a panel by strips of WIDTH columns, each held by one work-group
// in registers: a work-item has ROWS rows. Step s makes the exchanges of strip s - 1 in
// all other strips and eliminates its columns from those to the right; the work-group that
// has strip s factors it then. Rules as in `getrf_panel`.
//
// What is done, or lies outside of the panel, is computed along and not stored. Barriers
// stand outside of conditions, which compilers for processors do not all bear.
#define UNROLLED _Pragma("unroll")
#define EACH_ROW UNROLLED for (uint r = 0; r < ROWS; ++r)
#define EACH_COLUMN(c) UNROLLED for (uint c = 0; c < WIDTH; ++c)
#define I(r) (t + (r) * ITEMS)

// The first of the largest of so many lines, one each `stride` candidates.
void largest(__local const real *magnitude, __local const uint *row, const uint lines, const uint stride, real *most, uint *best) {
    *most = magnitude[0];
    *best = row[0];
    UNROLLED for (uint line = 1; line < lines; ++line) {
        const real here = magnitude[line * stride];
        const uint at = row[line * stride];
        const int second = (here > *most) | ((here == *most) & (at < *best));
        *most = second ? here : *most;
        *best = second ? at : *best;
    }
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void getrf_strip(const ulong m, const ulong n, const ulong pivoting, const ulong first, const ulong step, __global real *a,
                 const ulong a_at, const ulong a_ld, __global int *ipiv, const ulong ipiv_at, __global int *info,
                 const ulong info_at) {
    __local real magnitude[ITEMS];
    __local uint row[ITEMS];
    __local real most_of_line[LINES];
    __local uint best_of_line[LINES];
    // the rows on the diagonal and of the pivot
    __local real diagonal[WIDTH];
    __local real pivots[WIDTH];
    // the rows that strip s - 1 exchanged its own with
    __local uint named[WIDTH];
    // L of strip s - 1 on the diagonal, and the rows of U beside it, both by rows of U
    __local real lower[WIDTH][WIDTH];
    __local real upper[WIDTH][WIDTH];
    const uint t = get_local_id(0), s = step;
    // the first work-group has strip s, and none has strip s - 1
    const uint strip = (s + get_group_id(0)) % (((uint)n + WIDTH - 1) / WIDTH), left = strip * WIDTH;
    // the columns that were factored last
    const uint done = (s - 1) * WIDTH, exchanges = s > 0 && pivoting ? min((uint)WIDTH, (uint)n - done) : 0;
    const int eliminates = s > 0 && strip >= s;

    // the row that comes to each place
    uint from[ROWS];
    EACH_ROW from[r] = I(r);
    if (t < exchanges) named[t] = (uint)(ipiv[ipiv_at + done + t] - first);
    barrier(CLK_LOCAL_MEM_FENCE);
    int touched = 0;
    for (uint e = 0; e < exchanges; ++e) touched |= t == (done + e) % ITEMS || t == named[e] % ITEMS;
    if (touched)
        for (uint e = exchanges; e > 0; --e) {
            const uint i = done + e - 1, p = named[e - 1];
            EACH_ROW from[r] = from[r] == i ? p : from[r] == p ? i : from[r];
        }
    // to the left only the exchanged rows change
    real x[ROWS][WIDTH];
    EACH_ROW
        if (I(r) < m && (strip >= s || from[r] != I(r))) {
            EACH_COLUMN(c) x[r][c] = AT(a, from[r], min(left + c, (uint)n - 1));
        } else {
            // no candidate beyond the panel: zero is no larger than the diagonal
            EACH_COLUMN(c) x[r][c] = 0;
        }
    if (eliminates) {
        for (uint e = t; e < WIDTH * WIDTH; e += ITEMS) lower[e / WIDTH][e % WIDTH] = AT(a, done + e % WIDTH, done + e / WIDTH);
        EACH_ROW
            if (I(r) - done < WIDTH) EACH_COLUMN(c) upper[I(r) - done][c] = x[r][c];
    }
    // rows go where those of other work-items were
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (eliminates && t < WIDTH) {
        real u[WIDTH];
        EACH_COLUMN(k) u[k] = upper[k][t];
        EACH_COLUMN(k) {
            UNROLLED for (uint i = k + 1; i < WIDTH; ++i) u[i] -= lower[k][i] * u[k];
            upper[k][t] = u[k];
            if (left + t < n) AT(a, done + k, left + t) = u[k];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (eliminates)
        for (uint k = 0; k < WIDTH; ++k) {
            real l[ROWS];
            EACH_ROW l[r] = I(r) < m ? AT(a, I(r), done + k) : 0;
            EACH_ROW EACH_COLUMN(c) x[r][c] -= l[r] * upper[k][c];
        }

    // column 0 of the registers is the next one; the others follow, then those that are done
    const uint count = strip == s ? min((uint)WIDTH, (uint)n - left) : 0;
    for (uint c = 0; c < count; ++c) {
        const uint j = left + c;
        // a NaN is no candidate
        real most = 0;
        uint best = j;
        EACH_ROW {
            const real here = fabs(x[r][0]);
            const int better = (I(r) >= j) & (I(r) < m) & (here > most);
            most = better ? here : most;
            best = better ? I(r) : best;
        }
        magnitude[t] = most;
        row[t] = best;
        if (t == j % ITEMS)
            EACH_ROW if (r == j / ITEMS) EACH_COLUMN(k) diagonal[k] = x[r][k];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t < LINES) {
            // neighbours read neighbours
            largest(magnitude + t, row + t, LINE, LINES, &most, &best);
            most_of_line[t] = most;
            best_of_line[t] = best;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        largest(most_of_line, best_of_line, LINES, 1, &most, &best);
        const uint p = pivoting && most > fabs(diagonal[0]) ? best : j;
        if (t == p % ITEMS)
            EACH_ROW if (r == p / ITEMS) EACH_COLUMN(k) {
                pivots[k] = x[r][k];
                x[r][k] = diagonal[k];
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        const real pivot = pivots[0];
        if (t < WIDTH && left + (c + t) % WIDTH < n) AT(a, j, left + (c + t) % WIDTH) = pivots[t];
        if (t == 0) {
            ipiv[ipiv_at + j] = (int)(first + p);
            if (pivot == 0 && info[info_at] == 0) info[info_at] = (int)(first + j + 1);
        }
        if (fabs(pivot) >= MIN_POSITIVE) {
            const real factor = 1 / pivot;
            EACH_ROW x[r][0] *= factor;
        } else if (pivot != 0) {
            EACH_ROW x[r][0] /= pivot;
        }
        UNROLLED for (uint k = 1; k < WIDTH; ++k)
            if (c + k < WIDTH) {
                const real u = pivots[k];
                EACH_ROW x[r][k] -= x[r][0] * u;
            }
        EACH_ROW {
            const real l = x[r][0];
            UNROLLED for (uint k = 1; k < WIDTH; ++k) x[r][k - 1] = x[r][k];
            x[r][WIDTH - 1] = l;
        }
    }

    const uint begin = strip == s ? left + count : s > 0 ? done + WIDTH : 0;
    EACH_ROW
        if (I(r) < m && (strip >= s ? I(r) >= begin : from[r] != I(r))) EACH_COLUMN(k) {
            const uint to = left + (count + k) % WIDTH;
            if (to < n) AT(a, I(r), to) = x[r][k];
        }
}
