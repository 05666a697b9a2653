// One step of the factorisation A = P·L·U of a panel of at most WIDTH columns by many work-groups. LANES work-items share a row.
// Step s eliminates column s - 1 and searches column s for the pivot. A panel of n columns takes n + 1 steps. The kernel
// chooses pivots by the rules in the comment of `getrf_panel`.
//
// The work-groups exchange pivot candidates through records in `notes`. The record of a work-group contains the magnitude, the
// row number and the row of the work-group's best candidate. An additional record contains the row on the diagonal. `notes`
// contains two sets of records: each step reads one set and writes the other.
#define ROWS (ITEMS / LANES)
#define HELD (WIDTH / LANES)
#define NOTE (WIDTH + 2)
#define J(q) (lane + (q) * LANES)

#define LINE (ROWS < 16 ? ROWS : 16)

// Returns the index of the first of the largest magnitudes in `lines` lines. The function finds the best candidate of each line
// first, and then the best candidate of all lines.
uint first_largest(__local const real *magnitude, __local real *most_of_line, __local uint *best_of_line, const uint t,
                   const uint lines) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < lines) {
        uint best = t * LINE;
        real most = magnitude[best];
        #pragma unroll
        for (uint e = t * LINE + 1; e < t * LINE + LINE; ++e)
            if (magnitude[e] > most) {
                most = magnitude[e];
                best = e;
            }
        most_of_line[t] = most;
        best_of_line[t] = best;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint best = best_of_line[0];
    real most = most_of_line[0];
    #pragma unroll
    for (uint line = 1; line < lines; ++line)
        if (most_of_line[line] > most) {
            most = most_of_line[line];
            best = best_of_line[line];
        }
    return best;
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void getrf_column(const ulong m, const ulong n, const ulong pivoting, const ulong first, const ulong step, __global real *a,
                  const ulong a_at, const ulong a_ld, __global int *ipiv, const ulong ipiv_at, __global int *info,
                  const ulong info_at, __global real *notes) {
    __local real magnitude[ITEMS];
    __local ulong place[ITEMS];
    __local real most_of_line[ITEMS / LINE];
    __local uint best_of_line[ITEMS / LINE];
    // column step - 1 in the rows of this work-group
    __local real eliminated[ROWS];
    const uint t = get_local_id(0), row = t % ROWS, lane = t / ROWS;
    const ulong groups = (m + ROWS - 1) / ROWS, group = get_group_id(0), i = group * ROWS + row, s = step;
    __global real *const written = notes + (s % 2) * (groups + 1) * NOTE;
    __global const real *const told = notes + (1 - s % 2) * (groups + 1) * NOTE;
    // elements of row i in the columns lane, lane + LANES, ...
    real x[HELD];
    #pragma unroll
    for (uint q = 0; q < HELD; ++q) x[q] = i < m && J(q) < n ? AT(a, i, J(q)) : 0;

    // no barrier stands inside an `if`, because some OpenCL compilers for CPUs cannot compile a barrier inside an `if`
    magnitude[t] = -1;
    place[t] = 0;
    if (s > 0) {
        // each work-item compares the candidates of consecutive work-groups, so that the first of equal magnitudes wins
        const ulong each = (groups + ITEMS - 1) / ITEMS;
        for (ulong g = t * each; g < min(t * each + each, groups); ++g) {
            const real here = told[g * NOTE];
            if (here > magnitude[t]) {
                magnitude[t] = here;
                place[t] = g * ROWS + (ulong)told[g * NOTE + 1];
            }
        }
        #pragma unroll
        for (uint q = 0; q < HELD; ++q)
            if (J(q) == s - 1) eliminated[row] = x[q];
    }
    const uint chosen = first_largest(magnitude, most_of_line, best_of_line, t, ITEMS / LINE);
    if (s > 0) {
        const ulong c = s - 1;
        __global const real *const diagonal = told + groups * NOTE + 2;
        const real on_diagonal = diagonal[c];
        const int better = magnitude[chosen] > fabs(on_diagonal);
        const ulong p = better ? place[chosen] : c;
        __global const real *const pivots = better ? told + p / ROWS * NOTE + 2 : diagonal;
        const real pivot = pivots[c];
        if (group == 0 && t == 0) {
            ipiv[ipiv_at + c] = (int)(first + p);
            if (pivot == 0 && info[info_at] == 0) info[info_at] = (int)(first + c + 1);
        }
        real l = eliminated[row];
        if (i == p && better) {
            l = on_diagonal;
            #pragma unroll
            for (uint q = 0; q < HELD; ++q) x[q] = diagonal[J(q)];
        }
        if (pivot != 0) l = fabs(pivot) >= MIN_POSITIVE ? l * (1 / pivot) : l / pivot;
        // left of column c, only the two exchanged rows change
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

    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll
    for (uint q = 0; q < HELD; ++q)
        if (J(q) == min(s, n - 1)) {
            const real here = fabs(x[q]);
            // a NaN is not a pivot candidate
            magnitude[row] = pivoting && i >= s && i < m && here >= 0 ? here : (real)-1;
        }
    const uint leader = first_largest(magnitude, most_of_line, best_of_line, t, ROWS / LINE);
    if (s < n) {
        __global real *const own = written + group * NOTE, *const diagonal = written + groups * NOTE;
        if (t == 0) {
            own[0] = magnitude[leader];
            own[1] = (real)leader;
        }
        #pragma unroll
        for (uint q = 0; q < HELD; ++q) {
            if (row == leader) own[2 + J(q)] = x[q];
            if (i == s) diagonal[2 + J(q)] = x[q];
        }
    }
}
