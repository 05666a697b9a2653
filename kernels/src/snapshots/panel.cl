#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define real double
#define MIN_POSITIVE 2.2250738585072014e-308
#define ITEMS 16
// Matrices are column-major: element (i, j) of matrix x is x[x_at + i + j·x_ld].
// Offsets have 64 bits, because a matrix may have more than 2^31 elements.
#define IN(x) __global const real *restrict x, const ulong x##_at, const ulong x##_ld
#define OUT(x) __global real *restrict x, const ulong x##_at, const ulong x##_ld
#define AT(x, i, j) x[x##_at + (ulong)(i) + (ulong)(j) * x##_ld]
// LU factorisation A = P·L·U of a narrow panel by one work-group. Each work-item has every ITEMS-th row. With ITEMS = 1, the
// kernel is the unblocked textbook algorithm.
//
// The pivot of a column is the element with the largest magnitude, from the diagonal down. Among equal magnitudes, the kernel
// chooses the first row. A NaN is chosen as pivot only if the NaN stands on the diagonal. If the pivot is zero, the kernel does
// not scale the column, and sets info to 1 + the row of the pivot if info is zero.
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void getrf_panel(const ulong m, const ulong n, const ulong pivoting, const ulong first, __global real *a, const ulong a_at,
                 const ulong a_ld, __global int *ipiv, const ulong ipiv_at, __global int *info, const ulong info_at) {
    __local real magnitude[ITEMS];
    __local ulong place[ITEMS];
    const int t = get_local_id(0);
    for (ulong c = 0; c < n; ++c) {
        real most = -1;
        ulong row = c;
        for (ulong i = pivoting ? c + t : m; i < m; i += ITEMS) {
            const real here = fabs(AT(a, i, c));
            if (here > most) {
                most = here;
                row = i;
            }
        }
        // barriers stand outside of `if` statements, because PoCL 5.0 aborts when it compiles a barrier inside an `if`
        magnitude[t] = most;
        place[t] = row;
        for (int step = pivoting ? ITEMS / 2 : 0; step > 0; step /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (t < step) {
                const real other = magnitude[t + step];
                if (other > magnitude[t] || (other == magnitude[t] && place[t + step] < place[t])) {
                    magnitude[t] = other;
                    place[t] = place[t + step];
                }
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const ulong p = magnitude[0] > fabs(AT(a, c, c)) ? place[0] : c;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (ulong j = t; p != c && j < n; j += ITEMS) {
            const real old = AT(a, c, j);
            AT(a, c, j) = AT(a, p, j);
            AT(a, p, j) = old;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);

        const real pivot = AT(a, c, c);
        if (t == 0) {
            ipiv[ipiv_at + c] = (int)(first + p);
            if (pivot == 0 && info[info_at] == 0) info[info_at] = (int)(first + c + 1);
        }
        const int reciprocal = fabs(pivot) >= MIN_POSITIVE;
        const real factor = 1 / pivot;
        for (ulong i = c + 1 + t; i < m; i += ITEMS) {
            const real l = AT(a, i, c);
            if (pivot != 0) AT(a, i, c) = reciprocal ? l * factor : l / pivot;
        }
        // column by column: on a processor, one work-item has all rows, and then reads and writes contiguous memory
        for (ulong j = c + 1; j < n; ++j) {
            const real u = AT(a, c, j);
            for (ulong i = c + 1 + t; i < m; i += ITEMS) AT(a, i, j) -= AT(a, i, c) * u;
        }
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
}
