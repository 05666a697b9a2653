// A = P·L·U of a panel by strips of WIDTH columns, which stand side by side in memory of
// their own while that goes on: row i of strip s is PARTS vectors of V elements. A strip
// has HEIGHT rows, and the last one all its columns: zeros where the panel has none.
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#define vec JOIN(real, V)
#define PARTS (WIDTH / V)
#define HEIGHT (ITEMS * ROWS)
// Where a row of a strip begins.
#define ROW_AT(strip, i) (((strip) * HEIGHT + (i)) * PARTS)
#define UNROLLED _Pragma("unroll")
#define EACH_ROW UNROLLED for (uint r = 0; r < ROWS; ++r)
#define EACH_COLUMN(c) UNROLLED for (uint c = 0; c < WIDTH; ++c)
#define EACH_PART UNROLLED for (uint q = 0; q < PARTS; ++q)

// The elements of a row, by its vectors.
typedef union {
    vec part[PARTS];
    real at[WIDTH];
} row_t;

// The panel, to its strips: a row of a strip for each work-item.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void enter_strips(const ulong m, const ulong n, IN(a), __global vec *restrict strips) {
    const uint i = get_global_id(0), strip = get_global_id(1);
    row_t row;
    EACH_COLUMN(c) row.at[c] = i < m && strip * WIDTH + c < n ? AT(a, i, strip * WIDTH + c) : 0;
    EACH_PART strips[ROW_AT(strip, i) + q] = row.part[q];
}

// The strips, to their panel: a row of TOGETHER strips for each work-item.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void leave_strips(const ulong m, const ulong n, const ulong first, __global const vec *restrict strips, OUT(a),
                  __global const int *restrict ipiv, const ulong ipiv_at) {
    const uint i = get_global_id(0), least = get_global_id(1) * TOGETHER;
    if (i >= m) return;
    // the row that the exchanges of later strips bring here
    uint from = i;
    for (uint strip = (n + WIDTH - 1) / WIDTH; strip-- > least;) {
        if (strip < least + TOGETHER) {
            row_t row;
            EACH_PART row.part[q] = strips[ROW_AT(strip, from) + q];
            EACH_COLUMN(c)
                if (strip * WIDTH + c < n) AT(a, i, strip * WIDTH + c) = row.at[c];
        }
        for (uint j = min((strip + 1) * WIDTH, (uint)n); j-- > strip * WIDTH;) {
            const uint p = ipiv[ipiv_at + j] - first;
            from = from == j ? p : from == p ? j : from;
        }
    }
}

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

// One step: step s eliminates the columns of strip s - 1 from those to the right, with
// its exchanges; the work-group that has strip s factors it then.
// Rules as in `getrf_panel`. A work-item holds ROWS rows of its work-group's strip in
// registers, in slots: row begin + i is in slot i / ITEMS of work-item i % ITEMS, so that
// the first work-items have the strip's rows on the diagonal, and those that are done are last.
//
// While a strip is factored rows that are done are zero in registers, as are those beyond
// the panel: a zero is never larger than the diagonal, and so no candidate. Rows that are
// done are computed along otherwise, and not stored. Barriers stand outside of conditions,
// which compilers for processors do not all bear.
#define I(r) ((begin + t + (r) * ITEMS) % HEIGHT)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void getrf_strip(const ulong n, const ulong pivoting, const ulong first, const ulong step, __global vec *strips,
                 __global int *ipiv, const ulong ipiv_at, __global int *info, const ulong info_at) {
    __local real magnitude[ITEMS];
    __local uint row[ITEMS];
    __local real most_of_line[LINES];
    __local uint best_of_line[LINES];
    // the rows on the diagonal and of the pivot
    __local real diagonal[WIDTH];
    __local real pivots[WIDTH];
    // the rows that strip s - 1 exchanged its own with
    __local uint named[WIDTH];
    // what comes to the rows of strip s - 1, then to those that it named
    __local row_t moved[2 * WIDTH];
    // rows of L and U beside one another: those of strip s - 1 on the diagonal
    __local row_t lower[WIDTH];
    __local row_t upper[WIDTH];
    const uint t = get_local_id(0), s = step;
    const uint strip = s + get_group_id(0);
    // the first row that is not done, and that of strip s - 1
    const uint begin = s * WIDTH, done = begin - WIDTH;
    const int eliminates = s > 0;

    real x[ROWS][WIDTH];
    EACH_ROW {
        row_t here;
        EACH_PART here.part[q] = strips[ROW_AT(strip, I(r)) + q];
        EACH_COLUMN(c) x[r][c] = here.at[c];
    }
    if (eliminates && t < WIDTH) {
        named[t] = ipiv[ipiv_at + done + t] - first;
        EACH_PART lower[t].part[q] = strips[ROW_AT(s - 1, done + t) + q];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    // work-item e has the row that comes to row e of strip s - 1, or to one that it named
    if (eliminates && t < 2 * WIDTH) {
        uint from = t < WIDTH ? done + t : named[t - WIDTH];
        for (uint e = WIDTH; e > 0; --e) {
            const uint i = done + e - 1, p = named[e - 1];
            from = from == i ? p : from == p ? i : from;
        }
        EACH_PART moved[t].part[q] = strips[ROW_AT(strip, from) + q];
    }
    // rows go where others were read
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (eliminates) {
        for (uint e = 0; e < WIDTH; ++e) {
            const uint p = named[e];
            if (p >= begin && t == (p - begin) % ITEMS)
                EACH_ROW if (r == (p - begin) / ITEMS) EACH_COLUMN(c) x[r][c] = moved[WIDTH + e].at[c];
        }
        // U of strip s - 1, a vector of columns for each work-item
        if (t < PARTS) {
            vec u[WIDTH];
            EACH_COLUMN(k) u[k] = moved[k].part[t];
            EACH_COLUMN(k) {
                UNROLLED for (uint i = k + 1; i < WIDTH; ++i) u[i] -= lower[i].at[k] * u[k];
                strips[ROW_AT(strip, done + k) + t] = upper[k].part[t] = u[k];
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (eliminates)
        EACH_ROW {
            row_t l;
            EACH_PART l.part[q] = strips[ROW_AT(s - 1, I(r)) + q];
            EACH_COLUMN(k) EACH_COLUMN(c) x[r][c] -= l.at[k] * upper[k].at[c];
        }

    // column 0 of the registers is the next one; the others follow, then those that are done
    const uint count = strip == s ? min((uint)WIDTH, (uint)n - begin) : 0;
    if (strip == s)
        EACH_ROW EACH_COLUMN(c) x[r][c] = I(r) >= begin ? x[r][c] : 0;
    for (uint c = 0; c < count; ++c) {
        const uint j = begin + c;
        // the first of the largest; a NaN is none
        real most = 0;
        uint best = 0;
        EACH_ROW {
            const int better = fabs(x[r][0]) > most;
            most = better ? fabs(x[r][0]) : most;
            best = better ? r : best;
        }
        magnitude[t] = most;
        row[t] = I(best);
        if (t == c) EACH_COLUMN(k) {
            diagonal[k] = x[0][k];
            x[0][k] = 0;
        }
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
        if (p == j) {
            if (t < WIDTH) pivots[t] = diagonal[t];
        } else if (t == (p - begin) % ITEMS) {
            EACH_ROW if (r == (p - begin) / ITEMS) EACH_COLUMN(k) {
                pivots[k] = x[r][k];
                x[r][k] = diagonal[k];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const real pivot = pivots[0];
        if (t < PARTS) {
            vec done_row;
            UNROLLED for (uint q = 0; q < V; ++q) ((real *)&done_row)[q] = pivots[(t * V + q + WIDTH - c) % WIDTH];
            strips[ROW_AT(strip, j) + t] = done_row;
        }
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
        EACH_ROW {
            const real l = x[r][0];
            UNROLLED for (uint k = 1; k < WIDTH; ++k) x[r][k - 1] = c + k < WIDTH ? x[r][k] - l * pivots[k] : x[r][k];
            x[r][WIDTH - 1] = l;
        }
    }
    // columns that the panel lacks go last
    if (strip == s)
        for (uint c = count; c < WIDTH; ++c) EACH_ROW {
            const real here = x[r][0];
            UNROLLED for (uint k = 1; k < WIDTH; ++k) x[r][k - 1] = x[r][k];
            x[r][WIDTH - 1] = here;
        }

    EACH_ROW
        if (I(r) >= begin + count) {
            row_t here;
            EACH_COLUMN(c) here.at[c] = x[r][c];
            EACH_PART strips[ROW_AT(strip, I(r)) + q] = here.part[q];
        }
}
