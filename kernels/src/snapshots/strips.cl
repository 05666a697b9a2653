#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define real double
#define MIN_POSITIVE 2.2250738585072014e-308
#define ITEMS 64
#define ROWS 4
#define WIDTH 2
#define V 2
#define LINES 16
#define LINE 4
#define TOGETHER 8
// Matrices are column-major: element (i, j) of matrix x is x[x_at + i + j·x_ld].
// Offsets have 64 bits, because a matrix may have more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
// LU factorisation A = P·L·U of a panel by strips of WIDTH columns. During the factorisation, the strips lie one after the other
// in scratch memory. Row i of a strip is PARTS vectors of V elements. A strip has HEIGHT rows. Rows and columns of a strip beyond
// the panel are zero.
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#define vec JOIN(real, V)
#define PARTS (WIDTH / V)
#define HEIGHT (ITEMS * ROWS)
// Index of the first vector of row i of a strip.
#define ROW_AT(strip, i) (((strip) * HEIGHT + (i)) * PARTS)
#define UNROLLED _Pragma("unroll")
#define EACH_ROW UNROLLED for (uint r = 0; r < ROWS; ++r)
#define EACH_COLUMN(c) UNROLLED for (uint c = 0; c < WIDTH; ++c)
#define EACH_PART UNROLLED for (uint q = 0; q < PARTS; ++q)

// A row of a strip, as vectors and as elements.
typedef union {
    vec part[PARTS];
    real at[WIDTH];
} row_t;

// Copies the panel to its strips. Each work-item copies one row of one strip.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void enter_strips(const ulong m, const ulong n, IN(a), __global vec *restrict strips) {
    const uint i = get_global_id(0), strip = get_global_id(1);
    row_t row;
    EACH_COLUMN(c) row.at[c] = i < m && strip * WIDTH + c < n ? AT(a, i, strip * WIDTH + c) : 0;
    EACH_PART strips[ROW_AT(strip, i) + q] = row.part[q];
}

// Copies the strips back to their panel. Each work-item copies one row of TOGETHER strips.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void leave_strips(const ulong m, const ulong n, const ulong first, __global const vec *restrict strips, OUT(a),
                  __global const int *restrict ipiv, const ulong ipiv_at) {
    const uint i = get_global_id(0), least = get_global_id(1) * TOGETHER;
    if (i >= m) return;
    // the row that the exchanges of later strips bring to row i
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

// Finds the largest magnitude of `lines` candidates, which lie `stride` apart. Among equal magnitudes, the smallest row wins.
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

// One launch of the kernel is one step of the factorisation. Step s applies the row exchanges of strip s - 1 to the strips on the
// right, and eliminates the columns of strip s - 1 from these strips. Then the work-group that has strip s factors this strip.
//
// The kernel chooses pivots by the rules in the comment of `getrf_panel`. A work-item holds ROWS rows of its work-group's strip in
// registers. Row begin + i is in slot i / ITEMS of work-item i % ITEMS. The first work-items hold the rows of the strip on the
// diagonal. The last slots hold the finished rows, which lie above row `begin`.
//
// While a strip is factored, the registers of finished rows and of rows beyond the panel hold zero. Finished rows and rows beyond
// the panel are never chosen as pivot row, because zero is not larger than any magnitude on the diagonal. During the elimination,
// finished rows are computed like other rows, but not stored. No barrier stands inside an `if`, because some OpenCL
// compilers for CPUs cannot compile a barrier inside an `if`.
#define I(r) ((begin + t + (r) * ITEMS) % HEIGHT)

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void getrf_strip(const ulong n, const ulong pivoting, const ulong first, const ulong step, __global vec *strips,
                 __global int *ipiv, const ulong ipiv_at, __global int *info, const ulong info_at) {
    __local real magnitude[ITEMS];
    __local uint row[ITEMS];
    __local real most_of_line[LINES];
    __local uint best_of_line[LINES];
    // the row on the diagonal, and the pivot row
    __local real diagonal[WIDTH];
    __local real pivots[WIDTH];
    // row numbers: strip s - 1 has exchanged these rows with the rows of strip s - 1 on the diagonal
    __local uint named[WIDTH];
    // the rows that the exchanges bring to the rows of strip s - 1 on the diagonal, followed by the rows that the exchanges bring
    // to the rows in `named`
    __local row_t moved[2 * WIDTH];
    // the factors in the rows of strip s - 1 on the diagonal: L in the columns of strip s - 1, and U in the columns of this strip
    __local row_t lower[WIDTH];
    __local row_t upper[WIDTH];
    const uint t = get_local_id(0), s = step;
    const uint strip = s + get_group_id(0);
    // the first row that is not finished, and the first row of strip s - 1 on the diagonal
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
    // work-item e loads the row that the exchanges bring to row e of strip s - 1, or to row named[e - WIDTH]
    if (eliminates && t < 2 * WIDTH) {
        uint from = t < WIDTH ? done + t : named[t - WIDTH];
        for (uint e = WIDTH; e > 0; --e) {
            const uint i = done + e - 1, p = named[e - 1];
            from = from == i ? p : from == p ? i : from;
        }
        EACH_PART moved[t].part[q] = strips[ROW_AT(strip, from) + q];
    }
    // all work-items have read their rows before any work-item writes a row
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (eliminates) {
        for (uint e = 0; e < WIDTH; ++e) {
            const uint p = named[e];
            if (p >= begin && t == (p - begin) % ITEMS)
                EACH_ROW if (r == (p - begin) / ITEMS) EACH_COLUMN(c) x[r][c] = moved[WIDTH + e].at[c];
        }
        // U in the rows of strip s - 1: each work-item computes one vector of columns
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

    // x[r][0] is the next column to factor, followed by later columns and then by finished columns
    const uint count = strip == s ? min((uint)WIDTH, (uint)n - begin) : 0;
    if (strip == s)
        EACH_ROW EACH_COLUMN(c) x[r][c] = I(r) >= begin ? x[r][c] : 0;
    for (uint c = 0; c < count; ++c) {
        const uint j = begin + c;
        // finds the first row with the largest magnitude (a NaN is never chosen, because comparisons with a NaN are false)
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
            // neighbouring work-items read neighbouring elements
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
    // rotates the registers past the columns that the panel lacks, so that every column returns to its original register
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
