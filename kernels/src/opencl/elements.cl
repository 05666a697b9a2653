// Kernels with little arithmetic, in which each work-item computes one line or one element.

// C <- beta·C. If beta = 0, the kernel writes zeros and does not read C.
__kernel void scale(const ulong m, const ulong n, const real beta, OUT(c)) {
    const ulong i = get_global_id(0), j = get_global_id(1);
    if (i < m && j < n) AT(c, i, j) = beta == 0 ? (real)0 : beta * AT(c, i, j);
}

// Copies a matrix: B <- A.
__kernel void copy(const ulong m, const ulong n, IN(a), OUT(b)) {
    const ulong i = get_global_id(0), j = get_global_id(1);
    if (i < m && j < n) AT(b, i, j) = AT(a, i, j);
}

// Copies a matrix to a matrix in single precision: B <- alpha·A.
__kernel void narrow(const ulong m, const ulong n, const real alpha, IN(a), __global float *b, const ulong b_at, const ulong b_ld) {
    const ulong i = get_global_id(0), j = get_global_id(1);
    if (i < m && j < n) AT(b, i, j) = (float)(alpha * AT(a, i, j));
}

// Exchanges lines i and ipiv[i] - first for `count` values of i from `begin` on, in order or in reverse order. Element r of line
// i is a[a_at + i·by_line + r·by_place]. A work-item makes all exchanges for one value of r.
__kernel void laswp(const ulong begin, const ulong count, const ulong places, const ulong forward, const ulong first, __global real *a,
                    const ulong a_at, const ulong by_line, const ulong by_place, __global const int *restrict ipiv,
                    const ulong ipiv_at) {
    const ulong r = get_global_id(0);
    if (r >= places) return;
    __global real *at = a + a_at + r * by_place;
    for (ulong step = 0; step < count; ++step) {
        const ulong i = begin + (forward ? step : count - 1 - step), p = (ulong)ipiv[ipiv_at + i] - first;
        if (p != i) {
            const real old = at[i * by_line];
            at[i * by_line] = at[p * by_line];
            at[p * by_line] = old;
        }
    }
}

// info[g] <- 1 + the first row with a zero on the diagonal of matrix g, or 0 if there is no zero. Matrix g begins g·lu_step
// elements after the first matrix.
__kernel void zero_pivots(const ulong n, const ulong count, IN(lu), const ulong lu_step, __global int *info, const ulong info_at) {
    const ulong g = get_global_id(0);
    if (g >= count) return;
    int told = 0;
    for (ulong i = 0; i < n && told == 0; ++i)
        if (lu[lu_at + g * lu_step + i * (lu_ld + 1)] == 0) told = (int)i + 1;
    info[info_at + g] = told;
}

// Fills the array info with zeros.
__kernel void clear(const ulong count, __global int *info, const ulong info_at) {
    if (get_global_id(0) < count) info[info_at + get_global_id(0)] = 0;
}
