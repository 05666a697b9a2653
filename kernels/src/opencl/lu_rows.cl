// LU factorisation A = P·L·U of many matrices of at most ORDER rows and columns. Each work-item holds one row of a matrix, and
// each work-group holds ITEMS / ORDER matrices. Matrix g begins g·a_step elements after the first matrix.
//
// Registers hold the columns that are not eliminated yet. In each step, the remaining columns move by one register, so that the
// column of the pivot is always in r[0]. A pivot row is a row of U, and its registers no longer change. Local memory holds L. The
// kernel exchanges rows only at the end. Until then, `at` is the place of the work-item's row after the exchanges so far.
#define JOIN_(x, y) x##y
#define JOIN(x, y) JOIN_(x, y)
#define VEC JOIN(real, 4)
#define UNROLLED _Pragma("unroll")
// Element in column j of the row of work-item t.
#define DONE(t, j) done[(t) + (j) * ITEMS]

// The kernel chooses pivots by the rules in the comment of `getrf_batched`.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void getrf_rows(const ulong m, const ulong n, const ulong pivoting, __global real *a, const ulong a_at, const ulong a_ld,
                const ulong a_step, __global int *ipiv, const ulong ipiv_at, __global int *info, const ulong info_at,
                const ulong count) {
    __local real done[ITEMS * ORDER];
    // the pivot row of each matrix
    __local VEC upper[ITEMS / 4];
    // for each place, the magnitude of the element in the pivot column, or -1 if the place has no row or a former pivot row
    __local real magnitude[ITEMS];
    // for every four places, the largest magnitude and the place of this magnitude
    __local real largest[ITEMS / 4];
    __local uint place[ITEMS / 4];
    const uint rows = (uint)m, cols = (uint)n, order = min(rows, cols), t = get_local_id(0), row = t % ORDER, first = t - row;
    const ulong g = get_group_id(0) * (ITEMS / ORDER) + t / ORDER;
    // the last work-group may have fewer matrices, so work-items without a matrix compute with zeros
    const int is_there = g < count && row < rows;
    a += a_at + g * a_step;
    ipiv += ipiv_at + g * order;
    real r[ORDER];
    UNROLLED
    for (uint j = 0; j < ORDER; ++j) r[j] = is_there && j < cols ? a[row + j * a_ld] : 0;
    // every row is loaded before a work-item stores its row to the place of another one
    barrier(CLK_GLOBAL_MEM_FENCE);
    uint at = row;
    int zero_pivot = 0;
    for (uint c = 0; c < order; ++c) {
        const int is_open = row < rows && at >= c;
        magnitude[first + at] = is_open ? fabs(r[0]) : -1;
        barrier(CLK_LOCAL_MEM_FENCE);
        uint p = c;
        if (pivoting) {
            if (row < ORDER / 4) {
                real most = -1;
                uint found = 0;
                UNROLLED
                for (uint i = 4 * row; i < 4 * row + 4; ++i) {
                    const real here = magnitude[first + i];
                    if (here > most) {
                        most = here;
                        found = i;
                    }
                }
                largest[first / 4 + row] = most;
                place[first / 4 + row] = found;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            // the first of equal magnitudes wins, and a NaN on the diagonal remains the pivot
            real most = magnitude[first + c];
            UNROLLED
            for (uint i = first / 4; i < (first + ORDER) / 4; ++i) {
                if (largest[i] > most) {
                    most = largest[i];
                    p = place[i];
                }
            }
        }
        at = at == p ? c : at == c ? p : at;
        if (is_open && at == c) {
            UNROLLED
            for (uint j = 0; j < ORDER; j += 4)
                if (c + j < ORDER) upper[(first + j) / 4] = (VEC)(r[j], r[j + 1], r[j + 2], r[j + 3]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const real pivot = upper[first / 4].x;
        if (pivot == 0 && zero_pivot == 0) zero_pivot = (int)c + 1;
        if (is_there && row == 0) ipiv[c] = (int)p;
        if (is_open && at != c) {
            real l = r[0];
            if (fabs(pivot) >= MIN_POSITIVE) l *= 1 / pivot;
            else if (!(pivot == 0)) l /= pivot;
            DONE(t, c) = l;
            // columns beyond the last column of the matrix are computed, but not stored
            UNROLLED
            for (uint j = 0; j < ORDER; j += 4) {
                if (c + j < ORDER) {
                    const VEC u = upper[(first + j) / 4];
                    if (j > 0) r[j - 1] = r[j] - l * u.x;
                    r[j] = r[j + 1] - l * u.y;
                    r[j + 1] = r[j + 2] - l * u.z;
                    r[j + 2] = r[j + 3] - l * u.w;
                }
            }
        }
    }
    if (!is_there) return;
    UNROLLED
    for (uint j = 0; j < ORDER; ++j) {
        if (at + j < cols) DONE(t, at + j) = r[j];
    }
    if (row == 0) info[info_at + g] = zero_pivot;
    for (uint j = 0; j < cols; ++j) a[at + j * a_ld] = DONE(t, j);
}
