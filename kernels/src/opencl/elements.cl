// Kernels without arithmetic to speak of: one work-item for each line or element.

// C <- beta·C; beta = 0 writes zeros without reading C.
__kernel void scale(const ulong m, const ulong n, const real beta, OUT(c)) {
    const ulong i = get_global_id(0), j = get_global_id(1);
    if (i < m && j < n) AT(c, i, j) = beta == 0 ? (real)0 : beta * AT(c, i, j);
}

// B <- A.
__kernel void copy(const ulong m, const ulong n, IN(a), OUT(b)) {
    const ulong i = get_global_id(0), j = get_global_id(1);
    if (i < m && j < n) AT(b, i, j) = AT(a, i, j);
}

// Exchanges lines i and ipiv[i] - first for `count` i from `begin` on, in order or in reverse
// order: element r of line i is a[a_at + i·by_line + r·by_place]. One place for each work-item.
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

// info[g] <- 0, or 1 + the first row with a zero on the diagonal of matrix g, which begins g·lu_step elements after the first.
__kernel void zero_pivots(const ulong n, const ulong count, IN(lu), const ulong lu_step, __global int *info, const ulong info_at) {
    const ulong g = get_global_id(0);
    if (g >= count) return;
    int told = 0;
    for (ulong i = 0; i < n && told == 0; ++i)
        if (lu[lu_at + g * lu_step + i * (lu_ld + 1)] == 0) told = (int)i + 1;
    info[info_at + g] = told;
}

// Zeros.
__kernel void clear(const ulong count, __global int *info, const ulong info_at) {
    if (get_global_id(0) < count) info[info_at + get_global_id(0)] = 0;
}
